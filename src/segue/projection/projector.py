"""Projection: a stored history, made into what one target accepts, with a report of every change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_
from typing import Final, final

import msgspec
from msgspec.structs import replace

from segue.conversation.context import Context, Options
from segue.conversation.messages import Message
from segue.conversation.vetting import check_options, explain_misuse
from segue.errors import ProjectionRefused, SettingsError
from segue.models.catalogue import get_model
from segue.models.model import Model
from segue.projection.engine import PASSES, Engine, Outcome, assign_ids_and_names, place_of
from segue.projection.passes.cache_marks import limit_marks
from segue.projection.passes.extra import withhold_extra
from segue.projection.passes.ids import NormalizeId, assign_ids
from segue.projection.passes.names import clean_names
from segue.projection.passes.settings import is_thinking
from segue.projection.policy import Policy
from segue.projection.report import Report
from segue.projection.requirements import Requirement, ThinkingOff
from segue.projection.workspace.workspace import Target, Workspace
from segue.protocols.registry import resolve_dialect, resolve_rules

_NO_OPTIONS: Final = Options()
_DEFAULT_POLICY: Final = Policy()
_TRANSFORM_POLICY: Final = Policy(reasoning="text")


@final
class Projection(msgspec.Struct, frozen=True, kw_only=True):
    """What one target is told. `tool_names` leads from a name on the wire back to the given one."""

    context: Context
    options: Options
    report: Report
    requirements: tuple[Requirement, ...] = ()
    tool_names: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])


@explain_misuse
def project(
    context: Context, model: Model | str, *, options: Options | None = None, policy: Policy | None = None
) -> Projection:
    """Give what the target accepts of a conversation, losing as little as its rules and the policy allow.

    Pure: the conversation stays as it was, unchanged parts are the same objects, the same input gives the same output
    in every process. When nothing has to change, `context` and `options` are the ones given.

    Raises:
        UnknownModel, UnknownProtocol: the target is not known.
        ProjectionRefused: the policy refuses a change that is needed.
        ConversationError, SettingsError: the conversation or the options are not what their types say.
    """
    target = resolve_target(model, policy)
    return _finish(Engine(target).run(context, _checked(options)), context, target)


@explain_misuse
def transform_messages(
    messages: Sequence[Message], model: Model | str, normalize_tool_call_id: NormalizeId | None = None
) -> tuple[Message, ...]:
    """Ready messages for a model: the passes up to ids, readable thinking of other models as text.

    Names, the order of turns and options stay as they are. Without a normaliser an id changes only if the target
    refuses it; with one the ids of other models' turns go through it, and are kept apart where it makes two the same.
    """

    def assign_id(workspace: Workspace) -> None:
        assign_ids(workspace, normalize_tool_call_id)
        clean_names(workspace)
        withhold_extra(workspace)

    given = tuple(messages)
    passes = (*PASSES[: PASSES.index(assign_ids_and_names)], assign_id)
    outcome = Engine(resolve_target(model, _TRANSFORM_POLICY), passes).run(Context(messages=given), _NO_OPTIONS)
    out = outcome.messages()
    return given if len(out) == len(given) and all(map(is_, out, given)) else out


def resolve_target(model: Model | str, policy: Policy | None) -> Target:
    """Look the model up and resolve its rules, once for many projections."""
    found = get_model(model)
    if policy is not None and not isinstance(policy, Policy):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SettingsError(f"a policy has to be a Policy, not a {type(policy).__name__}", key="policy")
    return Target(found, resolve_rules(found), resolve_dialect(found), policy or _DEFAULT_POLICY)


def _checked(options: Options | None) -> Options:
    if options is None:
        return _NO_OPTIONS
    check_options(options)
    return options


class Projector:
    """Projects a growing history for one target, paying only for what is new.

    Its result equals `project` of the whole. It keeps the projection of a settled prefix, recognised by the identity
    of its messages; an edited history, or a late result for a settled call, is projected anew.
    """

    def __init__(self, model: Model | str, policy: Policy | None = None) -> None:
        self._engine = Engine(resolve_target(model, policy))

    def project(self, context: Context, *, options: Options | None = None) -> Projection:
        """Give the projection of the conversation as it is now."""
        return _project_grown(context, _checked(options), self._engine)

    def reset(self) -> None:
        """Forget the settled prefix and free its memory."""
        self._engine.settled = None


@explain_misuse
def _project_grown(context: Context, options: Options, engine: Engine) -> Projection:
    return _finish(engine.run(context, options, settle=True), context, engine.target)


def _finish(outcome: Outcome, context: Context, target: Target) -> Projection:
    """Put a projection together; what did not change is what was given."""
    workspace, settings = outcome.workspace, outcome.workspace.settings
    if settings is None:
        raise AssertionError("the last stretch of a history comes with the settings")
    messages = outcome.messages() if outcome.changed else context.messages
    limited = limit_marks(target, messages, outcome.marks(), workspace.prefix_state.system_prompt, settings.tools)
    changes = outcome.changes
    if limited.changes:
        changes = sorted([*changes, *limited.changes], key=place_of)
    report = Report(tuple(changes))
    if target.policy.refuse:
        _refuse(report, target.policy)
    if (
        limited.messages is not context.messages
        or limited.prompt is not context.system_prompt
        or limited.tools is not context.tools
    ):
        context = replace(context, system_prompt=limited.prompt, messages=limited.messages, tools=limited.tools)
    return Projection(
        context=context,
        options=settings.options,
        report=report,
        requirements=_requirements(outcome, settings.options, target),
        tool_names={wire: given for given, wire in workspace.prefix_state.wire_names.items()},
    )


def _refuse(report: Report, policy: Policy) -> None:
    refused = [change for change in report.changes if change.code in policy.refuse or change.loss in policy.refuse]
    if refused:
        count = f"{len(refused)} changes" if len(refused) > 1 else "a change"
        message = f"this target needs {count} that the policy refuses; the first: {refused[0].sentence()}"
        raise ProjectionRefused(message, report=report)


def _requirements(outcome: Outcome, options: Options, target: Target) -> tuple[Requirement, ...]:
    workspace = outcome.workspace
    needed = outcome.needed()
    # The last stretch holds the last turn, but for a history that has no turn at all.
    is_running = workspace.prefix_state.cycle_begins is False and workspace.prefix_state.last_role != "assistant"
    if is_running and target.rules.thinking_before_calls and is_thinking(options):
        return (*needed, ThinkingOff())
    return needed
