"""One look at every message of a stretch, so that a pass with nothing to do costs nothing.

Most of a history is in order most of the time: the target wrote it, every call has its result, every text is clean.
Eight passes that each walk a long history to find that out would cost several times what writing the request does.

Facts this file rests on (all measured with CPython 3.11, 2026-11-15):
- Looking at a thousand messages so costs three quarters of what `orjson.dumps` of them does. A third of that goes into
  calls and the values of their arguments, a fifth into results. To gather all texts first is no faster.
- `type(x) is T` is cheaper than `x.kind == ...`, and a place in the code that sees one type only reads its fields three
  times faster: hence the branches that look alike.
- Local names and no calls save another fifth: hence one long function.

What a survey says may be too dark, never too bright: a pass that changes something raises the flags of what a later
pass has to look at, and dropping messages lowers none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from segue.conversation.content import AnyContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage
from segue.projection.workspace.ownership import Home
from segue.projection.workspace.surrogates import is_clean, is_clean_value
from segue.protocols.kit.reading import REPLY

UNFINISHED: Final = frozenset({"error", "aborted"})
"""Stop reasons of turns that did not come to an end."""


_NESTED: Final = frozenset({dict, list})


class Survey:
    """What a stretch holds, or may hold by now."""

    __slots__ = (
        "blank",
        "call_ids",
        "errors",
        "extra",
        "foreign",
        "media",
        "names",
        "native",
        "paired",
        "result_names",
        "roles",
        "signed",
        "spelt",
        "thinks_last",
        "unclean",
        "unfinished",
        "unsealed",
        "unsigned",
        "unusable",
    )

    def __init__(self) -> None:
        self.roles = ""
        """One letter for each message: what stands beside what is a question of substrings."""
        self.call_ids: list[str] = []
        """The ids of all calls, in order."""
        self.names: dict[str, None] = {}
        """The names of all tools that are called, in order."""
        self.result_names: set[str] = set()
        """The names of tools that only a result names."""
        self.foreign: set[int] = set()
        """Which of the messages are turns that the target did not write."""
        self.paired = True
        """Each batch is directly followed by its results, in call order, and no result stands elsewhere."""
        self.unfinished = False
        """A turn ended in an error or was aborted."""
        self.unclean = False
        """Half a surrogate pair in a text, an argument, a thought or a seal."""
        self.spelt = False
        """A call carries its provider's own spelling of its arguments."""
        self.media = False
        self.native = False
        """Images, files or native blocks; native blocks."""
        self.signed = False
        self.unsigned = False
        """Thinking with a seal; thinking without."""
        self.unusable = False
        """A seal that is none, or thinking that has neither words nor a seal."""
        self.unsealed = False
        """The first call of a turn has no seal."""
        self.thinks_last = False
        """A turn ends in thinking."""
        self.extra = False
        """A message or a block has an `extra`, beyond what a turn keeps of its reply."""
        self.errors: list[int] = []
        """Which of the messages are results that are errors."""
        self.blank = False
        """A text without words, or a message without content."""

    def add_odd_seal(self, seal: str) -> None:
        """See to a seal that is empty or not plain ASCII."""
        if not seal:
            self.unusable = True
        elif not is_clean(seal):
            self.unclean = True

    def add_rare(self, piece: AnyContent) -> None:
        """See to media, native blocks and what else is rare."""
        if piece.extra is not None:
            self.extra = True
        if piece.kind == "native":
            self.media = self.native = True
        elif piece.kind == "image" or piece.kind == "file":
            self.media = True
            texts = (piece.data, piece.url, piece.mime_type)
            if piece.kind == "file":
                texts = (*texts, piece.file_id, piece.name)
            self.unclean = self.unclean or not all(map(is_clean_value, texts))

    def add_words(self, content: Sequence[AnyContent]) -> None:
        """See to the content of a user's message or of instructions."""
        if not content:
            self.blank = True
        for piece in content:
            if piece.kind == "text":
                if not piece.text.strip():
                    self.blank = True
                elif not is_clean(piece.text):
                    self.unclean = True
                if piece.text_signature is not None and not is_clean(piece.text_signature):
                    self.unclean = True
            self.add_rare(piece)


