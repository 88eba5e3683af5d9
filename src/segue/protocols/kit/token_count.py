"""The endpoint of a provider that counts the tokens of a request without running the model.

A protocol describes the endpoint once; `Dialect.count_tokens` says which providers have it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast, final

import msgspec

from segue.protocols.kit.codec import Endpoint, JsonObject


@final
class TokenCount(msgspec.Struct, frozen=True, kw_only=True):
    """Where a request is counted, with which body, and where the number is in the answer.

    - `path(endpoint)`: the path below the base URL.
    - `body(body, endpoint)`: the body to count, made of the body of the request.
    - `field`: the field of the answer with the number of input tokens.
    - `inside`: the keys under which `body` puts the request, outermost first; empty: it is the request itself. Clients
      may leave them out.
    - `beside`: other fields of an answer.
    """

    path: Callable[[Endpoint], str]
    body: Callable[[JsonObject, Endpoint], dict[str, object]]
    field: str
    inside: tuple[str, ...] = ()
    beside: Mapping[str, object] = msgspec.field(default_factory=dict[str, object])

    def request_in(self, body: JsonObject) -> JsonObject:
        """Return the request that a body asks to count."""
        for key in self.inside:
            inner = body.get(key)
            if not isinstance(inner, Mapping):
                break
            body = cast("JsonObject", inner)
        return body

    def encode(self, tokens: int) -> dict[str, object]:
        """Write an answer."""
        return {**self.beside, self.field: tokens}

    def read(self, answer: object) -> int | None:
        """Return the number in an answer; None if it has none."""
        value: object = answer.get(self.field) if isinstance(answer, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def only(names: frozenset[str]) -> Callable[[JsonObject, Endpoint], dict[str, object]]:
    """Return a function that keeps the keys of a body which the endpoint takes: others are refused."""

    def keep_named(body: JsonObject, endpoint: Endpoint) -> dict[str, object]:  # noqa: ARG001 - common signature
        return {key: value for key, value in body.items() if key in names}

    return keep_named


def below(path: Callable[[Endpoint, bool], str], end: str) -> Callable[[Endpoint], str]:
    """Return a function for the path of an endpoint that is below the one for requests."""
    return lambda endpoint: path(endpoint, False) + end  # noqa: FBT003 - common signature
