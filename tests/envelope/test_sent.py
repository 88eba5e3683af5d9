"""States keep what a reply was made after: whole and partial ones, also where a client changed the reply."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from segue.conversation.content import TextContent, ThinkingContent
from segue.conversation.messages import AssistantMessage, Sent
from segue.conversation.replayed import message_events
from segue.envelope.attaching import Attachment, state_of_whole
from segue.envelope.restoring import restore_turn
from segue.envelope.state import State, dump_state, finish_state, load_state, make_piece, make_state, merge_states
from segue.models.model import Model
from segue.protocols.api import decode_response
from segue.protocols.registry import get_protocol

MODEL = Model("m", "p", "anthropic-messages")
THOUGHTS = tuple(ThinkingContent(thinking="", thinking_signature=f"signature {number}" * 3) for number in range(2))
SENT = Sent(system="s", tools="t", messages="m", before="b", blocks=("one", "two"), dropped=("d",), account="org")
REPLY = AssistantMessage(
    content=(*THOUGHTS, TextContent(text="answer")), protocol="anthropic-messages", provider="p", model="m", sent=SENT
)


def _whole() -> State:
    pieces = [make_piece(at, piece) for at, piece in enumerate(REPLY.content)]
    return finish_state(REPLY, None, pieces, REPLY)


def _partial(*places: int, blocks: tuple[str, ...] = SENT.blocks) -> State:
    pieces = [make_piece(at, REPLY.content[at]) for at in places]
    return make_state(MODEL, None, pieces, replace(SENT, blocks=blocks))


@pytest.mark.parametrize("given", ["answer", "another answer"], ids=["unchanged", "changed by the client"])
@pytest.mark.parametrize("state", [_whole(), _partial(0, 1)], ids=["whole", "partial"])
def test_it_comes_back(state: State, given: str) -> None:
    read = load_state(dump_state(state))
    assert read == state
    turn = restore_turn(AssistantMessage(content=(TextContent(text=given),)), state).message
    assert turn.sent == SENT
    assert [piece for piece in turn.content if piece.kind == "thinking"] == list(THOUGHTS)


def test_the_envelope_that_was_written_last_knows_the_blocks_of_the_reply() -> None:
    first, second = _partial(0, blocks=("one",)), _partial(1)
    for states in ((first, second), (second, first)):
        merged = merge_states(states)
        assert merged is not None
        assert merged.made_after == SENT
    # A client that loses the first envelope returns a reply with a gap, which is noticed.
    merged = merge_states([second])
    assert merged is not None
    assert merged.made_after == SENT


def test_states_of_earlier_versions_are_read() -> None:
    fields = msgspec.to_builtins(_partial(0), builtin_types=(bytes,))
    assert fields[-1] == msgspec.to_builtins(SENT)
    old = load_state(msgspec.msgpack.encode(fields[:-1]))
    assert old is not None
    assert old.made_after is None
    assert len(old.pieces) == 1


@pytest.mark.parametrize("protocol", ["openai-chat", "anthropic-messages", "openai-responses"])
def test_a_whole_reply_that_the_client_gets_unchanged_has_the_state_of_its_events(protocol: str) -> None:
    record = get_protocol(protocol)
    for sample in record.samples():
        if sample.response is None:
            continue
        message = decode_response(sample.response, protocol=protocol, model=record.example)
        made = Attachment(record.state_slots, record.example, None, write=str, new_id=str, keeps_native=True)
        for event in message_events(message, with_deltas=False):
            made.feed(event, [event])
        assert made.seen == message
        assert made.state == state_of_whole(message, None)
