"""Messages of the VS Code language model API, both ways: where they and segue's messages are not one to one.

Facts this file rests on:
- There are two roles, user and assistant. Results of tools are parts of a user message that follows the call's.
                                                                               (@types/vscode 1.140.0, read 2026-11-15)
- A message's content may be given as a string.                                                             (the same)

By default the results of a batch share one user message, and what the user says next is a message of its own: so a
request that ended in the results stays a prefix of the next. What was put together otherwise carries a shape: `joined`,
whether a message shares the one before it, and `content`, where that was a string. The keys of a message that holds
results stand under `message` of the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, assert_never, cast

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, Extra, TextContent, UserContent
from segue.conversation.messages import AssistantMessage, Message, StopReason, ToolResultMessage, UserMessage
from segue.errors import DecodeError, EncodeError, Path
from segue.models.origin import new_assistant_message
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import VERBATIM, expect_objects, extra_of, left_over, verbatim_of
from segue.protocols.vscode_lm.content import (
    KIND,
    RESULT,
    RESULT_KEYS,
    Part,
    Wire,
    decode_assistant_part,
    decode_user_part,
    encode_assistant_parts,
    encode_user_parts,
)
from segue.protocols.vscode_lm.rules import PROTOCOL

TURN_KEYS: Final = frozenset({"role", "content"})
_MESSAGE: Final = "message"
_STRING: Final = {"content": "string"}
_OF_USER: Final = ("user", "toolResult")
_NO_VERBATIM: Final[Mapping[str, object]] = {}


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


class Reading:
    """Reads messages in order, remembering what the calls of the last turn were called."""

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self.endpoint = endpoint
        self.model = model
        self.messages: list[Message] = []
        self._names: dict[str, str] = {}

    def read(self, turns: Sequence[Mapping[str, object]]) -> None:
        """Read all messages.

        Raises:
            DecodeError: one of them has another role, or content that is neither a text nor parts.
        """
        for index, turn in enumerate(turns):
            path = ("messages", index)
            role = turn.get("role")
            if role == "assistant":
                self._read_assistant(turn, path)
            elif role == "user":
                self._read_user(turn, path)
            else:
                raise DecodeError("a role is user or assistant", path=(*path, "role"))

    def _read_assistant(self, turn: Mapping[str, object], path: Path) -> None:
        pieces, verbatim = decode_assistant_content(turn, {}, path)
        calls = [piece for piece in pieces if piece.kind == "toolCall"]
        self._names = {call.id: call.name for call in calls}
        self.messages.append(
            replace(
                new_assistant_message(self.endpoint.model, content=pieces),
                protocol=PROTOCOL,
                model=self.model,
                stop_reason=StopReason.TOOL_USE if calls else StopReason.STOP,
                extra=extra_of(PROTOCOL, turn, TURN_KEYS, verbatim),
            )
        )

    def _read_user(self, turn: Mapping[str, object], path: Path) -> None:
        content = turn.get("content")
        if isinstance(content, str):
            extra = extra_of(PROTOCOL, turn, TURN_KEYS, _STRING)
            self.messages.append(UserMessage(content=_text_content(content), extra=extra))
            return
        follows_result = bool(self.messages) and self.messages[-1].role == "toolResult"
        found = self._split(expect_objects(content, (*path, "content")))
        beyond = {key: value for key, value in turn.items() if key not in TURN_KEYS}
        for at, message in enumerate(found):
            is_result = message.role == "toolResult"
            default = is_result and (follows_result if at == 0 else found[at - 1].role == "toolResult")
            part = dict((message.extra or {}).get(PROTOCOL, {}))
            if default != (at > 0):
                part[VERBATIM] = {"joined": at > 0}
            if at == 0 and beyond:
                part.update({_MESSAGE: beyond} if is_result else beyond)
            self.messages.append(replace(message, extra={PROTOCOL: part}) if part else message)

    def _split(self, parts: Sequence[Part]) -> list[UserMessage | ToolResultMessage]:
        """Part results from what stands between them, in order."""
        out: list[UserMessage | ToolResultMessage] = []
        run: list[UserContent] = []
        for part in parts:
            result = self._result(part) if part.get(KIND) == RESULT else None
            if result is None:
                run.append(decode_user_part(part))
                continue
            if run:
                out.append(UserMessage(content=tuple(run)))
                run = []
            out.append(result)
        if run or not out:
            out.append(UserMessage(content=tuple(run)))
        return out

    def _result(self, part: Part) -> ToolResultMessage | None:
        call_id, content = part.get("callId"), part.get("content")
        if not isinstance(call_id, str) or not isinstance(content, list):
            return None
        inner = cast("list[object]", content)
        if not all(isinstance(item, dict) for item in inner):
            return None
        return ToolResultMessage(
            tool_call_id=call_id,
            tool_name=self._names.get(call_id, ""),
            content=tuple(decode_user_part(item) for item in cast("list[Part]", inner)),
            extra=extra_of(PROTOCOL, part, RESULT_KEYS),
        )


def decode_assistant_content(
    turn: Mapping[str, object], tool_names: Mapping[str, str], path: Path
) -> tuple[tuple[AssistantContent, ...], Mapping[str, object] | None]:
    """Read what an assistant's message holds, and how it was spelt if that was not a list.

    Raises:
        DecodeError: it is neither a text nor a list of parts.
    """
    content = turn.get("content")
    if isinstance(content, str):
        return _text_content(content), _STRING
    parts = expect_objects(content, (*path, "content"))
    return tuple(decode_assistant_part(part, tool_names) for part in parts), None


def _text_content(content: str) -> tuple[TextContent, ...]:
    return (TextContent(text=content),)


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_turns(messages: Sequence[Message]) -> list[Wire]:
    """Write the messages.

    Raises:
        EncodeError: one of them has no word here; `path` leads to it.
    """
    out: list[Wire] = []
    before: str | None = None
    for index, message in enumerate(messages):
        path = ("messages", index)
        verbatim = _NO_VERBATIM if message.extra is None else verbatim_of(message.extra, PROTOCOL)
        match message.role:
            case "assistant":
                out.append(_encode_assistant(message, path))
            case "toolResult":
                parts = [_encode_result(message, path)]
                joined = bool(verbatim.get("joined", before == "toolResult"))
                beyond = _NO_VERBATIM if message.extra is None else _beyond_result(message.extra)
                _append_user(out, parts, beyond, joined=joined and before in _OF_USER)
            case "user":
                parts = encode_user_parts(message.content, (*path, "content"))
                joined = verbatim.get("joined") is True and before in _OF_USER
                beyond = _NO_VERBATIM if message.extra is None else left_over(message.extra, PROTOCOL)
                _append_user(out, parts, beyond, joined=joined)
                if verbatim.get("content") == "string":
                    _restore_string(out[-1], message.content)
            case "system":
                raise EncodeError("this API has no role for instructions", path=path)
            case _:
                assert_never(message)
        before = message.role
    return out


def _encode_assistant(message: AssistantMessage, path: Path) -> Wire:
    wire: Wire = {"role": "assistant", "content": encode_assistant_parts(message.content, (*path, "content"))}
    if message.extra is not None:
        for key, value in left_over(message.extra, PROTOCOL).items():
            wire.setdefault(key, value)
        if verbatim_of(message.extra, PROTOCOL).get("content") == "string":
            _restore_string(wire, message.content)
    return wire


def _restore_string(wire: Wire, pieces: Sequence[UserContent | AssistantContent]) -> None:
    """Write the content as a string where it was one, and still is one text."""
    parts = cast("list[object]", wire["content"])
    if len(parts) == 1 and len(pieces) == 1 and (piece := pieces[0]).kind == "text" and piece.extra is None:
        wire["content"] = piece.text


def _append_user(out: list[Wire], parts: list[Wire], beyond: Mapping[str, object], *, joined: bool) -> None:
    if joined and isinstance(content := out[-1]["content"], list):
        cast("list[Wire]", content).extend(parts)
        return
    wire: Wire = {"role": "user", "content": parts}
    for key, value in beyond.items():
        wire.setdefault(key, value)
    out.append(wire)


def _encode_result(message: ToolResultMessage, path: Path) -> Wire:
    content = encode_user_parts(message.content, (*path, "content"))
    wire: Wire = {KIND: RESULT, "callId": message.tool_call_id, "content": content}
    if message.extra is not None:
        for key, value in left_over(message.extra, PROTOCOL).items():
            if key != _MESSAGE:
                wire.setdefault(key, value)
    return wire


def _beyond_result(extra: Extra | None) -> Mapping[str, object]:
    beyond = left_over(extra, PROTOCOL).get(_MESSAGE)
    return cast("Mapping[str, object]", beyond) if isinstance(beyond, Mapping) else {}
