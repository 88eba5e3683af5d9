"""The laws of formats: properties that hold for every format of stored histories, as functions that any test can call.

    from segue.testing import check_format
    from my_package import RECORD

    def test_conformance():
        check_format(RECORD)

1. *Round trip*: what is written back and read again equals what was read.
2. *True*: the messages that were read are what the program sends (`FormatSample.sent`).
3. *Accepted*: what is written for a model is accepted by its provider, as far as `check` knows.
4. *Complete*: every text, call, result and image is in what is written, or its message is in the report.
5. *Pure*: the same input gives the same history and the same bytes.
6. *Total*: any bytes give a history, or one error of segue; a torn last line is reported, and so is everything that a
   damaged file still has and its history no longer has.
7. *Stored round trip*: a conversation that was stored in a file of segue is written as it would have been before.
8. *Fixed point*: from the first writing on, reading and writing again changes nothing, and adds nothing.
9. *Returned*: a session that comes back from an agent has its original messages, then what the agent added; what was
   changed there stays changed, and is reported.

segue's own tests run these functions on every registered format, and its heavy tests continue the written sessions in
the real programs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, TypeAlias, cast

from msgspec.structs import replace

from segue.conversation.content import AnyContent, TextContent
from segue.conversation.context import Context, Options, Prompt
from segue.conversation.messages import Message, SystemMessage, UserMessage
from segue.conversation.stored import dump, load
from segue.errors import EmptyConversation
from segue.histories.api import as_history, read_history, write_history
from segue.histories.kit.envelope import is_own_text
from segue.histories.kit.evidence import find_evidence
from segue.histories.kit.format import Format, FormatSample
from segue.histories.kit.history import History, Written, WrittenFile
from segue.histories.kit.originals import pack, restore, unpack
from segue.histories.kit.source import Source
from segue.histories.places import written_source
from segue.histories.recognition import forms_of, look, recognise_sight
from segue.histories.registry import register_format
from segue.projection.report import ChangeCode
from segue.protocols.api import decode_request, encode_request, resolve_endpoint
from segue.protocols.registry import all_protocols, get_protocol, resolve_rules
from segue.testing.broken_law import Case, check_cases, fail, naming, title_of
from segue.testing.damaged_files import DamagedFiles
from segue.testing.histories import make_broken_context

FormatLaw: TypeAlias = Callable[[Format, FormatSample], None]
HistoryFormatLaw: TypeAlias = Callable[[Format, int], None]

_NOW: Final = 1_767_225_600_000
"""The time of writing in every law: a clock would give different bytes each time."""
_SESSION: Final = "0f5a3c1e-7b2d-4c8f-9a6e-1d2c3b4a5f60"


def check_format(record: Format, *, mutations: int = 60, histories: int = 20) -> None:
    """Check every law on a format. The record is registered first, because the laws look it up by name.

    `mutations` is the number of damaged files for each sample, `histories` the number of generated conversations.

    Raises:
        BrokenLaw: lists every law that does not hold, with the sample or the seed that reproduces the failure.
        SettingsError: another format has the record's name.
    """
    check_cases(record, format_cases(record, mutations=mutations, histories=histories))


def format_cases(record: Format, *, mutations: int = 60, histories: int = 20) -> list[Case]:
    """List every law as one case, for `pytest.mark.parametrize`; the arguments are those of `check_format`.

    Raises:
        SettingsError: another format has the record's name.
    """
    register_format(record)
    samples = record.samples()
    cases = [Case("the record is complete", partial(_check_record, record, samples))]
    for sample in samples:
        cases += (Case(f"{title_of(law)} [{sample.name}]", partial(_named, law, record, sample)) for law in SAMPLE_LAWS)
        cases.append(Case(f"total [{sample.name}]", partial(_check_mutations, record, sample, mutations)))
    if record.write is not None:
        cases += (
            Case(f"{title_of(law)} [{histories} conversations]", partial(_check_histories, law, record, histories))
            for law in WRITING_LAWS
        )
    return cases


def _named(law: FormatLaw, record: Format, sample: FormatSample) -> None:
    with naming(record, law, f"sample {sample.name}"):
        law(record, sample)


def _check_histories(law: HistoryFormatLaw, record: Format, histories: int) -> None:
    for seed in range(histories):
        with naming(record, law, f"seed {seed}"):
            law(record, seed)


def _check_record(record: Format, samples: Sequence[FormatSample]) -> None:
    law = "the record is complete"
    if not record.title:
        fail(record, law, "title", "the title is empty")
    if not samples:
        fail(record, law, "samples", "there are no samples; add one, because most laws need it")
    if record.write is not None and record.example is None:
        fail(record, law, "example", "a format that is written needs an example model")
    for sample in samples:
        sight = look(sample.source)
        is_own = find_evidence(record.forms or forms_of(record.name), sight) is not None
        if not is_own and (record.wire is None or [each.format for each in recognise_sight(sight)] != [record.wire]):
            fail(record, law, f"sample {sample.name}", "no form of the record recognises it; add it to `forms`")
        found = [each for each in recognise_sight(sight) if each.format != record.name]
        if is_own and found and found[0].certainty == "certain":
            detail = f"it can be read as {found[0]} too; add a sign to `forms`, or `over` of a special case"
            fail(record, law, f"sample {sample.name}", detail)


# -- laws over samples -------------------------------------------------------------------------------------------------


def _read(record: Format, source: Source) -> History:
    return read_history(source, format=record.name)


def _read_again(record: Format, written: Written) -> History:
    return read_history(written_source(written), format=record.name)


def _write(record: Format, history: History | Context, *, projected: bool = True) -> Written:
    """Write for the example model; the messages of a framework without one, unless they are to be projected."""
    model = record.example if record.kind == "agent" or projected else None
    return write_history(history, format=record.name, model=model, now=_NOW)


def check_round_trip(record: Format, sample: FormatSample) -> None:
    """What is written back and read again equals what was read.

    Raises:
        BrokenLaw: it does not.
    """
    if record.write is None:
        return
    history = _read(record, sample.source)
    again = _read_again(record, _write(record, history, projected=False))
    for name in ("title", "cwd"):
        if getattr(history, name) != getattr(again, name):
            fail(record, "round trip", f"sample {sample.name}", f"{name} is {getattr(again, name)!r}")
    _expect_messages(record, "round trip", f"sample {sample.name}", again.context.messages, history.context.messages)


def check_true(record: Format, sample: FormatSample) -> None:
    """The messages that were read are what the program sends; texts that it adds by itself are not compared.

    Raises:
        BrokenLaw: they are not.
    """
    wire = sample.wire or record.wire
    if sample.sent is None or wire is None:
        return
    prompt = decode_request(sample.sent, protocol=wire)
    visible = [message for message in _read(record, sample.source).context.messages if not is_own_text(message)]
    found, wanted = list(_pieces(visible)), list(_pieces(prompt.context.messages))
    for at, (one, other) in enumerate(zip(found, wanted, strict=False)):
        if one != other:
            fail(record, "true", f"sample {sample.name}", f"piece {at} is {one!r}, expected {other!r}")
    if len(found) != len(wanted):
        fail(record, "true", f"sample {sample.name}", f"{len(found)} pieces, expected {len(wanted)}")


def check_pure(record: Format, sample: FormatSample) -> None:
    """The same input gives the same history and the same bytes.

    Raises:
        BrokenLaw: it does not.
    """
    one, other = _read(record, sample.source), _read(record, sample.source)
    if one != other:
        fail(record, "pure", f"sample {sample.name}", "a second reading gives another history")
    if record.write is not None and _write(record, one) != _write(record, other):
        fail(record, "pure", f"sample {sample.name}", "a second writing gives other bytes")


def check_stored_round_trip(record: Format, sample: FormatSample) -> None:
    """A conversation that was stored in a file of segue is written as it would have been before.

    Raises:
        BrokenLaw: it is not.
    """
    if record.write is None:
        return
    history = _read(record, sample.source)
    stored = as_history(load(dump(history.context)))
    one, other = (_read_again(record, _write(record, each, projected=False)) for each in (history, stored))
    _expect_messages(record, "stored round trip", f"sample {sample.name}", other.context.messages, one.context.messages)
    if (stored.title, stored.cwd) != (history.title, history.cwd):
        fail(record, "stored round trip", f"sample {sample.name}", "the title or the folder is lost")


def check_fixed_point(record: Format, sample: FormatSample) -> None:
    """Reading and writing again what was written gives the same history and the same file.

    Raises:
        BrokenLaw: it does not.
    """
    if record.write is not None:
        for projected in (False, True):
            _expect_fixed_point(record, f"sample {sample.name}", _read(record, sample.source), projected=projected)


def check_fixed_point_of_another_history(record: Format, seed: int) -> None:
    """The same for a conversation of other programs.

    Raises:
        BrokenLaw: it does not.
    """
    context = replace(_generated(record, seed), system_prompt="Be brief.")
    try:
        _expect_fixed_point(record, f"seed {seed}", context, projected=False)
    except EmptyConversation:
        return


def _expect_fixed_point(record: Format, where: str, history: History | Context, *, projected: bool) -> None:
    def write(given: History | Context) -> Written:
        model = record.example if record.kind == "agent" or projected else None
        return write_history(given, format=record.name, model=model, session_id=_SESSION, now=_NOW)

    first = write(history)
    once = _read_again(record, first)
    again = write(once)
    twice = _read_again(record, again)
    law = "fixed point"
    if once.context.system_prompt != twice.context.system_prompt:
        fail(
            record, law, where, f"instructions are {twice.context.system_prompt!r}, not {once.context.system_prompt!r}"
        )
    _expect_messages(record, law, where, twice.context.messages, once.context.messages)
    if record.kind == "agent":
        return  # ids and display events of its lines may differ, as long as the messages do not
    for one, other in zip(first.files, again.files, strict=True):
        # The order of keys is not significant, and an entry that was read keeps its own.
        for at, (before, after) in enumerate(zip(_values(one), _values(other), strict=False)):
            if before != after:
                fail(record, law, where, f"{one.name} has {after!r} at line {at + 1}, it had {before!r}")
        if one.data.count(b"\n") != other.data.count(b"\n"):
            fail(record, law, where, f"{one.name} has another number of lines")


def _values(file: WrittenFile) -> list[object]:
    try:
        return [json.loads(file.data)]
    except ValueError:
        return [json.loads(line) for line in file.data.splitlines() if line.strip()]


SAMPLE_LAWS: Final[tuple[FormatLaw, ...]] = (
    check_round_trip,
    check_true,
    check_pure,
    check_stored_round_trip,
    check_fixed_point,
)


def _expect_messages(record: Format, law: str, where: str, found: Sequence[Message], wanted: Sequence[Message]) -> None:
    for at, (one, other) in enumerate(zip(found, wanted, strict=False)):
        if one != other:
            fail(record, law, where, f"message {at} is {one!r}, expected {other!r}")
    if len(found) != len(wanted):
        fail(record, law, where, f"{len(found)} messages, expected {len(wanted)}")


def _instructions(context: Context) -> list[Message]:
    """Return the system prompt as a message: instructions at the beginning are read as the prompt."""
    prompt = context.system_prompt
    if not prompt:
        return []
    return [SystemMessage(content=(TextContent(text=prompt),) if isinstance(prompt, str) else prompt)]


def _pieces(messages: Sequence[Message], *, flags: bool = True) -> Iterator[tuple[object, ...]]:
    """Yield what a model reads of messages, piece by piece; `flags` means that results have an error flag."""
    for message in messages:
        if message.role == "toolResult":
            # Some formats have one text for each result.
            text = "\n".join(content.text for content in message.content if content.kind == "text")
            others = tuple(_piece(content) for content in message.content if content.kind != "text")
            yield ("toolResult", message.tool_call_id, flags and message.is_error, text, others)
        else:
            for content in message.content:
                yield (message.role, *_piece(content))


def _piece(content: AnyContent) -> tuple[object, ...]:
    match content.kind:
        case "text":
            return ("text", content.text)
        case "thinking":
            return ("thinking", content.thinking, content.thinking_signature or None)
        case "toolCall":
            return ("call", content.id, content.name, content.arguments)
        # Some formats distinguish images from files by the type of the data alone.
        case "image":
            return (
                "image" if (content.mime_type or "image/").startswith("image/") else "file",
                content.data or content.url,
            )
        case "file":
            kind = "image" if (content.mime_type or "").startswith("image/") else "file"
            return (kind, content.data or content.url or content.file_id)
        case "native":
            return ("native", content.block)


# -- damaged files -----------------------------------------------------------------------------------------------------


def _check_mutations(record: Format, sample: FormatSample, mutations: int) -> None:
    damaged = DamagedFiles(record, sample)
    for seed in range(mutations):
        damaged.check(seed)
    damaged.check_torn_line()


# -- laws over generated conversations ---------------------------------------------------------------------------------


def _generated(record: Format, seed: int) -> Context:
    model = record.example
    assert model is not None
    origins = [(each.name, each.provider, each.example.id) for each in all_protocols()]
    return make_broken_context(seed, model, origins=origins)


def check_accepted(record: Format, seed: int) -> None:
    """What is written for a model is accepted by its provider, as far as `check` knows.

    Raises:
        BrokenLaw: `check` finds something.
    """
    model = record.example
    if record.wire is None or model is None:
        return
    try:
        written = _write(record, _generated(record, seed))
    except EmptyConversation:
        return
    context = _read_again(record, written).context
    if not context.messages:
        return
    asked = context.add(UserMessage.of("Go on."))
    # A program sends the limit that its provider requires.
    options = Options(max_tokens=model.max_tokens) if resolve_rules(model).has("unset_max_tokens") else Options()
    body = encode_request(Prompt(context=replace(asked, summaries=()), options=options, model=model.id), model=model)
    # Blocks of unknown types go back to where they came from, so the fields of the SDK do not count.
    refused = get_protocol(model.protocol).check(body, resolve_endpoint(model))
    if found := [each for each in refused if _counts(each)]:
        fail(record, "accepted", f"seed {seed}", repr(found[:3]))


def _counts(violation: object) -> bool:
    """Whether a violation is about the history; the program declares its tools and chooses its options itself."""
    path = cast("tuple[object, ...]", getattr(violation, "path", ()))
    return not path or path[0] not in {"tools", "tool_choice", "max_tokens", "generationConfig"}


def check_complete(record: Format, seed: int) -> None:
    """Every text, call, result and image is in what is written, or its message is in the report.

    Raises:
        BrokenLaw: one of them is in neither.
    """
    for projected in (True, False) if record.kind != "agent" else (True,):
        _check_complete(record, seed, projected=projected)


def _check_complete(record: Format, seed: int, *, projected: bool) -> None:
    context = load(dump(_generated(record, seed)))  # two halves of a character are joined when they are stored
    try:
        written = _write(record, context, projected=projected)
    except EmptyConversation:
        return
    flags = record.wire is None or "is_error" not in get_protocol(record.wire).not_carried
    found = _read_again(record, written).context
    again = list(_pieces([*_instructions(found), *found.messages], flags=flags))
    reported = {change.path[1] for change in written.report.changes if len(change.path) > 1}
    for at, message in enumerate(context.messages):
        # A native block is written and read by its own protocol alone.
        if at in reported or any(content.kind == "native" for content in message.content):
            continue
        for piece in _pieces([message], flags=flags):
            if piece not in again and piece[1:] != ("text", ""):
                fail(record, "complete", f"seed {seed}", f"message {at} has {piece!r}, which is not written")


def check_returned(record: Format, seed: int) -> None:
    """A session that comes back from an agent has its original messages, and what was added or changed there.

    Raises:
        BrokenLaw: it does not.
    """
    if record.kind != "agent":
        return
    context = load(dump(_generated(record, seed)))
    try:
        written = _write(record, context)
    except EmptyConversation:
        return
    there = _read_again(record, written)
    kept = None if written.originals is None else unpack(pack(written.originals, there))
    if kept is None or not kept.parts:
        return
    sent, added = there.context.messages, UserMessage.of("And now?")
    back = restore(_with_messages(there, (*sent, added)), kept)
    _expect_messages(record, "returned", f"seed {seed}", back.context.messages, (*context.messages, added))
    if back.report.of(ChangeCode.ORIGINAL_NOT_RESTORED):
        fail(record, "returned", f"seed {seed}", "nothing was changed, and a change is reported")
    edited = UserMessage.of("Forget it.")
    prompts = [at for at, message in enumerate(sent) if message.role == "user" and not is_own_text(message)]
    for at in prompts[:1] + prompts[-1:]:
        back = restore(_with_messages(there, (*sent[:at], edited, *sent[at + 1 :])), kept)
        if edited not in back.context.messages or not back.report.of(ChangeCode.ORIGINAL_NOT_RESTORED):
            fail(record, "returned", f"seed {seed}", f"message {at} was changed, and that is lost or not reported")


def _with_messages(history: History, messages: tuple[Message, ...]) -> History:
    return replace(history, context=replace(history.context, messages=messages))


WRITING_LAWS: Final[tuple[HistoryFormatLaw, ...]] = (
    check_accepted,
    check_complete,
    check_fixed_point_of_another_history,
    check_returned,
)
