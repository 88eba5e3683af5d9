"""List what the rules rest on: the oldest facts, those with one source, and what newer SDKs have changed.

    python scripts/list_facts.py                    the oldest facts and those with one source
    python scripts/list_facts.py --newest           also compare with the newest SDKs of the package registry
    python scripts/list_facts.py --packages FOLDER  also compare with the SDKs that are installed in a folder

A fact is a row with `source` and `read` (or `read_on`), or a comment or docstring with a date. Sources of one row are
separated by semicolons. The types of requests and replies are compared by name, protocol by protocol: what appeared,
what is gone, what changed. The program fails if a field, an object, a value (a stop reason, an effort, a tool) or a
model appeared that `CLASSIFIED` does not list: add the row that it needs, and then what was decided.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from write_reply_names import REPLIES
from write_request_fields import FOLDERS

from segue.errors import UnknownModel
from segue.models.catalogue import get_model

ROOT: Final = Path(__file__).parent.parent
SOURCES: Final = ROOT / "src" / "segue"
_DATE: Final = re.compile(r"(?<![\w-])20\d\d-[01]\d-[0-3]\d(?![\w-])")
_CITED: Final = re.compile(_DATE.pattern + r"(?=[^(]*\))|(?<=\()" + _DATE.pattern)
"""A date in parentheses, which stands behind a fact; other dates are versions and examples."""
_SHOWN: Final = 100
"""How much of a text is shown."""

CLASSIFIED: Final[Mapping[str, str]] = {
    # -- anthropic 2.10.0
    r"ToolRe(?:sult|quest)Error": "errors of server tools under another name; blocks are kept as they are",
    r"BetaBillingPolicyParam|billing_policy": "`added_fields` of Anthropic's row; sent as it was given",
    # -- openai 3.51.0
    r"InputTransformation|input_transformations": "what the server removed of the input; kept with the reply",
    r"^model: openai/gpt-5\.1-mini$": "only named by the SDK; no source has its data",
    r"^model: openai/gpt-rosalind-research$": "only named by the SDK; no source has its data",
    # -- google-genai 3.3.0
    r"thinking_?[lL]evel \+(?:XHIGH|xhigh)$": "read, and written by no level yet: which models take it is not known",
    r"finishReason \+(?:ESCALATION|MISSING_THOUGHT_SIGNATURE|MODEL_ARMOR|PUP_LIMITED_DISABLED)$": "an error, as every"
    " reason that is not in `STOP_REASONS`",
    r"Interaction\.model": "models are compared with the catalogue",
}
"""Differences that somebody looked at: a pattern of the line that names one, and what was decided (2026-11-18)."""
_MODELS: Final[Mapping[str, tuple[str, ...]]] = {
    "openai": ("openai/types/shared/chat_model.py", "openai/types/shared/all_models.py"),
    "anthropic": ("anthropic/types/model_param.py",),
    "google": ("google/genai/_interactions/types/model.py", "google/genai/interactions/types/model.py"),
}
"""Files of SDKs that name the models of a provider."""


class Fact(NamedTuple):
    """Something that a rule rests on, the day when it was last looked at, and whether it is a row of data."""

    read: str
    text: str
    place: str
    is_row: bool

    def sources(self) -> int:
        """Count the sources that are named."""
        return len([one for one in self.text.split(";") if one.strip()])


def find_facts(folder: Path = SOURCES) -> list[Fact]:
    """Find the facts of every file, the oldest first."""
    return sorted(fact for path in sorted(folder.rglob("*.py")) for fact in facts_of(path))


def facts_of(path: Path) -> Iterator[Fact]:
    """Find the rows and the dated texts of a file."""
    code = path.read_text("utf-8")
    name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name
    rows: set[int] = set()
    for node in ast.walk(ast.parse(code)) if "source=" in code else ():
        if isinstance(node, ast.Call):
            given = {one.arg: one.value for one in node.keywords}
            read = _text(given.get("read") or given.get("read_on"))
            source = _text(given.get("source"))
            if read and source and _DATE.fullmatch(read):
                rows |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
                yield Fact(read, source, f"{name}:{node.lineno}", is_row=True)
    for token in tokenize.generate_tokens(io.StringIO(code).readline) if _CITED.search(code) else ():
        if token.type in (tokenize.COMMENT, tokenize.STRING) and token.start[0] not in rows:
            for number, line in enumerate(token.string.splitlines()):
                found = _CITED.findall(line)
                if found:
                    text = " ".join(line.strip('# "').split())
                    yield Fact(max(found), text, f"{name}:{token.start[0] + number}", is_row=False)


def _text(node: ast.expr | None) -> str | None:
    try:
        value = None if node is None else ast.literal_eval(node)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


# -- types of the SDKs -------------------------------------------------------------------------------------------------

Types = dict[str, dict[str, Any]]


def read_types() -> Types:
    """Read the types of requests and replies of every protocol from the packages that this program imports."""
    found: Types = {}
    for folder, (package, read) in REPLIES.items():
        replies = read()[-1]  # the objects, behind the types that were asked for
        requests: object = FOLDERS[folder]()["objects"] if folder in FOLDERS else {}
        found[folder] = {"package": f"{package} {version(package)}", "request": requests, "reply": replies}
    return found


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Name what differs between two sets of objects."""
    for name in sorted(old.keys() | new.keys()):
        if name not in old:
            yield f"new: {name} ({', '.join(list(_fields(new[name]))[:6])})"
        elif name not in new:
            yield f"gone: {name}"
        else:
            before, after = _fields(old[name]), _fields(new[name])
            for key in sorted(before.keys() | after.keys()):
                if key not in before:
                    yield f"new: {name}.{key}"
                elif key not in after:
                    yield f"gone: {name}.{key}"
                elif before[key] != after[key]:
                    yield f"changed: {name}.{key}{_values(before[key], after[key])}"


