"""Pass 7, part 2: send the system prompt and system messages in a form and place that the target accepts.

Facts this file rests on:
- Instructions in the middle of a conversation stay in their place: moving them to the prompt would change the cached
  prefix.                                                         (Rapid-MLX #1543, langchain #38849)
- Every protocol with a system prompt reads instructions before the first turn as the prompt.     (protocols' rules)
"""

from __future__ import annotations

from segue.conversation.content import SystemContent, TextContent
from segue.conversation.messages import SystemMessage, UserMessage
from segue.projection.passes.cache_marks import last_mark
from segue.projection.passes.extra import lost_extra
from segue.projection.policy import fill
from segue.projection.report import ChangeCode, Loss
from segue.projection.workspace.workspace import INSERTED, SystemPrompt, Workspace, joined_text


def place_instructions(workspace: Workspace) -> None:
    """Move or convert the system prompt and system messages that the target does not accept in their place."""
    rules, prefix_state = workspace.target.rules, workspace.prefix_state
    if prefix_state.last_role is None:
        if rules.system_prompt and (prefix_state.system_prompt is None or prefix_state.hoisted):
            _hoist_first(workspace)
        elif not rules.system_prompt and prefix_state.system_prompt is not None and workspace.messages:
            _prompt_as_user(workspace, prefix_state.system_prompt)
    if rules.system_messages != "anywhere" and "s" in workspace.scan.roles:
        _place_later(workspace)


def _hoist_first(workspace: Workspace) -> None:
    """Make system messages before the first turn the system prompt."""
    content: list[SystemContent] = []
    count = 0
    for message in workspace.messages:
        if message.role != "system":
            break
        workspace.note(ChangeCode.SYSTEM_AS_PROMPT, workspace.path(count), lost_extra(message.extra))
        content += message.content
        count += 1
    if count:
        if not workspace.prefix_state.hoisted:
            workspace.note(ChangeCode.SYSTEM_AS_PROMPT, ("system_prompt",), Loss.NONE)
        earlier = (
            workspace.prefix_state.system_prompt if isinstance(workspace.prefix_state.system_prompt, tuple) else ()
        )
        workspace.prefix_state.system_prompt = (*earlier, *content)
        workspace.prefix_state.hoisted = True
        workspace.keep(workspace.messages[count:], workspace.places[count:])


def _prompt_as_user(workspace: Workspace, prompt: SystemPrompt) -> None:
    workspace.note(ChangeCode.SYSTEM_AS_USER, ("system_prompt",), Loss.NONE)
    opening = UserMessage.of(prompt) if isinstance(prompt, str) else UserMessage(content=prompt or ())
    place = workspace.insertion(ChangeCode.TURN_INSERTED, "the system prompt")
    workspace.keep([opening, *workspace.messages], [place, *workspace.places])
    workspace.prefix_state.system_prompt = None
    if any(piece.cache_mark is not None for piece in opening.content):
        workspace.scan.extra = True


def _place_later(workspace: Workspace) -> None:
    may_stay = workspace.target.rules.system_messages == "before_assistant"
    followers: list[str | None] = []
    follower: str | None = "assistant"  # at the end: the reply is the next turn
    for message in reversed(workspace.messages):
        followers.append(follower)
        if message.role != "system":
            follower = message.role
    previous = workspace.prefix_state.last_role
    for index, message in enumerate(workspace.messages):
        if message.role == "system":
            is_accepted = previous in ("user", "toolResult", "system") and followers[-1 - index] == "assistant"
            if not (may_stay and is_accepted):
                _as_user(workspace, index, message)
        previous = workspace.messages[index].role


def _as_user(workspace: Workspace, index: int, message: SystemMessage) -> None:
    """Convert a system message to a user message: the text first, then native blocks of the target's protocol."""
    text = joined_text(message.content)
    filled = fill(workspace.target.policy.texts.system_message, text=text)
    texts = (TextContent(text=filled, cache_mark=last_mark(message.content)),)
    natives = [position for position, piece in enumerate(message.content) if piece.kind == "native"]
    if natives and not text.strip():
        texts = ()
    extras = (message.extra, *(piece.extra for piece in message.content if piece.kind == "text"))
    workspace.note(ChangeCode.SYSTEM_AS_USER, workspace.path(index), lost_extra(*extras))
    known = workspace.origins(index)
    user = UserMessage(content=(*texts, *(message.content[position] for position in natives)))
    workspace.put(index, user, [INSERTED] * len(texts) + [known[position] for position in natives])
    workspace.reordered = True  # roles changed
