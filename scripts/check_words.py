"""Keep retired words out of segue's identifiers and messages: `python scripts/check_words.py`.

The project's vocabulary is plain technical English (CONTRIBUTING.md, "Conventions"). This check reads the source of the
package and names every identifier and every message to users that contains a word from the tables below. Docstrings and
comments are left to reviewers, except for words that have no use at all in them, and for phrases that read translated
(`TRANSLATED`) in the folders of `PLAIN_ROOMS`. The pages of the documentation have none of these
phrases, nor those of `IN_PAGES`; their generated parts come from the source.
"""

from __future__ import annotations

import ast
import re
import sys
import tokenize
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCES: Final = ("src", "scripts", "benchmarks", "examples")

IN_IDENTIFIERS: Final = frozenset(
    [
        "tell",
        "told",
        "telling",
        "say",
        "said",
        "says",
        "speak",
        "spoken",
        "speaks",
        "spelt",
        "spell",
        "respell",
        "respelt",
        "spelling",
        "misspelt",
        "shape",
        "shapes",
        "shaped",
        "usual",
        "mend",
        "mended",
        "seal",
        "seals",
        "sealed",
        "unseal",
        "home",
        "abroad",
        "doors",
        "carry",
        "survey",
        "stretch",
        "letter",
        "letters",
        "desk",
        "office",
        "talk",
        "farewell",
        "hear",
        "heard",
        "estrange",
        "estranged",
        "unsaid",
        "disguise",
        "disguises",
        "lookalike",
        "lookalikes",
        "makers",
        "hosts",
        "asking",
        "keeping",
        "forgets",
    ]
)
"""Words that no name of segue's own contains, apart from the names below."""

IN_MESSAGES: Final = frozenset(
    [
        "told",
        "tells",
        "say",
        "says",
        "said",
        "speak",
        "speaks",
        "spoken",
        "spelt",
        "spelling",
        "mend",
        "mended",
        "seal",
        "sealed",
        "abroad",
        "estranged",
        "heard",
    ]
)
"""Words that no text for users contains. Some of them are fine in an identifier of a provider, never in a message."""

IN_DOCSTRINGS: Final = frozenset(
    ["spelt", "mend", "mended", "mends", "seal", "seals", "sealed", "abroad", "estrange", "estranged"]
)
"""Words that not even a docstring needs."""

TRANSLATED: Final[dict[str, re.Pattern[str]]] = {
    "Give": re.compile(r"^Gives? "),
    "give": re.compile(r"(?:; (?:also )?|, and )give (?:the|its|it|them|their|whether|what)\b"),
    "behind": re.compile(r"\bbehind (?!(?:a|an|the) (?:proxy|gateway|router|load balancer|firewall)\b)", re.IGNORECASE),
    "beside": re.compile(r"\bbesides?\b", re.IGNORECASE),
    "stands": re.compile(r"\b(?:stands?|stood)\b", re.IGNORECASE),
    "rests on": re.compile(r"\b(?:rests?|rested) (?:up)?on\b", re.IGNORECASE),
    "Facts this file": re.compile(r"\bFacts (?:this|these) \w+ (?:rests?|relies|rely) on\b"),
    "is no": re.compile(
        r"(?<!there )(?<!where )\b(?:is|are|was|were) no (?!longer\b|more\b|less\b|later\b)", re.IGNORECASE
    ),
    "of which": re.compile(
        r"(?<!one )(?<!each )(?<!both )(?<!none )(?<!most )(?<!some )(?<!all )\bof which\b", re.IGNORECASE
    ),
    "of its own": re.compile(
        r"\bof (?:its|their|one's|someone's|somebody's) own(?=[,.;:)]|$| (?:and|or|for|in|on|that|which)\b)"
    ),
}
"""Phrases that a translated text has and that have a plainer form: `Return`, after, next to, is, is not, its own.

Code in backquotes is not looked at, and white space, line breaks included, counts as one space.
"""