def _fields(described: Mapping[str, Any]) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", described.get("fields", described))


def _values(before: object, after: object) -> str:
    """Name the values that an enumeration gained and lost."""
    old, new = _enum(before), _enum(after)
    parts = [f"+{value}" for value in sorted(new - old)] + [f"-{value}" for value in sorted(old - new)]
    return f" ({', '.join(parts)})" if parts else ""


def _enum(field: object) -> set[str]:
    text = json.dumps(field)
    return {str(value) for part in re.findall(r'"enum": (\[[^\]]*\])', text) for value in json.loads(part)}


def find_unclassified(lines: Iterable[str], classified: Mapping[str, str] = CLASSIFIED) -> list[str]:
    """Return the lines about something new that nobody classified."""
    new = [one for line in lines for one in _news(line)]
    return [line for line in new if not any(re.search(pattern, line) for pattern in classified)]


def _news(line: str) -> Iterator[str]:
    """Yield what a line says is new, each value of an enumeration by itself."""
    before, found, values = line.removesuffix(")").partition(" (+")
    if "new: " in line or line.startswith("model: "):
        yield line
    elif found:
        yield from (f"{before} {value}" for value in f"+{values}".split(", ") if value.startswith("+"))


def find_new_models(packages: Path) -> Iterator[str]:
    """Name the models of the SDKs in a folder that the catalogue does not have."""
    for provider, files in _MODELS.items():
        names = [name for file in files if (path := packages / file).exists() for name in _ids_in(path)]
        for name in dict.fromkeys(names):
            try:
                get_model(f"{provider}/{name}")
            except UnknownModel:
                yield f"model: {provider}/{name}"


def _ids_in(path: Path) -> list[str]:
    """Return the texts in a file that may be ids of models."""
    found = re.findall(r'"([\w.:/-]+)"', path.read_text("utf-8"))
    return [name for name in found if re.search(r"[a-z].*[-\d]", name) and name == name.lower()]


def types_of(packages: Path) -> Types:
    """Read the types from the packages of a folder, in another process."""
    environment = {**os.environ, "PYTHONPATH": str(packages)}
    made = subprocess.run(
        [sys.executable, __file__, "--types"], env=environment, capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        message = made.stderr.strip().splitlines()[-1:] or ["no message"]
        raise SystemExit(f"{packages}: the types cannot be read: {message[0]}")
    return json.loads(made.stdout)


def install_newest(folder: Path) -> None:
    """Install the newest version of every SDK into a folder, without what they need."""
    names = sorted({package for package, _ in REPLIES.values()})
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), *names]
    subprocess.run(command, check=True)


# -- the program -------------------------------------------------------------------------------------------------------


def show_facts(count: int) -> None:
    """Print the oldest facts, and rows with one source."""
    facts = find_facts()
    rows = [fact for fact in facts if fact.is_row]
    alone = [fact for fact in rows if fact.sources() == 1]
    print(f"{len(facts)} dated facts, {len(rows)} of them rows; the oldest:")
    for fact in facts[:count]:
        print(f"  {fact.read}  {fact.place}  {fact.text[:_SHOWN]}")
    print(f"{len(alone)} rows rest on one source; the oldest:")
    for fact in alone[:count]:
        print(f"  {fact.read}  {fact.place}  {fact.text[:_SHOWN]}")


def show_differences(packages: Path) -> list[str]:
    """Print what the types of other packages have changed; return what nobody classified."""
    ours, theirs = read_types(), types_of(packages)
    unknown: list[str] = []
    for folder, types in ours.items():
        other = theirs[folder]
        lines = [f"{part}: {line}" for part in ("request", "reply") for line in compare(types[part], other[part])]
        print(f"{folder}: {types['package']} to {other['package']}: {len(lines)} differences")
        for line in lines:
            print(f"  {line}")
        unknown += [f"{folder}: {line}" for line in find_unclassified(lines)]
    models = list(find_new_models(packages))
    print(f"models that only the SDKs name: {len(models)}")
    return unknown + find_unclassified(models)


def fail_on(unknown: list[str]) -> None:
    """Exit with 1 if something is not classified, and name it."""
    if unknown:
        listed = "\n".join(f"  {line}" for line in unknown)
        raise SystemExit(f"nobody classified, add a row and then a line to CLASSIFIED in {__file__}:\n{listed}")


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=10, help="how many facts of each list to show")
    parser.add_argument("--newest", action="store_true", help="compare with the newest SDKs of the package registry")
    parser.add_argument("--packages", type=Path, help="compare with the SDKs that are installed in this folder")
    parser.add_argument("--types", action="store_true", help="print the types as JSON and do nothing else")
    given = parser.parse_args()
    if given.types:
        print(json.dumps(read_types()))
        return
    show_facts(given.count)
    if given.packages is not None:
        fail_on(show_differences(given.packages))
    if given.newest:
        with tempfile.TemporaryDirectory() as folder:
            install_newest(Path(folder))
            fail_on(show_differences(Path(folder)))


if __name__ == "__main__":
    main()
