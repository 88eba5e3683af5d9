"""The state that is passed from one segment of a conversation to the next."""

from __future__ import annotations

from collections.abc import Iterable

from segue.conversation.content import SystemContent
from segue.protocols.kit.facts import FunctionName


class PrefixState:
    """What the passes need to know about the messages before a segment.

    A fork reads the state of its parent and writes only its own, so that the last segment can be processed and then
    discarded.
    """

    __slots__ = (
        "_given_ids",
        "_made_ids",
        "_parent",
        "called",
        "cycle_begins",
        "has_begun",
        "has_references",
        "hoisted",
        "item_ids",
        "last_place",
        "last_role",
        "loaded",
        "native_ids",
        "native_name",
        "provider",
        "standing",
        "system_prompt",
        "unanswered",
        "waiting",
        "wire_names",
    )

    def __init__(self, parent: PrefixState | None = None) -> None:
        self._parent = parent
        self._given_ids: dict[str, int] = {}
        self._made_ids: set[str] = set()
        self.wire_names: dict[str, str] = {} if parent is None else dict(parent.wire_names)
        """Given tool name -> name on the wire, for the names that were changed."""
        self.called: dict[str, None] = {} if parent is None else dict(parent.called)
        """The wire names of all tools that the conversation calls, in order."""
        self.loaded: dict[FunctionName, None] = {} if parent is None else dict(parent.loaded)
        """Deferred functions that calls of other models name, so that they have to be sent in full."""
        self.provider: str | None = None if parent is None else parent.provider
        """The provider of the last assistant turn. Messages after it were most likely written for that provider."""
        self.system_prompt: str | tuple[SystemContent, ...] | None = None if parent is None else parent.system_prompt
        self.hoisted: bool = parent is not None and parent.hoisted
        """The system prompt to send, and whether it was made from leading system messages."""
        self.has_begun: bool = parent is not None and parent.has_begun
        """Whether a message is sent, or a request of instructions alone was answered: later instructions do not become
        part of the system prompt."""
        self.has_references: bool = parent is not None and parent.has_references
        """Whether a message names a stored item, which may be the call of a later result."""
        self.last_role: str | None = None if parent is None else parent.last_role
        self.last_place: int | None = None if parent is None else parent.last_place
        """The role of the last projected message, and the index of the last given one that was kept."""
        self.cycle_begins: bool | None = None if parent is None else parent.cycle_begins
        """Whether the first turn of the current tool cycle begins with thinking; None between cycles."""

        self.waiting: dict[str, str] = {} if parent is None else dict(parent.waiting)
        """Native calls that the provider has not finished at the end: id -> kind of block."""
        self.standing: frozenset[tuple[str, str]] = frozenset() if parent is None else parent.standing
        """The kinds and ids of native calls that are sent without a result, which may still come."""
        self.unanswered: set[str] = set()
        """The ids of native calls that were replaced because they have no result."""
        self.native_ids: set[str] = set()
        """The ids of native calls that are sent."""
        self.item_ids: set[str] = set()
        """The ids of items that are sent."""
        self.native_name: str | None = None if parent is None else parent.native_name
        """The name of a tool that native calls use."""

    def fork(self) -> PrefixState:
        """Return a state that continues from this one without changing it."""
        return PrefixState(self)

    def join(self, fork: PrefixState) -> None:
        """Take over what a fork of this state found; its segment has become part of the prefix."""
        self._given_ids.update(fork._given_ids)
        self._made_ids |= fork._made_ids
        self.unanswered |= fork.unanswered
        self.native_ids |= fork.native_ids
        self.item_ids |= fork.item_ids
        self.wire_names, self.called, self.loaded = fork.wire_names, fork.called, fork.loaded
        self.provider, self.system_prompt, self.hoisted = fork.provider, fork.system_prompt, fork.hoisted
        self.has_begun, self.has_references = fork.has_begun, fork.has_references
        self.last_role, self.last_place, self.cycle_begins = fork.last_role, fork.last_place, fork.cycle_begins
        self.waiting, self.standing, self.native_name = fork.waiting, fork.standing, fork.native_name

    # -- native calls --------------------------------------------------------------------------------------------------

    def made_native(self, call_id: str) -> bool:
        """Whether an earlier segment has a native call of this id, sent or replaced because it has no result."""
        if call_id in self.unanswered or call_id in self.native_ids:
            return True
        return self._parent is not None and self._parent.made_native(call_id)

    def sent_native(self, call_id: str) -> bool:
        """Whether a native call of this id is sent."""
        return call_id in self.native_ids or (self._parent is not None and self._parent.sent_native(call_id))

    def has_item(self, item_id: str) -> bool:
        """Whether an item of this id is sent."""
        return item_id in self.item_ids or (self._parent is not None and self._parent.has_item(item_id))

    def are_new_items(self, item_ids: set[str]) -> bool:
        """Whether no item of these ids is sent."""
        return self.item_ids.isdisjoint(item_ids) and (self._parent is None or self._parent.are_new_items(item_ids))

    # -- ids of calls --------------------------------------------------------------------------------------------------

    def made_call(self, call_id: str) -> bool:
        """Whether an earlier segment has a call of this given id: a result for it changes the settled prefix."""
        return call_id in self._given_ids or (self._parent is not None and self._parent.made_call(call_id))

    def note_unsent(self, call_id: str) -> None:
        """Record a call that is not sent."""
        self._given_ids.setdefault(call_id, self.seen(call_id))

    def count_id(self, call_id: str) -> int:
        """Count a call; return how many calls of this given id were sent before it."""
        before = self._given_ids.get(call_id)
        if before is None:
            before = 0 if self._parent is None else self._parent.seen(call_id)
        self._given_ids[call_id] = before + 1
        return before

    def count_new_ids(self, call_ids: list[str]) -> bool:
        """Count ids if all of them are new and different; otherwise count none and return False."""
        distinct = dict.fromkeys(call_ids, 1)
        if len(distinct) != len(call_ids) or not self.are_new(distinct.keys()):
            return False
        if self._given_ids:
            self._given_ids.update(distinct)
        else:
            self._given_ids = distinct
        return True

    def use_ids(self, wire_ids: Iterable[str]) -> None:
        """Record ids that were generated."""
        self._made_ids.update(wire_ids)

    def is_used(self, wire_id: str) -> bool:
        """Whether an id is already used on the wire: it was generated, or it was given and kept."""
        if wire_id in self._made_ids or self._given_ids.get(wire_id):
            return True
        return self._parent is not None and self._parent.is_used(wire_id)

    def seen(self, call_id: str) -> int:
        """Return how many calls of this given id were sent so far."""
        count = self._given_ids.get(call_id)
        if count is None:
            return 0 if self._parent is None else self._parent.seen(call_id)
        return count

    def is_made(self, wire_id: str) -> bool:
        """Whether an id was generated."""
        return wire_id in self._made_ids or (self._parent is not None and self._parent.is_made(wire_id))

    def are_new(self, call_ids: Iterable[str]) -> bool:
        """Whether none of these ids was given or generated so far."""
        if self._given_ids and not self._given_ids.keys().isdisjoint(call_ids):
            return False
        if self._made_ids and not self._made_ids.isdisjoint(call_ids):
            return False
        return self._parent is None or self._parent.are_new(call_ids)
