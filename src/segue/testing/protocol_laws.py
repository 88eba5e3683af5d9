"""The laws of protocols: properties that hold for every protocol, as functions that any test can call.

There are two kinds. A law over samples takes one sample exchange of the record. A law over histories takes a model of
the protocol and a seed, from which it generates a history. A law that does not hold raises `BrokenLaw`, an
`AssertionError` with the protocol, the law, and the sample or the model and seed.

segue's own tests run these functions on every registered protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, NoReturn, TypeAlias, cast, final

import msgspec
from msgspec.structs import replace

from segue.conversation.content import (
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from segue.conversation.context import Context, NativeTool, Options, Prompt, ToolDefinition
from segue.conversation.events import Event
from segue.conversation.messages import AssistantMessage, SystemMessage, ToolResultMessage, UserMessage
from segue.errors import DecodeError, EmptyConversation
from segue.models.model import Model
from segue.outbox import Outbox
from segue.projection.projector import project
from segue.protocols.api import resolve_endpoint
from segue.protocols.detection import detect_protocol, detect_reply
from segue.protocols.kit.clues import Clues
from segue.protocols.kit.protocol import Protocol, Sample
from segue.protocols.kit.streaming import Frame
from segue.protocols.registry import register_protocol
from segue.request import Request, prepare
from segue.testing.compare import answered_prefixes, joined_turns, messages_given, prompt_given, without_fields
from segue.testing.frames import split_stream, write_stream
from segue.testing.histories import make_broken_context, make_options, make_own_context

SampleLaw: TypeAlias = Callable[[Protocol, Sample], None]
HistoryLaw: TypeAlias = Callable[[Protocol, Model, int], None]


@final
class BrokenLaw(AssertionError):
    """A law does not hold for a protocol."""


@final
@dataclass(frozen=True)
class Case:
    """One law on one sample, or on one model with several histories; call it to check. `str` gives its name."""

    name: str
    check: Callable[[], None]

    def __call__(self) -> None:
        """Check the law.

        Raises:
            BrokenLaw: it does not hold.
        """
        self.check()

    def __str__(self) -> str:
        return self.name


def check_protocol(record: Protocol, *, models: Sequence[Model] = (), histories: int = 30) -> None:
    """Check every law on a protocol. The record is registered first, because laws about requests look it up by name.

    `models` are targets besides the record's example: with and without reasoning, with and without images. `histories`
    is the number of generated histories for each law and model.

    Raises:
        BrokenLaw: lists every law that does not hold, with the sample or the seed that reproduces the failure.
        SettingsError: another protocol has the record's name.
    """
    broken: list[str] = []
    for case in protocol_cases(record, models=models, histories=histories):
        try:
            case()
        except BrokenLaw as error:
            broken.append(str(error))
    if broken:
        raise BrokenLaw("\n".join((f"{len(broken)} laws do not hold for {record.name}:", *broken)))


def protocol_cases(record: Protocol, *, models: Sequence[Model] = (), histories: int = 30) -> list[Case]:
    """List every law as one case, for `pytest.mark.parametrize`; the arguments are those of `check_protocol`.

    Raises:
        SettingsError: another protocol has the record's name.
    """
    register_protocol(record)
    cases = [Case("the record is complete", partial(check_record, record))]
    cases += [
        Case(f"{_title(law)} [{sample.name}]", partial(_check_sample, law, record, sample))
        for sample in record.samples()
        for law in SAMPLE_LAWS
    ]
    targets = {model.full_name(): model for model in (record.example, *models)}
    cases += [
        Case(f"{_title(law)} [{name}]", partial(_check_histories, law, record, model, histories))
        for name, model in targets.items()
        for law in HISTORY_LAWS
    ]
    return cases


def _check_sample(law: SampleLaw, record: Protocol, sample: Sample) -> None:
    with _naming(record, _title(law), f"sample {sample.name}"):
        law(record, sample)


def _check_histories(law: HistoryLaw, record: Protocol, model: Model, histories: int) -> None:
    for seed in range(histories):
        with _naming(record, _title(law), _where(model, seed)):
            law(record, model, seed)


@contextmanager
def _naming(record: Protocol, law: str, where: str) -> Generator[None]:
    """Convert an exception of the protocol's functions to `BrokenLaw`, with the sample or the seed."""
    try:
        yield
    except BrokenLaw:
        raise
    except Exception as error:
        raise BrokenLaw(f"{record.name}: {law} ({where}): raised {type(error).__name__}: {error}") from error


