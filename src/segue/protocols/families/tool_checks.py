"""Refusals of functions that several wires share: names, ids of calls, the roots of schemas, and unpaired results.

A protocol yields its functions as `Declared`; the alphabet, the length and the schema come from the rules of the
target. Which refusals apply to a wire, and their sources, are in the `check` of its protocol.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, cast

from segue.errors import Path
from segue.models.rules import Rules
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.checking import Found, objects_of
from segue.protocols.kit.codec import Violation
from segue.protocols.kit.json_values import Block, object_of
from segue.protocols.kit.replay import NO_CALL, NO_RESULT, Halves


class Declared(NamedTuple):
    """A tool of a request: its path, its fields, and the keys that lead to its schema.

    Without keys the schema is not checked; `is_function` is false for a tool of another kind, which only has a name.
    """

    path: Path
    fields: Block
    schema: tuple[str, ...] = ()
    is_function: bool = True


def refused_name(name: object, rules: Rules) -> str | None:
    """Return why a target refuses the name of a tool, and what to do; None if it is accepted."""
    if name is None or name == "":
        return "the tool name is missing; set `name`"
    first, alphabet, most = rules.tool_name_first, rules.tool_name_alphabet, rules.tool_name_max
    if isinstance(name, str) and name_pattern(first, alphabet, most).fullmatch(name):
        return None
    allowed = f"{alphabet or 'any characters'}{f', at most {most}' if most else ''}"
    return f"{name!r} is not a valid tool name; use {allowed}{f', beginning with {first}' if first else ''}"


def declared_functions(body: Block) -> Iterator[Declared]:
    """Yield the functions of a body with chat messages; a tool without a type is one."""
    for index, tool in objects_of(body.get("tools")):
        if tool.get("type", "function") == "function" and "function" in tool:
            yield Declared(("tools", index, "function"), object_of(tool["function"]), ("parameters",))


def check_name(name: object, path: Path, rules: Rules) -> Found:
    """Find the name of a tool that the target refuses."""
    if (message := refused_name(name, rules)) is not None:
        yield Violation(CheckCode.TOOL_NAME_INVALID, path, message)


def check_call_id(call_id: object, path: Path, rules: Rules, *, has_limit: bool = True) -> Found:
    """Find the id of a call that is missing, or that the target refuses; `has_limit` if long ones were refused."""
    most, alphabet = rules.call_id_max, rules.call_id_alphabet
    if not isinstance(call_id, str) or not call_id:
        yield Violation(CheckCode.CALL_ID_MISSING, path, f"the call has no id; set `{path[-1]}`")
    elif has_limit and 0 < most < len(call_id):
        message = f"the id of the call has more than {most} characters; shorten it in call and result"
        yield Violation(CheckCode.CALL_ID_TOO_LONG, path, message)
    elif alphabet and not matches_alphabet(call_id, alphabet, least=rules.call_id_min or 1):
        least = f", at least {rules.call_id_min}" if rules.call_id_min else ""
        message = f"{call_id!r} is not a valid call id; use {alphabet}{least}, in call and result"
        yield Violation(CheckCode.CALL_ID_INVALID, path, message)


def check_tools(
    tools: Iterable[Declared],
    rules: Rules,
    *,
    is_unique: bool = False,
    needs: Literal["type", "schema", "nothing"] = "type",
) -> Found:
    """Check the names of functions, and the roots of their schemas.

    A function `needs` a schema with a type, any schema, even an empty one, or none.
    """
    seen: set[str] = set()
    for path, fields, keys, is_function in tools:
        name = fields.get("name")
        if is_unique and isinstance(name, str):
            if name in seen:
                message = f"two tools have the name {name!r}; rename one"
                yield Violation(CheckCode.VALUE_DUPLICATE, (*path, "name"), message)
            seen.add(name)
        if not is_function:
            continue
        yield from check_name(name, (*path, "name"), rules)
        schema: object = fields
        for key in keys:
            schema = object_of(schema).get(key)
        if not keys or (not schema and (needs == "nothing" or (needs == "schema" and schema is not None))):
            continue
        if isinstance(schema, Mapping):
            yield from _check_root(cast("Block", schema), (*path, *keys), rules)
        else:
            message = f"the tool has no schema; set `{keys[-1]}` to a JSON schema"
            yield Violation(CheckCode.SCHEMA_ROOT_INVALID, (*path, *keys), message)


def check_tool_count(given: int, rules: Rules, path: Path = ("tools",)) -> Found:
    """Find more tools than the target takes."""
    if 0 < rules.max_tools < given:
        message = f"{given} tools are declared, and at most {rules.max_tools} may be; remove some"
        yield Violation(CheckCode.TOOLS_TOO_MANY, path, message)


def check_forced_choice(rules: Rules, path: Path = ("tool_choice",), *, is_thinking: bool) -> Found:
    """Find a call that is forced while thinking is on.

    "Thinking may not be enabled when tool_choice forces tool use." (Anthropic documentation: extended thinking);
    "Thinking mode does not support this tool_choice" (DeepSeek: litellm #37470); "The tool_choice parameter does not
    support being set to required or object in thinking mode" (Qwen: eino #994).
    """
    if is_thinking and not rules.forced_choice_with_thinking:
        message = "a call cannot be forced while thinking is on; use auto, or turn thinking off"
        yield Violation(CheckCode.TOOL_CHOICE_WITH_THINKING, path, message)


def _check_root(schema: Block, path: Path, rules: Rules) -> Found:
    if rules.schema_root_object and schema.get("type") != "object":
        message = "the schema of a tool must have the type object; wrap it in one"
        yield Violation(CheckCode.SCHEMA_ROOT_INVALID, (*path, "type"), message)
    for key in sorted(rules.values("root_keywords") & schema.keys()):
        # "input_schema does not support oneOf, allOf, or anyOf at the top level" (Codewhale #4329)
        message = f"{key} is not supported at the top level of a schema; move it into a property"
        yield Violation(CheckCode.SCHEMA_ROOT_INVALID, (*path, key), message)


# -- calls and their results -------------------------------------------------------------------------------------------


class Pairs:
    """Calls that wait for their results; a wire adds both in the order of its body.

    `end` is where calls have to have their results: the end of a turn on some wires, of the body on others.
    """

    def __init__(self, where: str) -> None:
        self._where = where  # where a result belongs, for the advice
        self._waiting: dict[object, list[Path | None]] = {}
        self._answered: set[object] = set()

    def add_call(self, call_id: object, path: Path, *, is_awaited: bool = True, is_unique: bool = True) -> Found:
        """Add a call; it needs no result if it is not `is_awaited`, and may repeat an id if that is not `is_unique`."""
        key = call_id if isinstance(call_id, str) else repr(call_id)
        self._answered.discard(key)
        waiting = self._waiting.setdefault(key, [])
        if waiting and is_unique:
            yield Violation(CheckCode.CALL_ID_DUPLICATE, path, f"two calls have the id {call_id!r}; change one")
            is_awaited = False  # one fault is named once
        elif waiting:
            waiting.clear()
        waiting.append(path if is_awaited else None)

    def add_result(self, call_id: object, path: Path) -> Sequence[Violation]:
        """Add a result; return what is wrong with it."""
        key = call_id if isinstance(call_id, str) else repr(call_id)
        if waiting := self._waiting.get(key):
            waiting.pop(0)
            self._answered.add(key)
            return ()
        if key in self._answered:
            return (Violation(CheckCode.RESULT_DUPLICATE, path, f"the call {call_id!r} has two results; keep one"),)
        message = f"no call before it has the id {call_id!r}; remove the result, or add the call"
        return (Violation(CheckCode.RESULT_ORPHANED, path, message),)

    def end(self) -> Found:
        """Find the calls without a result, and forget all calls."""
        for call_id, waiting in self._waiting.items():
            for path in waiting:
                if path is not None:
                    message = f"the call {call_id} has no result; add one {self._where}"
                    yield Violation(CheckCode.RESULT_MISSING, path, message)
        self._waiting, self._answered = {}, set()


def check_text_after_calls(steps: Iterable[tuple[str, Path]]) -> Found:
    """Find text after a call in its turn; the steps of a turn are "call", "text", or of another kind."""
    called = False
    for kind, path in steps:
        if called and kind == "text":
            message = "text comes after a call in its turn; move it before the calls"
            yield Violation(CheckCode.TEXT_AFTER_CALL, path, message)
        # Nothing is known about text after thinking or server tools that follow a call.
        called = kind == "call" or (called and kind == "text")


def check_native_pairs(halves: Halves[Path]) -> Found:
    """Find calls of tools that are not functions without a result, and results of such tools without a call."""
    for path, why in halves.refused.items():
        if why == NO_CALL:
            message = "no call before it has this id; remove the result, or add the call"
            yield Violation(CheckCode.RESULT_ORPHANED, path, message)
        elif why == NO_RESULT:
            yield Violation(CheckCode.RESULT_MISSING, path, "the call has no result; add it, or remove the call")
    for path in halves.unanswered:
        yield Violation(CheckCode.RESULT_MISSING, path, "the call has no result; add it, or remove the call")


# -- alphabets ---------------------------------------------------------------------------------------------------------


def matches_alphabet(literal: str, alphabet: str, *, least: int = 1, most: int = 0) -> bool:
    """Whether a text has only characters of the alphabet, at least `least` and at most `most` (0: no limit)."""
    return _pattern(alphabet, least, most).fullmatch(literal) is not None


@lru_cache(maxsize=64)
def _pattern(alphabet: str, least: int, most: int) -> re.Pattern[str]:
    return re.compile(f"[{alphabet}]{{{least},{most or ''}}}")


@lru_cache(maxsize=64)
def name_pattern(first: str | None, alphabet: str | None, most: int) -> re.Pattern[str]:
    """Make the pattern of a name with an alphabet, and another one for its first character; None: any."""
    rest = f"[{alphabet}]" if alphabet else r"[\s\S]"
    return re.compile(rf"[{first}]{rest}{{0,{most - 1 if most else ''}}}" if first else rf"{rest}{{1,{most or ''}}}")
