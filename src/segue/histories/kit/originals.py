"""Keeps what was handed over to another agent, and gives it back when the session returns.

A session that is written for another agent is projected: signed reasoning becomes text, ids change. The conversation
as it was read is kept beside it, in parts, each with digests of what is read in its place in the other agent's file.
When that session is handed over in turn, a part whose messages still have these digests is replaced by the original.
What stands between and behind such parts was added or changed there, and stays; a changed part is reported.

A part begins with a message of the user that answers no call, so that no call is ever parted from its result.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import groupby
from typing import Any, Final, NamedTuple, cast, final

import msgspec
from msgspec.structs import replace

from segue.conversation.messages import Message
from segue.conversation.stored import dump, load
from segue.errors import SegueError
from segue.foundation.plurals import counted
from segue.histories.kit.envelope import is_own_text
from segue.histories.kit.history import History, Originals
from segue.histories.kit.lines import text_of
from segue.models.model import Model
from segue.projection.report import Change, ChangeCode, Loss, Report
from segue.protocols.registry import resolve_rules

_LABEL: Final = "segue-originals/1"
_NOT_COMPARED: Final = frozenset({"extra", "cacheMark", "thinkingSignature", "thoughtSignature", "phase"})
_DIGITS: Final = 20


@final
class OriginalPart(NamedTuple):
    """A part of the originals: where it begins in them, and the digests of what was written in its place."""

    start: int
    digests: tuple[str, ...]


@final
class Kept(NamedTuple):
    """What was kept of a session that was handed over; `data` is the stored conversation.

    `own` are the digests of what was written and is read as a text of the other agent, such as instructions.
    """

    format: str
    parts: tuple[OriginalPart, ...]
    own: frozenset[str]
    data: bytes


def pack(originals: Originals, written: History) -> bytes:
    """Write the originals as a file; `written` is the other agent's session as it is read before anything is added."""
    messages = written.context.messages
    ours, theirs = _starts(originals.messages), _starts(messages)
    if len(ours) != len(theirs):  # a turn that the format joins or splits: all is one part
        ours, theirs = ours[:1], theirs[:1]
    digests = dict(_digests(messages))
    parts: list[tuple[int, list[str]]] = []
    for ours_at, first, end in zip(ours, theirs, (*theirs[1:], len(messages)), strict=True):
        if here := [digests[at] for at in range(first, end) if at in digests]:
            parts.append((originals.positions[ours_at] if parts else 0, here))
    head: dict[str, object] = {"type": _LABEL, "format": written.origin.format, "parts": parts}
    head["own"] = [each for _, each in _digests(messages, own=True)]
    return msgspec.json.encode(head) + b"\n" + dump(originals.context).rstrip(b"\n") + b"\n"


def unpack(data: bytes) -> Kept | None:
    """Read such a file, or only its first line; None if it is none."""
    line, _, rest = data.partition(b"\n")
    try:
        head = msgspec.json.decode(line)
        if head["type"] != _LABEL:
            return None
        parts = tuple(
            OriginalPart(max(0, int(start)), tuple(map(str, digests))) for start, digests in head["parts"] if digests
        )
        return Kept(text_of(head["format"]) or "", parts, frozenset(map(str, head["own"])), rest)
    except (msgspec.DecodeError, KeyError, TypeError, ValueError):
        return None


def matches(kept: Kept, history: History, *, is_named: bool) -> bool:
    """Whether these originals are those of a session: it has their id, or begins as what was written for them."""
    if kept.format != history.origin.format or not kept.parts:
        return False
    first = kept.parts[0].digests
    return is_named or tuple(each for _, each in _digests(history.context.messages))[: len(first)] == first


