"""One look at every message of a stretch, so that a pass with nothing to do costs nothing.

Most of a history is in order most of the time: the target wrote it, every call has its result, every text is clean.
Eight passes that each walk a long history to find that out would cost several times what writing the request does.

Facts this file rests on (all measured with CPython 3.11, 2026-11-16):
- Looking at a thousand messages so costs half of what `orjson.dumps` of them does.
- `type(x) is T` is cheaper than `x.kind == ...`, and a place in the code that sees one type only reads its fields three
  times faster: hence the branches that look alike.

What a survey says may be too dark, never too bright: a pass that changes something raises the flags of what a later
pass has to look at, and dropping messages lowers none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from segue.conversation.content import FileContent, ImageContent, NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, UserMessage
from segue.projection.home import Home
from segue.projection.surrogates import is_clean, is_clean_value

UNFINISHED: Final = frozenset({"error", "aborted"})
"""Stop reasons of turns that did not come to an end."""


class Survey:
    """What a stretch holds, or may hold by now."""

    __slots__ = (
        "argument_names",
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
        "unsigned",
    )

    def __init__(self, messages: Sequence[Message], home: Home) -> None:
        self.call_ids: list[str] = []
        """The ids of all calls, in order."""
        self.names: dict[str, None] = {}
        """The names of all tools that are called, in order."""
        self.result_names: set[str] = set()
        self.argument_names: set[str] = set()
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
        self.foreign = False
        """A turn that the target did not write."""
        self.signed = False
        self.unsigned = False
        """Thinking with a seal; thinking without, or a seal that is none."""
        self.thinks_last = False
        """A turn ends in thinking."""
        self.extra = False
        self.errors = False
        """A result is an error."""
        self.blank = False
        """A text without words, or a message without content."""
        self.roles = self._look(messages, home)
        """One letter for each message: what stands beside what is a question of substrings."""
        if not all(map(is_clean, self.argument_names)):
            self.unclean = True

    def _look(self, messages: Sequence[Message], home: Home) -> str:
        letters: list[str] = []
        add = letters.append
        call_ids, names = self.call_ids, self.names
        awaited = 0  # how many of the newest calls still want their result
        for message in messages:
            if type(message) is ToolResultMessage:
                add("t")
                if awaited and call_ids[-awaited] == message.tool_call_id:
                    awaited -= 1
                else:
                    self.paired = False
                if message.tool_name not in names:
                    self.result_names.add(message.tool_name)
                if message.is_error:
                    self.errors = True
                if message.extra is not None:
                    self.extra = True
                content = message.content
                if not content:
                    self.blank = True
                for piece in content:
                    if type(piece) is TextContent:
                        text = piece.text
                        if not text or text.isspace():
                            self.blank = True
                        elif not text.isascii() and not is_clean(text):
                            self.unclean = True
                        if piece.text_signature is not None and not is_clean(piece.text_signature):
                            self.unclean = True
                        if piece.extra is not None:
                            self.extra = True
                    else:
                        self._look_at_media(piece)
                continue
            if awaited:
                self.paired = False
            if type(message) is AssistantMessage:
                add("a")
                if not home.is_own(message):
                    self.foreign = True
                awaited = self._look_at_turn(message)
            elif type(message) is UserMessage or type(message) is SystemMessage:
                add("u" if type(message) is UserMessage else "s")
                awaited = 0
                self._look_at_words(message)
        if awaited:
            self.paired = False
        return "".join(letters)

    def _look_at_words(self, message: UserMessage | SystemMessage) -> None:
        if message.extra is not None:
            self.extra = True
        if not message.content:
            self.blank = True
        for piece in message.content:
            if type(piece) is TextContent:
                text = piece.text
                if not text or text.isspace():
                    self.blank = True
                elif not is_clean(text):
                    self.unclean = True
                if piece.text_signature is not None and not is_clean(piece.text_signature):
                    self.unclean = True
                if piece.extra is not None:
                    self.extra = True
            else:
                self._look_at_media(piece)

    def _look_at_media(self, piece: object) -> None:
        self.media = True
        if type(piece) is NativeContent:
            self.native = True
            if piece.extra is not None:
                self.extra = True
        elif type(piece) is ImageContent or type(piece) is FileContent:
            texts = (piece.data, piece.url, piece.mime_type)
            if type(piece) is FileContent:
                texts = (*texts, piece.file_id, piece.name)
            if not all(map(is_clean_value, texts)):
                self.unclean = True
            if piece.extra is not None:
                self.extra = True

    def _look_at_turn(self, message: AssistantMessage) -> int:
        """See to one assistant turn; gives how many calls it makes."""
        if message.stop_reason in UNFINISHED:
            self.unfinished = True
        if message.extra is not None:
            self.extra = True
        calls = 0
        kind = None
        for piece in message.content:
            kind = type(piece)
            if type(piece) is ToolCall:
                calls += 1
                self.call_ids.append(piece.id)
                self.names[piece.name] = None
                self._look_at_arguments(piece.arguments)
                if piece.arguments_text is not None:
                    self.spelt = True
                    if not is_clean(piece.arguments_text):
                        self.unclean = True
                if piece.thought_signature is not None:
                    self._look_at_seal(piece.thought_signature)
                if piece.extra is not None:
                    self.extra = True
            elif type(piece) is TextContent:
                text = piece.text
                if not text or text.isspace():
                    self.blank = True
                elif not text.isascii() and not is_clean(text):
                    self.unclean = True
                if piece.text_signature is not None:
                    self._look_at_seal(piece.text_signature)
                if piece.extra is not None:
                    self.extra = True
            elif type(piece) is ThinkingContent:
                if not is_clean(piece.thinking):
                    self.unclean = True
                if not piece.thinking_signature:
                    self.unsigned = True
                else:
                    self.signed = True
                    if not piece.thinking_signature.isascii() and not is_clean(piece.thinking_signature):
                        self.unclean = True
                if piece.extra is not None:
                    self.extra = True
            else:
                self._look_at_media(piece)
        if kind is None:
            self.blank = True
        elif kind is ThinkingContent:
            self.thinks_last = True
        return calls

    def _look_at_seal(self, seal: str) -> None:
        if not seal:
            self.unsigned = True
        elif not is_clean(seal):
            self.unclean = True

    def _look_at_arguments(self, arguments: Mapping[str, object]) -> None:
        for value in arguments.values():
            if type(value) is str:
                if not value.isascii() and not is_clean(value):
                    self.unclean = True
            elif (type(value) is dict or type(value) is list) and not is_clean_value(value):
                self.unclean = True
        self.argument_names.update(arguments)
