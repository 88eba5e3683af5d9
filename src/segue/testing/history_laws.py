"""Laws over histories: each takes a model of the protocol and a seed, from which it generates a history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, cast

import msgspec
from msgspec.structs import replace

from segue.conversation.content import SystemContent, TextContent
from segue.conversation.context import Context, Options
from segue.conversation.messages import SystemMessage, UserMessage
from segue.errors import EmptyConversation
from segue.models.model import Model
from segue.models.origin import new_assistant_message
from segue.projection.policy import Fit, Policy
from segue.projection.projector import Projector, project
from segue.projection.report import ChangeCode
from segue.protocols.api import resolve_endpoint
from segue.protocols.kit.protocol import Protocol
from segue.protocols.registry import PROTOCOLS, get_protocol
from segue.requests.outbox import Outbox
from segue.requests.prepare import Request, convert, prepare
from segue.testing.broken_law import expect_equal, fail
from segue.testing.compare import (
    answered_prefixes,
    joined_turns,
    messages_given,
    prompt_given,
    tools_given,
    without_fields,
)
from segue.testing.histories import make_broken_context, make_options, make_own_context
from segue.testing.reply_laws import check_foreign_replies
from segue.testing.stream_laws import check_any_reply

HistoryLaw: TypeAlias = Callable[[Protocol, Model, int], None]
"""A function that checks one law on the history of a seed, for a model of the protocol."""

_HUGE: Final = 1_000_000_000

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


def history_name(model: Model, seed: int) -> str:
    """Name a generated history, so that it can be generated again."""
    return f"model {model.full_name()}, seed {seed}"


def _prepare(
    context: Context, model: Model, options: Options | None = None, policy: Policy | None = None
) -> Request | None:
    try:
        return prepare(context, model, options=options, policy=policy)
    except EmptyConversation:
        return None


def check_valid(record: Protocol, model: Model, seed: int) -> None:
    """Any history becomes a request that `check` accepts.

    Raises:
        BrokenLaw: `check` finds a violation, or the request cannot be written.
    """
    law, where = "any history becomes a request that check accepts", history_name(model, seed)
    request = _prepare(make_broken_context(seed, model), model, make_options(seed))
    if request is None:
        return
    if violations := record.check(request.body, resolve_endpoint(model)):
        fail(record, law, where, repr(violations))
    if not request.content:
        fail(record, law, where, "the body is empty")


def check_projected_round_trip(record: Protocol, model: Model, seed: int) -> None:
    """A projected request is decoded to the same conversation, except for `not_carried`, and encoded again unchanged.

    Raises:
        BrokenLaw: the conversation or the body differs.
    """
    request = _prepare(make_broken_context(seed, model), model)
    if request is None:
        return
    law, where, endpoint = "a projected request is read back", history_name(model, seed), resolve_endpoint(model)
    read = record.decode_request(request.body, endpoint)
    expect_equal(record, law, where, record.encode_request(read, endpoint), request.body)
    sent, back = request.projection.context, read.context
    if "turns" in record.not_carried:
        sent, back = joined_turns(sent), joined_turns(back)
    names = record.not_carried | {"extra"}  # wire format: the first half of this law compares it
    expect_equal(record, law, where, tools_given(back, names), tools_given(sent, names))
    if "pieces" in record.not_carried:
        given, found = (messages_given(each, record.not_carried) for each in (sent, back))
        expect_equal(record, law, where, found, given)
        expect_equal(record, law, where, prompt_given(back), prompt_given(sent))
        return
    given, found = (without_fields(replace(each, tools=()), names) for each in (sent, back))
    expect_equal(record, law, where, found, given)


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
        fail(record, law, history_name(model, seed), request.report.summary())


def check_prefix(record: Protocol, model: Model, seed: int) -> None:
    """An answered request is a prefix of every later request.

    Raises:
        BrokenLaw: a later request writes a turn differently.
    """
    key = record.turns_key
    if key is None:
        return
    # The law excludes media limits, which remove older images, and cache marks, which move.
    model = replace(
        model, rules={**model.rules, "max_images": 0, "large_images": None, "files": None, "cache_marks": 0}
    )
    context = make_broken_context(seed, model)
    whole = _prepare(context, model)
    if whole is None:
        return
    for place in answered_prefixes(context):
        earlier = _prepare(replace(context, messages=context.messages[:place]), model)
        if earlier is not None:
            before, after = (cast("list[object]", each.body[key]) for each in (earlier, whole))
            where = f"{history_name(model, seed)}, first {place} messages"
            expect_equal(record, "an answered request is a prefix of later ones", where, after[: len(before)], before)


def check_fits(record: Protocol, model: Model, seed: int) -> None:
    """For a small window older messages are left out; the request fits, is accepted, and a prefix of the next one.

    Raises:
        BrokenLaw: the request is too large or refused, or its beginning changes although no cut moved.
    """
    law, context = "a history fits a small window", make_broken_context(seed, model)
    whole = _prepare(context, replace(model, context_window=_HUGE))
    if whole is None or whole.projection.window is None:
        return
    window = max(16, whole.projection.window.estimate * (20 + seed % 70) // 100)
    small = replace(model, context_window=window, max_input=0)
    policy = Policy(fit=Fit(reserve=0))
    projector = Projector(small, policy)
    for place in [*answered_prefixes(context), len(context.messages)]:
        part = replace(context, messages=context.messages[:place])
        where = f"{history_name(model, seed)}, window {window}, first {place} messages"
        projection = project(part, small, policy=policy)
        expect_equal(record, law, where, projector.project(part), projection)
        if any(requirement.kind == "windowTooSmall" for requirement in projection.requirements):
            continue
        if projection.window is None or projection.window.estimate > projection.window.limit:
            fail(record, law, where, f"too large: {projection.window}")
        request = _prepare(part, small, policy=policy)
        if request is None:
            continue
        if violations := record.check(request.body, resolve_endpoint(small)):
            fail(record, law, where, repr(violations))
        again = project(projection.context, small, options=projection.options, policy=policy)
        # The `extra` of a user is taken to be for the provider of the turn before it, which may have been left out.
        reassigned = again.report.of(ChangeCode.EXTRA_REMOVED)
        if again.report.changes != reassigned or (again.context is not projection.context and not reassigned):
            fail(record, law, where, f"projecting it again changes it: {again.report.summary()}")


def check_pure(record: Protocol, model: Model, seed: int) -> None:
    """`prepare` does not change the history, and gives the same bytes every time.

    Raises:
        BrokenLaw: the history was changed, or the bytes differ.
    """
    law, where, context = "preparing a history is pure", history_name(model, seed), make_broken_context(seed, model)
    before = msgspec.to_builtins(context)
    one, other = _prepare(context, model), _prepare(context, model)
    expect_equal(record, law, where, msgspec.to_builtins(context), before)
    if one is not None and other is not None:
        expect_equal(record, law, where, other.content, one.content)


def check_idempotent(record: Protocol, model: Model, seed: int) -> None:
    """Projecting a projected history changes nothing.

    Raises:
        BrokenLaw: the second report has a change, or the context is another object.
    """
    once = project(make_broken_context(seed, model), model)
    twice = project(once.context, model, options=once.options)
    law, where = "projecting a projected history changes nothing", history_name(model, seed)
    if twice.report.changes:
        fail(record, law, where, twice.report.summary())
    if twice.context is not once.context:
        fail(record, law, where, "the context is another object")


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
    expect_equal(record, "an option is sent or its removal is reported", history_name(model, seed), found, wanted)


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
            where = f"{history_name(model, seed)}, first {count} messages"
            found = outbox.prepare(grown).content
            expect_equal(record, "an outbox writes what prepare writes", where, found, wanted.content)


def check_instructions(record: Protocol, model: Model, seed: int) -> None:
    """Instructions before the first turn stay instructions, each a text of its own, also without any turn.

    Raises:
        BrokenLaw: a text is missing, joined with another one or in a user turn, or `check` finds a violation.
    """
    law, where = "instructions before the first turn stay instructions", history_name(model, seed)
    texts = [f"Rule {number}." for number in range(1, 2 + seed % 3)]
    prompt = texts[0] if seed % 2 else None
    leading = tuple(SystemMessage.of(text) for text in texts[seed % 2 :])
    turns = (UserMessage.of("hi"),) if seed % 5 else ()
    request = prepare(Context(system_prompt=prompt, messages=(*leading, *turns)), model)
    endpoint = resolve_endpoint(model)
    if violations := record.check(request.body, endpoint):
        fail(record, law, where, repr(violations))
    if not endpoint.rules.system_prompt:
        return
    sent = request.projection.context
    found = [sent.system_prompt] if isinstance(sent.system_prompt, str) else _texts_of(sent.system_prompt or ())
    for message in sent.messages:
        if message.role == "system":
            found += _texts_of(message.content)
    expect_equal(record, law, where, found, texts)


def _texts_of(content: Sequence[SystemContent]) -> list[str]:
    return [piece.text for piece in content if piece.kind == "text"]


_SEEN: Final = frozenset(
    {
        ChangeCode.SYSTEM_AS_USER,
        ChangeCode.SYSTEM_AS_PROMPT,
        ChangeCode.TURN_INSERTED,
        ChangeCode.TURN_MERGED,
        ChangeCode.OPTION_REMOVED,
        ChangeCode.OPTION_CLAMPED,
    }
)
"""What a reader of two requests sees: turns in another place, options that the other request does not have."""


def check_plain(record: Protocol, model: Model, seed: int) -> None:
    """A plain conversation of this protocol gives no report of what nobody sees; a value that is lost is reported.

    Empty fields and the defaults of the protocol, which programs write into bodies, are no values.

    Raises:
        BrokenLaw: the report has such a change, or lacks one.
    """
    law, where = "a report has what is lost, and nothing else", history_name(model, seed)
    names = [name for name in PROTOCOLS if name != record.name]
    target = get_protocol(names[seed % len(names)]).example
    value: object = (list[object](), "", dict[str, object](), None, "a value")[seed // len(names) % 5]
    reply = new_assistant_message(model, content=(TextContent(text="Hello."),))
    reply = replace(reply, extra={record.name: {"unread": value}})
    context = Context(
        system_prompt="Be brief." if seed % 2 else None,
        messages=(UserMessage.of("hi"), reply, UserMessage.of("and?")),
    )
    options = Options(extra={record.name: record.default_fields})
    converted = convert(prepare(context, model).body, source=record.name, target=target, source_model=model)
    for report in (converted.report, project(context, target, options=options).report):
        unseen = [change for change in report.changes if change.code not in _SEEN]
        if unseen and value != "a value":
            fail(record, law, f"{where}, for {target.full_name()}", str(unseen[0]))
    lost = project(context, target).report.of(ChangeCode.EXTRA_REMOVED)
    wanted = ['unread: "a value"'] if value == "a value" else []
    expect_equal(record, law, where, [change.detail for change in lost], wanted)


HISTORY_LAWS: Final[tuple[HistoryLaw, ...]] = (
    check_valid,
    check_projected_round_trip,
    check_own_history,
    check_prefix,
    check_fits,
    check_pure,
    check_idempotent,
    check_options,
    check_incremental,
    check_instructions,
    check_plain,
    check_any_reply,
    check_foreign_replies,
)
"""The laws that are checked on generated histories."""
