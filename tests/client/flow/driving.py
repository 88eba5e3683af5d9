"""Runs a flow without a network: each request is answered from a list, and everything the flow asked for is noted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from client.wires import WIRES
from segue.client.flow.attempts import Attempt
from segue.client.flow.request_flow import Ask, Flow
from segue.client.flow.steps import Answer, Broken, Head, Moment, ReadEvents
from segue.conversation.events import Event
from segue.requests.prepare import Request


@dataclass
class ScriptedAnswer:
    """What one request is answered with; an answer that is `Broken` in the middle breaks there."""

    head: Head | Broken
    chunks: Sequence[bytes | Broken] = ()


def good(protocol: str) -> ScriptedAnswer:
    """Stream the sample of a wire."""
    wire = WIRES[protocol]
    return ScriptedAnswer(Head(200, {"content-type": wire.content_type}), wire.frames)


def bad(status: int, body: object = "", headers: Mapping[str, str] | None = None) -> ScriptedAnswer:
    """Answer with an error."""
    text = body if isinstance(body, str) else json.dumps(body)
    return ScriptedAnswer(Head(status, headers or {}), (text.encode(),))


@dataclass
class Run:
    """What a flow did."""

    flow: Flow
    kinds: list[str] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    noted: list[Attempt] = field(default_factory=list)
    left: list[ScriptedAnswer] = field(default_factory=list)

    def stream_reply(self, step: ReadEvents, chunks: list[bytes | Broken]) -> Answer:
        """Do as a shell does: hand events on until one is terminal."""
        while chunks:
            chunk = chunks.pop(0)
            if isinstance(chunk, Broken):
                return chunk
            events = step.feed(chunk)
            if events and events[-1].type in ("done", "error"):
                return events
            if step.emits:
                self.events += events
        return None

    @property
    def asked(self) -> list[str]:
        return [request.model.id for request in self.requests]


def run(ask: Ask, *answers: ScriptedAnswer, chance: float = 0.0) -> Run:
    """Drive a flow to its end. Time goes by a second at each look at the clock."""
    flow = Flow(ask)
    reported = Run(flow, left=list(answers))
    steps = flow.run()
    chunks: list[bytes | Broken] = []
    clock = 0.0
    answer: Answer = None
    while True:
        try:
            step = steps.send(answer)
        except StopIteration:
            return reported
        reported.kinds.append(step.kind)
        answer = None
        if step.kind == "now":
            clock += 1.0
            answer = Moment(clock, round(clock * 1000), chance)
        elif step.kind == "send":
            reported.requests.append(step.request)
            scripted = reported.left.pop(0)
            answer, chunks = scripted.head, list(scripted.chunks)
        elif step.kind == "read":
            answer = chunks.pop(0) if chunks else None
        elif step.kind == "read_events":
            answer = reported.stream_reply(step, chunks)
        elif step.kind == "wait":
            reported.waits.append(step.seconds)
        elif step.kind == "note":
            reported.noted.append(step.attempt)
        elif step.kind == "emit":
            reported.events += step.events
