"""The overhead of the client over its transport: the same streamed reply over the same connection, read in three ways.

- by httpx2 alone, which returns the bytes: the time of the transport;
- by segue's client, which returns segue's events and the whole message;
- by the raw streams of the openai and anthropic clients, which return their own events and no message.

The server is another process (see `stream_server`), so only reading is measured. A live stream arrives one event at a
time; waiting for each makes the transport three times as slow as for a stream that has arrived completely. The goals
are for the latter, because there the share of the client is the largest.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import anthropic
import httpx2
import openai
from cases import WRITERS, is_supported
from figures import Figure
from measure import Comparison, Effort, compare
from msgspec.structs import replace
from streamed import mixed_stream

from segue import Context, Model, UserMessage, decode_response
from segue.client.http.clients import Client

_SERVER: Final = Path(__file__).with_name("stream_server.py")
_HELLO: Final = Context(messages=(UserMessage.of("hello"),))
_KEY: Final = "nobody"
_WAYS: Final[Mapping[str, str]] = {"at-once": "complete", "live": "live"}


def measure_client(effort: Effort) -> list[Figure]:
    """Measure every protocol that the server streams."""
    figures: list[Figure] = []
    with _running_server() as origin:
        for protocol, model in WRITERS.items():
            if missing := is_supported(protocol):
                figures.append(
                    Figure("client.overhead", f"{protocol}: client / transport", "times", None, note=missing)
                )
                continue
            for way, words in _WAYS.items():
                figures += _measure_wire(model, f"{origin}/{protocol}/{way}", words, effort)
    return figures


@contextmanager
def _running_server() -> Generator[str]:
    with subprocess.Popen([sys.executable, str(_SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().decode().strip()
        finally:
            server.kill()


def _measure_wire(model: Model, base_url: str, words: str, effort: Effort) -> Iterator[Figure]:
    protocol, stream = model.protocol, mixed_stream(model)
    here = replace(model, base_url=base_url)
    is_live = words == "live"
    if is_live:  # the server sets the pace, not the reader
        effort = Effort(rounds=max(3, effort.rounds // 4), sample_ns=1)
    with httpx2.Client(timeout=60) as transport, Client(api_key=_KEY, timeout=60.0) as client:
        subjects: dict[str, Callable[[], object]] = {
            "transport": lambda: _read_bytes(transport, base_url, len(stream.whole)),
            "segue": lambda: _read_events(client, here),
            **_sdk_readers(protocol, base_url, model.id),
        }
        if client.stream(_HELLO, here).result().content != decode_response(stream.reply, model=model).content:
            raise AssertionError(f"the stream of {model.full_name()} was not read well: the figures would mean nothing")
        compared = compare("transport", subjects, effort)
    yield from _figures(compared, protocol, words, len(stream.pieces), is_live=is_live)


def _figures(compared: Comparison, protocol: str, words: str, events: int, *, is_live: bool) -> Iterator[Figure]:
    ratio = compared.ratio("segue")
    key = "" if is_live else "client.overhead"
    yield Figure(key, f"{protocol}, {words}: client / transport", "times", ratio.best, ratio.spread())
    for name in ("transport", "segue"):
        each = compared.best(name) / events / 1e3
        yield Figure("", f"{protocol}, {words}: {name}, an event of {events:,}", "us", each)
    for name in compared.samples:
        if name.endswith(" SDK"):
            ratio = compared.ratio("segue", name)
            sdk_key = "" if is_live else "client.sdks"
            what = f"{protocol}, {words}: client / {name}, raw stream"
            yield Figure(sdk_key, what, "part", ratio.best, ratio.spread_as_part())
    control = compared.control()
    what = f"{protocol}, {words}: transport / itself"
    yield Figure("", what, "times", control.best, control.spread(), note="the same code twice: measurement error")


def _read_bytes(transport: httpx2.Client, url: str, size: int) -> None:
    read = 0
    with transport.stream("POST", url, content=b"{}", headers={"accept-encoding": "identity"}) as reply:
        for chunk in reply.iter_raw():
            read += len(chunk)
    if read != size:
        raise AssertionError(f"{read} bytes came, not {size}")


def _read_events(client: Client, model: Model) -> object:
    last: object = None
    for event in client.stream(_HELLO, model):
        last = event
    return last


def _sdk_readers(protocol: str, base_url: str, model: str) -> dict[str, Callable[[], object]]:
    """Read the same stream with the provider's own client."""
    if protocol == "anthropic-messages":
        claude = anthropic.Anthropic(api_key=_KEY, base_url=base_url, max_retries=0)

        def read_claude() -> None:
            for _ in claude.messages.create(
                model=model, max_tokens=1, messages=[{"role": "user", "content": "hello"}], stream=True
            ):
                pass

        return {"anthropic SDK": read_claude}
    gpt = openai.OpenAI(api_key=_KEY, base_url=base_url, max_retries=0)

    def read_chat() -> None:
        for _ in gpt.chat.completions.create(model=model, messages=[{"role": "user", "content": "hello"}], stream=True):
            pass

    def read_responses() -> None:
        for _ in gpt.responses.create(model=model, input="hello", stream=True):
            pass

    return {"openai SDK": read_chat if protocol == "openai-chat" else read_responses}
