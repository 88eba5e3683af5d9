"""Pass 7, middle part: the system prompt and later instructions, where the target has a place for them.

Facts this file rests on:
- Instructions in mid-conversation stay in their place: hoisting them would change the cached prefix.
                                                                  (Rapid-MLX #1543, langchain #38849)
- What stands before the first turn is read as the prompt by every wire that has one.             (protocols' rules)
"""

from __future__ import annotations

from segue.conversation.content import SystemContent, TextContent
from segue.conversation.messages import SystemMessage, UserMessage
from segue.projection.passes.extra import lost_extra
from segue.projection.policy import fill
from segue.projection.report import ChangeCode, Loss
from segue.projection.workspace.workspace import INSERTED, SystemPrompt, Work, joined_text


def place_instructions(work: Work) -> None:
    """Put the system prompt and later instructions where the target has a place for them."""
    rules, carry = work.target.rules, work.carry
    if carry.last_role is None:
        if rules.system_prompt and (carry.system_prompt is None or carry.hoisted):
            _hoist_first(work)
        elif not rules.system_prompt and carry.system_prompt is not None and work.messages:
            _prompt_as_user(work, carry.system_prompt)
    if rules.system_messages != "anywhere" and "s" in work.survey.roles:
        _place_later(work)


def _hoist_first(work: Work) -> None:
    """Make instructions before the first turn the prompt: on the wire they would be read so anyhow."""
    content: list[SystemContent] = []
    count = 0
    for message in work.messages:
        if message.role != "system":
            break
        work.note(ChangeCode.SYSTEM_AS_PROMPT, work.path(count), lost_extra(message.extra))
        content += message.content
        count += 1
    if count:
        if not work.carry.hoisted:
            work.note(ChangeCode.SYSTEM_AS_PROMPT, ("system_prompt",), Loss.NONE)
        earlier = work.carry.system_prompt if isinstance(work.carry.system_prompt, tuple) else ()
        work.carry.system_prompt = (*earlier, *content)
        work.carry.hoisted = True
        work.keep(work.messages[count:], work.places[count:])


def _prompt_as_user(work: Work, prompt: SystemPrompt) -> None:
    work.note(ChangeCode.SYSTEM_AS_USER, ("system_prompt",), Loss.NONE)
    opening = UserMessage.of(prompt) if isinstance(prompt, str) else UserMessage(content=prompt or ())
    place = work.insertion(ChangeCode.TURN_INSERTED, "the system prompt")
    work.keep([opening, *work.messages], [place, *work.places])
    work.carry.system_prompt = None


def _place_later(work: Work) -> None:
    may_stay = work.target.rules.system_messages == "before_assistant"
    followers: list[str | None] = []
    follower: str | None = "assistant"  # the end is as good: an assistant turn comes next
    for message in reversed(work.messages):
        followers.append(follower)
        if message.role != "system":
            follower = message.role
    previous = work.carry.last_role
    for index, message in enumerate(work.messages):
        if message.role == "system":
            stands_well = previous in ("user", "toolResult", "system") and followers[-1 - index] == "assistant"
            if not (may_stay and stands_well):
                _as_user(work, index, message)
        previous = work.messages[index].role


def _as_user(work: Work, index: int, message: SystemMessage) -> None:
    """Tell instructions as a user's text; blocks of the target's own protocol stand behind it."""
    words = joined_text(message.content)
    texts = (TextContent(text=fill(work.target.policy.texts.system_message, text=words)),)
    natives = [position for position, piece in enumerate(message.content) if piece.kind == "native"]
    if natives and not words.strip():
        texts = ()
    extras = (message.extra, *(piece.extra for piece in message.content if piece.kind == "text"))
    work.note(ChangeCode.SYSTEM_AS_USER, work.path(index), lost_extra(*extras))
    known = work.origins(index)
    told = UserMessage(content=(*texts, *(message.content[position] for position in natives)))
    work.put(index, told, [INSERTED] * len(texts) + [known[position] for position in natives])
    work.reshaped = True  # not in number, but in roles
