"""Makes what a codec reads storable: every protocol's decoders get plain JSON and give values that can be dumped.

Facts:
- Servers written in Python send `NaN` for missing numbers, mostly in log probabilities, and `1e999` is valid JSON that
  no float can hold. `json.loads` accepts both; stored JSON cannot represent them.        (RFC 8259; vLLM, seen 2026)
- msgspec writes NaN as null without an error, so NaN in the arguments of a call would be sent as another value.
                                                                                         (msgspec 0.22.0, tried)
- Bodies are also built by programs: they hold tuples, bytes, other mappings, and objects that contain themselves.

There are two steps. Before decoding, a body becomes plain JSON of limited depth, with text in place of what JSON cannot
represent, so no codec has to expect such values. After decoding, the result is cut where it is still nested too deeply:
only its final place in the conversation decides that. A message in which something was replaced gets a diagnostic. The
second step is skipped for bodies that were plain, which nearly all are.

Bytes and objects of SDKs are left to the codecs, which read bytes (boto3 gives them) and name the class in their
errors. What is left of them becomes text in the second step.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar, cast, final

import msgspec
from msgspec.structs import replace

from segue.conversation.content import Value
from segue.conversation.context import Prompt
from segue.conversation.fast_checks import WrongType, checked_values, free_form_values_of, is_plain
from segue.conversation.limits import ABOVE_A_MESSAGE, MAX_DIGITS, MAX_NESTING
from segue.conversation.messages import AssistantMessage, Diagnostic
from segue.errors import DecodeError, SegueError
from segue.protocols.kit.checking import CheckedBody, check_json
from segue.protocols.kit.codec import Endpoint, JsonObject, Violation, WireError

UNREADABLE: Final = "this body cannot be read"
"""The first words of the error of a body that a codec failed on with an exception that is not one of segue's."""
UNEXPECTED: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What a codec may raise on a value of a type that it does not expect."""

_DEEPEST: Final = MAX_NESTING + 20
"""Levels of a body that are kept: some bodies have more levels above a value than the stored conversation."""
_TOO_DEEP: Final = "(nested too deeply to be stored)"
_CYCLE: Final = "(a value that contains itself)"
_TOO_LONG: Final = f"(an integer of more than {MAX_DIGITS:,} digits)"
_LARGEST: Final = 10**MAX_DIGITS
_BYTES: Final = frozenset[type]({bytes, bytearray, memoryview})

_Any = TypeVar("_Any")


# -- bodies and frames -------------------------------------------------------------------------------------------------


def make_plain(value: _Any, replaced: list[str]) -> _Any:
    """Return a body as plain JSON; the same object if it is.

    `replaced` collects the texts that are in place of other values. `repair` recognises them as the same objects.
    """
    return value if is_plain([value]) else cast("_Any", _plain(value, _DEEPEST, set(), replaced))


def _plain(value: object, levels: int, above: set[int], replaced: list[str]) -> object:
    if not isinstance(value, (dict, Mapping, list, tuple)):
        return _scalar(value, replaced)
    own = id(cast("object", value))
    if own in above:
        return _note(_CYCLE, replaced)
    if levels == 0:
        return _note(_TOO_DEEP, replaced)
    above.add(own)
    plain: object
    if isinstance(value, (list, tuple)):
        items: list[object] = []
        for item in cast("Sequence[object]", value):
            items.append(_plain(item, levels - 1, above, replaced))  # noqa: PERF401 - one frame of the stack per level
        plain = items
    else:
        members: dict[str, object] = {}
        for key, item in cast("Mapping[object, object]", value).items():
            members[_key(key, replaced)] = _plain(item, levels - 1, above, replaced)
        plain = members
    above.discard(own)
    return plain


def _key(key: object, replaced: list[str]) -> str:
    if isinstance(key, str):
        return str.__str__(key)
    replaced.append("")  # the name of a key is not text that can be found again
    return repr(_scalar(key, replaced)) if key is None or isinstance(key, (int, float)) else _name(key)


def _scalar(value: object, replaced: list[str]) -> object:
    """Return a plain value for a subclass, such as an enum, and a text for a number that JSON cannot represent."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if -_LARGEST < value < _LARGEST else _note(_TOO_LONG, replaced)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else _note(str(float(value)), replaced)
    if value is None or type(value) in _BYTES or callable(getattr(value, "model_dump", None)):
        return value
    return _note(_name(value), replaced)


