"""Sessions for the measure of `plan` out of recorded exchanges, whose usage is the bill.

A folder has files of exchanges, one JSON object a line: `source` ("file#number"), `provider`, `wire`, `model`,
`status`, `request`, and `response` or `stream`. Exchanges of one source are a session as far as each request begins
with the one before it. `plan` sees the history of a request with the usage of the replies before it, never the reply
itself.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from msgspec.structs import replace

from segue import (
    AssistantMessage,
    Context,
    Model,
    Options,
    SegueError,
    decode_request,
    decode_response,
    get_model,
    stream_decoder,
)
from segue.events import DoneEvent

_PROTOCOLS: Final = {"google-generate": "google-genai", "cohere-v2": "cohere-chat"}
_PROVIDERS: Final = {"bedrock": "amazon-bedrock", "bedrock-mantle": "amazon-bedrock", "vertex": "google-vertex"}


class Turn(NamedTuple):
    """One recorded request and its reply."""

    context: Context
    options: Options
    model: Model
    reply: AssistantMessage
    is_marked: bool
    """Whether the request has cache marks."""


class Session(NamedTuple):
    """The requests of a recorded conversation, in order."""

    name: str
    turns: list[Turn]

    @property
    def is_held_back(self) -> bool:
        """Whether nothing may be tuned by it: about half of the sources."""
        return sha256(self.name.encode()).digest()[0] % 2 == 1


def read_sessions(folder: Path) -> list[Session]:
    """Read the sessions with at least two requests whose prices are known."""
    sources: dict[str, list[tuple[int, Turn]]] = defaultdict(list)
    for file in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(file, "rt") as lines:
            for line in lines:
                row = json.loads(line)
                turn = _read_turn(row)
                if turn is not None:
                    name, _, number = row["source"].rpartition("#")
                    sources[name].append((int(number) if number.isdigit() else 0, turn))
    return [
        Session(name, chain)
        for name, turns in sorted(sources.items())
        for chain in _chains([turn for _, turn in sorted(turns, key=lambda each: each[0])])
    ]


def _read_turn(row: dict[str, Any]) -> Turn | None:
    given: str = row["wire"]
    wire = _PROTOCOLS.get(given, given)
    if row["status"] != 200 or not isinstance(row["request"], dict):
        return None
    request = cast("dict[str, Any]", row["request"])
    served: str = row.get("provider") or ""
    provider = _PROVIDERS.get(served, served)
    if wire == "google-genai" and "/projects/" in (row.get("url_path") or ""):
        provider = "google-vertex"
    try:
        model = get_model(f"{provider}/{row.get('model') or request.get('model')}")
        model = model if model.protocol == wire else replace(model, protocol=wire)
        if not model.cost.input:
            return None
        prompt = decode_request(request, protocol=wire)
        if row.get("response"):
            reply = decode_response(row["response"], protocol=wire, model=model)
        else:
            decoder = stream_decoder(protocol=wire, model=model)
            events = [event for frame in row["stream"] for event in decoder.feed(frame)] + decoder.finish()
            reply = next(event.message for event in events if isinstance(event, DoneEvent))
    except (
        SegueError,
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        StopIteration,
    ):  # recorders shorten and mask bodies
        return None
    usage = reply.usage
    if usage is None or not usage.output or not usage.input + usage.cache_read + usage.cache_write:
        return None
    text = json.dumps(request)
    return Turn(prompt.context, prompt.options, model, reply, "cache_control" in text or "cachePoint" in text)


def _key(context: Context) -> list[object]:
    return [
        (
            message.role,
            tuple((piece.kind, getattr(piece, "text", getattr(piece, "name", ""))) for piece in message.content),
        )
        for message in context.messages
    ]


def _chains(turns: list[Turn]) -> Iterator[list[Turn]]:
    """Join requests that continue each other; histories get the usage and the origin of the recorded replies."""
    chains: list[list[Turn]] = []
    for turn in turns:
        key = _key(turn.context)
        for chain in reversed(chains):
            last = chain[-1]
            before = _key(last.context)
            at = len(before)
            if len(key) > at and key[:at] == before and turn.context.messages[at].role == "assistant":
                chain.append(turn)
                break
        else:
            chains.append([turn])
    for chain in chains:
        if len(chain) > 1:
            yield [_with_usage(turn, chain[:at]) for at, turn in enumerate(chain)]


def _with_usage(turn: Turn, earlier: list[Turn]) -> Turn:
    messages = list(turn.context.messages)
    for each in earlier:
        at = len(each.context.messages)
        sent, reply = messages[at], each.reply
        assert sent.role == "assistant"
        messages[at] = replace(
            sent, usage=reply.usage, provider=each.model.provider, model=each.model.id, protocol=each.model.protocol
        )
    return turn._replace(context=replace(turn.context, messages=tuple(messages)))
