"""Check the types as a user of the library sees them: `python scripts/check_types.py`.

The Python of README.md and docs is type-checked as a user's own files, and every public symbol of the package has to
have a type that does not depend on the type checker (`pyright --verifytypes`).

Each document becomes one file, because its snippets run from top to bottom (tests/test_docs.py). In the documents of
`INDEPENDENT` each snippet becomes a file: readers copy them one at a time. The type checkers run outside of the
repository: pyright with its defaults, mypy with `--strict`. A line of a file is the line of the document.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
INDEPENDENT: Final = frozenset({"docs/example.md", "docs/recipes.md"})
NEEDS: Final = re.compile(r"<!-- needs: (\w+) -->\n")
"""Above the title of a document that needs a package which is not part of the development tools."""
RECIPES: Final = re.compile(r"^<!-- begin: example engines/.*?^<!-- end: ", re.MULTILINE | re.DOTALL)
"""Programs for engines, none of which is part of the development tools; tests/corpus/test_engines.py runs them."""
SNIPPET: Final = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CHECKERS: Final = {
    "pyright": ("pyright", "--pythonpath", sys.executable, "."),
    "mypy --strict": ("mypy", "--strict", "--no-incremental", "--cache-dir=/dev/null", "."),
    "pyright --verifytypes": ("pyright", "--verifytypes", "segue", "--ignoreexternal"),
}


def read_snippets(source: str) -> Iterator[tuple[int, list[str]]]:
    """Give each Python snippet of a document: the lines before it, and its own lines."""
    # Blank lines keep the numbers of the lines that follow.
    source = RECIPES.sub(lambda recipe: "\n" * recipe[0].count("\n"), source)
    for match in SNIPPET.finditer(source):
        yield source.count("\n", 0, match.start(1)), match[1].splitlines()


def make_files() -> dict[str, tuple[str, str]]:
    """Give each file to check by its name: the document it is from, and its text."""
    files: dict[str, tuple[str, str]] = {}
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        document, source = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        if (needed := NEEDS.match(source)) is not None and find_spec(needed[1]) is None:
            print(f"not checked: {document} (no {needed[1]})")
            continue
        stem = re.sub(r"\W", "_", document.removesuffix(".md"))
        lines: list[str] = []
        for start, snippet in read_snippets(source):
            if document in INDEPENDENT:
                files[f"{stem}_{start}.py"] = document, "\n" * start + "\n".join(snippet) + "\n"
            else:
                lines += [""] * (start - len(lines)) + snippet
        if lines:
            files[f"{stem}.py"] = document, "\n".join(lines) + "\n"
    return files


def main() -> int:
    """Print what the type checkers find, at its place in the documents; the exit status says whether there was any."""
    files = make_files()
    failed = False
    # `--verifytypes` takes the first Python of the path and not that of `--pythonpath` (pyright 1.1.414).
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with TemporaryDirectory() as folder:
        for name, (_, text) in files.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        for title, (module, *arguments) in CHECKERS.items():
            done = subprocess.run(
                [sys.executable, "-m", module, *arguments],
                cwd=folder,
                env={**os.environ, "PATH": path},
                capture_output=True,
                text=True,
                check=False,
            )
            failed |= done.returncode != 0
            print(f"{title}: {'ok' if done.returncode == 0 else 'failed'}")
            if done.returncode:
                print(_name_documents(done.stdout + done.stderr, files, folder))
    print(f"{len(files)} files from the documents")
    return 1 if failed else 0


def _name_documents(output: str, files: dict[str, tuple[str, str]], folder: str) -> str:
    output = output.replace(f"{folder}/", "")
    for name, (document, _) in files.items():
        output = re.sub(rf"\b{re.escape(name)}\b", document, output)
    return output


if __name__ == "__main__":
    sys.exit(main())
