"""Bodies in pairs, for the cases of rules: one that some rule is about, and the one next to it without that.

A pair is made from a neutral conversation, encoded without projection, so that the same pair exists on every protocol;
what no conversation can hold is set in the body. `named_by` tells whether a rule names something in a body: what is
found with the rule, and not without it. What a wire has no field for is in no body; `projected` tells what projection
makes of a conversation, with the rule and without.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from typing import Any

from msgspec.structs import replace

from segue.conversation.content import (
    CacheMark,
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from segue.conversation.context import Context, NativeTool, Options, Prompt, ToolDefinition
from segue.conversation.messages import AssistantMessage, StopReason, SystemMessage, ToolResultMessage, UserMessage
from segue.errors import SegueError
from segue.models.thinking import THINKING_LEVELS
from segue.projection.engine import Engine
from segue.projection.policy import Policy
from segue.projection.projector import _run as run  # pyright: ignore[reportPrivateUsage] - with rules of no model
from segue.projection.workspace.workspace import Target
from segue.protocols.api import check_for, encode_request
from segue.protocols.kit.codec import Endpoint, Violation
from segue.protocols.registry import get_protocol


class Body(dict[str, Any]):
    """An encoded conversation with what it was made from; empty if the protocol cannot encode it."""

    prompt: Prompt


Pair = tuple[dict[str, Any], dict[str, Any]]
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
GIF = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
TEXT = TextContent(text="Answer in JSON.")
HI = UserMessage(content=(TEXT,))
PICTURE = ImageContent(data=PNG, mime_type="image/png")
PAPER = FileContent(data="JVBERi0xLjcKdHJhaWxlcgo8PD4+CiUlRU9GCg==", mime_type="application/pdf", name="a")
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"], "additionalProperties": False}
LOOK = ToolDefinition(name="look", description="Look.", parameters=SCHEMA)
ID = "abcdefghi"


def said(endpoint: Endpoint, *content: Any, **fields: Any) -> AssistantMessage:
    model = endpoint.model
    return AssistantMessage(
        content=content,
        protocol=model.protocol,
        provider=model.provider,
        model=model.id,
        stop_reason=StopReason.STOP,
        **fields,
    )


def called(endpoint: Endpoint, *content: Any, call_id: str = ID, name: str = "look") -> tuple[Any, ...]:
    """Make a call and its result."""
    call = ToolCall(id=call_id, name=name, arguments={"q": "x"})
    result = ToolResultMessage(tool_call_id=call_id, tool_name=name, content=content or (TextContent(text="found"),))
    return said(endpoint, call), result


def make(
    endpoint: Endpoint, *messages: Any, tools: Any = (), system: str | None = None, **options: Any
) -> dict[str, Any]:
    """Encode a conversation, without projection."""
    context = Context(messages=messages or (HI,), tools=tuple(tools), system_prompt=system)
    prompt = Prompt(context=context, options=Options(**options), model=endpoint.model.id or None)
    try:
        body = Body(encode_request(prompt, protocol=endpoint.model.protocol, model=endpoint.model))
    except SegueError:
        body = Body()
    body.prompt = prompt
    return body


def with_key(body: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Set a value in a copy of a body."""
    changed = deepcopy(body)
    *outer, last = path.split(".")
    place: Any = changed
    for key in outer:
        place = place.setdefault(key, {})
    place[last] = value
    return changed


def named_by(endpoint: Endpoint, without: Endpoint, body: dict[str, Any]) -> list[Violation]:
    """Return what is found in a body because of a rule: `without` is the endpoint without it."""
    kept = {(one.code, one.path) for one in check_for(body, without)}
    return [one for one in check_for(body, endpoint) if (one.code, one.path) not in kept]


def is_decided_by(endpoint: Endpoint, without: Endpoint, body: dict[str, Any]) -> bool:
    """Whether a rule decides what is found in a body: it refuses, or takes what is refused elsewhere."""
    with_rule, others = ({(one.code, one.path) for one in check_for(body, each)} for each in (endpoint, without))
    return with_rule != others


def projected(endpoint: Endpoint, body: dict[str, Any]) -> Any:
    """Return what projection makes of the conversation of a body, and what it reports."""
    if not isinstance(body, Body):
        return None
    engine, prompt = Engine(Target(endpoint, Policy())), body.prompt
    try:
        made = run(engine, prompt.context, prompt.options, settle=False)
    except SegueError as error:
        return type(error)
    return made.context, made.options, made.report.changes, made.requirements


# -- pairs -------------------------------------------------------------------------------------------------------------

