"""Refusals of the wires on which Claude is served: calls and results, thinking, tools, sampling, cache marks.

Claude refuses the same on each of these wires, so each check is written once. A protocol says in a `BlockForm` where
its body has things, and reads its turns as runs of pieces; limits come from the rules of the target.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from segue.errors import Path
from segue.models.model_ids import is_claude
from segue.models.rules import Rules
from segue.protocols.families.tool_checks import (
    Declared,
    Pairs,
    check_call_id,
    check_forced_choice,
    check_text_after_calls,
    check_tools,
    refused_name,
)
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.checking import Found, objects_of
from segue.protocols.kit.codec import Endpoint, Violation
from segue.protocols.kit.efforts import check_effort
from segue.protocols.kit.json_values import Block, object_of
from segue.protocols.kit.ranges import check_range
from segue.protocols.kit.reading import text_of

Kind: TypeAlias = Literal["text", "thinking", "call", "result", "mark", "other"]

_EFFORTS: Final = frozenset({"low", "medium", "high", "xhigh", "max"})  # anthropic 2.8.0
_TYPES: Final = frozenset({"adaptive", "between_tools", "enabled"})  # `disabled` is the level `off`


class TurnPiece(NamedTuple):
    """A block of a turn: what it is, its path, and its fields."""

    kind: Kind
    path: Path
    fields: Block


class TurnRun:
    """A turn, or consecutive turns of one role that the server reads as one; `first` is the index of the first."""

    __slots__ = ("first", "pieces", "role")

    def __init__(self, role: object, first: int, pieces: Iterable[TurnPiece] = ()) -> None:
        self.role: object = role
        self.first: int = first
        self.pieces: list[TurnPiece] = [*pieces]

    def of(self, kind: Kind) -> list[TurnPiece]:
        """Return the pieces of one kind."""
        return [piece for piece in self.pieces if piece.kind == kind]

    def begins_with_thinking(self) -> bool:
        """Whether the first piece is thinking, or there is none."""
        return not self.pieces or self.pieces[0].kind == "thinking"


class BlockForm(NamedTuple):
    """Where a body has its settings and tools, and how its blocks name a call."""

    call_id: str
    result_id: str
    functions: Callable[[Block], Iterable[Declared]]
    tools: str
    choice: Path
    name: Path
    """The name of a forced tool, in the choice."""
    choices: Callable[[Block], Collection[object]]
    """The names that can be forced."""
    is_forced: Callable[[Block], bool]
    passed_on: Path
    """Where Claude's own fields are."""
    max_tokens: Path
    sampling: Mapping[str, Path]


def value_at(body: Block, path: Path) -> object:
    """Return the value at a path of a body."""
    value: object = body
    for key in path:
        value = object_of(value).get(str(key))
    return value


# -- turns -------------------------------------------------------------------------------------------------------------


