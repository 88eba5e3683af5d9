"""A proxy in front of the scripted provider that does one thing wrong, for tests of the conformance suite."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from segue.testing.conformance.running import Upstream
from segue.testing.emulator import serve_in_thread

Json = Any
STATE = ("signature", "thoughtSignature", "encrypted_content", "reasoning_details")
TURNS = ("messages", "input", "contents")
SYSTEM = ("system", "instructions", "systemInstruction")
FORMATS = ("response_format", "output_config", "text", "responseMimeType", "responseSchema", "responseJsonSchema")


class Fault(NamedTuple):
    """What a proxy does with a request, with the bytes of a reply, and with headers of it."""

    request: Callable[[Json], Json] = lambda body: body
    reply: Callable[[bytes], bytes] = lambda data: data
    ending: bytes | None = None
    """What ends a stream that broke off, as if it were complete."""
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Proxy:
    """An ASGI application that forwards to another one."""

    def __init__(self, upstream: Upstream, fault: Fault) -> None:
        self.upstream, self.fault = upstream, fault

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.upstream(scope, receive, send)
            return
        data = b""
        while True:
            message = await receive()
            data += message.get("body", b"")
            if not message.get("more_body"):
                break
        body = json.dumps(self.fault.request(json.loads(data))).encode() if data else data
        headers = [(name, value) for name, value in scope["headers"] if name != b"content-length"]

        async def resend() -> Any:
            return {"type": "http.request", "body": body}

        async def answer(message: Any) -> None:
            if message["type"] == "http.response.start":
                kept = [pair for pair in message["headers"] if pair[0] != b"content-length"]
                await send({**message, "headers": [*kept, *self.fault.headers]})
            else:
                await send({**message, "body": self.fault.reply(message.get("body", b""))})

        try:
            await self.upstream({**scope, "headers": headers}, resend, answer)
        except Exception:
            if self.fault.ending is None:
                raise
            await send({"type": "http.response.body", "body": self.fault.ending})


@contextmanager
def proxy_with(fault: Fault) -> Iterator[tuple[str, Upstream]]:
    """Run a proxy with a fault, and the scripted provider after it."""
    upstream = Upstream()
    with serve_in_thread(Proxy(upstream, fault)) as url:
        yield url, upstream


def change(body: Json, rewrite: Callable[[Json], Json]) -> Json:
    """Rewrite each object, list and value of a body, from the inside."""
    if isinstance(body, dict):
        return rewrite({key: change(value, rewrite) for key, value in body.items()})
    if isinstance(body, list):
        return rewrite([change(value, rewrite) for value in body])
    return rewrite(body)


def _texts(rewrite: Callable[[str], str]) -> Callable[[Json], Json]:
    return lambda body: change(body, lambda value: rewrite(value) if isinstance(value, str) else value)


def _without(*keys: str) -> Callable[[Json], Json]:
    def drop(value: Json) -> Json:
        return {key: each for key, each in value.items() if key not in keys} if isinstance(value, dict) else value

    return lambda body: change(body, drop)


def _with_turns(body: Json, rewrite: Callable[[list[Json]], list[Json]]) -> Json:
    return {key: rewrite(value) if key in TURNS and isinstance(value, list) else value for key, value in body.items()}


def drop_signatures(body: Json) -> Json:
    def drop(value: Json) -> Json:
        if isinstance(value, list):
            kinds = ("thinking", "redacted_thinking", "reasoning", "compaction")
            return [each for each in value if not (isinstance(each, dict) and each.get("type") in kinds)]
        return value

    return _with_turns(body, lambda turns: _without(*STATE)(change(turns, drop)))


def swap_results(body: Json) -> Json:
    """Give the first two results each other's ids and names."""
    found: list[Json] = []

    def collect(value: Json) -> Json:
        if isinstance(value, dict):
            is_result = value.get("type") in ("tool_result", "function_call_output") or value.get("role") == "tool"
            if is_result:
                found.append(value)
            elif "functionResponse" in value:
                found.append(value["functionResponse"])
        return value

    body = change(body, collect)
    if len(found) > 1:
        for key in ("tool_call_id", "call_id", "tool_use_id", "id", "name"):
            if key in found[0]:
                found[0][key], found[1][key] = found[1][key], found[0][key]
    return body


def swallow_system_texts(body: Json) -> Json:
    roles = ("system", "developer")
    return _with_turns(
        body, lambda turns: [turn for at, turn in enumerate(turns) if not at or turn.get("role") not in roles]
    )


def drop_system_prompt(body: Json) -> Json:
    kept = {key: value for key, value in body.items() if key not in SYSTEM}
    return _with_turns(kept, lambda turns: turns[1:] if turns[0].get("role") in ("system", "developer") else turns)


