"""Makes the messages of a history ready for a format: projected for the model that the program will ask.

A message that was read from this format is written unchanged: the program sends its own history by its own rules
(it leaves out signatures of another model, and closes open calls). Every other message is projected first, because no
program repairs what another one wrote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, final

from msgspec.structs import replace

from segue.conversation.content import TextContent
from segue.conversation.context import Context
from segue.conversation.messages import Message, SystemMessage, UserMessage
from segue.errors import EmptyConversation
from segue.foundation.plurals import counted
from segue.histories.kit.broken_media import replace_broken_media
from segue.histories.kit.envelope import find_envelope, is_own_text, plain_text
from segue.histories.kit.format import Cut
from segue.histories.kit.notes import Notes
from segue.models.model import Model
from segue.projection.policy import Fit, Policy
from segue.projection.report import Change, ChangeCode, Loss
from segue.requests.prepare import Request, prepare_intact
from segue.requests.tokens import estimate_tokens

_MARK: Final = "history"
"""The key of `extra` with the position of a message, while it is projected."""
_NOT_SHORTENED: Final = 1 << 40
"""The characters of a result that are kept: all of them."""
_BY_FITTING: Final = frozenset(
    {ChangeCode.RESULT_SHORTENED, ChangeCode.MEDIA_SHORTENED, ChangeCode.MEDIA_EVICTED, ChangeCode.THINKING_DROPPED}
)
_NEXT_PROMPT: Final = UserMessage.of("Go on.")
"""Represents the prompt with which the user continues the session: the program appends it to what is written."""


@final
class Ready(NamedTuple):
    """The messages to write, what projection changed in them, and their positions in the given history if needed.

    `cut` is where they are compacted, if they do not fit the window.
    """

    messages: tuple[Message, ...]
    changes: tuple[Change, ...]
    positions: tuple[int | None, ...] = ()
    cut: Cut | None = None


def make_ready(
    context: Context,
    format_name: str,
    model: Model,
    policy: Policy | None,
    notes: Notes,
    *,
    adds_own_text: bool,
    closes_calls: bool,
    sends_thinking: bool,
    compacts: bool = False,
) -> Ready:
    """Return the messages that a format writes.

    `adds_own_text`: the program adds instructions by itself, so those of others are left out. `closes_calls`: it adds a
    result to a call that has none. `sends_thinking`: it sends thinking as it is stored, which providers refuse without
    a signature, so a reply with such thinking is projected like that of another program. `compacts`: it has a record
    for a compaction, so messages that do not fit the window are written before it.

    Raises:
        EmptyConversation: nothing would be left to write.
        ProjectionRefused: the policy refuses a change.
    """
    given = context.messages
    if adds_own_text:
        _note_instructions(context, notes)
    own = [
        find_envelope(message, format_name) is not None and not (sends_thinking and _has_unsigned_thinking(message))
        for message in given
    ]
    kept: list[int] = []
    for at, message in enumerate(given):
        if adds_own_text and not own[at] and is_own_text(message):
            detail = counted(len(plain_text(message)), "character")
            notes.add(ChangeCode.AGENT_TEXT_LEFT_OUT, ("messages", at), Loss.CONTENT, detail)
        else:
            kept.append(at)
    if not kept:
        raise _empty()
    if closes_calls and all(own[at] for at in kept):
        return Ready(tuple(given[at] for at in kept), ())
    request, replaced = _prepare(context, kept, model, policy)
    whole = _keep_whole(context, kept, model, policy) if compacts and _is_cut(request) else None
    sent = request.projection.context.messages if whole is None else whole.messages
    positions = list[int]()
    messages = _merge(given, own, kept, sent, positions, keep_inserted=not closes_calls)
    if not messages:
        raise _empty()
    found = request.report.changes if whole is None else whole.changes
    changes = tuple(moved for change in found if (moved := _in_given(change, kept, own)) is not None)
    cut = None
    if whole is not None:
        cut = Cut(sum(at < whole.first for at in positions), whole.text, whole.tokens)
    return Ready(messages, (*(change for at, change in replaced if not own[at]), *changes), tuple(positions), cut)


@final
class _Whole(NamedTuple):
    """A history that does not fit: all its messages, and what is sent in place of those before `first`."""

    messages: list[Message]
    changes: tuple[Change, ...]
    first: int
    text: str
    tokens: int


def _is_cut(request: Request) -> bool:
    window = request.projection.window
    return window is not None and (window.lean > 0 or window.gone > 0)


def _keep_whole(context: Context, kept: Sequence[int], model: Model, policy: Policy | None) -> _Whole | None:
    """Cut so that results are sent whole or not at all: the program would read a shortened one as the real one.

    None if nothing is left out then.
    """
    policy = policy or Policy()
    fit = policy.fit or Fit()
    request, _ = _prepare(context, kept, model, replace(policy, fit=replace(fit, head=_NOT_SHORTENED)))
    fitted = request.projection
    if fitted.window is None or not fitted.window.gone:
        return None
    gone = fitted.window.gone
    first = kept[gone] if gone < len(kept) else len(context.messages)
    everything, _ = _prepare(context, kept, model, replace(policy, fit=None))
    # The newest messages may still have lost images, or a part of a result that alone exceeds the window.
    newest = {at: message for message in fitted.context.messages if (at := _mark_of(message)) is not None}
    merged = {change.path[1] for change in request.report.of(ChangeCode.TURN_MERGED) if len(change.path) > 1}
    messages = [
        newest.get(at, message)
        if (at := _mark_of(message)) is not None and at >= first and gone not in merged
        else message
        for message in everything.projection.context.messages
    ]
    note, opening = policy.texts.turns_dropped.partition("{")[0], list[str]()
    for text in (piece.text for piece in fitted.context.messages[0].content if piece.kind == "text"):
        opening.append(text)
        if text.startswith(note):
            break
    dropped = [
        replace(change, detail=f"{change.detail}; they stay in the file, before its compaction")
        for change in request.report.of(ChangeCode.TURNS_DROPPED)
    ]
    behind = [
        change
        for change in request.report.changes
        if change.code in _BY_FITTING and len(change.path) > 1 and int(change.path[1]) >= gone
    ]
    window = everything.projection.window
    tokens = estimate_tokens(everything.projection.context, model) if window is None else window.estimate
    return _Whole(messages, (*dropped, *everything.report.changes, *behind), first, "\n\n".join(opening), tokens)


def make_ready_for_framework(
    context: Context, format_name: str, model: Model | None, policy: Policy | None, *, as_read: bool
) -> Ready:
    """Return the messages that the format of a framework writes.

    Without a model nothing is projected: a framework can ask any model later, and its format names the model of each
    turn. With one, every message is projected for it, because frameworks repair nothing; `as_read` says that a history
    of this format alone is written unchanged.

    Raises:
        EmptyConversation: nothing would be left to write.
        ProjectionRefused: the policy refuses a change.
    """
    given = context.messages
    if not given:
        raise _empty()
    whole = tuple(range(len(given)))
    if model is None or (as_read and all(find_envelope(message, format_name) is not None for message in given)):
        return Ready(given, (), whole)
    request, replaced = _prepare(context, whole, model, policy)
    messages: list[Message] = []
    positions: list[int | None] = []
    if prompt := request.projection.context.system_prompt:  # instructions before the first turn
        content = (TextContent(text=prompt),) if isinstance(prompt, str) else prompt
        messages.append(SystemMessage(content=content))
        positions.append(None)
    for message in request.projection.context.messages:
        at = _mark_of(message)
        if at is not None and at >= len(given):
            continue
        bare = _without_mark(message)
        if at is not None and bare == given[at]:
            bare = given[at]
        elif find_envelope(bare, format_name) is not None:
            kept = {key: fields for key, fields in (bare.extra or {}).items() if key != format_name}
            bare = replace(bare, extra=kept or None)
        messages.append(bare)
        positions.append(at)
    if not messages:
        raise _empty()
    none_own = [False] * len(given)
    projected = (_in_given(change, whole, none_own) for change in request.report.changes)
    changes = (*(change for _, change in replaced), *(change for change in projected if change is not None))
    return Ready(tuple(messages), changes, tuple(positions))


def _prepare(
    context: Context, kept: Sequence[int], model: Model, policy: Policy | None
) -> tuple[Request, list[tuple[int, Change]]]:
    """Project the kept messages; also return the changes before projection, each with the position of its message."""
    marked: list[Message] = []
    replaced: list[tuple[int, Change]] = []
    for at in kept:
        message, changes = replace_broken_media(context.messages[at], at, policy)
        marked.append(_with_mark(message, at))
        replaced += ((at, change) for change in changes)
    last = _with_mark(_NEXT_PROMPT, len(context.messages))
    shortened = replace(context, messages=(*marked, last), tools=(), summaries=(), system_prompt=None)
    shortened = replace(shortened, pins=tuple(at for at, place in enumerate(kept) if place in context.pins))
    return prepare_intact(shortened, model, policy=policy), replaced


def _has_unsigned_thinking(message: Message) -> bool:
    return any(content.kind == "thinking" and not content.thinking_signature for content in message.content)


def _empty() -> EmptyConversation:
    return EmptyConversation(
        "the history has no content to write: it has no messages, or only empty or unfinished ones"
    )


def _note_instructions(context: Context, notes: Notes) -> None:
    if context.system_prompt:
        detail = "the system prompt; the program has its own"
        notes.add(ChangeCode.INSTRUCTIONS_LEFT_OUT, ("system_prompt",), Loss.CONTENT, detail)
    if context.tools:
        notes.add(ChangeCode.TOOL_REMOVED, ("tools",), Loss.NONE, "the program has its own tools")


def _with_mark(message: Message, at: int) -> Message:
    return replace(message, extra={**(message.extra or {}), _MARK: {"at": at}})


def _mark_of(message: Message) -> int | None:
    mark = (message.extra or {}).get(_MARK)
    at = None if mark is None else mark.get("at")
    return at if isinstance(at, int) else None


def _without_mark(message: Message) -> Message:
    extra: dict[str, Mapping[str, object]] = {
        key: fields for key, fields in (message.extra or {}).items() if key != _MARK
    }
    return replace(message, extra=extra or None)


def _merge(
    given: Sequence[Message],
    own: Sequence[bool],
    kept: Sequence[int],
    projected: Sequence[Message],
    positions: list[int],
    *,
    keep_inserted: bool,
) -> tuple[Message, ...]:
    """Put the format's own messages back in place of their projection, also those that projection removed.

    The position of each message in the given history is added to `positions`; for an inserted one, that before it.
    """
    merged: list[Message] = []
    last = 0
    waiting = [at for at in kept if own[at]]
    after_own = False
    for message in projected:
        at = _mark_of(message)
        if at is None:
            # A message that projection inserted, such as the result of an open call. The program does that itself for
            # its own calls, if it does it at all.
            if not after_own or keep_inserted:
                merged.append(message)
                positions.append(last)
            continue
        while waiting and waiting[0] < at:
            positions.append(waiting[0])
            merged.append(given[waiting.pop(0)])
        if at >= len(given):
            continue
        after_own, last = own[at], at
        if own[at]:
            if waiting and waiting[0] == at:
                positions.append(at)
                merged.append(given[waiting.pop(0)])
        else:
            positions.append(at)
            merged.append(_without_mark(message))
    merged += (given[at] for at in waiting)
    positions += waiting
    return tuple(merged)


def _in_given(change: Change, kept: Sequence[int], own: Sequence[bool]) -> Change | None:
    """Return a change with the path in the given history; None if it is about the format's own messages or settings."""
    path = change.path
    if path[0] != "messages":
        return None
    if len(path) < 2 or not isinstance(path[1], int):
        return change
    if path[1] >= len(kept):
        return None  # the prompt that replaces the next one
    at = kept[path[1]]
    return None if own[at] else replace(change, path=("messages", at, *path[2:]))
