"""Where the envelope of a reply's state goes among the events that a client sees."""

from __future__ import annotations

import pytest

from segue.conversation.content import TextContent, ThinkingContent
from segue.conversation.events import Event, TextEnd, ThinkingEnd
from segue.envelope.attaching import Attachment
from segue.models.model import Model
from segue.protocols.kit.facts import StateSlots

MODEL = Model("claude-opus-4-8", "anthropic", "anthropic-messages", reasoning=True)
ORDERED = StateSlots(thinking="plain", insert="thinking", is_ordered=True)
GIVEN = ThinkingEnd(index=0, content=ThinkingContent(thinking="why", thinking_signature="opaque"))
AS_TEXT = TextEnd(index=0, content=TextContent(text="why"))
INSERTED = ["thinking_start", "thinking_end"]


@pytest.mark.parametrize("has_store", [True, False])
@pytest.mark.parametrize(
    ("shown", "types"),
    [([GIVEN], ["thinking_end"]), ([], INSERTED), ([AS_TEXT], ["text_end", *INSERTED])],
    ids=["thinking", "nothing", "text"],
)
def test_the_envelope_of_thinking_comes_with_it_or_at_once_after_what_is_shown_for_it(
    shown: list[Event], types: list[str], has_store: bool
):
    attachment = Attachment(ORDERED, MODEL, None, write=lambda _: "envelope", new_id=lambda: "1", has_store=has_store)
    written = attachment.feed(GIVEN, shown)
    assert [event.type for event in written] == types
    last = written[-1]
    assert last.type == "thinking_end"
    assert last.content.thinking_signature == "envelope"
