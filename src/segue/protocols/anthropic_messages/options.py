"""The options of an Anthropic request, both ways; `thinking` has its own file.

Keys that have no field in `Options` are data, at the top and inside of `thinking`, `tool_choice` and `output_config`.
The format of the rest is written again for the model that the body named, as long as the default is unchanged.

Choices kept in `extra`: `output_format`, if the format had its older name; `thinking`, `tool_choice`, `format`. Each of
the last three holds the keys by which a body set one option; they are written again as a whole, while the option is the
same.

Context editing and compaction of the Messages API.

Blocks that change tools, and the beta headers that the content of a request needs: it is refused without them.

How an Anthropic request asks for thinking, both ways.

The versions of the Messages API, as the header `anthropic-version` names them, and what each refuses.

Tools that Anthropic runs.

Facts:
- `max_tokens` is required. Without one the model's own limit is sent; without streaming at most what the SDK expects to
  be written in ten minutes (at 128,000 tokens an hour), because it refuses to wait longer.
                                                                                 (anthropic 2.8.0, read 2026-11-15)
- `output_format` is the name that `output_config.format` had during its beta; both are answered.
                                    (Anthropic documentation: structured outputs; anthropic 2.8.0, read 2026-11-15)
- There is no parameter for a seed; a session is sent in headers, where a provider has some.      (anthropic 2.8.0)
- Newer models think adaptively, with an effort; older ones with a budget of at least 1,024 tokens that has to be
  smaller than `max_tokens`. The default effort is `high`, that of Opus 5.5 `medium`. An effort without `thinking`
  applies to the whole answer, thinking included where the model decides on it; models before Opus 4.5 refuse it.
                                                             (Anthropic documentation: thinking, effort; 2026-11-15)
- A budget leaves 1,024 tokens for the answer.                                       (pi-ai 1.5.0 and ktsoator/or)
- There is no effort `minimal`; `low` is sent for it.                                                (pi-ai 1.5.0)
- Under 2026-10-21 a body with `temperature`, `top_p` or `top_k` is refused for every model, also at the default values:
  "temperature: Extra inputs are not permitted". So are a document directly in a turn of the assistant, and a text with
  citations in a user turn or in a search result. This holds for messages, token counts and batches.
                       (Anthropic documentation: API versions; anthropic 2.8.0; published live comparisons; 2026-11-16)
- Under 2023-06-01 the same bodies are accepted where the model accepts them.                                (the same)
- Bodies for Bedrock and Vertex name the version themselves: `anthropic_version`, "2026-10-21" or an older name.
                                                                                             (anthropic 2.8.0, the same)
- Types, names and options.                                                        (anthropic 2.8.0, read 2026-11-15)
- Versions from 2026 on run inside code execution. Claude has that from 4.6 on, Haiku refuses it; the first versions
  are accepted by all.                 (Anthropic documentation: web search; geode #460, 2026-03-26; read 2026-11-15)
- `allowed_domains` and `blocked_domains` are refused together.                               (anthropic 2.8.0)

Facts (Anthropic documentation: context editing, compaction; anthropic 2.8.0; read 2026-11-17):
- `context_management.edits` lists what the server does before the model reads the conversation; what the client sends
  stays as it is, and so does the thinking in it. `clear_thinking` has to be the first.
- A block of threshold compaction has no signature. A request with one needs the edit too: 400 otherwise. (probed)
- The server reads such a block in place of all messages before it. One whose content is null is ignored.
- `context_management` is refused with `compaction`, which asks for a summary at once.
- `usage.iterations` has the tokens of a compaction next to those of the reply. (BetaUsage.iterations)

Facts (anthropic 2.8.0: beta types; Anthropic documentation; read 2026-11-16):
- A compaction block with a signature was made on demand, one without by a threshold: each has its own header.
- A tool that is added by its definition needs another header than one that is added or removed by its name.
- `clear_at` and `output_config` of a message need one each, and so do `thinking.block_binding`, the edits of
  `context_management`, and `compaction`, which asks for a summary at once.
- `output_format`, the older name of `output_config.format`, is a field of the beta that introduced it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, cast

from msgspec.structs import replace

from segue.conversation.context import Options, Prompt, ThinkingLevel
from segue.conversation.messages import Message
from segue.errors import Path
from segue.protocols.anthropic_messages.rules import PROTOCOL
from segue.protocols.families.claude_prefix import BETA, BINDING
from segue.protocols.families.claude_thinking import Thinking, decode_thinking_object, encode_thinking_object
from segue.protocols.kit.api_versions import ApiVersion, ApiVersions
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.checking import objects_of
from segue.protocols.kit.codec import Endpoint, JsonObject, Violation
from segue.protocols.kit.facts import SearchForm, ServerEdit, ServerEdits
from segue.protocols.kit.json_values import Block, Wire, is_object, object_of, same
from segue.protocols.kit.option_table import refuse_options
from segue.protocols.kit.reading import integer_of, real_of, strings_of, text_of
from segue.protocols.kit.server_tools import (
    ALLOWED,
    DefinitionForm,
    KeyPath,
    ServerTool,
    ToolOption,
    allowed_tools,
    location,
)
from segue.protocols.kit.sources import objects_in
from segue.protocols.kit.verbatim import VERBATIM, choose, chosen, data_of, keep, restore

_FIELD: Final = "context_management"
_TYPES: Final[Mapping[ServerEdit, str]] = {"clear": "clear_tool_uses_20250919", "compact": "compact_20260112"}
_COMPACTION: Final = "compaction"


def edits_of(fields: Block) -> list[Block]:
    """Return the edits that a request asks for."""
    return objects_in(object_of(fields.get(_FIELD)).get("edits"))


def _ask(fields: Block, edit: ServerEdit, above: int | None) -> Block:
    edits = edits_of(fields)
    if fields.get(_COMPACTION) is not None or any(each.get("type") == _TYPES[edit] for each in edits):
        return fields
    added: dict[str, object] = {"type": _TYPES[edit]}
    if above is not None:
        added["trigger"] = {"type": "input_tokens", "value": above}
    return {**fields, _FIELD: {**object_of(fields.get(_FIELD)), "edits": [*edits, added]}}


def _needed(block: Block) -> ServerEdit | None:
    return "compact" if block.get("type") == _COMPACTION and block.get("signature") is None else None


def _covers(block: Block) -> bool:
    return block.get("type") == _COMPACTION and block.get("content") is not None


def _applied(reply: Mapping[str, object]) -> list[str]:
    notes = [
        f"the server cleared {each.get('cleared_tool_uses')} tool uses, {each.get('cleared_input_tokens')} tokens"
        for each in objects_in(object_of(reply.get(_FIELD)).get("applied_edits"))
        if each.get("type") == _TYPES["clear"]
    ]
    if any(map(_covers, objects_in(reply.get("content")))):
        notes.append("the server summarised everything before the reply")
    return notes


def _count(fields: dict[str, object], compactions: Sequence[tuple[int, int]]) -> None:
    if fields.get("type") in ("message", "message_delta"):
        usage = cast("dict[str, object]", fields["usage"])
        own = {name: usage[name] for name in ("input_tokens", "output_tokens") if name in usage}
        rows = [{"type": _COMPACTION, "input_tokens": read, "output_tokens": wrote} for read, wrote in compactions]
        usage["iterations"] = [*rows, {"type": "message", **own}]


SERVER_EDITS: Final = ServerEdits(
    form="edits", ask=_ask, needed=_needed, covers=_covers, applied=_applied, count=_count
)


_HEADER: Final = "anthropic-beta"
_ON_DEMAND: Final = "compact-2026-09-04"
_BY_THRESHOLD: Final = "compact-2026-01-12"
_EDITING: Final = "context-management-2025-06-27"
_OUTPUT_FORMAT: Final = "structured-outputs-2025-11-13"
_TOOL_CHANGES: Final = "mid-conversation-tool-changes-2026-07-01"
_INLINE_TOOLS: Final = "inline-tools-2026-09-15"
_MCP: Final = "mcp-client-2025-11-20"
_TOOLSET: Final = "mcp_toolset"
_MESSAGE_FIELDS: Final[Mapping[str, str]] = {
    "clear_at": "mid-conversation-system-clear-at-2026-08-21",
    "output_config": "mid-conversation-output-config-2026-07-01",
}


def needed_headers(prompt: Prompt) -> Mapping[str, str]:
    """Return the headers that a request needs."""
    betas: dict[str, None] = {}
    if prompt.options.extra is not None:
        betas.update(dict.fromkeys(_betas_of_fields(data_of(prompt.options.extra, PROTOCOL))))
        if "@output_format" in object_of(prompt.options.extra.get(PROTOCOL, {}).get(VERBATIM)):
            betas[_OUTPUT_FORMAT] = None
    if any(tool.kind == "native" and tool.definition.get("type") == _TOOLSET for tool in prompt.context.tools):
        betas[_MCP] = None
    for message in prompt.context.messages:
        betas.update(dict.fromkeys(_betas_of(message)))
    return {_HEADER: ",".join(betas)} if betas else {}


def _betas_of_fields(fields: Block) -> Iterator[str]:
    if BINDING in object_of(fields.get("thinking")):
        yield BETA
    if fields.get("compaction") is not None:
        yield _ON_DEMAND
    for edit in edits_of(fields):
        yield _BY_THRESHOLD if edit.get("type") == "compact_20260112" else _EDITING


def _betas_of(message: Message) -> Iterator[str]:
    if message.role == "system" and message.extra is not None:
        fields = data_of(message.extra, PROTOCOL)
        yield from (beta for field, beta in _MESSAGE_FIELDS.items() if field in fields)
    for piece in message.content:
        if piece.kind == "native" and piece.protocol == PROTOCOL:
            yield from _betas_of_block(piece.block)


def _betas_of_block(block: Block) -> Iterator[str]:
    match block.get("type"):
        case "compaction":
            yield _BY_THRESHOLD if block.get("signature") is None else _ON_DEMAND
        case "tool_addition" | "tool_removal":
            is_inline = object_of(block.get("tool")).get("type") == "tool_definition"
            yield _INLINE_TOOLS if is_inline else _TOOL_CHANGES
        case _:
            pass


def tool_changes(
    defined: Sequence[Mapping[str, object]], named: Sequence[str], removed: Sequence[str]
) -> list[dict[str, object]]:
    """Write the blocks that add tools, by definition or by name, and remove them."""
    added = [
        *({"type": "tool_definition", "definition": dict(tool)} for tool in defined),
        *({"type": "tool_reference", "name": name} for name in named),
    ]
    gone = [{"type": "tool_reference", "name": name} for name in removed]
    return [
        *({"type": "tool_addition", "tool": tool} for tool in added),
        *({"type": "tool_removal", "tool": tool} for tool in gone),
    ]


UNKNOWN_MAX_TOKENS: Final = 4_096
"""What every Claude since the third generation can write, for models whose limit is not known."""
LONGEST_WAIT: Final = 21_333
"""Tokens that are expected within ten minutes; longer replies have to be streamed."""
LEAST_ANSWER: Final = 1_024
"""Tokens that a budget leaves for the answer."""

_LEVELS: Final[Mapping[str, ThinkingLevel]] = {
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "max",
}


def decode_thinking(thinking: Block | None, effort: str, endpoint: Endpoint) -> Thinking:
    """Read how much thinking a request asks for; `thinking` is None where the body has none, or null.

    An effort alone is read where the model itself decides how long it thinks.
    """
    if thinking is None:
        return _LEVELS.get(effort) if endpoint.dialect.thinking_format == "adaptive" else None
    return decode_thinking_object(thinking, _LEVELS.get(effort), endpoint)


def is_effort_read(decoded: Thinking, thinking: object, effort: object) -> bool:
    """Whether `decode_thinking` used the effort: that of adaptive thinking, or one alone.

    An unknown one, such as `none` of other providers, is not read: projection reports that it is not sent.
    """
    is_used = thinking is None or object_of(thinking).get("type") == "adaptive"
    return decoded is not None and is_used and (effort is None or text_of(effort) in _LEVELS)


def encode_thinking(options: Options, endpoint: Endpoint) -> tuple[Wire | None, str | None]:
    """Write `thinking` and the effort."""
    asked, dialect = options.thinking, endpoint.dialect
    if asked is None or dialect.thinking_format == "none":
        return None, None
    thinking, effort = encode_thinking_object(asked, endpoint)
    return thinking, effort if dialect.effort else None


def default_max_tokens(options: Options, endpoint: Endpoint, thinking: Block | None) -> int:
    """Return the limit of a reply where the options have none: the model's own, with room for a budget of thinking."""
    known = endpoint.model.max_tokens
    most = known or UNKNOWN_MAX_TOKENS
    if not options.stream:
        most = min(most, LONGEST_WAIT)
    budget = thinking.get("budget_tokens") if thinking is not None else None
    if isinstance(budget, int) and most < budget + LEAST_ANSWER:
        room = budget + UNKNOWN_MAX_TOKENS
        most = min(room, known) if known else room
    return most