ODD_SCHEMAS: tuple[dict[str, Any], ...] = (
    {"type": "array", "items": {"type": "string"}},
    {"properties": {}},
    {"type": "object"},
    {**SCHEMA, "oneOf": [{"required": ["q"]}]},
    {**SCHEMA, "anyOf": [{"required": ["q"]}]},
    {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
    {"type": "object", "properties": {"q": {"type": "string"}}, "required": [], "additionalProperties": False},
    *(
        {**SCHEMA, "properties": {"q": inner}}
        for inner in (
            {"type": "any"},
            {"type": "array"},
            {"type": "string", "format": "uri-reference"},
            {"type": "string", "format": "color"},
            {"type": "string", "pattern": "a", "minLength": 1, "maxLength": 2},
            {"type": "integer", "minimum": 1, "maximum": 2, "multipleOf": 2, "exclusiveMinimum": 0},
            {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 3, "uniqueItems": True},
            {"type": "array", "items": {"type": "string"}, "contains": {"type": "string"}},
            {"allOf": [{"type": "string"}]},
            {"oneOf": [{"type": "string"}]},
            {"not": {"type": "string"}},
            {"type": "string", "anyOf": [{"type": "string"}]},
            {"description": "anything"},
            {"enum": [1, 2], "type": "integer"},
            {"type": "string", "properties": {}},
            {"type": "object", "properties": {}},
            {"$ref": "#/x"},
            {"$ref": "#/$defs/a", "description": "x"},
            {"type": "object", "properties": {"q": {"$ref": "#"}}, "required": ["q"], "additionalProperties": False},
            {"type": ["string", "null"]},
        )
    ),
    {**SCHEMA, "$defs": {"a": {"type": "string"}}},
    {**SCHEMA, "required": ["q", "z"]},
    {**SCHEMA, "properties": {"q q": {"type": "string"}}, "required": ["q q"]},
    {**SCHEMA, "dependentRequired": {"q": ["q"]}, "patternProperties": {"a": {}}, "unevaluatedProperties": False},
)


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"q": schema}, "required": ["q"], "additionalProperties": False}
    return schema


def wide(count: int, **inner: Any) -> dict[str, Any]:
    names = [f"p{at}" for at in range(count)]
    return {**SCHEMA, "properties": {name: {"type": "string", **inner} for name in names}, "required": names}


def optional(count: int) -> dict[str, Any]:
    return {**wide(count), "required": []}


def unions(count: int) -> dict[str, Any]:
    return {**wide(count), "properties": {f"p{at}": {"type": ["string", "null"]} for at in range(count)}}


LARGE_SCHEMAS: tuple[Callable[[], dict[str, Any]], ...] = (
    partial(deep, 12),
    partial(wide, 5001),
    partial(wide, 1, enum=[f"v{at}" for at in range(1001)]),
    partial(optional, 25),
    partial(unions, 17),
)


def option_pairs(endpoint: Endpoint) -> Iterator[Callable[[], Pair]]:
    """Yield pairs that differ in an option."""
    many = tuple(f"s{at}" for at in range(2501))
    values: dict[str, tuple[Any, ...]] = {
        "temperature": (0.5, 2.5, 1.5, 1.1, 0.0),
        "top_p": (0.5, 0.0, 1.0),
        "seed": (3, -1, 2**40),
        "stop": (("END",), (" ",), ("x" * 40,), many[:6], many[:18], many),
        "max_tokens": (100, 5, -1, 10**9),
        "user_id": ("u", "a@b.com", "x" * 600),
        "session_id": ("s",),
        "cache_retention": ("long", "short"),
        "output_schema": (SCHEMA, {"type": "object", "properties": {"q": {"type": "string"}}}, *ODD_SCHEMAS),
        "stream": (True,),
        "thinking": (*THINKING_LEVELS, 1, 100, 2000, 1_000_000),
        "parallel_tool_calls": (False, True),
    }
    for name, given in values.items():
        tools = (LOOK,) if name == "parallel_tool_calls" else ()
        for value in given:
            yield lambda name=name, value=value, tools=tools: (
                make(endpoint, tools=tools, max_tokens=8000, **{name: value})
                if name != "max_tokens"
                else make(endpoint, max_tokens=value),
                make(endpoint, tools=tools, max_tokens=8000),
            )
    sampled: list[dict[str, Any]] = [{"temperature": 0.5}, {"top_p": 0.5}]
    for given_too in sampled:
        for level in ("high", "low", 2000, "off", None):
            yield lambda given_too=given_too, level=level: (
                make(endpoint, max_tokens=8000, thinking=level, **given_too),
                make(endpoint, max_tokens=8000, thinking=level),
            )
    yield lambda: (make(endpoint, temperature=0.5, top_p=0.5), make(endpoint, temperature=0.5))
    yield lambda: (make(endpoint, temperature=0.0, top_p=0.5), make(endpoint, temperature=0.0))
    for choice in ("none", "required", "look", "auto"):
        for level in (None, "high", 2000, "off"):
            yield lambda choice=choice, level=level: (
                make(endpoint, tools=(LOOK,), tool_choice=choice, thinking=level, max_tokens=8000),
                make(endpoint, tools=(LOOK,), thinking=level, max_tokens=8000),
            )
        yield lambda choice=choice: (
            make(endpoint, tools=(LOOK,), tool_choice=choice, output_schema=SCHEMA),
            make(endpoint, tools=(LOOK,), tool_choice=choice),
        )
    yield lambda: (make(endpoint, tools=(LOOK,), output_schema=SCHEMA), make(endpoint, tools=(LOOK,)))
    for level in ("high", "minimal", 2000):
        yield lambda level=level: (
            make(endpoint, tools=(LOOK,), thinking=level, max_tokens=8000),
            make(endpoint, tools=(LOOK,), thinking="off", max_tokens=8000),
        )
    yield lambda: (make(endpoint, thinking="max", max_tokens=8000), make(endpoint, thinking="low", max_tokens=8000))


