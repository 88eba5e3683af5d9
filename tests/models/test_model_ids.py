"""Facts about model ids have one place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import segue

SOURCES = Path(segue.__file__).parent
FAMILY = re.compile(r"(?:gemini|claude|gpt|mistral|deepseek|qwen|kimi|glm)[-.\\]")
EXPRESSION = re.compile(r"\(\?|\[|\\|\|")


def model_patterns(path: Path) -> Iterator[str]:
    """Give the regular expressions of model ids in a file, without its docstrings."""
    source = path.read_text("utf-8")
    if not FAMILY.search(source):
        return
    tree = ast.parse(source)
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        value = node.value if isinstance(node, ast.Constant) and id(node) not in prose else None
        if isinstance(value, str) and " " not in value and FAMILY.search(value) and EXPRESSION.search(value):
            yield value


JUDGES = {"planning/caches.py", *(f"testing/emulator/{name}.py" for name in ("claude", "prices", "prompt_cache"))}
"""The emulator judges what the rules and the catalogue say, so it knows models on its own; the rows of caches are about
models, and only the plan of a switch reads them."""


ROWS = ("model_ids.py", "rules.py", "limits.py", "weights.py", "counterevidence.py")
"""Files of rows, which are about models."""


def test_patterns_of_model_ids_stand_in_model_ids_and_in_the_rules_of_protocols():
    found = {
        path.relative_to(SOURCES).as_posix(): patterns
        for path in SOURCES.rglob("*.py")
        if path.name not in ("model_ids.py", "rules.py", "limits.py", "weights.py", "counterevidence.py")
        and (patterns := list(model_patterns(path)))
    }
    assert found.keys() == JUDGES


def test_a_pattern_is_found():
    assert len(list(model_patterns(SOURCES / "models" / "model_ids.py"))) > 10
