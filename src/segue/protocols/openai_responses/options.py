"""Options of a request.

Format is kept for the model of the body. Choices kept in `extra`:
- `field`: "user" where that key holds the user id. Default "safety_identifier".
- `reasoning`: "sent" where the body has `reasoning` or includes encrypted content for a model that is not known to
  reason. Default "omitted": for any other model that does not reason, and in a new request, both are left out.
- `schema_form`: the name and the description of the schema of the answer, see `kit.schemas`.

Compaction by the server in the Responses API.

Definitions of tools.

Choice kept in `extra`: `type`, "custom" for a custom tool. Default "function".

Functions in namespaces.

Tools that a provider of the Responses protocol runs.

Facts:
- Models that do not reason refuse `reasoning.effort`, `none` included.                 (baml #2708, OpenAI-DotNet #500)
- `reasoning.effort` is none, minimal, low, medium, high, xhigh or max; models may have other names for a level, and
  nothing readable comes back unless `reasoning.summary` requests it.              (openai 3.49.0; pi-ai 1.5.0)
- `max_output_tokens` below 16 is refused.                                         (openai-openapi 2.3.0 @f85dbe2)
- Requests are stored without `store: false`; unless stored, reasoning can only be replayed from `encrypted_content`,
  which has to be included.                                            (OpenAI documentation: reasoning; opencode #7724)
- Models that do not reason refuse `include: ["reasoning.encrypted_content"]`.      ("Encrypted content is not supported
                                                                                      with this model", pydantic-ai)
- `prompt_cache_key` has up to 64 characters; caches are kept for longer by `prompt_cache_retention: "24h"` or, newer,
  by `prompt_cache_options`.          (openai 3.49.0; pi-ai 1.5.0)
- Objects are flat: `tool_choice: {"type": "function", "name": ...}`, `text.format: {"type": "json_schema", ...}`.
                                                                                                   (openai 3.49.0)
- A function is flat here: `name`, `description`, `parameters` and `strict` are next to `type`.     (openai 3.49.0)
- The server makes a function without `strict` strict: it then requires every property and closes the object. A schema
  that has to stay unchanged needs `strict: false`.                             (recorded traffic, 2026-11: 14 of 17)
- A custom tool takes one text, free or restricted by a grammar in `format`.                         (openai 3.49.0)
- All other tools, namespaces among them, are the provider's and are kept unchanged.
- A namespace has a name, a description and functions or custom tools; `defer_loading` is on the functions.
                                                                                   (openai 3.49.0, read 2026-11-15)
- A call names its namespace; the call of a deferred function without one names the function itself.
                                                                                         (recorded traffic, 2026-11)
- Sent back without it: "Missing namespace for function_call 'x'."  (pi #7709, 2026-08-06; vercel/ai #15193, 2026-05-12)
- A deferred function that another model called has to be sent in full.                  (dust #31323, 2026-08-28)
- Types and options; a code interpreter needs a container.                          (openai 3.49.0, read 2026-11-15)
- `filters.blocked_domains` works, although the SDK does not list it.                   (vercel/ai #18035, 2026-07-28)
- A search also opens single pages (`open_page`).                                       (openai 3.49.0; xai-sdk 1.21.0)
- `max_tool_calls` limits the calls of all server tools together.                       (openai 3.49.0)
- xAI: its own name for blocked domains, at most five domains, allowed or blocked.      (xai-sdk 1.21.0)
- Vector stores, containers and files are known to one provider only.

Facts (OpenAI documentation: compaction; openai 3.49.0; read 2026-11-17):
- `context_management: [{"type": "compaction", "compact_threshold": ...}]` makes the server compact a longer input. The
  reply has a `compaction` item, encrypted, which represents everything before it and is sent back like other items.
- What comes before the newest such item may be left out. (`previous_response_id`: it must not.)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import Extra, ToolCall
from segue.conversation.context import CacheRetention, NativeTool, Options, ThinkingLevel, Tool, ToolDefinition
from segue.errors import DecodeError, Path
from segue.models.thinking import THINKING_LEVELS, level_for_budget
from segue.protocols.families.functions import TEXT_SCHEMA
from segue.protocols.kit.codec import Endpoint, JsonObject
from segue.protocols.kit.facts import Namespace, Namespaces, SearchForm, ServerEdit, ServerEdits
from segue.protocols.kit.json_values import EMPTY, Block, Wire, list_of, object_of
from segue.protocols.kit.option_table import refuse_options
from segue.protocols.kit.reading import expect_object, integer_of, native_definition, real_of, strings_of, text_of
from segue.protocols.kit.schemas import can_be_strict, choose_form, chosen_form
from segue.protocols.kit.server_tools import (
    ALLOWED,
    DefinitionForm,
    KeyPath,
    ServerTool,
    ServerToolKind,
    ToolOption,
    allowed_tools,
    location,
)
from segue.protocols.kit.sources import objects_in
from segue.protocols.kit.verbatim import choose, chosen, data_of, keep, restore
from segue.protocols.openai_responses.content import drop_replaced
from segue.protocols.openai_responses.rules import PROTOCOL
from segue.protocols.openai_responses.turns import NAMESPACE, is_custom, read_signature

_FIELD: Final = "context_management"
_COMPACTION: Final = "compaction"


def _ask(fields: Block, edit: ServerEdit, above: int | None) -> Block:
    entries = objects_in(fields.get(_FIELD))
    if edit != "compact" or any(map(_covers, entries)):
        return fields
    added: dict[str, object] = {"type": _COMPACTION}
    if above is not None:
        added["compact_threshold"] = above
    return {**fields, _FIELD: [*entries, added]}


def _needed(block: Block) -> ServerEdit | None:  # noqa: ARG001 - common signature
    return None


def _covers(block: Block) -> bool:
    return block.get("type") == _COMPACTION


def _applied(reply: Mapping[str, object]) -> list[str]:
    is_compacted = any(map(_covers, objects_in(reply.get("output"))))
    return ["the server compacted everything before the reply"] if is_compacted else []


SERVER_EDITS: Final = ServerEdits(form="list", ask=_ask, needed=_needed, covers=_covers, applied=_applied)


def decode_tools(tools: object) -> tuple[Tool, ...]:
    """Read the list of tools.

    Raises:
        DecodeError: it is not a list of objects.
    """
    if not isinstance(tools, list):
        raise DecodeError("expected an array", path=("tools",))
    return tuple(
        decode_tool(expect_object(tool, ("tools", index))) for index, tool in enumerate(cast("list[object]", tools))
    )


def decode_tool(tool: Block) -> Tool:
    """Read one tool; a tool that is not a function becomes a `NativeTool`."""
    kind, name = tool.get("type"), tool.get("name")
    if not isinstance(name, str) or kind not in ("function", "custom"):
        return NativeTool(protocol=PROTOCOL, definition=dict(tool))
    description = text_of(tool.get("description")) or ""
    if kind == "custom":
        read = ToolDefinition(name=name, description=description, parameters=TEXT_SCHEMA)
    else:
        parameters, strict = tool.get("parameters"), tool.get("strict")
        read = ToolDefinition(
            name=name,
            description=description,
            parameters=cast("Block", parameters) if isinstance(parameters, Mapping) else {},
            strict=True if strict is True else None,
        )
        if len(tool) == 5 and description and read.parameters is parameters and type(strict) is bool:
            return read  # its keys are those of the default, and so are their values
    known = ("description",) if tool.get("description") == "" else ()
    extra = keep(PROTOCOL, tool, _default_tool(read, kind), known, choose("type", "function", kind))
    return read if extra is None else replace(read, extra=extra)


def encode_tools(tools: Sequence[Tool]) -> list[Wire]:
    """Write the list of tools.

    Raises:
        EncodeError: a tool of another protocol.
    """
    return [_encode_tool(tool, ("tools", index)) for index, tool in enumerate(tools)]


def _encode_tool(tool: Tool, path: Path) -> Wire:
    if tool.kind == "native":
        return dict(native_definition(PROTOCOL, tool, path))
    wire = _default_tool(tool, "custom" if is_custom(tool) else "function")
    return wire if tool.extra is None else restore(wire, tool.extra, PROTOCOL)


def _default_tool(tool: ToolDefinition, kind: object) -> Wire:
    wire: Wire = {"type": kind, "name": tool.name}
    if tool.description:
        wire["description"] = tool.description
    if kind == "function":
        wire["parameters"] = tool.parameters
        wire["strict"] = tool.strict is True
    return wire


def custom_names(tools: Sequence[Tool]) -> frozenset[str]:
    """Name the custom tools."""
    return frozenset(tool.name for tool in tools if tool.kind == "function" and is_custom(tool))


_DEFERRED: Final = "defer_loading"


def _read(tool: NativeTool) -> Namespace | None:
    definition = tool.definition
    name = definition.get("name")
    if definition.get("type") != "namespace" or not isinstance(name, str):
        return None
    functions = [decode_tool(inner) for inner in _inner(definition)]
    return Namespace(
        name=name,
        description=text_of(definition.get("description")) or "",
        functions=tuple(function for function in functions if function.kind == "function"),
    )


def _inner(definition: Block) -> list[Block]:
    return objects_in(definition.get("tools"))


def _find(call: ToolCall) -> str | None:
    signature = call.thought_signature
    if signature is not None and NAMESPACE in signature:
        return text_of((read_signature(signature) or {}).get(NAMESPACE))
    return text_of(data_of(call.extra, PROTOCOL).get(NAMESPACE)) if call.extra is not None else None


def _add(call: ToolCall, namespace: str) -> ToolCall:
    extra = dict(call.extra or {})
    if extra.get(PROTOCOL, {}).get(NAMESPACE) == namespace:
        return call
    return replace(call, extra={**extra, PROTOCOL: {**extra.get(PROTOCOL, {}), NAMESPACE: namespace}})


def _is_deferred(tool: ToolDefinition) -> bool:
    return tool.extra is not None and data_of(tool.extra, PROTOCOL).get(_DEFERRED) is True


def _load(tool: Tool, names: Collection[str]) -> Tool:
    if tool.kind == "native":
        tools = [
            {key: value for key, value in inner.items() if key != _DEFERRED} if inner.get("name") in names else inner
            for inner in _inner(tool.definition)
        ]
        return replace(tool, definition={**tool.definition, "tools": tools})
    if tool.extra is None or tool.name not in names:
        return tool
    rest = {key: value for key, value in tool.extra.get(PROTOCOL, {}).items() if key != _DEFERRED}
    others = {protocol: part for protocol, part in tool.extra.items() if protocol != PROTOCOL}
    return replace(tool, extra=({**others, PROTOCOL: rest} if rest else others) or None)


NAMESPACES: Final = Namespaces(read=_read, find=_find, key=NAMESPACE, add=_add, is_deferred=_is_deferred, load=_load)


_READ: Final = "2026-11-15"
_SOURCE: Final = "openai 3.49.0"
_XAI: Final = "xai-sdk 1.21.0; dive #170, 2026-05-29"
_LIMIT: Final[dict[ToolOption, str]] = {"max_uses": "max_tool_calls"}
_APPROXIMATE: Final[dict[KeyPath, object]] = {("user_location", "type"): "approximate"}
_FETCHES: Final[frozenset[ServerToolKind]] = frozenset({"web_fetch"})
_STORES: Final[dict[ToolOption, KeyPath]] = {"stores": ("vector_store_ids",), "max_results": ("max_num_results",)}


def _read_mcp(definition: Block, _: Block) -> Block:
    """Read the names of tools, which are a list or in an object with other conditions."""
    given = definition.get("allowed_tools")
    held = object_of(given)
    names = strings_of(given if held.keys() - {"tool_names"} or not held else held["tool_names"])
    return definition if names is None else {**definition, **allowed_tools(names)}


def _write_mcp(definition: Wire) -> tuple[Wire, Wire]:
    names = object_of(definition.get("allowed_tools")).get("names")
    return ({**definition, "allowed_tools": names} if names is not None else definition), {}


_TOOL: Final = partial(ServerTool, source=_SOURCE, read=_READ)
_OF_XAI: Final = partial(ServerTool, source=_XAI, read=_READ)

SERVER_TOOLS: Final[tuple[ServerTool, ...]] = (
    ServerTool(
        name="web_search",
        kind="web_search",
        pattern="web_search(?:_2025_08_26)?",
        template={"type": "web_search"},
        options={
            "allowed_domains": ("filters", "allowed_domains"),
            "blocked_domains": ("filters", "blocked_domains"),
            "context_size": ("search_context_size",),
            **location("user_location"),
        },
        body_options=_LIMIT,
        constants=_APPROXIMATE,
        covers=_FETCHES,
        source=f"{_SOURCE}; vercel/ai #18035",
        read=_READ,
    ),
    _TOOL(
        name="web_search_preview",
        kind="web_search",
        pattern=r"web_search_preview(?:_2025_03_11)?",
        options={"context_size": ("search_context_size",), **location("user_location")},
        body_options=_LIMIT,
        constants=_APPROXIMATE,
        covers=_FETCHES,
    ),
    _TOOL(
        name="code_interpreter",
        kind="code_execution",
        pattern="code_interpreter",
        template={"type": "code_interpreter", "container": {"type": "auto"}},
        body_options=_LIMIT,
        ignored=frozenset({"allowed_callers", "memory_limit"}),
    ),
    _TOOL(
        name="file_search",
        kind="file_search",
        pattern="file_search",
        template={"type": "file_search"},
        options=_STORES,
        body_options=_LIMIT,
    ),
    _TOOL(name="tool_search", kind="tool_search", pattern="tool_search", template={"type": "tool_search"}),
    _TOOL(
        name="mcp",
        kind="mcp",
        key=("require_approval",),  # its calls are made without asking, as other providers do
        pattern="never",
        template={"type": "mcp", "server_label": "server", "require_approval": "never"},
        options={"server_name": ("server_label",), "server_url": ("server_url",), "allowed_tools": ALLOWED},
        form=DefinitionForm(_read_mcp, _write_mcp),
        ignored=frozenset({"type", "server_description"}),
    ),
    _OF_XAI(
        name="xai_web_search",
        kind="web_search",
        pattern="web_search",
        template={"type": "web_search"},
        options={
            "allowed_domains": ("filters", "allowed_domains"),
            "blocked_domains": ("filters", "excluded_domains"),
            **location("user_location"),
        },
        constants=_APPROXIMATE,
        covers=_FETCHES,
        exclusive=True,
        max_domains=5,
    ),
    _OF_XAI(
        name="xai_code_interpreter",
        kind="code_execution",
        pattern="code_interpreter",
        template={"type": "code_interpreter"},
    ),
    _OF_XAI(
        name="xai_file_search",
        kind="file_search",
        pattern="file_search",
        template={"type": "file_search"},
        options=_STORES,
    ),
    _OF_XAI(name="x_search", kind="other", pattern="x_search"),
)

SEARCHES: Final = SearchForm(
    blocks=(
        {"type": "web_search_call", "id": "ws_{}", "status": "completed", "action": {"type": "search", "query": "w"}},
        # Opening a page costs nothing.
        {"type": "web_search_call", "id": "ws_{}p", "status": "completed", "action": {"type": "open_page", "url": "u"}},
    )
)
"""What one search leaves in a reply. (openai 3.49.0, read 2026-11-17)"""


_READ_ELSEWHERE: Final = frozenset({"model", "input", "tools", "instructions"})
_ENCRYPTED: Final = "reasoning.encrypted_content"
_CHOICES: Final = frozenset({"auto", "none", "required"})
_ANY: Final = "any"
"""Another name of `required`, from the chat protocol of Mistral."""
_UNSUPPORTED: Final = ("stop", "seed")
_RETENTIONS: Final[tuple[CacheRetention, ...]] = ("long", "none")


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_options(body: JsonObject, endpoint: Endpoint, tools: Sequence[Tool]) -> Options:
    """Read everything of a body but its conversation."""
    received: Wire = {key: value for key, value in body.items() if key not in _READ_ELSEWHERE}
    user_id, field = text_of(body.get("safety_identifier")), "safety_identifier"
    if user_id is None and isinstance(user := body.get("user"), str):
        user_id, field = user, "user"
    found: dict[str, object] = {
        "max_tokens": integer_of(body.get("max_output_tokens")),
        "temperature": real_of(body.get("temperature")),
        "top_p": real_of(body.get("top_p")),
        "parallel_tool_calls": _flag(body.get("parallel_tool_calls")),
        "stream": _flag(body.get("stream")),
        "thinking": _level_of(object_of(body.get("reasoning")).get("effort"), endpoint),
        "tool_choice": _decode_choice(body.get("tool_choice"), tools),
        "output_schema": _decode_schema(body.get("text")),
        "session_id": text_of(body.get("prompt_cache_key")),
        "user_id": user_id,
        "cache_retention": _decode_retention(body, endpoint),
    }
    model = text_of(body.get("model")) or endpoint.model.id
    choices = choose("field", "safety_identifier", field)
    if not endpoint.model.reasoning and ("reasoning" in received or _ENCRYPTED in list_of(received.get("include"))):
        choices.update(choose("reasoning", "omitted", "sent"))
    if found["output_schema"] is not None:
        form = object_of(object_of(body.get("text")).get("format"))
        choices.update(choose_form(object_of(found["output_schema"]), form))
    options = Options(**found, extra=keep(PROTOCOL, EMPTY, EMPTY, choices=choices))  # pyright: ignore[reportArgumentType]
    default = _default_options(options, endpoint, tools)
    drop_replaced(default, received, "store", "include")
    if received.get("background") is True:
        default.pop("store", None)  # encoding does not add it then, so one that was received is data
    drop_replaced(cast("Wire", default.get("reasoning", {})), object_of(received.get("reasoning")), "summary")
    known = ("reasoning.effort", "text.format.description")
    return replace(options, extra=keep(PROTOCOL, received, default, known, choices, only_for=model))


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _level_of(effort: object, endpoint: Endpoint) -> ThinkingLevel | None:
    levels = [level for level in THINKING_LEVELS if _effort_of(level, endpoint) == effort]
    return (effort if effort in levels else levels[0]) if levels else None  # pyright: ignore[reportReturnType]


def _decode_choice(choice: object, tools: Sequence[Tool]) -> str | None:
    if isinstance(choice, str):
        return "required" if choice == _ANY else choice if choice in _CHOICES else None
    name = object_of(choice).get("name")
    if not isinstance(name, str) or name in _CHOICES or choice != _named_choice(name, tools):
        return None
    return name


def _decode_schema(text: object) -> Block | None:
    form = object_of(object_of(text).get("format"))
    schema = form.get("schema")
    return cast("Block", schema) if form.get("type") == "json_schema" and isinstance(schema, Mapping) else None


def _decode_retention(body: JsonObject, endpoint: Endpoint) -> CacheRetention | None:
    for retention in _RETENTIONS:
        written = _encode_retention(retention, endpoint)
        if written and all(body.get(key) == value for key, value in written.items()):
            return retention
    return None


# -- writing -----------------------------------------------------------------------------------------------------------


def encode_options(options: Options, endpoint: Endpoint, tools: Sequence[Tool], model: str | None) -> Wire:
    """Write the options as keys of a body that names `model`.

    Raises:
        EncodeError: an option that this protocol does not support.
    """
    refuse_options(PROTOCOL, options, _UNSUPPORTED)
    model, extra = model or endpoint.model.id, options.extra
    is_sent = endpoint.model.reasoning or chosen(extra, PROTOCOL, "reasoning", "omitted", model=model) == "sent"
    if extra is not None and not is_sent:
        extra = _without_reasoning(extra)
        options = replace(options, extra=extra)
    wire = restore(_default_options(options, endpoint, tools), extra, PROTOCOL, model=model)
    if wire.get("reasoning") == {} and "reasoning" not in data_of(extra, PROTOCOL):
        del wire["reasoning"]  # the model does not accept this level
    return wire


def _default_options(options: Options, endpoint: Endpoint, tools: Sequence[Tool]) -> Wire:
    wire: Wire = {}
    data = data_of(options.extra, PROTOCOL)
    is_user = chosen(options.extra, PROTOCOL, "field", "safety_identifier") == "user"
    if endpoint.dialect.store and "store" not in data and data.get("background") is not True:  # it has to be stored
        wire["store"] = False
    if endpoint.model.reasoning and "include" not in data:
        wire["include"] = [_ENCRYPTED]
    for key, value in (
        ("max_output_tokens", options.max_tokens),
        ("temperature", options.temperature),
        ("top_p", options.top_p),
        ("parallel_tool_calls", options.parallel_tool_calls),
        ("stream", options.stream),
        ("prompt_cache_key", options.session_id),
        ("user" if is_user else "safety_identifier", options.user_id),
    ):
        if value is not None:
            wire[key] = value
    if options.cache_retention is not None:
        wire.update(_encode_retention(options.cache_retention, endpoint))
    choice, thinking, schema = options.tool_choice, options.thinking, options.output_schema
    if choice is not None:
        wire["tool_choice"] = choice if choice in _CHOICES else _named_choice(choice, tools)
    if thinking is not None:
        level = level_for_budget(thinking) if isinstance(thinking, int) else thinking
        wire["reasoning"] = _encode_reasoning(level, object_of(data.get("reasoning")), endpoint)
    if schema is not None:
        names = chosen_form(options.extra, PROTOCOL, schema)
        wire["text"] = {
            "format": {
                "type": "json_schema",
                **names,
                "schema": schema,
                "strict": names.get("strict", True) and can_be_strict(schema, endpoint.rules),
            }
        }
    return wire


def _without_reasoning(extra: Extra) -> Extra:
    """Remove the data that only a model which reasons accepts."""
    part = dict(extra.get(PROTOCOL, EMPTY))
    part.pop("reasoning", None)
    include = list_of(part.get("include"))
    if _ENCRYPTED in include:
        part["include"] = [value for value in include if value != _ENCRYPTED]
        if not part["include"]:
            del part["include"]
    return {**extra, PROTOCOL: part}


def _encode_reasoning(level: ThinkingLevel, data: Block, endpoint: Endpoint) -> Wire:
    """Write a level; empty where the model takes none."""
    dialect = endpoint.dialect
    if dialect.thinking_format == "none" or not dialect.effort or (level == "off" and not endpoint.model.reasoning):
        return {}
    reasoning: Wire = {"effort": _effort_of(level, endpoint)}
    if level != "off" and "summary" not in data:
        reasoning["summary"] = "auto"
    return reasoning


def _effort_of(level: ThinkingLevel, endpoint: Endpoint) -> str:
    return endpoint.model.thinking_levels.get(level) or ("none" if level == "off" else level)


def _encode_retention(retention: str, endpoint: Endpoint) -> Wire:
    long = endpoint.dialect.cache_long
    if retention == "long" and long == "24h":
        return {"prompt_cache_retention": "24h"}
    if retention == "long" and long == "30m":
        return {"prompt_cache_options": {"ttl": "30m"}}
    if retention == "none" and long == "30m":
        return {"prompt_cache_options": {"mode": "explicit"}}
    return {}


def _named_choice(name: str, tools: Sequence[Tool]) -> Wire:
    return {"type": "custom" if name in custom_names(tools) else "function", "name": name}
