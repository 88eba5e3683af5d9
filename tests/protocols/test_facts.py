"""Facts about a protocol stand in its record: no other module names a protocol to say something about it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import segue
from segue.histories.registry import _WITHOUT_SESSIONS, FORMATS
from segue.protocols.registry import _FOLDERS, all_batch_forms, all_protocols

ROOT = Path(segue.__file__).parent
MAY_NAME_PROTOCOLS = {
    "protocols": "the records themselves, and the registry",
    "histories": "the folder of a format says in which wire format its program stores messages",
    "models": "rows about models and providers say which protocol each has",
    "counting/families.py": "a row about a family of models",
    "client/flow/deciding.py": "an endpoint of one maker, which takes the input of one protocol",
    "cli/model_lists.py": "names that lists of other packages have for APIs, and which protocol each is",
    "conversation/foreign.py": "names in files of other programs, and what they are called here",
    "conversation/retired.py": "marks in files of earlier versions, which had these protocols alone",
    "gateway/hints.py": "the name of an SDK, which is also the name of a protocol",
    "gateway/relaying.py": "how the streams of three protocols end, which only the relay of bytes looks for",
    "gateway/setup_lines.py": "a setting of another program, which has the same name for it",
    "gateway/sockets.py": "the events on a WebSocket are those of one protocol, which this module reads and writes",
    "protocols/provider_fields.py": "rows of keys, which are those of the vendors of one protocol",
    "projection/replies/shared.py": "rows of fields that replies of several protocols have, with a column for each",
    "requests/provider_data.py": "the two protocols of one maker, where a last turn of the assistant begins the reply",
    "testing/emulator/decisions.py": "that endpoint, and the form of its errors",
    "testing/emulator/refusals.py": "the words in which providers refuse a request, which only the emulator writes",
    "testing/histories.py": "samples of models and of native tools, from which histories are generated",
}


def named_protocols(source: str) -> Iterator[tuple[int, str]]:
    """Find the texts in a module that are the name of a protocol."""
    if not any(name in source for name in _FOLDERS):
        return  # most modules; parsing all of them takes more than a second
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and node.value in _FOLDERS:
            yield node.lineno, str(node.value)


def test_no_module_outside_of_the_protocols_names_one():
    found = [
        f"{path.relative_to(ROOT).as_posix()}:{line}: {name}"
        for path in sorted(ROOT.rglob("*.py"))
        if MAY_NAME_PROTOCOLS.keys().isdisjoint({path.relative_to(ROOT).as_posix(), path.relative_to(ROOT).parts[0]})
        for line, name in named_protocols(path.read_text("utf-8"))
    ]
    assert not found, "make this a field of the `Protocol` record, or say in this file why not: " + ", ".join(found)


def test_every_exception_is_needed():
    for place in MAY_NAME_PROTOCOLS:
        path = ROOT / place
        files = [path] if path.suffix else path.rglob("*.py")
        assert any(next(named_protocols(file.read_text("utf-8")), None) for file in files), place


PLANTED = {
    "a key": 'SLOTS = {"openai-chat": 1}',
    "a comparison": 'def f(call): return call.protocol == "openai-chat"',
    "an element": 'SIGNED = frozenset({"openai-chat"})',
    "an argument": 'form = Form("openai-chat", frozenset())',
    "a default": 'def f(protocol="openai-chat"): ...',
    "a case": 'match p:\n    case "openai-chat":\n        pass',
}


@pytest.mark.parametrize("source", PLANTED.values(), ids=PLANTED.keys())
def test_a_planted_name_is_found(source):
    assert [name for _, name in named_protocols(source)] == ["openai-chat"]


def test_the_record_has_the_batch_forms_by_which_lines_are_recognised():
    assert {record.name: record.batch_forms for record in all_protocols()} == all_batch_forms()


def test_the_formats_that_a_list_of_sessions_does_not_load_are_those_without_a_place():
    own = {name: FORMATS[name] for name in FORMATS.folders}
    placeless = {name for name, record in own.items() if record.place is None}
    assert placeless == _WITHOUT_SESSIONS, "add the format to _WITHOUT_SESSIONS in segue/histories/registry.py"
