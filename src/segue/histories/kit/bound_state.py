"""The profile *bound state*: what binds a message to model, account and prefix, in one object next to it.

For formats that other programs define: they have texts, thoughts and calls, one of each kind, and a free field. The
object has what they lack: the order and the signatures of the parts, and what the reply was made after. Words are not
repeated. A part has the number of its characters (Unicode code points) and a digest; the texts of a message in the
order of its parts, joined by a line feed, are the text of the step, and so for its thoughts. Parts without words take
no part in that. A reader that finds other words drops the state of this message: a signature is valid only for what
was signed.

Facts:
- `extra` of ATIF takes any JSON, and nothing else may be added.                               (atif 1.8.0, run)
- `meta` of Agent Trail takes keys of the form `x-vendor/name`, and readers ignore those that they do not know.
                                                             (agent-trail/spec 0.1.0, sections 8.3 and 12)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast, final

import msgspec
from msgspec.structs import replace

from segue.conversation.arguments import parse_arguments
from segue.conversation.content import AnyContent, NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.marks import mark_of, marks_of
from segue.conversation.messages import AssistantMessage, Message, Sent
from segue.errors import Path
from segue.histories.kit.notes import Notes
from segue.projection.report import ChangeCode, Loss, Report
from segue.protocols.kit.json_values import same

VERSION: Final = 1
BOUND_STATE: Final = "bound_state"
"""The name of the object in `extra` of ATIF."""
META: Final = "x-segue/bound_state"
"""The key of the object in `meta` of Agent Trail."""
StateCode: TypeAlias = Literal["schema", "text", "thinking", "call", "model", "marks", "chain"]
_DETAIL: Final = "bound state"
M = TypeVar("M", bound=Message)


class _Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind"):
    extra: dict[str, dict[str, Any]] | None = None
    """Fields that only one protocol has, by its name, such as the id of an item."""


class _Words(_Part, frozen=True, kw_only=True):
    length: int
    """The number of code points."""
    digest: str
    """The first 9 bytes of the SHA-256 of the words in UTF-8, in URL-safe base64."""
    signature: str | None = None


@final
class StatedText(_Words, frozen=True, kw_only=True, tag="text"):
    """A text of the message; `signature` and `phase` are those of the provider."""

    phase: str | None = None


@final
class ThinkingPart(_Words, frozen=True, kw_only=True, tag="thinking"):
    """Thinking of the message; `redacted` if the provider hid its words."""

    redacted: bool = False


@final
class StatedCall(_Part, frozen=True, kw_only=True, tag="call"):
    """The next call of the message: its id at the provider, the signature of a thought, and arguments as sent."""

    id: str
    signature: str | None = None
    arguments_text: str | None = None


@final
class BlockPart(_Part, frozen=True, kw_only=True, tag="block"):
    """A block that one protocol alone has, verbatim; `shown` are the texts of the message in its place."""

    protocol: str
    block: dict[str, Any]
    shown: list[StatedText] = []


Part: TypeAlias = StatedText | ThinkingPart | StatedCall | BlockPart


@final
class BoundState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What binds one message, and the order of its parts.

    `protocol`, `provider` and `model` made it, with `account`. `prefix` is what it was made after: digests and marks as
    their writer makes them, which other programs keep without reading them. Unknown fields are ignored.
    """

    version: Literal[1]
    content: list[Part]
    protocol: str = ""
    provider: str = ""
    model: str = ""
    response_model: str | None = None
    response_id: str | None = None
    account: str | None = None
    prefix: Sent | None = None
    fields: dict[str, Any] | None = None
    """Fields of the reply that its protocol alone has."""


class StateFault(msgspec.Struct, frozen=True):
    """A reason why a program would drop or refuse the state of a message; `path` is its place in the conversation."""

    code: StateCode
    path: Path
    message: str


@final
class _Misfit(Exception):
    """The object is not about this message."""

    def __init__(self, code: StateCode, detail: str) -> None:
        super().__init__(f"{_DETAIL}: {code}: {detail}")