def _note(text: str, replaced: list[str]) -> str:
    """Return a new string object with this text, and remember it."""
    made = "".join((text[:1], text[1:]))
    replaced.append(made)
    return made


def _name(value: object) -> str:
    return f"(a value of type {type(value).__name__})"


# -- what was decoded --------------------------------------------------------------------------------------------------


def repair(value: _Any, level: int, replaced: list[str]) -> _Any:
    """Return a decoded value that can be stored; the same object if it can be. `level` counts the levels above it.

    `replaced` has the texts of `make_plain`. An assistant message that holds one of them, or in which something is
    replaced here, gets a diagnostic.
    """
    return cast("_Any", _Repair(replaced).repair(value, level))


class _Repair:
    def __init__(self, replaced: Collection[str]) -> None:
        self._known = set(map(id, replaced))
        self._found = False

    def repair(self, value: object, level: int) -> object:
        """Repair a value of any type."""
        if isinstance(value, str):
            self._found = self._found or id(value) in self._known
            return value
        if value is None or isinstance(value, (int, float)):
            return value  # `make_plain` has replaced the others, and codecs compute none
        if isinstance(value, AssistantMessage):
            return self._repair_message(value, level)
        if isinstance(value, Value):
            return self._repair_fields(value, level)
        if isinstance(value, (dict, Mapping, list, tuple)):
            if level >= MAX_NESTING:
                self._found = True
                return _TOO_DEEP
            return self._repair_members(cast("Mapping[object, object] | Sequence[object]", value), level)
        self._found = True
        return b64encode(cast("bytes", value)).decode() if type(value) in _BYTES else _name(value)

    def _repair_message(self, message: AssistantMessage, level: int) -> AssistantMessage:
        before, self._found = self._found, False
        message = self._repair_fields(message, level)
        if self._found:
            message = replace(message, diagnostics=(*message.diagnostics, _UNSTORABLE))
        self._found = before or self._found
        return message

    def _repair_fields(self, value: _Any, level: int) -> _Any:
        changed: dict[str, object] = {}
        for name in cast("Value", value).__struct_fields__:
            given = getattr(value, name)
            if given is not None and type(given) is not bool:
                repaired = self.repair(given, level + 1)
                if repaired is not given:
                    changed[name] = repaired
        return cast("_Any", replace(cast("Value", value), **changed)) if changed else value

    def _repair_members(self, value: Mapping[object, object] | Sequence[object], level: int) -> object:
        is_same = True
        if isinstance(value, Mapping):
            members: dict[object, object] = {}
            for key, item in value.items():
                repaired = members[key] = self.repair(item, level + 1)
                is_same = is_same and repaired is item
            return members if not is_same or type(cast("object", value)) is not dict else cast("object", value)
        items: list[object] = []
        for item in value:
            repaired = self.repair(item, level + 1)
            is_same = is_same and repaired is item
            items.append(repaired)
        return value if is_same else type(value)(items) if isinstance(value, (list, tuple)) else items


_UNSTORABLE: Final = Diagnostic(
    type="unstorable",
    message="values that JSON cannot store (NaN, infinities, too many levels or digits) were replaced by text",
)


# -- the functions of a protocol ---------------------------------------------------------------------------------------
# They are classes, so that records with the same functions stay equal and a copy of a record is not wrapped again.

RequestDecoder: TypeAlias = Callable[[JsonObject | Sequence[object], Endpoint], Prompt]
ResponseDecoder: TypeAlias = Callable[[JsonObject, Endpoint, Mapping[str, str]], AssistantMessage]
Check: TypeAlias = Callable[[JsonObject, Endpoint], list[Violation]]
ErrorDecoder: TypeAlias = Callable[[object, int | None], WireError]


