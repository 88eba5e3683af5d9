"""`Route`: an HTTP endpoint of a protocol, as data: what servers match the requests of clients with.

A path pattern is at the end of the path: base URLs differ (`/v1`, `/openai/v1`, `/api/anthropic`, none at all).
`{model}` is the id of a model in the path; ids may have slashes, escaped or not. `{reply}` is the id of a stored reply,
which has none. Several protocols have the same path
(`/v1/models`); then evidence in the headers or in the query decides which client asks.

This module does not import any codec, because matching needs the routes of every protocol.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal, TypeAlias, final
from urllib.parse import unquote

import msgspec

CallKind: TypeAlias = Literal[
    "generate", "count", "models", "version", "retrieve", "delete", "cancel", "input_items", "compact"
]
"""What is asked for: a reply, the number of tokens of a request, models (a list or one), the version of the server, a
stored reply, its deletion, its end, the items that it was made of, or a shorter form of a history."""
NEEDS_PROMPT: Final[frozenset[CallKind]] = frozenset({"generate", "count", "compact"})
"""The kinds whose body is a request."""

_PLACES: Final = {"{model}": "(?P<model>.+)", "{reply}": "(?P<reply>[^/]+)"}
_NAMED: Final = re.compile(r"(\{[a-z]+\})")


@final
class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One endpoint of a protocol.

    - `path`: the end of the path, with `{model}` where it names the model, or `{reply}` where it names a reply.
    - `kind`: what is asked for.
    - `stream`: whether the reply is streamed, where the path decides it; None: the body does.
    - `framing`: how a stream is framed, if not as the protocol says.
    - `transport`: how the request is sent, if not in the protocol's own way.
    - `socket`: whether requests may be sent over a WebSocket, too.
    - `evidence`: names of headers, or of parameters of the query with `?` before them, each with the beginning of its
      value. The route matches only if one of them is there; empty: it always does.
    - `model_id`: how the id of the model is made of its place in the path.
    - `also_reads`: other protocols whose bodies clients send to this path.
    - `answer`: the answer of an endpoint that always gives the same.
    """

    path: str
    kind: CallKind
    method: str = "POST"
    stream: bool | None = None
    framing: str | None = None
    transport: str | None = None
    socket: bool = False
    evidence: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    model_id: str = "{}"
    also_reads: tuple[str, ...] = ()
    answer: Mapping[str, object] | None = None


@final
class MatchedRoute(msgspec.Struct, frozen=True):
    """A route that a request matches, its protocol, and the model or the reply that the path names."""

    protocol: str
    route: Route
    model: str | None
    reply: str | None = None


@final
class RouteTable:
    """All routes, the more specific first: those with evidence before those without, longer paths before shorter."""

    __slots__ = ("_by_end", "_rows")

    def __init__(self, routes: Mapping[str, Sequence[Route]]) -> None:
        rows = [(name, route, _compile(route.path)) for name, each in routes.items() for route in each]
        rows.sort(key=lambda row: (not row[1].evidence, -len(_NAMED.sub("", row[1].path))))
        self._rows: Final = rows
        # Those that a path may match, by its last name: None if no route ends with it.
        ends = {None, *(_last_name(row[1].path) for row in rows)}
        self._by_end: Final = {end: [row for row in rows if _last_name(row[1].path) in (end, None)] for end in ends}

    def find(
        self, method: str, path: str, headers: Mapping[str, str], query: Mapping[str, str], *, is_decoded: bool = False
    ) -> MatchedRoute | None:
        """Find the route of a request; names of headers are in lower case.

        The model in the path is decoded once: not at all if the path `is_decoded` already.
        """
        matches = _MATCHES if len(path) <= _COMMON_LENGTH else _MATCHES.__wrapped__
        for found in matches(self, method, path, is_decoded):
            if _is_evident(found.route.evidence, headers, query):
                return found
        return None

    def matches(self, method: str, path: str, is_decoded: bool) -> list[MatchedRoute]:
        """List the routes that a path matches, whatever the evidence is."""
        matched: list[MatchedRoute] = []
        for name, route, pattern in self._by_end.get(_last_name(path)) or self._by_end[None]:
            found = pattern.fullmatch(path) if route.method == method else None
            if found is not None:
                named = {key: value if is_decoded else unquote(value) for key, value in found.groupdict().items()}
                model = route.model_id.format(named["model"]) if "model" in named else None
                matched.append(MatchedRoute(name, route, model, named.get("reply")))
        return matched

    def methods(self, path: str) -> tuple[str, ...]:
        """List the methods that any protocol has for a path."""
        return tuple(dict.fromkeys(route.method for _, route, pattern in self._rows if pattern.fullmatch(path)))


_MATCHES: Final = lru_cache(maxsize=256)(RouteTable.matches)
_COMMON_LENGTH: Final = 256
"""Characters of a path that is remembered with its routes; a client may send any."""


def _compile(path: str) -> re.Pattern[str]:
    parts = [_PLACES.get(part) or re.escape(part) for part in _NAMED.split(path)]
    return re.compile(".*?" + "".join(parts))


def _last_name(path: str) -> str | None:
    """Return what follows the last slash or colon of a path; None for a pattern that may end with any name."""
    _, mark, name = path.rpartition("}")[2].replace(":", "/").rpartition("/")
    return name if mark else None


def _is_evident(evidence: Mapping[str, str], headers: Mapping[str, str], query: Mapping[str, str]) -> bool:
    if not evidence:
        return True
    for name, beginning in evidence.items():
        value = query.get(name[1:]) if name.startswith("?") else headers.get(name)
        if value is not None and value.lower().startswith(beginning):
            return True
    return False
