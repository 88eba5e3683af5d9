"""segue as a model of the OpenAI Agents SDK: any model, fallbacks with projection, and nothing of a reply lost.

    agent = Agent(name="Helper", model=segue_model("anthropic/claude-opus-4-8", fallbacks=["openai/gpt-5.4"]))
    result = await Runner.run(agent, "What weighs more, a pound of bricks or a pound of feathers?")

The SDK's own model for the Responses API makes the request: its client has a transport that reads the request, asks the
model through segue, and answers as the Responses API does. Every item of a reply has a field `segue` with what the
provider sent, signatures included. The SDK keeps it in sessions and sends it back, and it is sent where it is valid.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Unpack
from uuid import uuid4

import httpx2
from agents import Model, ModelProvider, OpenAIResponsesModel
from msgspec.structs import replace
from openai import AsyncOpenAI

import segue

_PROTOCOL = "openai-responses"
_STATE = "segue"
_SHOWN = segue.Model("segue", "segue", _PROTOCOL)
"""The model that the SDK is shown: no provider has it, so no signature of a reply is taken for one of OpenAI."""
_EMPTY = {"type": "message", "id": "msg", "role": "assistant", "status": "completed", "content": []}
_JSON = {"content-type": "application/json"}


def segue_model(
    model: str,
    *,
    fallbacks: Sequence[str | segue.Model] = (),
    options: segue.Options | None = None,
    policy: segue.Policy | None = None,
    **client: Unpack[segue.ClientSettings],
) -> OpenAIResponsesModel:
    """Make a model that sends every request through segue.

    `model` and `fallbacks` are names of segue's catalogue. A fallback is asked when the model before it fails, with the
    history projected for it. `options` are further options of requests, `policy` is the policy of projection; any other
    keyword is a setting of segue's client (`ClientSettings`), such as `api_key`.
    """
    transport = _Transport(segue.AsyncClient(**client), tuple(fallbacks), options, policy)
    return OpenAIResponsesModel(model, _openai(transport))


class SegueProvider(ModelProvider):
    """Finds models by their names in segue's catalogue; the settings are those of `segue_model`."""

    def __init__(self, default: str = "", **settings: Any) -> None:
        self._default = default
        self._settings = settings
        self._models: dict[str, OpenAIResponsesModel] = {}

    def get_model(self, model_name: str | None) -> Model:
        name = model_name or self._default
        segue.get_model(name, catalogue=self._settings.get("catalogue"))  # an unknown name is an error here
        return self._models.setdefault(name, segue_model(name, **self._settings))


def _openai(transport: httpx2.AsyncBaseTransport) -> AsyncOpenAI:
    # Retries are segue's.
    http = httpx2.AsyncClient(transport=transport)
    return AsyncOpenAI(api_key="segue", base_url="http://segue.invalid/v1", max_retries=0, http_client=http)


class _Transport(httpx2.AsyncBaseTransport):
    """Answers requests of the Responses API."""

    def __init__(
        self,
        client: segue.AsyncClient,
        fallbacks: tuple[str | segue.Model, ...],
        options: segue.Options | None,
        policy: segue.Policy | None,
    ) -> None:
        self._client = client
        self._options = options
        self._fixed = {"fallback_models": fallbacks, "policy": policy}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(await request.aread())
        asked = self._request(body)
        if body.get("stream"):
            stream = self._client.stream(**asked)
            return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=_events(stream))
        try:
            reply = await self._client.complete(**asked)
        except segue.RequestFailed as error:
            refusal = segue.encode_error(error.failure, protocol=_PROTOCOL)
            return httpx2.Response(refusal.status, headers={**refusal.headers, **_JSON}, json=refusal.body)
        return httpx2.Response(200, headers=_JSON, json=_write(reply))

    def _request(self, body: dict[str, Any]) -> dict[str, Any]:
        """Make the arguments of a request: the options and tools as the Responses API has them, and the items."""
        items = body.pop("input")
        prompt = segue.decode_request({**body, "input": "-"}, protocol=_PROTOCOL)
        fields = {name: getattr(self._options, name) for name in segue.Options.__struct_fields__ if self._options}
        given = {name: getattr(prompt.options, name) for name in segue.Options.__struct_fields__}
        fields |= {name: value for name, value in given.items() if value is not None}
        messages = _read([{"role": "user", "content": items}] if isinstance(items, str) else items)
        context = segue.Context(
            system_prompt=prompt.context.system_prompt, messages=messages, tools=prompt.context.tools
        )
        return {"context": context, "model": body["model"], "options": segue.Options(**fields), **self._fixed}

    async def aclose(self) -> None:
        await self._client.close()


