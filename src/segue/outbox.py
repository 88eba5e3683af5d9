"""An outbox: requests of a growing conversation to one model, which cost what is new and not what is old.

How it works. Projection keeps a settled prefix; so the messages of one request are, but for the last few, the very
objects of the request before. Their wire form is kept as bytes. A request is then the few new turns, written and put
behind the kept bytes: one copy of the body, and next to no work.

What makes that right:
- Wires never join an assistant turn to what came before it, and what is written of a turn does not depend on what comes
  later. So, cut before an assistant turn, the turns of a whole history are those of its beginning and those of its end,
  one after the other.                                                                      (law 6, over every protocol)
- What does depend on something earlier is named by the codec (`affects_later`) and shown to it again.
- Where the options ask for cache marks, these stand in the last turns; kept bytes never hold one.
- Other options, tools or instructions than last time, marks of the conversation's own, a history with calls but
  without tools: then everything is written anew. It is rare, and never stale.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from operator import is_
from typing import Final, cast, final

import msgspec
from msgspec.structs import replace

from segue.conversation.context import Context, Options, Prompt, Tool
from segue.conversation.messages import Message
from segue.models.catalogue import get_model
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.projection.projector import Projection, Projector
from segue.protocols.api import resolve_endpoint
from segue.protocols.registry import get_protocol
from segue.request import Request, fit_request, prompt_of

_ENCODER: Final = msgspec.json.Encoder()


_GAP: Final = b"\0"
"""Stands in a body for the turns that are kept; JSON has no such byte."""


@final
class _Kept:
    """The beginning of a request, in bytes, and what it was written of."""

    __slots__ = ("bare", "frame", "lead", "messages", "repeated_messages", "seams", "turns")

    def __init__(self, frame: Prompt) -> None:
        self.frame = frame
        """All that is asked besides the messages; where it differs, so may every turn."""
        self.bare = _with(frame, (), tools=())
        self.lead = 0
        """How many turns come before the first message: a system prompt may be one."""
        self.messages: tuple[Message, ...] = ()
        self.turns = bytearray()
        """Their turns as JSON, with commas between them."""
        self.repeated_messages: tuple[Message, ...] = ()
        """Those of the messages that later turns depend on."""
        self.seams: list[tuple[int, int, int]] = [(0, 0, 0)]
        """Where the history may be cut: so many messages, bytes of turns, and messages to be remembered."""

    def keep_common(self, messages: Sequence[Message]) -> None:
        """Forget what is no longer the beginning of the history, and what has no assistant turn behind it any more.

        A user's words behind a result may share its turn; so behind an edit the last seam may be none.
        """
        kept = len(self.messages)
        is_whole = len(messages) >= kept and all(map(is_, self.messages, messages))
        common = kept if is_whole else sum(1 for _ in takewhile(bool, map(is_, self.messages, messages)))
        while self.seams[-1][0] > common or not _is_seam(messages, self.seams[-1][0]):
            self.seams.pop()
        if self.seams[-1][0] == kept:
            return
        count, size, repeated_messages = self.seams[-1]
        self.messages = self.messages[:count]
        self.repeated_messages = self.repeated_messages[:repeated_messages]
        del self.turns[size:]

    def add(self, messages: Sequence[Message], turns: bytes, repeated_messages: Sequence[Message]) -> None:
        """Keep some more messages and their turns."""
        self.messages += tuple(messages)
        self.repeated_messages += tuple(repeated_messages)
        if turns and self.turns:
            self.turns += b","
        self.turns += turns
        self.seams.append((len(self.messages), len(self.turns), len(self.repeated_messages)))


class Outbox:
    """`prepare` for one model, incremental: give it the grown conversation, and it pays for what is new.

    What it gives equals `prepare(context, model, options=options, policy=policy)`, byte for byte. It recognises what it
    has by the identity of messages, so an edited history costs what was edited and what comes after.
    """

    def __init__(self, model: Model | str, policy: Policy | None = None) -> None:
        self._model = get_model(model)
        self._policy = policy
        self._projector = Projector(self._model, policy)
        self._endpoint = resolve_endpoint(self._model)
        self._codec = get_protocol(self._model.protocol)
        self._turns_key = self._codec.turns_key or ""
        self._kept: _Kept | None = None
        key = self._endpoint.rules.cache_mark_key
        self._mark = None if key is None else f'"{key}"'.encode()

    def prepare(self, context: Context, *, options: Options | None = None) -> Request:
        """Make the conversation, as it is now, ready to send.

        Raises:
            EmptyConversation: nothing visible would be left to send.
            ProjectionRefused: the policy refuses a change that is needed.
        """

        def projecting(asked: Options | None) -> Projection:
            return self._projector.project(context, options=asked)

        projection = fit_request(projecting, self._model, options, self._policy)
        # A wire whose turns do not stand in one list has nothing that could be kept: the body is written as a whole.
        content = self._write(projection) if self._turns_key else None
        return Request(projection, self._endpoint, self._codec, content)

    def reset(self) -> None:
        """Forget everything and free its memory; the next request is made from the whole."""
        self._projector.reset()
        self._kept = None

    def _write(self, projection: Projection) -> bytes:
        prompt = prompt_of(projection, self._endpoint)
        messages = prompt.context.messages
        frame = _with(prompt, ())
        kept = self._kept
        if kept is None or kept.frame != frame:
            kept = self._begin(frame)
        kept.keep_common(messages)
        content = self._write_behind(kept, messages) if kept.messages else None
        if content is None:  # there is nothing to stand behind, or a mark belongs into what is kept
            content = self._write_behind(self._begin(frame), messages)
        if content is None:
            raise AssertionError("what is written from the whole is written whole")
        return content

    def _begin(self, frame: Prompt) -> _Kept:
        kept = self._kept = _Kept(frame)
        kept.lead = len(self._turns(kept, ()))
        return kept

    def _write_behind(self, kept: _Kept, messages: Sequence[Message]) -> bytes | None:
        """Write what is new behind what is kept, and keep what no later request can change."""
        new = messages[len(kept.messages) :]
        shown = _with(kept.frame, (*kept.repeated_messages, *new))
        body = self._codec.encode_request(shown, self._endpoint)
        turns = cast("list[object]", body[self._turns_key])
        repeated = len(self._turns(kept, kept.repeated_messages)) if kept.repeated_messages else kept.lead
        fresh = turns[repeated:]
        if kept.turns and self._asks_for_marks(kept.frame) and not self._is_marked(_ENCODER.encode(fresh)):
            return None
        gap = [msgspec.Raw(_GAP)] if kept.turns else []
        body[self._turns_key] = [*turns[: kept.lead], *gap, *fresh]
        head, _, foot = _ENCODER.encode(body).partition(_GAP)
        content = b"".join((head, kept.turns, foot)) if gap else head
        self._settle(kept, new, fresh)
        return content

    def _settle(self, kept: _Kept, new: Sequence[Message], fresh: Sequence[object]) -> None:
        seam = _find_seam(new)
        done, rest = new[:seam], new[seam:]
        if not done or (not kept.frame.context.tools and _has_calls(done)):
            return
        behind = len(self._turns(kept, rest)) - kept.lead
        turns = _ENCODER.encode(fresh[: len(fresh) - behind])[1:-1]
        if self._asks_for_marks(kept.frame) and self._is_marked(turns):
            return  # the conversation has marks of its own, so where one goes depends on all of it
        affects_later = self._codec.affects_later
        kept.add(done, turns, () if affects_later is None else tuple(filter(affects_later, done)))

    def _turns(self, kept: _Kept, messages: Sequence[Message]) -> list[object]:
        """Write some messages, to see how many turns they are."""
        body = self._codec.encode_request(_with(kept.bare, messages), self._endpoint)
        return cast("list[object]", body[self._turns_key])

    def _asks_for_marks(self, frame: Prompt) -> bool:
        return self._mark is not None and frame.options.cache_retention in ("short", "long")

    def _is_marked(self, turns: bytes) -> bool:
        return self._mark is not None and self._mark in turns


def _with(prompt: Prompt, messages: Sequence[Message], tools: tuple[Tool, ...] | None = None) -> Prompt:
    context = prompt.context
    changed = replace(context, messages=tuple(messages), tools=context.tools if tools is None else tools)
    return replace(prompt, context=changed)


def _is_seam(messages: Sequence[Message], at: int) -> bool:
    """Whether a history may be cut here: at either end, or before an assistant turn."""
    return at in (0, len(messages)) or messages[at].role == "assistant"


def _find_seam(messages: Sequence[Message]) -> int:
    """Find the last place where a history may be cut: before an assistant turn that someone has answered.

    What was answered is there to stay, and the turns behind hold what the marks of a request go on.
    """
    is_answered = False
    for at in range(len(messages) - 1, 0, -1):
        role = messages[at].role
        if role == "assistant" and is_answered and messages[at - 1].role in ("user", "toolResult"):
            return at
        is_answered = is_answered or role in ("user", "toolResult")
    return 0


def _has_calls(messages: Sequence[Message]) -> bool:
    return any(
        message.role == "toolResult" or (message.role == "assistant" and bool(message.tool_calls()))
        for message in messages
    )
