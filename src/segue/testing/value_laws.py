"""Laws about values that a body should not have: wrong types, and values that JSON cannot represent.

Each law takes one sample of a protocol's record, and puts such values at every place of its request, its reply and its
stream. Whatever comes out can be stored, and only segue's own errors are raised.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from types import MappingProxyType
from typing import Any, Final, cast

from segue.conversation.arguments import encode_arguments
from segue.conversation.events import Event
from segue.conversation.messages import AssistantMessage
from segue.conversation.stored import dump, dump_message, load_message
from segue.errors import ConversationError, DecodeError, EmptyConversation, Path, render_path
from segue.foundation.json_text import encode_json
from segue.framing.writing import frame_encoder
from segue.projection.replies.projector import ReplyProjector, project_reply
from segue.protocols.api import decode_request, decode_response, encode_response, resolve_endpoint
from segue.protocols.detection import detect_protocol, detect_reply
from segue.protocols.kit.codec import JsonObject
from segue.protocols.kit.protocol import Protocol, Sample
from segue.protocols.kit.storable import UNREADABLE
from segue.protocols.kit.streaming import Frame
from segue.protocols.registry import all_protocols
from segue.requests.check import check
from segue.requests.prepare import prepare
from segue.testing.broken_law import expect_equal, fail
from segue.testing.stream_laws import encode_events

_TRIED: Final = 2
"""How many of the values are tried at each place; the values take turns."""


def _nested(levels: int, inner: object = 1) -> object:
    value = inner
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


def _cyclic_object() -> object:
    value: dict[str, object] = {}
    value |= {"type": value, "id": value, "content": [value, value]}
    return value


def _cyclic_list() -> object:
    value: list[object] = []
    value += [value, value]
    return value


WRONG_VALUES: Final[Mapping[str, object]] = {
    "NaN": math.nan,
    "an infinity": -math.inf,
    "an integer of 5,000 digits": 10**5000,
    "an integer that no float can hold": 10**400,
    "a large integer": 10**30,
    "a negative integer": -1,
    "a float": 1.5,
    "a boolean": True,
    "null": None,
    "an empty text": "",
    "half a surrogate pair": "\ud800",
    "half a surrogate pair as a key": {"\udc00": "\ud83d"},
    "text that is not JSON": '{"a": NaN',
    "deep JSON text": '{"a":' * 300 + "1" + "}" * 300,
    "objects as values of common keys": {
        "type": {"a": 1},
        "id": [1],
        "index": {"a": 1},
        "name": [1],
        "text": {"a": 1},
        "arguments": [1],
    },
    "lists in lists": [[[1]], [None]],
    "a tuple": (1, ("a",)),
    "another mapping": MappingProxyType({"type": "text", "a": (1,)}),
    "keys that are not strings": {1: 2, None: 3, (4,): 5},
    "an object that contains itself": _cyclic_object(),
    "a list that contains itself": _cyclic_list(),
    "160 levels": _nested(160),
    "194 levels": _nested(194),
    "300 levels": _nested(300),
    "300 levels around NaN": _nested(300, math.nan),
    "bytes": b"\xff\xfe",
    "a set": {1, "a"},
    "a date": datetime(2026, 1, 1, tzinfo=UTC),
    "an object of a class": object(),
    "a class": int,
}
"""Values of Python that a body may hold by mistake: wrong types, and values that JSON cannot represent."""


def check_wrong_values(record: Protocol, sample: Sample, *, tried: int = _TRIED) -> None:
    """A body or a stream with a wrong value at any place is read and can be stored, or is refused with `DecodeError`.

    `tried` is how many of `WRONG_VALUES` are tried at each place.

    Raises:
        BrokenLaw: another exception is raised, or what was read cannot be stored or encoded.
    """
    endpoint = resolve_endpoint(record.example)
    turn = count()

    def changed(whole: object) -> Iterator[tuple[object, str]]:
        names = list(WRONG_VALUES)
        for path in _places(whole):
            for _ in range(min(tried, len(names))):
                name = names[next(turn) % len(names)]
                yield _put(whole, path, WRONG_VALUES[name]), f"{render_path(path) or 'the whole'}: {name}"

    def read_request(given: object) -> None:
        body = cast("JsonObject", given)
        record.check(body, endpoint)
        prompt = record.decode_request(body, endpoint)
        dump(prompt.context)
        record.encode_request(prompt, endpoint)

    def read_response(given: object) -> None:
        message = record.decode_response(cast("JsonObject", given), endpoint, {})
        _check_stored(message)
        record.encode_response(message, endpoint)

    def read_error(body: object) -> None:
        error = record.decode_error(body, 400)
        if error.message.startswith(UNREADABLE):
            raise DecodeError(error.message)

    for body, where in changed(sample.request):
        _try(record, f"{sample.name}, request, {where}", read_request, body)
    for body, where in changed(sample.response):
        _try(record, f"{sample.name}, response, {where}", read_response, body)
    for body, where in changed({"error": {"message": "no", "type": "a", "code": 1, "details": [1]}}):
        _try(record, f"{sample.name}, error, {where}", read_error, body)
        _try(record, f"{sample.name}, detection, {where}", detect_protocol, body)
        _try(record, f"{sample.name}, detection, {where}", detect_reply, body)
    frames = list(sample.stream or ())
    for at, frame in enumerate(frames):
        for damaged, where in changed(frame):
            stream = [*frames[:at], damaged, *frames[at + 1 :]]
            _try(record, f"{sample.name}, frame {at}, {where}", lambda given: _read_stream(record, given), stream)


def _try(record: Protocol, where: str, read: Callable[[object], object], body: object) -> None:
    law = "a wrong value is read or refused"
    try:
        read(body)
    except DecodeError as error:
        if error.reason.startswith(UNREADABLE):
            fail(record, law, where, str(error))
    except Exception as error:  # noqa: BLE001 - any exception is the finding
        fail(record, law, where, f"{type(error).__name__}: {error}")


def _read_stream(record: Protocol, given: object) -> AssistantMessage:
    frames = cast("Sequence[Frame]", given)
    decoder = record.stream_decoder(resolve_endpoint(record.example), {})
    events = [event for frame in frames for event in decoder.feed(frame)]
    events += decoder.finish()
    message = decoder.message
    _check_stored(message)
    for event in events:
        if event.type == "toolcall_end":
            dump_message(AssistantMessage(content=(event.tool_call,)))
    if UNREADABLE in (message.error_message or ""):
        raise DecodeError(message.error_message or "")
    return message


def _check_stored(message: AssistantMessage) -> None:
    load_message(dump_message(message))


# -- half a surrogate pair ---------------------------------------------------------------------------------------------


def check_half_surrogates(record: Protocol, sample: Sample) -> None:
    """Half a surrogate pair in any string of a request, a reply or a stream can be sent on, as valid UTF-8.

    The string may also be the value of an unknown key, which is kept with what is read.

    Raises:
        BrokenLaw: what was read cannot be written, for this protocol or for others.
    """
    targets = {record.name: record, **{each.framing: each for each in all_protocols()}}.values()  # one of each framing
    for body, where in _with_halves(sample.request):
        with _writable(record, f"{sample.name}, request, {where}"):
            prompt = decode_request(cast("JsonObject", body), protocol=record.name, model=record.example)
            check(cast("JsonObject", body), protocol=record.name, model=record.example)
            for target in targets:
                content = prepare(prompt.context, target.example, options=prompt.options).content
                if _HALF in json.dumps(json.loads(content), ensure_ascii=False):
                    fail(record, _WRITABLE, f"{sample.name}, {where}", f"the request to {target.name} has the half")
    for body, where in _with_halves(sample.response):
        with _writable(record, f"{sample.name}, response, {where}"):
            message = decode_response(cast("JsonObject", body), protocol=record.name, model=record.example)
            for target in targets:
                reply = project_reply(message, protocol=target.name)
                encode_json(encode_response(reply.message, protocol=target.name, model=target.example))
    frames = list(sample.stream or ())
    for at, frame in enumerate(frames):
        for damaged, where in _with_halves(frame):
            with _writable(record, f"{sample.name}, frame {at}, {where}"):
                decoder = record.stream_decoder(resolve_endpoint(record.example), {})
                given = [*frames[:at], cast("Frame", damaged), *frames[at + 1 :]]
                events = [event for each in given for event in decoder.feed(each)] + decoder.finish()
                for target in targets:
                    _write_stream(target, events, decoder.message)


_WRITABLE: Final = "half a surrogate pair can be sent on"
_HALF: Final = "\ud83d"
_UNKNOWN: Final = "vendor_key"


def _with_halves(whole: object) -> Iterator[tuple[object, str]]:
    for path in _places(whole):
        value = _get(whole, path)
        if isinstance(value, str):
            middle = len(value) // 2
            yield _put(whole, path, value[:middle] + _HALF + value[middle:]), render_path(path)
        elif isinstance(value, dict):
            yield (
                _put(whole, path, {**cast("dict[str, object]", value), _UNKNOWN: _HALF}),
                render_path((*path, _UNKNOWN)),
            )


@contextmanager
def _writable(record: Protocol, where: str) -> Generator[None]:
    """Allow errors that name what is wrong, such as an unknown role, data that is not base64, or nothing to send."""
    try:
        yield
    except (DecodeError, ConversationError, EmptyConversation):
        return
    except UnicodeError as error:
        fail(record, _WRITABLE, where, f"{type(error).__name__}: {error}")


def _write_stream(target: Protocol, events: Sequence[Event], message: AssistantMessage) -> None:
    if target.stream_encoder is None:
        return
    projector = ReplyProjector(protocol=target.name, model=target.example, source=message)
    shown = [made for event in events for made in projector.feed(event)] + projector.finish()
    encoder = frame_encoder(target.framing)
    for frame in encode_events(target, shown):
        encoder.feed(frame)
    encoder.finish()


# -- the arguments of calls --------------------------------------------------------------------------------------------

_ABSENT: Final = object()
WRONG_ARGUMENTS: Final[Mapping[str, object]] = {
    "null": None,
    "missing": _ABSENT,
    "an object": {"a": 1},
    "an empty object": {},
    "an object with NaN": {"a": math.nan},
    "deep": _nested(300),
    "a list": [1],
    "a number": 7,
    "an empty text": "",
    "text that is not JSON": "no JSON",
    "text that is cut off": '{"a": [1, ',
    "a JSON text that is not an object": "[1]",
    "a JSON text with NaN": '{"a": NaN}',
}


def check_call_arguments(record: Protocol, sample: Sample) -> None:
    """A call stays a call whatever its arguments are, in a request, a reply and a stream.

    A request may be refused instead: without ids, results are found by the arguments of their call.

    Raises:
        BrokenLaw: a call is missing, has another name, or the stop reason differs.
    """
    endpoint = resolve_endpoint(record.example)
    law = "a call stays a call whatever its arguments are"
    if sample.request is not None:
        prompt = record.decode_request(sample.request, endpoint)
        turns = [message for message in prompt.context.messages if message.role == "assistant"]
        for body, where in _with_arguments(sample.request, turns):
            try:
                again = record.decode_request(body, endpoint).context.messages
            except DecodeError as error:
                if error.reason.startswith(UNREADABLE):
                    raise
                continue
            found = [message for message in again if message.role == "assistant"]
            expect_equal(record, law, f"{sample.name}, request, {where}", _calls(found), _calls(turns))
    if sample.response is not None:
        whole = record.decode_response(sample.response, endpoint, {})
        for body, where in _with_arguments(sample.response, [whole]):
            found = record.decode_response(body, endpoint, {})
            expect_equal(record, law, f"{sample.name}, response, {where}", _calls([found]), _calls([whole]))
            expect_equal(record, law, f"{sample.name}, {where}, stop", found.stop_reason, whole.stop_reason)
        if sample.stream is not None:
            _check_streamed_arguments(record, sample, law, whole)


def _check_streamed_arguments(record: Protocol, sample: Sample, law: str, whole: AssistantMessage) -> None:
    """Check a stream in which every piece of the arguments is replaced."""
    keys = {str(path[-1]) for path in _argument_places(sample.response, [whole])}
    frames: Sequence[Mapping[str, object]] = sample.stream or ()
    for name, value in WRONG_ARGUMENTS.items():
        damaged = [cast("Frame", _replace_keys(frame, keys, value)) for frame in frames]
        found = _read_stream(record, damaged)
        expect_equal(record, law, f"{sample.name}, stream, {name}", _calls([found]), _calls([whole]))


def _calls(turns: Sequence[AssistantMessage]) -> list[tuple[str, str]]:
    return [(call.id, call.name) for turn in turns for call in turn.tool_calls()]


def _with_arguments(body: object, turns: Sequence[AssistantMessage]) -> Iterator[tuple[Any, str]]:
    for path in _argument_places(body, turns):
        for name, value in WRONG_ARGUMENTS.items():
            yield _put(body, path, value), f"{render_path(path)} {name}"


def _argument_places(body: object, turns: Sequence[AssistantMessage]) -> list[Path]:
    """Find the arguments of calls in a body: objects that equal them, or their text."""
    calls = [call for turn in turns for call in turn.tool_calls() if call.arguments]
    found: list[Path] = []
    for path in _places(body):
        value = _get(body, path)
        for call in calls:
            texts = (call.arguments_text, _compact(call.arguments))
            if path and (value == call.arguments or (isinstance(value, str) and _without_space(value) in texts)):
                found.append(path)
                break
    return found


def _compact(arguments: Mapping[str, object]) -> str:
    return _without_space(encode_arguments(arguments))


def _without_space(text: str) -> str:
    return "".join(text.split())


# -- indexes of a stream -----------------------------------------------------------------------------------------------

_CHOICES: Final = frozenset({"choices", "candidates"})
"""Lists whose indexes name alternative replies, not parts of one."""


def check_shifted_indexes(record: Protocol, sample: Sample) -> None:
    """A stream whose indexes begin at 1 gives the same content as one whose indexes begin at 0.

    Raises:
        BrokenLaw: a part is doubled, missing, or has another content.
    """
    if sample.stream is not None:
        wanted = _read_stream(record, sample.stream)
        found = _read_stream(record, [_shift(frame) for frame in sample.stream])
        expect_equal(record, "indexes of a stream may begin at 1", sample.name, found.content, wanted.content)


def _shift(value: object, parent: str = "") -> object:
    if isinstance(value, dict):
        node = cast("dict[str, object]", value)
        return {
            key: item + 1
            if key.lower().endswith("index") and isinstance(item, int) and parent not in _CHOICES
            else _shift(item, key)
            for key, item in node.items()
        }
    return [_shift(item, parent) for item in cast("list[object]", value)] if isinstance(value, list) else value


# -- places in a JSON value --------------------------------------------------------------------------------------------


def _places(value: object, path: Path = ()) -> Iterator[Path]:
    """List the path of every value inside an object or a list, and that of the whole."""
    if value is None and not path:
        return
    yield path
    if isinstance(value, dict):
        for key, item in cast("dict[str, object]", value).items():
            yield from _places(item, (*path, key))
    elif isinstance(value, (list, tuple)):
        for at, item in enumerate(cast("Sequence[object]", value)):
            yield from _places(item, (*path, at))


def _get(value: object, path: Path) -> object:
    for step in path:
        value = cast("dict[str | int, object]", value)[step]
    return value


def _put(value: object, path: Path, new: object) -> object:
    """Return a copy of the value with another value at the path; without it if it is `_ABSENT`."""
    if not path:
        return new
    step, rest = path[0], path[1:]
    if isinstance(value, dict):
        node = cast("dict[str | int, object]", value)
        if new is _ABSENT and not rest:
            return {key: item for key, item in node.items() if key != step}
        return {**node, step: _put(node[step], rest, new)}
    items = list(cast("Sequence[object]", value))
    items[cast("int", step)] = _put(items[cast("int", step)], rest, new)
    return items


def _replace_keys(value: object, keys: set[str], new: object) -> object:
    """Return a copy of the value in which the given keys have another value at any depth."""
    if isinstance(value, dict):
        node = cast("dict[str, object]", value)
        return {
            key: new if key in keys else _replace_keys(item, keys, new)
            for key, item in node.items()
            if key not in keys or new is not _ABSENT
        }
    if isinstance(value, list):
        return [_replace_keys(item, keys, new) for item in cast("list[object]", value)]
    return value
