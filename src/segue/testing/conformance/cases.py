"""The cases of the conformance suite: one file for each wire, written by `scripts/write_conformance.py`.

A body lacks the name of the model and `stream`: whoever sends it adds them. In place of a value there may be

- `{"$reply": N}` in the list of turns: the turns of the reply to step N, as the client received them,
- `{"$call": [N, K]}`: the id of call K of that reply,
- `{"$id": N}`: the id of that reply.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal, final

import msgspec

VERSION: Final = 1
"""The version of the cases: it grows when one is added or changed, so that scores are compared for the same cases."""
FOLDER: Final = files("segue.testing.conformance") / "cases"

Role = Literal["user", "assistant", "tool"]


@final
class VerbatimPart(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A text that the provider has to receive, verbatim: what it is, and the role of its turn if that matters.

    With `own`, only a provider of the wire on which the case is sent can read it.
    """

    word: str
    part: str
    role: Role | None = None
    own: bool = False


@final
class AskedSettings(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Settings that the provider has to receive. `tool_choice` is the name of a tool, "required" or "none"."""

    tool_choice: str | None = None
    json: bool | None = None
    max_tokens: int | None = None
    temperature: float | None = None


@final
class Expectation(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What the provider has to receive with the last step of a case.

    - `kept`: the parts that arrive.
    - `order`: words in the order in which they arrive.
    - `pairs`: a word of a call and a word of its result, which arrives as the result of this call.
    """

    kept: tuple[VerbatimPart, ...]
    order: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    asked: AskedSettings = AskedSettings()


@final
class CaseStep(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A request, and what the scripted provider answers: a step of the emulator (docs/emulator.md)."""

    body: dict[str, Any]
    upstream: dict[str, Any]


@final
class ConformanceCase(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One history: requests in a row; the last one is judged. `model` is there if another one is meant."""

    id: str
    title: str
    steps: tuple[CaseStep, ...]
    expect: Expectation
    model: str | None = None


@final
class WireCases(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The cases of one wire, and how they are sent.

    - `path`, `stream_path`: the endpoint. `{model}` is the name of the model; without it, the body has a field `model`.
      Without `stream_path`, streams are asked for with `"stream": true`.
    - `headers`: `{key}` is the API key.
    - `reply_path`: where a reply has the turns that the next request sends back: one, a list of them, or, with
      `reply_role`, the content of a turn of this role.
    """

    version: int
    wire: str
    model: str
    path: str
    reply_path: tuple[str | int, ...]
    cases: tuple[ConformanceCase, ...]
    stream_path: str | None = None
    reply_role: str | None = None
    headers: Mapping[str, str] = {}


@cache
def load_wire(wire: str) -> WireCases:
    """Read the cases of a wire."""
    return msgspec.json.decode((FOLDER / f"{wire}.json").read_bytes(), type=WireCases)


@cache
def wire_names() -> tuple[str, ...]:
    """List the wires that have cases."""
    names = (each.name.removesuffix(".json") for each in FOLDER.iterdir() if each.name.endswith(".json"))
    return tuple(sorted(name for name in names if name != "schema"))
