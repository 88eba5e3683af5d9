"""The process of a local model: llama.cpp's own server on one GGUF file. It is run as a script, by `gguf`.

It prints the URL when the model is loaded, and ends when the other end of standard input is closed.

Facts (xllamacpp 2026.10.11549, tried 2026-11-17):
- The server logs to standard output, and answers 503 at `/health` until the model is loaded.
- It has its own threads, which Python would wait for at its end.
- `n_ctx` above what the model was trained for is lowered by the server itself.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from importlib import import_module
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

_PAUSE: Final = 0.05
"""Seconds between two questions whether the model is loaded."""


def main(path: str, window: int) -> None:
    """Serve a file until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C stops an answer, not the model
    address_line = os.dup(1)
    os.dup2(2, 1)
    xllamacpp: Any = import_module("xllamacpp")  # it has no types
    parameters = xllamacpp.CommonParams()
    parameters.model.path = path
    parameters.n_parallel = 1
    parameters.n_ctx = window
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.ui = False
    server = xllamacpp.Server(parameters)
    _wait_until_loaded(server.listening_address)
    os.write(address_line, server.listening_address.encode() + b"\n")
    os.close(address_line)
    sys.stdin.buffer.read()
    os._exit(0)


def _wait_until_loaded(url: str) -> None:
    opener = build_opener(ProxyHandler({}))
    while True:
        try:
            with opener.open(f"{url}/health"):
                return
        except HTTPError as error:
            if error.code != 503:
                raise
        time.sleep(_PAUSE)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
