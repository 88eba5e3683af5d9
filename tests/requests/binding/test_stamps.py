"""Stamps: what a reply remembers of a request about which nothing was noted."""

from __future__ import annotations

from segue.conversation.messages import AssistantMessage, Sent
from segue.requests.binding.stamp import Stamp

REPLY = AssistantMessage(content=(), model="m")


def test_a_reply_to_a_request_without_marks_remembers_what_the_server_dropped():
    assert Stamp().sent(REPLY, None) is None
    assert Stamp().sent(REPLY, {}) is None
    assert Stamp().sent(REPLY, {"mark": "invalid"}) == Sent(dropped=("mark",))
    assert Stamp().sent(REPLY, {"mark": "turn_boundary"}) is None
    assert Stamp(account="a").sent(REPLY, None) == Sent(account="a")