# -- writing -----------------------------------------------------------------------------------------------------------


def state_of(message: Message) -> dict[str, Any] | None:
    """Return the object of a message; None for one that the fields of any format describe."""
    if isinstance(message, AssistantMessage):
        state = _state_of_reply(message)
    elif len(message.content) > 1 and all(piece.kind == "text" and piece.text for piece in message.content):
        state = BoundState(version=VERSION, content=_parts(message.content))
    else:
        state = None
    return None if state is None else cast("dict[str, Any]", msgspec.to_builtins(state))


def _state_of_reply(message: AssistantMessage) -> BoundState | None:
    kinds = [piece.kind for piece in message.content]
    fields = (message.extra or {}).get(message.protocol)
    is_plain = kinds == sorted(kinds, key=_ORDER.index) and kinds.count("thinking") < 2 and kinds.count("text") < 2
    parts = _parts(message.content)
    if is_plain and message.sent is None and not fields and not any(map(_is_bound, parts)):
        return None
    sent = message.sent
    return BoundState(
        version=VERSION,
        content=parts,
        protocol=message.protocol,
        provider=message.provider,
        model=message.model,
        response_model=message.response_model,
        response_id=message.response_id,
        account=None if sent is None else sent.account,
        prefix=None if sent is None else replace(sent, account=None),
        fields=None if fields is None else dict(fields),
    )


_ORDER: Final = ("thinking", "text", "toolCall", "native", "image", "file")


def _is_bound(part: Part) -> bool:
    named = (getattr(part, name, None) for name in ("extra", "signature", "phase", "arguments_text"))
    return isinstance(part, BlockPart) or getattr(part, "redacted", False) or any(each is not None for each in named)


def _parts(content: Iterable[AnyContent]) -> list[Part]:
    return [_part(piece) for piece in content if piece.kind not in {"image", "file"}]


def _part(piece: AnyContent) -> Part:
    extra: Any = piece.extra
    match piece.kind:
        case "thinking":
            words, signature = piece.thinking, piece.thinking_signature
            made = ThinkingPart(length=len(words), digest=mark_of(words), signature=signature, redacted=piece.redacted)
        case "toolCall":
            given = piece.arguments_text
            is_own = given is not None and same(parse_arguments(given).arguments, piece.arguments)
            made = StatedCall(id=piece.id, signature=piece.thought_signature, arguments_text=given if is_own else None)
        case "native":
            shown = [cast("StatedText", _part(each)) for each in piece.fallback if each.kind == "text"]
            made = BlockPart(protocol=piece.protocol, block=dict(piece.block), shown=shown)
        case _:
            text = cast("TextContent", piece)
            made = StatedText(
                length=len(text.text), digest=mark_of(text.text), signature=text.text_signature, phase=text.phase
            )
    return replace(made, extra=extra)


# -- reading -----------------------------------------------------------------------------------------------------------


def with_bound_state(message: M, stored: object, notes: Notes, path: Path) -> M:
    """Restore a message that was read from the fields of a format; where the object does not fit, that is noted."""
    if stored is None:
        return message
    try:
        return cast("M", _restored(message, stored))
    except _Misfit as misfit:
        notes.add(ChangeCode.SIGNATURE_REMOVED, path, Loss.OPAQUE, str(misfit))
        return message


def _restored(message: Message, stored: object) -> Message:
    try:
        state = msgspec.convert(stored, BoundState)
    except msgspec.ValidationError as error:
        raise _Misfit("schema", str(error)) from error
    reader = _Reader(message)
    content = tuple([reader.piece(part) for part in state.content])
    reader.end()
    if not isinstance(message, AssistantMessage):
        if any(piece.kind != "text" for piece in content):
            raise _Misfit("schema", "only a reply has other parts than texts")
        return replace(message, content=cast("Any", content))
    if message.model and state.model and message.model != state.model:
        raise _Misfit("model", f"the step names {message.model}, the state {state.model}")
    sent = state.prefix if state.account is None else replace(state.prefix or Sent(), account=state.account)
    made = replace(
        message,
        content=cast("Any", content),
        protocol=state.protocol or message.protocol,
        provider=state.provider or message.provider,
        model=state.model or message.model,
        response_model=state.response_model,
        response_id=state.response_id,
        sent=sent,
        extra={**(message.extra or {}), state.protocol: state.fields} if state.fields else message.extra,
    )
    if sent is not None and sent.blocks and sent.blocks != marks_of(made):
        raise _Misfit("marks", "the signatures are not those of the blocks that the prefix names")
    return made


