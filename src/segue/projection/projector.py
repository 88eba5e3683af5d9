"""Projection: convert a stored conversation to one that a target accepts, and report every change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from operator import is_
from threading import RLock
from typing import Final, final

import msgspec
from msgspec.structs import replace

from segue.conversation.content import Extra
from segue.conversation.context import Context, Options, Prompt, Tool, note_prefix
from segue.conversation.messages import Message
from segue.conversation.validation import check_options, explain_misuse
from segue.errors import ProjectionRefused, SettingsError
from segue.models.catalogue import Catalogue, get_model, packaged_catalogue
from segue.models.model import Model
from segue.projection.engine import PASSES, Engine, PassOutcome, assign_ids_and_names
from segue.projection.fitting.given import Given
from segue.projection.fitting.server_window import ask_server, asked_window, covered_before, fill_window
from segue.projection.fitting.window import Window
from segue.projection.passes.cache_marks import limit_marks
from segue.projection.passes.extra import kept_extra, lost_fields, removal_of, share_system, withhold_extra
from segue.projection.passes.ids import NormalizeId, assign_ids
from segue.projection.passes.names import clean_names
from segue.projection.passes.namespaces import name_namespaced
from segue.projection.passes.settings import is_thinking
from segue.projection.passes.text import is_clean_extra
from segue.projection.policy import Policy
from segue.projection.report import Change, ChangeCode, Loss, Report, place_of
from segue.projection.requirements import Requirement, ThinkingOff
from segue.projection.return_mark import find_return
from segue.projection.system_form import as_block, find_system_form
from segue.projection.workspace.surrogates import clean_value
from segue.projection.workspace.workspace import KnownTools, Target, Workspace
from segue.protocols.api import resolve_described
from segue.protocols.context_input import ContextInput, leading_prompts, read_input
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.verbatim import for_new_request
from segue.protocols.registry import get_protocol

_TARGETS: Final = 3
"""Targets, in addition to the last one, whose fitted tools are kept."""
_NO_OPTIONS: Final = Options()
_DEFAULT_POLICY: Final = Policy()
_TRANSFORM_POLICY: Final = Policy(reasoning="text")


@final
class Projection(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation and options that one target accepts.

    `tool_names` maps names on the wire to the given names, those of properties as `tool.properties.name`. `window` says
    how much of the target's window the request takes and where it was cut; None if the window is not known. `refused`
    are the marks of signatures that a provider refused before, as replies of the conversation remember them.
    `may_need_headers` is False if there is neither a native block nor a system message nor an option of one protocol,
    which may need a header. `has_free_json` is False if the messages have free-form JSON only in the arguments of
    calls, and in what requests do not send of a reply.
    """

    context: Context
    options: Options
    report: Report
    requirements: tuple[Requirement, ...] = ()
    tool_names: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    window: Window | None = None
    refused: frozenset[str] = frozenset()
    may_need_headers: bool = True
    has_free_json: bool = True


@explain_misuse
def project(
    context: ContextInput,
    model: Model | str,
    *,
    options: Options | None = None,
    policy: Policy | None = None,
    catalogue: Catalogue | None = None,
    account: str | None = None,
    refused: AbstractSet[str] = frozenset(),
) -> Projection:
    """Convert a conversation to one that the target accepts, with as few losses as its rules and the policy allow.

    The arguments are those of `prepare`: `context` may also be a text or a list of messages. The function is pure: the
    given conversation is not changed, unchanged parts are the same objects, and the same input gives the same output in
    every process. If nothing has to change, `context` and `options` of the result are the given objects.

    Raises:
        UnknownModel, UnknownProtocol: the target is not known.
        ProjectionRefused: the policy refuses a change that is needed.
        ConversationError, SettingsError: the conversation or the options hold a value of the wrong type.
    """
    given, target = read_input(context), get_model(model, catalogue=catalogue)
    shift, refused = leading_prompts(context, given), frozenset(refused)
    policy = with_routers(policy, catalogue)
    try:
        projection = project_for(given, target, options=options, policy=policy, account=account, refused=refused)
    except ProjectionRefused as refusal:
        refuse_at(refusal, shift, policy, target)
        raise
    return replace(projection, report=projection.report.shifted(shift)) if shift else projection


