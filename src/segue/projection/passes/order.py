"""Pass 7, part 3: put the turns in an order that the target accepts.

Facts:
- Some targets require alternating roles; consecutive user turns are merged, never dropped. (coai #209, vllm #6862)
- Some refuse a user turn after a tool result; a short assistant turn is inserted.          (zed #37021, hermes #20154)
- Some require a user turn first, or last.                        (gemini-cli #11814, llxprt #1977, rig #1130)

A request that was answered must not change later. So an insertion depends only on earlier messages, or on a gap where a
message was dropped, because an earlier request may have ended there.
"""

from __future__ import annotations

from msgspec.structs import replace

from segue.conversation.content import TextContent, UserContent
from segue.conversation.messages import AssistantMessage, Message, UserMessage
from segue.models.origin import new_assistant_message
from segue.models.rules import Rules
from segue.projection.passes.extra import lost_extra, name_of, put_name
from segue.projection.report import ChangeCode, Loss
from segue.projection.workspace.workspace import INSERTED, ROLE_CODES, Workspace, roles_of


def order_turns(workspace: Workspace) -> None:
    """Merge user turns, insert turns between others, and fix the first and the last turn."""
    rules = workspace.target.rules
    if (
        rules.first_user
        and workspace.prefix_state.last_role is None
        and workspace.messages
        and workspace.messages[0].role != "user"
    ):
        text = workspace.target.policy.texts.first_turn
        opening = UserMessage.of(text)
        place = workspace.insertion(ChangeCode.TURN_INSERTED, "the target requires a user turn first")
        workspace.keep([opening, *workspace.messages], [place, *workspace.places], added=len(text))
    elif workspace.prefix_state.last_role is None and workspace.messages:
        _open_as_before(workspace, workspace.messages[0])
    before = workspace.prefix_state.last_role
    roles = (ROLE_CODES[before] if before is not None else "") + roles_of(workspace)
    if rules.alternate and "uu" in roles:
        _merge_users(workspace)
    if "aa" in roles and _wants_user_between(rules):
        _separate_assistants(workspace)
    if "tu" in roles and not rules.user_after_result:
        _bridge_results(workspace)
    if workspace.final and workspace.messages:
        last = workspace.messages[-1]
        if last.role == "assistant":
            _end_on_user(workspace, last)
    _record_roles(workspace)


def _open_as_before(workspace: Workspace, first: Message) -> None:
    """Insert the user turn that a request without messages ended with, before the reply to it."""
    rules = workspace.target.rules
    text = inserted_before(first)
    if text is not None and (not rules.instructions_alone or not rules.last_assistant):
        place = workspace.insertion(ChangeCode.TURN_INSERTED, "the request that was answered had it")
        workspace.keep([UserMessage.of(text), *workspace.messages], [place, *workspace.places], added=len(text))


def inserted_before(message: Message) -> str | None:
    """Return the text of the user turn that the request of a reply ended with, if it was inserted."""
    return message.sent.inserted if message.role == "assistant" and message.sent is not None else None


def _wants_user_between(rules: Rules) -> bool:
    return rules.alternate or not rules.last_assistant or rules.has("final_space")


def _merge_users(workspace: Workspace) -> None:
    """Merge consecutive user turns. Tool results have the user role on the wire too, but stay separate messages."""
    messages: list[Message] = []
    places: list[int] = []
    run: list[int] = []
    for index, message in enumerate(workspace.messages):
        if message.role == "user":
            run.append(index)
            continue
        _close_run(workspace, run, messages, places)
        messages.append(message)
        places.append(workspace.places[index])
    _close_run(workspace, run, messages, places)
    workspace.keep(messages, places, added=0)


def _close_run(workspace: Workspace, run: list[int], messages: list[Message], places: list[int]) -> None:
    """Replace a run of user turns by one, at the place of the first given one; each text keeps the name of its user."""
    if len(run) > 1 and workspace.target.policy.user_names == "text":
        for index in run:
            message = workspace.messages[index]
            if name := name_of(message, workspace.target.model.protocol):
                put_name(workspace, index, name)
    users = [message for index in run if (message := workspace.messages[index]).role == "user"]
    given = [index for index in run if workspace.is_given(index)]
    if len(run) > 1:
        kept = given[0] if given else run[0]
        content: list[UserContent] = []
        origins: list[int] = []
        for index, user in zip(run, users, strict=True):
            content += user.content
            origins += workspace.origins(index) if index == kept else [INSERTED] * len(user.content)
            if workspace.is_given(index):
                loss = Loss.NONE if index == kept else lost_extra(user.extra)
                workspace.note(ChangeCode.TURN_MERGED, workspace.path(index), loss)
        workspace.put(kept, replace(users[run.index(kept)], content=tuple(content)), origins, added=0)
        run[:] = [kept]
    for index in run:
        messages.append(workspace.messages[index])
        places.append(workspace.places[index])
    run.clear()