def tool_pairs(endpoint: Endpoint) -> Iterator[Callable[[], Pair]]:
    """Yield pairs that differ in a tool or its schema."""
    plain = partial(make, endpoint)

    def tools_of(*tools: Any) -> Pair:
        return plain(tools=tools), plain()

    yield lambda: tools_of(LOOK)
    for name in ("1a", "a b", "a.b", "x" * 300, "-a", "_a"):
        yield lambda name=name: (plain(tools=(replace(LOOK, name=name),)), plain(tools=(LOOK,)))
    for count in {129, endpoint.rules.max_tools + 1} - {1}:
        yield lambda count=count: (
            plain(tools=[replace(LOOK, name=f"t{at}") for at in range(count)]),
            plain(tools=[replace(LOOK, name=f"t{at}") for at in range(count - 1)]),
        )
    for strict in (False, True):
        for schema in ODD_SCHEMAS:
            yield lambda schema=schema, strict=strict: (
                plain(tools=(replace(LOOK, parameters=schema, strict=strict),)),
                plain(tools=(replace(LOOK, strict=strict),)),
            )
    for make_schema in LARGE_SCHEMAS if any(name.startswith("strict_") for name in endpoint.rules.rows) else ():
        yield lambda make_schema=make_schema: (
            plain(tools=(replace(LOOK, parameters=make_schema(), strict=True),)),
            plain(tools=(replace(LOOK, strict=True),)),
        )
        yield lambda make_schema=make_schema: (plain(output_schema=make_schema()), plain(output_schema=SCHEMA))
    yield lambda: (
        plain(tools=[replace(LOOK, name=f"t{at}", strict=True) for at in range(21)]),
        plain(tools=[replace(LOOK, name=f"t{at}", strict=True) for at in range(20)]),
    )
    rows = [row for row in get_protocol(endpoint.model.protocol).server_tools if row.template is not None]
    for row in rows:
        native = NativeTool(protocol=endpoint.model.protocol, definition=dict(row.template or {}))
        yield lambda native=native: tools_of(native)
        yield lambda native=native: (plain(tools=(native, LOOK)), plain(tools=(LOOK,)))
        yield lambda native=native: (
            plain(tools=(native,), thinking="minimal", max_tokens=8000),
            plain(tools=(native,), max_tokens=8000),
        )
        yield lambda native=native: (plain(tools=(native,), tool_choice="required"), plain(tools=(native,)))
    for kind in (*sorted(endpoint.rules.refused_tool_types), "web_search", "image_generation", "bash_20250124"):
        for fields in ({"type": kind}, {"type": kind, "name": kind.rpartition("_")[0] or kind}):
            native = NativeTool(protocol=endpoint.model.protocol, definition=fields)
            yield lambda native=native: tools_of(native)


def turn_pairs(endpoint: Endpoint) -> Iterator[Callable[[], Pair]]:
    """Yield pairs that differ in their turns."""
    plain = partial(make, endpoint)
    reply = said(endpoint, TextContent(text="Yes."))
    system = SystemMessage(content=(TextContent(text="Be brief."),))
    looped = partial(make, endpoint, HI, tools=(LOOK,))
    one = called(endpoint)
    yield lambda: (plain(HI, HI), plain())
    yield lambda: (plain(HI, reply, reply, HI), plain(HI, reply, HI))
    yield lambda: (plain(reply, HI), plain(HI))
    yield lambda: (plain(*one, HI, tools=(LOOK,)), plain(HI, *one, tools=(LOOK,)))
    yield lambda: (plain(HI, reply), plain(HI, reply, HI))
    yield lambda: (plain(HI, said(endpoint, TextContent(text="Yes. "))), plain(HI, reply))
    yield lambda: (plain(system), plain())
    yield lambda: (plain(system="Be brief."), plain())
    yield lambda: (plain(HI, reply, system, HI), plain(HI, reply, HI))
    yield lambda: (plain(HI, reply, HI, system), plain(HI, reply, HI))
    yield lambda: (plain(HI, reply, HI, system, HI), plain(HI, reply, HI))
    yield lambda: (plain(HI, system, HI), plain(HI))
    for text in ("", " ", "\n"):
        yield lambda text=text: (plain(UserMessage(content=(TextContent(text=text),))), plain())
        yield lambda text=text: (plain(HI, said(endpoint, TextContent(text=text)), HI), plain(HI, reply, HI))
        yield lambda text=text: (plain(UserMessage(content=(TEXT, TextContent(text=text)))), plain())
    yield lambda: (looped(*called(endpoint)[:1], HI), looped(*one))
    yield lambda: (looped(*called(endpoint)[1:]), looped(*one))
    yield lambda: (looped(*one, HI), looped(*one))
    yield lambda: (
        looped(one[0], ToolResultMessage(tool_call_id=ID, tool_name="look", content=())),
        looped(*one),
    )
    yield lambda: (plain(HI, *one), looped(*one))
    yield lambda: (
        looped(said(endpoint, one[0].content[0], TextContent(text="I look.")), one[1]),
        looped(*one),
    )
    for call_id in ("x" * 41, "x" * 65, "a:b/c d", "a", "a.b"):
        yield lambda call_id=call_id: (looped(*called(endpoint, call_id=call_id)), looped(*one))
    for thinking in (
        ThinkingContent(thinking="Hm."),
        ThinkingContent(thinking="Hm.", thinking_signature="c2ln"),
        ThinkingContent(thinking="", thinking_signature="c2ln", redacted=True),
    ):
        yield lambda thinking=thinking: (
            plain(HI, said(endpoint, thinking, TextContent(text="Yes.")), HI),
            plain(HI, reply, HI),
        )
        yield lambda thinking=thinking: (plain(HI, said(endpoint, thinking), HI), plain(HI, reply, HI))
        yield lambda thinking=thinking: (plain(HI, said(endpoint, TEXT, thinking), HI), plain(HI, reply, HI))
        yield lambda thinking=thinking: (
            looped(said(endpoint, thinking, one[0].content[0]), one[1]),
            looped(*one),
        )
        for level in ("high", 2000, "off"):
            yield lambda thinking=thinking, level=level: (
                looped(*one, thinking=level, max_tokens=8000),
                looped(said(endpoint, thinking, one[0].content[0]), one[1], thinking=level, max_tokens=8000),
            )
            yield lambda thinking=thinking, level=level: (
                looped(said(endpoint, thinking, one[0].content[0]), one[1], thinking=level, max_tokens=8000),
                looped(*one, thinking=level, max_tokens=8000),
            )
    signed = ToolCall(id=ID, name="look", arguments={"q": "x"}, thought_signature="c2ln")
    yield lambda: (looped(*one), looped(said(endpoint, signed), one[1]))
    yield lambda: (looped(*one), looped(said(endpoint, ThinkingContent(thinking="Hm."), one[0].content[0]), one[1]))
    yield lambda: (looped(*one), plain())


