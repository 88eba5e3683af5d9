"""Options that follow from the size of a request: how much a server has to read, and how much is left for the reply.

Also what a server is asked to do itself about a conversation that grows too long.

Facts:
- Ollama reads 4,096 to 262,144 tokens, by the memory of the machine, and drops the beginning of a longer request
  without an error, down to half of that. `num_ctx` sets the number; another number loads the model again.
                                        (ollama #3839, #17427, docs/context-length.mdx; read 2026-11-15)
- Anthropic requires `max_tokens`; several models refuse a request whose input and `max_tokens` together exceed the
  window.                               (strands-agents/sdk-python #1078, 2025-10; vllm #42474)

Neither changes what was given: options that the caller sets are kept, or clamped and reported by projection.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.context import Options
from segue.conversation.messages import Message
from segue.models.rules import Rules
from segue.projection.fitting.plan import FitPlan
from segue.projection.fitting.window import Window
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.facts import ServerEdit
from segue.protocols.kit.json_values import Block
from segue.protocols.kit.protocol import Protocol

_SMALLEST_WINDOW: Final = 8192
_MORE: Final = 1.2
"""Estimates of texts can be too low by this factor."""


def fill_window(options: Options, window: Window, endpoint: Endpoint) -> Options:
    """Add the window that the server has to use, and the limit of the reply, where the target needs them."""
    rules = endpoint.rules
    fields = rules.values("window_field")
    for field in fields if fields and asked_window(options, rules, endpoint.model.protocol) is None else ():
        options = _with_window(options, _window_size(window), field.split("."), endpoint.model.protocol)
    if options.max_tokens is None and rules.has("unset_max_tokens") and endpoint.model.max_tokens:
        budget = options.thinking if isinstance(options.thinking, int) else 0
        if (left := window.left(endpoint.model.max_tokens)) is not None and left > budget:
            options = replace(options, max_tokens=left)
    return options


def ask_server(options: Options, plan: FitPlan, protocol: Protocol, messages: Sequence[Message]) -> Options:
    """Ask the server to shorten the conversation itself, where the policy says so and where a block needs it.

    `messages` are those that may have such a block; the given options if there is nothing to ask.
    """
    form = protocol.server_edits
    if form is None or (plan.edit is None and not messages):
        return options
    edits: dict[ServerEdit, None] = {} if plan.edit is None else {plan.edit: None}
    for block in native_blocks(messages, protocol.name):
        if (needed := form.needed(block)) is not None:
            edits[needed] = None
    fields = given = (options.extra or {}).get(protocol.name, {})
    for edit in edits:
        fields = form.ask(fields, edit, plan.above)
    return options if fields is given else replace(options, extra={**(options.extra or {}), protocol.name: fields})


def covered_before(messages: Sequence[Message], protocol: Protocol) -> int:
    """Return the index of the newest message that the server reads in place of all before it; 0 if there is none."""
    form = protocol.server_edits
    if form is not None:
        for index in range(len(messages) - 1, 0, -1):
            if any(map(form.covers, native_blocks(messages[index : index + 1], protocol.name))):
                return index
    return 0


def native_blocks(messages: Sequence[Message], protocol: str) -> Iterator[Block]:
    """Yield the blocks of replies that only this protocol has."""
    for message in messages:
        for piece in message.content if message.role == "assistant" else ():
            if piece.kind == "native" and piece.protocol == protocol:
                yield piece.block


def asked_window(options: Options, rules: Rules, protocol: str) -> int | None:
    """Return the window that the caller asks the server to use; None where no field sets it."""
    fields = rules.values("window_field")
    value: object = (options.extra or {}).get(protocol) if fields else None
    for key in "".join(fields).split("."):
        value = cast("Mapping[str, object]", value).get(key) if isinstance(value, dict) else None
    return value if isinstance(value, int) and value > 0 else None


def _window_size(window: Window) -> int:
    """Choose a power of two that holds the request and a reply, so that the server rarely loads the model again."""
    needed, size = window.most * _MORE + (window.window - window.limit), _SMALLEST_WINDOW
    while size < needed:
        size *= 2
    return min(size, window.window)


def _with_window(options: Options, size: int, keys: Sequence[str], protocol: str) -> Options:
    extra = dict(options.extra or {})
    inner: dict[str, object] = dict(extra.get(protocol, {}))
    extra[protocol] = inner
    for key in keys[:-1]:
        known = inner.get(key)
        nested: dict[str, object] = dict(cast("Mapping[str, object]", known)) if isinstance(known, Mapping) else {}
        inner[key] = nested
        inner = nested
    inner[keys[-1]] = size
    return replace(options, extra=extra)
