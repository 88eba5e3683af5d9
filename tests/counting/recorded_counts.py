"""Recorded exchanges with what the provider counted beside what segue estimates, for tests marked `traffic`.

The estimate is made from the recorded body alone. Left out: requests with tools that the provider runs itself, or with
their results, whose pages and instructions the body does not show, and replies without usage.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import lru_cache
from statistics import median
from typing import Any, NamedTuple

import segue
from protocols import traffic
from segue.conversation.context import Prompt
from segue.conversation.messages import AssistantMessage
from segue.counting.counter import TokenCounter
from segue.models.model import Model

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

    @property
    def ratio(self) -> float:
        """The estimate, as a fraction of the count."""
        return self.estimated / self.counted

    @property
    def is_judge(self) -> bool:
        """Whether the row belongs to the half that constants are not fitted on."""
        return hashlib.sha256(self.file.encode()).digest()[0] % 2 == 1


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


def _rows() -> Iterator[Row]:
    for entry in traffic.exchanges():
        exchange = traffic.read(entry["file"])
        if not traffic.was_accepted(entry, exchange):
            continue
        protocol, body = entry["protocol"], exchange["request"]
        try:
            prompt = segue.decode_request(body, protocol=protocol)
            reply = _reply(exchange, protocol)
        except segue.SegueError:  # a count request, an embedding: no conversation
            continue
        if reply is None or reply.usage is None or _uses_server_tools(prompt):
            continue
        usage = reply.usage
        counted = usage.input + usage.cache_read + usage.cache_write
        if counted <= 0:
            continue
        model = Model(entry["model"] or body.get("model") or "unknown", entry["provider"], protocol)
        counter = TokenCounter(model)
        name = counter.family.name
        yield Row(
            file=entry["file"],
            prompt=prompt,
            model=model,
            family=name,
            vendor=next((vendor for part, vendor in VENDORS.items() if part in name), "others"),
            has_media=any(
                piece.kind in ("image", "file") for turn in prompt.context.messages for piece in turn.content
            ),
            estimated=estimate(prompt, counter),
            counted=counted,
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