IN_PAGES: Final[dict[str, re.Pattern[str]]] = {
    "it so": re.compile(r"\b(?:call|do|encode|make|read|send|write)s? (?:it|them) so\b(?! that\b)", re.IGNORECASE),
    "is told": re.compile(r"\b(?:which|it|each|client|model|program) (?:is|are|was|were) told\b", re.IGNORECASE),
    "gives": re.compile(r"\bgives? (?:what|whether|how|back)\b", re.IGNORECASE),
    "goes on": re.compile(r"\b(?:go|goes|went|going) on\b(?! (?:the|a|an|its) )", re.IGNORECASE),
    "as it came": re.compile(r"\bas (?:it|they) (?:came|stands?)\b", re.IGNORECASE),
    "of your own": re.compile(r"\bof (?:my|our|your) own\b", re.IGNORECASE),
    "in the place of": re.compile(r"\bin (?:the )?place of\b", re.IGNORECASE),
    "also after": re.compile(
        r", also (?:after|before|for|if|in|inside|on|over|through|to|when|while|with|without)\b", re.IGNORECASE
    ),
    "switch of models": re.compile(r"\bswitch(?:es)? of (?:the )?models?\b", re.IGNORECASE),
    "10 %": re.compile(r"\d %(?!\w)"),
    "somebody else's": re.compile(r"\bof somebody\b|\bwhoever\b(?! (?:sees|sends)\b)", re.IGNORECASE),
}
"""Further phrases that pages had: `so that it ...`, gets, returns, continues, unchanged, your own, instead of, even
after, switching models, 10%."""

PAGES: Final = ("README.md", "CONTRIBUTING.md", "docs", "integrations")
"""The pages of the project, and folders of them, which have none of these phrases."""

PLAIN_ROOMS: Final = ("src/segue",)
"""Folders whose docstrings, comments and messages have none of these phrases."""

ALLOWED_NAMES: Final = frozenset(
    {
        "home",  # pathlib.Path.home
        "shape",  # the key under which older stored files keep their format
    }
)

MESSAGE_CALLS: Final = frozenset({"echo", "print", "fail", "secho", "confirm", "prompt"})
MESSAGE_KEYWORDS: Final = frozenset({"help", "short_help", "epilog", "metavar", "message"})


class Finding(NamedTuple):
    """One retired word or phrase: where it is, and in what."""

    path: Path
    line: int
    word: str
    text: str

    def render(self) -> str:
        """Return the finding as one line, as compilers do."""
        return f"{self.path.relative_to(ROOT)}:{self.line}: retired word {self.word!r} in {self.text!r}"


