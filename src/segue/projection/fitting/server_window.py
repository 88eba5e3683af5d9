"""Options that follow from the size of a request: how much a server has to read, and how much is left for the reply.

Facts this file rests on:
- Ollama reads 4,096 to 262,144 tokens, by the memory of the machine, and drops the beginning of a longer request
  without an error, down to half of that. `num_ctx` sets the number; another number loads the model again.
                                        (ollama #3839, #17427, docs/context-length.mdx; read 2026-11-15)
- Anthropic requires `max_tokens`; several models refuse a request whose input and `max_tokens` together exceed the
  window.                               (strands-agents/sdk-python #1078, 2025-10; vllm #42474)

Neither changes what was given: options that the caller sets are kept, or clamped and reported by projection.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.context import Options
from segue.projection.fitting.window import Window
from segue.protocols.kit.codec import Endpoint

_SMALLEST_WINDOW: Final = 8192
_MORE: Final = 1.2
"""Estimates of texts can be too low by this factor."""


def fill_window(options: Options, window: Window, endpoint: Endpoint) -> Options:
    """Add the window that the server has to use, and the limit of the reply, where the target needs them."""
    rules = endpoint.rules
    if rules.window_option and asked_window(options, rules.window_option, endpoint.model.protocol) is None:
        options = _with_window(options, _window_size(window), rules.window_option, endpoint.model.protocol)
    if options.max_tokens is None and rules.max_tokens_needed and endpoint.model.max_tokens:
        left = window.left(endpoint.model.max_tokens)
        budget = options.thinking if isinstance(options.thinking, int) else 0
        if left is not None and left > budget:
            options = replace(options, max_tokens=left)
    return options


def asked_window(options: Options, keys: tuple[str, ...], protocol: str) -> int | None:
    """Give the window that the caller asks the server to use."""
    value: object = (options.extra or {}).get(protocol)
    for key in keys:
        value = cast("Mapping[str, object]", value).get(key) if isinstance(value, dict) else None
    return value if isinstance(value, int) and value > 0 else None


def _window_size(window: Window) -> int:
    """Choose a power of two that holds the request and a reply, so that the server rarely loads the model again."""
    needed, size = window.most * _MORE + (window.window - window.limit), _SMALLEST_WINDOW
    while size < needed:
        size *= 2
    return min(size, window.window)


def _with_window(options: Options, size: int, keys: tuple[str, ...], protocol: str) -> Options:
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