def restore(history: History, kept: Kept) -> History:
    """Give a session that came back with the originals in the place of what was written for them.

    Raises:
        LoadError: the kept conversation cannot be read.
    """
    context = load(kept.data)
    messages = history.context.messages
    digests = _digests(messages)
    found = _find_parts(kept.parts, [each for _, each in digests])
    written = {at for at, each in _digests(messages, own=True) if each in kept.own}
    restored: list[Message] = []
    changes: list[Change] = []
    last, is_changed = 0, False
    starts = [part.start for part in kept.parts]
    for number, (start, end) in enumerate(zip(starts, (*starts[1:], len(context.messages)), strict=True)):
        at = found.get(number)
        part = context.messages[start:end]
        if at is None or (is_changed and any(map(is_bound, part))):
            detail = "an earlier message was" if at is not None else "it was"
            detail = f"{counted(len(part), 'message')}; {detail} changed, removed or summarised there"
            changes.append(_change(max(0, len(restored) - 1), detail))
            is_changed = True
            continue
        size = len(kept.parts[number].digests)
        first = digests[at][0]
        behind = digests[at + size][0] if at + size < len(digests) else len(messages)
        restored += (messages[place] for place in range(last, first) if place not in written)
        restored += part
        added = (messages[place] for place in range(first, behind) if place not in written)
        restored += filter(is_own_text, added)
        last = behind
    restored += messages[last:]
    whole = replace(context, messages=tuple(restored), summaries=(), pins=())
    report = Report((*history.report.changes, *changes))
    return replace(history, context=whole, report=report)


def _change(at: int, detail: str) -> Change:
    return Change(code=ChangeCode.ORIGINAL_NOT_RESTORED, path=("messages", at), loss=Loss.OPAQUE, detail=detail)


def _find_parts(parts: Sequence[OriginalPart], found: Sequence[str]) -> dict[int, int]:
    """Find each part in the digests of a session; a part counts only as a whole."""
    wanted = [each for part in parts for each in part.digests]
    same = next((at for at, (one, other) in enumerate(zip(wanted, found, strict=False)) if one != other), None)
    same = min(len(wanted), len(found)) if same is None else same
    blocks = [(0, 0, same)]
    if same < len(wanted):
        matcher = SequenceMatcher(None, wanted[same:], found[same:], autojunk=False)
        blocks += ((one + same, other + same, size) for one, other, size in matcher.get_matching_blocks())
    places: dict[int, int] = {}
    start = 0
    for number, part in enumerate(parts):
        end = start + len(part.digests)
        for one, other, size in blocks:
            if one <= start and end <= one + size:
                places[number] = other + start - one
                break
        start = end
    return places


def is_bound(message: Message) -> bool:
    """Whether a reply has reasoning that is valid only behind the messages that it was made after."""
    if message.role != "assistant" or not any(content.kind == "thinking" for content in message.content):
        return False
    try:
        return resolve_rules(Model(message.model, message.provider, message.protocol)).bound_prefix
    except SegueError:
        return False


def _starts(messages: Sequence[Message]) -> list[int]:
    """Give the positions where parts begin; what the user says beside results belongs to them."""
    visible = [at for at, message in enumerate(messages) if not is_own_text(message)]
    starts = visible[:1]
    for is_reply, group in groupby(visible, key=lambda at: messages[at].role == "assistant"):
        run = list(group)
        if not is_reply and run[0] != starts[0] and all(messages[at].role != "toolResult" for at in run):
            starts.append(run[0])
    return starts


def _digests(messages: Sequence[Message], *, own: bool = False) -> list[tuple[int, str]]:
    """Give the digest of each message with its position: of what a user could change, not of times and reasoning."""
    found: list[tuple[int, str]] = []
    for at, message in enumerate(messages):
        pieces: list[object] = []
        for content in message.content if is_own_text(message) is own else ():
            if content.kind == "text" and pieces and isinstance(pieces[-1], str):
                pieces[-1] += content.text
            elif content.kind == "text":
                pieces.append(content.text)
            elif content.kind != "thinking":
                fields = cast("dict[str, Any]", msgspec.to_builtins(content))
                pieces.append({key: value for key, value in fields.items() if key not in _NOT_COMPARED})
        if pieces:
            call = message.tool_call_id if message.role == "toolResult" else None
            text = json.dumps([message.role, call, pieces], sort_keys=True)
            found.append((at, hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]))
    return found