class BlockTurns:
    """The turns of a body, checked; `runs` are what the server reads as one turn."""

    def __init__(self, body: Block, endpoint: Endpoint, form: BlockForm, runs: Sequence[TurnRun]) -> None:
        self.body: Block = body
        self.endpoint = endpoint
        self.rules: Rules = endpoint.rules
        self.form = form
        self.runs = runs

    def check_call(self, call: TurnPiece, role: object, *, is_modelled: bool) -> Found:
        """Check the fields of a call, and its place; `is_modelled` if a service model limits its name and length."""
        if role != "assistant":
            # "`tool_use` blocks can only be in `assistant` messages" (quoted in several agents' sources); "User
            # messages cannot contain tool uses" (AWS documentation: tool use)
            yield Violation(CheckCode.BLOCK_MISPLACED, call.path, "a tool call must be in an assistant turn; move it")
        rules, key, fields = self.rules, self.form.call_id, call.fields
        # "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'" (forgecode #1142); service model: ToolUseId
        yield from check_call_id(fields.get(key), (*call.path, key), rules, has_limit=is_modelled)
        name = fields.get("name")
        if (refused_name(name, rules) is not None) if is_modelled else not isinstance(name, str):
            # "tool_use block missing required 'name' field" (ollama #15815, 2026-04-25); service model: ToolName
            message = f"{name!r} is not a valid tool name; rename it"
            yield Violation(CheckCode.TOOL_NAME_INVALID, (*call.path, "name"), message)
        if not isinstance(fields.get("input"), Mapping):
            # "tool_use.input: Input should be a valid dictionary" (koda #501); "The format of the value at ...
            # toolUse.input is invalid. Provide a json object for the field" (aws-sdk-js-v3 #7330)
            message = "the input of a call must be an object; use {} where there is none"
            yield Violation(CheckCode.ARGUMENTS_INVALID, (*call.path, "input"), message)

    def check_pairs(self, *, results_first: bool) -> Found:
        """Check that each call has one result in the next turn, and each result a call in the turn before."""
        if not self.rules.paired_calls:
            return
        pairs = Pairs("in the next turn")
        for run in self.runs:
            is_late = False
            for piece in run.pieces if run.role == "user" else ():
                if piece.kind != "result":
                    is_late = results_first
                    continue
                # "unexpected `tool_use_id` found in `tool_result` blocks" (eca #209, cline #7225); "The number of
                # toolResult blocks at messages.2.content exceeds the number of toolUse blocks" (langchain-aws #192);
                # "each tool_use must have a single result"; "... contain duplicate Ids" (hindsight #4250)
                found = pairs.add_result(text_of(piece.fields.get(self.form.result_id)), piece.path)
                yield from found
                if is_late and not found:
                    # Results come first in their turn, else the calls count as unanswered (vercel/ai #8318, xum #1437;
                    # documentation: handle tool calls)
                    message = "a result comes after other content; put the results first"
                    yield Violation(CheckCode.RESULT_MISPLACED, piece.path, message)
            # "`tool_use` ids were found without `tool_result` blocks immediately after" (claude-code #1237); "Expected
            # toolResult blocks at messages.2.content for the following Ids: ..." (vercel/ai #13013)
            yield from pairs.end()
            if run.role == "assistant":
                for call in run.of("call"):
                    # "messages.1.content.1: `tool_use` ids must be unique" (claude-code #21317, 2026-01-27)
                    yield from pairs.add_call(text_of(call.fields.get(self.form.call_id)), call.path)
                if self.rules.calls_last and is_claude(self.endpoint.model.id):
                    # the refusal of a call without a result (vercel/ai #8318, #13013)
                    yield from check_text_after_calls((piece.kind, piece.path) for piece in run.pieces)
        yield from pairs.end()

    def check_error_media(self, path: Path, *, has_media: bool) -> Found:
        """Find media in the result of a failed call, where the target refuses it."""
        if has_media and self.rules.has("error_media"):
            # "all content must be type 'text' if 'is_error' is true" (vellum-assistant #18387, 2026-03-17)
            message = "an error result has media; keep its text alone"
            yield Violation(CheckCode.RESULT_MEDIA_UNSUPPORTED, path, message)

    def check_final_thinking(self, role: object, pieces: Sequence[TurnPiece]) -> Found:
        """Find a turn that ends in thinking."""
        ends = role == "assistant" and bool(pieces) and pieces[-1].kind == "thinking"
        if ends and self.rules.final_thinking != "allowed":
            # "The final block in an assistant message cannot be `thinking`" (forgecode #2107)
            message = "a turn cannot end in thinking; add a text after it"
            yield Violation(CheckCode.THINKING_LAST, pieces[-1].path, message)

    def check_last(self, path: Path, *, is_paused: bool = False) -> Found:
        """Find a last turn of the assistant, where the target refuses one."""
        if self.runs[-1].role == "assistant" and not self.rules.last_assistant and not is_paused:
            # "This model does not support assistant message prefill. The conversation must end with a user message."
            # (llxprt #1977, copilot-api #261, semantic-kernel #10281)
            message = "the last turn is the assistant's; add a user turn"
            yield Violation(CheckCode.LAST_TURN_WRONG, path, message)

    def check_cycle(self) -> Found:
        """Check the running cycle of calls and a last assistant turn, which have to be in the mode of the request.

        With a thinking budget they must begin with thinking; with thinking disabled they may not contain any. A request
        without `thinking` is not checked: it is refused only at times.
        """
        mode = _thinking(self.body, self.form).get("type")
        if mode not in ("enabled", "disabled") or not self.rules.thinking_before_calls:
            return
        answers = [place for place, run in enumerate(self.runs) if run.role == "assistant"]
        if mode == "disabled":
            after = self.runs[answers[-1] + 1 :] if answers else ()
            if answers and all(piece.kind in ("result", "mark") for run in after for piece in run.pieces):
                for piece in self.runs[answers[-1]].of("thinking"):
                    # "When thinking is disabled, an `assistant` message in the final position cannot contain
                    # `thinking`." (forgecode #1853, and #1195 at Vertex)
                    message = "the last assistant turn contains thinking while thinking is disabled; remove it"
                    yield Violation(CheckCode.THINKING_WHILE_OFF, piece.path, message)
            return
        final = self.runs[-1]
        if final.role == "assistant" and not final.begins_with_thinking():
            # "Expected `thinking` or `redacted_thinking`, but found `text`. When `thinking` is enabled, a final
            # `assistant` message must start with a thinking block." (aider #3820; documentation: prefill)
            message = "an answer cannot be begun while thinking is enabled; add a user turn, or disable thinking"
            yield Violation(CheckCode.THINKING_MISSING, final.pieces[0].path, message)
            return
        opener: TurnRun | None = None
        for run in reversed(self.runs):
            if run.role == "assistant" and run.of("call"):
                opener = run
            elif run.role != "user" or any(piece.kind != "result" for piece in run.pieces):
                break
        if opener is not None and not opener.begins_with_thinking():
            # "Expected `thinking` or `redacted_thinking`, but found `tool_use`." (opencode #3077)
            message = "a turn that calls tools must begin with thinking while thinking is enabled; disable thinking"
            yield Violation(CheckCode.THINKING_MISSING, opener.pieces[0].path, message)

    def check_declared(self) -> Found:
        """Find tool blocks in a request without tools, where the target refuses that."""
        if self.body.get(self.form.tools) or not self.rules.tools_with_history:
            return
        for run in self.runs:
            for piece in run.pieces:
                if piece.kind in ("call", "result"):
                    # "Requests which include `tool_use` or `tool_result` blocks must define tools." (browser-use
                    # #1243); "The toolConfig field must be defined when using toolUse ..." (vercel/ai #7537)
                    message = "tool blocks need tools; declare them"
                    yield Violation(CheckCode.TOOLS_MISSING, piece.path, message)
                    return


