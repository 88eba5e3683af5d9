"""segue as a model of pydantic-ai: any model, fallbacks with projection, and nothing of a reply lost.

    agent = Agent(SegueModel("anthropic/claude-opus-4-8", fallbacks=["openai/gpt-5.4"]))
    result = agent.run_sync("What weighs more, a pound of bricks or a pound of feathers?")

Messages are read and written by segue's own format `pydantic-ai`. Signatures stand where pydantic-ai has them, and what
only one provider has in `provider_details` of a part and in `metadata` of a response. All of it comes back with the
next request and is sent where it is valid.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeAlias, Unpack

from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponseStreamEvent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models._tool_choice import resolve_tool_choice  # there is no public function for it
from pydantic_ai.profiles import ModelProfile, ModelProfileSpec
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

import segue

_Settings: TypeAlias = ModelSettings | None
_Parameters: TypeAlias = ModelRequestParameters
_FORMAT = "pydantic-ai"
_KEEP = {"native_blocks": "keep"}
_OPTIONS = {
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "seed": "seed",
    "stop_sequences": "stop",
    "parallel_tool_calls": "parallel_tool_calls",
}
"""Settings of pydantic-ai -> options of segue."""


class SegueModel(Model):
    """A model that sends every request through segue.

    `model` and `fallbacks` are names of segue's catalogue, or `Model` records. A fallback is asked when the model
    before it fails, with the history projected for it. `options` are further options of requests, `policy` is the
    policy of projection; any other keyword is a setting of segue's client (`ClientSettings`), such as `api_key`.
    """

    unsupported_settings = frozenset(
        {"timeout", "max_retries", "top_k", "presence_penalty", "frequency_penalty", "logit_bias", "extra_headers"}
        | {"extra_body", "service_tier", "citations"}
    )

    def __init__(
        self,
        model: str | segue.Model,
        *,
        fallbacks: Sequence[str | segue.Model] = (),
        options: segue.Options | None = None,
        policy: segue.Policy | None = None,
        settings: _Settings = None,
        profile: ModelProfileSpec | None = None,
        **client: Unpack[segue.ClientSettings],
    ) -> None:
        self._client = segue.AsyncClient(**client)
        self._target = segue.get_model(model, catalogue=client.get("catalogue"))
        self._fixed = {"model": model, "fallback_models": tuple(fallbacks), "policy": policy}
        self._options = options or segue.Options()
        super().__init__(settings=settings, profile=profile)

    @property
    def model_name(self) -> str:
        return self._target.id

    @property
    def system(self) -> str:
        return self._target.provider

    @property
    def provider(self) -> None:
        return None

    def _provider_model_profile(self) -> ModelProfile:
        profile = ModelProfile(supports_json_schema_output=True, supports_thinking=self._target.reasoning)
        if window := self._target.context_window:
            profile["context_window"] = window
        return profile

    # -- requests ------------------------------------------------------------------------------------------------------

    def _request(self, messages: list[ModelMessage], settings: _Settings, given: _Parameters) -> dict[str, Any]:
        """Make the arguments of a request of prepared settings and parameters."""
        context = segue.read_history(messages, format=_FORMAT).context
        instructions = [part.content for part in self._get_instruction_parts(messages, given) or ()]
        chosen = resolve_tool_choice(settings, given)
        mode, names = chosen if isinstance(chosen, tuple) else (chosen, given.tool_defs.keys())
        tools = tuple(
            segue.ToolDefinition(
                name=tool.name,
                description=tool.description or "",
                parameters=tool.parameters_json_schema,
                strict=tool.strict,
            )
            for tool in given.tool_defs.values()
            if tool.name in names
        )
        fields = {name: getattr(self._options, name) for name in segue.Options.__struct_fields__}
        fields |= {_OPTIONS[name]: value for name, value in (settings or {}).items() if name in _OPTIONS}
        fields["stop"] = None if fields["stop"] is None else tuple(fields["stop"])
        if given.thinking is not None:
            fields["thinking"] = {True: "medium", False: "off"}.get(given.thinking, given.thinking)
        if tools and mode != "auto":
            fields["tool_choice"] = tools[0].name if mode == "required" and len(tools) == 1 else mode
        if given.output_mode == "native" and given.output_object is not None:
            fields["output_schema"] = given.output_object.json_schema
        system = "\n\n".join(instructions) or context.system_prompt
        context = segue.Context(system_prompt=system, messages=context.messages, tools=tools)
        return {"context": context, "options": segue.Options(**fields), **self._fixed}

    async def request(
        self, messages: list[ModelMessage], model_settings: _Settings, model_request_parameters: _Parameters
    ) -> ModelResponse:
        settings, given = self.prepare_request(model_settings, model_request_parameters)
        try:
            return _write(await self._client.complete(**self._request(messages, settings, given)))
        except segue.RequestFailed as error:
            raise self._failure(error) from error

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: _Settings,
        model_request_parameters: _Parameters,
        run_context: object = None,
    ) -> AsyncIterator[StreamedResponse]:
        settings, given = self.prepare_request(model_settings, model_request_parameters)
        async with self._client.stream(**self._request(messages, settings, given)) as events:
            first = await anext(events)
            streamed = _Streamed(model_request_parameters=given, _model=self, _events=events, _first=first)
            if first.type == "error":
                await streamed.fail()
            yield streamed

    async def count_tokens(
        self, messages: list[ModelMessage], model_settings: _Settings, model_request_parameters: _Parameters
    ) -> RequestUsage:
        settings, given = self.prepare_request(model_settings, model_request_parameters)
        request = self._request(messages, settings, given)
        count = await self._client.count_tokens(request["context"], request["model"], options=request["options"])
        return RequestUsage(input_tokens=count)

    def _failure(self, error: segue.RequestFailed) -> ModelAPIError:
        """Give the error of pydantic-ai, by which its own `FallbackModel` decides."""
        status, name = error.failure.status, self.model_name
        if status is not None and status >= 400:
            return ModelHTTPError(status_code=status, model_name=name, body=str(error))
        return ModelAPIError(model_name=name, message=str(error))


def _write(reply: segue.AssistantMessage) -> ModelResponse:
    (response,) = segue.framework_objects(
        segue.write_history(segue.Context(messages=(reply,)), format=_FORMAT, settings=_KEEP)
    )
    return response


@dataclass
class _Streamed(StreamedResponse):
    """A streamed reply. A part has the number of its content in the reply; the last event completes all parts."""

    _model: SegueModel
    _events: segue.AsyncStream
    _first: segue.Event
    _reply: ModelResponse | None = None
    _begun: datetime = field(default_factory=lambda: datetime.now(UTC))

    async def fail(self) -> None:
        """Raise the failure of the reply, if it has failed."""
        try:
            await self._events.result()
        except segue.RequestFailed as error:
            raise self._model._failure(error) from error

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        parts = self._parts_manager
        async for event in self._events:
            match event.type:
                case "text_delta":
                    found = parts.handle_text_delta(vendor_part_id=event.index, content=event.delta)
                case "thinking_start":
                    found = parts.handle_thinking_delta(vendor_part_id=event.index, content="")
                case "thinking_delta":
                    found = parts.handle_thinking_delta(vendor_part_id=event.index, content=event.delta)
                case "toolcall_start":
                    found = parts.handle_tool_call_delta_events(
                        vendor_part_id=event.index, tool_name=event.name or None, tool_call_id=event.id or None
                    )
                case "toolcall_delta":
                    found = parts.handle_tool_call_delta_events(vendor_part_id=event.index, args=event.delta)
                case "text_end" | "native" if parts.get_part_by_vendor_id(event.index) is None:
                    (part,) = _write(segue.AssistantMessage(content=(event.content,))).parts
                    found = iter((parts.handle_part(vendor_part_id=event.index, part=part),))
                case "done":
                    found = self._complete(_write(event.message))
                case _:
                    continue
            for each in found:
                yield each
        await self.fail()

    def _complete(self, reply: ModelResponse) -> Iterator[ModelResponseStreamEvent]:
        """Add to each part what only the finished reply has, such as signatures."""
        parts = self._parts_manager
        for index, part in enumerate(reply.parts):
            signed = {"provider_name": part.provider_name, "provider_details": part.provider_details}
            is_signed = part.provider_details is not None
            match part:
                case ThinkingPart() if is_signed or part.signature is not None:
                    yield from parts.handle_thinking_delta(vendor_part_id=index, signature=part.signature, **signed)
                case ToolCallPart():
                    sent = parts.get_part_by_vendor_id(index)
                    args = None if isinstance(sent, ToolCallPart) and sent.args else part.args
                    if is_signed or args is not None:
                        yield from parts.handle_tool_call_delta_events(vendor_part_id=index, args=args, **signed)
                case TextPart() if is_signed:
                    yield from parts.handle_text_delta(vendor_part_id=index, content="", **signed)
                case _:
                    pass
            parts.handle_part(vendor_part_id=index, part=part)
        self._reply, self._usage = reply, reply.usage
        self.provider_response_id, self.finish_reason = reply.provider_response_id, reply.finish_reason
        self.provider_details, self.metadata = reply.provider_details, reply.metadata

    async def close_stream(self) -> None:
        await self._events.close()

    @property
    def model_name(self) -> str:
        return (self._reply and self._reply.model_name) or self._model.model_name

    @property
    def provider_name(self) -> str | None:
        return (self._reply and self._reply.provider_name) or self._model.system

    @property
    def provider_url(self) -> None:
        return None

    @property
    def timestamp(self) -> datetime:
        return self._begun
