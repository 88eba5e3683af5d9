"""Recorded exchanges with what the provider counted and what segue estimates, for tests marked `traffic`.

There are two sets of recordings. The estimate is made from the recorded body alone; for a later request of a recorded
conversation also with the usage of its earlier replies, as a stored conversation has it. Left out: requests with tools
that the provider runs itself, or with their results, whose pages and instructions the body does not show, and replies
without usage.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from statistics import median
from typing import Any, NamedTuple

from msgspec.structs import replace

import segue
from protocols import traffic
from segue.conversation.context import Prompt
from segue.conversation.messages import AssistantMessage, Message, Usage
from segue.counting.counter import TokenCounter
from segue.models.model import Model

SECOND = traffic.FOLDER.parent / "traffic-2"

VENDORS = {"Claude": "Claude", "GPT": "OpenAI", "Gemini": "Gemini", "stral": "Mistral", "Nova": "Nova"}
"""A part of the name of a family -> the name under which its rows are judged."""


class Row(NamedTuple):
    """One recorded exchange."""

    file: str
    prompt: Prompt
    model: Model
    family: str
    vendor: str
    has_media: bool
    estimated: float
    counted: int
    reasoning: int

    @property
    def ratio(self) -> float:
        """The estimate, as a fraction of the count."""
        return self.estimated / self.counted

    @property
    def is_judge(self) -> bool:
        """Whether the row belongs to the half that constants are not fitted on."""
        return hashlib.sha256(self.file.encode()).digest()[0] % 2 == 1

    @property
    def is_held_back(self) -> bool:
        """The same for the second set."""
        return hashlib.sha1(self.file.encode()).digest()[-1] % 2 == 1

    @property
    def is_later(self) -> bool:
        """Whether the request continues a conversation."""
        return any(message.role == "assistant" for message in self.prompt.context.messages)

    @property
    def is_close(self) -> bool:
        """Whether the estimate is within 10 % or 10 tokens."""
        return abs(self.estimated - self.counted) <= max(10, 0.1 * self.counted)


@lru_cache
def rows() -> tuple[Row, ...]:
    """Give every recorded exchange that has a usage."""
    return tuple(_rows())


def within(ratios: list[float], bound: float = 0.1) -> float:
    """Give the share of ratios within a bound around 1."""
    return sum(abs(ratio - 1) <= bound for ratio in ratios) / len(ratios)


def describe(ratios: list[float]) -> str:
    """Describe ratios in a line."""
    return f"{len(ratios)} rows, median {median(ratios):.3f}, {within(ratios):.0%} within 10 %"


def describe_rows(found: list[Row]) -> str:
    """Describe rows in a line, with both measures."""
    close = sum(row.is_close for row in found) / len(found)
    return f"{describe([row.ratio for row in found])}, {close:.0%} within 10 % or 10 tokens"


def _rows() -> Iterator[Row]:
    for entry in traffic.exchanges():
        exchange = traffic.read(entry["file"])
        if traffic.was_accepted(entry, exchange):
            row = _row(entry["file"], entry["protocol"], entry["provider"], entry["model"], exchange)
            if row is not None:
                yield row


@lru_cache
def second_rows() -> tuple[Row, ...]:
    """Return every exchange of the second set that has a usage and no media."""
    found: list[Row] = []
    for path in sorted(SECOND.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for entry in map(json.loads, lines):
                if entry["status"] != 200 or not isinstance(entry["request"], dict):
                    continue
                wire, provider = entry.get("wire", path.name.partition(".")[0]), entry.get("provider")
                wires = (*traffic.WIRES.items(), (("ollama", None), "ollama-chat"))
                protocol = next((name for key, name in wires if key in ((wire, provider), (wire, None))), wire)
                provider = traffic.PROVIDERS.get(provider, provider) or "unknown"
                row = _row(entry["source"], protocol, provider, entry.get("model"), entry)
                if row is not None and not row.has_media:
                    found.append(row)
    return tuple(found)


def later_rows() -> list[Row]:
    """Return the later requests of the second set, estimated with the usage of the replies that were recorded, too."""
    groups: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in second_rows():
        groups[row.file.partition("#")[0], row.model.id].append(row)
    return [found for group in groups.values() for row in group if (found := _with_usage(row, group)) is not None]


def _with_usage(row: Row, group: list[Row]) -> Row | None:
    messages = list(row.prompt.context.messages)
    keys, is_known = [*map(_key, messages)], False
    for other in group:
        sent = other.prompt.context.messages
        end = len(sent)
        if end < len(messages) and messages[end].role == "assistant" and [*map(_key, sent)] == keys[:end]:
            model = row.model
            usage = Usage(input=other.counted, reasoning=other.reasoning)
            writer: dict[str, str] = {"protocol": model.protocol, "provider": model.provider, "model": model.id}
            messages[end], is_known = replace(messages[end], usage=usage, **writer), True
    if not is_known:
        return None
    counter, options = TokenCounter(row.model), row.prompt.options
    fixed = counter.fixed(row.prompt.context, options)
    estimated = counter.request(messages, fixed, options, row.prompt.context.tools)
    return row._replace(estimated=estimated.tokens)


def _key(message: Message) -> object:
    """Return what identifies a message: replies are sent back without their thinking."""
    pieces = [piece for piece in message.content if piece.kind != "thinking"]
    return message.role, [getattr(piece, "text", None) or getattr(piece, "name", None) for piece in pieces]


def _row(file: str, protocol: str, provider: str, model_id: str | None, exchange: dict[str, Any]) -> Row | None:
    body = exchange["request"]
    try:
        prompt = segue.decode_request(body, protocol=protocol)
        reply = _reply(exchange, protocol)
    except segue.SegueError:  # a count request, an embedding: no conversation
        return None
    if reply is None or reply.usage is None or _uses_server_tools(prompt):
        return None
    usage = reply.usage
    counted = usage.input + usage.cache_read + usage.cache_write
    if counted <= 0:
        return None
    model = Model(model_id or body.get("model") or "unknown", provider, protocol)
    counter = TokenCounter(model)
    name = counter.family.name
    return Row(
        file=file,
        prompt=prompt,
        model=model,
        family=name,
        vendor=next((vendor for part, vendor in VENDORS.items() if part in name), "others"),
        has_media=any(piece.kind in ("image", "file") for turn in prompt.context.messages for piece in turn.content),
        estimated=estimate(prompt, counter),
        counted=counted,
        reasoning=usage.reasoning,
    )


def _uses_server_tools(prompt: Prompt) -> bool:
    context = prompt.context
    return any(tool.kind == "native" for tool in context.tools) or any(
        piece.kind == "native" for turn in context.messages for piece in turn.content
    )


def _reply(exchange: dict[str, Any], protocol: str) -> AssistantMessage | None:
    response = exchange.get("response")
    if isinstance(response, dict):
        return segue.decode_response(response, protocol=protocol)
    frames = exchange.get("stream")
    if not isinstance(frames, list):
        return None
    decoder = segue.stream_decoder(protocol=protocol)
    for frame in frames:
        decoder.feed(frame)
    decoder.finish()
    return decoder.message


def estimate(prompt: Prompt, counter: TokenCounter) -> float:
    """Estimate a request as it stands, without projecting it."""
    messages = prompt.context.messages
    last_user = max((at for at, message in enumerate(messages) if message.role == "user"), default=0)
    tokens = counter.fixed(prompt.context, prompt.options)
    for at, message in enumerate(messages):
        lasting, passing = counter.message(message)
        tokens += lasting + (passing if at > last_user else 0.0)
    return tokens
