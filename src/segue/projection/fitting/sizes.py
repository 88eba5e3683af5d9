"""The sizes of projected messages, as running sums, so that the size of any part is known at once.

Counting costs several times as much as encoding. So an upper bound is kept first, from the lengths of texts alone; only
when it exceeds the limit are the messages counted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from segue.conversation.content import (
    AnyContent,
    FileContent,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from segue.conversation.messages import Message
from segue.counting.counter import encode_value
from segue.projection.fitting.plan import FitPlan, Quota
from segue.projection.policy import Texts

_UNKNOWN: Final = float("inf")
_WITHOUT_MEDIA: Final[frozenset[type]] = frozenset({TextContent, ThinkingContent, ToolCall})
_MOST_FOR_AN_IMAGE: Final = 6000
_LONG: Final = 64
"""A constant of a message, a call or a signature is less than this."""


class Media:
    """The images and files that count towards one quota, in order."""

    __slots__ = ("amounts", "beside", "places")

    def __init__(self, quota: Quota) -> None:
        self.places: list[tuple[int, int]] = []
        """The index of the message and of the content."""
        self.amounts: list[int] = [0]
        """Running sums."""
        self.beside: list[int] = self.amounts if quota.only_beside is None else [0]
        """Running sums of what makes the quota hold: of the media themselves where it always holds."""

    def truncate(self, messages: int) -> None:
        """Forget the media of all messages from an index on."""
        count = bisect_left(self.places, (messages, 0))
        del self.places[count:], self.amounts[count + 1 :], self.beside[count + 1 :]


class Sizes:
    """Running sums over the projected messages; index i holds the sum of the messages before i."""

    __slots__ = (
        "_narrow",
        "_plan",
        "_recent",
        "_wide",
        "bounds",
        "full",
        "lasting",
        "media",
        "reasoning",
        "user_words",
        "user_before",
    )

    def __init__(self, plan: FitPlan) -> None:
        self._plan = plan
        weights = plan.counter.family.weights
        self._narrow, self._wide = weights.widest_ascii(), weights.widest()
        self.bounds: list[float] = [0.0]
        """Upper bounds of the tokens."""
        self.lasting: list[float] = [0.0]
        """Tokens that count in every later request."""
        self.full: list[float] = [0.0]
        """The same and those that count until the next user message."""
        self.user_before: list[int] = [0]
        """The index of the last user message before; 0 if there is none."""
        self.reasoning: list[int] = [0]
        """Tokens of reasoning, as the provider counted them: their text is not always sent."""
        self.user_words: list[float] = [0.0]
        """Tokens of what the user wrote, as the note of a cut repeats it."""
        self.media: tuple[Media, ...] = tuple(map(Media, plan.quotas))
        self._recent: dict[int, tuple[Message, float, float]] = {}
        """What the last call counted: the newest messages are forgotten and needed again until they are settled."""

    def truncate(self, count: int) -> None:
        """Forget the messages from an index on."""
        if len(self.bounds) > count + 1:
            del self.bounds[count + 1 :]
            for media in self.media:
                media.truncate(count)
        if len(self.full) > count + 1:
            del self.full[count + 1 :], self.lasting[count + 1 :], self.user_before[count + 1 :]
            del self.reasoning[count + 1 :], self.user_words[count + 1 :]

    def extend_bounds(self, messages: Sequence[Message]) -> None:
        """Bound the tokens of new messages, and find their media."""
        bounds, narrow, wide = self.bounds, self._narrow, self._wide
        if self._plan.counter.is_own or len(self.full) > 1:
            # A bound does not work for a caller's counter, and is no longer needed if messages are counted.
            first = len(bounds) - 1
            bounds += [_UNKNOWN] * (len(messages) - first)
            for index in range(first, len(messages)) if self.media else ():
                for position, piece in enumerate(messages[index].content):
                    if type(piece) not in _WITHOUT_MEDIA and (piece.kind == "image" or piece.kind == "file"):
                        self._add_media(piece, index, position)
            return
        for index in range(len(bounds) - 1, len(messages)):
            bound = float(_LONG)
            for position, piece in enumerate(messages[index].content):
                if type(piece) is TextContent:  # cheaper than `piece.kind`; see `workspace.scan`
                    text = piece.text
                    bound += len(text) * (narrow if text.isascii() else wide)
                elif type(piece) is ToolCall:
                    data = encode_value(piece.arguments)
                    size = len(piece.name) + max(len(data), len(piece.arguments_text or ""))
                    bound += _LONG + size * (narrow if data.isascii() else wide)
                    if piece.thought_signature is not None:
                        bound += len(piece.thought_signature)
                elif type(piece) is ThinkingContent:
                    bound += len(piece.thinking) * wide + len(piece.thinking_signature or "")
                else:
                    bound += self._bound_rare(piece, index, position)
            bounds.append(bounds[-1] + bound)

    def _bound_rare(self, piece: AnyContent, index: int, position: int) -> float:
        if piece.kind == "image" or piece.kind == "file":
            self._add_media(piece, index, position)
            return self._plan.counter.piece(piece) if piece.kind == "file" else _MOST_FOR_AN_IMAGE
        return self._plan.counter.piece(piece)

    def _add_media(self, piece: ImageContent | FileContent, index: int, position: int) -> None:
        for quota, media in zip(self._plan.quotas, self.media, strict=True):
            amount = quota.amount(piece)
            if amount:
                media.places.append((index, position))
                media.amounts.append(media.amounts[-1] + amount)
                if quota.only_beside is not None:
                    media.beside.append(media.beside[-1] + quota.only_beside(piece))

    def count(self, messages: Sequence[Message], additions: Additions, label: float) -> None:
        """Count the messages that were not counted yet; `label` are the tokens around what a user wrote."""
        lasting, full, users, counter = self.lasting, self.full, self.user_before, self._plan.counter
        reasoning, user_words = self.reasoning, self.user_words
        before, self._recent = self._recent, {}
        for index in range(len(full) - 1, len(messages)):
            message = messages[index]
            known = before.get(index)
            # The same message may be projected anew, and comparing costs a tenth of counting.
            if known is None or (known[0] is not message and known[0] != message):
                known = (message, *counter.message(message))
            self._recent[index] = known
            _, stays, passes = known
            lasting.append(lasting[-1] + stays)
            full.append(full[-1] + stays + passes)
            usage = message.usage if message.role == "assistant" else None
            reasoning.append(reasoning[-1] + (0 if usage is None else usage.reasoning))
            words = user_words[-1]
            if message.role == "user" and not additions.has(message):
                users.append(index)
                # Mostly all of it is text, which is counted already.
                texts = [piece for piece in message.content if piece.kind == "text"]
                words += label + (stays if len(texts) == len(message.content) else sum(map(counter.piece, texts)))
            else:
                users.append(users[-1])
            user_words.append(words)


class Additions:
    """Messages that projection adds to the unit before them: media of results, results as text, turns for the order.

    They are known by their texts, so that a projected conversation has the same units if it is projected again.
    """

    __slots__ = ("_result", "_texts")

    def __init__(self, texts: Texts, *, has_tools: bool) -> None:
        self._texts = texts
        self._result = "" if has_tools else texts.result.partition("{")[0]
        """How the text of a result begins, for targets without tools."""

    def has(self, message: Message) -> bool:
        """Whether a message is one of them."""
        texts, first = self._texts, message.content[0] if message.content else None
        if first is None or first.kind != "text":
            return False
        if message.role == "user":
            if self._result and first.text.startswith(self._result):
                return True
            return first.text == texts.tool_media or (first.text == texts.last_turn and len(message.content) == 1)
        return message.role == "assistant" and first.text == texts.bridge and len(message.content) == 1
