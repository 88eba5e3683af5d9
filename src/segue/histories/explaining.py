"""The law of recognition: a reading that no marker of its format proves has to explain every item.

Facts:
- Requests have few distinctive signs, and their decoders take unknown turns: an output stream of another program,
  a list of users or the lines of a log become messages without content, or native blocks of an invented user.
  (seen: Gemini CLI's stream as anthropic-messages, 138 of 149 messages empty, 2026-11-18)
- The first item says little about the others: a log may begin with a line that looks like a message.          (seen)

So each item is judged by itself: it has a role that conversations have, it has content, and a person would recognise
what became of it. Otherwise the data is refused, with the formats that it resembles and what speaks against each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, cast, final

from segue.conversation.context import Context
from segue.conversation.messages import Message
from segue.errors import UnknownFormat
from segue.histories.kit.evidence import Sight
from segue.histories.kit.history import History
from segue.histories.kit.unread import find_unread
from segue.histories.reading import OpenedDocument, parse
from segue.histories.recognition import Recognition, near_misses
from segue.projection.report import ChangeCode, Loss
from segue.protocols.registry import all_clues, get_protocol

_ROLES: Final = frozenset(
    {"system", "developer", "user", "assistant", "model", "tool", "function", "chatbot", "critic", "discriminator",
     "context", "root", "control", "ipython", "toolresult", "human", "ai", "latest_reminder"}
)  # fmt: skip
"""Roles of turns, in lower case."""
_CONTENT_KEYS: Final = frozenset(
    {"content", "tool_calls", "function_call", "reasoning_content", "reasoning", "thinking", "refusal",
     "audio", "reasoning_details", "thinking_blocks", "message", "text", "tool_results", "tool_plan", "images",
     "annotations", "partial", "prefix"}
)  # fmt: skip
"""Fields of a turn that hold its content; a turn without any of them says nothing."""
_BESIDE: Final = frozenset({"annotations", "reasoning_details", "audio", "images", "partial", "prefix"})
"""Fields of `_CONTENT_KEYS` that protocols keep next to the content, or that repeat it."""
_RESULT_ROLES: Final = frozenset({"tool", "function", "toolresult"})
"""Roles of turns that are results."""
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "messages": ("role",),
    "contents": ("parts",),
    "input": ("role", "type"),
}
"""Keys, one of which is in every turn, by the key of the body that holds the turns."""
_FILE_NAME: Final = re.compile(r"[\w./\\:-]*\w\.[A-Za-z]\w{1,4}")
"""What models of other kinds are given: a picture, a recording, a table."""
_SHOWN: Final = 4
"""Keys of an item that a refusal names."""


@final
class Unexplained(NamedTuple):
    """An item that a reading does not explain, counted from 1, and the reason."""

    item: int
    reason: str

    def __str__(self) -> str:
        """Describe it in a part of a sentence."""
        return f"item {self.item} {self.reason}" if self.item else self.reason


def refuse_unexplained(document: OpenedDocument, claim: Recognition, sight: Sight, place: str) -> OpenedDocument:
    """Return a document if it explains every item of its data, or if its format is certain.

    Raises:
        UnknownFormat: an item is not explained; the message names the formats that the data resembles.
    """
    found = find_unexplained(document, claim)
    if found is None:
        return document
    raise refusal(found, claim, sight, place)


def is_marked(claim: Recognition) -> bool:
    """Whether data of segue names its format itself."""
    return claim.evidence[0].startswith("format^")


def refusal(found: Unexplained, claim: Recognition, sight: Sight, place: str) -> UnknownFormat:
    """Make the error for data that is not what it was taken for."""
    signs = ", ".join(sign for sign in claim.evidence if not sign.startswith("!"))
    against = [f"{claim.format} ({signs}), but {found}"]
    against += near_misses(sight, without=claim.format)
    return UnknownFormat(
        f"{place} is not recognised: it resembles {'; '.join(against[:3])}. Name its format with format=..."
        " if it is one of them",
        name="",
        suggestions=(claim.format,),
    )


def find_unexplained(document: OpenedDocument, claim: Recognition) -> Unexplained | None:
    """Find the first item that a reading does not explain; None where a marker makes the format certain."""
    messages = document.prompt.context.messages
    if document.history is not None:
        if messages and not any(map(_is_recognisable, messages)) and not document.history.compactions:
            return Unexplained(0, "no message has a text, a call, a result or media")
        return None if claim.certainty == "certain" else _find_in_history(document.history)
    if claim.kind in {"session", "stored"}:
        return None if is_marked(claim) else _find_in_session(document, messages)
    if document.body is None or document.protocol is None:
        return None
    return _find_in_body(document.body, document.protocol, document.prompt.context)


def _find_in_history(history: History) -> Unexplained | None:
    for change in history.report.of(ChangeCode.LINE_UNREADABLE):
        return Unexplained(int(change.path[-1]), f"cannot be read: {change.detail}")
    for change in history.report.of(ChangeCode.RECORD_LEFT_OUT):
        if change.loss != Loss.NONE:
            return Unexplained(0, f"records of the kind {change.path[-1]!r} are unknown to it")
    if not any(map(_is_filled, history.context.messages)):
        return Unexplained(0, "it has no message with content")
    return None


def _find_in_session(document: OpenedDocument, messages: Sequence[Message]) -> Unexplained | None:
    """Find a message of a session of segue without a field for its content: every one has it, even if it is empty."""
    if all(message.content for message in messages):
        return None
    lines = (document.data or b"").splitlines()
    for at, message in enumerate(messages):
        if message.content or at >= len(document.lines):
            continue
        number = document.lines[at]
        raw = parse(lines[number - 1]) if number <= len(lines) else None
        if isinstance(raw, dict) and "content" not in raw:
            return Unexplained(number, f"({_keys(cast('Mapping[str, object]', raw))}) has no content")
    return None if any(map(_is_filled, messages)) else Unexplained(0, "it has no message with content")


def _find_in_body(body: Mapping[str, object] | Sequence[object], protocol: str, context: Context) -> Unexplained | None:
    messages = context.messages
    clues = all_clues().get(protocol)
    key = "messages" if clues is None else clues.turns_key
    if key is None:
        return None
    turns = body.get(key) if isinstance(body, Mapping) else body
    settings = {"model"} if clues is None else {"model", *clues.body_keys, *clues.object_keys} - {key}
    has_settings = isinstance(body, Mapping) and not settings.isdisjoint(body)
    if isinstance(turns, list):
        found = next(_unexplained_turns(cast("list[object]", turns), _NEEDED.get(key, ())), None)
        if found is not None:
            return found
        if (not turns and len(body) > 1) or (turns is body and not any(map(_is_filled, messages))):
            return Unexplained(0, "no message has content")
        if (found := _find_lone_result(cast("list[object]", turns), messages, protocol)) is not None:
            return found
        if not has_settings and (found := next(_unread_fields(cast("list[object]", turns), context), None)) is not None:
            return found
    elif isinstance(turns, str) and _FILE_NAME.fullmatch(turns):
        return Unexplained(0, f"its `{key}` is the name of a file")
    elif not has_settings and isinstance(body, Mapping):
        other = next((name for name, value in body.items() if name != key and isinstance(value, str)), None)
        if other is not None:
            return Unexplained(0, f"{protocol} has no field {other!r}")
    return None if has_settings else _find_unknown_block(messages, protocol)


def _find_lone_result(turns: Sequence[object], messages: Sequence[Message], protocol: str) -> Unexplained | None:
    """Find a turn with the role of a result that became something else, such as a message of the user."""
    results = sum(message.role == "toolResult" for message in messages)
    given = [at for at, item in enumerate(turns, 1) if isinstance(item, Mapping) and _is_result(item)]  # pyright: ignore[reportUnknownArgumentType]
    return (
        Unexplained(given[results], f"is a result, which {protocol} writes otherwise") if results < len(given) else None
    )


def _is_result(turn: Mapping[str, object]) -> bool:
    role = turn.get("role")
    return isinstance(role, str) and role.lower() in _RESULT_ROLES


def _find_unknown_block(messages: Sequence[Message], protocol: str) -> Unexplained | None:
    """Find a block with words of a kind that the protocol does not have, so that nobody would recognise it."""
    replay = get_protocol(protocol).replay
    for at, message in enumerate(messages, 1):
        natives = [piece for piece in message.content if piece.kind == "native"]
        unknown = [
            piece.block for piece in natives if not piece.fallback and not replay.is_known(replay.read(piece.block)[0])
        ]
        if any(find_unread(block, ()) is not None for block in unknown) or (
            natives and len(natives) == len(message.content)
        ):
            return Unexplained(0, f"what becomes message {at} has no text, call, result or media that {protocol} knows")
    return None


def _unexplained_turns(turns: Sequence[object], needed: Sequence[str]) -> Iterator[Unexplained]:
    for at, item in enumerate(turns, 1):
        if not isinstance(item, Mapping):
            yield Unexplained(at, "is not an object")
            continue
        turn = cast("Mapping[str, object]", item)
        role = turn.get("role")
        if needed and not any(key in turn for key in needed):
            yield Unexplained(at, f"({_keys(turn)}) has no {' and no '.join(f'`{key}`' for key in needed)}")
        elif role is not None and (not isinstance(role, str) or role.lower() not in _ROLES):
            yield Unexplained(at, f"has the role {role!r}")
        elif role is not None and "type" not in turn and _CONTENT_KEYS.isdisjoint(turn) and "parts" not in needed:
            yield Unexplained(at, f"({_keys(turn)}) has no content")


def _unread_fields(turns: Sequence[object], context: Context) -> Iterator[Unexplained]:
    """Find fields whose words no message has, in turns without the settings of a request around them."""
    made = [context.system_prompt, *(message.content for message in context.messages)]
    for at, item in enumerate(turns, 1):
        for key, value in cast("Mapping[str, object]", item).items():
            if key not in _BESIDE and "signature" not in key and find_unread(value, made) is not None:
                yield Unexplained(at, f"has words in {key!r}, where the format has none")


def _keys(fields: Mapping[str, object]) -> str:
    shown = ", ".join(list(fields)[:_SHOWN])
    return f"{shown}, …" if len(fields) > _SHOWN else shown


def _is_recognisable(message: Message) -> bool:
    return any(piece.kind != "native" for piece in message.content)


def _is_filled(message: Message) -> bool:
    return any(piece.kind != "text" or piece.text.strip() for piece in message.content)