# -- items and what they keep ------------------------------------------------------------------------------------------


def _read(items: Sequence[Mapping[str, Any]]) -> tuple[segue.Message, ...]:
    """Read items: those of segue as what the provider sent, any others as items of the Responses API."""
    messages: list[segue.Message] = []
    others: list[Mapping[str, Any]] = []
    last: str | None = None

    def read_others() -> None:
        if others:
            messages.extend(segue.read_history(others, format="openai-agents").context.messages)
            others.clear()

    for item in items:
        state = item.get(_STATE)
        if state is None:
            last = None
            others.append(item)
            continue
        read_others()
        if not state["message"]:  # it belongs to the item before it
            continue
        message = segue.load_message(state["message"])
        if last == state["reply"]:
            earlier = messages.pop()
            message = replace(earlier, content=(*earlier.content, *message.content))
        messages.append(message)
        last = state["reply"]
    read_others()
    names = {
        piece.id: piece.name
        for message in messages
        if message.role == "assistant"
        for piece in message.content
        if piece.kind == "toolCall"
    }
    return tuple(
        replace(message, tool_name=names.get(message.tool_call_id, message.tool_name))
        if message.role == "toolResult"
        else message
        for message in messages
    )


def _write(reply: segue.AssistantMessage) -> dict[str, Any]:
    """Write a reply as the Responses API does; each item keeps its part of what the provider sent.

    A piece that has no item, such as an empty text with a signature, is kept by the item before it.
    """
    name = uuid4().hex
    found: list[tuple[list[dict[str, Any]], list[Any]]] = []
    for piece in reply.content:
        is_empty = piece.kind == "text" and not piece.text
        items = [] if is_empty else _encode(replace(reply, content=(piece,)))["output"]
        if piece.kind == "toolCall":
            items[0]["call_id"] = piece.id
        if items or not found:
            found.append((items or [{**_EMPTY}], [piece]))
        else:
            found[-1][1].append(piece)
    output: list[dict[str, Any]] = []
    for items, pieces in found:
        message = segue.dump_message(replace(reply, content=tuple(pieces))).decode()
        for at, item in enumerate(items):
            item[_STATE] = {"reply": name, "message": "" if at else message}
        output += [{**item, "id": f"{item['id']}_{name}_{len(output) + at}"} for at, item in enumerate(items)]
    return {**_encode(reply), "output": output}


def _encode(reply: segue.AssistantMessage) -> dict[str, Any]:
    shown = segue.project_reply(reply, protocol=_PROTOCOL, model=_SHOWN)
    return segue.encode_response(shown.message, protocol=_PROTOCOL)


async def _events(stream: segue.AsyncStream) -> AsyncIterator[bytes]:
    projector = segue.ReplyProjector(protocol=_PROTOCOL, model=_SHOWN)
    encoder, writer = segue.stream_encoder(protocol=_PROTOCOL), segue.frame_encoder("sse")
    async with stream as events:
        async for event in events:
            for shown in projector.feed(event):
                for frame in encoder.feed(shown):
                    if event.type == "done" and "response" in frame:  # the last frame has the whole reply
                        frame["response"] = {**frame["response"], "output": _write(event.message)["output"]}
                    yield writer.feed(frame)
    for frame in encoder.finish():
        yield writer.feed(frame)
    yield writer.finish()
