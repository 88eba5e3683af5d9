"""Meets the requirements of a target: thinking off where it has to be, and an error where nothing can be sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from segue.conversation.content import AnyContent
from segue.conversation.context import Context, Options
from segue.conversation.messages import Message
from segue.errors import DoesNotFit, EmptyConversation, ProjectionError, render_path
from segue.models.model import Model
from segue.models.thinking import supported_thinking_levels
from segue.projection.passes.held_content import holds_content
from segue.projection.passes.instructions import has_instructions
from segue.projection.policy import Policy, Texts
from segue.projection.projector import Projection
from segue.projection.report import Change, ChangeCode, Loss, Report
from segue.projection.requirements import WindowTooSmall
from segue.protocols.api import resolve_endpoint

_DEFAULT_TEXTS: Final = Texts()


def fit_request(
    given: Context,
    projecting: Callable[[Options | None], Projection],
    model: Model,
    options: Options | None,
    policy: Policy | None,
) -> Projection:
    """Project, meet the requirements of the model, and check that there is content to send.

    Raises:
        EmptyConversation: the conversation has no content to send.
        DoesNotFit: the window of the model is too small for what has to be sent.
        ProjectionError: the model refuses functions while it thinks, and cannot stop thinking.
    """
    projection = projecting(options)
    if projection.options.thinking == "off" and projection.context.tools:
        _check_functions(projection, model)
    if projection.requirements:
        projection = _disable_thinking(projection, projecting, model, options)
    for requirement in projection.requirements:
        if requirement.kind == "windowTooSmall":
            raise _does_not_fit(requirement, model)
    sent, report = projection.context, projection.report
    has_text = _has_text(sent.messages, _DEFAULT_TEXTS if policy is None else policy.texts)
    # Where instructions become a user turn, that turn is not a reason to drop the results next to them.
    if not has_text or all(message.role in ("toolResult", "system") for message in given.messages):
        is_unpaired = bool(report.of(ChangeCode.RESULT_ORPHANED))
        is_held = holds_content(projection.options, model.protocol)
        if is_unpaired or not (has_text or is_held or _has_instructions(sent)):
            raise EmptyConversation(f"the conversation has no content to send: {_explain_empty(report)}")
    return projection


def _check_functions(projection: Projection, model: Model) -> None:
    """Refuse functions where they need thinking to be off and the model cannot disable it."""
    rules = resolve_endpoint(model).rules
    if rules.functions_with_thinking == "allowed" or all(tool.kind != "function" for tool in projection.context.tools):
        return
    if "off" not in supported_thinking_levels(replace(model, reasoning=True), rules.thinking_levels):
        raise ProjectionError(
            f"{model.full_name()} does not accept functions on {model.protocol}, because it cannot disable thinking;"
            " use the protocol openai-responses"
        )


def _has_instructions(context: Context) -> bool:
    return has_instructions(context.system_prompt) or any(
        message.role == "system" and has_instructions(message.content) for message in context.messages
    )


def _explain_empty(report: Report) -> str:
    """Say why nothing is left to send, and what to do."""
    if held := report.of(ChangeCode.PROVIDER_HISTORY):
        return f"the rest of it is held by another provider ({held[0].detail}); add that content to the conversation"
    if report.of(ChangeCode.RESULT_ORPHANED):
        return (
            "it has only tool results whose calls are missing, and every provider refuses a result without its call;"
            ' add the assistant message with the calls, or send the results as text: Policy(orphan_results="text")'
        )
    if report.of(ChangeCode.UNFINISHED_TURN):
        return "its turns ended in an error or were aborted, and unfinished turns are not sent; add a user message"
    return "it has no instructions and no messages, or only empty ones; add a user message"


def _does_not_fit(requirement: WindowTooSmall, model: Model) -> DoesNotFit:
    path, needed, limit = requirement.path, requirement.needed, requirement.limit
    return DoesNotFit(
        f"the request does not fit the window of {model.full_name()}: about {needed:,} tokens are needed and {limit:,}"
        f" fit, although everything else is left out; the largest part is {render_path(path)}. Make it shorter or"
        " choose a model with a larger window",
        path=path,
        needed=needed,
        limit=limit,
    )


def _disable_thinking(
    projection: Projection, projecting: Callable[[Options | None], Projection], model: Model, options: Options | None
) -> Projection:
    """Turn thinking off for this request if the running tool cycle or the last turn requires it, and report it."""
    is_required = any(requirement.kind == "thinkingOff" for requirement in projection.requirements)
    if not is_required or model.thinking_levels.get("off", "") is None:
        return projection
    without_thinking = projecting(replace(options or Options(), thinking="off"))
    change = Change(
        code=ChangeCode.OPTION_REMOVED,
        path=("options", "thinking"),
        loss=Loss.CONTENT,
        detail="the running tool cycle, or the turn to continue, begins without thinking that can be sent back",
    )
    return replace(without_thinking, report=Report((*without_thinking.report.changes, change)))


def _has_text(messages: Sequence[Message], texts: Texts) -> bool:
    fillers = (texts.first_turn, texts.last_turn, texts.empty_turn, texts.bridge)
    for message in messages:
        if message.role != "system":
            for content in message.content:
                if _is_visible(content, fillers):
                    return True
    return False


def _is_visible(content: AnyContent, fillers: tuple[str, ...]) -> bool:
    if content.kind == "text":
        return bool(content.text) and not content.text.isspace() and content.text not in fillers
    return content.kind != "thinking"
