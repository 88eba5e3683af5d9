"""Sessions of Copilot CLI: what a summary covers."""

from __future__ import annotations

import json

from segue.histories.api import read_history
from segue.histories.kit.envelope import plain_text


def test_a_summary_covers_all_messages_before_it():
    events = [
        ("session.start", {"sessionId": "s", "selectedModel": "claude-sonnet-4.5"}),
        ("user.message", {"content": "A"}),
        ("assistant.message", {"content": "a", "messageId": "m1"}),
        ("session.compaction_complete", {"summaryContent": "S"}),
        ("user.message", {"content": "B"}),
        ("assistant.message", {"content": "b", "messageId": "m2"}),
    ]
    lines = [
        {
            "type": kind,
            "data": data,
            "id": f"e{at}",
            "parentId": f"e{at - 1}",
            "timestamp": f"2026-11-15T10:00:0{at}.000Z",
        }
        for at, (kind, data) in enumerate(events)
    ]
    data = b"".join(json.dumps(each).encode() + b"\n" for each in lines)
    sent = read_history(data, format="copilot-cli")
    assert " ".join(map(plain_text, sent.context.messages)) == "S B b"
    (compaction,) = sent.compactions
    assert " ".join(map(plain_text, compaction.messages)) == "A a"
    full = read_history(data, format="copilot-cli", view="full").context
    assert [" ".join(map(plain_text, full.messages[: summary.covers])) for summary in full.summaries] == ["A a"]
