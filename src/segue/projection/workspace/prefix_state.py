"""What later messages need to know about earlier ones: all that crosses the edge of a settled prefix."""

from __future__ import annotations

from collections.abc import Iterable

from segue.conversation.content import SystemContent


class PrefixState:
    """What was left behind by the stretches before.

    A fork sees what its parent knows and adds to itself alone, so that a tail can be worked on and thrown away.
    """

    __slots__ = (
        "_given_ids",
        "_made_ids",
        "_parent",
        "called",
        "cycle_begins",
        "files",
        "hoisted",
        "images",
        "last_place",
        "last_role",
        "provider",
        "system_prompt",
        "wire_names",
    )

    def __init__(self, parent: PrefixState | None = None) -> None:
        self._parent = parent
        self._given_ids: dict[str, int] = {}
        self._made_ids: set[str] = set()
        self.wire_names: dict[str, str] = {} if parent is None else dict(parent.wire_names)
        """Given tool name -> the name on the wire, for the names that had to change."""
        self.called: dict[str, None] = {} if parent is None else dict(parent.called)
        """The names of all tools the history calls, as they stand on the wire, in order."""
        self.images: int = 0 if parent is None else parent.images
        self.files: int = 0 if parent is None else parent.files
        self.provider: str | None = None if parent is None else parent.provider
        """Who wrote the last assistant turn: whose wire the messages after it were most likely made for."""
        self.system_prompt: str | tuple[SystemContent, ...] | None = None if parent is None else parent.system_prompt
        self.hoisted: bool = parent is not None and parent.hoisted
        """What is left to say of the system prompt, and whether it was made of the first messages."""
        self.last_role: str | None = None if parent is None else parent.last_role
        self.last_place: int | None = None if parent is None else parent.last_place
        """The role of the last message that came out, and the place of the last one that was given."""
        self.cycle_begins: bool | None = None if parent is None else parent.cycle_begins
        """Whether the turn that opened the running tool cycle begins with thinking; None between cycles."""

    def fork(self) -> PrefixState:
        """Go on from here without touching this one."""
        return PrefixState(self)

    # -- ids of calls --------------------------------------------------------------------------------------------------

    def made_call(self, call_id: str) -> bool:
        """Whether a call of this id, as given, was made before: a result for it would un-settle the prefix."""
        return call_id in self._given_ids or (self._parent is not None and self._parent.made_call(call_id))

    def note_unsent(self, call_id: str) -> None:
        """Remember a call that was made and left out."""
        self._given_ids.setdefault(call_id, self.seen(call_id))

    def count_id(self, call_id: str) -> int:
        """Say how many calls of this id were sent before; counts this one."""
        before = self._given_ids.get(call_id)
        if before is None:
            before = 0 if self._parent is None else self._parent.seen(call_id)
        self._given_ids[call_id] = before + 1
        return before

    def count_new_ids(self, call_ids: list[str]) -> bool:
        """Count ids that are all new and differ from each other; if they are not, say so and count none."""
        distinct = dict.fromkeys(call_ids, 1)
        if len(distinct) != len(call_ids) or not self.are_new(distinct.keys()):
            return False
        if self._given_ids:
            self._given_ids.update(distinct)
        else:
            self._given_ids = distinct
        return True

    def use_ids(self, wire_ids: Iterable[str]) -> None:
        """Take ids that were made for the wire."""
        self._made_ids.update(wire_ids)

    def is_used(self, wire_id: str) -> bool:
        """Whether an id stands on the wire already: made for it, or given and, being legal, kept when it first came."""
        if wire_id in self._made_ids or self._given_ids.get(wire_id):
            return True
        return self._parent is not None and self._parent.is_used(wire_id)

    def seen(self, call_id: str) -> int:
        """Say how many calls of this id, as given, were sent so far."""
        count = self._given_ids.get(call_id)
        if count is None:
            return 0 if self._parent is None else self._parent.seen(call_id)
        return count

    def is_made(self, wire_id: str) -> bool:
        """Whether an id was made for the wire."""
        return wire_id in self._made_ids or (self._parent is not None and self._parent.is_made(wire_id))

    def are_new(self, call_ids: Iterable[str]) -> bool:
        """Whether none of these ids was seen or made so far."""
        if self._given_ids and not self._given_ids.keys().isdisjoint(call_ids):
            return False
        if self._made_ids and not self._made_ids.isdisjoint(call_ids):
            return False
        return self._parent is None or self._parent.are_new(call_ids)
