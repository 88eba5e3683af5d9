"""llama.cpp's own HTTP server on a model that the tests write: three wires of a real server, without weights or keys.

`llama_server` is a fixture of the whole session: `from servers.llama import llama_server` in a `conftest.py` gives it.
The server runs in a separate process, which ends on request and when the process that started it ends. It starts
in about a second, most of it Python's own imports. `tiny_model.py` describes the model.

What it does otherwise than the makers of its wires (xllamacpp 2026.10.11549, seen 2026-11-15); `test_llama_quirks.py`
notices when a later version changes its mind:
- Anthropic: blocks overlap: each opens when its first words come, and all of them stop together at the end, after a
  signature that is empty. The start of a call has no `input`, the start of thinking no `signature`.
- Anthropic: `thinking: {"type": "disabled"}` is ignored; a body whose `messages` is not a list is answered anyway.
- Responses: events have neither `output_index` nor `sequence_number`; items are done together at the end; the reply
  says `completed` although the limit of tokens was hit; `encrypted_content` is an empty text, reasoning is plain.
- Responses: an item of the assistant's needs `type: "message"`, which OpenAI does not ask for; a reasoning item needs
  `content`, a summary is not enough.
- Chat: reasoning is `reasoning_content`; `timings` stand beside the usage; the last chunk with usage has no choices.
- Every wire: an error is OpenAI's `{"error": {"code": 400, "message", "type"}}`, with a number for a code, also on the
  Anthropic path; one of the context's size has `n_prompt_tokens` and `n_ctx`.
- A call cut off by the limit of tokens is given with what had come of its arguments, which is no JSON; sent back it is
  answered with 500.
- `tool_choice: "required"` waits until the model calls, and lets it talk before that; "none" still shows it the tools.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from segue.conversation.context import ToolDefinition
from segue.models.model import Model

WIRES: Final = ("openai-chat", "openai-responses", "anthropic-messages")
"""The protocols it serves."""

WEATHER: Final = ToolDefinition(
    name="get_weather",
    description="Look up the weather of a city.",
    parameters={
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
    },
)
"""A tool the model can call: the server's grammar makes the arguments fit the schema."""

_PATIENCE: Final = 60.0
"""Seconds until a server that does not say where it listens is given up; a loaded machine is slow to import."""


class LlamaServer(msgspec.Struct, frozen=True):
    """A running server."""

    origin: str
    """`http://127.0.0.1:<port>`."""
    window: int
    """How many tokens one conversation may have."""

    def model(self, protocol: str) -> Model:
        """Give the model as a target over one of its wires; nothing of it is in the catalogue."""
        return Model(
            "tiny",
            "llama.cpp",
            protocol,
            base_url=self.origin if protocol == "anthropic-messages" else self.origin + "/v1",
            reasoning=True,
            input=("text",),
            context_window=self.window,
        )


@contextmanager
def running_llama(folder: Path) -> Iterator[LlamaServer]:
    """Write the model into a folder, start the server, and end it whatever happens."""
    from servers.tiny_model import WINDOW, write_tiny_model

    model = folder / "tiny.gguf"
    write_tiny_model(model)
    log = folder / "server.log"
    with log.open("wb") as messages:
        process = subprocess.Popen(
            [sys.executable, __file__, str(model), str(WINDOW)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=messages,
        )
    with process:  # closes the pipes and waits
        guard = threading.Timer(_PATIENCE, process.kill)
        guard.start()
        try:
            assert process.stdout is not None
            origin = process.stdout.readline().decode().strip()
            guard.cancel()
            if not origin:
                pytest.fail(f"llama.cpp's server did not start: {log.read_text('utf-8', 'replace')[-2000:]}")
            yield LlamaServer(origin, WINDOW)
        finally:
            guard.cancel()
            guard.join()
            process.kill()  # it keeps nothing that could be lost


def need_wheels() -> None:
    """Skip a test where what the server is made of is not installed."""
    for package in ("xllamacpp", "gguf"):
        if find_spec(package) is None:
            pytest.skip(f"against llama.cpp's server (no wheel of {package} for this machine)")


@pytest.fixture(scope="session")
def llama_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    """Give a running server; skipped only where its wheel cannot be had."""
    need_wheels()
    with running_llama(tmp_path_factory.mktemp("llama")) as server:
        yield server


def _serve(model: str, window: int) -> None:
    """Serve until nobody holds the other end of standard input any more."""
    xllamacpp: Any = import_module("xllamacpp")  # it has no types to check against
    # Its log goes to standard output and would stand before the address.
    address_line = os.dup(1)
    os.dup2(2, 1)
    parameters = xllamacpp.CommonParams()
    parameters.model.path = model
    parameters.model_alias = {"tiny"}
    parameters.n_parallel = 4
    parameters.n_ctx = window * parameters.n_parallel
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.ui = False
    parameters.warmup = False
    # The model tells which of two tokens came last by an angle of some 10**-4 rad: half a float does not hold that.
    parameters.cache_type_k = xllamacpp.ggml_type.GGML_TYPE_F32
    parameters.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    # Threads that wait for each other spin, and a test machine has better things to do.
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(parameters)
    os.write(address_line, server.listening_address.encode() + b"\n")
    os.close(address_line)
    sys.stdin.buffer.read()
    os._exit(0)  # the server's own threads would be waited for


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
