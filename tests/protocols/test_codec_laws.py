"""Check the laws of `segue.testing` on every registered protocol: on its samples, and on histories with drawn seeds."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projection.histories import TARGETS
from property_testing import scaled_examples, tiers
from protocols.every_protocol import all_codecs
from segue.conversation.context import Context, NativeTool, Options
from segue.conversation.messages import UserMessage
from segue.protocols.api import resolve_endpoint
from segue.protocols.registry import get_protocol
from segue.requests.prepare import prepare
from segue.testing import HISTORY_LAWS, SAMPLE_LAWS, sample_laws, value_laws
from segue.testing.compare import tools_given
from segue.testing.protocol_laws import check_record
from segue.testing.sample_laws import check_damaged_bodies, check_damaged_stream
from segue.testing.value_laws import check_half_surrogates, check_wrong_values

CODECS = all_codecs()
NAMES = [codec.name for codec in CODECS]

of_every_protocol = pytest.mark.parametrize("codec", CODECS, ids=NAMES)


def title(law) -> str:
    return law.__name__.removeprefix("check_")


@of_every_protocol
def test_a_record_is_complete(codec):
    check_record(codec)


WIDE_LAWS = (check_damaged_bodies, check_damaged_stream, check_half_surrogates, check_wrong_values)
"""Laws that change every place of a sample, in many ways."""


@of_every_protocol
@pytest.mark.parametrize("law", [law for law in SAMPLE_LAWS if law not in WIDE_LAWS], ids=title)
def test_a_law_holds_for_every_sample(codec, law):
    for sample in codec.samples():
        law(codec, sample)


@of_every_protocol
@pytest.mark.parametrize("law", WIDE_LAWS, ids=title)
@pytest.mark.parametrize("step", tiers([11], [1]))
def test_a_law_holds_for_every_sample_with_a_change_at_any_place(codec, law, step, monkeypatch):
    def thin(find):
        def found(value, path=()):
            return find(value, path) if path else islice(find(value), 0, None, step)

        return found

    monkeypatch.setattr(sample_laws, "_damaged", thin(sample_laws._damaged))
    monkeypatch.setattr(value_laws, "_places", thin(value_laws._places))
    for sample in codec.samples():
        law(codec, sample)


@of_every_protocol
@pytest.mark.parametrize("law", HISTORY_LAWS, ids=title)
@scaled_examples(0.6)
@given(data=st.data())
def test_a_law_holds_for_any_history(codec, law, data):
    law(codec, data.draw(st.sampled_from(TARGETS[codec.name])), data.draw(st.integers(0, 2**32)))


def test_what_a_native_tool_has_beside_its_definition_is_read_back_inside_it():
    """So the law compares native tools by the body that they are written to, which it does first."""
    tool = NativeTool(
        protocol="openai-chat", definition={"type": "vendor_tool"}, extra={"openai-chat": {"vendor": "1"}}
    )
    model = next(model for model in TARGETS["openai-chat"] if model.id == "gpt-5.2")
    request = prepare(Context(tools=(tool,)).add(UserMessage.of("hello")), model)
    back = get_protocol("openai-chat").decode_request(request.body, resolve_endpoint(model)).context
    assert back.tools == (NativeTool(protocol="openai-chat", definition={"type": "vendor_tool", "vendor": "1"}),)
    assert tools_given(back, {"extra"}) == tools_given(request.projection.context, {"extra"})


@of_every_protocol
@pytest.mark.parametrize("thinking", ["off", 0])
def test_disabled_thinking_is_sent_or_reported(codec, thinking):
    context = Context().add(UserMessage.of("hello"))
    for model in TARGETS[codec.name]:
        request = prepare(context, model, options=Options(thinking=thinking))
        read = codec.decode_request(request.body, resolve_endpoint(model)).options.thinking
        if request.projection.options.thinking in ("off", 0):
            assert read in (None, "off", 0), model
        else:
            assert any(change.path == ("options", "thinking") for change in request.report.changes), model
