"""Write the generated parts of the documents, or with `--check` say which are out of step.

A generated part stands between `<!-- begin: WHAT -->` and `<!-- end: WHAT -->`, and `WHAT` is a row of `PARTS`, with a
word behind it where the part needs one (`example first_minute.py`). What is outside of the marks is written by people.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Final, get_args

import segue
from segue.models.rules import ReasoningReplay, Rules
from segue.projection.policy import Texts
from segue.projection.report import SENTENCES, ChangeCode
from segue.protocols.registry import PROTOCOLS

ROOT: Final = Path(__file__).parent.parent
DOCUMENTS: Final = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")))
PART: Final = re.compile(
    r"(<!-- begin: (?P<what>\w+)(?: (?P<word>\S+))? -->\n)(?P<body>.*?)(<!-- end: [^>]*-->)", re.DOTALL
)


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Write a table; a bar inside a cell would end it."""
    lines = [tuple(header), ("---",) * len(tuple(header)), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


_REASONING: Final[Mapping[ReasoningReplay, str]] = {
    "none": "no",
    "signed": "signed, to its own model",
    "open": "any readable text",
    "required": "on every assistant turn",
}
_SYSTEM: Final[Mapping[str, str]] = {
    "anywhere": "anywhere",
    "before_assistant": "before an assistant turn",
    "none": "no",
}


def _images(rules: Rules) -> str:
    places = {"in user turns": rules.user_media, "in tool results": rules.result_media}
    found = [place for place, types in places.items() if any(kind.startswith(("*", "image/")) for kind in types)]
    return " and ".join(found) or "no"


def protocols(_: str) -> str:
    """What each registered protocol can carry by its own rules."""
    header = ("protocol", "folder", "tools", "images", "reasoning sent back", "system text in mid-conversation")
    rows = (
        (
            f"`{name}`",
            f"`protocols/{name.replace('-', '_')}`",
            "yes" if rules.tools else "as text",
            _images(rules),
            _REASONING[rules.reasoning_replay],
            _SYSTEM[rules.system_messages],
        )
        for name, rules in ((protocol.name, protocol.rules) for protocol in PROTOCOLS.values())
    )
    return table(header, rows)


def _describe(name: str) -> tuple[str, str, str]:
    value = inspect.unwrap(getattr(segue, name))  # a cache around a function is still that function
    module = segue._HOMES[name]  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001
    if inspect.isfunction(value):
        return f"`{name}()`", _first_sentence(value.__doc__), f"`{module}`"
    said = value.__doc__ if inspect.isclass(value) else _said_beside(name, module)
    return f"`{name}`", _first_sentence(said) if said else _members(value), f"`{module}`"


def _said_beside(name: str, module: str) -> str | None:
    """Find the string that stands under an alias in its file."""
    for statement, following in pairwise(ast.parse(inspect.getsource(import_module(module))).body):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            match following:
                case ast.Expr(value=ast.Constant(value=str(said))) if statement.target.id == name:
                    return said
                case _:
                    pass
    return None


def _members(alias: object) -> str:
    words = [member.__name__ if inspect.isclass(member) else str(member) for member in get_args(alias)]
    return "One of " + ", ".join(f"`{word}`" for word in words) + "."


def _first_sentence(docstring: str | None) -> str:
    text = " ".join(inspect.cleandoc(docstring or "").split("\n\n")[0].split())
    return re.split(r"(?<=\.) (?=[A-Z`])", text)[0]


def names(_: str) -> str:
    """Every public name with its first sentence."""
    return table(("name", "what it is", "lives in"), (_describe(name) for name in segue.__all__ if name[0] != "_"))


def example(file: str) -> str:
    """Include an example as it is run."""
    return "```python\n" + (ROOT / "examples" / file).read_text(encoding="utf-8").strip() + "\n```\n"


def changes(_: str) -> str:
    """Every kind of change that projection can make."""
    return table(("code", "what it means"), ((f"`{code.value}`", SENTENCES[code]) for code in ChangeCode))


def texts(_: str) -> str:
    """Every text that segue may put into a conversation, as it is unless the policy says otherwise."""
    fields = zip(Texts.__struct_fields__, Texts.__struct_defaults__, strict=True)
    return table(("field of `Texts`", "text"), ((f"`{name}`", f"`{text!r}`") for name, text in fields))


PARTS: Final[Mapping[str, Callable[[str], str]]] = {
    "changes": changes,
    "example": example,
    "names": names,
    "protocols": protocols,
    "texts": texts,
}


def render_document(text: str) -> str:
    """Give a document with each generated part written anew."""
    return PART.sub(lambda part: part[1] + PARTS[part["what"]](part["word"] or "") + part[5], text)


def main() -> int:
    """Write what differs; with `--check` only name it."""
    check = "--check" in sys.argv[1:]
    stale: list[str] = []
    for path in DOCUMENTS:
        old = path.read_text(encoding="utf-8")
        new = render_document(old)
        if new != old:
            stale.append(str(path.relative_to(ROOT)))
            if not check:
                path.write_text(new, encoding="utf-8")
    if stale:
        print("out of step, run `make docs`:" if check else "written:", *stale)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