# -- tools and settings ------------------------------------------------------------------------------------------------


def check_declared_tools(body: Block, endpoint: Endpoint, form: BlockForm) -> Found:
    """Check the names and the schemas of tools.

    "tools: Tool names must be unique." (LibreChat #13162, 2026-05-17); "tools.7.custom.name: String should match
    pattern" (tester-mcp-client #11); "tools.0.custom.input_schema: Field required", "input_schema.type: Input should be
    'object'" (anthropic 2.8.0); service model: ToolName; "inputSchema.json.type must be one of the following: object"
    (AWS documentation: tool use).
    """
    yield from check_tools(form.functions(body), endpoint.rules, is_unique=True)


def check_choice(body: Block, endpoint: Endpoint, form: BlockForm) -> Found:
    """Check a forced tool."""
    choice, rules = object_of(value_at(body, form.choice)), endpoint.rules
    if not form.is_forced(choice):
        return
    name = value_at(choice, form.name)
    if name is not None and name not in form.choices(body) and not body.get("mcp_servers"):
        # "Tool 'get_weather' not found in provided tools" (a probe published by an agent's author; found 2026-11-15)
        message = f"there is no tool {name!r}; name one of the tools"
        yield Violation(CheckCode.TOOL_CHOICE_INVALID, (*form.choice, *form.name), message)
    if "required" not in rules.tool_choices:
        # 'tool_choice: type "tool" and "any" are not supported for this model.' (vercel/ai #21364, oh-my-pi #12939);
        # "This model doesn't support the toolConfig.toolChoice.any field" (langchain-aws #620)
        message = f"{endpoint.model.id} does not support forced tool calls; use auto or none"
        yield Violation(CheckCode.TOOL_CHOICE_INVALID, form.choice, message)
    unasked = "enabled" if rules.thinks_unasked else None
    is_thinking = _thinking(body, form).get("type", unasked) == "enabled"
    yield from check_forced_choice(rules, form.choice, is_thinking=is_thinking)