def _title(law: SampleLaw | HistoryLaw) -> str:
    name = cast("str", getattr(law, "__name__", ""))
    return name.removeprefix("check_").replace("_", " ")


def _fail(record: Protocol, law: str, where: str, detail: str) -> NoReturn:
    raise BrokenLaw(f"{record.name}: {law} ({where}): {detail}")


def _expect_equal(record: Protocol, law: str, where: str, found: object, wanted: object) -> None:
    if found != wanted:
        _fail(record, law, where, "; ".join(_differences(found, wanted)) or f"got {found!r}, expected {wanted!r}")


def _differences(found: object, wanted: object, path: str = "") -> Iterator[str]:
    """Describe where two values differ, by path and in a shortened form."""
    one, other = _fields(found), _fields(wanted)
    if one is not None and other is not None:
        for key in dict.fromkeys((*one, *other)):
            if key not in one or key not in other:
                yield f"{path}.{key} is {'missing' if key not in one else 'not expected'}"
            elif one[key] != other[key]:
                yield from _differences(one[key], other[key], f"{path}.{key}")
        return
    ours, theirs = _items(found), _items(wanted)
    if ours is None or theirs is None or len(ours) != len(theirs):
        yield f"{path or 'value'} is {_short(found)}, expected {_short(wanted)}"
        return
    for at, (item, expected) in enumerate(zip(ours, theirs, strict=True)):
        if item != expected:
            yield from _differences(item, expected, f"{path}[{at}]")


def _fields(value: object) -> Mapping[str, object] | None:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else None


def _items(value: object) -> list[object] | None:
    return cast("list[object]", value) if isinstance(value, list) else None


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}..."


# -- the record --------------------------------------------------------------------------------------------------------

_NEUTRAL_TYPES: Final = (
    AssistantMessage,
    Context,
    FileContent,
    ImageContent,
    NativeContent,
    NativeTool,
    Options,
    Prompt,
    SystemMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolDefinition,
    ToolResultMessage,
    UserMessage,
)
_NEUTRAL_FIELDS: Final = frozenset(name for kind in _NEUTRAL_TYPES for name in kind.__struct_fields__)
_NOT_FIELDS: Final = frozenset({"turns", "pieces"})
_ODD_ERRORS: Final[tuple[object, ...]] = (None, "", "no JSON", b"\xff", 7, [], {}, {"error": None}, {"error": {}})


def check_record(record: Protocol) -> None:
    """The data of the record is consistent, and `decode_error` reads any error body.

    Raises:
        BrokenLaw: a field has an invalid value, or `decode_error` raises.
    """
    law = "the record is complete"
    if unknown := record.not_carried - _NEUTRAL_FIELDS - _NOT_FIELDS:
        _fail(record, law, "not_carried", f"no neutral type has a field {', '.join(sorted(unknown))}")
    if not record.documentation.title:
        _fail(record, law, "documentation", "the title is empty")
    if not record.samples():
        _fail(record, law, "samples", "there are no samples; add one, because most laws need it")
    for body in _ODD_ERRORS:
        try:
            record.decode_error(body, 500)
        except Exception as error:  # noqa: BLE001 - any exception is the finding
            _fail(record, law, "decode_error", f"{body!r} raised {type(error).__name__}: {error}")


# -- laws over samples -------------------------------------------------------------------------------------------------


def check_request_round_trip(record: Protocol, sample: Sample) -> None:
    """A request that was read is written back unchanged, and `check` accepts it.

    Raises:
        BrokenLaw: it is not.
    """
    if sample.request is None:
        return
    law, endpoint = "a request is written back unchanged", resolve_endpoint(record.example)
    prompt = record.decode_request(sample.request, endpoint)
    _expect_equal(record, law, sample.name, record.encode_request(prompt, endpoint), sample.request)
    if violations := record.check(sample.request, endpoint):
        _fail(record, "check accepts a request that the provider accepts", sample.name, repr(violations))


def check_detection(record: Protocol, sample: Sample) -> None:
    """A request and a reply are recognised, where the record has clues for them.

    Raises:
        BrokenLaw: detection names another protocol.
    """
    law = "a body is recognised"
    if sample.request is not None and replace(record.clues, reply_keys={}, turns_key="messages") != Clues():
        _expect_equal(record, law, f"{sample.name}, request", detect_protocol(sample.request), record.name)
    keys = record.clues.reply_keys
    if sample.response is not None and not keys.keys().isdisjoint(sample.response):
        _expect_equal(record, law, f"{sample.name}, response", detect_reply(sample.response), record.name)


