"""Pass 7, last part: turns in the order the target wants.

Facts this file rests on:
- Roles have to alternate at some targets; neighbours are merged, never dropped.          (coai #209, vllm #6862)
- A user turn may not follow a tool result at some; a short assistant turn bridges them.    (zed #37021, hermes #20154)
- Some want the user first, or last.                              (gemini-cli #11814, llxprt #1977, rig #1130)

What an answered request has sent stays: whatever is put in looks only backwards, or at a gap that a dropped message
left, because an earlier request may have ended there.
"""

from __future__ import annotations

from msgspec.structs import replace

from segue.conversation.content import TextContent, UserContent
from segue.conversation.messages import AssistantMessage, Message, UserMessage
from segue.models.origin import new_assistant_message
from segue.models.rules import Rules
from segue.projection.passes.extra import is_prefix, lost_extra
from segue.projection.report import ChangeCode, Loss
from segue.projection.workspace.workspace import INSERTED, ROLE_LETTERS, Work, roles_of


def order_turns(work: Work) -> None:
    """Merge, part, bridge, and see to the first and the last turn."""
    rules = work.target.rules
    if rules.first_user and work.carry.last_role is None and work.messages and work.messages[0].role != "user":
        opening = UserMessage.of(work.target.policy.texts.first_turn)
        place = work.insertion(ChangeCode.TURN_INSERTED, "the first turn is the user's")
        work.keep([opening, *work.messages], [place, *work.places])
    before = work.carry.last_role
    roles = (ROLE_LETTERS[before] if before is not None else "") + roles_of(work)
    if rules.alternate and "uu" in roles:
        _merge_users(work)
    if "aa" in roles and _wants_user_between(rules):
        _part_assistants(work)
    if "tu" in roles and not rules.user_after_result:
        _bridge_results(work)
    if work.final and work.messages:
        last = work.messages[-1]
        if last.role == "assistant":
            _end_on_user(work, last)
    _remember(work)


def _wants_user_between(rules: Rules) -> bool:
    return rules.alternate or not rules.last_assistant or rules.refused_final_space


def _merge_users(work: Work) -> None:
    """Make neighbouring user turns one. Tool results are the user's too, but stay messages of their own."""
    messages: list[Message] = []
    places: list[int] = []
    run: list[int] = []
    for index, message in enumerate(work.messages):
        if message.role == "user":
            run.append(index)
            continue
        _close_run(work, run, messages, places)
        messages.append(message)
        places.append(work.places[index])
    _close_run(work, run, messages, places)
    work.keep(messages, places)


def _close_run(work: Work, run: list[int], messages: list[Message], places: list[int]) -> None:
    """Put one turn in for a run of them; together they stand where the first that was given stood."""
    users = [message for index in run if (message := work.messages[index]).role == "user"]
    given = [index for index in run if work.is_given(index)]
    if len(run) > 1:
        kept = given[0] if given else run[0]
        content: list[UserContent] = []
        origins: list[int] = []
        for index, user in zip(run, users, strict=True):
            content += user.content
            origins += work.origins(index) if index == kept else [INSERTED] * len(user.content)
            if work.is_given(index):
                loss = Loss.NONE if index == kept else lost_extra(user.extra)
                work.note(ChangeCode.TURN_MERGED, work.path(index), loss)
        work.put(kept, replace(users[run.index(kept)], content=tuple(content)), origins)
        run[:] = [kept]
    for index in run:
        messages.append(work.messages[index])
        places.append(work.places[index])
    run.clear()


def _part_assistants(work: Work) -> None:
    """Put a short user turn between two assistant turns, where they may not be neighbours.

    They are never merged: signed turns stay as they were signed. Where neighbours are allowed but a last assistant
    turn is not, one is still needed in the gap that a dropped message left, because an earlier request ended there.
    """
    previous, place = work.carry.last_role, work.carry.last_place
    messages: list[Message] = []
    places: list[int] = []
    for index, message in enumerate(work.messages):
        here = work.places[index]
        if message.role == "assistant" and previous == "assistant":
            left_gap = place is not None and here > place + 1
            if work.target.rules.alternate or left_gap:
                messages.append(UserMessage.of(work.target.policy.texts.last_turn))
                places.append(work.insertion(ChangeCode.TURN_INSERTED, "between two assistant turns"))
        messages.append(message)
        places.append(here)
        previous, place = message.role, here if here >= 0 else place
    if len(messages) != len(work.messages):
        work.keep(messages, places)


def _bridge_results(work: Work) -> None:
    previous = work.carry.last_role
    messages: list[Message] = []
    places: list[int] = []
    for index, message in enumerate(work.messages):
        if message.role == "user" and previous == "toolResult":
            bridge = TextContent(text=work.target.policy.texts.bridge)
            messages.append(new_assistant_message(work.target.model, content=(bridge,)))
            places.append(work.insertion(ChangeCode.TURN_INSERTED, "between a tool result and the user"))
        messages.append(message)
        places.append(work.places[index])
        previous = message.role
    if len(messages) != len(work.messages):
        work.keep(messages, places)


def _end_on_user(work: Work, last: AssistantMessage) -> None:
    """Mend an assistant turn that stands last, unless its calls are left open or it is to be gone on with."""
    rules, texts, index = work.target.rules, work.target.policy.texts, len(work.messages) - 1
    if last.tool_calls():
        return
    left_gap = 0 <= work.places[index] < work.end - 1
    if (not rules.last_assistant and not _is_resumable(work, last)) or (left_gap and _wants_user_between(rules)):
        closing = UserMessage.of(texts.last_turn)
        place = work.insertion(ChangeCode.TURN_INSERTED, "the last turn is the user's")
        work.keep([*work.messages, closing], [*work.places, place])
    elif rules.refused_final_space and last.content:
        piece = last.content[-1]
        if piece.kind == "text" and not piece.text_signature and piece.text != piece.text.rstrip():
            # Blank texts are gone by now but for those of a sealed turn: there a few words stand in.
            text = piece.text.rstrip() or texts.empty_turn
            work.note(ChangeCode.FINAL_SPACE, work.content_path(index, len(last.content) - 1), Loss.NONE)
            work.put(index, replace(last, content=(*last.content[:-1], replace(piece, text=text))))


def _is_resumable(work: Work, last: AssistantMessage) -> bool:
    """Whether the target will go on from there: it paused in what it runs itself, or was told to begin so."""
    rules = work.target.rules
    if rules.prefix_key is not None and is_prefix(last.extra, work.target.model.protocol, rules.prefix_key):
        return True
    paused = last.raw_stop_reason in rules.resumable_stops
    return paused and any(piece.kind == "native" for piece in last.content) and work.target.home.is_own(last)


def _remember(work: Work) -> None:
    """Leave behind what the next stretch asks of this one."""
    carry = work.carry
    for place in reversed(work.places):
        if place >= 0:
            carry.last_place = place
            break
    if work.messages:
        carry.last_role = work.messages[-1].role
    if work.target.rules.thinking_before_calls:
        _remember_cycle(work)


def _remember_cycle(work: Work) -> None:
    """Find the turn that opened the running tool cycle: the first with calls behind the user's last words."""
    opener: AssistantMessage | None = None
    for message in reversed(work.messages):
        if message.role == "user":
            work.carry.cycle_begins = None
            break
        if message.role == "assistant" and message.tool_calls():
            opener = message
    if opener is not None and work.carry.cycle_begins is None:
        work.carry.cycle_begins = opener.content[0].kind == "thinking"
