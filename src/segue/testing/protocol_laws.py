"""The laws of protocols: properties that hold for every protocol, as functions that any test can call.

There are two kinds, laws over samples (`sample_laws`) and laws over generated histories (`history_laws`); this file
runs them. A law that does not hold raises `BrokenLaw`, an `AssertionError` with the protocol, the law, and the sample
or the model and seed.

segue's own tests run these functions on every registered protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from segue.conversation.content import FileContent, ImageContent, NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Context, NativeTool, Options, Prompt, ToolDefinition
from segue.conversation.messages import AssistantMessage, SystemMessage, ToolResultMessage, UserMessage
from segue.models.model import Model
from segue.protocols.kit.protocol import Protocol, Sample
from segue.protocols.kit.storable import UNREADABLE
from segue.protocols.registry import register_protocol
from segue.testing.broken_law import Case, check_cases, fail, naming, title_of
from segue.testing.call_laws import check_answers, check_routes
from segue.testing.history_laws import HISTORY_LAWS, HistoryLaw, history_name
from segue.testing.sample_laws import SAMPLE_LAWS, SampleLaw
from segue.testing.stream_laws import check_written_errors


def check_protocol(record: Protocol, *, models: Sequence[Model] = (), histories: int = 30) -> None:
    """Check every law on a protocol. The record is registered first, because laws about requests look it up by name.

    `models` are targets in addition to the record's example: with and without reasoning, with and without images.
    `histories` is the number of generated histories for each law and model.

    Raises:
        BrokenLaw: lists every law that does not hold, with the sample or the seed that reproduces the failure.
        SettingsError: another protocol has the record's name.
    """
    check_cases(record, protocol_cases(record, models=models, histories=histories))


def protocol_cases(record: Protocol, *, models: Sequence[Model] = (), histories: int = 30) -> list[Case]:
    """List every law as one case, for `pytest.mark.parametrize`; the arguments are those of `check_protocol`.

    Raises:
        SettingsError: another protocol has the record's name.
    """
    register_protocol(record)
    cases = [Case("the record is complete", partial(check_record, record))]
    cases += [
        Case(f"{title_of(law)} [{sample.name}]", partial(_check_sample, law, record, sample))
        for sample in record.samples()
        for law in SAMPLE_LAWS
    ]
    targets = {model.full_name(): model for model in (record.example, *models)}
    cases += [
        Case(f"{title_of(law)} [{name}]", partial(_check_histories, law, record, model, histories))
        for name, model in targets.items()
        for law in HISTORY_LAWS
    ]
    return cases


def _check_sample(law: SampleLaw, record: Protocol, sample: Sample) -> None:
    with naming(record, law, f"sample {sample.name}"):
        law(record, sample)


def _check_histories(law: HistoryLaw, record: Protocol, model: Model, histories: int) -> None:
    for seed in range(histories):
        with naming(record, law, history_name(model, seed)):
            law(record, model, seed)


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
    """The data of the record is consistent, `decode_error` reads any error body, written errors keep their kind.

    Raises:
        BrokenLaw: a field has an invalid value, `decode_error` fails, or a written error is read as another kind.
    """
    law = "the record is complete"
    if unknown := record.not_carried - _NEUTRAL_FIELDS - _NOT_FIELDS:
        fail(record, law, "not_carried", f"no neutral type has a field {', '.join(sorted(unknown))}")
    if not record.documentation.title:
        fail(record, law, "documentation", "the title is empty")
    if not record.samples():
        fail(record, law, "samples", "there are no samples; add one, because most laws need it")
    for body in _ODD_ERRORS:
        error = record.decode_error(body, 500)
        if error.message.startswith(UNREADABLE):
            fail(record, law, "decode_error", f"{body!r}: {error.message}")
    check_written_errors(record)
    check_routes(record)
    check_answers(record)
