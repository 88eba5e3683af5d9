"""Scan every message of a segment once and record which passes have something to do.

Most conversations need few changes: the target wrote them, every call has its result, every text is clean. Eight passes
that each walk a long conversation to find that out would cost several times as much as encoding the request.

Facts this file rests on (all measured with CPython 3.11, 2026-11-15):
- Scanning a thousand messages costs three quarters of `orjson.dumps` of them. A third of that is for calls and the
  values of their arguments, a fifth for results. Collecting all texts first is not faster.
- `type(x) is T` is cheaper than `x.kind == ...`, and a line that sees only one type reads its fields three times
  faster: hence the branches that look alike.
- Local names and no function calls save another fifth: hence one long function.

A flag may be set without need, but is never missing: a pass that changes something sets the flags of what later passes
have to check, and dropping messages clears none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from segue.conversation.content import AnyContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage
from segue.projection.workspace.ownership import Ownership
from segue.projection.workspace.surrogates import NOT_FINITE, is_clean, is_clean_argument, is_clean_value
from segue.protocols.kit.reading import REPLY

UNFINISHED: Final = frozenset({"error", "aborted"})
"""Stop reasons of unfinished turns."""


_NESTED: Final = frozenset({dict, list})
_ESCAPED: Final = 6
"""The most characters that JSON writes for one: `\\u0000`."""
_CALL: Final = 64
"""More than what a call counts for beside its name and arguments, in characters."""
_SCALAR: Final = 32
"""More than the characters of a number or another value that is no text, with its punctuation."""


class Scan:
    """What a segment contains, or may contain after the passes so far."""

    __slots__ = (
        "blank",
        "call_ids",
        "errors",
        "extra",
        "foreign",
        "length",
        "media",
        "names",
        "native",
        "paired",
        "phases",
        "protocols",
        "replies",
        "result_names",
        "roles",
        "signed",
        "original",
        "text_after_call",
        "thinks_last",
        "unclean",
        "unfinished",
        "without_signature",
        "unsigned",
        "unusable",
    )

    def __init__(self) -> None:
        self.roles: str = ""
        """One letter for each message, so that neighbouring roles can be found by substring search."""
        self.call_ids: list[str] = []
        """The ids of all calls, in order."""
        self.names: dict[str, None] = {}
        """The names of all tools that are called, in order."""
        self.result_names: set[str] = set()
        """The names of tools that occur only in results."""
        self.foreign: set[int] = set()
        """Indexes of assistant turns that the target did not write."""
        self.length: int = 0
        """Not fewer than the characters of all texts, thinking, signatures, names and arguments as JSON; media and
        native blocks are left out."""
        self.paired: bool = True
        """Each batch of calls is directly followed by its results, in call order, and there are no other results."""
        self.unfinished: bool = False
        """A turn ended in an error or was aborted."""
        self.unclean: bool = False
        """A text, an argument, thinking or a signature has half a surrogate pair."""
        self.original: bool = False
        """A call has the original text of its arguments."""
        self.media: bool = False
        self.native: bool = False
        """Images, files or native blocks; native blocks."""
        self.signed: bool = False
        self.unsigned: bool = False
        """Thinking with a signature; thinking without one."""
        self.unusable: bool = False
        """An empty signature, or thinking that has neither text nor a signature."""
        self.without_signature: bool = False
        """The first call of a turn has no signature."""
        self.text_after_call: bool = False
        """A turn has text behind a call."""
        self.thinks_last: bool = False
        """A turn ends in thinking."""
        self.phases: bool = False
        """A text of an assistant turn has a phase."""
        self.protocols: set[str] = set()
        """The protocols of all assistant turns."""
        self.replies: bool = False
        """An assistant turn has an `extra`, if only what it keeps of its reply."""
        self.extra: bool = False
        """A message or content has an `extra` (beyond what it keeps of its reply), a cache mark or a prefix."""
        self.errors: list[int] = []
        """Indexes of results that are errors."""
        self.blank: bool = False
        """A blank text, or a message without content."""

    def add_unusual_signature(self, signature: str) -> None:
        """Record a signature that is empty or not ASCII."""
        if not signature:
            self.unusable = True
        elif not is_clean(signature):
            self.unclean = True

    def add_rare(self, piece: AnyContent) -> None:
        """Record media, native blocks and fields that are rarely set."""
        if piece.extra is not None or piece.cache_mark is not None:
            self.extra = True
        if piece.kind == "native":
            self.media = self.native = True
            self.extra = self.extra or any(spare.cache_mark is not None for spare in piece.fallback)
        elif piece.kind == "image" or piece.kind == "file":
            self.media = True
            texts = (piece.data, piece.url, piece.mime_type)
            if piece.kind == "file":
                texts = (*texts, piece.file_id, piece.name, piece.context)
            self.unclean = self.unclean or not all(map(is_clean_value, texts))

    def add_text(self, content: Sequence[AnyContent]) -> None:
        """Record the content of a user message or a system message."""
        if not content:
            self.blank = True
        for piece in content:
            if piece.kind == "text":
                self.length += len(piece.text) + len(piece.text_signature or "")
                if not piece.text.strip():
                    self.blank = True
                elif not is_clean(piece.text):
                    self.unclean = True
                if piece.text_signature is not None and not is_clean(piece.text_signature):
                    self.unclean = True
            self.add_rare(piece)


def scan_messages(messages: Sequence[Message], ownership: Ownership) -> Scan:  # noqa: C901, PLR0912, PLR0915 - see above
    """Scan messages; `ownership` decides which assistant turns the target wrote."""
    scan = Scan()
    characters: list[str] = []
    call_ids, names = scan.call_ids, scan.names
    arguments: list[Mapping[str, object]] = []
    length = values = 0  # characters, and values of arguments
    called = answered = 0  # the number of calls, and of those that have their result or cannot get one any more
    writer: AssistantMessage | None = None  # the turn before, if its origin alone decides who wrote it
    is_foreign = False
    for message in messages:
        if type(message) is ToolResultMessage:
            characters.append("t")
            if answered < called and call_ids[answered] == message.tool_call_id:
                answered += 1
            else:
                scan.paired = False
            if message.tool_name not in names:
                scan.result_names.add(message.tool_name)
            if message.is_error:
                scan.errors.append(len(characters) - 1)
            if message.extra is not None or message.cache_mark is not None:
                scan.extra = True
            content = message.content
            if not content:
                scan.blank = True
            for piece in content:
                if type(piece) is TextContent:
                    text = piece.text
                    length += len(text)
                    if not text or text.isspace():
                        scan.blank = True
                    elif not text.isascii() and not is_clean(text):
                        scan.unclean = True
                    if piece.extra is not None or piece.cache_mark is not None:
                        scan.extra = True
                    if piece.text_signature is not None and not is_clean(piece.text_signature):
                        scan.unclean = True
                else:
                    scan.add_rare(piece)
            continue
        if answered < called:
            scan.paired = False
            answered = called
        if type(message) is AssistantMessage:
            characters.append("a")
            if (
                writer is None
                or message.model != writer.model
                or message.provider != writer.provider
                or message.protocol != writer.protocol
                or message.response_model != writer.response_model
            ):
                is_foreign = not ownership.is_own(message)
                writer = message if ownership.is_certain else None
                scan.protocols.add(message.protocol)
            if is_foreign:
                scan.foreign.add(len(characters) - 1)
            if message.stop_reason in UNFINISHED:
                scan.unfinished = True
            extra = message.extra
            if extra is not None:
                scan.replies = True
                if REPLY not in extra or len(extra) != 1:
                    scan.extra = True
            if message.prefix:
                scan.extra = True
            kind = None
            first = called + 1
            for piece in message.content:
                kind = type(piece)
                if type(piece) is ToolCall:
                    called += 1
                    call_ids.append(piece.id)
                    names[piece.name] = None
                    arguments.append(piece.arguments)
                    values += len(piece.arguments)
                    for value in piece.arguments.values():
                        if type(value) is str:
                            length += _ESCAPED * len(value)
                            if not value.isascii() and not is_clean(value):
                                scan.unclean = True
                        elif type(value) in _NESTED:
                            if not is_clean_argument(value):
                                scan.unclean = True
                            length += _ESCAPED * len(repr(value))
                        elif type(value) is int:
                            length += value.bit_length()
                        elif type(value) is float and value - value != 0:
                            raise ValueError(NOT_FINITE)
                    if piece.arguments_text is not None:
                        length += len(piece.arguments_text)
                        scan.original = True
                        if not is_clean(piece.arguments_text):
                            scan.unclean = True
                    signature = piece.thought_signature
                    if signature is None:
                        if called == first:
                            scan.without_signature = True
                    else:
                        length += len(signature)
                        if not signature or not signature.isascii():
                            scan.add_unusual_signature(signature)
                    if piece.extra is not None or piece.cache_mark is not None:
                        scan.extra = True
                elif type(piece) is TextContent:
                    text = piece.text
                    length += len(text)
                    if not text or text.isspace():
                        scan.blank = True
                    elif not text.isascii() and not is_clean(text):
                        scan.unclean = True
                    signature = piece.text_signature
                    if signature is not None:
                        length += len(signature)
                        if not signature or not signature.isascii():
                            scan.add_unusual_signature(signature)
                    if called >= first:
                        scan.text_after_call = True
                    if piece.phase is not None:
                        scan.phases = True
                    if piece.extra is not None or piece.cache_mark is not None:
                        scan.extra = True
                elif type(piece) is ThinkingContent:
                    text = piece.thinking
                    length += len(text)
                    if not text.isascii() and not is_clean(text):
                        scan.unclean = True
                    signature = piece.thinking_signature
                    if not signature:
                        scan.unsigned = True
                        if signature is not None or piece.redacted or not text or text.isspace():
                            scan.unusable = True
                    else:
                        scan.signed = True
                        length += len(signature)
                        if not signature.isascii():
                            scan.add_unusual_signature(signature)
                    if piece.extra is not None or piece.cache_mark is not None:
                        scan.extra = True
                else:
                    scan.add_rare(piece)
            if kind is None:
                scan.blank = True
            elif kind is ThinkingContent:
                scan.thinks_last = True
        else:
            characters.append("u" if message.role == "user" else "s")
            if message.extra is not None:
                scan.extra = True
            scan.add_text(message.content)
    if answered < called:
        scan.paired = False
    keys = set[str]().union(*arguments)
    if not all(map(is_clean, keys)):
        scan.unclean = True
    scan.length += length + values * (_SCALAR + _ESCAPED * max(map(len, keys), default=0))
    scan.length += called * (_CALL + max(map(len, names), default=0))
    scan.roles = "".join(characters)
    return scan