@final
class StorableRequests(msgspec.Struct, frozen=True):
    """The `decode_request` of a protocol; its result can be stored.

    The turns of a body, which are nearly all of it, are not checked themselves: the codec reads most of their values
    into typed fields, and checking the result costs a third of checking the body.
    """

    decode: RequestDecoder
    turns_key: str | None

    def __call__(self, body: JsonObject | Sequence[object], endpoint: Endpoint) -> Prompt:
        """Decode a request.

        Raises:
            DecodeError: the body does not follow the protocol.
        """
        if not isinstance(body, (dict, list, Mapping, tuple)):
            raise DecodeError(f"a request has to be an object or a list of messages, not {type(body).__name__}")
        prompt = self._decode_plain(body, endpoint)
        if prompt is not None:
            return prompt
        try:
            replaced: list[str] = []
            prompt = self.decode(make_plain(body, replaced), endpoint)
            context, options = repair(prompt.context, 0, replaced), repair(prompt.options, 0, replaced)
            return Prompt(context=context, options=options, model=prompt.model)
        except UNEXPECTED as error:
            raise _unreadable(error) from error

    def _decode_plain(self, body: JsonObject | Sequence[object], endpoint: Endpoint) -> Prompt | None:
        """Decode a body of plain JSON, as nearly all are; None if this one may be another, or cannot be read."""
        given = cast("dict[str, object] | list[object]", body)
        if type(given) is dict:
            beside = [value for key, value in given.items() if key != self.turns_key]
            if type(given.get(self.turns_key or "")) is not list or not is_plain(beside):
                return None
        elif type(given) is not list:
            return None
        try:
            prompt = self.decode(given, endpoint)
            return prompt if is_plain(checked_values(prompt.context)) else None
        except (SegueError, WrongType, *UNEXPECTED):
            return None


@final
class ParsedReply(dict[str, object]):
    """A reply as msgspec parsed it, of at most `MAX_NESTING` levels: only what is read of it has to be checked."""


@final
class StorableResponses(msgspec.Struct, frozen=True):
    """The `decode_response` of a protocol; its result can be stored."""

    decode: ResponseDecoder

    def __call__(self, body: JsonObject, endpoint: Endpoint, tool_names: Mapping[str, str]) -> AssistantMessage:
        """Decode a reply.

        Raises:
            DecodeError: the body does not follow the protocol.
        """
        if not isinstance(body, (dict, Mapping)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DecodeError(f"a reply has to be an object, not {type(body).__name__}")
        try:
            if type(body) is ParsedReply:
                body = dict(body)
                message = self.decode(body, endpoint, tool_names)
                if is_plain(free_form_values_of((message,))):
                    return message
            if is_plain([body]):
                return self.decode(body, endpoint, tool_names)
            replaced: list[str] = []
            message = self.decode(make_plain(body, replaced), endpoint, tool_names)
            return repair(message, ABOVE_A_MESSAGE, replaced)
        except UNEXPECTED as error:
            raise _unreadable(error) from error


@final
class PlainChecks(msgspec.Struct, frozen=True):
    """The `check` of a protocol; it gets plain JSON, and what is not JSON is found for all."""

    check: Check

    def __call__(self, body: JsonObject, endpoint: Endpoint) -> list[Violation]:
        """Check a body.

        Raises:
            DecodeError: the body cannot be read.
        """
        if not isinstance(body, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DecodeError(f"a request body has to be an object, not {type(body).__name__}")
        try:
            plain = body if isinstance(body, CheckedBody) else CheckedBody(make_plain(body, []))
            return [*check_json(plain), *self.check(plain, endpoint)]
        except UNEXPECTED as error:
            raise _unreadable(error) from error


@final
class PlainErrors(msgspec.Struct, frozen=True):
    """The `decode_error` of a protocol; it gets plain JSON, or what is not JSON unchanged."""

    decode: ErrorDecoder

    def __call__(self, body: object, status: int | None) -> WireError:
        """Decode an error body."""
        try:
            return self.decode(make_plain(body, []), status)
        except UNEXPECTED as error:
            return WireError(status=status, message=f"{UNREADABLE}: {type(error).__name__}")


def _unreadable(error: Exception) -> DecodeError:
    return DecodeError(f"{UNREADABLE}: {type(error).__name__}: {error}")