def look_over(messages: Sequence[Message], home: Home) -> Survey:  # noqa: C901, PLR0912, PLR0915 - see above
    """Look at every message once."""
    survey = Survey()
    letters: list[str] = []
    call_ids, names = survey.call_ids, survey.names
    arguments: list[Mapping[str, object]] = []
    called = answered = 0  # how many calls there are, and how many of them have their result or will get none
    writer: AssistantMessage | None = None  # of the turn before, if who that is can be told by its origin
    is_foreign = False
    for message in messages:
        if type(message) is ToolResultMessage:
            letters.append("t")
            if answered < called and call_ids[answered] == message.tool_call_id:
                answered += 1
            else:
                survey.paired = False
            if message.tool_name not in names:
                survey.result_names.add(message.tool_name)
            if message.is_error:
                survey.errors.append(len(letters) - 1)
            if message.extra is not None:
                survey.extra = True
            content = message.content
            if not content:
                survey.blank = True
            for piece in content:
                if type(piece) is TextContent:
                    text = piece.text
                    if not text or text.isspace():
                        survey.blank = True
                    elif not text.isascii() and not is_clean(text):
                        survey.unclean = True
                    if piece.extra is not None:
                        survey.extra = True
                    if piece.text_signature is not None and not is_clean(piece.text_signature):
                        survey.unclean = True
                else:
                    survey.add_rare(piece)
            continue
        if answered < called:
            survey.paired = False
            answered = called
        if type(message) is AssistantMessage:
            letters.append("a")
            if (
                writer is None
                or message.model != writer.model
                or message.provider != writer.provider
                or message.protocol != writer.protocol
                or message.response_model != writer.response_model
            ):
                is_foreign = not home.is_own(message)
                writer = message if home.is_certain else None
            if is_foreign:
                survey.foreign.add(len(letters) - 1)
            if message.stop_reason in UNFINISHED:
                survey.unfinished = True
            extra = message.extra
            if extra is not None and (REPLY not in extra or len(extra) != 1):
                survey.extra = True
            kind = None
            first = called + 1
            for piece in message.content:
                kind = type(piece)
                if type(piece) is ToolCall:
                    called += 1
                    call_ids.append(piece.id)
                    names[piece.name] = None
                    arguments.append(piece.arguments)
                    for value in piece.arguments.values():
                        if type(value) is str:
                            if not value.isascii() and not is_clean(value):
                                survey.unclean = True
                        elif type(value) in _NESTED and not is_clean_value(value):
                            survey.unclean = True
                    if piece.arguments_text is not None:
                        survey.spelt = True
                        if not is_clean(piece.arguments_text):
                            survey.unclean = True
                    seal = piece.thought_signature
                    if seal is None:
                        if called == first:
                            survey.unsealed = True
                    elif not seal or not seal.isascii():
                        survey.add_odd_seal(seal)
                    if piece.extra is not None:
                        survey.extra = True
                elif type(piece) is TextContent:
                    text = piece.text
                    if not text or text.isspace():
                        survey.blank = True
                    elif not text.isascii() and not is_clean(text):
                        survey.unclean = True
                    seal = piece.text_signature
                    if seal is not None and (not seal or not seal.isascii()):
                        survey.add_odd_seal(seal)
                    if piece.extra is not None:
                        survey.extra = True
                elif type(piece) is ThinkingContent:
                    text = piece.thinking
                    if not text.isascii() and not is_clean(text):
                        survey.unclean = True
                    seal = piece.thinking_signature
                    if not seal:
                        survey.unsigned = True
                        if seal is not None or piece.redacted or not text or text.isspace():
                            survey.unusable = True
                    else:
                        survey.signed = True
                        if not seal.isascii():
                            survey.add_odd_seal(seal)
                    if piece.extra is not None:
                        survey.extra = True
                else:
                    survey.add_rare(piece)
            if kind is None:
                survey.blank = True
            elif kind is ThinkingContent:
                survey.thinks_last = True
        else:
            letters.append("u" if message.role == "user" else "s")
            if message.extra is not None:
                survey.extra = True
            survey.add_words(message.content)
    if answered < called:
        survey.paired = False
    if not all(map(is_clean, set[str]().union(*arguments))):
        survey.unclean = True
    survey.roles = "".join(letters)
    return survey
