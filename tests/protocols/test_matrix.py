"""Convert every recorded request of every protocol to every other protocol.

The SDK types of the provider and `check` accept each result. Every text, call, result, image, file and tool of the
original is in the result or in the report.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from protocols import traffic
from protocols.every_protocol import all_codecs
from segue.conversation.context import Context, Prompt
from segue.errors import EmptyConversation
from segue.projection.report import Change, Loss
from segue.protocols.api import decode_request, resolve_endpoint
from segue.protocols.kit.protocol import Protocol
from segue.requests.prepare import Request, convert

CODECS = {codec.name: codec for codec in all_codecs()}
ROWS: list[Any] = [row for row in traffic.exchanges() if row["protocol"] in CODECS and row["status"] == 200]
ALL_MEDIA = ("text", "image", "document", "audio", "video")
WITH_ALL_MEDIA = {"openai-chat", "openai-responses", "google-genai", "mistral-chat"}
"""Protocols that are tested with a model that accepts every kind of media; the others with their example."""
TARGETS = {
    name: replace(codec.example, input=ALL_MEDIA) if name in WITH_ALL_MEDIA else codec.example
    for name, codec in CODECS.items()
}

pytestmark = pytest.mark.traffic


@traffic.each_exchange(ROWS, traffic.has_json_request)
def test_a_recorded_request_converts_to_every_other_protocol(row: Any):
    body = traffic.read(row["file"])["request"]
    prompt = decode_request(body, protocol=row["protocol"])
    others = [codec for name, codec in CODECS.items() if name != row["protocol"]]  # the same protocol: test_recorded
    found = {codec.name: faults(codec, body, row["protocol"], prompt) for codec in others}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def faults(target: Protocol, body: dict[str, object], source: str, prompt: Prompt) -> list[object]:
    """List the errors of a body after its conversion."""
    try:
        request = convert(body, source=source, target=TARGETS[target.name])
    except EmptyConversation:
        return ["content was dropped"] if any(True for _ in texts_and_media(prompt.context)) else []
    endpoint = resolve_endpoint(TARGETS[target.name])
    return [*target.check(request.body, endpoint), *complaints(target, request, endpoint), *missing(prompt, request)]


def complaints(target: Protocol, request: Request, endpoint: object) -> list[str]:
    folder = Path(__file__).parent / target.name.replace("-", "_")
    if not (folder / "referee.py").is_file():
        return []  # there is no SDK
    return import_module(f"protocols.{folder.name}.referee").complaints(request.body, endpoint)


def missing(prompt: Prompt, request: Request) -> list[tuple[object, ...]]:
    """List what is neither in the request nor reported as a loss."""
    body = BodyContent(request.body)
    lost = [change for change in request.report.changes if change.loss != Loss.NONE]
    names = {given: wire for wire, given in request.tool_names.items()}
    found: list[tuple[object, ...]] = []
    for path, what in (*texts_and_media(prompt.context), *calls(prompt.context, names), *tools(prompt.context, names)):
        if not body.contains(what) and not any(covers(change, path) for change in lost):
            found.append((*path, what[:80] if isinstance(what, str) else what))
    return found


def covers(change: Change, path: tuple[str | int, ...]) -> bool:
    return path[: len(change.path)] == change.path or change.path[: len(path)] == path


def texts_and_media(context: Context) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Give every text, and the data of every image and file, with its path."""
    prompt = context.system_prompt
    if isinstance(prompt, str):
        yield ("system_prompt",), prompt
    elif prompt is not None:
        yield from ((("system_prompt", at), piece.text) for at, piece in enumerate(prompt) if piece.kind == "text")
    for number, message in enumerate(context.messages):
        for at, piece in enumerate(message.content):
            place = ("messages", number, "content", at)
            if piece.kind == "text" and piece.text.strip():
                yield place, piece.text
            elif (piece.kind == "image" or piece.kind == "file") and piece.data:
                yield place, piece.data


def calls(context: Context, names: dict[str, str]) -> Iterator[tuple[tuple[str | int, ...], object]]:
    for number, message in enumerate(context.messages):
        if message.role != "assistant":
            continue
        for at, piece in enumerate(message.content):
            if piece.kind == "toolCall":
                yield ("messages", number, "content", at, "name"), names.get(piece.name, piece.name)
                yield ("messages", number, "content", at, "arguments"), dict(piece.arguments)


def tools(context: Context, names: dict[str, str]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    for at, tool in enumerate(context.tools):
        if tool.kind == "function":
            yield ("tools", at), names.get(tool.name, tool.name)


class BodyContent:
    """All strings of a body, and all its objects, including objects that are JSON in a string."""

    def __init__(self, body: object) -> None:
        self._texts: list[str] = []
        self._objects: set[str] = set()
        self._collect(body)
        self._whole = "\0".join(self._texts)

    def contains(self, what: object) -> bool:
        if isinstance(what, str):
            return what.strip() in self._whole
        return json.dumps(what, sort_keys=True) in self._objects

    def _collect(self, value: object) -> None:
        if isinstance(value, dict):
            self._objects.add(json.dumps(value, sort_keys=True))
            for inner in value.values():
                self._collect(inner)
        elif isinstance(value, list):
            for inner in value:
                self._collect(inner)
        elif isinstance(value, str):
            self._texts.append(value)
            if value.startswith("{"):
                self._read(value)
            for line in value.splitlines():  # for a target without tools, a call is one line of text
                if line.startswith("[Tool Use: ") and "{" in line:
                    self._read(line[line.index("{") :])

    def _read(self, text: str) -> None:
        with suppress(ValueError):
            self._objects.add(json.dumps(json.loads(text), sort_keys=True))