def check_response_round_trip(record: Protocol, sample: Sample) -> None:
    """A whole reply that was read is written back unchanged.

    Raises:
        BrokenLaw: it is not.
    """
    if sample.response is not None:
        law, endpoint = "a reply is written back unchanged", resolve_endpoint(record.example)
        message = record.decode_response(sample.response, endpoint, {})
        _expect_equal(record, law, sample.name, record.encode_response(message, endpoint), sample.response)


def check_folded_stream(record: Protocol, sample: Sample) -> None:
    """The folded stream equals the whole reply; `start` comes first, one terminal event last, and nothing after it.

    Raises:
        BrokenLaw: one of these does not hold.
    """
    if sample.stream is None:
        return
    law = "the folded stream equals the whole reply"
    events, message = _decode_stream(record, sample.stream)
    _check_events(record, sample.name, events)
    last = events[-1]
    final = last.message if last.type == "done" or last.type == "error" else None
    _expect_equal(record, law, sample.name, final, message)
    if sample.response is not None:
        whole = record.decode_response(sample.response, resolve_endpoint(record.example), {})
        _expect_equal(record, law, sample.name, msgspec.to_builtins(message), msgspec.to_builtins(whole))


def check_split_stream(record: Protocol, sample: Sample) -> None:
    """Any split of the bytes of a stream gives the same events.

    Raises:
        BrokenLaw: a split gives other events.
    """
    if sample.stream is None or record.framing == "none":
        return
    wanted, _ = _decode_stream(record, sample.stream)
    stream = b"".join(write_stream(record.framing, sample))
    for size in (1, 2, 7, 64, len(stream)):
        events, _ = _decode_stream(record, split_stream(record.framing, stream, size))
        _expect_equal(record, "any split of the bytes gives the same events", f"{sample.name}, {size}", events, wanted)