def media_pairs(endpoint: Endpoint) -> Iterator[Callable[[], Pair]]:
    """Yield pairs that differ in media and cache marks."""
    plain = partial(make, endpoint)

    def shown(*content: Any) -> Pair:
        return plain(UserMessage(content=(TEXT, *content))), plain()

    pieces: list[Any] = [PICTURE, PAPER]
    pieces += [ImageContent(url=f"{scheme}://example.org/a.png", mime_type="image/png") for scheme in ("https", "http")]
    pieces += [
        FileContent(file_id=name, mime_type="image/png", name="a") for name in ("file-1", "s3://bucket/a", "files/a")
    ]
    pieces += [ImageContent(data=GIF, mime_type=mime) for mime in ("image/gif", "image/png", "image/bmp", "image/tiff")]
    for mime in ("application/pdf", "text/plain", "audio/wav", "audio/mpeg", "audio/ogg", "video/mp4", "text/csv"):
        pieces += [
            FileContent(data="aGVsbG8=", mime_type=mime, name="a"),
            FileContent(url="https://example.org/a", mime_type=mime, name="a"),
            FileContent(file_id="file-1", mime_type=mime, name="a"),
            FileContent(file_id="s3://bucket/a", mime_type=mime, name="a"),
        ]
    for piece in pieces:
        yield lambda piece=piece: shown(piece)
        yield lambda piece=piece: (
            make(endpoint, HI, *called(endpoint, TEXT, piece), tools=(LOOK,)),
            make(endpoint, HI, *called(endpoint), tools=(LOOK,)),
        )
    yield lambda: (plain(UserMessage(content=(PAPER,))), plain())
    yield lambda: shown(*([PAPER] * 6))
    for count in (6, 9, 21, 101):
        yield lambda count=count: (
            plain(UserMessage(content=(TEXT, *([PICTURE] * count)))),
            plain(UserMessage(content=(TEXT, *([PICTURE] * (count - 1))))),
        )
    result = ToolResultMessage(tool_call_id=ID, tool_name="look", content=(TEXT, PICTURE), is_error=True)
    yield lambda: (
        make(endpoint, HI, called(endpoint)[0], result, tools=(LOOK,)),
        make(endpoint, HI, called(endpoint)[0], replace(result, content=(TEXT,)), tools=(LOOK,)),
    )
    mark, hour = CacheMark(ttl="5m"), CacheMark(ttl="1h")
    marked = replace(TEXT, cache_mark=mark)
    yield lambda: (plain(UserMessage(content=(marked,) * 5)), plain(UserMessage(content=(marked,) * 4)))
    yield lambda: (
        plain(UserMessage(content=(marked, replace(TEXT, cache_mark=hour)))),
        plain(UserMessage(content=(replace(TEXT, cache_mark=hour), marked))),
    )
    yield lambda: (
        plain(tools=(replace(LOOK, cache_mark=mark),)),
        plain(tools=(LOOK,)),
    )
    yield lambda: (
        plain(HI, said(endpoint, marked), HI),
        plain(HI, said(endpoint, TEXT), HI),
    )
    yield lambda: (
        make(endpoint, HI, *called(endpoint, marked), tools=(LOOK,)),
        make(endpoint, HI, *called(endpoint), tools=(LOOK,)),
    )
    for mime in ("text/markdown", "application/msword"):
        paper = FileContent(data="aGk=", mime_type=mime, name="a", cache_mark=mark)
        yield lambda paper=paper: (
            plain(UserMessage(content=(TEXT, paper))),
            plain(UserMessage(content=(TEXT, replace(paper, cache_mark=None)))),
        )
    yield lambda: shown(NativeContent(protocol=endpoint.model.protocol, block={"type": "brand_new"}))


