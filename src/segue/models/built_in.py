"""The models that are part of segue: no company serves them, and they need no key.

The client answers for them in this process: see `segue.client.local`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from segue.models.model import Model

ECHO_HOST: Final = "echo.invalid"
"""A name that can never be looked up (RFC 2606)."""

ECHO: Final = Model(
    "echo",
    "segue",
    "openai-chat",
    name="Echo: repeats your message",
    base_url=f"http://{ECHO_HOST}",
    context_window=128_000,
    dialect={"auth": "none"},
)

LOCAL_HOST: Final = "local.invalid"
"""The host of models from files: the client starts a server for them, at a port that is not known before."""

LOCAL: Final = Model(
    "default",
    "local",
    "openai-chat",
    name="A small model on this machine",
    base_url=f"http://{LOCAL_HOST}/v1",
    input=("text",),
    context_window=8_192,
)
"""The model of the user's own GGUF file, or the one that `segue local get` fetches."""

_LOCAL_FILE: Final = "local:"

BUILT_IN: Final[Mapping[str, Model]] = {"echo": ECHO, "segue/echo": ECHO, "local": LOCAL, "local/default": LOCAL}
"""By name; a model of a catalogue with the same name goes first."""


def find_built_in(name: str) -> Model | None:
    """Find a model by its name; `local:PATH` is the model of a GGUF file."""
    if name.startswith(_LOCAL_FILE) and (path := name[len(_LOCAL_FILE) :]):
        return Model(path, LOCAL.provider, LOCAL.protocol, base_url=LOCAL.base_url, input=LOCAL.input)
    return BUILT_IN.get(name.lower())


def names_file(model: Model) -> bool:
    """Whether a model is a file on this machine that the name itself gives."""
    return model.provider == LOCAL.provider and model.id != LOCAL.id
