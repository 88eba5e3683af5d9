"""Pass 8: fit tools and options to the target.

Facts:
- Newer models answer 400 to sampling parameters and to thinking levels they do not have.   (Anthropic documentation,
  2026-11; pi-ai clamps levels)
- Tools that a provider runs itself are refused by others; `server_tools` next to this file replaces them.
                                                                                      (vercel/ai #8132)
- Some targets require a definition of every tool that the history uses.  (vercel/ai #7537, pydantic-ai #1966,
  strands #998)
- One provider accepts a strict tool with optional properties, another refuses it.
                                                           (Anthropic's 200 and OpenAI's 400, both recorded, 2026)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from operator import is_
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import Extra
from segue.conversation.context import Context, Options, Tool, ToolDefinition
from segue.conversation.shared_options import SharedOptions
from segue.errors import Path
from segue.models.rules import Rules
from segue.projection.passes.cache_marks import move_tool_marks
from segue.projection.passes.extra import Shared, is_format_alone, kept_extra, lost_fields, removal_of, share_fields
from segue.projection.passes.held_content import lost_references, note_reference
from segue.projection.passes.ids import digest
from segue.projection.passes.names import wire_name
from segue.projection.passes.namespaces import flat_functions, load_called
from segue.projection.passes.schemas import fit_schema, fit_strict
from segue.projection.passes.server_tools import has_server_tools, replace_server_tools
from segue.projection.passes.text import is_clean_extra
from segue.projection.passes.thinking import fit_thinking, is_thinking_off
from segue.projection.report import Change, ChangeCode, Loss
from segue.projection.workspace.namespace_table import NO_NAMESPACES, find_namespaces
from segue.projection.workspace.surrogates import AnyValue, clean_value, is_clean_value, only_joins
from segue.projection.workspace.workspace import FittedTools, Target, ToolsKey, Workspace
from segue.protocols.kit.facts import FunctionName
from segue.protocols.kit.held_content import Reference
from segue.protocols.kit.json_values import Block, object_of
from segue.protocols.kit.ranges import fits_seed, fits_stop, fits_user_id, range_of
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.schemas import is_closed
from segue.protocols.property_names import place_of, rename_properties
from segue.protocols.shared_fields import OF_TOOLS, find_unplaced, is_freeform, place_options, share_strictness

_NO_OPTIONS: Final = Options()
_NO_TOOLS: Final[ToolsKey] = ((), None, False, ())
_HASHED: Final = "the SHA-256 of the id, because the target does not accept the id itself"
_UNSUPPORTED: Final = "the target does not support it"
_ALLOWED: Final = "allowed_tools"
_UNREAD: Final = frozenset(
    {"user_id", "session_id", "cache_retention", "user", "safety_identifier", "prompt_cache_key", "metadata", "store"}
    | {"prompt_cache_retention", "service_tier", "serviceTier", "labels", "requestMetadata"}
)
"""Options and fields of bodies that a provider reads and no model does: without them, no content is lost."""
_SAMPLING: Final = frozenset({"temperature", "top_p"})
"""Providers that refuse these use the value 1, so removing a 1 loses nothing.
(OpenAI: "Only the default (1) value is supported", qwen-code #921 of 2025-10; recorded: gpt-5-nano took a 1)"""


def fit_settings(workspace: Workspace) -> None:
    """Fit tools and options; only the last segment of a conversation has them."""
    if workspace.settings is None:
        return
    asked, sources = workspace.settings.options, dict[str, str]()
    if asked.shared is not None:
        asked = _with_shared(workspace, asked, asked.shared, sources)
    declared, asked = share_strictness(workspace.target.model, workspace.settings.tools, asked)
    given, names = _only_allowed(workspace, declared, asked)
    fitted = _fit_tools(workspace, declared, given.extra, names)
    tools = _add_called(workspace, fitted.tools)
    options = given if fitted.extra is given.extra else replace(given, extra=fitted.extra)
    workspace.settings.options = options
    if options is not given or options != _NO_OPTIONS or _sets_options(workspace.target.rules):
        workspace.settings.options = _Options(workspace, tools, sources).fit(options)
    workspace.settings.tools = tools


def _with_shared(workspace: Workspace, options: Options, shared: SharedOptions, sources: dict[str, str]) -> Options:
    """Write the options that several wires have where the target has them, and report the others.

    `sources` gets the keys of the body that hold one, with its name.
    """
    placed = place_options(shared, options.extra, workspace.target.model)
    sources |= placed.sources
    path = ("options", "shared")
    for difference in placed.differences:
        workspace.note(ChangeCode.OPTION_CLAMPED, path, Loss.NONE, difference)
    extra = placed.extra
    for name, value in placed.lost.items():
        if name in OF_TOOLS:  # they are in the tools then
            extra = {**extra, **OF_TOOLS[name](value)}
            continue
        loss = Loss.OPAQUE if name in _UNREAD else Loss.CONTENT
        workspace.note(
            ChangeCode.OPTION_REMOVED, (*path, name), loss, f"{removal_of({name: value})[1]}; {_UNSUPPORTED}"
        )
    return replace(options, shared=None, extra=extra or None)


def _sets_options(rules: Rules) -> bool:
    """Whether a request without options may get some: no thinking, a stream, keys of the body."""
    is_off = rules.functions_with_thinking == "off" or (rules.thinks_unasked and rules.has("thinking_unstreamed"))
    return is_off or not rules.unstreamed or rules.has("needed_fields")


def is_thinking(options: Options) -> bool:
    """Whether the options enable thinking."""
    return options.thinking not in (None, "off", 0)


def _only_allowed(
    workspace: Workspace, tools: tuple[Tool, ...], given: Options
) -> tuple[Options, frozenset[str] | None]:
    """Return the names of the only tools that may be called, where the target has no field for them, else None.

    The others are not sent then. The options are returned without the field.
    """
    found = find_unplaced(_ALLOWED, given.extra, workspace.target.model) if tools and given.extra else None
    if found is None:
        return given, None
    names, extra = frozenset(cast("list[str]", found[0]["names"])), found[1] or None
    functions = [tool.name for tool in tools if tool.kind == "function"]
    if len(functions) < len(tools) or names.isdisjoint(functions):
        return given, None
    detail = f"allowed_tools: only {', '.join(sorted(names))}, because no other tool is sent"
    workspace.note(ChangeCode.OPTION_CLAMPED, ("options", "extra"), Loss.NONE, detail)
    choice = given.tool_choice
    if found[0]["mode"] == "required" and choice is None:
        choice = "required"
        workspace.note(ChangeCode.OPTION_CLAMPED, ("options", "tool_choice"), Loss.NONE, "required: of allowed_tools")
    return replace(given, extra=extra, tool_choice=choice), names


def _fit_tools(
    workspace: Workspace, given: tuple[Tool, ...], extra: Extra | None, names: frozenset[str] | None
) -> FittedTools:
    """Fit the tools, only those of some `names`; the target caches the result for the same tuple."""
    prefix_state, fitted = workspace.prefix_state, workspace.target.fitted_tools
    if not given and not prefix_state.loaded and not has_server_tools(given, extra):
        return FittedTools(_NO_TOOLS, given, extra, [], {})
    key = (given, extra, bool(prefix_state.called), tuple(prefix_state.loaded))
    if fitted is None or names is not None or not fitted.is_for(key):
        tools = _Tools(workspace.target, extra, has_calls=key[2], loaded=prefix_state.loaded, names=names)
        out = tools.fit(given)
        fitted = FittedTools(key, out, tools.extra, tools.changes, tools.wire_names)
        workspace.target.fitted_tools = fitted if names is None else None
    workspace.changes += fitted.changes
    if fitted.wire_names:  # another dict: the names in the history are needed without those of the tools
        prefix_state.wire_names = {**prefix_state.wire_names, **fitted.wire_names}
    return fitted


def _add_called(workspace: Workspace, tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
    """Declare the tools that only the history uses, if the target requires it."""
    rules = workspace.target.rules
    if not (rules.tools and rules.tools_with_history):
        return tools
    names = {tool.name for tool in tools if tool.kind == "function"}
    added: list[Tool] = []
    called = list(workspace.prefix_state.called)
    if not tools and not called and (native := workspace.prefix_state.native_name) is not None:
        called.append(wire_name(native, rules))  # any definition will do: the provider ran the tool itself
    for name in called:
        if name not in names:
            workspace.note(ChangeCode.TOOL_ADDED, ("tools",), Loss.NONE, name)
            schema = {"type": "object", "properties": dict[str, object]()}
            description = workspace.target.policy.texts.tool_gone
            added.append(ToolDefinition(name=name, description=description, parameters=schema))
    return (*tools, *added) if added else tools


class _Tools:
    """Fits the tools of a request to one target."""

    def __init__(
        self,
        target: Target,
        extra: Extra | None,
        *,
        has_calls: bool,
        loaded: Mapping[FunctionName, None],
        names: frozenset[str] | None,
    ) -> None:
        self.target = target
        self.rules = target.rules
        self.extra = extra
        self.has_calls = has_calls
        self.loaded = loaded
        self.names = names
        self.changes: list[Change] = []
        self.wire_names: dict[str, str] = {}
        self.strict_tools = 0
        self.is_searched = False

    def note(self, code: ChangeCode, path: Path, loss: Loss, detail: str = "") -> None:
        self.changes.append(Change(code=code, path=path, loss=loss, detail=detail))

    def fit(self, given: tuple[Tool, ...]) -> tuple[Tool, ...]:
        """Fit the tools; the same tuple when nothing changes."""
        out: list[Tool] = []
        places: list[int] = []
        names: set[str] = set()
        for index, tool in self.expanded(given):
            fitted = self.one(tool, ("tools", index))
            if fitted is None:
                continue
            name = fitted.name if fitted.kind == "function" else _name_of(fitted.definition)
            if name is not None:
                if name in names:
                    self.remove(("tools", index), "another tool has the same name")
                    continue
                names.add(name)
            if self.rules.max_tools and len(out) >= self.rules.max_tools:
                self.remove(("tools", index), f"the target accepts {self.rules.max_tools} tools")
                continue
            out.append(fitted)
            places.append(index)
        if self.rules.has("cache_mark_beside") or self.rules.has("cache_mark_places"):
            self.changes += move_tool_marks(out, places, self.rules, self.target.model.protocol)
        return given if len(out) == len(given) and all(map(is_, out, given)) else tuple(out)

    def expanded(self, given: tuple[Tool, ...]) -> Iterable[tuple[int, Tool]]:
        """Replace namespaces and server tools; give every tool with the index of the one that it replaces."""
        if not self.rules.tools or not (self.loaded or has_server_tools(given, self.extra)):
            return enumerate(given)
        flat = [(index, one) for index, tool in enumerate(given) for one in self.flattened(index, tool)]
        replaced = replace_server_tools(self.target, flat, self.extra, has_calls=self.has_calls)
        self.changes += replaced.changes
        self.extra = replaced.extra
        self.is_searched = any(
            tool.kind == "native" and "tool_search" in str(tool.definition) for _, tool in replaced.tools
        )
        return replaced.tools

    def flattened(self, index: int, tool: Tool) -> Iterable[Tool]:
        """Return the functions of a namespace where the target has none; send functions in full that were called."""
        protocol = tool.protocol if tool.kind == "native" else self.target.model.protocol
        codec = find_namespaces(protocol)
        if codec is None:
            return (tool,)
        if protocol == self.target.model.protocol and self.rules.tool_namespaces:
            loaded = load_called(tool, self.loaded, codec)
            if loaded is not tool:
                self.note(ChangeCode.TOOL_LOADED, ("tools", index), Loss.NONE)
            return (loaded,)
        space = codec.read(tool) if tool.kind == "native" else None
        if space is None:
            return (tool,)
        functions = flat_functions(space, self.target.namespaces or NO_NAMESPACES, self.rules)
        self.note(ChangeCode.NAMESPACE_FLATTENED, ("tools", index), Loss.NONE, space.name)
        self.note(ChangeCode.NAMESPACE_FLATTENED, ("tools",), Loss.NONE, ", ".join(one.name for _, one in functions))
        self.wire_names.update((given, function.name) for given, function in functions if given != function.name)
        return [function for _, function in functions]

    def remove(self, path: Path, why: str) -> None:
        self.note(ChangeCode.TOOL_REMOVED, path, Loss.CONTENT, why)

    def one(self, tool: Tool, path: Path) -> Tool | None:
        if self.names is not None and tool.kind == "function" and tool.name not in self.names:
            self.note(ChangeCode.TOOL_REMOVED, path, Loss.NONE, "allowed_tools does not name it")
            return None
        if not self.rules.tools:
            self.remove(path, "the target does not support tools")
            return None
        if tool.kind == "native":
            if tool.protocol != self.target.model.protocol:
                self.remove(path, f"only {tool.protocol} supports it")
                return None
            kept = self.keep_supported_extra(replace(tool, definition=self.clean(tool.definition, path)), tool, path)
            if self.target.acceptance.refuses_tool(kept, None):
                self.remove(path, "the target refuses its definition")
                return None
            return kept
        description, cleaned = self.clean(tool.description, path), self.clean(tool.parameters, path)
        name = wire_name(tool.name, self.rules)
        if name != tool.name:
            self.note(ChangeCode.NAME_CHANGED, (*path, "name"), Loss.NONE, name)
            self.wire_names[tool.name] = name
        parameters, loss = fit_schema(cleaned, self.rules)
        if parameters is not cleaned:
            self.note(ChangeCode.TOOL_SCHEMA, (*path, "parameters"), loss)
        if "property_names" in self.rules.rows:
            parameters, renamed = rename_properties(parameters, self.rules, digest)
            for given, made in renamed.items():
                self.note(ChangeCode.NAME_CHANGED, (*path, "parameters", "properties", given), Loss.NONE, made)
                self.wire_names[place_of(tool.name, given)] = place_of(name, made)
        is_same = name == tool.name and description is tool.description and parameters is tool.parameters
        strict = tool.strict
        if strict:
            why, parameters = self.strict_schema(parameters, path)
            is_same = is_same and parameters is tool.parameters
            if why:
                self.note(ChangeCode.TOOL_SCHEMA, (*path, "strict"), Loss.CONTENT, why)
                strict, is_same = None, False
        if is_same and tool.extra is None:
            return tool  # the common case; comparing two schemas would cost more than everything above
        fitted = replace(tool, name=name, description=description, parameters=parameters, strict=strict)
        return self.keep_supported_extra(fitted, tool, path)

    def strict_schema(self, schema: Mapping[str, object], path: Path) -> tuple[str, Mapping[str, object]]:
        """Return the schema of a strict tool; with the reason if it cannot be strict."""
        if not self.target.dialect.strict_tools and "strict" in self.target.protocol.not_carried:
            return "the target has no strict tools", schema
        self.strict_tools += 1
        if 0 < (most := self.rules.most("strict_tools")) < self.strict_tools:
            return f"the target accepts {most} strict tools", schema
        fitted = fit_strict(schema, self.rules)
        if fitted is None:
            return "strict mode does not support its schema", schema
        parameters, loss, moved = fitted
        if parameters is not schema:
            detail = f"moved to the description: {moved}" if moved else "closed for strict mode"
            self.note(ChangeCode.TOOL_SCHEMA, (*path, "parameters"), loss, detail)
        return "", parameters

    def clean(self, value: AnyValue, path: Path) -> AnyValue:
        cleaned = clean_value(value)
        if cleaned is not value:
            self.note(ChangeCode.SURROGATE_REPLACED, path, Loss.NONE if only_joins(value) else Loss.CONTENT)
        return cleaned

    def may_share(self, extra: Extra) -> bool:
        """Whether fields of another protocol may be sent: a function is held back only where one can search for it."""
        return self.is_searched or not any("defer_loading" in part for part in extra.values())

    def keep_supported_extra(self, fitted: Tool, given: Tool, path: Path) -> Tool:
        """Remove `extra` of other protocols; the given tool when nothing changes."""
        extra = given.extra
        if extra is not None:
            shared = share_fields(extra, "tool", self.target.model) if self.may_share(extra) else Shared(extra)
            kept = kept_extra(shared.rest, self.target.model.protocol, self.rules, same_provider=True)
            if self.target.acceptance.has_form(kept):
                plain = self.target.acceptance.without_form(kept)
                if self.target.acceptance.refuses_tool(replace(fitted, extra=kept), replace(fitted, extra=plain)):
                    kept = plain
            if kept is not shared.rest:
                self.note(ChangeCode.EXTRA_REMOVED, path, *removal_of(lost_fields(shared.rest, kept)))
            kept = shared.put_into(kept, self.target.model.protocol)
            if is_freeform(extra) and not is_freeform(kept, (self.target.model.protocol,)):
                self.note(
                    ChangeCode.TOOL_SCHEMA, path, Loss.CONTENT, "a function with the text `input`: no freeform tools"
                )
                kept = {key: part for key, part in (kept or {}).items() if key != self.target.model.protocol} or None
            if kept is not None and not is_clean_extra(kept, self.target.model.protocol):
                kept = self.clean(kept, path)
            fitted = replace(fitted, extra=kept)
        return given if fitted == given else fitted


class _Options:
    """Fits the options of a request to one target."""

    def __init__(self, workspace: Workspace, tools: Sequence[Tool], sources: Mapping[str, str]) -> None:
        self.workspace = workspace
        self.target = workspace.target
        self.model = workspace.target.model
        self.rules = workspace.target.rules
        self.wire_names = workspace.prefix_state.wire_names
        self.tools = tools
        self.note = workspace.note
        self.given = _NO_OPTIONS
        self.is_off = False
        self.changed: dict[str, object] = {}
        self.sources = sources
        """Keys of the body that hold a field of another protocol, or an option of any -> its own name."""

    def fit(self, given: Options) -> Options:
        """Fit the options; the same object when nothing changes."""
        self.given = given
        if given.extra is not None and replace(given, extra=None) == _NO_OPTIONS and not _sets_options(self.rules):
            self.fit_extra(given, thinks=False)
            return replace(given, **self.changed) if self.changed else given
        if not self.rules.unstreamed and not given.stream:
            self.clamp("stream", value=True, loss=Loss.NONE, detail="True: the target answers only in a stream")
        self.fit_thinking(given)
        self.disable_thinking(given)
        self.raise_minimal(given)
        fitted = replace(given, **self.changed)
        thinks = is_thinking(fitted)
        has_off = self.model.reasoning or self.rules.functions_with_thinking == "off"
        self.is_off = has_off and fitted.thinking in ("off", 0)
        self.remove_refused(given, thinks=thinks)
        self.fit_numbers(given)
        self.fit_tool_choice(given, thinks=thinks or (fitted.thinking is None and self.rules.thinks_unasked))
        self.fit_extra(given, thinks=thinks)
        if self.rules.has("needed_fields"):
            self.add_needed(given)
        self.clean(given)
        return replace(given, **self.changed) if self.changed else given

    def remove(self, name: str, why: str, loss: Loss = Loss.CONTENT) -> None:
        loss = Loss.OPAQUE if name in _UNREAD and loss == Loss.CONTENT else loss
        self.note(ChangeCode.OPTION_REMOVED, ("options", name), loss, f"{self.named(name)}; {why}")
        self.changed[name] = None

    def named(self, name: str) -> str:
        """Return an option with the start of its value, for the report."""
        return removal_of({name: getattr(self.given, name)})[1]

    def is_unchanged(self, given: Options, name: str) -> bool:
        """Whether an option is set and has not been changed."""
        return getattr(given, name) is not None and name not in self.changed

    def fit_thinking(self, given: Options) -> None:
        if given.thinking is None or "thinking" in self.rules.refused_options:
            return
        for step in fit_thinking(given.thinking, self.target, given.max_tokens):
            is_removed = step.code == ChangeCode.OPTION_REMOVED
            detail = f"{self.named('thinking')}; {step.detail}" if is_removed else step.detail
            self.note(step.code, ("options", "thinking"), step.loss, detail)
            self.changed["thinking"] = step.thinking

    def disable_thinking(self, given: Options) -> None:
        """Disable thinking where the target refuses functions with it; they matter more than the reasoning."""
        allowed = self.rules.functions_with_thinking
        fitted = self.changed.get("thinking", given.thinking)
        thinks = self.rules.thinks_unasked if fitted is None else fitted not in ("off", 0)
        if thinks and not self.changed.get("stream", given.stream) and self.rules.has("thinking_unstreamed"):
            self.clamp("thinking", "off", Loss.CONTENT, "off: the target thinks only in a stream")
            return
        if fitted is None and thinks and given.tool_choice not in (None, "auto", "none") and self.has_off(given):
            self.clamp("thinking", "off", Loss.CONTENT, "off: the target refuses a forced tool while thinking is on")
            return
        if allowed == "allowed" or fitted in ("off", 0) or (fitted is None and allowed == "unset"):
            return
        if any(tool.kind == "function" for tool in self.tools):
            self.clamp("thinking", "off", Loss.CONTENT, "off: the target refuses functions while thinking is on")

    def has_off(self, given: Options) -> bool:
        """Whether thinking can be disabled; otherwise no tool can be forced."""
        return self.model.reasoning and is_thinking_off(replace(given, thinking="off"), self.target)

    def raise_minimal(self, given: Options) -> None:
        """Raise the level `minimal` where the target refuses its own tools with it."""
        if self.changed.get("thinking", given.thinking) != "minimal" or "thinking" in self.rules.refused_options:
            return
        if self.rules.has("minimal_with_server_tools") and any(tool.kind == "native" for tool in self.tools):
            self.clamp("thinking", "low", Loss.NONE, "low: the target refuses its own tools beside minimal")

    def remove_refused(self, given: Options, *, thinks: bool) -> None:
        chosen: str | None = None
        for name in given.__struct_fields__:
            if getattr(given, name) is None or name == "extra" or name in self.changed:
                continue
            why = self.refusal(name, thinks=thinks)
            if why is not None:
                is_default = (name in _SAMPLING and getattr(given, name) == 1) or (
                    name == "stream" and not given.stream
                )
                self.remove(name, why, Loss.NONE if is_default else Loss.CONTENT)
            elif name in self.rules.exclusive_options:
                if chosen is None:
                    chosen = name
                else:
                    self.remove(name, f"the target refuses it together with {chosen}")

    def refusal(self, name: str, *, thinks: bool) -> str | None:
        """Return the reason why the target refuses an option; None if it accepts it."""
        if name in self.rules.refused_options:
            return _UNSUPPORTED
        if name == "cache_retention" and self.given.cache_retention == "long":
            dialect = self.target.dialect
            return _UNSUPPORTED if dialect.cache_format == "openai-key" and dialect.cache_long == "none" else None
        if thinks and name in self.rules.refused_with_thinking:
            return "the target refuses it while thinking is on"
        if not self.is_off and name in self.rules.refused_unless_off:
            return 'the target refuses it unless thinking is "off"'
        return None

    def clamp(self, name: str, value: object, loss: Loss, detail: str) -> None:
        self.note(ChangeCode.OPTION_CLAMPED, ("options", name), loss, detail)
        self.changed[name] = value

    def fit_numbers(self, given: Options) -> None:
        rules = self.rules
        if given.temperature is not None and self.is_unchanged(given, "temperature"):
            self.fit_range("temperature", given.temperature)
        heat = self.changed.get("temperature", given.temperature)
        if given.top_p is not None and self.is_unchanged(given, "top_p"):
            if heat == 0 and given.top_p != 1 and rules.has("greedy_top_p"):
                self.remove("top_p", "it has no effect at a temperature of 0, and the target refuses it", Loss.NONE)
            else:
                self.fit_range("top_p", given.top_p)
        if given.seed is not None and self.is_unchanged(given, "seed") and not fits_seed(given.seed, rules):
            self.remove("seed", "the target does not accept this number")
        if given.max_tokens is not None and self.is_unchanged(given, "max_tokens"):
            self.fit_limit(given.max_tokens)
        if given.stop is not None and self.is_unchanged(given, "stop"):
            self.fit_stop(given.stop)
        if given.session_id is not None and self.is_unchanged(given, "session_id"):
            longest = rules.most("session_id") or len(given.session_id)
            if len(given.session_id) > longest:
                self.clamp("session_id", given.session_id[:longest], Loss.NONE, f"the first {longest} characters")
        if given.user_id is not None and self.is_unchanged(given, "user_id") and not fits_user_id(given.user_id, rules):
            self.clamp("user_id", _hashed(given.user_id, rules), Loss.NONE, _HASHED)
        if given.output_schema is not None and self.is_unchanged(given, "output_schema"):
            self.fit_output_schema(given.output_schema, self.refusal_of_schema(given))

    def fit_range(self, name: str, value: float) -> None:
        """Clamp a number to the target's range."""
        least, most = range_of(name, self.rules)
        fitted = max(float(least), min(value, most) if most else value)
        if fitted != value:
            self.clamp(name, fitted, Loss.NONE, f"{fitted} instead of {value}")

    def fit_limit(self, limit: int) -> None:
        """Clamp the limit of output tokens. Local servers read a negative number as "no limit"."""
        if limit < 0:
            self.remove("max_tokens", "a negative number means no limit", Loss.NONE)
            return
        most = self.model.max_tokens
        if not self.changed.get("stream", self.given.stream):
            most = min(most or limit, int(self.rules.most("unstreamed_max_tokens") or limit))
        fitted = max(int(range_of("max_tokens", self.rules)[0]), min(limit, most) if most else limit)
        if fitted != limit:
            self.clamp("max_tokens", fitted, Loss.NONE, f"{fitted} instead of {limit}")

    def fit_stop(self, stop: tuple[str, ...]) -> None:
        rules = self.rules
        may_be_blank = not rules.has("blank_stop")
        usable = tuple(text for text in stop if (text if may_be_blank else text.strip()) and fits_stop(text, rules))
        fitted = usable[: rules.most("stop") or None]
        if not fitted:
            if stop:
                self.remove("stop", "the target refuses such texts", Loss.CONTENT if any(stop) else Loss.NONE)
        elif fitted != stop:
            loss = Loss.NONE if sum(map(bool, stop)) == len(fitted) else Loss.CONTENT
            self.clamp("stop", fitted, loss, f"{len(fitted)} of {len(stop)}")

    def fit_output_schema(self, given: Mapping[str, object], refusal: str) -> None:
        if refusal:
            self.remove("output_schema", refusal)
            return
        schema, loss = fit_schema(given, replace(self.rules, schema_root_object=False))
        detail = "keywords that the target refuses were removed"
        if self.rules.has("lenient_output") or (self.target.dialect.strict_schema and is_closed(schema)):
            strict = fit_strict(schema, self.rules, output=True)
            if strict is None and self.rules.has("lenient_output"):
                self.remove("output_schema", "structured output does not support this schema")
                return
            if strict is not None and strict[0] is not schema:
                detail = f"moved to the description: {strict[2]}" if strict[2] else "closed for strict mode"
                schema, loss = strict[0], Loss.CONTENT if Loss.CONTENT in (loss, strict[1]) else loss
        if schema is not given:
            self.clamp("output_schema", schema, loss, detail)

    def refusal_of_schema(self, given: Options) -> str:
        """Return the reason why the target refuses an output schema or JSON mode here; empty if it accepts them."""
        if self.tools and not self.rules.schema_with_tools:
            return "the target refuses it together with tools"
        forces = given.tool_choice not in (None, "auto", "none") and self.is_unchanged(given, "tool_choice")
        refused = self.tools and forces and not self.rules.schema_with_forced_choice
        return "the target refuses it together with a required tool" if refused else ""

    def fit_tool_choice(self, given: Options, *, thinks: bool) -> None:
        choice = given.tool_choice
        if choice is not None and self.is_unchanged(given, "tool_choice"):
            names = {tool.name for tool in self.tools if tool.kind == "function"}
            named = names | {str(tool.definition.get("name")) for tool in self.tools if tool.kind == "native"}
            kind = choice if choice in ("auto", "none", "required") else "name"
            wire = self.wire_names.get(choice, choice) if kind == "name" else choice
            harmless = Loss.NONE if kind == "auto" or (kind == "none" and not self.tools) else Loss.CONTENT
            if not self.tools or (self.rules.choice_of_functions and not names):
                self.remove("tool_choice", "there are no tools", harmless)
            elif kind not in self.rules.tool_choices:
                self.remove("tool_choice", "the target does not support this choice", harmless)
            elif kind == "name" and wire not in named:
                self.remove("tool_choice", "there is no such tool")
            elif thinks and kind in ("name", "required") and not self.rules.forced_choice_with_thinking:
                self.remove("tool_choice", "the target refuses it while thinking is on")
            elif wire != choice:
                self.note(ChangeCode.NAME_CHANGED, ("options", "tool_choice"), Loss.NONE, wire)
                self.changed["tool_choice"] = wire
        if self.is_unchanged(given, "parallel_tool_calls") and not self.tools:
            self.remove("parallel_tool_calls", "there are no tools", Loss.NONE)

    def fit_extra(self, given: Options, *, thinks: bool) -> None:
        if given.extra is None or is_format_alone(given.extra, self.model.protocol):
            return
        given = self.with_shared(given, given.extra)
        if given.extra is not None:
            kept = own = kept_extra(given.extra, self.model.protocol, self.rules, same_provider=True)
            if kept is not None:
                refused = self.refused_fields(given, thinks=thinks)
                kept = self.without_fields(kept, refused)
                kept = self.without_fields(kept, self.unaccepted(kept, given))
            if kept is not given.extra:
                lost = lost_references(given.extra, kept)
                for _, reference in lost:
                    note_reference(self.workspace, reference, ("options", "extra"))
                others = _without_references(given.extra, lost) if lost else given.extra
                own = _without_references(own, lost) if lost and own is not None else own
                if others != own:
                    loss, detail = removal_of(lost_fields(others or {}, own))
                    self.note(ChangeCode.EXTRA_REMOVED, ("options", "extra"), loss, detail)
            if kept is not None:
                kept = self.with_fitting_users(kept)
            if kept is not given.extra:
                self.changed["extra"] = kept
            if kept is not None and not is_clean_extra(kept, self.model.protocol):
                self.note(ChangeCode.SURROGATE_REPLACED, ("options", "extra"), Loss.OPAQUE)
                kept = self.changed["extra"] = clean_value(kept)
            if kept is not None:
                fitted = replace(given, **{**self.changed, "extra": kept})
                if unsent := self.target.acceptance.unsent_fields(fitted, tuple(self.tools)):
                    loss, detail = removal_of(unsent)
                    self.note(ChangeCode.EXTRA_REMOVED, ("options", "extra"), loss, detail + self.own_names(unsent))
                formed = self.target.acceptance.received_options(fitted, tuple(self.tools))
                if formed is not kept:
                    self.changed["extra"] = formed

    def with_shared(self, given: Options, extra: Extra) -> Options:
        """Return the options with the fields that the target has under another name or in another place."""
        shared = share_fields(extra, "body", self.model)
        if shared.rest is extra:
            return given
        self.sources = {**self.sources, **shared.sources()}
        for difference in shared.differences():
            self.note(ChangeCode.OPTION_CLAMPED, ("options", "extra"), Loss.NONE, difference)
        moved = shared.put_into(shared.rest or None, self.model.protocol)
        self.changed["extra"] = moved
        return replace(given, extra=moved)

    def add_needed(self, given: Options) -> None:
        """Add the keys that the body has to have."""
        for key, value in sorted(needed.partition("=")[::2] for needed in self.rules.values("needed_fields")):
            extra = cast("Extra", self.changed.get("extra", given.extra) or {})
            *outer, name = key.split(".")
            parts: list[Block] = [extra.get(self.model.protocol, {})]
            for at in outer:
                parts.append(object_of(parts[-1].get(at)))
            if name not in parts[-1]:
                part: Block = {**parts.pop(), name: [value]}
                for at in reversed(outer):
                    part = {**parts.pop(), at: part}
                added = {**extra, self.model.protocol: part}
                self.clamp("extra", added, Loss.NONE, f"{key}: the target needs {value}")

    def refused_fields(self, given: Options, *, thinks: bool) -> Mapping[str, str]:
        """Return the fields that the protocol has and this target refuses, each with the reason."""
        refused = dict.fromkeys(self.rules.refused_extra, _UNSUPPORTED)
        for key, option in self.rules.extra_like:
            why = self.refusal(option, thinks=thinks)
            if why is None and option == "output_schema":
                why = self.refusal_of_schema(given)
            if why:
                refused[key] = why
        return refused

    def without_fields(self, extra: Extra | None, refused: Mapping[str, str]) -> Extra | None:
        """Remove fields that the target refuses, and report each with its reason; the same object if there are none."""
        part = (extra or {}).get(self.model.protocol)
        if extra is None or not part or not refused:
            return extra
        rest = part
        for field in sorted(refused):
            before, rest = rest, _without_field(rest, field)
            given, kept = {self.model.protocol: before}, {self.model.protocol: rest}
            if rest is before or lost_references(given, kept):  # a lost reference is reported with what it refers to
                continue
            lost = lost_fields(given, kept)
            detail = f"{removal_of(lost)[1]}{self.own_names(lost)}; {refused[field]}"
            loss = Loss.NONE if not lost else Loss.OPAQUE if lost.keys() <= _UNREAD else Loss.CONTENT
            self.note(ChangeCode.OPTION_REMOVED, ("options", "extra"), loss, detail)
        if rest is part:
            return extra
        others = {protocol: inner for protocol, inner in extra.items() if protocol != self.model.protocol}
        return ({**others, self.model.protocol: rest} if rest else others) or None

    def own_names(self, lost: Mapping[str, object]) -> str:
        """Return what a report adds about fields that were given under another name."""
        given = dict.fromkeys(self.sources[key] for key in lost if self.sources.get(key, key) != key)
        return f" (given as {', '.join(given)})" if given else ""

    def with_fitting_users(self, extra: Extra | None) -> Extra | None:
        """Shorten user ids that the body has next to that of the options; the same object when there are none."""
        part = (extra or {}).get(self.model.protocol)
        if extra is None or not part:
            return extra
        fitted = dict(part)
        for key in self.rules.user_id_keys & part.keys():
            value = part[key]
            if isinstance(value, str) and not fits_user_id(value, self.rules):
                fitted[key] = _hashed(value, self.rules)
        if fitted == part:
            return extra
        self.note(ChangeCode.OPTION_CLAMPED, ("options", "extra"), Loss.NONE, _HASHED)
        return {**extra, self.model.protocol: fitted}

    def unaccepted(self, extra: Extra | None, given: Options) -> Mapping[str, str]:
        """Return the keys whose values `check` refuses, each with the reason."""
        if extra is None or not extra.get(self.model.protocol):
            return {}
        fitted = replace(given, **{**self.changed, "extra": extra})
        return self.target.acceptance.refused_keys(fitted, tuple(self.tools), self.conversation)

    def conversation(self) -> Context:
        """Return the whole conversation that is sent."""
        workspace, settings = self.workspace, self.workspace.settings
        before = settings.before if settings is not None else ()
        return Context(
            system_prompt=workspace.prefix_state.system_prompt,
            messages=(*before, *workspace.messages),
            tools=tuple(self.tools),
        )

    def clean(self, given: Options) -> None:
        for name in given.__struct_fields__:
            value: object = self.changed.get(name, getattr(given, name))
            if value is not None and name != "extra" and not is_clean_value(value):
                loss = Loss.NONE if only_joins(value) else Loss.CONTENT
                self.note(ChangeCode.SURROGATE_REPLACED, ("options", name), loss)
                self.changed[name] = clean_value(value)


def _without_references(extra: Extra, lost: Sequence[tuple[str, Reference]]) -> Extra | None:
    """Remove the references that are reported on their own."""
    parts = {
        protocol: {key: value for key, value in part.items() if (protocol, key) not in names}
        for names in [{(protocol, reference.key) for protocol, reference in lost}]
        for protocol, part in extra.items()
    }
    return {protocol: part for protocol, part in parts.items() if part} or None


def _hashed(user_id: str, rules: Rules) -> str:
    """Return the SHA-256 of a user id in hexadecimal, as providers recommend for ids; the same in every process."""
    hashed = sha256(user_id.encode("utf-8", "surrogatepass")).hexdigest()
    return hashed[: rules.most("user_id") or None]


def _without_field(given: Mapping[str, object], field: str) -> Mapping[str, object]:
    """Remove a field, with a dot one of an inner object, with "=" only this value; the same object if it is not set."""
    outer, _, inner = field.partition(".")
    outer, equals, value = (outer, "", "") if inner else outer.partition("=")
    held = given.get(outer)
    if outer not in given or (equals and held != value) or (inner and not isinstance(held, Mapping)):
        return given
    rest: Mapping[str, object] = _without_field(cast("Mapping[str, object]", held), inner) if inner else {}
    if inner and rest is held:
        return given
    others = {key: value for key, value in given.items() if key != outer}
    return {**others, outer: rest} if rest else others


def _name_of(definition: Block) -> str | None:
    """Return the name of a tool that the provider runs; None for a namespace, whose functions have their own names."""
    return None if "tools" in definition else text_of(definition.get("name"))
