"""What was read of the conversations that clients send whole with each request: only what is new is read again.

A client repeats its history with each step. What is known of a request is kept with the bytes that it was read from: a
request that begins with the same bytes, of the same tenant and under the same configuration, begins with the same
messages, which are also the same objects. So an outbox finds them projected and encoded.

A history is split where an earlier request ended: there a reply follows. Clients move their cache marks, so the last
turns of a request may differ from those of the one before it; then the split is at the end of an earlier one.

A conversation that is new often begins with instructions and tools that are known, of another conversation of the same
client. Then these are not read again.

Only equal bytes are taken for equal. What is kept is bounded, for each tenant and in all, and forgotten an hour after
its states were looked up.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping
from time import monotonic
from typing import Final, cast, final

import msgspec
from msgspec.structs import replace

from segue.calls.reading import HALF_CHARACTERS, Call, find_protocol, read_further
from segue.client.session.outboxes import Outboxes
from segue.conversation.exact import is_exact
from segue.conversation.messages import Message
from segue.envelope.keys import Chain
from segue.gateway.config import LimitsTable
from segue.gateway.intake import read_limited
from segue.gateway.runtime import Runtime
from segue.projection.report import Report
from segue.projection.workspace.workspace import KnownTools
from segue.protocols.registry import get_protocol

_DECODE: Final = msgspec.json.Decoder().decode
_DECODE_FIELDS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_DECODE_ITEMS: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
_SMALLEST: Final = 4_000
"""Bytes of a body that is worth to be kept."""
_ALIKE: Final = 8
"""Histories with the same first turn that are kept."""
_SEAMS: Final = 8
"""Ends of earlier requests that are kept of a history."""
_MARKED: Final = 3
"""Requests in whose last turns a client may move its cache marks."""
_LONGEST: Final = 3600.0
"""Seconds after which the states of a history are looked up again."""
_HEADS: Final = 64
"""Bodies without turns that are kept, in all."""
_HEADS_ALIKE: Final = 4
"""Those that were sent to one endpoint by one tenant."""
_LARGEST_HEAD: Final = 200_000
_TENANT_SHARE: Final = 0.25
_MEGA: Final = 1_000_000


@final
class Seam(msgspec.Struct, frozen=True):
    """The end of a request in a history: how many turns and messages it had, and what was found for them.

    `whole` is the number of its messages with the results of look-ups that the client never saw. `is_unchanged`:
    whether the turns are as the model itself wrote them; None if that was not asked.
    """

    turns: int
    messages: int
    whole: int
    chain: Chain
    report: Report
    restored: int
    is_unchanged: bool | None


@final
class RequestHistory:
    """A request as it was read, with the bytes of its turns and of what is next to them."""

    __slots__ = ("call", "conversation", "fields", "found_at", "outboxes", "runtime", "seams", "size", "turns", "whole")

    def __init__(
        self,
        text: Text,
        call: Call,
        runtime: Runtime,
        whole: tuple[Message, ...],
        seams: tuple[Seam, ...],
        *,
        outboxes: Outboxes,
        conversation: str,
        found_at: float,
    ) -> None:
        self.fields: Mapping[str, bytes] = text.fields
        self.turns: tuple[bytes, ...] = text.turns
        self.call: Call = call
        self.runtime: Runtime = runtime
        self.whole: tuple[Message, ...] = whole
        """The messages with their states."""
        self.seams: tuple[Seam, ...] = seams
        self.outboxes: Outboxes = outboxes
        self.conversation: str = conversation
        self.found_at: float = found_at
        self.size: int = text.size


@final
class Text(msgspec.Struct, frozen=True):
    """The body of a request as JSON in pieces: its turns, and what is next to them, in order."""

    place: tuple[str, str, bytes]
    fields: Mapping[str, bytes]
    turns: tuple[bytes, ...]
    size: int


@final
class BodyHead:
    """A body without its turns, as it was read."""

    __slots__ = ("call", "checked", "fields", "is_checked", "names_nothing", "runtime", "tools")

    def __init__(self, fields: Mapping[str, bytes], call: Call, runtime: Runtime) -> None:
        self.fields: Mapping[str, bytes] = fields
        self.call: Call = call
        self.runtime: Runtime = runtime
        self.tools: KnownTools = []
        self.is_checked: bool = False
        """Whether no object in it has two keys of the same name."""
        self.names_nothing: bool = False
        """Whether it was searched for names of objects at the provider, and has none."""
        self.checked: tuple[bytes, ...] = ()
        """The turns of the last request with it that was checked and searched like that, and has none."""

    def count_checked(self, turns: tuple[bytes, ...]) -> int:
        """Return how many of the first turns of a request are those that were checked."""
        count = 0
        for checked, turn in zip(self.checked, turns, strict=False):
            if checked != turn:
                break
            count += 1
        return count


@final
class ReadRequest(msgspec.Struct, frozen=True):
    """A request that was read. `text` is None if it cannot be kept.

    `history` is the one that it begins with; `head` is what it has next to its turns, if only that is known.
    """

    call: Call
    text: Text | None = None
    history: RequestHistory | None = None
    seam: Seam | None = None
    head: BodyHead | None = None


class Histories:
    """The histories of all tenants; those that were not used for the longest time are forgotten."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str, bytes], tuple[RequestHistory, ...]] = {}
        self._used: dict[str, OrderedDict[RequestHistory, tuple[str, str, bytes]]] = {}
        self._sizes: dict[str, int] = {}
        self._heads: OrderedDict[tuple[str, str], tuple[BodyHead, ...]] = OrderedDict()

    @property
    def held_bytes(self) -> int:
        """The bytes of the bodies that are kept."""
        return sum(self._sizes.values())

    def held_of(self, tenant: str) -> int:
        """Return how much of that is one tenant's."""
        return self._sizes.get(tenant, 0)

    def read(  # noqa: PLR0917 - a request as `read_call` takes it, whose it is, and how it is read
        self, tenant: str, runtime: Runtime, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> ReadRequest:
        """Read a request.

        Raises:
            Refused: it has too many values or messages.
            CallError: it cannot be read.
        """
        limits, catalogue = runtime.config.limits, runtime.router.catalogue
        is_kept = _SMALLEST <= len(body) <= limits.remembered_megabytes * _MEGA * _TENANT_SHARE
        protocol = find_protocol(method, path, headers) if is_kept else None
        text = None if protocol is None else _split((tenant, f"{method} {path}"), protocol, body, limits)
        found = None if text is None else self._find(text, runtime)
        if text is not None:
            unseen = body if found is None else b"".join(text.turns[found[1].turns :])
            if HALF_CHARACTERS.search(unseen):
                text = found = None
        if text is not None and found is not None:
            history, seam = found
            call = _read_new(history, seam, text, runtime)
            if call is not None:
                turns = history.turns[: seam.turns] + text.turns[seam.turns :]
                text = replace(text, fields=history.fields, turns=turns)
                return ReadRequest(call, text, history, seam)
        elif text is not None and len(body) < min(limits.values, limits.messages, _LARGEST_HEAD):
            head = self._find_head(text, runtime)
            call = None if head is None else _read_turns(head.call, text, runtime)
            if head is not None and call is not None:
                return ReadRequest(call, replace(text, fields=head.fields), head=head)
            call = read_limited(method, path, headers, body, catalogue=catalogue, limits=limits)
            return ReadRequest(call, text, head=self._keep_head(text, call, runtime))
        return ReadRequest(read_limited(method, path, headers, body, catalogue=catalogue, limits=limits), text)

    def _find_head(self, text: Text, runtime: Runtime) -> BodyHead | None:
        known = self._heads.get(text.place[:2], ())
        return next((head for head in known if head.runtime is runtime and _has_fields(head, text)), None)

    def _keep_head(self, text: Text, call: Call, runtime: Runtime) -> BodyHead | None:
        """Keep a body without its turns, if these are read alike alone."""
        prompt, body, key = call.prompt, call.body, get_protocol(call.body_protocol).turns_key
        if prompt is None or body is None or key is None or key not in body or not prompt.context.tools:
            return None
        bare = replace(prompt, context=replace(prompt.context, messages=()))
        empty = replace(call, prompt=bare, body={**body, key: []})
        again = _read_turns(empty, text, runtime)
        if again is None or not is_exact(again.prompt, prompt):
            return None
        place = text.place[:2]
        head = BodyHead(text.fields, empty, runtime)
        self._heads[place] = (head, *self._heads.get(place, ())[: _HEADS_ALIKE - 1])
        self._heads.move_to_end(place)
        while len(places := list(self._heads)) > _HEADS // _HEADS_ALIKE:
            counts = Counter(tenant for tenant, _ in places)
            largest = max(counts.values())
            self._heads.pop(next(each for each in places if counts[each[0]] == largest), None)
        return head

    def _find(self, text: Text, runtime: Runtime) -> tuple[RequestHistory, Seam] | None:
        """Find the history that a request begins with: the one with the most turns in common."""
        best: tuple[RequestHistory, Seam] | None = None
        oldest = monotonic() - _LONGEST
        same: Mapping[str, bytes] | None = None  # most histories have the fields of another one
        for history in self._places.get(text.place, ()):
            if history.runtime is not runtime or history.found_at < oldest:
                continue
            if history.fields is not same:
                if not _has_fields(history, text):
                    continue
                same = history.fields
            for seam in reversed(history.seams):
                if best is not None and seam.turns <= best[1].turns:
                    break
                if history.turns[: seam.turns] == text.turns[: seam.turns]:
                    best = history, seam
                    break
        return best

    def keep(
        self, read: ReadRequest, runtime: Runtime, whole: tuple[Message, ...], seam: Seam, conversation: str
    ) -> None:
        """Keep a request, in place of the one that it continues. `seam` is its end, `whole` its restored messages."""
        text, before = read.text, read.history
        limits = runtime.config.limits
        most = limits.remembered_megabytes * _MEGA
        if text is None:
            return
        seams, is_newest = (seam,), False
        if before is not None and read.seam is not None:
            at = before.seams.index(read.seam)
            known = before.seams[: at + 1]
            seams = known if known[-1].turns == seam.turns else (*known[1 - _SEAMS :], seam)
            is_newest = at + _MARKED >= len(before.seams)
        history = RequestHistory(
            text,
            read.call,
            runtime,
            whole,
            seams,
            outboxes=Outboxes() if before is None else before.outboxes,
            conversation=conversation,
            found_at=monotonic() if before is None else before.found_at,
        )
        if before is not None and is_newest:  # else another conversation began like this one
            self._drop(text.place[0], before)
        self._add(text.place, history)
        tenant = text.place[0]
        while self._sizes[tenant] > most * _TENANT_SHARE:
            self._drop(tenant, next(iter(self._used[tenant])))
        while self.held_bytes > most:
            largest = max(self._sizes, key=self._sizes.__getitem__)
            self._drop(largest, next(iter(self._used[largest])))

    def forget(self, conversation: str, tenant: str | None) -> None:
        """Drop a conversation; of any tenant with None. Bodies without turns are dropped with any conversation."""
        for place in [place for place in self._heads if tenant in (None, place[0])]:
            del self._heads[place]
        for name, used in tuple(self._used.items()):
            for history in tuple(used) if tenant in (None, name) else ():
                if history.conversation == conversation:
                    self._drop(name, history)

    def _add(self, place: tuple[str, str, bytes], history: RequestHistory) -> None:
        alike = self._places.get(place, ())
        if len(alike) >= _ALIKE:
            self._drop(place[0], alike[-1])
            alike = self._places.get(place, ())
        self._places[place] = (history, *alike)
        self._used.setdefault(place[0], OrderedDict())[history] = place
        self._sizes[place[0]] = self._sizes.get(place[0], 0) + history.size

    def _drop(self, tenant: str, history: RequestHistory) -> None:
        used = self._used.get(tenant)
        place = None if used is None else used.pop(history, None)
        if place is None:
            return  # another request that continued it was faster
        self._sizes[tenant] -= history.size
        left = tuple(each for each in self._places[place] if each is not history)
        if left:
            self._places[place] = left
        else:
            del self._places[place]
        if not self._used[tenant]:
            del self._used[tenant], self._sizes[tenant]


def _split(given: tuple[str, str], protocol: str, body: bytes, limits: LimitsTable) -> Text | None:
    """Take a body apart; None if it is not one whose turns can be kept. `given`: the tenant, and where it was sent."""
    record = get_protocol(protocol)
    if not record.reads_apart or record.turns_key is None:
        return None
    try:
        fields = _DECODE_FIELDS(body)
        turns = tuple(map(bytes, _DECODE_ITEMS(fields.pop(record.turns_key))))
    except (msgspec.DecodeError, KeyError, UnicodeError, RecursionError):
        return None
    if not turns or len(turns) > limits.messages:
        return None
    place = (given[0], f"{protocol} {given[1]}", turns[0])
    return Text(place, {key: bytes(value) for key, value in fields.items()}, turns, len(body))


def _has_fields(known: RequestHistory | BodyHead, text: Text) -> bool:
    return known.fields == text.fields and list(known.fields) == list(text.fields)


def _read_turns(known: Call, text: Text, runtime: Runtime) -> Call | None:
    """Read the turns of a request whose other fields are known."""
    try:
        items = [cast("object", _DECODE(turn)) for turn in text.turns]
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return read_further(known, 0, 0, items, runtime.router.catalogue)


def _read_new(history: RequestHistory, seam: Seam, text: Text, runtime: Runtime) -> Call | None:
    try:
        items = [cast("object", _DECODE(turn)) for turn in text.turns[seam.turns :]]
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return read_further(history.call, seam.turns, seam.messages, items, runtime.router.catalogue)