_CODE: Final = CheckCode.API_VERSION_MISMATCH
_SAMPLING: Final = ("temperature", "top_p", "top_k")
_NEWEST: Final = "2026-10-21"
_HINT: Final = f"anthropic-version {_NEWEST} does not accept it; remove it, or send anthropic-version 2023-06-01"


def _refused(body: JsonObject) -> list[Violation]:
    found = [_violation((key,), key) for key in _SAMPLING if key in body]
    for index, turn in objects_of(body.get("messages")):
        path: Path = ("messages", index, "content")
        for place, block in objects_of(turn.get("content")):
            if turn.get("role") == "assistant":
                if block.get("type") == "document":
                    found.append(_violation((*path, place), "a document in a turn of the assistant"))
            else:
                found += _cited(block, (*path, place))
    return found


def _cited(block: JsonObject, path: Path) -> Iterator[Violation]:
    """List the texts with citations: a block of a user turn, of a search result, or of a tool result."""
    if block.get("type") == "text" and block.get("citations"):
        yield _violation((*path, "citations"), "a text with citations in a user turn")
    for place, inner in objects_of(block.get("content")):
        yield from _cited(inner, (*path, "content", place))


def _violation(path: Path, what: str) -> Violation:
    return Violation(_CODE, path, f"{what}: {_HINT}")