@final
class _Reader:
    """Takes the words of a message part by part."""

    def __init__(self, message: Message) -> None:
        texts = [piece.text for piece in message.content if piece.kind == "text"]
        thoughts = [piece.thinking for piece in message.content if piece.kind == "thinking"]
        self._words: dict[StateCode, str] = {
            code: "".join(f"{words}\n" for words in given if words)
            for code, given in cast("dict[StateCode, list[str]]", {"text": texts, "thinking": thoughts}).items()
        }
        self._calls = [piece for piece in message.content if piece.kind == "toolCall"]
        self._kept = [piece for piece in message.content if piece.kind in {"image", "file"}]

    def piece(self, part: Part) -> AnyContent:
        """Return the content of the next part."""
        match part:
            case StatedText():
                return self._text(part)
            case ThinkingPart():
                words = self._take("thinking", part)
                made: AnyContent = ThinkingContent(
                    thinking=words, thinking_signature=part.signature, redacted=part.redacted
                )
            case StatedCall():
                made = self._call(part)
            case BlockPart():
                fallback = tuple([self._text(each) for each in part.shown])
                made = NativeContent(protocol=part.protocol, block=part.block, fallback=fallback)
        return replace(made, extra=part.extra)

    def _text(self, part: StatedText) -> TextContent:
        words = self._take("text", part)
        return TextContent(text=words, text_signature=part.signature, phase=part.phase, extra=part.extra)

    def _take(self, code: StateCode, part: StatedText | ThinkingPart) -> str:
        if part.length == 0:
            return ""
        rest = self._words[code]
        words, end = rest[: part.length], rest[part.length : part.length + 1]
        if end != "\n" or mark_of(words) != part.digest:
            raise _Misfit(code, "the words are not those of the state")
        self._words[code] = rest[part.length + 1 :]
        return words

    def _call(self, part: StatedCall) -> ToolCall:
        if not self._calls or self._calls[0].id != part.id:
            raise _Misfit("call", f"the step does not have the call {part.id} here")
        call, text = self._calls.pop(0), part.arguments_text
        if text is not None and not same(parse_arguments(text).arguments, call.arguments):
            raise _Misfit("call", f"the arguments of {part.id} are not those of the state")
        return replace(call, thought_signature=part.signature, arguments_text=text)

    def end(self) -> None:
        """Refuse a message that has more than the state names."""
        for code, rest in self._words.items():
            if rest:
                raise _Misfit(code, "the step has words that the state does not name")
        if self._calls or self._kept:
            raise _Misfit("call", "the step has parts that the state does not name")


# -- checking ----------------------------------------------------------------------------------------------------------


def find_faults(messages: Sequence[Message], report: Report) -> Iterator[StateFault]:
    """Yield what does not fit: what reading noted, and chains of reasoning with a block that no reply has."""
    for change in report.of(ChangeCode.SIGNATURE_REMOVED):
        about, _, rest = change.detail.partition(": ")
        if about == _DETAIL:
            code, _, detail = rest.partition(": ")
            yield StateFault(cast("StateCode", code), change.path, detail)
    known: set[str] = set()
    for at, message in enumerate(messages):
        if not isinstance(message, AssistantMessage):
            continue
        sent = message.sent
        before = None if sent is None else sent.before
        if before is not None and before not in known:
            yield StateFault("chain", ("messages", at), f"it was made after a block that no reply has: {before}")
        known.update(marks_of(message))