@explain_misuse
def project_for(
    context: Context,
    model: Model | str,
    *,
    options: Options | None = None,
    policy: Policy | None = None,
    account: str | None = None,
    refused: frozenset[str] = frozenset(),
    known: KnownTools | None = None,
) -> Projection:
    """Project for a request that is sent with this account, without signatures that were refused. See `project`.

    `known` has the tools of earlier requests: they must be unchanged.
    """
    engine = Engine(resolve_target(model, policy))
    engine.send_with(account, refused)
    target, kept = engine.target, reversed(known or ())
    target.fitted_tools = next((each[2] for each in kept if each[0] is target.model and each[1] is target.policy), None)
    projection = _run(engine, context, _checked(options), settle=False)
    fitted = target.fitted_tools
    if known is not None and fitted is not None and all(fitted is not each[2] for each in known):
        known[:] = [*known[-_TARGETS:], (target.model, target.policy, fitted)]
    return projection


def prompt_of(projection: Projection, endpoint: Endpoint) -> Prompt:
    """Return what the protocol encodes of a projection; options are written in the default format."""
    options = projection.options
    extra = for_new_request(options.extra, endpoint.model.protocol)
    if extra is not options.extra:
        options = replace(options, extra=extra)
    context, window = projection.context, projection.window
    plain, system = False, context.system_prompt
    if endpoint.rules.bound_prefix and isinstance(system, str):
        prefix = get_protocol(endpoint.model.protocol).prefix
        if prefix is not None and prefix.system_block is not None:
            form = find_system_form(system, context.messages, prefix.system_block)
            plain = form == "string"
            if form == "block":
                context = replace(context, system_prompt=as_block(system))
    anchor = None if window is None else window.anchor
    if window is not None:
        options = fill_window(options, window, endpoint)
    if anchor is None:
        anchor = find_return(context, options, endpoint)
    if anchor is not None:
        index, marked = anchor
        messages = (*context.messages[:index], marked, *context.messages[index + 1 :])
        context = replace(context, messages=messages)
    return Prompt(
        context=context, options=options, model=endpoint.model.id, anchored=anchor is not None, plain_system=plain
    )


@explain_misuse
def transform_messages(
    messages: Sequence[Message], model: Model | str, normalize_tool_call_id: NormalizeId | None = None
) -> tuple[Message, ...]:
    """Prepare messages for a model with the passes up to ids; readable thinking of other models becomes text.

    Tool names, the order of turns and options are not changed. Without `normalize_tool_call_id` an id changes only if
    the target refuses it. With it, ids of other models' turns are passed through the function; if it maps two ids to
    the same one, the second gets another id.
    """

    def assign_id(workspace: Workspace) -> None:
        assign_ids(workspace, normalize_tool_call_id)
        clean_names(workspace)
        withhold_extra(workspace)

    given = tuple(messages)
    before = PASSES[: PASSES.index(assign_ids_and_names)]
    passes = (*(step for step in before if step is not name_namespaced), assign_id)
    outcome = Engine(resolve_target(model, _TRANSFORM_POLICY), passes, fits_settings=False).run(
        Context(messages=given), _NO_OPTIONS
    )
    out = outcome.messages()
    return given if len(out) == len(given) and all(map(is_, out, given)) else out


def with_routers(policy: Policy | None, catalogue: Catalogue | None) -> Policy | None:
    """Return a policy that knows the routers of the user's own catalogue; the same object where there are none."""
    if catalogue is None:
        return policy
    known = frozenset[str]() if policy is None else policy.routers
    own = catalogue.routers - packaged_catalogue().routers
    return policy if own <= known else replace(policy or Policy(), routers=known | own)


def resolve_target(model: Model | str, policy: Policy | None) -> Target:
    """Look up the model and resolve its rules and dialect, once for many projections."""
    found = get_model(model)
    if policy is not None and not isinstance(policy, Policy):  # pyright: ignore[reportUnnecessaryIsInstance]
        name = type(policy).__name__
        raise SettingsError(f"policy: expected a Policy, got {name}; write Policy(reasoning=...)", key="policy")
    return Target(resolve_described(found), policy or _DEFAULT_POLICY)


def _checked(options: Options | None) -> Options:
    if options is None:
        return _NO_OPTIONS
    check_options(options)
    return options