def split_name(name: str) -> list[str]:
    """Return the words of an identifier, in lower case: `readCall`, `read_call` and `ReadCall` alike."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def find_in_source(path: Path, source: str) -> Iterator[Finding]:
    """Find the retired words of one file."""
    tree = ast.parse(source)
    docstrings = {id(node) for node in _docstring_nodes(tree)}
    messages = {id(node) for node in _message_nodes(tree)}
    for node in ast.walk(tree):
        for name, line in _defined_names(node):
            if name.strip("_").lower() in ALLOWED_NAMES:
                continue
            for word in split_name(name):
                if word in IN_IDENTIFIERS:
                    yield Finding(path, line, word, name)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) in docstrings:
                yield from _find_in_text(path, node, IN_DOCSTRINGS)
            elif id(node) in messages:
                yield from _find_in_text(path, node, IN_MESSAGES)


def find_translated(path: Path, source: str) -> Iterator[Finding]:
    """Find the phrases of `TRANSLATED` in the docstrings, comments and messages of one file."""
    tree = ast.parse(source)
    texts = [(node.lineno, str(node.value)) for node in (*_docstring_nodes(tree), *_message_nodes(tree))]
    for line, text in (*texts, *_comments(source)):
        plain = " ".join(_CODE.sub("`", text).split())
        for name, pattern in TRANSLATED.items():
            if found := pattern.search(plain):
                yield Finding(path, line, name, plain[max(0, found.start() - 30) : found.end() + 30])


def find_in_page(path: Path, page: str) -> Iterator[Finding]:
    """Find the phrases of `TRANSLATED` and `IN_PAGES` in what people wrote on a page."""
    for pattern in (_GENERATED, _FENCED, _ADDRESS):
        page = pattern.sub(lambda part: "\n" * part[0].count("\n"), page)
    line = 1
    for paragraph in _BLANK.split(page):
        plain = " ".join(_CODE.sub("`", paragraph).split())
        for name, pattern in {**TRANSLATED, **IN_PAGES}.items():
            if found := pattern.search(plain):
                yield Finding(path, line, name, plain[max(0, found.start() - 30) : found.end() + 30])
        line += paragraph.count("\n")


_CODE: Final = re.compile(r"`[^`]*`")
_GENERATED: Final = re.compile(r"<!-- (?:begin|schema): [^\n]*-->\n.*?<!-- (?:end|/schema)\b[^\n]*-->", re.DOTALL)
_FENCED: Final = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)
_ADDRESS: Final = re.compile(r"(?<=\])\([^)]*\)")
_BLANK: Final = re.compile(r"((?:\n[ \t]*){2,})")


def _comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield the comments of a file, each run of lines as one, with the number of its last line."""
    run: list[str] = []
    last = 0
    for token in tokenize.generate_tokens(StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if run and token.start[0] != last + 1:
            yield last, " ".join(run)
            run = []
        run.append(token.string.lstrip("#"))
        last = token.start[0]
    if run:
        yield last, " ".join(run)


def _defined_names(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the names that a node defines; names that are only used belong to whoever defined them."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name, node.lineno
        case ast.arg():
            yield node.arg, node.lineno
        case ast.Name(ctx=ast.Store()):
            yield node.id, node.lineno
        case ast.Attribute(ctx=ast.Store()):
            yield node.attr, node.lineno
        case _:
            return


def _docstring_nodes(tree: ast.Module) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value


def _message_nodes(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield the texts that users read: of errors, of the program's output, of options and of violations."""
    for node in ast.walk(tree):
        match node:
            case ast.Raise(exc=ast.Call() as call):
                yield from _texts_in(call)
            case ast.Call():
                function = node.func
                name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
                if name in MESSAGE_CALLS or name.endswith(("Error", "Violation")):
                    yield from _texts_in(node)
                for keyword in node.keywords:
                    if keyword.arg in MESSAGE_KEYWORDS:
                        yield from _texts_in(keyword.value)
            case _:
                pass


def _texts_in(node: ast.AST) -> Iterator[ast.Constant]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str) and " " in inner.value:
            yield inner


def _find_in_text(path: Path, node: ast.Constant, words: frozenset[str]) -> Iterator[Finding]:
    text = str(node.value)
    for found in re.finditer(r"[a-z]+", text.lower()):
        if found[0] in words:
            line = text[max(0, found.start() - 30) : found.end() + 30].replace("\n", " ")
            yield Finding(path, node.lineno, found[0], line)


def _pages_of(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    yield from (page for page in path.rglob("*.md") if not {"_build", "node_modules"} & set(page.parts))


def main() -> int:
    """Print every finding; the exit status is 1 if there is one."""
    files = [path for folder in SOURCES for path in sorted((ROOT / folder).rglob("*.py"))]
    findings: list[Finding] = []
    for path in files:
        source = path.read_text(encoding="utf-8")
        findings.extend(find_in_source(path, source))
        if path.relative_to(ROOT).as_posix().startswith(tuple(f"{room}/" for room in PLAIN_ROOMS)):
            findings.extend(find_translated(path, source))
    pages = sorted(page for name in PAGES for page in _pages_of(ROOT / name))
    for path in pages:
        findings.extend(find_in_page(path, path.read_text(encoding="utf-8")))
    for finding in sorted(set(findings)):
        print(finding.render())
    print(f"{len(files)} files and {len(pages)} pages, {len(set(findings))} retired words")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