SAMPLES: dict[str, Any] = {
    "reasoning": {"effort": "medium"},
    "reasoning_effort": "medium",
    "web_search_options": {},
    "max_tokens": 400,
    "parallel_tool_calls": True,
    "thinking.type": "enabled",
    "output_config.effort": "high",
    "temperature": 0.5,
    "top_k": 5,
}


def raw_pairs(endpoint: Endpoint) -> Iterator[Callable[[], Pair]]:
    """Yield pairs of which one has a key or a value that no conversation holds."""
    base = partial(make, endpoint, max_tokens=8000)
    for key in sorted(endpoint.rules.refused_extra):
        path, _, value = key.partition("=")
        yield lambda path=path, value=value: (with_key(base(), path, value or SAMPLES.get(path, "x")), base())
    for path, value in (
        ("brand_new", 1),
        ("temperature", "hot"),
        ("top_k", 5),
        ("generationConfig.topK", 5),
        ("inferenceConfig.brandNew", 1),
        ("generation_config.brand_new", 1),
        ("response_format", {"type": "json_object"}),
        ("generationConfig.responseMimeType", "application/json"),
        ("response_mime_type", "application/json"),
        ("thinking", {"type": "enabled", "budget_tokens": 2000}),
        ("thinking", {"type": "adaptive"}),
        ("thinking", {"type": "disabled"}),
        ("thinking", {"type": "enabled", "budget_tokens": 10}),
        ("thinking", {"type": "enabled", "budget_tokens": 9000}),
        ("cache_control", {"type": "ephemeral"}),
        ("reasoning", {"generate_summary": "auto"}),
        ("previous_response_id", "resp_1"),
        ("tool_choice", "required"),
        ("output_config", {"effort": "max"}),
    ):
        yield lambda path=path, value=value: (with_key(base(), path, value), base())
        yield lambda path=path, value=value: (
            with_key(base(tools=(LOOK,)), path, value),
            base(tools=(LOOK,)),
        )
    for effort in ("max", "xhigh"):
        disabled = partial(with_key, path="thinking", value={"type": "disabled"})
        yield lambda effort=effort, disabled=disabled: (
            with_key(disabled(base()), "output_config.effort", effort),
            with_key(disabled(base()), "output_config.effort", "low"),
        )

    def without_word() -> Pair:
        plain = make(endpoint, UserMessage(content=(TextContent(text="hi"),)))
        said_so = make(endpoint, HI)
        key, value = (
            ("text", {"format": {"type": "json_object"}})
            if "input" in plain
            else (
                "response_format",
                {"type": "json_object"},
            )
        )
        return with_key(plain, key, value), with_key(said_so, key, value)

    yield without_word
    turns = get_protocol(endpoint.model.protocol).turns_key or "messages"

    def with_turns(*added: Any, at: int = 0) -> dict[str, Any]:
        body = base()
        given = body.get(turns)
        listed = given if isinstance(given, list) else [{"role": "user", "content": given}]
        return {**body, turns: [*listed[:at], *added, *listed[at:]]}

    for role in ("developer", "function", "system"):
        yield lambda role=role: (with_turns({"role": role, "content": "x", "name": "f"}), base())
    parts = [{"type": "text", "text": "x"}]
    yield lambda: (
        with_turns({"role": "user", "content": "x"}, {"role": "assistant", "content": parts}),
        with_turns({"role": "user", "content": "x"}, {"role": "assistant", "content": "x"}),
    )
    call = {"id": ID, "type": "function", "function": {"name": "f", "arguments": "{}"}}
    asked = ({"role": "user", "content": "x"}, {"role": "assistant", "content": "x", "tool_calls": [call]})
    yield lambda: (
        with_turns(*asked, {"role": "tool", "tool_call_id": ID, "content": parts}),
        with_turns(*asked, {"role": "tool", "tool_call_id": ID, "content": "x"}),
    )
    item = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]}
    yield lambda: (with_turns(item, item), with_turns(item))
    tool = {"type": "object", "properties": {}, "additionalProperties": False}
    declared = {"functionDeclarations": [{"name": "f", "parameters": tool}]}
    bare = {"functionDeclarations": [{"name": "f", "parameters": {"type": "object", "properties": {}}}]}
    yield lambda: (with_key(base(), "tools", [declared]), with_key(base(), "tools", [bare]))
    yield lambda: (
        with_key(base(), "tools", [{"name": "f", "input_schema": tool, "defer_loading": True, **_EPHEMERAL}]),
        with_key(base(), "tools", [{"name": "f", "input_schema": tool, **_EPHEMERAL}]),
    )
    modes = {"generationConfig": {"responseModalities": ["AUDIO"]}}
    yield lambda: (base(), {**base(), **modes})
    server = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}]}
    use = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
    tools = [{"name": "f", "input_schema": tool}]
    yield lambda: (
        {**with_turns({"role": "assistant", "content": [server, use]}, result, at=1), "tools": tools},
        {**with_turns({"role": "assistant", "content": [use]}, result, at=1), "tools": tools},
    )


