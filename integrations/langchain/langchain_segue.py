"""segue as a chat model of LangChain: any model, fallbacks with projection, and nothing of a reply lost.

    model = ChatSegue(model="anthropic/claude-opus-4-8", fallbacks=["openai/gpt-5.4"], thinking="low")
    reply = model.invoke("What weighs more, a pound of bricks or a pound of feathers?")

Messages are read and written by segue's own format `langchain`. A reply has LangChain's standard blocks
(`output_version: v1`), from every provider; signatures stand in `extras` of the blocks, and what the reply was made
after in `response_metadata["segue"]`. Both come back with the next request and are sent where they are valid.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any, Literal, TypeAlias

from langchain_core.language_models import LanguageModelInput, ModelProfile
from langchain_core.language_models.chat_models import BaseChatModel, LangSmithParams
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.output_parsers import JsonOutputParser, PydanticOutputParser
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableMap, RunnablePassthrough
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_json_schema, convert_to_openai_tool
from langchain_core.utils.pydantic import is_basemodel_subclass
from pydantic import BaseModel, ConfigDict, Field, SecretStr

import segue

_Messages: TypeAlias = list[BaseMessage]
_Stop: TypeAlias = list[str] | None
_FORMAT = "langchain"
_V1 = {"output_version": "v1"}
_CALL = "tool_call_chunk"
_CHOICES = {"any": "required", "required": "required", "auto": "auto", "none": "none"}
_FIELDS = ("temperature", "max_tokens", "top_p", "seed", "thinking")
"""Fields of the model that are options of a request; `stop` is one too."""


class ChatSegue(BaseChatModel):
    """A chat model that sends every request through segue.

    `model` and `fallbacks` are names of segue's catalogue, or `Model` records. A fallback is asked when the model
    before it fails, with the history projected for it. `options` has further options of requests, `settings` further
    settings of the client (`ClientSettings`), `policy` the policy of projection. `api_key` and `base_url` are for the
    first model, or by provider; other keys are read from the environment variable of each provider.
    """

    model: str | segue.Model
    fallbacks: list[str | segue.Model] = Field(default_factory=list)
    temperature: float | None = None
    max_tokens: int | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: list[str] | None = None
    thinking: str | int | None = None
    streaming: bool = False
    timeout: float | None = None
    max_retries: int | None = None
    api_key: SecretStr | dict[str, SecretStr] | None = None
    base_url: str | dict[str, str] | None = None
    options: segue.Options | None = Field(default=None, exclude=True)
    policy: segue.Policy | None = Field(default=None, exclude=True)
    settings: dict[str, Any] = Field(default_factory=dict, exclude=True, repr=False)

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid", protected_namespaces=())

    @property
    def _llm_type(self) -> str:
        return "segue"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        names = {"model": _name(self.model), "fallbacks": [_name(each) for each in self.fallbacks]}
        return {**names, **{name: getattr(self, name) for name in (*_FIELDS, "stop", "options", "policy")}}

    def _get_ls_params(self, stop: _Stop = None, **kwargs: Any) -> LangSmithParams:
        params = super()._get_ls_params(stop=stop, **kwargs)
        params.setdefault("ls_model_name", _name(self.model))
        provider, _, rest = params["ls_model_name"].partition("/")
        params["ls_provider"] = provider if rest else "segue"
        return params

    def _resolve_model_profile(self) -> ModelProfile | None:
        model = self._find(self.model)
        profile = ModelProfile(tool_calling=True, reasoning_output=model.reasoning, image_inputs="image" in model.input)
        if limit := model.max_input or model.context_window:
            profile["max_input_tokens"] = limit
        if model.max_tokens:
            profile["max_output_tokens"] = model.max_tokens
        return profile

    # -- requests ------------------------------------------------------------------------------------------------------

    @cached_property
    def _client(self) -> segue.Client:
        return segue.Client(**self._client_settings())

    @cached_property
    def _async_client(self) -> segue.AsyncClient:
        return segue.AsyncClient(**self._client_settings())

    def _client_settings(self) -> segue.ClientSettings:
        key: Any = self.api_key
        if isinstance(key, dict):
            key = {provider: each.get_secret_value() for provider, each in key.items()}
        elif key is not None:
            key = key.get_secret_value()
        own = {"api_key": key, "base_url": self.base_url, "timeout": self.timeout, "retry": self.max_retries}
        given = {name: value for name, value in own.items() if value is not None}
        return segue.ClientSettings(**given, **self.settings)

    def _find(self, model: str | segue.Model) -> segue.Model:
        return segue.get_model(model, catalogue=self.settings.get("catalogue"))

    def _request(self, messages: _Messages, stop: _Stop, given: dict[str, Any]) -> dict[str, Any]:
        """Make the arguments of a request: `given` are the arguments of the call, and those that were bound."""
        given = dict(given)
        model = given.pop("model", self.model)
        context = _with_tools(_read(messages), given.pop("tools", ()), self._find(model).protocol)
        own = {name: value for name in _FIELDS if (value := getattr(self, name)) is not None}
        if stop := stop or self.stop:
            own["stop"] = tuple(stop)
        if choice := given.pop("tool_choice", None):
            own["tool_choice"] = _choice(choice, context.tools)
        if form := given.pop("response_format", None):  # the form of OpenAI, which agents of LangChain bind
            own["output_schema"] = form["json_schema"]["schema"]
        given = {name: value for name, value in given.items() if value is not None}
        if unknown := given.keys() - set(segue.Options.__struct_fields__):
            known = ", ".join(segue.Options.__struct_fields__)
            raise TypeError(
                f"ChatSegue got an unexpected argument {min(unknown)!r}; the options of a request are {known}"
            )
        options = {
            name: getattr(self.options, name) for name in segue.Options.__struct_fields__ if self.options is not None
        }
        return {
            "context": context,
            "model": model,
            "options": segue.Options(**{**options, **own, **given}),
            "policy": self.policy,
            "fallback_models": tuple(self.fallbacks),
        }

    def _generate(
        self, messages: _Messages, stop: _Stop = None, run_manager: object = None, **kwargs: Any
    ) -> ChatResult:
        return _result(self._client.complete(**self._request(messages, stop, kwargs)))

    async def _agenerate(
        self, messages: _Messages, stop: _Stop = None, run_manager: object = None, **kwargs: Any
    ) -> ChatResult:
        return _result(await self._async_client.complete(**self._request(messages, stop, kwargs)))

    def _stream(
        self, messages: _Messages, stop: _Stop = None, run_manager: object = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        with self._client.stream(**self._request(messages, stop, kwargs)) as events:
            chunks = _Chunks()
            for event in events:
                yield from chunks.read(event)
            events.result()  # raises the failure, if it was one

    async def _astream(
        self, messages: _Messages, stop: _Stop = None, run_manager: object = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        async with self._async_client.stream(**self._request(messages, stop, kwargs)) as events:
            chunks = _Chunks()
            async for event in events:
                for chunk in chunks.read(event):
                    yield chunk
            await events.result()

    def get_num_tokens_from_messages(self, messages: _Messages, tools: Sequence[Any] | None = None) -> int:
        """Let the provider count the tokens of messages; they are estimated where it does not."""
        formatted = [_format_tool(tool) for tool in tools or ()]
        context = _with_tools(_read(messages), formatted, self._find(self.model).protocol)
        return self._client.count_tokens(context, self.model)

    # -- tools and structured output -----------------------------------------------------------------------------------

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | dict[str, Any] | bool | None = None,
        strict: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind tools. `tool_choice` is `auto`, `none`, `any`, the name of a tool, or a dict as providers take it."""
        formatted = [_format_tool(tool, strict=strict) for tool in tools]
        return self.bind(tools=formatted, tool_choice=tool_choice, **kwargs)

    def with_structured_output(
        self,
        schema: dict[str, Any] | type,
        *,
        method: Literal["function_calling", "json_schema", "json_mode"] = "function_calling",
        include_raw: bool = False,
        strict: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, dict[str, Any] | BaseModel]:
        """Ask for a value of a schema: by a tool, or by an output schema (`json_schema`, and `json_mode` too)."""
        if method == "function_calling":
            return super().with_structured_output(schema, include_raw=include_raw, strict=strict, **kwargs)
        wanted = convert_to_json_schema(schema, strict=strict)
        shown = {"kwargs": {"method": method, "strict": strict}, "schema": wanted}
        model = self.bind(output_schema=wanted, ls_structured_output_format=shown, **kwargs)
        is_class = isinstance(schema, type) and is_basemodel_subclass(schema)
        parser: Runnable[Any, Any] = PydanticOutputParser(pydantic_object=schema) if is_class else JsonOutputParser()
        if not include_raw:
            return model | parser
        parsed = RunnablePassthrough.assign(parsed=itemgetter("raw") | parser, parsing_error=lambda _: None)
        failed = RunnablePassthrough.assign(parsed=lambda _: None)
        return RunnableMap(raw=model) | parsed.with_fallbacks([failed], exception_key="parsing_error")