def _separate_assistants(workspace: Workspace) -> None:
    """Insert a short user turn between two assistant turns, where the target refuses consecutive ones.

    They are never merged, because that would break signatures. Where consecutive turns are accepted but a last
    assistant turn is not, a user turn is still inserted where a message was dropped, and where the later turn is the
    reply to a request that had one: an earlier request ended there.
    """
    default, added = workspace.target.policy.texts.last_turn, 0
    previous, place = workspace.prefix_state.last_role, workspace.prefix_state.last_place
    messages: list[Message] = []
    places: list[int] = []
    for index, message in enumerate(workspace.messages):
        here = workspace.places[index]
        if message.role == "assistant" and previous == "assistant":
            left_gap = place is not None and here > place + 1 and here not in workspace.joined
            text = inserted_before(message)
            if workspace.target.rules.alternate or left_gap or text is not None:
                messages.append(UserMessage.of(text or default))
                added += len(text or default)
                places.append(workspace.insertion(ChangeCode.TURN_INSERTED, "between two assistant turns"))
        messages.append(message)
        places.append(here)
        previous, place = message.role, here if here >= 0 else place
    if len(messages) > len(workspace.messages):
        workspace.keep(messages, places, added=added)


def _bridge_results(workspace: Workspace) -> None:
    previous = workspace.prefix_state.last_role
    messages: list[Message] = []
    places: list[int] = []
    for index, message in enumerate(workspace.messages):
        if message.role == "user" and previous == "toolResult":
            bridge = TextContent(text=workspace.target.policy.texts.bridge)
            messages.append(new_assistant_message(workspace.target.model, content=(bridge,)))
            places.append(workspace.insertion(ChangeCode.TURN_INSERTED, "between a tool result and the user"))
        messages.append(message)
        places.append(workspace.places[index])
        previous = message.role
    inserted = len(messages) - len(workspace.messages)
    if inserted:
        workspace.keep(messages, places, added=inserted * len(workspace.target.policy.texts.bridge))


def _end_on_user(workspace: Workspace, last: AssistantMessage) -> None:
    """Fix a last assistant turn, unless it has open calls or is to be continued."""
    rules, texts, index = workspace.target.rules, workspace.target.policy.texts, len(workspace.messages) - 1
    if last.tool_calls():
        return
    left_gap = 0 <= workspace.places[index] < workspace.end - 1
    is_refused = not rules.last_assistant and not _is_resumable(workspace, last)
    goes_on = bool(workspace.prefix_state.waiting)  # with a call of the provider's own
    if not goes_on and (is_refused or (left_gap and _wants_user_between(rules))):
        closing = UserMessage.of(texts.last_turn)
        place = workspace.insertion(ChangeCode.TURN_INSERTED, "the target requires a user turn last")
        workspace.keep([*workspace.messages, closing], [*workspace.places, place], added=len(texts.last_turn))
    elif rules.has("final_space") and last.content:
        piece = last.content[-1]
        if piece.kind == "text" and not (piece.text_signature and rules.text_signatures) and piece.text[-1:].isspace():
            # Only a signed turn can still have a blank text here; it gets a short text.
            text = piece.text.rstrip() or texts.empty_turn
            workspace.note(ChangeCode.FINAL_SPACE, workspace.content_path(index, len(last.content) - 1), Loss.NONE)
            content = (*last.content[:-1], replace(piece, text=text))
            workspace.put(index, replace(last, content=content), added=len(text))


def _is_resumable(workspace: Workspace, last: AssistantMessage) -> bool:
    """Whether the target will continue this turn: it paused in its own tool, or the turn is a prefix."""
    rules = workspace.target.rules
    if last.prefix:  # kept only where the target has the field
        return True
    paused = last.raw_stop_reason in rules.values("resumable_stops")
    return paused and any(piece.kind == "native" for piece in last.content) and workspace.target.ownership.is_own(last)


def _record_roles(workspace: Workspace) -> None:
    """Record what the next segment needs to know."""
    prefix_state = workspace.prefix_state
    for place in reversed(workspace.places):
        if place >= 0:
            prefix_state.last_place = place
            break
    if workspace.messages:
        prefix_state.last_role = workspace.messages[-1].role
    if workspace.target.rules.thinking_before_calls:
        _record_thinking_cycle(workspace)


def _record_thinking_cycle(workspace: Workspace) -> None:
    """Find the first turn of the current tool cycle: the first one with calls after the last user turn.

    Assistant turns directly before it are one turn with it on the wire.
    """
    opener: AssistantMessage | None = None
    joins = False
    for message in reversed(workspace.messages):
        if message.role == "user":
            workspace.prefix_state.cycle_begins = None
            break
        joins = message.role == "assistant" and (joins or bool(message.tool_calls()))
        if joins and message.role == "assistant":
            opener = message
    if opener is not None and workspace.prefix_state.cycle_begins is None:
        workspace.prefix_state.cycle_begins = opener.content[0].kind == "thinking"
