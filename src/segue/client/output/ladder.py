"""How a model is asked for a type: by the first of four ways that the target has.

Native schema, JSON mode with the schema in the prompt, one function that has to be called, or the prompt alone. What
helps is added to the request and never to the conversation. Which way a target has is found by projection: its rules
decide what is left of a request.

Facts:
- JSON mode guarantees JSON, not the schema, and an object at its root.     (OpenAI and DeepSeek documentation, 2026-11)
- A function that has to be called answers in the form of its parameters, on models without a schema for answers.
                                                              (Anthropic and Bedrock documentation: tool use, 2026-11)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias, cast, final

import msgspec
from msgspec.structs import replace

from segue.client.output.output_types import OutputType
from segue.conversation.content import TextContent
from segue.conversation.context import Context, Options, ToolDefinition
from segue.conversation.messages import UserMessage
from segue.foundation.json_text import encode_json
from segue.models.model import Model
from segue.projection.policy import Policy, fill
from segue.projection.projector import Projection, project, refuse_changes
from segue.projection.report import Change, ChangeCode, Loss, Report
from segue.protocols.registry import get_protocol, resolve_dialect, resolve_rules
from segue.requests.prepare import Request

Rung: TypeAlias = Literal["schema", "json_mode", "function", "prompt"]
DETAILS: Final[Mapping[Rung, str]] = {
    "schema": "native schema",
    "json_mode": "JSON mode, with the schema in the prompt",
    "function": "a function that has to be called",
    "prompt": "only in words, with the schema in the prompt",
}
"""What the report says about each way."""
_FREE: Final = frozenset({None, "auto", "none"})
_PROBE: Final = (UserMessage.of("-"),)
_FUNCTION: Final = "output"


@final
class WantedOutput(msgspec.Struct, frozen=True):
    """What is asked of a reply: a value of a type; a reply that does not fit is sent back `retries` times."""

    type: OutputType
    retries: int = 1


class Way(NamedTuple):
    """One way to ask: what is sent, and whether a projection still has what makes it this way."""

    rung: Rung
    context: Context
    options: Options
    holds: Callable[[Projection], bool]
    function: str | None = None


class TypedRequest(NamedTuple):
    """A request, how it asks for the type, and the function whose arguments are the answer."""

    request: Request
    rung: Rung
    function: str | None = None
    is_only: bool = True
    """Whether the request has no other function."""


MakeRequest: TypeAlias = Callable[[Context, Options | None], Request]


def ask_for(
    output: WantedOutput,
    context: Context,
    model: Model,
    options: Options | None,
    policy: Policy | None,
    *,
    make_request: MakeRequest,
) -> TypedRequest:
    """Make a request for a type, in the best way that the target has; the report names it.

    Raises:
        ProjectionRefused: the policy refuses this way to ask, or a change that the target needs.
    """
    policy = policy or Policy()
    lenient = replace(policy, refuse=frozenset()) if policy.refuse else policy
    for way in _ways(output.type, context, model, options or Options(), policy):
        probe = replace(way.context, messages=_PROBE, summaries=(), pins=())
        if not way.holds(project(probe, model, options=way.options, policy=lenient)):
            continue
        request = make_request(way.context, way.options)
        if way.holds(request.projection):  # the history can add tools, and other tools are refused next to them
            _report(request, way.rung, policy)
            functions = [tool for tool in request.projection.context.tools if tool.kind == "function"]
            return TypedRequest(request, way.rung, way.function, len(functions) == 1)
    raise AssertionError("a prompt can be sent to every target")


def _report(request: Request, rung: Rung, policy: Policy) -> None:
    loss = Loss.CONTENT if rung in ("json_mode", "prompt") else Loss.NONE
    change = Change(code=ChangeCode.OUTPUT_ASKED, path=("options", "output_schema"), loss=loss, detail=DETAILS[rung])
    request.report = Report((*request.report.changes, change))
    refuse_changes(request.report, policy, request.model.full_name())


def _ways(type_: OutputType, context: Context, model: Model, options: Options, policy: Policy) -> Iterator[Way]:
    rules, json_mode = resolve_rules(model), get_protocol(model.protocol).json_mode
    if resolve_dialect(model).json_schema:
        schema = type_.schema if rules.has("any_output_root") else type_.object_schema
        native = replace(options, output_schema=schema)
        yield Way("schema", context, native, _has_schema)
    if json_mode and (rules.schema_with_tools or not context.tools):
        wanted = {model.protocol: json_mode}

        def has_mode(made: Projection) -> bool:
            return _has(made.options.extra or {}, wanted)

        asked = replace(options, extra=_joined(options.extra or {}, wanted))
        yield Way("json_mode", _instructed(context, type_.object_schema, policy), asked, has_mode)
    if options.tool_choice in _FREE:
        yield from _functions(type_, context, options, policy)
    yield Way("prompt", _instructed(context, type_.schema, policy), options, _is_always)


def _has_schema(made: Projection) -> bool:
    return made.options.output_schema is not None


def _is_always(_: Projection) -> bool:
    return True


def _functions(type_: OutputType, context: Context, options: Options, policy: Policy) -> Iterator[Way]:
    """Ask with a function; next to other functions, the model chooses which one it calls, if the target lets it."""
    taken = {tool.name for tool in context.tools if tool.kind == "function"}
    name = next(each for number in range(len(taken) + 1) if (each := _FUNCTION + "_" * number) not in taken)
    schema = type_.object_schema
    text = " ".join(filter(None, (policy.texts.output_function, cast("str | None", schema.get("description")))))
    tool = ToolDefinition(name=name, description=text, parameters=schema)
    offered = replace(context, tools=(*context.tools, tool))

    def holds(made: Projection) -> bool:
        has_tool = any(each.kind == "function" and each.name == name for each in made.context.tools)
        return has_tool and made.options.tool_choice is not None

    choices = (name, "required")
    if taken:
        choices = (name,) if options.tool_choice == "none" else ("required", name)
    for choice in choices:
        yield Way("function", offered, replace(options, tool_choice=choice), holds, name)


def _instructed(context: Context, schema: Mapping[str, object], policy: Policy) -> Context:
    """Add the schema to the system prompt."""
    text = fill(policy.texts.output_schema, schema=encode_json(schema).decode())
    given = context.system_prompt
    if not given:
        return replace(context, system_prompt=text)
    prompt = f"{given}\n\n{text}" if isinstance(given, str) else (*given, TextContent(text=text))
    return replace(context, system_prompt=prompt)


def _joined(given: Mapping[str, object], added: Mapping[str, object]) -> dict[str, object]:
    """Join two objects of JSON at every level; what is added goes before what is given."""
    joined = dict(given)
    for key, value in added.items():
        inner = given.get(key)
        if isinstance(inner, Mapping) and isinstance(value, Mapping):
            joined[key] = _joined(cast("Mapping[str, object]", inner), cast("Mapping[str, object]", value))
        else:
            joined[key] = value
    return joined


def _has(given: Mapping[str, object], wanted: Mapping[str, object]) -> bool:
    for key, value in wanted.items():
        inner = given.get(key)
        if isinstance(inner, Mapping) and isinstance(value, Mapping):
            if not _has(cast("Mapping[str, object]", inner), cast("Mapping[str, object]", value)):
                return False
        elif inner != value:
            return False
    return True