VERSIONS: Final = ApiVersions(
    header="anthropic-version",
    body_key="anthropic_version",
    versions=(
        ApiVersion(
            name=_NEWEST,  # as anthropic 2.8.0 sends it
            refused=_refused,
            words=(b'"temperature"', b'"top_p"', b'"top_k"', b'"citations"', b'"document"'),
            source="Anthropic documentation: API versions; anthropic 2.8.0; published live comparisons",
            read="2026-11-16",
        ),
        ApiVersion(name="2023-06-01", source="Anthropic documentation: API versions", read="2026-11-16"),
    ),
)


_READ: Final = "2026-11-15"
_SOURCE: Final = "anthropic 2.8.0"
_COMMON: Final = frozenset({"name", "allowed_callers", "defer_loading", "strict", "response_inclusion", "use_cache"})
_SEARCH: Final[dict[ToolOption, KeyPath]] = {
    "allowed_domains": ("allowed_domains",),
    "blocked_domains": ("blocked_domains",),
    "max_uses": ("max_uses",),
    **location("user_location"),
}
_FETCH: Final[dict[ToolOption, KeyPath]] = {
    "allowed_domains": ("allowed_domains",),
    "blocked_domains": ("blocked_domains",),
    "max_uses": ("max_uses",),
    "max_content_tokens": ("max_content_tokens",),
    "citations": ("citations", "enabled"),
}
_APPROXIMATE: Final[dict[KeyPath, object]] = {("user_location", "type"): "approximate"}

