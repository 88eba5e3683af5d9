"""Whether Anthropic accepts a body: options, tools and cache marks; `check_turns` checks the messages.

Every rule quotes the refusal and its source; the threads were read on 2026-11-15. There is no rule for what recorded
traffic shows to be accepted: a first turn of the assistant, an id used again in a later turn, several turns of one
role, a forced tool with adaptive thinking, consecutive turns of instructions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, cast

from segue.errors import Path
from segue.protocols.anthropic_messages.check_turns import Turns
from segue.protocols.anthropic_messages.limits import LIMITS
from segue.protocols.anthropic_messages.native import CACHE_CONTROL
from segue.protocols.anthropic_messages.rules import PROVIDER
from segue.protocols.kit.capabilities import Places
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.checking import matches_alphabet, objects_of, run_checks
from segue.protocols.kit.codec import Endpoint, Violation
from segue.protocols.kit.efforts import check_effort
from segue.protocols.kit.json_values import kind_of, object_of
from segue.protocols.kit.ranges import check_range, check_stops, check_user_ids
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.request_fields import RequestFields

_EFFORTS: Final = frozenset({"low", "medium", "high", "xhigh", "max"})  # anthropic 2.8.0
_THINKING_TYPES: Final = frozenset({"adaptive", "between_tools", "enabled"})  # `disabled` is the level `off`
_FORCED: Final = frozenset({"any", "tool"})
_THINKING: Final = frozenset({"thinking", "redacted_thinking"})
_SAMPLING: Final[Mapping[str, str]] = {"temperature": "temperature", "top_p": "top_p", "top_k": "temperature"}
"""Parameters of the body -> the field of `Options` whose rule they follow."""

_FIELDS: Final = RequestFields(
    __package__ or "",
    Places(
        media={"image": "image", "document": "document"},
        schema=("input_schema",),
        output=(("output_config", "format", "schema"), ("output_format", "schema")),
        judged=frozenset({"thinking.type"}),
    ),
    limits=LIMITS,
)


def check(body: Mapping[str, object], endpoint: Endpoint) -> list[Violation]:
    """List what the provider would refuse."""
    found = [*_check_tools(body, endpoint), *_check_history(body, endpoint)]
    found += check_options(body, endpoint)
    found += _check_system(body, endpoint)
    found += Turns(body, endpoint).check()
    found += _check_marks(body, endpoint)
    found += _check_combinations(body, endpoint)
    return _FIELDS.add(found, body, endpoint)


def check_options(body: Mapping[str, object], endpoint: Endpoint) -> Iterator[Violation]:
    """Find the options that the model would refuse."""
    checks = (_check_limits, _check_choice, _check_thinking, _check_sampling)
    return run_checks(checks, body, endpoint)


def _check_limits(body: Mapping[str, object], endpoint: Endpoint) -> Iterator[Violation]:
    # "max_tokens: Field required" (anthropic 2.8.0); 0 only warms the cache
    most = body.get("max_tokens")
    if not isinstance(most, int) or isinstance(most, bool) or most < 0:
        yield Violation(CheckCode.MAX_TOKENS_MISSING, ("max_tokens",), "max_tokens is required; set a number of tokens")
    elif 0 < endpoint.model.max_tokens < most:
        # "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens" (quoted in the tests of
        # many projects; Anthropic documentation: models overview)
        message = (
            f"{endpoint.model.id} writes at most {endpoint.model.max_tokens:,} tokens, not {most:,}; lower `max_tokens`"
        )
        yield Violation(CheckCode.MAX_TOKENS_TOO_LARGE, ("max_tokens",), message)

    # The lengths are in the rows of the providers, with their sources.
    yield from check_user_ids(body, endpoint.rules)


def _check_system(body: Mapping[str, object], endpoint: Endpoint) -> Iterator[Violation]:
    # Refused with "system: text content blocks must be non-empty" (litellm, read 2026-11)
    if endpoint.rules.refused_text == "none":
        return
    for index, block in objects_of(body.get("system")):
        if block.get("type") == "text" and not str(block.get("text", "")).strip():
            yield Violation(CheckCode.TEXT_BLANK, ("system", index), "the text is blank; remove the block")


# -- tools -------------------------------------------------------------------------------------------------------------


_OF_CHAT: Final = (
    "this is a tool of the Chat protocol; write what is in `function`, with `input_schema` for `parameters`"
)


def _check_tools(body: Mapping[str, object], endpoint: Endpoint) -> Iterator[Violation]:
    rules = endpoint.rules
    seen: set[str] = set()
    for index, tool in objects_of(body.get("tools")):
        path: Path = ("tools", index)
        name = tool.get("name")
        if isinstance(name, str) and name in seen:
            # "tools: Tool names must be unique." (LibreChat #13162, 2026-05-17)
            yield Violation(CheckCode.VALUE_DUPLICATE, (*path, "name"), f"two tools have the name {name!r}; rename one")
        if isinstance(name, str):
            seen.add(name)
        if tool.get("type") == "function" and "name" not in tool and "name" in object_of(tool.get("function")):
            yield Violation(CheckCode.TOOL_NAME_INVALID, (*path, "name"), _OF_CHAT)
        if tool.get("type") not in (None, "custom") or not ("name" in tool or "input_schema" in tool):
            continue
        # "tools.7.custom.name: String should match pattern" (tester-mcp-client #11)
        if not isinstance(name, str) or (
            rules.tool_name_alphabet and not matches_alphabet(name, rules.tool_name_alphabet, most=rules.tool_name_max)
        ):
            message = (
                f"{name!r} is not a valid tool name; use {rules.tool_name_alphabet}, at most {rules.tool_name_max}"
            )
            yield Violation(CheckCode.TOOL_NAME_INVALID, (*path, "name"), message)
        yield from _check_schema(tool, path, endpoint)


def _check_schema(tool: Mapping[str, object], path: Path, endpoint: Endpoint) -> Iterator[Violation]:
    schema, place = tool.get("input_schema"), (*path, "input_schema")
    if not isinstance(schema, Mapping):
        # "tools.0.custom.input_schema: Field required" (anthropic 2.8.0)
        yield Violation(CheckCode.SCHEMA_ROOT_INVALID, place, "the tool has no schema; add `input_schema`")
        return
    given = cast("Mapping[str, object]", schema)
    if endpoint.rules.schema_root_object and given.get("type") != "object":
        # "tools.0.custom.input_schema.type: Field required" / "Input should be 'object'" (anthropic 2.8.0)
        message = "the schema of a tool must have the type object; wrap it in one"
        yield Violation(CheckCode.SCHEMA_ROOT_INVALID, (*place, "type"), message)
    for key in sorted(endpoint.rules.values("root_keywords") & given.keys()):
        # "input_schema does not support oneOf, allOf, or anyOf at the top level" (Codewhale #4329)
        message = f"{key} is not supported at the top level of a schema; move it into a property"
        yield Violation(CheckCode.SCHEMA_ROOT_INVALID, (*place, key), message)


def _check_history(body: Mapping[str, object], endpoint: Endpoint) -> Iterator[Violation]:
    if body.get("tools") or not endpoint.rules.tools_with_history:
        return
    for index, turn in objects_of(body.get("messages")):
        for at, block in objects_of(turn.get("content")):
            if kind_of(block) in ("tool_use", "tool_result"):
                # "Requests which include `tool_use` or `tool_result` blocks must define tools." (browser-use #1243)
                path: Path = ("messages", index, "content", at)
                yield Violation(CheckCode.TOOLS_MISSING, path, "tool blocks need tools; declare them")
                return


def _check_choice(body: Mapping[str, object], endpoint: Endpoint) -> Iterator[Violation]:
    choice = object_of(body.get("tool_choice"))
    if not choice:
        return
    names = [tool.get("name") for _, tool in objects_of(body.get("tools"))]
    path: Path = ("tool_choice",)
    if choice.get("type") == "any" and not body.get("tools") and not body.get("mcp_servers"):
        # Refused: "tool_choice.any may only be specified while providing tools"; `auto` and `none` without tools are
        # answered (a probe published by an agent's author; found 2026-11-15)
        message = "a tool choice is set without tools; add tools, or remove it"
        yield Violation(CheckCode.TOOL_CHOICE_WITHOUT_TOOLS, path, message)
    elif choice.get("type") == "tool" and choice.get("name") not in names and not body.get("mcp_servers"):
        # Refused: "Tool 'get_weather' not found in provided tools" (the same)
        message = f"there is no tool {choice.get('name')!r}; name one of `tools`"
        yield Violation(CheckCode.TOOL_CHOICE_INVALID, (*path, "name"), message)
    if kind_of(choice) in _FORCED and "required" not in endpoint.rules.tool_choices:
        # 'tool_choice: type "tool" and "any" are not supported for this model.' (vercel/ai #21364, oh-my-pi #12939)
        message = f"{endpoint.model.id} does not support forced tool calls; use auto or none"
        yield Violation(CheckCode.TOOL_CHOICE_INVALID, path, message)
    thinks = object_of(body.get("thinking")).get("type") == "enabled"
    if thinks and kind_of(choice) in _FORCED and not endpoint.rules.forced_choice_with_thinking:
        # "Thinking may not be enabled when tool_choice forces tool use." (documentation: extended thinking)
        message = "a call cannot be forced while thinking is on; use auto, or turn thinking off"
        yield Violation(CheckCode.TOOL_CHOICE_WITH_THINKING, path, message)


# -- thinking and sampling ---------------------------------------------------------------------------------------------


def _check_thinking(body: Mapping[str, object], endpoint: Endpoint) -> Iterator[Violation]:
    thinking, rules = object_of(body.get("thinking")), endpoint.rules
    kind = text_of(thinking.get("type"))
    effort, place = object_of(body.get("output_config")).get("effort"), ("output_config", "effort")
    if kind in _THINKING_TYPES and rules.thinking_types is not None and kind not in rules.thinking_types:
        # `enabled` from Opus 4.7 on, `adaptive` before 4.6, `between_tools` on all but Sonnet 5.5 (anthropic 2.8.0:
        # ThinkingTypes; Anthropic documentation: thinking types by model, 2026-11)
        message = f"{endpoint.model.id} does not support thinking of type {kind!r}; use another type or remove it"
        yield Violation(CheckCode.THINKING_MODE_UNSUPPORTED, ("thinking", "type"), message)
    elif kind == "between_tools" and len(thinking) > 1:
        # "Extra inputs are not permitted": the type has no other field (anthropic 2.8.0)
        message = (
            f"thinking of type {kind!r} has no other fields; remove {', '.join(sorted(thinking.keys() - {'type'}))}"
        )
        yield Violation(CheckCode.THINKING_MODE_UNSUPPORTED, ("thinking",), message)
    efforts = rules.efforts_without_thinking if kind in ("between_tools", "disabled") else None
    if efforts is not None and effort is not None and text_of(effort) not in efforts:
        # Anthropic documentation: Claude Sonnet 5.5, Claude Haiku 5.5; anthropic 2.8.0: ThinkingTypes
        message = f"the effort {effort!r} needs thinking; lower it, or use adaptive thinking"
        yield Violation(CheckCode.EFFORT_UNSUPPORTED, place, message)
    if kind == "enabled":
        budget, most = thinking.get("budget_tokens"), body.get("max_tokens")
        path: Path = ("thinking", "budget_tokens")
        # "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024" (anthropic 2.8.0)
        if not isinstance(budget, int) or budget < rules.min_thinking_budget:
            if rules.reasoning_replay == "signed":  # other vendors of this protocol accept it
                message = f"a thinking budget must be at least {rules.min_thinking_budget} tokens; raise it"
                yield Violation(CheckCode.THINKING_BUDGET_INVALID, path, message)
        elif isinstance(most, int) and budget >= most and not body.get("tools"):
            # "`max_tokens` must be greater than `thinking.budget_tokens`"; with tools the budget may span several
            # rounds of interleaved thinking (documentation: extended thinking)
            message = f"max_tokens must be greater than the budget of {budget} tokens; raise it, or lower the budget"
            yield Violation(CheckCode.THINKING_BUDGET_INVALID, path, message)
    elif kind == "disabled" and "off" not in rules.thinking_levels:
        # Refused by Fable, Mythos and the 5.5 generation (pydantic-ai 2.66.0, live)
        message = f"{endpoint.model.id} does not support disabled thinking; remove `thinking`"
        yield Violation(CheckCode.THINKING_MODE_UNSUPPORTED, ("thinking", "type"), message)
    if effort is not None and (text_of(effort) not in _EFFORTS or "output_config.effort" in rules.refused_extra):
        # "This model does not support the effort parameter." (documentation: effort, from Opus 4.5 on)
        message = f"{endpoint.model.id} does not support the effort {effort!r}; remove it or choose another one"
        yield Violation(CheckCode.EFFORT_UNSUPPORTED, place, message)
    else:
        # "This model does not support effort level 'xhigh'. Supported levels: ..." (recorded traffic, 2026-11)
        yield from check_effort(effort, place, endpoint)


def _check_sampling(body: Mapping[str, object], endpoint: Endpoint) -> Iterator[Violation]:
    rules = endpoint.rules
    thinks = object_of(body.get("thinking")).get("type") in ("enabled", "adaptive")
    given = {key: body[key] for key in _SAMPLING if body.get(key) is not None}
    for key, value in given.items():
        if _SAMPLING[key] in rules.refused_options:
            # "`temperature` is deprecated for this model." (pi #7961)
            message = f"{endpoint.model.id} does not support {key}; remove it"
            yield Violation(CheckCode.OPTION_UNSUPPORTED, (key,), message)
        elif thinks and "temperature" in rules.refused_with_thinking and _conflicts_with_thinking(key, value):
            # "`temperature` may only be set to 1 when thinking is enabled"; top_p from 0.95 on; no top_k
            # (documentation: extended thinking, feature compatibility)
            message = f"{key} cannot be {value} while thinking is enabled; remove it"
            yield Violation(CheckCode.OPTION_WITH_THINKING, (key,), message)
    exclusive = [key for key in given if key in rules.exclusive_options]
    if len(exclusive) > 1:
        # "`temperature` and `top_p` cannot both be specified for this model" (litellm #15097, opencode #28930)
        message = f"{' and '.join(exclusive)} cannot both be set; remove one"
        yield Violation(CheckCode.OPTIONS_CONFLICT, (exclusive[1],), message)
    for option in ("temperature", "top_p"):
        # "temperature: Input should be less than or equal to 1" (documentation: messages)
        yield from check_range(option, given.get(option), (option,), rules)
    # "stop_sequences: each stop sequence must contain non-whitespace" (litellm #3286)
    yield from check_stops(body.get("stop_sequences"), ("stop_sequences",), rules)


def _conflicts_with_thinking(key: str, value: object) -> bool:
    if not isinstance(value, int | float):
        return False
    return {"temperature": value != 1, "top_p": not 0.95 <= value <= 1, "top_k": True}[key]


def _check_combinations(body: Mapping[str, object], endpoint: Endpoint) -> Iterator[Violation]:
    """Features that exclude each other (Anthropic documentation of each, read 2026-11-17)."""
    if endpoint.model.provider != PROVIDER:
        return
    messages = objects_of(body.get("messages"))
    documents = [
        (("messages", index, "content", at), object_of(block.get("citations")).get("enabled") is True)
        for index, turn in messages
        for at, block in objects_of(turn.get("content"))
        if block.get("type") == "document"
    ]
    if len({cited for _, cited in documents}) > 1:
        # "must be enabled on all or none of the documents" (documentation: citations)
        first: Path = next(path for path, cited in documents if not cited)
        message = "citations have to be enabled on all documents or on none; change it"
        yield Violation(CheckCode.CITATIONS_MIXED, first, message)
    tools = [tool for _, tool in objects_of(body.get("tools"))]
    if tools and all(tool.get("defer_loading") is True for tool in tools):
        # Tool search: "All tools have defer_loading set. At least one tool must be non-deferred."
        yield Violation(CheckCode.TOOLS_DEFERRED, ("tools",), "every tool is deferred; load at least one")
    edits = [edit.get("type") for _, edit in objects_of(object_of(body.get("context_management")).get("edits"))]
    if "clear_thinking_20251015" in edits[1:]:
        # Context editing: clear_thinking has to be listed first
        path: Path = ("context_management", "edits", edits.index("clear_thinking_20251015", 1))
        yield Violation(CheckCode.EDIT_MISPLACED, path, "`clear_thinking_20251015` has to be first; move it")


# -- cache marks -------------------------------------------------------------------------------------------------------


def _check_marks(body: Mapping[str, object], endpoint: Endpoint) -> Iterator[Violation]:
    key, most = CACHE_CONTROL, endpoint.rules.cache_marks
    marks = [
        (path, block, object_of(block[key])) for path, block in _blocks(body) if isinstance(block.get(key), Mapping)
    ]
    # The mark of the request is put on its last block, and has no effect where that one has the same. Where four blocks
    # are marked, or the last one has another lifetime, it is refused (documentation: prompt caching, automatic caching;
    # it uses one of the four slots: Anthropic's cookbook on prompt caching, read 2026-11-18).
    turns = [turn for _, turn in objects_of(body.get("messages"))]
    last = [block for _, block in objects_of(turns[-1].get("content"))][-1:] if turns else []
    marked = [object_of(block[key]) for block in last if isinstance(block.get(key), Mapping)]
    automatic = object_of(body.get(key))
    count = len(marks) + bool(automatic and (not marked or len(marks) >= most))
    if automatic and marked and count <= most and _lifetime(automatic) != _lifetime(marked[0]):
        message = f"the last block has a `{key}` with another ttl; remove one of them, or use one ttl for both"
        yield Violation(CheckCode.CACHE_MARK_ORDER, (key,), message)
    if most and count > most:
        # "A maximum of 4 blocks with cache_control may be provided. Found 5." (sub2api #176, #2013)
        message = f"{count} blocks have `{key}`; keep at most {most}"
        yield Violation(CheckCode.CACHE_MARKS_TOO_MANY, (*(marks[most][0] if len(marks) > most else ()), key), message)
    short = False
    for path, block, mark in marks:
        if block.get("type") == "text" and not str(block.get("text", "")).strip():
            # "cache_control cannot be set for empty text blocks" (claude-code #55302, vercel/eve #2753)
            message = "a blank text cannot be cached; remove the mark"
            yield Violation(CheckCode.CACHE_MARK_MISPLACED, (*path, key), message)
        if kind_of(block) in _THINKING:
            # Thinking cannot be marked itself (documentation: prompt caching)
            message = "thinking cannot have a mark; put it on another block"
            yield Violation(CheckCode.CACHE_MARK_MISPLACED, (*path, key), message)
        if path[0] == "tools" and any(block.get(beside) for beside in endpoint.rules.values("cache_mark_beside")):
            # A deferred tool is not part of the cached prefix (documentation: tool use with prompt caching)
            message = "a tool whose loading is deferred cannot have a mark; put it on another tool"
            yield Violation(CheckCode.CACHE_MARK_MISPLACED, (*path, key), message)
        if mark.get("ttl") != "1h":
            short = True
        elif short and endpoint.rules.has("cache_mark_order"):
            # A mark for an hour must not come after one for five minutes; tools, system, messages (headroom #2939)
            message = "a mark with ttl 1h comes after one with 5m; use one ttl for both"
            yield Violation(CheckCode.CACHE_MARK_ORDER, (*path, key), message)


def _lifetime(mark: Mapping[str, object]) -> object:
    return mark.get("ttl", "5m")


def _blocks(body: Mapping[str, object]) -> Iterator[tuple[Path, Mapping[str, object]]]:
    """Yield every block that may have a mark, in the order in which the prompt is read."""
    for root in ("tools", "system"):
        for index, block in objects_of(body.get(root)):
            yield (root, index), block
    for turn_index, turn in objects_of(body.get("messages")):
        for index, block in objects_of(turn.get("content")):
            path: Path = ("messages", turn_index, "content", index)
            for inner_index, inner in objects_of(block.get("content")):
                yield (*path, "content", inner_index), inner
            yield path, block
