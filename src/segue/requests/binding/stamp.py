"""Stamps: what a request contained, from which the `Sent` of its reply is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

import msgspec

from segue.conversation.marks import marks_of
from segue.conversation.messages import AssistantMessage, Sent
from segue.protocols.kit.reply_form import NO_FAULT, OF_ACCOUNT, OF_MODEL


@final
class Stamp(msgspec.Struct, frozen=True, kw_only=True):
    """What a request contained.

    `newest` is the mark of its last block of reasoning, `asked` are the marks of unknown blocks that the server was
    asked about, `refused` those of blocks that an earlier attempt showed to be refused.
    """

    system: str = ""
    tools: str = ""
    messages: str = ""
    newest: str | None = None
    known: str | None = None
    """The mark of the last block of reasoning before those that the server was asked about."""
    asked: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()
    """The marks of all blocks of a body that is sent as somebody else wrote it, in order."""
    unknown: tuple[str, ...] = ()
    """The marks of blocks about which nothing is remembered: a reply shows that they were accepted."""
    refused: tuple[str, ...] = ()
    account: str | None = None
    key: str | None = None

    def sent(self, message: AssistantMessage, dropped: Mapping[str, str] | None) -> Sent | None:
        """Return what a reply was made after; `dropped` has the marks of what the server did not read, and why.

        It is None if the server says nothing. The result is None if there is nothing to remember.
        """
        if not dropped and self == _EMPTY:
            return None
        accepted: tuple[str, ...] = ()
        before: str | None = None
        refused, newest = self.refused, self.newest
        if self.asked:
            gone = set(self.asked if dropped is None else dropped)
            accepted = tuple(mark for mark in self.asked if mark not in gone)
            refused = (*refused, *(mark for mark in self.asked if mark in gone))
            newest = accepted[-1] if accepted else self.known
            before = self.known
        elif self.passed or self.unknown:
            gone = set(dropped or ())
            accepted = tuple(mark for mark in self.unknown if mark not in gone)
            refused = (*refused, *(mark for mark in self.passed if mark in gone))
            kept = [mark for mark in self.passed if mark not in gone]
            newest = kept[-1] if kept else None
            place = kept.index(accepted[0]) if accepted and kept else 0
            before = kept[place - 1] if place else None
        if dropped and not self.asked:
            refused = (*refused, *_learn(dropped, self.passed, message.model, self.account))
        sent = Sent(
            system=self.system,
            tools=self.tools,
            messages=self.messages,
            before=newest,
            blocks=marks_of(message) if self.messages else (),
            accepted=(before, *accepted) if accepted and before is not None else accepted,
            dropped=refused,
            account=self.account,
            key=self.key,
        )
        return None if sent == _NOTHING else sent


def _learn(dropped: Mapping[str, str], known: tuple[str, ...], model: str, account: str | None) -> list[str]:
    """Return the marks that need not be sent again; those that only this model or account does not read name it."""
    return [
        f"{mark}@{model if reason in OF_MODEL else account or ''}" if reason in OF_MODEL | OF_ACCOUNT else mark
        for mark, reason in dropped.items()
        if mark not in known and reason not in NO_FAULT
    ]


_NOTHING: Final = Sent()
_EMPTY: Final = Stamp()
