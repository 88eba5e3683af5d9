"""`check`: what the v1 chat endpoint of Cohere would refuse. Types and limits: cohere 7.3.1, read 2026-11-15."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, cast

from segue.protocols import CheckCode, Endpoint, JsonObject, Violation
from segue.protocols.families.tool_checks import matches_alphabet
from segue.protocols.kit.checking import check_json, objects_of
from segue.protocols.kit.json_values import object_of
from segue.protocols.kit.ranges import check_range, check_stop_sizes
from segue_cohere_v1.request import KEYS

_ROLES: Final = ("USER", "CHATBOT", "SYSTEM", "TOOL")


def check(body: JsonObject, endpoint: Endpoint) -> list[Violation]:
    """List what the provider would refuse."""
    return [*check_json(body), *_check_turns(body), *_check_tools(body, endpoint), *_check_settings(body, endpoint)]


def _check_turns(body: JsonObject) -> Iterator[Violation]:
    message, results, history = body.get("message"), body.get("tool_results"), body.get("chat_history")
    if not isinstance(message, str):
        yield Violation(code=CheckCode.TYPE_WRONG, path=("message",), message="`message` has to be a string")
    elif not message.strip() and not results and body.keys() <= KEYS:
        # "message must be at least 1 token long" (Risuai #504). An unknown key may contain the user's turn.
        yield Violation(code=CheckCode.TEXT_BLANK, path=("message",), message="`message` is blank; add text or results")
    if results and not body.get("tools"):
        yield Violation(code=CheckCode.TOOLS_MISSING, path=("tools",), message="`tool_results` need `tools`; add them")
    calls: list[object] = []
    for index, entry in objects_of(history):
        role, path = entry.get("role"), ("chat_history", index)
        if role not in _ROLES:
            yield Violation(code=CheckCode.ROLE_UNKNOWN, path=(*path, "role"), message=f"there is no role {role!r}")
        elif role == "TOOL":
            yield from _check_results(entry.get("tool_results"), calls, (*path, "tool_results"))
        elif not isinstance(entry.get("message"), str):
            yield Violation(code=CheckCode.TYPE_WRONG, path=(*path, "message"), message="`message` has to be a string")
        if role == "CHATBOT":
            calls = [_call(call) for _, call in objects_of(entry.get("tool_calls"))]
    if results is not None and (calls or not message):
        yield from _check_results(results, calls, ("tool_results",))


def _check_results(results: object, calls: list[object], path: tuple[str | int, ...]) -> Iterator[Violation]:
    for index, result in objects_of(results):
        if _call(result.get("call")) not in calls:
            yield Violation(code=CheckCode.RESULT_ORPHANED, path=(*path, index, "call"), message="no call matches it")
        outputs = result.get("outputs")
        items = cast("list[object]", outputs) if isinstance(outputs, list) else [None]
        if len(list(objects_of(items))) != len(items):
            yield Violation(
                code=CheckCode.TYPE_WRONG, path=(*path, index, "outputs"), message="has to be a list of objects"
            )


def _call(value: object) -> object:
    wire = object_of(value)
    return wire.get("name"), wire.get("parameters")


def _check_tools(body: JsonObject, endpoint: Endpoint) -> Iterator[Violation]:
    rules = endpoint.rules
    for index, tool in objects_of(body.get("tools")):
        name, path = tool.get("name"), ("tools", index, "name")
        if name is None and "description" not in tool:
            continue  # a tool that the provider runs
        alphabet, first = rules.tool_name_alphabet or "", rules.tool_name_first or ""
        if not isinstance(name, str) or not matches_alphabet(name, alphabet) or not matches_alphabet(name[:1], first):
            yield Violation(code=CheckCode.TOOL_NAME_INVALID, path=path, message=f"{name!r} is not a valid tool name")


def _check_settings(body: JsonObject, endpoint: Endpoint) -> Iterator[Violation]:
    yield from check_range("top_p", body.get("p"), ("p",), endpoint.rules)
    yield from check_stop_sizes(body.get("stop_sequences"), ("stop_sequences",), endpoint.rules)
