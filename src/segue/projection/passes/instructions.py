"""Pass 7, part 2: send the system prompt and system messages in a form and place that the target accepts.

Facts:
- Instructions in the middle of a conversation stay in their place: moving them to the prompt would change the cached
  prefix.                                                         (Rapid-MLX #1543, langchain #38849)
- Every protocol with a system prompt reads instructions before the first turn as the prompt.     (protocols' rules)
- Some targets need a turn with the instructions: "messages: at least one message is required".  (langchain #31657)

Instructions before the first turn join the prompt as separate pieces. Where there is a prompt and system messages
are accepted anywhere, they stay messages.

A request can consist of instructions alone. What it sent must not change when it is answered: the instructions that it
had are the prompt, later ones are not, and the short user turn that it needed stays first.
"""

from __future__ import annotations

from segue.conversation.content import SystemContent, TextContent
from segue.conversation.messages import SystemMessage, UserMessage
from segue.projection.passes.cache_marks import last_mark
from segue.projection.passes.extra import lost_extra
from segue.projection.passes.turns import is_setting
from segue.projection.policy import fill
from segue.projection.report import ChangeCode, Loss
from segue.projection.workspace.scan import UNFINISHED
from segue.projection.workspace.workspace import INSERTED, SystemPrompt, Workspace, joined_text


def place_instructions(workspace: Workspace) -> None:
    """Move or convert the system prompt and system messages that the target does not accept in their place."""
    rules, prefix_state = workspace.target.rules, workspace.prefix_state
    if not prefix_state.has_begun:
        _begin(workspace)
    if rules.system_messages != "anywhere" and "s" in workspace.scan.roles:
        _place_later(workspace)


def has_instructions(prompt: SystemPrompt) -> bool:
    """Whether a system prompt has something that a model can read."""
    if prompt is None or isinstance(prompt, str):
        return bool(prompt and prompt.strip())
    return any(piece.kind != "text" or piece.text.strip() for piece in prompt)


# -- the beginning of a conversation -----------------------------------------------------------------------------------


def _begin(workspace: Workspace) -> None:
    """Send the instructions before the first turn, and a turn if the target needs one with them."""
    rules, prefix_state = workspace.target.rules, workspace.prefix_state
    if not rules.system_prompt:
        if prefix_state.system_prompt is not None:
            _prompt_as_user(workspace, prefix_state.system_prompt)
        prefix_state.has_begun = bool(workspace.messages)
        return
    leading = 0
    for message in workspace.messages:
        if message.role != "system":
            break
        leading += 1
    request = None
    if leading or not workspace.messages or workspace.places[0] > 0:
        request = _request_of_instructions(workspace, leading)
    if leading:
        _join_prompt(workspace, leading if request is None else _count_before(workspace, leading, request))
    if request is not None and (rules.first_user or not rules.last_assistant or not rules.instructions_alone):
        at = 0 if rules.first_user else _count_before(workspace, len(workspace.messages), request)
        opening = UserMessage.of(workspace.target.policy.texts.first_turn)
        place = workspace.insertion(ChangeCode.TURN_INSERTED, "the target requires a turn with the instructions")
        messages, places = workspace.messages, workspace.places
        workspace.keep([*messages[:at], opening, *messages[at:]], [*places[:at], place, *places[at:]])
    prefix_state.has_begun = request is not None or bool(workspace.messages)


def _count_before(workspace: Workspace, count: int, place: int) -> int:
    """Count the first messages, at most `count`, that were given before a place."""
    return next((at for at in range(count) if workspace.places[at] >= place), count)


def _request_of_instructions(workspace: Workspace, leading: int) -> int | None:
    """Find the place of the turn that answers a request of instructions alone; None if there was no such request.

    That is the first finished assistant turn, if nothing but instructions is sent of the messages before it. If nothing
    else is sent of the whole segment, it is the turn that will follow.
    """
    earliest = 0
    if not has_instructions(workspace.prefix_state.system_prompt):
        leads = enumerate(workspace.messages[:leading])
        first = next((at for at, it in leads if it.role == "system" and has_instructions(it.content)), None)
        if first is None:
            return None
        earliest = workspace.places[first] + 1
    start = workspace.end - len(workspace.given)
    kept = next((place for place in workspace.places[leading:] if place >= 0), workspace.end)
    for place in range(max(start, earliest, 1), min(kept + 1, workspace.end)):
        message = workspace.given[place - start]
        if message.role == "assistant" and message.stop_reason not in UNFINISHED:
            return place
    return workspace.end if kept == workspace.end else None


def _join_prompt(workspace: Workspace, count: int) -> None:
    """Make the first system messages part of the system prompt."""
    prefix_state = workspace.prefix_state
    earlier = prefix_state.system_prompt
    if workspace.target.rules.system_messages == "anywhere" and earlier is not None and not prefix_state.hoisted:
        return
    content: list[SystemContent] = []
    for index, message in enumerate(workspace.messages[:count]):
        if message.role == "system":
            workspace.note(ChangeCode.SYSTEM_AS_PROMPT, workspace.path(index), lost_extra(message.extra))
            content += message.content
    if count:
        if not prefix_state.hoisted:
            workspace.note(ChangeCode.SYSTEM_AS_PROMPT, ("system_prompt",), Loss.NONE)
        if isinstance(earlier, str):
            earlier = (TextContent(text=earlier),) if earlier else ()
        prefix_state.system_prompt = (*(earlier or ()), *content)
        prefix_state.hoisted = True
        workspace.keep(workspace.messages[count:], workspace.places[count:])


def _prompt_as_user(workspace: Workspace, prompt: SystemPrompt) -> None:
    workspace.note(ChangeCode.SYSTEM_AS_USER, ("system_prompt",), Loss.NONE)
    opening = UserMessage.of(prompt) if isinstance(prompt, str) else UserMessage(content=prompt or ())
    place = workspace.insertion(ChangeCode.TURN_INSERTED, "the system prompt")
    workspace.keep([opening, *workspace.messages], [place, *workspace.places])
    workspace.prefix_state.system_prompt = None
    if any(piece.cache_mark is not None for piece in opening.content):
        workspace.scan.extra = True


# -- later instructions ------------------------------------------------------------------------------------------------


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
            if is_setting(workspace, message):
                continue
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