def drop_images(body: Json) -> Json:
    def drop(value: Json) -> Json:
        if isinstance(value, list):
            kinds = ("image", "image_url", "input_image")
            kept = [
                each
                for each in value
                if not (
                    isinstance(each, dict) and (each.get("type") in kinds or "inlineData" in each or "fileData" in each)
                )
            ]
            return kept or [{"type": "text", "text": "(image)"}]
        return value

    return change(body, drop) if "image" in json.dumps(body) else body


def swap_user_turns(body: Json) -> Json:
    def swap(turns: list[Json]) -> list[Json]:
        places = [at for at, turn in enumerate(turns) if turn.get("role") == "user"]
        if len(places) > 1:
            first, last = places[0], places[-1]
            turns[first], turns[last] = turns[last], turns[first]
        return turns

    return _with_turns(body, swap)


def first_tools(body: Json) -> Json:
    tools = body.get("tools", [])
    if tools and "functionDeclarations" in tools[0]:
        tools = [{"functionDeclarations": tools[0]["functionDeclarations"][:128]}]
    return {**body, "tools": tools[:128]} if tools else body


def drop_names(body: Json) -> Json:
    return _with_turns(body, lambda turns: [{key: turn[key] for key in turn if key != "name"} for turn in turns])


def forget_the_reply_before(body: Json) -> Json:
    return {key: value for key, value in body.items() if key != "previous_response_id"}


def newest_turns(body: Json) -> Json:
    return _with_turns(body, lambda turns: turns[-40:] if len(turns) > 40 else turns)


def rename_calls(body: Json) -> Json:
    """Shorten the ids of calls, and not those of results."""

    def rename(value: Json) -> Json:
        if isinstance(value, dict):
            if value.get("type") in ("function", "tool_use") and "id" in value:
                return {**value, "id": value["id"][:6] + "x"}
            if value.get("type") == "function_call":
                return {**value, "call_id": value["call_id"][:6] + "x"}
        return value

    return change(body, rename)


def as_doubles(body: Json) -> Json:
    def round_numbers(value: Json) -> Json:
        if isinstance(value, str) and value.startswith("{"):
            try:
                return json.dumps(as_doubles(json.loads(value)))
            except ValueError:
                return value
        is_large = isinstance(value, int) and not isinstance(value, bool) and value > 2**53
        return int(float(value)) if is_large else value

    return change(body, round_numbers)


def first_call(data: bytes) -> bytes:
    """Keep one call of a whole reply of Chat."""
    if not data.startswith(b'{"id"'):
        return data
    reply = json.loads(data)
    for choice in reply.get("choices", ()):
        if "tool_calls" in choice["message"]:
            choice["message"]["tool_calls"] = choice["message"]["tool_calls"][:1]
    return json.dumps(reply).encode()


def lose_words(words: Collection[str]) -> Fault:
    """Make a proxy that loses these words."""

    def lose(text: str) -> str:
        for word in words:
            text = text.replace(word, "gone")
        return text

    return Fault(lambda body: json.loads(lose(json.dumps(body))))


_END_OF_CHAT = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'

FAULTS: dict[str, Fault] = {
    "drops signatures": Fault(drop_signatures),
    "gives results to other calls": Fault(swap_results),
    "swallows system texts": Fault(swallow_system_texts),
    "drops the system prompt": Fault(drop_system_prompt),
    "drops images": Fault(drop_images),
    "reorders turns": Fault(swap_user_turns),
    "sends the first 128 tools": Fault(first_tools),
    "forgets the reply before": Fault(forget_the_reply_before),
    "sends the newest turns": Fault(newest_turns),
    "renames calls and not results": Fault(rename_calls),
    "reads integers as doubles": Fault(as_doubles),
    "drops names": Fault(drop_names),
    "drops the format of answers": Fault(
        lambda body: {
            key: _without(*FORMATS)(value) if key == "generationConfig" else value
            for key, value in body.items()
            if key not in FORMATS
        }
    ),
    "drops the choice of tools": Fault(_without("tool_choice", "toolConfig")),
    "writes ASCII": Fault(_texts(lambda text: text.encode("ascii", "replace").decode())),
    "collapses whitespace": Fault(_texts(lambda text: " ".join(text.split()))),
    "shortens texts": Fault(_texts(lambda text: text[:5000])),
    "ends broken streams": Fault(ending=_END_OF_CHAT),
    "does not stream": Fault(lambda body: {**body, "stream": False}),
    "loses pieces of streams": Fault(reply=lambda data: b"" if b'"word7 "' in data else data),
    "hides that a reply is too long": Fault(
        reply=lambda data: (
            data.replace(b'"length"', b'"stop"')
            .replace(b'"max_tokens"', b'"end_turn"')
            .replace(b'"MAX_TOKENS"', b'"STOP"')
        )
    ),
    "keeps one call of a reply": Fault(reply=first_call),
}