def check_broken_stream(record: Protocol, sample: Sample) -> None:
    """A stream that stops after any frame, or reports an error, ends with exactly one terminal event.

    Raises:
        BrokenLaw: it has none or several, or an error in the stream does not give an `error` event.
    """
    frames = sample.stream or ()
    for count in range(len(frames)):
        events, _ = _decode_stream(record, frames[:count])
        _check_events(record, f"{sample.name}, first {count} frames", events)
    if sample.stream_error is not None:
        for count in (0, len(frames) // 2):
            events, _ = _decode_stream(record, (*frames[:count], sample.stream_error))
            where = f"{sample.name}, an error after {count} frames"
            _check_events(record, where, events)
            _expect_equal(record, "an error in a stream ends it", where, events[-1].type, "error")


def check_tool_names(record: Protocol, sample: Sample) -> None:
    """Tool names that were changed for the request are mapped back, in a whole reply and in a stream.

    Raises:
        BrokenLaw: a call has the changed name.
    """
    law, endpoint = "tool names are mapped back", resolve_endpoint(record.example)
    if sample.response is not None:
        wire = [call.name for call in record.decode_response(sample.response, endpoint, {}).tool_calls()]
        names = {name: f"mcp.{name}" for name in wire}
        mapped = record.decode_response(sample.response, endpoint, names).tool_calls()
        _expect_equal(record, law, sample.name, [call.name for call in mapped], [names[name] for name in wire])
    if sample.stream is not None:
        wire = [call.name for call in _decode_stream(record, sample.stream)[1].tool_calls()]
        names = {name: f"mcp.{name}" for name in wire}
        mapped = _decode_stream(record, sample.stream, names)[1].tool_calls()
        _expect_equal(record, law, f"{sample.name}, stream", [c.name for c in mapped], [names[name] for name in wire])


def check_damaged_bodies(record: Protocol, sample: Sample) -> None:
    """A body with a key removed or replaced is written back unchanged, or refused with `DecodeError`.

    Raises:
        BrokenLaw: `check` or the codec raises another exception, or the body is not written back unchanged.
    """
    endpoint, law = resolve_endpoint(record.example), "a damaged body is read or refused"
    for body, where in _damaged(sample.request):
        try:
            record.check(body, endpoint)
            back = record.encode_request(record.decode_request(body, endpoint), endpoint)
        except DecodeError:
            continue
        except Exception as error:  # noqa: BLE001 - any exception is the finding
            _fail(record, law, f"{sample.name}, request{where}", f"{type(error).__name__}: {error}")
        _expect_equal(record, law, f"{sample.name}, request{where}", back, body)
    for body, where in _damaged(sample.response):
        try:
            back = record.encode_response(record.decode_response(body, endpoint, {}), endpoint)
        except DecodeError:
            continue
        except Exception as error:  # noqa: BLE001 - the same
            _fail(record, law, f"{sample.name}, response{where}", f"{type(error).__name__}: {error}")
        _expect_equal(record, law, f"{sample.name}, response{where}", back, body)


_ODD_VALUES: Final[tuple[object, ...]] = (None, 7, "odd", [], {}, [None])


def _damaged(body: dict[str, object] | None) -> Iterator[tuple[dict[str, object], str]]:
    """Give copies of a body, each with one key removed, replaced or added, and a description of the change."""
    for key in body or ():
        copied = dict(body or {})
        del copied[key]
        yield copied, f" without {key}"
        for value in _ODD_VALUES:
            yield {**(body or {}), key: value}, f" with {key}: {value!r}"
    if body is not None:
        yield {**body, "vendor_key": {"a": [1]}}, " with vendor_key"


SAMPLE_LAWS: Final[tuple[SampleLaw, ...]] = (
    check_request_round_trip,
    check_response_round_trip,
    check_detection,
    check_folded_stream,
    check_split_stream,
    check_broken_stream,
    check_tool_names,
    check_damaged_bodies,
)


def _decode_stream(
    record: Protocol, frames: Sequence[Frame], names: Mapping[str, str] | None = None
) -> tuple[list[Event], AssistantMessage]:
    decoder = record.stream_decoder(resolve_endpoint(record.example), names or {})
    events = [event for frame in frames for event in decoder.feed(frame)]
    return [*events, *decoder.finish()], decoder.message


def _check_events(record: Protocol, where: str, events: Sequence[Event]) -> None:
    law = "a stream begins with start and ends with one terminal event"
    kinds = [event.type for event in events]
    if not kinds or kinds[0] != "start" or kinds.count("start") != 1:
        _fail(record, law, where, f"the events begin with {kinds[:3]}")
    if [kind for kind in kinds if kind in ("done", "error")] != [kinds[-1]]:
        _fail(record, law, where, f"the events end with {kinds[-3:]}")


# -- laws over generated histories -------------------------------------------------------------------------------------

_SENT_OPTIONS: Final = (
    "max_tokens",
    "temperature",
    "top_p",
    "stop",
    "seed",
    "tool_choice",
    "output_schema",
    "user_id",
    "stream",
)
"""Options that are read back with the value that was sent; many protocols convert `thinking` to other units."""


def _where(model: Model, seed: int) -> str:
    return f"model {model.full_name()}, seed {seed}"


def _prepare(context: Context, model: Model, options: Options | None = None) -> Request | None:
    try:
        return prepare(context, model, options=options)
    except EmptyConversation:
        return None


def check_valid(record: Protocol, model: Model, seed: int) -> None:
    """Any history becomes a request that `check` accepts.

    Raises:
        BrokenLaw: `check` finds a violation, or the request cannot be written.
    """
    law, where = "any history becomes a request that check accepts", _where(model, seed)
    request = _prepare(make_broken_context(seed, model), model, make_options(seed))
    if request is None:
        return
    if violations := record.check(request.body, resolve_endpoint(model)):
        _fail(record, law, where, repr(violations))
    if not request.content:
        _fail(record, law, where, "the body is empty")


def check_projected_round_trip(record: Protocol, model: Model, seed: int) -> None:
    """A projected request is decoded to the same conversation, except for `not_carried`, and encoded again unchanged.

    Raises:
        BrokenLaw: the conversation or the body differs.
    """
    request = _prepare(make_broken_context(seed, model), model)
    if request is None:
        return
    law, where, endpoint = "a projected request is read back", _where(model, seed), resolve_endpoint(model)
    read = record.decode_request(request.body, endpoint)
    _expect_equal(record, law, where, record.encode_request(read, endpoint), request.body)
    sent, back = request.projection.context, read.context
    if "turns" in record.not_carried:
        sent, back = joined_turns(sent), joined_turns(back)
    if "pieces" in record.not_carried:
        given, found = (messages_given(each, record.not_carried) for each in (sent, back))
        _expect_equal(record, law, where, found, given)
        _expect_equal(record, law, where, prompt_given(back), prompt_given(sent))
        tools = [without_fields(each.tools, record.not_carried | {"extra"}) for each in (back, sent)]
        _expect_equal(record, law, where, *tools)
        return
    names = record.not_carried | {"extra"}  # wire format: the first half of this law compares it
    _expect_equal(record, law, where, without_fields(back, names), without_fields(sent, names))


def check_own_history(record: Protocol, model: Model, seed: int) -> None:
    """A well-formed history that the model itself wrote is sent without a change.

    Raises:
        BrokenLaw: the report has a change.
    """
    if model.router:
        return  # a router is never the origin of a turn: replies name the model that answered
    request = _prepare(make_own_context(seed, model), model)
    if request is not None and request.report.changes:
        law = "the model's own history is sent without a change"
        _fail(record, law, _where(model, seed), request.report.summary())


def check_prefix(record: Protocol, model: Model, seed: int) -> None:
    """An answered request is a prefix of every later request.

    Raises:
        BrokenLaw: a later request writes a turn differently.
    """
    key = record.turns_key
    if key is None:
        return
    # The law excludes media limits, which remove older images, and cache marks, which move.
    model = replace(model, rules={**model.rules, "max_images": 0, "max_files": 0, "cache_marks": 0})
    context = make_broken_context(seed, model)
    whole = _prepare(context, model)
    if whole is None:
        return
    for place in answered_prefixes(context):
        earlier = _prepare(replace(context, messages=context.messages[:place]), model)
        if earlier is not None:
            before, after = (cast("list[object]", each.body[key]) for each in (earlier, whole))
            where = f"{_where(model, seed)}, first {place} messages"
            _expect_equal(record, "an answered request is a prefix of later ones", where, after[: len(before)], before)


def check_pure(record: Protocol, model: Model, seed: int) -> None:
    """`prepare` does not change the history, and gives the same bytes every time.

    Raises:
        BrokenLaw: the history was changed, or the bytes differ.
    """
    law, where, context = "preparing a history is pure", _where(model, seed), make_broken_context(seed, model)
    before = msgspec.to_builtins(context)
    one, other = _prepare(context, model), _prepare(context, model)
    _expect_equal(record, law, where, msgspec.to_builtins(context), before)
    if one is not None and other is not None:
        _expect_equal(record, law, where, other.content, one.content)


def check_idempotent(record: Protocol, model: Model, seed: int) -> None:
    """Projecting a projected history changes nothing.

    Raises:
        BrokenLaw: the second report has a change, or the context is another object.
    """
    once = project(make_broken_context(seed, model), model)
    twice = project(once.context, model, options=once.options)
    law, where = "projecting a projected history changes nothing", _where(model, seed)
    if twice.report.changes:
        _fail(record, law, where, twice.report.summary())
    if twice.context is not once.context:
        _fail(record, law, where, "the context is another object")


def check_options(record: Protocol, model: Model, seed: int) -> None:
    """An option is in the request, or its removal is in the report.

    Raises:
        BrokenLaw: the body does not hold the options that projection kept.
    """
    request = _prepare(make_own_context(seed, model), model, make_options(seed))
    if request is None:
        return
    read = record.decode_request(request.body, resolve_endpoint(model)).options
    result = request.projection.options
    names = [name for name in _SENT_OPTIONS if name not in record.not_carried]
    if result.max_tokens is None and "max_tokens" in names:
        names.remove("max_tokens")  # some protocols require a limit in every request
    found = {name: cast("object", getattr(read, name)) for name in names}
    wanted = {name: cast("object", getattr(result, name)) for name in names}
    for values in (found, wanted):
        # Unset means `auto`, which some protocols have to write beside other fields.
        values["tool_choice"] = values.get("tool_choice") or "auto"
    _expect_equal(record, "an option is sent or its removal is reported", _where(model, seed), found, wanted)


def check_incremental(record: Protocol, model: Model, seed: int) -> None:
    """An `Outbox` writes the same bytes for a growing history as `prepare` for the whole history.

    Raises:
        BrokenLaw: the bytes differ.
    """
    context, outbox = make_broken_context(seed, model), Outbox(model)
    for count in range(1, len(context.messages) + 1):
        grown = replace(context, messages=context.messages[:count])
        wanted = _prepare(grown, model)
        if wanted is not None:
            where = f"{_where(model, seed)}, first {count} messages"
            found = outbox.prepare(grown).content
            _expect_equal(record, "an outbox writes what prepare writes", where, found, wanted.content)


HISTORY_LAWS: Final[tuple[HistoryLaw, ...]] = (
    check_valid,
    check_projected_round_trip,
    check_own_history,
    check_prefix,
    check_pure,
    check_idempotent,
    check_options,
    check_incremental,
)