# -- pairs from the place and the value of one rule --------------------------------------------------------------------

_OPTIONS: dict[str, Any] = {
    "temperature": 0.5,
    "top_p": 0.9,
    "seed": 3,
    "stop": ("END",),
    "max_tokens": 100,
    "user_id": "u",
    "session_id": "s",
    "cache_retention": "long",
    "output_schema": SCHEMA,
    "thinking": "high",
    "stream": True,
}
_TOOL_OPTIONS: dict[str, Any] = {"parallel_tool_calls": False, "tool_choice": "required"}
_VALUES: tuple[Any, ...] = (True, 3, 0.5, "x", ["x"], {"x": 1}, {"type": "json_schema"}, {"type": "json_object"})


def _picture(width: int, height: int, size: int = 0) -> ImageContent:
    """Make a PNG whose header has these edges, with at least so many bytes."""
    data = bytearray(base64.b64decode(PNG))
    data[16:24] = width.to_bytes(4) + height.to_bytes(4)
    return ImageContent(data=base64.b64encode(bytes(data).ljust(size, b"x")).decode(), mime_type="image/png")


def _paper(size: int) -> FileContent:
    data = base64.b64encode(base64.b64decode(PAPER.data or "").ljust(size, b"x")).decode()
    return replace(PAPER, data=data)


def _without_keys(endpoint: Endpoint, *keys: str) -> Pair:
    body = make(endpoint, tools=(LOOK,), max_tokens=8000)
    return {key: value for key, value in body.items() if key not in keys}, body


def _with_field(endpoint: Endpoint, kind: str, key: str) -> Pair:
    """Set a field of every object of a kind that Gemini has: a call, its result, the schema of a function."""
    plain = make(endpoint, HI, *called(endpoint), tools=(LOOK,))
    tools = [{"functionDeclarations": [{"name": "look", "parameters": {"type": "object", "properties": {"q": {}}}}]}]
    plain = {**deepcopy(plain), "tools": tools}
    body = deepcopy(plain)
    parts = [part for turn in body["contents"] for part in turn["parts"]]
    held = {"FunctionCall": "functionCall", "FunctionResponse": "functionResponse"}.get(kind)
    objects = [part[held] for part in parts if held in part]
    for one in objects or [body["tools"][0]["functionDeclarations"][0]["parameters"]["properties"]["q"]]:
        one[key] = "x"
    return body, plain