class Projector:
    """Projects a growing conversation for one target; each call processes only the new messages.

    The result equals `project` of the whole conversation. A projector caches the projection of a settled prefix and
    recognises the prefix by the identity of its messages. If the conversation was edited, or a result answers a call
    in the prefix, the whole conversation is projected again.

    Threads may share a projector: their calls run one after the other. For speed use one projector for each
    conversation, because only the last one is cached. After an exception, also one of `Policy.same_model`, the next
    call gives what it would have given without it.
    """

    def __init__(self, model: Model | str, policy: Policy | None = None) -> None:
        self._engine = Engine(resolve_target(model, policy))
        self._lock = RLock()
        self._is_busy = False

    def project(self, context: Context, *, options: Options | None = None) -> Projection:
        """Project the conversation in its current state."""
        return self.project_for(context, options=options)

    def project_for(
        self,
        context: Context,
        *,
        options: Options | None = None,
        account: str | None = None,
        refused: frozenset[str] = frozenset(),
    ) -> Projection:
        """Project for a request that is sent with this account, without signatures that were refused."""
        with self._lock:
            if self._is_busy:  # `Policy.same_model` asks while it is being asked: the cache must not change now
                target = self._engine.target
                return project_for(
                    context, target.model, options=options, policy=target.policy, account=account, refused=refused
                )
            self._is_busy = True
            try:
                self._engine.send_with(account, refused)
                return _project_incrementally(context, _checked(options), self._engine)
            finally:
                self._is_busy = False

    def reset(self) -> None:
        """Drop the cached prefix and free its memory."""
        with self._lock:
            self._engine.reset()


@explain_misuse
def _project_incrementally(context: Context, options: Options, engine: Engine) -> Projection:
    return _run(engine, context, options, settle=True)


def _run(engine: Engine, context: Context, options: Options, *, settle: bool) -> Projection:
    """Project, and limit the reply to what the window has left."""
    projection = _finish(engine.run(context, options, settle=settle), context, engine.target)
    asked, window = projection.options.max_tokens, projection.window
    left = None if asked is None or window is None else window.left(asked)
    if left is None:
        return projection
    # Again with the smaller number: a thinking budget has to be smaller than it.
    projection = _finish(engine.run(context, replace(options, max_tokens=left), settle=settle), context, engine.target)
    detail = f"{left}: the window has no room for {asked}"
    change = Change(code=ChangeCode.OPTION_CLAMPED, path=("options", "max_tokens"), loss=Loss.NONE, detail=detail)
    changes = (*projection.report.changes, change)
    return replace(projection, report=Report(changes))


def _finish(outcome: PassOutcome, context: Context, target: Target) -> Projection:
    """Fit the projected messages to the window and build the projection; unchanged parts are the given objects."""
    workspace, settings = outcome.workspace, outcome.workspace.settings
    if settings is None:
        raise AssertionError("the last segment of a conversation has the settings")
    prompt = workspace.prefix_state.system_prompt
    messages = outcome.messages() if outcome.changed else context.messages
    given = Given(
        messages,
        len(outcome.settled.out),
        length=outcome.length(),
        prompt=prompt,
        tools=settings.tools,
        schema=settings.options.output_schema,
        retention=settings.options.cache_retention,
        summaries=context.summaries,
        pins=context.pins,
        changes=outcome.changes,
        needed=outcome.needed(),
        find_places=outcome.places,
        find_origins=outcome.origins,
        find_marks=outcome.marks,
        covered=covered_before(messages, target.protocol) if outcome.has_native else 0,
    )
    asked = (
        asked_window(settings.options, target.rules, target.model.protocol)
        if "window_field" in target.rules.rows
        else None
    )
    fitter = outcome.settled.fitter_for(asked, target)
    fitted = fitter.fit(given)
    changes, marks = outcome.changes, outcome.marks() if not fitted.is_cut else fitted.marks
    if fitted.is_cut:
        messages, changes = tuple(fitted.messages), fitted.changes
    limited = limit_marks(target, messages, marks, prompt, settings.tools, given=context)
    extra, removed = _kept_extra(context, limited.tools, target)
    if limited.changes or removed:
        changes = sorted([*changes, *limited.changes, *removed], key=place_of)
    options = ask_server(settings.options, fitter.plan, target.protocol, messages if outcome.has_native else ())
    report = Report(tuple(changes))
    if target.policy.refuse:
        refuse_changes(report, target.policy, target.model.full_name())
    if (
        limited.messages is not context.messages
        or limited.prompt is not context.system_prompt
        or limited.tools is not context.tools
        or extra is not context.extra
        or removed
    ):
        context = replace(
            context,
            system_prompt=limited.prompt,
            messages=limited.messages,
            tools=limited.tools,
            extra=extra,
            summaries=() if fitted.is_cut else context.summaries,
            pins=() if fitted.is_cut else context.pins,
        )
        if outcome.before and limited.messages is outcome.settled.sent:
            note_prefix(outcome.before, context)
    needed = fitted.needed if fitted.is_cut else given.needed
    return Projection(
        context=context,
        options=options,
        report=report,
        requirements=(*needed, *_thinking_requirement(outcome, settings.options, target), *fitted.requirements),
        tool_names={wire: given for given, wire in workspace.prefix_state.wire_names.items()},
        window=fitted.window,
        refused=outcome.refused(),
        may_need_headers=outcome.has_native or options.extra is not None,
        has_free_json=outcome.has_free_json or fitted.is_cut,
    )