# -- what LangChain gives ----------------------------------------------------------------------------------------------


def _name(model: str | segue.Model) -> str:
    return model if isinstance(model, str) else model.full_name()


def _read(messages: _Messages) -> segue.Context:
    return segue.read_history(messages, format=_FORMAT).context


def _format_tool(tool: Any, *, strict: bool | None = None) -> dict[str, Any]:
    """Give a tool in the form of OpenAI; one that a provider runs itself as it is."""
    if isinstance(tool, dict) and "type" in tool and {"function", "properties", "input_schema"}.isdisjoint(tool):
        return tool
    return convert_to_openai_tool(tool, strict=strict)


def _with_tools(context: segue.Context, tools: Sequence[Mapping[str, Any]], protocol: str) -> segue.Context:
    found: list[segue.Tool] = []
    for tool in tools:
        if "function" not in tool:
            found.append(segue.NativeTool(protocol=protocol, definition=tool))
            continue
        fields = {
            key: value for key, value in tool["function"].items() if key in segue.ToolDefinition.__struct_fields__
        }
        found.append(segue.ToolDefinition(**fields))
    return segue.Context(system_prompt=context.system_prompt, messages=context.messages, tools=tuple(found))


def _choice(choice: str | dict[str, Any] | bool, tools: Sequence[segue.Tool]) -> str:
    if choice is True:
        return "required"
    if isinstance(choice, dict):
        choice = choice.get("function", choice).get("name") or choice["type"]
    names = {tool.name for tool in tools if isinstance(tool, segue.ToolDefinition)}
    return choice if choice in names else _CHOICES.get(str(choice), str(choice))


