"""Schemas whose keywords have values of no draft, or of an old one: `prepare` and `check` do not fail on them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from typing import Final

import pytest

from segue import Context, Options, Prompt, SegueError, ToolDefinition, UserMessage, check, encode_request, prepare
from segue.protocols.registry import PROTOCOLS

KEYWORDS: Final = ("required", "enum", "properties", "items", "anyOf", "$defs", "type")
VALUES: Final = (True, 5, "x", None, {}, [], [True], [None, 5])  # `"required": true` is that of draft 3
HI: Final = UserMessage.of("hi")


def odd_schemas() -> Iterator[dict[str, object]]:
    for keyword, value in product(KEYWORDS, VALUES):
        schema: dict[str, object] = {"type": "object", "properties": {"p": {"type": "string"}}}
        yield {**schema, keyword: value}
        yield {**schema, "properties": {"p": {"type": "string", keyword: value}}}
        yield {**schema, "properties": {"p": {keyword: value}, "q": {"type": "array", "items": {keyword: value}}}}
        yield {keyword: value}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_odd_schemas_are_prepared_and_checked(protocol: str):
    model = PROTOCOLS[protocol].example
    for schema in odd_schemas():
        for prompt in (
            Prompt(context=Context(messages=(HI,), tools=(ToolDefinition(name="t", parameters=schema),))),
            Prompt(context=Context(messages=(HI,), tools=(ToolDefinition(name="t", parameters=schema, strict=True),))),
            Prompt(context=Context(messages=(HI,)), options=Options(output_schema=schema)),
        ):
            with suppress(SegueError):
                check(prepare(prompt.context, model, options=prompt.options).body, protocol=protocol, model=model)
            with suppress(SegueError):  # as given, without projection
                check(encode_request(prompt, model=model), protocol=protocol, model=model)
