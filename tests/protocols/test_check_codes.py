"""One vocabulary of refusals: every finding has a code of `CheckCode`, and the same fault the same code everywhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import segue
from segue.protocols import counterevidence
from segue.protocols.api import check
from segue.protocols.kit.check_codes import ADVICE, CheckCode
from segue.protocols.registry import PROTOCOLS

SOURCES = sorted(Path(segue.__file__).parent.rglob("*.py"))
MOST = 115
"""A new fault uses a code that is there, unless it needs other advice."""


def codes_of(source: str) -> tuple[set[str], list[str]]:
    """Return the names of the codes that violations in a source have, and codes that are written in another way.

    A violation may take over the code of another one, and use a constant of its module.
    """
    tree = ast.parse(source)
    constants = {
        node.target.id: node.value
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None
    }
    used, strange = set[str](), list[str]()
    for call in _violations(tree):
        given = call.args[0] if call.args else next(word.value for word in call.keywords if word.arg == "code")
        if isinstance(given, ast.Name):
            given = constants.get(given.id, given)
        match given:
            case ast.Attribute(value=ast.Name(id="CheckCode"), attr=name):
                used.add(name)
            case ast.Attribute(attr="code"):
                pass
            case _:
                strange.append(ast.unparse(given))
    return used, strange


def _violations(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Violation":
            yield node


def test_every_violation_has_a_code_of_the_list_and_every_code_is_used():
    found = {path: codes_of(path.read_text("utf-8")) for path in SOURCES}
    assert {str(path): strange for path, (_, strange) in found.items() if strange} == {}
    used = set[str]().union(*(names for names, _ in found.values()))
    assert (used - CheckCode.__members__.keys(), CheckCode.__members__.keys() - used) == (set(), set())


PLANTED = {
    "a code of its own": 'Violation("tool_name_letters", path, "x")',
    "a code that is put together": 'Violation(f"{option}_range", path, "x")',
    "a code by its keyword": 'Violation(code="role", path=path, message="x")',
    "a variable": "Violation(code, path, message)",
    "a constant of its own": 'CODE: Final = "role"\nViolation(CODE, path, message)',
}


@pytest.mark.parametrize("source", PLANTED.values(), ids=PLANTED.keys())
def test_a_code_of_another_form_is_noticed(source):
    assert codes_of(source)[1]


def test_codes_of_the_list_are_read_from_a_source():
    source = "ROLE: Final = CheckCode.ROLE_UNKNOWN\nViolation(ROLE, a, b)\nViolation(one.code, a, b)"
    assert codes_of(source) == ({"ROLE_UNKNOWN"}, [])


def silent_messages(source: str) -> list[str]:
    """Return the messages of violations that do not say what to do; one that ends in another text may say it there."""
    silent: list[str] = []
    for call in _violations(ast.parse(source)):
        given = (
            call.args[2] if len(call.args) > 2 else next((w.value for w in call.keywords if w.arg == "message"), None)
        )
        last = given.values[-1] if isinstance(given, ast.JoinedStr) else given
        if isinstance(last, ast.Constant) and "; " not in ast.unparse(call):
            silent.append(ast.unparse(call))
    return silent


def test_every_message_says_what_to_do():
    assert [message for path in SOURCES for message in silent_messages(path.read_text("utf-8"))] == []
    assert silent_messages('Violation(CODE, path, f"{name!r} is wrong")')
    assert silent_messages('Violation(code=CODE, path=path, message="it is wrong")')
    assert silent_messages('Violation(CODE, path, "it is wrong; change it")') == []


@pytest.mark.parametrize("code", CheckCode)
def test_a_code_has_a_name_and_a_sentence_with_advice(code):
    assert code.value == code.name.lower()
    what, _, advice = ADVICE[code].partition("; ")
    assert re.fullmatch(r"[A-Z][^.;]+", what)
    assert re.fullmatch(r"[a-z][^.;]+\.", advice)


def test_the_list_is_closed_and_short():
    assert ADVICE.keys() == set(CheckCode)
    assert len(CheckCode) <= MOST
    assert len(set(ADVICE.values())) == len(ADVICE)


def test_rows_of_recorded_replies_name_codes_of_the_list():
    assert all(isinstance(row.code, CheckCode) for row in counterevidence.ROWS)


# -- the same fault on every protocol ----------------------------------------------------------------------------------

HI = {"role": "user", "content": "hi"}
CALL = {"id": "abcdefgh1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
RESULT = {"role": "tool", "tool_call_id": "abcdefgh1", "content": "done"}
USE = {"type": "tool_use", "id": "abcdefgh1", "name": "f", "input": {}}
DONE = {"type": "tool_result", "tool_use_id": "abcdefgh1", "content": "done"}
BEDROCK_USE = {"toolUse": {"toolUseId": "a", "name": "f", "input": {}}}
BEDROCK_DONE = {"toolResult": {"toolUseId": "a", "content": [{"text": "done"}]}}
ITEM = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "a", "output": "done"}


def chat(*messages: object, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": list(messages), **more}


def claude(*messages: object, **more: Any) -> dict[str, Any]:
    return {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": list(messages), **more}


def turn(role: str, *blocks: object) -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


def function(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": "d", "parameters": {"type": "object"}}}


def spec(name: str) -> dict[str, Any]:
    return {"toolSpec": {"name": name, "inputSchema": {"json": {"type": "object"}}}}


FAULTS: dict[CheckCode, dict[str, dict[str, Any]]] = {
    CheckCode.MESSAGES_MISSING: {
        "openai-chat": chat(),
        "mistral-chat": chat(),
        "cohere-chat": chat(),
        "anthropic-messages": claude(),
        "bedrock-converse": {"messages": []},
        "google-genai": {"contents": []},
        "openai-responses": {"model": "gpt-5.4"},
        "google-interactions": {"model": "m"},
        "plain-text": {},
        "vscode-lm": {},
    },
    CheckCode.ROLE_UNKNOWN: {
        "openai-chat": chat({"role": "x", "content": "a"}, HI),
        "mistral-chat": chat({"role": "x", "content": "a"}, HI),
        "cohere-chat": chat({"role": "x", "content": "a"}, HI),
        "anthropic-messages": claude({"role": "x", "content": "a"}),
        "bedrock-converse": {"messages": [turn("x", {"text": "a"})]},
        "google-genai": {"contents": [{"role": "x", "parts": [{"text": "a"}]}]},
        "openai-responses": {"model": "gpt-5.4", "input": [{"role": "x", "content": "a"}]},
        "plain-text": chat({"role": "x", "content": "a"}),
        "vscode-lm": chat({"role": "x", "content": "a"}),
    },
    CheckCode.RESULT_ORPHANED: {
        "openai-chat": chat(HI, RESULT),
        "mistral-chat": chat(HI, RESULT),
        "cohere-chat": chat(HI, RESULT),
        "anthropic-messages": claude(turn("user", DONE)),
        "bedrock-converse": {"messages": [turn("user", BEDROCK_DONE)]},
        "google-genai": {
            "contents": [{"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]}]
        },
        "openai-responses": {"model": "gpt-5.4", "input": [OUTPUT]},
        "google-interactions": {"model": "m", "input": [{"type": "function_result", "call_id": "a", "name": "f"}]},
    },
    CheckCode.RESULT_MISSING: {
        "openai-chat": chat(HI, {"role": "assistant", "tool_calls": [CALL]}, HI),
        "mistral-chat": chat(HI, {"role": "assistant", "tool_calls": [CALL]}, HI),
        "anthropic-messages": claude(HI, turn("assistant", USE), HI),
        "bedrock-converse": {"messages": [turn("user", {"text": "a"}), turn("assistant", BEDROCK_USE)]},
        "openai-responses": {"model": "gpt-5.4", "input": [HI, ITEM]},
    },
    CheckCode.RESULT_DUPLICATE: {
        "openai-chat": chat(HI, {"role": "assistant", "tool_calls": [CALL]}, RESULT, RESULT),
        "mistral-chat": chat(HI, {"role": "assistant", "tool_calls": [CALL]}, RESULT, RESULT),
        "cohere-chat": chat(HI, {"role": "assistant", "tool_calls": [CALL]}, RESULT, RESULT),
        "anthropic-messages": claude(HI, turn("assistant", USE), turn("user", DONE, DONE)),
        "bedrock-converse": {
            "messages": [
                turn("user", {"text": "a"}),
                turn("assistant", BEDROCK_USE),
                turn("user", BEDROCK_DONE, BEDROCK_DONE),
            ]
        },
        "openai-responses": {"model": "gpt-5.4", "input": [HI, ITEM, OUTPUT, OUTPUT]},
    },
    CheckCode.TOOL_NAME_INVALID: {
        "openai-chat": chat(HI, tools=[function("a b")]),
        "cohere-chat": chat(HI, tools=[function("a b")]),
        "anthropic-messages": claude(HI, tools=[{"name": "a b", "input_schema": {"type": "object"}}]),
        "bedrock-converse": {"messages": [turn("user", {"text": "a"})], "toolConfig": {"tools": [spec("a b")]}},
        "google-genai": {
            "contents": [{"role": "user", "parts": [{"text": "a"}]}],
            "tools": [{"functionDeclarations": [{"name": "a b"}]}],
        },
        "openai-responses": {
            "model": "gpt-5.4",
            "input": "hi",
            "tools": [{"type": "function", "name": "a b", "parameters": {"type": "object"}}],
        },
        "google-interactions": {"model": "m", "input": "hi", "tools": [{"type": "function", "name": "a b"}]},
    },
    CheckCode.VALUE_OUT_OF_RANGE: {
        "openai-chat": chat(HI, temperature=3),
        "mistral-chat": chat(HI, temperature=3),
        "anthropic-messages": claude(HI, temperature=3),
        "google-genai": {
            "contents": [{"role": "user", "parts": [{"text": "a"}]}],
            "generationConfig": {"temperature": 3},
        },
        "openai-responses": {"model": "gpt-5.4", "input": "hi", "temperature": 3},
    },
}
CASES = [
    pytest.param(code, protocol, body, id=f"{code}: {protocol}")
    for code, bodies in FAULTS.items()
    for protocol, body in bodies.items()
]


@pytest.mark.parametrize(("code", "protocol", "body"), CASES)
def test_the_same_fault_has_the_same_code_on_every_protocol(code, protocol, body):
    found = check(body, protocol=protocol, model=PROTOCOLS[protocol].example, strict=True)
    assert code in {one.code for one in found}, found
    assert all(isinstance(one.code, CheckCode) for one in found)