# -- what LangChain gets -----------------------------------------------------------------------------------------------


def _write(reply: segue.AssistantMessage) -> AIMessage:
    (message,) = segue.framework_objects(
        segue.write_history(segue.Context(messages=(reply,)), format=_FORMAT, settings=_V1)
    )
    return message


def _result(reply: segue.AssistantMessage) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=_write(reply))])


class _Chunks:
    """Makes chunks of the events of a reply. Their sum is the message that `_write` makes of the finished reply.

    A part is one block, found by its `index`. Its text is sent as it arrives, and the last chunk has what is missing.
    """

    def __init__(self) -> None:
        self._sent: dict[int, dict[str, Any]] = {}  # by the index of a part: its block so far

    def read(self, event: segue.Event) -> Iterator[ChatGenerationChunk]:
        match event.type:
            case "text_delta":
                yield self._add(event.index, type="text", text=event.delta)
            case "thinking_start":
                yield self._add(event.index, type="reasoning", reasoning="")
            case "thinking_delta":
                yield self._add(event.index, type="reasoning", reasoning=event.delta)
            case "toolcall_start":
                yield self._add(event.index, type=_CALL, id=event.id or None, name=event.name or None, args="")
            case "toolcall_delta":
                yield self._add(event.index, type=_CALL, args=event.delta)
            case "native" | "text_end" if event.index not in self._sent:  # Gemini signs with a text that is empty
                (block,) = _write(segue.AssistantMessage(content=(event.content,))).content
                yield self._add(event.index, **block)
            case "done":
                yield self._end(_write(event.message))
            case _:
                return

    def _add(self, index: int, **block: Any) -> ChatGenerationChunk:
        so_far = self._sent.setdefault(index, {})
        for key, value in block.items():
            is_more = key in {"text", "reasoning", "args"}
            so_far[key] = so_far.get(key, "") + value if is_more else so_far.get(key) or value
        return _chunk([{"index": index, **block}], response_metadata=_V1)

    def _end(self, message: AIMessage) -> ChatGenerationChunk:
        missing: list[dict[str, Any]] = []
        for index, block in enumerate(message.content):
            sent, whole = self._sent.get(index, {}), dict(block)
            if block["type"] == "tool_call":
                whole |= {"type": _CALL, "args": sent.get("args") or json.dumps(block["args"])}
            if rest := _subtract(whole, sent):
                missing.append({**rest, "type": whole["type"], "index": index})
        metadata = {"response_metadata": message.response_metadata, "usage_metadata": message.usage_metadata}
        return _chunk(missing, chunk_position="last", **metadata)


def _subtract(whole: dict[str, Any], sent: dict[str, Any]) -> dict[str, Any]:
    """Give what has to be added to `sent` by LangChain's sum of chunks, which joins texts and objects."""
    rest: dict[str, Any] = {}
    for key, value in whole.items():
        before = sent.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            value = _subtract(value, before)  # noqa: PLW2901 - the rest of the value
        elif isinstance(value, str) and before is not None:
            value = value.removeprefix(before)  # noqa: PLW2901 - the same
        elif value == before:
            continue
        if value or before is None:
            rest[key] = value
    return rest


def _chunk(blocks: list[dict[str, Any]], **fields: Any) -> ChatGenerationChunk:
    calls = [
        tool_call_chunk(name=block.get("name"), args=block.get("args"), id=block.get("id"), index=block["index"])
        for block in blocks
        if block["type"] == _CALL
    ]
    return ChatGenerationChunk(message=AIMessageChunk(content=blocks, tool_call_chunks=calls, **fields))