def aimed_pairs(endpoint: Endpoint, name: str, item: str, value: Any) -> Iterator[Callable[[], Pair]]:
    """Yield pairs about the place of one rule: at its bound and beyond it, with its key and without."""
    plain = partial(make, endpoint, max_tokens=8000)
    most = int(getattr(value, "most", None) or 0)
    shown = partial(_show, endpoint)
    if name == "refused_fields":
        yield lambda: _with_field(endpoint, *item.split("."))
    if name in ("refused_extra", "added_fields", "refused_fields"):
        for key in [item] if item else sorted(value):
            yield from _key_pairs(endpoint, key)
    elif name == "extra_like":
        for key, option in value:
            for sample in _VALUES:
                yield lambda key=key, sample=sample: (with_key(plain(), key, sample), plain())
                yield lambda key=key, sample=sample: (_with_extra(endpoint, key, sample), plain())
                yield lambda key=key, option=option, sample=sample: (
                    with_key(plain(tools=(LOOK,), tool_choice="required"), key, sample),
                    plain(tools=(LOOK,), tool_choice="required", **{option: _OPTIONS[option]}),
                )
    elif name.startswith("refused_") and item in {**_OPTIONS, **_TOOL_OPTIONS}:
        options = {item: {**_OPTIONS, **_TOOL_OPTIONS}[item]}
        tools = (LOOK,) if item in _TOOL_OPTIONS else ()
        yield lambda: (make(endpoint, tools=tools, **options), make(endpoint, tools=tools))
    elif name in ("image_bytes", "document_bytes", "media_bytes"):
        yield lambda: shown(_picture(1, 1, most + 1), _picture(1, 1))
        yield lambda: shown(_paper(most + 1), PAPER)
        video = FileContent(data="AAAA", mime_type="video/mp4", name="a")
        yield lambda: shown(replace(video, data="A" * (most * 4 // 3 + 8)), video)
    elif name in ("image_edge", "large_images"):
        edge = int(getattr(value, "least", None) or most)
        others = [PICTURE] * (most if name == "large_images" else 0)
        yield lambda: shown(_picture(edge + 1, 1), PICTURE, *others)
    elif name == "max_images":
        yield lambda: (
            plain(UserMessage(content=(TEXT, *([PICTURE] * (value + 1))))),
            plain(UserMessage(content=(TEXT, *([PICTURE] * value)))),
        )
    elif name == "thinking_types":
        for kind in ("adaptive", "enabled", "disabled", "auto"):
            typed = {"type": kind, **({"budget_tokens": 2000} if kind == "enabled" else {})}
            for key in ("thinking", "additionalModelRequestFields.thinking"):
                yield lambda key=key, typed=typed: (with_key(plain(), key, typed), plain())
    elif name == "min_thinking_budget":
        for key in ("thinkingConfig", "generationConfig.thinkingConfig"):
            yield lambda key=key: (
                with_key(plain(), key, {"thinkingBudget": value - 1}),
                with_key(plain(), key, {"thinkingBudget": value}),
            )
        yield lambda: (plain(thinking=max(1, value - 1)), plain(thinking=4000))
    elif name in ("thinking_levels", "efforts_without_thinking"):
        for level in THINKING_LEVELS:
            for other in ("low", "high", "off"):
                yield lambda level=level, other=other: (plain(thinking=level), plain(thinking=other))
    elif name == "max_tokens":
        for limit in (-1, 0, most + 1, 10**9):
            yield lambda limit=limit: (make(endpoint, max_tokens=limit), make(endpoint, max_tokens=100))
            for key in ("max_tokens", "max_completion_tokens", "max_output_tokens"):
                yield lambda limit=limit, key=key: (with_key(plain(), key, limit), with_key(plain(), key, 100))
    elif name == "unstreamed_max_tokens":
        yield lambda: (make(endpoint, max_tokens=most + 1), make(endpoint, max_tokens=most))
    elif name == "unstreamed":
        yield lambda: (plain(), plain(stream=True))
        yield lambda: (with_key(plain(), "stream", value=False), with_key(plain(), "stream", value=True))
    elif name == "cache_mark_key":
        marked = replace(TEXT, cache_mark=CacheMark(ttl="5m"))
        turns = get_protocol(endpoint.model.protocol).turns_key or "messages"
        part = {"type": "text", "text": "x", value: {"type": "default"}}
        yield lambda: ({**plain(), turns: [{"role": "user", "content": [part] * 5}]}, plain())
        yield lambda: (plain(UserMessage(content=(marked,) * 5)), plain())
    elif name in ("image_sources", "file_sources", "user_media", "result_media", "url_schemes"):
        yield from _media_pairs(endpoint)
    elif name == "tool_choices":
        for choice in ("none", "required", "look"):
            for other in ("auto", "required", "look", None):
                yield lambda choice=choice, other=other: (
                    plain(tools=(LOOK,), tool_choice=choice),
                    plain(tools=(LOOK,), tool_choice=other),
                )
    elif name == "server_tools":
        for row in get_protocol(endpoint.model.protocol).server_tools:
            definition = dict(row.template or {row.key[-1]: row.pattern or {}})
            native = NativeTool(protocol=endpoint.model.protocol, definition=definition)
            yield lambda native=native: (plain(tools=(native,)), plain(tools=(LOOK,)))
    elif name in ("thinks_unasked", "functions_with_thinking", "refused_with_thinking", "refused_unless_off"):
        yield from _thinking_pairs(endpoint)
    elif name in ("paired_calls", "call_id_alphabet", "mixed_results"):
        yield from _call_pairs(endpoint)
    elif name == "system_fields":
        fields = {field: {"effort": "low"} for field in sorted(value.values)}
        system, reply = {"role": "system", "content": []}, {"role": "assistant", "content": "x"}
        turns = [{"role": "user", "content": "x"}, reply, {"role": "user", "content": "x"}]
        yield lambda: (
            {**plain(), "messages": [*turns, {**system, **fields}]},
            {**plain(), "messages": [*turns, {**system, "content": "x"}]},
        )
    elif name == "window_field":
        for field in value.values:
            yield lambda field=field: (plain(), _with_extra(endpoint, field, 16_384))
    elif name == "tool_namespaces":
        inner = {"type": "function", "name": "f", "description": "x", "parameters": SCHEMA}
        grouped = {"type": "namespace", "name": "n", "description": "x", "tools": [inner]}
        yield lambda: ({**plain(), "tools": [grouped]}, {**plain(), "tools": [inner]})


def _with_text(body: dict[str, Any]) -> dict[str, Any]:
    """Add a text to the last content of a body of Gemini."""
    *before, last = body["contents"]
    return {**body, "contents": [*before, {**last, "parts": [*last["parts"], {"text": "x"}]}]}


def _media_pairs(endpoint: Endpoint) -> Iterator[Callable[[], Pair]]:
    papers = "application/pdf application/msword application/zip text/csv"
    for mime in f"image/png image/bmp image/x-icon {papers} audio/ogg video/mp4".split():
        urls = ({"url": f"{scheme}://example.org/a"} for scheme in ("https", "ftp", "gs"))
        sources: list[dict[str, Any]] = [{"data": PNG}, *urls, {"file_id": "file-1"}, {"file_id": "s3://b/a"}]
        for source in sources:
            for kind in (ImageContent, FileContent):
                if kind is ImageContent and (mime[:5] != "image" or "file_id" in source):
                    continue
                piece = kind(mime_type=mime, **source)
                yield lambda piece=piece: (make(endpoint, UserMessage(content=(TEXT, piece))), make(endpoint))
                yield lambda piece=piece: (
                    make(endpoint, HI, *called(endpoint, TEXT, piece), tools=(LOOK,)),
                    make(endpoint, HI, *called(endpoint), tools=(LOOK,)),
                )


def _thinking_pairs(endpoint: Endpoint) -> Iterator[Callable[[], Pair]]:
    plain = partial(make, endpoint, max_tokens=8000)
    for levels in (("high", "off"), (None, "off"), ("off", None), (2000, None)):
        for options in (
            {"tools": (LOOK,)},
            {"tools": (LOOK,), "tool_choice": "required"},
            {"temperature": 0.5},
            {"top_p": 0.5},
        ):
            one, other = ({**options, "thinking": level} for level in levels)
            yield lambda one=one, other=other: (plain(**one), plain(**other))
            bare = {"tools": options.get("tools", ()), "thinking": levels[0]}
            yield lambda one=one, bare=bare: (plain(**one), plain(**bare))
    loop = partial(plain, HI, *called(endpoint), tools=(LOOK,))
    yield lambda: (loop(), plain())
    yield lambda: (loop(thinking="off"), loop(thinking="high"))


def _call_pairs(endpoint: Endpoint) -> Iterator[Callable[[], Pair]]:
    looped = partial(make, endpoint, HI, tools=(LOOK,))
    one, result = called(endpoint)
    yield lambda: (looped(one, HI), looped(one, result))
    yield lambda: (looped(result), looped(one, result))
    yield lambda: (looped(one, result, HI), looped(one, result))
    yield lambda: (looped(one, replace(result, content=(TEXT, PICTURE))), looped(one, result))
    yield lambda: (_with_text(looped(one, result)), looped(one, result))
    for sign in ":.-_ ":
        yield lambda sign=sign: (looped(*called(endpoint, call_id=f"abc{sign}efghi")), looped(one, result))


def _show(endpoint: Endpoint, one: Any, other: Any, *more: Any) -> Pair:
    first, second = (make(endpoint, UserMessage(content=(TEXT, content, *more))) for content in (one, other))
    return first, second


def _key_pairs(endpoint: Endpoint, key: str) -> Iterator[Callable[[], Pair]]:
    path, _, value = key.partition("=")
    base = partial(make, endpoint, max_tokens=8000)
    thinking = partial(base, thinking="high")
    given: tuple[Any, ...] = (value, json.dumps(value)) if value else (*_VALUES, SAMPLES.get(path, "x"))
    for one in given:
        yield lambda one=one: (_with_extra(endpoint, path, one), base())
        for body in (base, thinking, partial(base, tools=(LOOK,))):
            yield lambda one=one, body=body: (with_key(body(), path, one), body())
    if path[:1].isupper():  # an object of the SDK: the key in each part of a body
        rows = get_protocol(endpoint.model.protocol).server_tools
        native = [NativeTool(protocol=endpoint.model.protocol, definition=dict(row.template or {})) for row in rows[:1]]
        body = base(HI, said(endpoint, TEXT), HI, tools=(LOOK, *native))
        for tool in body.get("tools", ()) if native else ():
            tool.update({"filters": {}} if tool.get("type") == "web_search" else {})
        for sample in _VALUES:
            yield lambda sample=sample: (_with_everywhere(body, path.partition(".")[2], sample), body)


def _with_extra(endpoint: Endpoint, path: str, value: Any) -> dict[str, Any]:
    """Encode a request with a key of one protocol."""
    for key in reversed(path.split(".")):
        value = {key: value}
    return make(endpoint, max_tokens=8000, extra={endpoint.model.protocol: value})


def _with_everywhere(value: Any, key: str, sample: Any) -> Any:
    """Set a key in each object of a body."""
    if isinstance(value, dict):
        inner = {name: _with_everywhere(one, key, sample) for name, one in value.items()}
        return {**inner, key: sample}
    return [_with_everywhere(one, key, sample) for one in value] if isinstance(value, list) else value


_EPHEMERAL = {"cache_control": {"type": "ephemeral"}}
MAKERS = {"options": option_pairs, "tools": tool_pairs, "turns": turn_pairs, "media": media_pairs, "raw": raw_pairs}


def pairs_of(endpoint: Endpoint, kind: str) -> Iterator[Pair]:
    """Yield the pairs of an endpoint: of its `options`, `tools`, `turns`, `media`, or `raw` ones."""
    return _build(MAKERS[kind](endpoint))


def pairs_for(endpoint: Endpoint, name: str, item: str, value: Any) -> Iterator[Pair]:
    """Yield the pairs that are about the place of one rule."""
    return _build(aimed_pairs(endpoint, name, item, value))


def _build(builders: Iterator[Callable[[], Pair]]) -> Iterator[Pair]:
    for build in builders:
        try:
            yield build()
        except (SegueError, AttributeError, TypeError, KeyError):  # a body of another form
            continue
