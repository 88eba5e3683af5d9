"""Incremental requests: an outbox encodes only the new messages of a growing conversation with one model.

How it works: projection keeps a settled prefix, so all but the last few messages of a request are the same objects as
in the request before. Their encoding is kept as bytes. A request is the kept bytes followed by the encoding of the new
turns.

Why the result equals a full encoding:
- No protocol merges an assistant turn with the turn before it, and the encoding of a turn does not depend on later
  turns. So a history can be split before an assistant turn, and the encodings of both parts can be joined.
                                                                                            (law 6, over every protocol)
- The codec names messages that affect later turns (`affects_later`); they are passed to it again.
- Cache marks that the options request are in the last turns; the kept bytes never contain one.
- `max_tokens` is not part of a turn. Near the window it is another one in each request.    (law 6, over every protocol)
- Everything is encoded anew if the other options, tools or instructions differ from the last request (in a type or the
  order of keys, too), if the conversation has its own cache marks, or if it has tool calls but no tools.
- Threads take turns, and an exception drops the kept bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import takewhile
from operator import is_
from threading import RLock
from typing import Final, NamedTuple, cast, final

import msgspec
from msgspec.structs import replace

from segue.conversation.context import Context, Options, Prompt, Tool, is_known_prefix
from segue.conversation.exact import is_exact
from segue.conversation.messages import Message, has_calls
from segue.models.catalogue import get_model
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.projection.projector import Projection, Projector, prompt_of
from segue.projection.workspace.ownership import known_account
from segue.protocols.api import resolve_endpoint
from segue.protocols.kit.json_values import Block, Wire
from segue.protocols.registry import get_protocol
from segue.requests.appending import Known, fit_appended
from segue.requests.binding.bind import Sender, assistant_turns, prefix_form
from segue.requests.binding.binder import Binder
from segue.requests.binding.digests import START, ReplyTurn, TurnDigests
from segue.requests.prepare import Request, first_stamp, prepare

_ENCODER: Final = msgspec.json.Encoder()


_GAP_BYTE: Final = b"\0"
_GAP: Final = msgspec.Raw(_GAP_BYTE)
"""A placeholder in a body for the turns; JSON never contains this byte."""


class _Seam(NamedTuple):
    """Where a history can be split: counts of messages, bytes of turns, repeated messages and replies, and a digest."""

    messages: int
    size: int
    repeated_messages: int
    replies: int
    digest: bytes


class _Rest(NamedTuple):
    """What comes after the kept messages in a request: messages, as written and with all reasoning; their turns."""

    messages: Sequence[Message]
    given: Sequence[Message]
    turns: Sequence[bytes]
    digests: TurnDigests | None


@final
class _Kept:
    """The encoded prefix of a request, and the messages it encodes."""

    __slots__ = (
        "bare",
        "cuts",
        "digest",
        "frame",
        "key",
        "lead",
        "messages",
        "repeated_messages",
        "replies",
        "rest",
        "searched",
        "seams",
        "source",
        "turns",
        "words",
    )

    def __init__(self, frame: Prompt) -> None:
        self.frame = frame
        """Everything in the request but the messages. If it differs, every turn may differ."""
        self.key = object()
        """Represents the frame, but for `max_tokens`."""
        self.bare = _with(frame, (), tools=())
        self.lead = 0
        """How many turns come before the first message: the system prompt may be one."""
        self.messages: list[Message] = []
        self.source: tuple[Message, ...] = ()
        """The messages of the last request, which begin with those."""
        self.turns = bytearray()
        """The turns of `messages` as JSON, separated by commas."""
        self.cuts = 0
        """How often turns were dropped."""
        self.searched = 0
        self.words = False
        """How many bytes of the turns were searched for what decides about the version of the API; if it is there."""
        self.repeated_messages: tuple[Message, ...] = ()
        """The messages that affect later turns."""
        self.digest: bytes = START
        self.replies: list[ReplyTurn] = []
        """The digest of the kept turns, and their assistant turns, where the target binds reasoning to its prefix."""
        self.rest: _Rest | None = None
        """What comes after the kept messages in the last request."""
        self.seams: list[_Seam] = [_Seam(0, 0, 0, 0, START)]
        """Where the history can be split."""

    def continues(self, frame: Prompt) -> bool:
        """Whether the kept turns are those of a request with this frame, which is then the frame."""
        if is_exact(self.frame, frame):
            return True
        limit = self.frame.options.max_tokens
        if not is_exact(self.frame, replace(frame, options=replace(frame.options, max_tokens=limit))):
            return False
        self.frame = frame
        return True

    def keep_common(self, context: Context) -> None:
        """Drop the kept messages that are not a prefix of the history, back to a place where it can be split.

        A user message after a tool result may share its turn, so after an edit the last split may no longer be valid.
        """
        kept, messages = len(self.messages), context.messages
        is_prefix = is_known_prefix(self.source, context)
        is_prefix = is_prefix or (len(messages) >= kept and all(map(is_, self.messages, messages)))
        common = kept if is_prefix else sum(1 for _ in takewhile(bool, map(is_, self.messages, messages)))
        while self.seams[-1].messages > common or not _is_seam(messages, self.seams[-1].messages):
            self.seams.pop()
        seam = self.seams[-1]
        if seam.messages == kept:
            return
        self.cuts += 1
        self.searched = min(self.searched, seam.size)
        self.repeated_messages = self.repeated_messages[: seam.repeated_messages]
        self.digest = seam.digest
        self.rest = None
        del self.messages[seam.messages :], self.turns[seam.size :], self.replies[seam.replies :]

    def add(
        self,
        messages: Sequence[Message],
        turns: bytes,
        repeated_messages: Sequence[Message],
        digest: bytes,
        replies: Sequence[ReplyTurn],
    ) -> None:
        """Keep more messages and their turns."""
        self.messages += messages
        self.repeated_messages += tuple(repeated_messages)
        if turns and self.turns:
            self.turns += b","
        self.turns += turns
        self.digest = digest
        self.replies += replies
        self.seams.append(
            _Seam(len(self.messages), len(self.turns), len(self.repeated_messages), len(self.replies), digest)
        )


class _NotAList(Exception):
    """The conversation is written with something else in place of the list of turns, such as the text of one."""


class Outbox:
    """An incremental `prepare` for one model: pass it the grown conversation, and it encodes only the new messages.

    The result equals `prepare(context, model, options=options, policy=policy)`, byte for byte. Messages are recognized
    by identity, so after an edit the edited message and all later ones are encoded again.

    Threads may share an outbox: their calls run one after the other. For speed use one outbox for each conversation,
    because only the last one is kept. After an exception, also one of `Policy.same_model`, the next call gives what it
    would have given without it.
    """

    def __init__(self, model: Model | str, policy: Policy | None = None) -> None:
        self._lock = RLock()
        self._is_busy = False
        self._model = get_model(model)
        self._policy = policy
        self._projector = Projector(self._model, policy)
        self._endpoint = resolve_endpoint(self._model)
        self._codec = get_protocol(self._model.protocol)
        self._turns_key = self._codec.turns_key or ""
        self._kept: _Kept | None = None
        self._unsearched: Callable[[], bytes | None] | None = None
        """Returns the bytes of the last request that decide about the version of the API.

        None if all have to be read.
        """
        self._known = Known()
        form = prefix_form(self._codec, self._endpoint)
        self._binder = None if form is None else Binder(form, self._endpoint, policy)
        key = self._endpoint.rules.cache_mark_key
        self._mark = None if key is None else f'"{key}"'.encode()

    def prepare(
        self,
        context: Context,
        *,
        options: Options | None = None,
        account: str | None = None,
        refused: AbstractSet[str] = frozenset(),
    ) -> Request:
        """Make a request from the whole conversation. For `account` and `refused` see `segue.prepare`.

        Raises:
            EmptyConversation: the conversation has no content to send.
            ProjectionRefused: the policy refuses a necessary change.
        """
        with self._lock:
            if self._is_busy:  # `Policy.same_model` asks while it is being asked: what is kept must not change now
                return prepare(
                    context, self._model, options=options, policy=self._policy, account=account, refused=refused
                )
            self._is_busy = True
            try:
                return self._prepare(context, options, account, frozenset(refused))
            finally:
                self._is_busy = False

    def _prepare(
        self, context: Context, options: Options | None, account: str | None, refused: frozenset[str]
    ) -> Request:
        if account is not None:
            account = known_account(context.messages, account)

        def projecting(shown: Context, asked: Options | None) -> Projection:
            return self._projector.project_for(shown, options=asked, account=account, refused=refused)

        projection, remembered = fit_appended(
            context, projecting, self._endpoint, options=options, policy=self._policy, known=self._known
        )
        binder = self._binder
        if binder is not None:
            binder.begin(context, projection, account, refused)
            projection = binder.projection
        # A wire whose turns are not in one list has nothing that could be kept: the body is written as a whole.
        try:
            content = self._write(projection) if self._turns_key else None
        except _NotAList:
            return prepare(context, self._model, options=options, policy=self._policy, account=account, refused=refused)
        if binder is None:
            stamp = first_stamp(Sender(self._endpoint, account, refused), projection.context.messages)
            return Request(
                projection,
                self._endpoint,
                self._codec,
                content,
                stamp=stamp,
                given=context,
                remembered=remembered,
                unsearched=self._unsearched,
            )
        if not binder.is_settled:  # other reasoning has to be left out than from the request before
            binder.settle()
            content = self._write(binder.projection)
            if not binder.is_settled:
                return prepare(
                    context, self._model, options=options, policy=self._policy, account=account, refused=refused
                )
        return Request(
            binder.projection,
            self._endpoint,
            self._codec,
            content,
            stamp=binder.stamp(),
            given=context,
            remembered=remembered,
            unsearched=self._unsearched,
        )

    def reset(self) -> None:
        """Drop the kept bytes and free their memory; the next request is encoded in full."""
        with self._lock:
            self._projector.reset()
            self._kept = None
            if self._binder is not None:
                self._binder.reset()

    def _write(self, projection: Projection) -> bytes:
        try:
            return self._write_after_kept(projection)
        except BaseException:
            self._kept = None  # it may be half-written
            raise

    def _write_after_kept(self, projection: Projection) -> bytes:
        prompt = prompt_of(projection, self._endpoint)
        messages = prompt.context.messages
        frame = _with(prompt, ())
        kept = self._kept
        if kept is None or not kept.continues(frame):
            kept = self._begin(frame)
        kept.keep_common(prompt.context)
        self._keep_answered(kept, messages)
        content = self._encode_after(kept, messages) if kept.messages else None
        if content is None:  # nothing is kept, or a cache mark belongs into the kept turns
            content = self._encode_after(self._begin(frame), messages)
        if content is None or self._kept is None:
            raise AssertionError("a full encoding always succeeds")
        self._kept.source = messages
        return content

    def _begin(self, frame: Prompt) -> _Kept:
        kept = self._kept = _Kept(frame)
        kept.lead = len(self._turns(kept, ()))
        return kept

    def _encode_after(self, kept: _Kept, messages: Sequence[Message]) -> bytes | None:
        """Encode the new messages after the kept turns, and keep those that no later request can change."""
        new = messages[len(kept.messages) :]
        shown = _with(kept.frame, (*kept.repeated_messages, *new))
        body = self._codec.encode_request(shown, self._endpoint)
        turns = self._list_in(body)
        repeated = len(self._turns(kept, kept.repeated_messages)) if kept.repeated_messages else kept.lead
        fresh = turns[repeated:]
        if kept.turns and self._requests_marks(kept.frame) and not self._is_marked(_ENCODER.encode(fresh)):
            return None
        encoded = [*map(_ENCODER.encode, fresh)]
        digested = None
        if self._binder is not None:
            digested = self._digest(self._binder, kept, body, fresh)
        new_turns = b",".join(encoded)
        body[self._turns_key] = [*turns[: kept.lead], _GAP] if kept.turns or new_turns else turns[: kept.lead]
        head, _, foot = _ENCODER.encode(body).partition(_GAP_BYTE)
        between = b"," if kept.turns and new_turns else b""
        content = b"".join((head, kept.turns, between, new_turns, foot))
        self._unsearched = partial(self._find_unsearched, kept, kept.cuts, (head, new_turns, foot))
        self._settle(kept, new, fresh, encoded, digested)
        return content

    def _find_unsearched(self, kept: _Kept, cuts: int, parts: tuple[bytes, ...]) -> bytes | None:
        """Return the parts of a request that are not kept, if the kept turns do not decide about the version."""
        versions = self._codec.versions
        with self._lock:
            if versions is None or cuts != kept.cuts:  # other turns may be kept now
                return None
            if not kept.words:
                kept.words = versions.has_words(kept.turns[kept.searched :])
                kept.searched = len(kept.turns)
            return None if kept.words else b"".join(parts)

    def _digest(self, binder: Binder, kept: _Kept, body: Wire, fresh: list[Block]) -> TurnDigests:
        """Digest the new turns, and choose the reasoning that is sent."""
        count, size = len(kept.messages), 0
        new, rest = binder.given_messages[count:], kept.rest
        digests = None if rest is None else rest.digests
        if rest is not None and digests is not None:
            size = len(rest.given)
            if len(new) <= size or new[size].role != "assistant" or not all(map(is_, rest.given, new)):
                digests, size = None, 0  # a message more may be in the last turn
        if digests is None:
            digests = TurnDigests(binder.form, kept.digest)
            digests.add(fresh, assistant_turns(new, count))
        else:
            digests = digests.followed_by(fresh[len(digests) :], assistant_turns(new[size:], count + size))
        binder.choose(body, kept.key, kept.replies, digests)
        return digests

    def _keep_answered(self, kept: _Kept, messages: Sequence[Message]) -> None:
        """Keep what comes after the kept messages in the last request, if the model has answered it since."""
        rest, start = kept.rest, len(kept.messages)
        if rest is None or self._requests_marks(kept.frame):  # the marks are in these turns
            return
        end = start + len(rest.messages)
        given = messages if self._binder is None else self._binder.given_messages
        if (
            _is_answered(messages, end)
            and all(map(is_, rest.messages, messages[start:end]))
            and all(map(is_, rest.given, given[start:end]))
            and _can_keep(kept.frame, rest.messages)
        ):
            self._keep(kept, rest.messages, rest.turns, rest.digests)
            kept.rest = None

    def _settle(
        self,
        kept: _Kept,
        new: Sequence[Message],
        fresh: Sequence[Block],
        encoded: Sequence[bytes],
        digested: TurnDigests | None,
    ) -> None:
        """Keep the new turns that have an answer; the others stay at hand, in case that they get one."""
        known = kept.rest
        given = new if self._binder is None else self._binder.given_messages[len(kept.messages) :]
        kept.rest = _Rest(new, given, encoded, digested)
        seam = _find_seam(new)
        done, rest = new[:seam], new[seam:]
        if not done or not _can_keep(kept.frame, done):
            return
        replies = 0
        if digested is None:
            if known is not None and len(known.messages) == seam and all(map(is_, known.messages, new)):
                at = len(known.turns)
            else:
                at = len(encoded) - (len(self._turns(kept, rest)) - kept.lead)
        else:  # each assistant message is a turn there, and the rest begins with one
            first = len(kept.messages) + seam
            replies = sum(reply.place < first for reply in digested.replies)
            at = [at for at, turn in enumerate(fresh) if turn["role"] == "assistant"][replies]
        turns = encoded[:at]
        if self._requests_marks(kept.frame) and not kept.frame.anchored and any(map(self._is_marked, turns)):
            return  # the conversation has its own cache marks, whose places depend on all of it
        self._keep(kept, done, turns, digested, replies)
        behind = None if digested is None else digested.behind(at, replies)
        kept.rest = _Rest(rest, given[seam:], encoded[at:], behind)

    def _keep(
        self,
        kept: _Kept,
        messages: Sequence[Message],
        encoded: Sequence[bytes],
        digested: TurnDigests | None,
        replies: int | None = None,
    ) -> None:
        """Keep some messages and their turns; of `digested`, the first turns and replies are theirs."""
        turns, affects_later = b",".join(encoded), self._codec.affects_later
        repeated = () if affects_later is None else tuple(filter(affects_later, messages))
        if digested is None:
            kept.add(messages, turns, repeated, START, ())
        else:
            kept.add(messages, turns, repeated, digested.digest(len(encoded)), digested.replies[:replies])

    def _turns(self, kept: _Kept, messages: Sequence[Message]) -> list[Block]:
        """Encode some messages, to count their turns."""
        return self._list_in(self._codec.encode_request(_with(kept.bare, messages), self._endpoint))

    def _list_in(self, body: Wire) -> list[Block]:
        turns = body[self._turns_key]
        if not isinstance(turns, list):
            raise _NotAList
        return cast("list[Block]", turns)

    def _requests_marks(self, frame: Prompt) -> bool:
        return self._mark is not None and frame.options.cache_retention in ("short", "long")

    def _is_marked(self, turns: bytes) -> bool:
        return self._mark is not None and self._mark in turns


def _with(prompt: Prompt, messages: Sequence[Message], tools: tuple[Tool, ...] | None = None) -> Prompt:
    context = prompt.context
    changed = replace(context, messages=tuple(messages), tools=context.tools if tools is None else tools)
    return replace(prompt, context=changed)


def _is_seam(messages: Sequence[Message], at: int) -> bool:
    """Whether a history can be split here: at either end, or before an assistant turn."""
    return at in (0, len(messages)) or messages[at].role == "assistant"


def _find_seam(messages: Sequence[Message]) -> int:
    """Find the last place where a history can be split: before an assistant turn that has a reply.

    A turn with a reply no longer changes, and the turns after it include those that get cache marks.
    """
    is_answered = False
    for at in range(len(messages) - 1, 0, -1):
        role = messages[at].role
        if role == "assistant" and is_answered and messages[at - 1].role in ("user", "toolResult"):
            return at
        is_answered = is_answered or role in ("user", "toolResult")
    return 0


def _is_answered(messages: Sequence[Message], at: int) -> bool:
    """Whether a history can be split here, as `_find_seam` does it."""
    if not at < len(messages) - 1 or messages[at].role != "assistant":
        return False
    is_open = messages[at - 1].role in ("user", "toolResult")
    return is_open and any(messages[index].role in ("user", "toolResult") for index in range(at + 1, len(messages)))


def _can_keep(frame: Prompt, messages: Sequence[Message]) -> bool:
    """Whether turns can be kept: a request with calls but no tools is written differently."""
    return bool(frame.context.tools) or not has_calls(messages)
