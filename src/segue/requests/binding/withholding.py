"""Removes reasoning that a request may not contain, and reports it and what the provider is asked about."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent
from segue.conversation.messages import AssistantMessage, Message
from segue.projection.report import Change, ChangeCode, Loss
from segue.requests.binding.digests import ReplyTurn
from segue.requests.binding.run import BoundRun


def without_blocks(message: AssistantMessage, positions: Sequence[int], filler: str) -> AssistantMessage:
    """Return a message without some of its signed thinking, which is counted from the first."""
    left, number = set(positions), -1
    content: list[AssistantContent] = []
    for piece in message.content:
        if type(piece) is ThinkingContent and piece.thinking_signature:
            number += 1
            if number in left:
                continue
        content.append(piece)
    return replace(message, content=tuple(content) or (TextContent(text=filler),))


def note_withheld(given: Sequence[Message], replies: Sequence[ReplyTurn], run: BoundRun) -> list[Change]:
    """Report what is left out or asked about, with its place in the given conversation."""
    asked = frozenset(run.asked)
    unknown = {index for index, reply in enumerate(replies) if asked and not asked.isdisjoint(reply.marks)}
    places = _find_places(given, replies, run.withheld.keys() | unknown)
    changes: list[Change] = []
    for index, place in places.items():
        signed = _signed(replies[index].message)
        content = given[place].content
        withheld, cause = run.withheld.get(index, ((), ""))
        for position, piece in enumerate(signed):
            at = next((at for at, each in enumerate(content) if each is piece), None)
            path = ("messages", place, "content") if at is None else ("messages", place, "content", at)
            if position in withheld:
                loss = Loss.CONTENT if piece.thinking.strip() else Loss.OPAQUE
                changes.append(Change(code=ChangeCode.REASONING_WITHHELD, path=path, loss=loss, detail=cause))
            elif replies[index].marks[position] in asked:
                changes.append(Change(code=ChangeCode.REASONING_ASKED, path=path, loss=Loss.NONE))
    return changes


def _signed(message: AssistantMessage) -> list[ThinkingContent]:
    return [piece for piece in message.content if type(piece) is ThinkingContent and piece.thinking_signature]


def _find_places(given: Sequence[Message], replies: Sequence[ReplyTurn], wanted: AbstractSet[int]) -> dict[int, int]:
    """Find the given messages of some replies.

    Projection keeps the order of assistant turns, and the thinking that it keeps are the given objects.
    """
    places: dict[int, int] = {}
    at = 0
    for index in sorted(wanted):
        blocks = {id(piece) for piece in _signed(replies[index].message)}
        for place in range(at, len(given)):
            message = given[place]
            if message.role == "assistant" and any(id(piece) in blocks for piece in message.content):
                places[index], at = place, place + 1
                break
    return places
