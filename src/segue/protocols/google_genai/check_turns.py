"""Checks whether Google would accept the contents of a body: roles, parts, calls and their results, signatures.

Facts this file rests on:
- The server reads contents of one role side by side as one turn.                         (recorded traffic, 2026-11)
- Signatures are required in the current turn only: behind the last content of the user that holds more than results.
                                                 (Google documentation: thought signatures, read 2026-11-15)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from segue.errors import Path
from segue.foundation.plurals import counted
from segue.models.model_ids import GEMINI_2_0
from segue.protocols.google_genai.content import CALL, RESULT, SIGNATURE
from segue.protocols.google_genai.keys import read_keys
from segue.protocols.google_genai.media import INLINE
from segue.protocols.kit.codec import Endpoint, Violation
from segue.protocols.kit.json_values import Block, object_of
from segue.protocols.kit.media_checks import check_bytes
from segue.protocols.kit.reading import text_of

_ROLES: Final = frozenset({"user", "model", "function", None})
_NO_DATA: Final = frozenset({"thought", "partMetadata"})
"""Keys that are not data. A signature may stand alone, without the empty text it belongs to, and `videoMetadata` in a
part of its own, behind the video: both were accepted (recorded by pydantic-ai)."""
_REFUSES_EMPTY: Final = re.compile(GEMINI_2_0)


def objects_of(value: object) -> Iterator[tuple[int, Block]]:
    """Give the objects of a list with their positions; one without a list is the first."""
    if isinstance(value, Mapping):
        yield 0, cast("Block", value)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(cast("Sequence[object]", value)):
            if isinstance(item, Mapping):
                yield index, cast("Block", item)


class _Turn:
    """Contents of one role side by side: their parts, with their paths."""

    def __init__(self, *, is_model: bool, index: int) -> None:
        self.is_model = is_model
        self.index = index
        self.parts: list[tuple[Path, Block]] = []

    def having(self, field: str) -> list[tuple[Path, Block]]:
        return [(path, object_of(part[field])) for path, part in self.parts if field in part]

    def has_user_input(self) -> bool:
        """Whether there is more than tool results."""
        return any(RESULT not in part for _, part in self.parts)


def check_turns(wire: Block, endpoint: Endpoint) -> Iterator[Violation]:
    """List what the provider would refuse in the contents."""
    if not endpoint.rules.system_prompt and wire.get("systemInstruction"):
        # "Developer instruction is not enabled for models/gemma-3-27b-it" (Gemini API)
        message = "the model does not support a system instruction; move it into the first content"
        yield Violation("system_refused", ("systemInstruction",), message)
    contents = wire.get("contents")
    turns: list[_Turn] = []
    for index, content in objects_of(contents):
        role = content.get("role")
        if not (role is None or isinstance(role, str)) or role not in _ROLES:
            # "Please use a valid role: user, model." (openagent #1666, CLIProxyAPI #17)
            path: Path = ("contents", index, "role")
            yield Violation("role", path, f"{role!r} is not a role; use user or model")
        parts: list[tuple[Path, Block]] = []
        for at, part in objects_of(content.get("parts")):
            parts.append((("contents", index, "parts", at), read_keys(part)))
        yield from _check_parts(index, parts, endpoint)
        is_model = role == "model"
        if not turns or turns[-1].is_model != is_model:
            turns.append(_Turn(is_model=is_model, index=index))
        turns[-1].parts += parts
    if not turns and not isinstance(contents, str):
        # "* GenerateContentRequest.contents: contents is not specified" (langchain-google #1393)
        yield Violation("no_contents", ("contents",), "there are no contents; add one")
        return
    yield from _check_pairs(turns)
    yield from _check_signatures(turns, endpoint)
    if turns and turns[-1].is_model and not endpoint.rules.last_assistant:
        # "Requests ending with a model turn are not supported" (LibreChat agents #323, langchain-google #1897)
        message = "the last turn is the model's, which it does not support; end with a user's turn"
        yield Violation("last_turn", ("contents", turns[-1].index), message)


def _check_parts(index: int, parts: list[tuple[Path, Block]], endpoint: Endpoint) -> Iterator[Violation]:
    if not parts:
        # "contents.parts must not be empty." (vercel/ai #3775, langgraph #3939)
        yield Violation("no_parts", ("contents", index, "parts"), "a content has no parts; add one")
        return
    is_empty = all(part.get("text") == "" and SIGNATURE not in part for _, part in parts)
    if is_empty and endpoint.rules.refused_text != "none" and _REFUSES_EMPTY.search(endpoint.model.id):
        # "Unable to submit request because it has an empty text parameter" (Portkey gateway #462, chatbox #1846)
        yield Violation("empty_text", parts[0][0], "a content has only empty texts; remove it")
    others = [path for path, part in parts if RESULT not in part]
    if endpoint.rules.results_alone and 0 < len(others) < len(parts):
        # "Requests ending with a model turn are not supported." although it ends with results and a text
        message = "a content has results and other parts; put each into a content of its own"
        yield Violation("results_alone", others[0], message)
    for path, part in parts:
        if part.keys() <= _NO_DATA:
            # "required oneof field 'data' must have one initialized field" (FLIT #70)
            yield Violation("no_data", path, "a part has no data; remove it")
        yield from _check_inline(part, path)
        for field in (CALL, RESULT):
            if field in part and not text_of(object_of(part[field]).get("name")):
                # "function_response.name: Name cannot be empty." (CLIProxyAPI #2104, aimux #127)
                yield Violation("no_name", (*path, field, "name"), "the tool name is missing; set it")
        for field, inner in ((CALL, "args"), (RESULT, "response")):
            value = object_of(part.get(field)).get(inner)
            if value is not None and not isinstance(value, Mapping):
                # "Invalid value at 'contents[2].parts[0].function_response.response'
                # (type.googleapis.com/google.protobuf.Struct)" (Gemini API; google-genai 3.1.0: an object)
                message = f"`{inner}` has to be an object; put the value into one"
                yield Violation("not_object", (*path, field, inner), message)


def _check_inline(part: Block, path: Path) -> Iterator[Violation]:
    """Check the data of a part, and of the parts of a result: "Unable to process input image." (quoted by clients)."""
    inline = read_keys(object_of(part.get(INLINE)))
    yield from check_bytes(inline.get("data"), inline.get("mimeType"), (*path, INLINE))
    for at, inner in objects_of(read_keys(object_of(part.get(RESULT))).get("parts")):
        yield from _check_inline(read_keys(inner), (*path, RESULT, "parts", at))


def _check_pairs(turns: list[_Turn]) -> Iterator[Violation]:
    for at, turn in enumerate(turns):
        calls = turn.having(CALL) if turn.is_model else []
        results = [] if turn.is_model else turn.having(RESULT)
        if calls and at == 0:
            # "Please ensure that function call turn comes immediately after a user turn or after a function response
            # turn." (gemini-cli #11814 and #26956, lobehub #10049)
            yield Violation("call_first", calls[0][0], "the first turn has a call; begin with a user's turn")
        if calls and at + 1 < len(turns):
            count = len(turns[at + 1].having(RESULT))
            if count != len(calls):
                # "Please ensure that the number of function response parts is equal to the number of function call
                # parts of the function call turn." (gemini-cli #4217)
                results_of = f"{counted(len(calls), 'call has', 'calls have')} {counted(count, 'result')}"
                message = f"{results_of}; send one result for each call"
                yield Violation("result_count", ("contents", turns[at + 1].index), message)
        if results and not (at and turns[at - 1].having(CALL)):
            # "Please ensure that function response turn comes immediately after a function call turn."
            # (langchain #27799)
            yield Violation("result_without_call", results[0][0], "a result follows no call; remove it")


def _check_signatures(turns: list[_Turn], endpoint: Endpoint) -> Iterator[Violation]:
    if endpoint.rules.call_signature != "required":
        return
    for turn in reversed(turns):
        if not turn.is_model:
            if turn.has_user_input():
                return
            continue
        first = next(((path, part) for path, part in turn.parts if CALL in part), None)
        if first is not None and not text_of(first[1].get(SIGNATURE)):
            # "Function call is missing a thought_signature in functionCall parts." (litellm #16893, strands #1764)
            message = "the first call of a step has no signature; send the one it was received with"
            yield Violation("no_signature", first[0], message)