_TOOL: Final = partial(ServerTool, source=_SOURCE, read=_READ)


def _read_toolset(definition: Block, server: Block) -> Block:
    """Read a toolset with its server: which tools are enabled, by default and each by name."""
    flat: Wire = {key: value for key, value in {**server, **definition}.items() if key not in ("configs", "name")}
    default = dict(object_of(flat.pop("default_config", None)))
    enabled, names, others = default.pop("enabled", True), list[str](), dict[str, object]()
    for name, config in object_of(definition.get("configs")).items():
        rest = {key: value for key, value in object_of(config).items() if key != "enabled"}
        is_enabled = object_of(config).get("enabled", enabled)
        names += [name] if is_enabled else []
        others |= {name: rest} if rest or (enabled and not is_enabled) else {}
    if is_object(flat.pop("tool_configuration", None)) or (enabled and others):
        return {**flat, "default_config": default, "allowed_tools": {"configs": others or True}}
    unread: Wire = {**({"default_config": default} if default else {}), **({"configs": others} if others else {})}
    return {**flat, **unread, **(allowed_tools(names) if not enabled else {})}


def _write_toolset(definition: Wire) -> tuple[Wire, Wire]:
    names = object_of(definition.pop("allowed_tools", None)).get("names")
    server: Wire = {"type": "url", "name": definition["mcp_server_name"], "url": definition.pop("url", None)}
    if names is not None:
        configs = {name: {"enabled": True} for name in strings_of(names) or ()}
        definition |= {"default_config": {"enabled": False}, "configs": configs}
    return definition, server