def _thinking(body: Block, form: BlockForm) -> Block:
    return object_of(value_at(body, (*form.passed_on, "thinking")))


def check_thinking(body: Block, endpoint: Endpoint, form: BlockForm) -> Found:
    """Check the thinking and the effort that a request asks for."""
    rules, model, thinking = endpoint.rules, endpoint.model, _thinking(body, form)
    root: Path = (*form.passed_on, "thinking")
    kind = text_of(thinking.get("type"))
    if kind in _TYPES and rules.thinking_types is not None and kind not in rules.thinking_types:
        # `enabled` from Opus 4.7 on, `adaptive` before 4.6, `between_tools` on all but Sonnet 5.5 (anthropic 2.8.0;
        # documentation: thinking types by model, 2026-11; vscode #322706, 2026-06-24)
        message = f"{model.id} does not support thinking of type {kind!r}; use another type or remove it"
        yield Violation(CheckCode.THINKING_MODE_UNSUPPORTED, (*root, "type"), message)
    elif kind == "between_tools" and len(thinking) > 1:
        # "Extra inputs are not permitted": the type has no other field (anthropic 2.8.0)
        others = ", ".join(sorted(thinking.keys() - {"type"}))
        message = f"thinking of type {kind!r} has no other fields; remove {others}"
        yield Violation(CheckCode.THINKING_MODE_UNSUPPORTED, root, message)
    elif kind == "disabled" and "off" not in rules.thinking_levels:
        # Refused by Fable, Mythos and the 5.5 generation (pydantic-ai 2.66.0, live)
        message = f"{model.id} does not support disabled thinking; remove `thinking`"
        yield Violation(CheckCode.THINKING_MODE_UNSUPPORTED, (*root, "type"), message)
    elif kind == "enabled" and rules.reasoning_replay == "signed":  # other vendors of these wires accept any budget
        budget, most, path = thinking.get("budget_tokens"), value_at(body, form.max_tokens), (*root, "budget_tokens")
        if not isinstance(budget, int) or budget < rules.min_thinking_budget:
            # "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024" (anthropic 2.8.0)
            message = f"a thinking budget must be at least {rules.min_thinking_budget} tokens; raise it"
            yield Violation(CheckCode.THINKING_BUDGET_INVALID, path, message)
        elif isinstance(most, int) and budget >= most and not body.get(form.tools):
            # "`max_tokens` must be greater than `thinking.budget_tokens`"; with tools the budget may span several
            # rounds of interleaved thinking (documentation: extended thinking)
            message = f"the limit of output must exceed the budget of {budget} tokens; raise it, or lower the budget"
            yield Violation(CheckCode.THINKING_BUDGET_INVALID, path, message)
    yield from _check_effort(body, endpoint, form, kind)