def _kept_extra(context: Context, tools: tuple[Tool, ...], target: Target) -> tuple[Extra | None, list[Change]]:
    """Return the `extra` of the context that is sent, and what is changed in it.

    Data of another protocol is removed. Its wire format alone stays, because no codec writes it and nothing is lost.
    """
    given = context.extra
    if given is None:
        return None, []
    removed: list[Change] = []
    extra = target.acceptance.context_extra(context, tools)
    if extra is not given:
        loss, detail = removal_of({})
        removed.append(Change(code=ChangeCode.EXTRA_REMOVED, path=("tools",), loss=loss, detail=detail))
    if extra is not None:
        extra = share_system(extra, target.model)
        kept = kept_extra(extra, target.model.protocol, target.rules, same_provider=True)
        if lost := lost_fields(extra, kept):
            loss, detail = removal_of(lost)
            removed.append(Change(code=ChangeCode.EXTRA_REMOVED, path=("extra",), loss=loss, detail=detail))
            extra = kept
    if extra is not None and not is_clean_extra(extra, target.model.protocol):
        removed.append(Change(code=ChangeCode.SURROGATE_REPLACED, path=("extra",), loss=Loss.OPAQUE))
        extra = clean_value(extra)
    return extra, removed


def refuse_changes(report: Report, policy: Policy, target: str) -> None:
    """Check that the policy allows all changes of a report.

    Raises:
        ProjectionRefused: it refuses one.
    """
    refused = [change for change in report.changes if change.code in policy.refuse or change.loss in policy.refuse]
    if refused:
        count = f"{len(refused)} changes" if len(refused) > 1 else "a change"
        message = f"{target} needs {count} that the policy refuses; the first is at {refused[0].sentence()}"
        message += " Remove it from Policy(refuse=...), change the conversation, or choose another model."
        raise ProjectionRefused(message, report=report)


def refuse_at(refusal: ProjectionRefused, shift: int, policy: Policy | None, target: Model) -> None:
    """Raise a refusal again with the paths of the given list, if they are others."""
    if shift:
        refuse_changes(refusal.report.shifted(shift), policy or Policy(), target.full_name())


def _thinking_requirement(outcome: PassOutcome, options: Options, target: Target) -> tuple[ThinkingOff, ...]:
    workspace = outcome.workspace
    if target.rules.thinking_before_calls and is_thinking(options) and _lacks_thinking(workspace):
        return (ThinkingOff(),)
    return ()


def _lacks_thinking(workspace: Workspace) -> bool:
    """Whether the running tool cycle, or an assistant turn at the end, does not begin with thinking."""
    # The last segment holds the last turn, except in a conversation without turns.
    begun: Message | None = None
    for message in reversed(workspace.messages):
        if message.role != "assistant":
            break
        begun = message
    if begun is None:
        return workspace.prefix_state.cycle_begins is False
    return not begun.content or begun.content[0].kind != "thinking"