SERVER_TOOLS: Final[tuple[ServerTool, ...]] = (
    _TOOL(
        name="web_search",
        kind="web_search",
        pattern="web_search_20250305",
        template={"type": "web_search_20250305", "name": "web_search"},
        options=_SEARCH,
        constants=_APPROXIMATE,
        ignored=_COMMON,
        exclusive=True,
    ),
    _TOOL(
        name="web_search_dynamic",
        kind="web_search",
        pattern=r"web_search_20(?!250305)\d{6}",
        options=_SEARCH,
        constants=_APPROXIMATE,
        ignored=_COMMON,
        exclusive=True,
    ),
    _TOOL(
        name="web_fetch",
        kind="web_fetch",
        pattern="web_fetch_20250910",
        template={"type": "web_fetch_20250910", "name": "web_fetch"},
        options=_FETCH,
        ignored=_COMMON,
        exclusive=True,
    ),
    _TOOL(
        name="web_fetch_dynamic",
        kind="web_fetch",
        pattern=r"web_fetch_20(?!250910)\d{6}",
        options=_FETCH,
        ignored=_COMMON,
        exclusive=True,
    ),
    _TOOL(
        name="code_execution",
        kind="code_execution",
        pattern=r"code_execution_20\d{6}",
        template={"type": "code_execution_20250825", "name": "code_execution"},
        ignored=_COMMON,
    ),
    _TOOL(
        name="tool_search",
        kind="tool_search",
        pattern=r"tool_search_tool_(?:regex|bm25)(?:_\d{8})?",
        template={"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
        ignored=_COMMON,
    ),
    _TOOL(
        name=_TOOLSET,
        kind="mcp",
        pattern=_TOOLSET,
        template={"type": _TOOLSET, "mcp_server_name": "server"},
        options={"server_name": ("mcp_server_name",), "server_url": ("url",), "allowed_tools": ALLOWED},
        form=DefinitionForm(_read_toolset, _write_toolset, servers="mcp_servers"),
        ignored=frozenset({"cache_control"}),
    ),
)


def _server_tools_count(fields: dict[str, object], searches: int) -> None:
    if fields.get("type") in ("message", "message_delta"):
        usage = cast("dict[str, object]", fields["usage"])
        usage["server_tool_use"] = {"web_search_requests": searches, "web_fetch_requests": 0}


SEARCHES: Final = SearchForm(
    blocks=(
        {"type": "server_tool_use", "name": "web_search", "input": {"query": "weather"}, "id": "srvtoolu_s{}"},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_s{}", "content": []},
    ),
    count=_server_tools_count,
)
"""What one search leaves in a reply. (anthropic 2.8.0, read 2026-11-17)"""


_OFF: Final = "disabled"
_CONTEXT_KEYS: Final = frozenset({"messages", "system", "tools"})
_CONFIG: Final = "output_config"
_EFFORT: Final = "output_config.effort"
_FORMAT: Final = "output_config.format"
"""While they are compared, the keys of `output_config` that were read are taken out of it."""
_OLD_FORMAT: Final = "output_format"


class _Choice(NamedTuple):
    """An option that a body sets by an object: its key, the keys in it that are read, and a key next to it."""

    name: str
    key: str
    read: frozenset[str]
    beside: str | None = None


_ADAPTIVE: Final = "adaptive"
_CHOICES: Final = (
    _Choice("thinking", "thinking", frozenset({"type", "budget_tokens"}), beside=_EFFORT),
    _Choice("tool_choice", "tool_choice", frozenset({"type", "name", "disable_parallel_tool_use"})),
    _Choice("format", _FORMAT, frozenset({"type", "schema"})),
)
_TOOL_CHOICES: Final[Mapping[str, str]] = {"auto": "auto", "required": "any", "none": "none"}
_TOOL_CHOICES_BACK: Final[Mapping[str, str]] = {"auto": "auto", "any": "required", "none": "none"}


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_options(body: Block, endpoint: Endpoint) -> Options:
    """Read everything that is not the conversation itself."""
    options = _decode_fields(body, endpoint)
    named = body.get("model")
    model = named if isinstance(named, str) else endpoint.model.id
    default = {"model": model, **_encode_fields(options, endpoint)}
    received = {key: value for key, value in body.items() if key not in _CONTEXT_KEYS}
    _split_config(received, options)
    choices: Wire = {}
    if _is_old_format(body):
        received[_FORMAT] = received.pop(_OLD_FORMAT)
        choices = choose(_OLD_FORMAT, _CONFIG, _OLD_FORMAT)
    known = [VERSIONS.body_key]  # of the transport, which chooses it for each request: format, not data
    for choice in _CHOICES:
        asked, value = _asked(options, choice.name), received.get(choice.key)
        if not isinstance(value, Mapping):
            continue
        wire = cast("Block", value)
        if asked is None:
            if "type" not in wire:
                known.append(choice.key)  # as data it would look like data inside of an object that was read
            continue
        has_data = wire.get("type") not in (None, _OFF)
        given: Wire = {choice.key: {key: item for key, item in wire.items() if key in choice.read or not has_data}}
        if choice.beside is not None and choice.beside in received:
            given[choice.beside] = received[choice.beside]
        if not same(given, {key: default[key] for key in (choice.key, choice.beside) if key in default}):
            choices.update(choose(choice.name, asked, given))
            _put(default, choice, given)
    return replace(options, extra=keep(PROTOCOL, received, default, known, choices, only_for=model))


def _put(wire: Wire, choice: _Choice, given: Block) -> None:
    """Put the keys of a choice in the place of the default ones."""
    wire.pop(choice.key, None)
    if choice.beside is not None:
        wire.pop(choice.beside, None)
    wire.update(given)


def _decode_fields(body: Block, endpoint: Endpoint) -> Options:
    """Read the fields of `Options`; a value of another type than the protocol defines is not read."""
    config, thinking = object_of(body.get(_CONFIG)), body.get("thinking")
    effort, user_id, stream = config.get("effort"), object_of(body.get("metadata")).get("user_id"), body.get("stream")
    choice, parallel = _decode_choice(object_of(body.get("tool_choice")))
    return Options(
        max_tokens=integer_of(body.get("max_tokens")),
        temperature=real_of(body.get("temperature")),
        top_p=real_of(body.get("top_p")),
        stop=strings_of(body.get("stop_sequences")),
        thinking=decode_thinking(None if thinking is None else object_of(thinking), text_of(effort) or "", endpoint),
        tool_choice=choice,
        parallel_tool_calls=parallel,
        output_schema=_schema(object_of(body.get(_OLD_FORMAT) if _is_old_format(body) else config.get("format"))),
        user_id=text_of(user_id),
        stream=stream if isinstance(stream, bool) else None,
    )


def _is_old_format(body: Block) -> bool:
    """Whether a body has the older name of the format, and not the newer."""
    is_new = object_of(body.get(_CONFIG)).get("format") is not None
    return not is_new and _schema(object_of(body.get(_OLD_FORMAT))) is not None


def _schema(form: Block) -> Block | None:
    schema = form.get("schema")
    return cast("Block", schema) if form.get("type") == "json_schema" and isinstance(schema, Mapping) else None


def _decode_choice(choice: Block) -> tuple[str | None, bool | None]:
    off, name = choice.get("disable_parallel_tool_use"), choice.get("name")
    parallel = not off if isinstance(off, bool) else None
    if choice.get("type") == "tool" and isinstance(name, str):
        return name, parallel
    return _TOOL_CHOICES_BACK.get(text_of(choice.get("type")) or ""), parallel


def _asked(options: Options, name: str) -> object:
    """Return the options that a choice belongs to; None when they are not set."""
    match name:
        case "thinking":
            return options.thinking
        case "tool_choice":
            asked = [options.tool_choice, options.parallel_tool_calls]
            return None if asked == [None, None] else asked
        case _:
            return options.output_schema


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_options(options: Options, endpoint: Endpoint, named: str | None) -> Wire:
    """Write the options, and the model: the one that the prompt names, else the endpoint's.

    Raises:
        EncodeError: an option is set that the protocol does not support.
    """
    refused = endpoint.rules.refused_options
    refuse_options(PROTOCOL, options, (name for name in ("seed", "session_id") if name in refused))
    model = endpoint.model.id if named is None else named
    wire: Wire = {"model": model, **_encode_fields(options, endpoint)}
    if options.extra is not None and PROTOCOL in options.extra:
        for choice in _CHOICES:
            asked = _asked(options, choice.name)
            given = chosen(options.extra, PROTOCOL, choice.name, asked, model=model)
            if given is not asked:
                _put(wire, choice, object_of(given))
        before = {choice.key: object_of(wire.get(choice.key)) for choice in _CHOICES}
        restore(wire, options.extra, PROTOCOL, model=model)
        for key, value in data_of(options.extra, PROTOCOL).items():
            is_inner = key in before and isinstance(value, Mapping) and "type" not in value
            if is_inner and before[key].get("type") in (None, _OFF):
                # Data inside of an object is not written if the object was removed, or turns thinking off.
                wire.pop(key, None)
                if before[key]:
                    wire[key] = before[key]
    if _EFFORT in wire and object_of(wire.get("thinking")).get("type") == _ADAPTIVE and _has_no_effort(options):
        del wire[_EFFORT]
    if _FORMAT in wire and chosen(options.extra, PROTOCOL, _OLD_FORMAT, _CONFIG, model=model) == _OLD_FORMAT:
        wire[_OLD_FORMAT] = wire.pop(_FORMAT)
    _join_config(wire)
    if named is not None:
        wire["model"] = named  # a body is written without a model again only if the caller passes none
    return wire


def _has_no_effort(options: Options) -> bool:
    """Whether a request asked for adaptive thinking and for no effort: then the model's default applies."""
    given = object_of(chosen(options.extra, PROTOCOL, "thinking", options.thinking))
    return _EFFORT not in given and object_of(given.get("thinking")).get("type") == _ADAPTIVE


def _encode_fields(options: Options, endpoint: Endpoint) -> Wire:
    """Write the fields of `Options`, the keys of `output_config` next to it."""
    thinking, effort = encode_thinking(options, endpoint)
    limit = options.max_tokens
    wire: Wire = {"max_tokens": default_max_tokens(options, endpoint, thinking) if limit is None else limit}
    if options.temperature is not None:
        wire["temperature"] = options.temperature
    if options.top_p is not None:
        wire["top_p"] = options.top_p
    if options.stop is not None:
        wire["stop_sequences"] = list(options.stop)
    if thinking is not None:
        wire["thinking"] = thinking
    if options.output_schema is not None:
        wire[_FORMAT] = {"type": "json_schema", "schema": options.output_schema}
    if effort is not None:
        wire[_EFFORT] = effort
    choice = _encode_choice(options)
    if choice is not None:
        wire["tool_choice"] = choice
    if options.user_id is not None:
        wire["metadata"] = {"user_id": options.user_id}
    if options.stream is not None:
        wire["stream"] = options.stream
    return wire


def _encode_choice(options: Options) -> Wire | None:
    choice, parallel = options.tool_choice, options.parallel_tool_calls
    if choice is None and parallel is None:
        return None
    wire: Wire = {"type": _TOOL_CHOICES.get(choice or "auto", "tool")}
    if wire["type"] == "tool":
        wire["name"] = choice
    if parallel is not None and choice != "none":  # where no tool may be called, nothing runs in parallel
        wire["disable_parallel_tool_use"] = not parallel
    return wire


# -- output_config -----------------------------------------------------------------------------------------------------


def _split_config(received: Wire, options: Options) -> None:
    """Move the effort and the format out of `output_config`, each if it was read."""
    config = received.get(_CONFIG)
    if not isinstance(config, Mapping):
        return
    rest = dict(cast("Block", config))
    if "effort" in rest and is_effort_read(options.thinking, received.get("thinking"), rest["effort"]):
        received[_EFFORT] = rest.pop("effort")
    if rest.get("format") is not None and options.output_schema is not None:
        received[_FORMAT] = rest.pop("format")
    if rest or not config:
        received[_CONFIG] = rest
    else:
        del received[_CONFIG]


def _join_config(wire: Wire) -> None:
    """Move the effort and the format into `output_config`."""
    inner = {key: wire.pop(name) for key, name in (("effort", _EFFORT), ("format", _FORMAT)) if name in wire}
    if inner:
        wire[_CONFIG] = {**object_of(wire.pop(_CONFIG, None)), **inner}