def _check_effort(body: Block, endpoint: Endpoint, form: BlockForm, kind: str | None) -> Found:
    rules, place = endpoint.rules, (*form.passed_on, "output_config", "effort")
    effort = value_at(body, place)
    allowed = rules.efforts_without_thinking if kind in ("between_tools", "disabled") else None
    if effort is not None and allowed is not None and text_of(effort) not in allowed:
        # Anthropic documentation: Claude Sonnet 5.5, Claude Haiku 5.5; anthropic 2.8.0: ThinkingTypes
        message = f"the effort {effort!r} needs thinking; lower it, or use adaptive thinking"
        yield Violation(CheckCode.EFFORT_UNSUPPORTED, place, message)
    if effort is not None and (text_of(effort) not in _EFFORTS or "output_config.effort" in rules.refused_extra):
        # "This model does not support the effort parameter." (documentation: effort, from Opus 4.5 on)
        message = f"{endpoint.model.id} does not support the effort {effort!r}; remove it or choose another one"
        yield Violation(CheckCode.EFFORT_UNSUPPORTED, place, message)
    else:
        # "This model does not support effort level 'xhigh'. Supported levels: ..." (recorded traffic, 2026-11)
        yield from check_effort(effort, place, endpoint)


def check_sampling(body: Block, endpoint: Endpoint, form: BlockForm) -> Found:
    """Check sampling parameters: each alone, with thinking, and two of them together."""
    rules = endpoint.rules
    thinks = _thinking(body, form).get("type") in ("enabled", "adaptive")
    given = {option: value for option, path in form.sampling.items() if (value := value_at(body, path)) is not None}
    for option, value in given.items():
        path = form.sampling[option]
        like = "temperature" if option == "top_k" else option
        if like in rules.refused_options:
            # "`temperature` is deprecated for this model." (pi #7961)
            message = f"{endpoint.model.id} does not support {path[-1]}; remove it"
            yield Violation(CheckCode.OPTION_UNSUPPORTED, path, message)
        elif thinks and like in rules.refused_with_thinking and not _fits_thinking(option, value):
            # "`temperature` may only be set to 1 when thinking is enabled"; top_p from 0.95 on; no top_k
            # (documentation: extended thinking, feature compatibility)
            message = f"{path[-1]} cannot be {value} while thinking is enabled; remove it"
            yield Violation(CheckCode.OPTION_WITH_THINKING, path, message)
        if option != "top_k":
            # "temperature: Input should be less than or equal to 1" (documentation: messages); service model: 0 to 1
            yield from check_range(option, value, path, rules)
    exclusive = [option for option in given if option in rules.exclusive_options]
    if len(exclusive) > 1:
        # "`temperature` and `top_p` cannot both be specified for this model" (litellm #15097, opencode #28930)
        message = f"{' and '.join(exclusive)} cannot both be set; remove one"
        yield Violation(CheckCode.OPTIONS_CONFLICT, form.sampling[exclusive[1]], message)


def _fits_thinking(option: str, value: object) -> bool:
    if not isinstance(value, int | float):
        return True
    return value == 1 if option == "temperature" else option == "top_p" and 0.95 <= value <= 1


def check_blank_system(body: Block, endpoint: Endpoint) -> Found:
    """Find blank texts in the instructions."""
    for index, block in objects_of(body.get("system")) if endpoint.rules.refused_text != "none" else ():
        if "text" in block and not str(block["text"]).strip():
            # "system: text content blocks must be non-empty" (litellm, read 2026-11; langchain-aws #192)
            yield Violation(CheckCode.TEXT_BLANK, ("system", index), "the text is blank; remove the block")


def check_mark_order(marks: Iterable[tuple[Path, Block]], endpoint: Endpoint) -> Found:
    """Find a cache mark with a longer lifetime after one with a shorter."""
    is_short = False
    for path, mark in marks if endpoint.rules.has("cache_mark_order") else ():
        if mark.get("ttl") != "1h":
            is_short = True
        elif is_short:
            # A mark for an hour must not come after one for five minutes; tools, system, messages (headroom #2939)
            message = "a mark with ttl 1h comes after one with 5m; use one ttl for both"
            yield Violation(CheckCode.CACHE_MARK_ORDER, path, message)
