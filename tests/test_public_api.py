"""The list of the public API notices what would break a program, and deprecations follow their rule."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def _load_script():
    spec = importlib.util.spec_from_file_location("write_public_api", ROOT / "scripts" / "write_public_api.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


API = _load_script()

COMPATIBLE = {
    "the same": ("a, b=", "a, b="),
    "a further optional parameter": ("a", "a, b="),
    "a further keyword": ("a, *, b=", "a, *, b=, c="),
    "a required parameter that became optional": ("a, b", "a, b="),
    "a keyword that may be given by position": ("a, *, b=", "a, b="),
    "a keyword that joined others in **": ("a, *, b=", "a, **settings"),
    "more values by position": ("a", "a, *more"),
    "a value that became callable": (None, "a"),
}
INCOMPATIBLE = {
    "a parameter that is gone": ("a, b=", "a"),
    "a renamed parameter": ("a, b=", "a, c="),
    "another order": ("a, b", "b, a"),
    "a further required parameter": ("a", "a, b"),
    "a further required keyword": ("a", "a, *, b"),
    "an optional parameter that became required": ("a=", "a"),
    "a parameter that may not be given by position any more": ("a, b=", "a, *, b="),
    "a parameter that may not be given by name any more": ("a", "a, /"),
    "values by position that are gone": ("*more", ""),
    "a function that is none any more": ("a", None),
}


@pytest.mark.parametrize("case", COMPATIBLE)
def test_a_compatible_change_passes(case):
    assert API.is_compatible(*COMPATIBLE[case])


@pytest.mark.parametrize("case", INCOMPATIBLE)
def test_an_incompatible_change_is_found(case):
    before, now = INCOMPATIBLE[case]
    assert not API.is_compatible(before, now)
    [found] = API.find_broken({"segue.f": before}, {"segue.f": now})
    assert "docs/stability.md" in found


def test_the_list_is_what_there_is_and_can_be_read_again():
    api = API.list_api()
    assert API.read_lines(API.write_lines(api)) == api
    assert api["segue.Context.add"] == "*messages"
    assert api["segue.prepare"].startswith("context, model, *, options=, policy=")
    assert "path=" in api["segue.Conversation"]
    assert "segue.StopReason.TOOL_USE" in api


def test_a_name_that_is_gone_is_found():
    api = API.list_api()
    promised = API.read_lines((ROOT / "tests" / "public_api.txt").read_text(encoding="utf-8"))
    assert list(API.find_broken(promised, api)) == []
    for name in ("segue.dump", "segue.Context.add", "segue.StopReason.TOOL_USE"):
        [found] = API.find_broken(promised, {key: value for key, value in api.items() if key != name})
        assert found.startswith(f"{name} is gone")


@pytest.mark.parametrize(
    ("entry", "wrong"),
    [
        ({"since": "0.2", "gone": "0.4", "use": "g"}, None),
        ({"since": "0.9", "gone": "1.0", "use": "g"}, None),
        ({"since": "0.2", "gone": "0.3", "use": "g"}, "cannot go before 2 minor releases later"),
        ({"since": "0.2", "use": "g"}, "without ['gone']"),
    ],
)
def test_a_deprecation_lasts_two_minor_releases_and_names_its_replacement(entry, wrong):
    found = list(API.find_early({"segue.f": entry}, {"segue.f": ""}))
    assert found == [] if wrong is None else wrong in found[0]
    assert "no public name" in next(API.find_early({"segue.f": entry}, {}))


def test_a_deprecated_name_goes_in_the_version_that_the_list_names():
    entry = {"since": "0.2", "gone": "0.10", "use": "g"}
    assert [API.is_due(entry, version) for version in ("0.2.0", "0.9.9", "0.10.0", "1.0.0")] == [
        *(False, False, True, True)
    ]


def test_a_deprecated_name_says_so_in_its_docstring():
    import segue

    deprecated = json.loads((ROOT / "tests" / "deprecated.json").read_text(encoding="utf-8"))
    for name, entry in deprecated.items():
        if API.is_due(entry):
            continue
        value = segue
        for part in name.split(".")[1:]:
            value = getattr(value, part)
        assert f"Deprecated since {entry['since']}" in (value.__doc__ or ""), name
