"""Scan every message of a segment once and record which passes have something to do.

Most conversations need few changes: the target wrote them, every call has its result, every text is clean. Eight passes
that each walk a long conversation to find that out would cost several times as much as encoding the request.

Facts (all measured with CPython 3.11, 2026-11-15):
- Scanning a thousand messages costs as much as `orjson.dumps` of them, a fifth of it for results. The arguments of all
  calls are encoded at once, which checks and measures them: a loop over their values costs three times as much.
- `type(x) is T` is cheaper than `x.kind == ...`, and a line that sees only one type reads its fields three times
  faster: so several branches look alike.
- Local names and no function calls save another fifth: so there is one long loop, which calls functions only for rare
  cases. With a function for each role or type of content, `project` takes 10 to 20 % longer.            (2026-11-17)

A flag may be set without need, but is never missing: a pass that changes something sets the flags of what later passes
have to check, and dropping messages clears none.

What a scan finds depends on the messages alone, except who wrote them for a target. So a `Context` remembers it: the
next request from it scans nothing, and one from a longer conversation only what was added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from segue.conversation.content import AnyContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Context
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage
from segue.projection.workspace.ownership import Ownership
from segue.projection.workspace.surrogates import (
    TextLength,
    count_beyond_ascii,
    is_clean_value,
    measure_arguments,
)
from segue.protocols.kit.reading import REPLY

UNFINISHED: Final = frozenset({"error", "aborted"})
"""Stop reasons of unfinished turns."""


_MEMO: Final = "_scan"
"""The name under which a `Context` remembers its scan."""
_FEW: Final = 8
"""Fewer messages are scanned again: a copy of their scan, which most need once, takes as long."""
_CALL: Final = 64
"""An upper bound of what a call counts in addition to its name and arguments, in characters."""


class Scan:
    """What a segment contains, or may contain after the passes so far."""

    def __init__(self) -> None:  # noqa: PLR0915 - one line for each field
        self.roles: str = ""
        """One letter for each message, so that neighbouring roles can be found by substring search."""
        self.call_ids: list[str] = []
        """The ids of all calls, in order."""
        self.call_signatures: list[str] = []
        """The signatures of all calls, in order."""
        self.signatures: bool = False
        """Whether an assistant turn has a signature of any kind, if only an empty one."""
        self.names: dict[str, None] = {}
        """The names of all tools that are called, in order."""
        self.result_names: set[str] = set()
        """The names of tools that occur only in results."""
        self.answered: int = 0
        """How many of the calls have their result, or cannot get one any more."""
        self.assistants: list[int] = []
        """Indexes of assistant turns."""
        self.runs: list[tuple[AssistantMessage, int]] = []
        """The first of each run of assistant turns with the same origin, and its index in `assistants`."""
        self.stamped: list[AssistantMessage] = []
        """Assistant turns that remember which signatures were dropped or accepted."""
        self.foreign: set[int] = set()
        """Indexes of assistant turns that the target did not write."""
        self.length: int = 0
        self.beyond_ascii: int = 0
        """Not fewer than the characters of all texts, thinking, signatures, names and arguments as JSON, and than those
        among them that are not ASCII; media and native blocks are left out."""
        self.unmeasured: bool = False
        """`length` leaves out arguments that are not JSON."""
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
        """A turn has text after a call."""
        self.thinks_last: bool = False
        """A turn ends in thinking."""
        self.phases: bool = False
        """A text of an assistant turn has a phase."""
        self.protocols: set[str] = set()
        """The protocols of all assistant turns."""
        self.refused: list[str] = []
        """The marks of signatures that the target refused, as its replies to later requests remember them."""
        self.replies: bool = False
        """An assistant turn has an `extra`, if only what it keeps of its reply."""
        self.extra: bool = False
        """A message or content has an `extra` (beyond what it keeps of its reply), a cache mark or a prefix."""
        self.errors: list[int] = []
        """Indexes of results that are errors."""
        self.blank: bool = False
        """A blank text, or a message without content."""

    def measured(self, added: int) -> TextLength:
        """Return the length with characters that passes added, whatever they are."""
        return TextLength(self.length + added, self.beyond_ascii + added)

    def add_wide(self, text: str) -> None:
        """Record a text that is not ASCII."""
        beyond = count_beyond_ascii(text)
        if beyond < 0:
            self.unclean = True
            beyond = len(text)
        self.beyond_ascii += beyond

    def add_signature(self, signature: str) -> None:
        """Record a signature of an assistant turn."""
        self.signatures = True
        self.length += len(signature)
        if not signature:
            self.unusable = True
        elif not signature.isascii():
            self.add_wide(signature)

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

    def add_extra(self, message: AssistantMessage) -> None:
        """Record what a turn has in its `extra`, or that it is a prefix."""
        self.replies = self.replies or message.extra is not None
        if message.prefix or (message.extra is not None and (REPLY not in message.extra or len(message.extra) != 1)):
            self.extra = True

    def copy(self) -> Scan:
        """Return a scan that can be changed and continued; this one stays unchanged."""
        copied = Scan.__new__(Scan)
        fields = vars(copied)
        fields.update(vars(self))
        for name in _GROWING:
            fields[name] = fields[name].copy()
        return copied

    def conclude(self, messages: Sequence[Message], ownership: Ownership) -> None:
        """Find what depends on the target, which `ownership` knows, or on that no message follows."""
        if self.answered < len(self.call_ids):
            self.paired = False
        turns = self.assistants
        if ownership.is_certain:
            end = len(turns)
            for writer, start in reversed(self.runs):
                if not ownership.is_own(writer):
                    self.foreign.update(turns[start:end])
                end = start
        else:
            for index in turns:
                message = messages[index]
                if type(message) is AssistantMessage and not ownership.is_own(message):
                    self.foreign.add(index)
        for message in self.stamped:
            sent = message.sent
            if sent is not None and ownership.has_origin(message):
                self.refused += ownership.dropped_in(sent)
                if not ownership.is_same_account(message):
                    self.refused += sent.accepted  # they belong to the account that accepted them

    def add_calls(self, arguments: Sequence[Mapping[str, object]]) -> None:
        """Record the names and arguments of calls."""
        called, longest = len(arguments), max(map(len, self.names))
        self.length += called * (_CALL + longest)
        if not "".join(self.names).isascii():
            self.beyond_ascii += called * longest
        size, are_clean = measure_arguments(arguments)
        if size is None:
            self.unmeasured = True
        else:
            self.length += size.characters
            self.beyond_ascii += size.beyond_ascii
        if not are_clean:
            self.unclean = True

    def add_text(self, content: Sequence[AnyContent]) -> None:
        """Record the content of a message that the model did not write."""
        if not content:
            self.blank = True
        for piece in content:
            if type(piece) is TextContent:
                text, signature = piece.text, piece.text_signature
                self.length += len(text)
                if not text.isascii():
                    self.add_wide(text)
                if not text or text.isspace():
                    self.blank = True
                if signature is not None:
                    self.length += len(signature)
                    if not signature.isascii():
                        self.add_wide(signature)
                if piece.extra is not None or piece.cache_mark is not None:
                    self.extra = True
            else:
                self.add_rare(piece)


_GROWING: Final = [name for name, value in vars(Scan()).items() if type(value) in (list, dict, set)]


def scan_context(context: Context) -> Scan:
    """Scan the messages of a conversation that were not scanned before, and remember what they contain."""
    memo, messages = vars(context), context.messages
    if len(messages) < _FEW:
        return scan_messages(messages)
    known: Scan | None = memo.get(_MEMO)
    scanned = 0 if known is None else len(known.roles)
    if known is None or scanned < len(messages):
        known = memo[_MEMO] = scan_messages(messages[scanned:], known)
    return known.copy()


def scan_messages(messages: Sequence[Message], before: Scan | None = None) -> Scan:  # noqa: C901, PLR0912, PLR0915 - see above
    """Scan messages; `before` is the scan of what comes before them, which is not changed."""
    scan = Scan() if before is None else before.copy()
    characters, assistants = list(scan.roles), scan.assistants
    call_ids, names, signatures = scan.call_ids, scan.names, scan.call_signatures
    arguments: list[Mapping[str, object]] = []
    length = 0
    called, answered = len(call_ids), scan.answered
    writer: AssistantMessage | None = scan.runs[-1][0] if scan.runs else None
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
            scan.add_text(message.content)
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
                writer = message
                scan.runs.append((message, len(assistants)))
                scan.protocols.add(message.protocol)
            assistants.append(len(characters) - 1)
            if message.stop_reason in UNFINISHED:
                scan.unfinished = True
            if message.extra is not None or message.prefix:
                scan.add_extra(message)
            sent = message.sent
            if sent is not None and (sent.dropped or sent.accepted):
                scan.stamped.append(message)
            kind = None
            first = called + 1
            for piece in message.content:
                kind = type(piece)
                if type(piece) is ToolCall:
                    called += 1
                    call_ids.append(piece.id)
                    names[piece.name] = None
                    arguments.append(piece.arguments)
                    if piece.arguments_text is not None:
                        scan.original = True
                        length += len(piece.arguments_text)
                        if not piece.arguments_text.isascii():
                            scan.add_wide(piece.arguments_text)
                    signature = piece.thought_signature
                    if signature is not None:
                        signatures.append(signature)
                        scan.add_signature(signature)
                    elif called == first:
                        scan.without_signature = True
                    if piece.extra is not None or piece.cache_mark is not None:
                        scan.extra = True
                elif type(piece) is TextContent:
                    text = piece.text
                    length += len(text)
                    if not text.isascii():
                        scan.add_wide(text)
                    if not text or text.isspace():
                        scan.blank = True
                    signature = piece.text_signature
                    if signature is not None:
                        scan.add_signature(signature)
                    if called >= first:
                        scan.text_after_call = True
                    if piece.phase is not None:
                        scan.phases = True
                        if not piece.phase.isascii():
                            scan.add_wide(piece.phase)
                    if piece.extra is not None or piece.cache_mark is not None:
                        scan.extra = True
                elif type(piece) is ThinkingContent:
                    text = piece.thinking
                    length += len(text)
                    if not text.isascii():
                        scan.add_wide(text)
                    signature = piece.thinking_signature
                    if not signature:
                        scan.unsigned = True
                        if signature is not None or piece.redacted or not text or text.isspace():
                            scan.unusable = True
                    else:
                        scan.signed = True
                        scan.add_signature(signature)
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
    scan.answered = answered
    scan.length += length
    if arguments:
        scan.add_calls(arguments)
    scan.roles = "".join(characters)
    return scan
