"""Binds the requests of a growing conversation: what was decided for a request is kept for the next one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, final

from segue.conversation.context import Context
from segue.conversation.messages import Message
from segue.projection.policy import Policy
from segue.projection.projector import Projection
from segue.projection.report import Change, Report, place_of
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.facts import PrefixForm
from segue.protocols.kit.json_values import Wire
from segue.requests.binding.bind import (
    MakeStamp,
    Sender,
    account_check,
    can_ask,
    make_frame,
    make_stamp,
    strip,
    with_messages,
)
from segue.requests.binding.digests import ReplyTurn, TurnDigests
from segue.requests.binding.run import BoundRun, Frame, choose_run, grow_run
from segue.requests.binding.withholding import note_withheld

_NO_REPLIES: Final[list[ReplyTurn]] = []


def _is_same(known: ReplyTurn, reply: ReplyTurn) -> bool:
    return known is reply or (known.message is reply.message and known.before == reply.before)


@final
class Binder:
    """Chooses the reasoning of one request after the other.

    A request is first encoded without what the request before left out. While a conversation only grows, that is the
    right choice again, and nothing is encoded twice; otherwise `is_settled` is False, and `projection` is another one.
    """

    def __init__(self, form: PrefixForm, endpoint: Endpoint, policy: Policy | None) -> None:
        self.form = form
        self._endpoint = endpoint
        self._policy = policy or Policy()
        self.reset()

    def reset(self) -> None:
        """Forget what was decided."""
        self._run: BoundRun | None = None
        self._frame: tuple[object, Frame] | None = None
        self._kept: list[ReplyTurn] = _NO_REPLIES
        self._kept_count = 0
        self._recent: list[ReplyTurn] = _NO_REPLIES
        """The replies that the run was chosen for: the first ones of `_kept`, and those after them."""
        self._stripped: dict[int, Message] = {}
        self._originals: dict[int, Message] = {}
        """What replaces projected messages, and what they replace, by the index."""
        self._positions: dict[int, tuple[int, ...]] = {}
        self._changes: list[Change] = []

    def begin(self, given: Context, projection: Projection, account: str | None, refused: frozenset[str]) -> None:
        """Begin a request: leave out what was left out of the one before."""
        self._given = given
        self._projected = projection
        self._account = account
        self._refused = refused
        self.is_settled: bool = True
        self.given_messages: tuple[Message, ...] = projection.context.messages
        """The projected messages with all of their reasoning."""
        self.projection: Projection = self._without_withheld() if self._changes else projection

    def _without_withheld(self) -> Projection:
        projection = self._projected
        if not self._changes:
            return projection
        messages, originals = projection.context.messages, self._originals
        count = len(messages)
        stripped = self._stripped
        if any(place >= count or messages[place] is not originals[place] for place in stripped):
            # An edited conversation: what has to be left out is found when it is encoded.
            stripped = {
                place: message
                for place, message in stripped.items()
                if place < count and messages[place] is originals[place]
            }
        changes = sorted([*projection.report.changes, *self._changes], key=place_of)
        return with_messages(projection, stripped, Report(tuple(changes)), self._policy, self._endpoint.model)

    def choose(self, body: Wire, key: object, kept: list[ReplyTurn], digests: TurnDigests) -> None:
        """Choose the reasoning of a request whose turns were encoded.

        `kept` are replies of turns that are kept, `digests` those of the turns after them; `key` represents everything
        in the body but the turns and the limit of tokens.
        """
        new = digests.replies
        self._digests = digests
        frame = self._find_frame(body, key)
        run = self._grown(frame, kept, new)
        if run is None:
            replies = [*kept, *new]
            check = account_check(self._account, self._endpoint, self.given_messages)
            run = choose_run(replies, frame, check)
            self._apply(replies, run)
        self._run, self._frame = run, (key, frame)
        self._kept, self._kept_count, self._recent = kept, len(kept), new
        if run.asked and self.is_settled:
            self.form.ask(body)

    def _find_frame(self, body: Wire, key: object) -> Frame:
        if self._frame is not None and self._frame[0] is key:
            frame = self._frame[1]
            refused = self._projected.refused | self._refused if self._refused else self._projected.refused
            window = self._projected.window
            is_cut = window is not None and bool(window.lean or window.gone)
            if (
                frame.account == self._account
                and frame.refused == refused
                and frame.is_cut == is_cut
                and frame.can_ask == can_ask(self.form, body, self._endpoint)
            ):
                return frame
        return make_frame(self.form, body, self._projected, self._sender())

    def _sender(self) -> Sender:
        return Sender(self._endpoint, self._account, self._refused)

    def _grown(self, frame: Frame, kept: list[ReplyTurn], new: list[ReplyTurn]) -> BoundRun | None:
        """Add the new replies to the last choice; None if they do not only continue it."""
        if self._run is None or self._frame is None or self._frame[1] is not frame:
            return None
        count = self._kept_count
        if kept is not self._kept or len(kept) < count:
            return None
        behind: Sequence[ReplyTurn] = new if len(kept) == count else [*kept[count:], *new]
        if len(behind) < len(self._recent):
            return None
        if not all(map(_is_same, self._recent, behind)):
            return None
        check = account_check(self._account, self._endpoint)
        return grow_run(behind[len(self._recent) :], frame, check, self._run)

    def _apply(self, replies: list[ReplyTurn], run: BoundRun) -> None:
        """Leave out what a new choice leaves out."""
        originals: dict[int, Message] = {replies[index].place: replies[index].message for index in run.withheld}
        positions = {replies[index].place: left for index, (left, _) in run.withheld.items()}
        # Messages that were replaced before keep their replacement, so that its encoding is kept too.
        known = {
            place: message
            for place, message in self._stripped.items()
            if self._positions[place] == positions.get(place) and self._originals[place] is originals[place]
        }
        is_same = len(known) == len(self._stripped) == len(originals)
        self._stripped = strip(replies, run, self._policy) | known
        self._originals, self._positions = originals, positions
        self._changes = note_withheld(self._given.messages, replies, run)
        self.projection = self._without_withheld()
        self.is_settled = self.is_settled and is_same

    def settle(self) -> None:
        """Accept the choice: the request is encoded once more."""
        self.is_settled = True

    def stamp(self) -> MakeStamp:
        """Return a function that makes the stamp of the request."""
        if self._run is None or self._frame is None:
            raise AssertionError("a stamp is made for a request that was encoded")
        return partial(make_stamp, self._frame[1], self._digests, self._run, self._sender())
