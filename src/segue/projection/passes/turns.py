"""Pass 7, part 1: change the content of each turn to a form that the target accepts.

Facts:
- Blank texts are refused; so is a turn that ends in thinking.            (litellm, forgecode #2107 and #3071)
- White space inside a signed turn is part of the signed bytes.           (vercel/ai, Bedrock)
- Some protocols have no error flag for results, or refuse empty ones.    (protocols' rules)

An assistant turn without content is removed, unless that would change what an earlier request sent: where roles have to
alternate, the user turns around it would be merged, and where a last assistant turn is refused, an earlier request had
a short user turn after it. In these cases a short text is added instead.
"""

from __future__ import annotations

from msgspec.structs import replace

from segue.conversation.arguments import encode_arguments
from segue.conversation.content import AnyContent, AssistantContent, TextContent
from segue.conversation.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, UserMessage
from segue.models.rules import Rules
from segue.projection.passes.cache_marks import last_mark
from segue.projection.passes.extra import lost_extra
from segue.projection.passes.pairing import is_error_text, result_as_user
from segue.projection.policy import fill
from segue.projection.report import ChangeCode, Loss
from segue.projection.workspace.surrogates import clean_text
from segue.projection.workspace.workspace import INSERTED, Workspace, joined_text, roles_of
from segue.protocols.kit.verbatim import data_of


def repair_turns(workspace: Workspace) -> None:
    """Remove content that the target refuses, fill turns and results that must not be empty, drop empty turns."""
    rules, scan = workspace.target.rules, workspace.scan
    if not rules.tools and (scan.call_ids or "t" in scan.roles):
        _flatten_tools(workspace)
    if scan.errors and rules.tool_error == "text":
        _write_errors_as_text(workspace)
    if scan.blank and rules.refused_text != "none":
        _drop_blank_texts(workspace)
    if scan.thinks_last and rules.final_thinking != "allowed":
        _end_in_text(workspace)
    if scan.media and rules.has("files_alone"):
        _caption_files(workspace)
    if scan.blank:
        _fill_or_drop(workspace)


# -- targets without tools ---------------------------------------------------------------------------------------------


def _flatten_tools(workspace: Workspace) -> None:
    for index, message in enumerate(workspace.messages):
        if message.role == "toolResult":
            texts = workspace.target.policy.texts
            user, origins, loss = result_as_user(message, texts, texts.result, workspace.origins(index))
            if workspace.is_given(index):
                workspace.note(ChangeCode.RESULT_AS_TEXT, workspace.path(index), loss)
            workspace.put(index, user, origins)
            workspace.reordered = True  # roles changed
        elif message.role == "assistant":
            _flatten_calls(workspace, index, message)


def _flatten_calls(workspace: Workspace, index: int, message: AssistantMessage) -> None:
    content: list[AssistantContent] = list(message.content)
    origins = workspace.origins(index)
    changed = False
    for position, piece in enumerate(content):
        if piece.kind == "toolCall":
            loss = Loss.OPAQUE if piece.thought_signature else lost_extra(piece.extra)
            workspace.note(ChangeCode.CALL_AS_TEXT, workspace.content_path(index, position), loss)
            arguments = encode_arguments(piece.arguments)
            text = fill(workspace.target.policy.texts.call, name=clean_text(piece.name), arguments=arguments)
            content[position] = TextContent(text=text, cache_mark=piece.cache_mark)
            changed = True
    if changed:
        workspace.put(index, replace(message, content=tuple(content)), origins)


# -- results -----------------------------------------------------------------------------------------------------------


def _write_errors_as_text(workspace: Workspace) -> None:
    """Mark error results in their text; results of the target's own calls are not changed."""
    texts, ownership = workspace.target.policy.texts, workspace.target.ownership
    roles = roles_of(workspace)
    indexes = range(len(workspace.messages)) if workspace.reordered else workspace.scan.errors
    searched, caller_at = 0, -1
    for index in indexes:
        message = workspace.messages[index]
        if message.role == "toolResult" and is_error_text(message, texts):
            # After pairing, every result follows the turn with its call.
            found = roles.rfind("a", searched, index)
            caller_at, searched = found if found >= 0 else caller_at, index
            # Only a result for a turn that the provider holds follows none.
            caller = workspace.messages[caller_at] if caller_at >= 0 else None
            if caller is None or (caller.role == "assistant" and not ownership.is_own(caller)):
                _write_error_as_text(workspace, index, message)


def _write_error_as_text(workspace: Workspace, index: int, message: ToolResultMessage) -> None:
    texts = [piece for piece in message.content if piece.kind == "text"]
    text = fill(workspace.target.policy.texts.error_result, text=joined_text(message.content))
    if len(texts) == 1 or (not texts and not text.strip()):
        content = tuple(replace(piece, text=text) if piece.kind == "text" else piece for piece in message.content)
        workspace.note(ChangeCode.ERROR_AS_TEXT, workspace.path(index), Loss.NONE)
        workspace.put(index, replace(message, content=content, is_error=False), added=len(text))
        return
    workspace.note(ChangeCode.ERROR_AS_TEXT, workspace.path(index), lost_extra(*(piece.extra for piece in texts)))
    media = [position for position, piece in enumerate(message.content) if piece.kind != "text"]
    content = (TextContent(text=text, cache_mark=last_mark(texts)), *(message.content[position] for position in media))
    known = workspace.origins(index)
    origins = [INSERTED, *(known[position] for position in media)]
    workspace.put(index, replace(message, content=content, is_error=False), origins, added=len(text))


# -- texts -------------------------------------------------------------------------------------------------------------


def _drop_blank_texts(workspace: Workspace) -> None:
    for index, message in enumerate(workspace.messages):
        for piece in message.content:
            if piece.kind == "text" and not piece.text.strip():
                break
        else:
            continue
        refuses_blank, is_beside = workspace.target.rules.refused_text == "blank", _keeps_blanks(workspace, message)
        if refuses_blank or not is_beside:
            _drop_blanks(workspace, index, blank=refuses_blank and not is_beside)


def _keeps_blanks(workspace: Workspace, message: Message) -> bool:
    """Whether texts that are refused alone are accepted with the other content of a message."""
    accepted = workspace.target.rules.blank_beside
    return any(_beside(piece) in accepted for piece in message.content)


def _beside(piece: AnyContent) -> str:
    match piece.kind:
        case "text":
            return "text" if piece.text.strip() else ""
        case "thinking":
            return "signed" if piece.thinking_signature else ""
        case kind:
            return kind


def _drop_blanks(workspace: Workspace, index: int, *, blank: bool) -> None:
    message = workspace.messages[index]
    known = workspace.origins(index)
    content: list[AnyContent] = []
    origins: list[int] = []
    for position, piece in enumerate(message.content):
        may_be_blank = workspace.target.rules.text_signatures and message.role == "assistant"
        is_signed = may_be_blank and piece.kind == "text" and piece.text_signature
        if piece.kind == "text" and not is_signed and not (piece.text.strip() if blank else piece.text):
            if workspace.is_given(index) and known[position] != INSERTED:
                workspace.note(ChangeCode.TEXT_BLANK, workspace.content_path(index, position), lost_extra(piece.extra))
            continue
        content.append(piece)
        origins.append(known[position])
    if len(content) != len(message.content):
        workspace.scan.thinks_last = True
        workspace.put(index, replace(message, content=tuple(content)), origins, added=0)


def _end_in_text(workspace: Workspace) -> None:
    for index, message in enumerate(workspace.messages):
        if message.role == "assistant" and message.content and message.content[-1].kind == "thinking":
            if workspace.target.rules.final_thinking == "text":
                _add_text(workspace, index, message, workspace.target.policy.texts.empty_turn)
            else:
                _drop_final_thinking(workspace, index, message)


def _drop_final_thinking(workspace: Workspace, index: int, message: AssistantMessage) -> None:
    content = list(message.content)
    while content and content[-1].kind == "thinking":
        content.pop()
        path = workspace.content_path(index, len(content))
        workspace.note(ChangeCode.THINKING_DROPPED, path, Loss.CONTENT, "a turn must not end in thinking")
    workspace.scan.blank = True
    workspace.put(index, replace(message, content=tuple(content)), workspace.origins(index)[: len(content)], added=0)


def _add_text(workspace: Workspace, index: int, message: AssistantMessage | UserMessage, text: str) -> None:
    if workspace.is_given(index):
        workspace.note(ChangeCode.TURN_FILLED, (*workspace.path(index), "content"), Loss.NONE)
    content = (*message.content, TextContent(text=text))
    workspace.put(index, replace(message, content=content), [*workspace.origins(index), INSERTED], added=len(text))


def _caption_files(workspace: Workspace) -> None:
    for index, message in enumerate(workspace.messages):
        if message.role == "user":
            kinds = {piece.kind for piece in message.content}
            if "file" in kinds and "text" not in kinds:
                _add_text(workspace, index, message, workspace.target.policy.texts.file_caption)


# -- turns without content ---------------------------------------------------------------------------------------------


def _fill_or_drop(workspace: Workspace) -> None:
    """Fill empty results and turns that have to stay; drop other empty turns."""
    messages: list[Message] = []
    places: list[int] = []
    previous = workspace.prefix_state.last_role
    for index, message in enumerate(workspace.messages):
        if not message.content:
            if message.role == "toolResult":
                if not workspace.target.rules.empty_result:
                    _fill_result(workspace, index, message)
            elif message.role == "system" and is_setting(workspace, message):
                pass
            elif message.role == "assistant" and _has_to_stay(workspace.target.rules, previous):
                _add_text(workspace, index, message, workspace.target.policy.texts.empty_turn)
            else:
                if workspace.is_given(index):
                    workspace.note(ChangeCode.TURN_EMPTY, workspace.path(index), lost_extra(message.extra))
                continue
        messages.append(workspace.messages[index])
        places.append(workspace.places[index])
        previous = message.role
    if len(messages) != len(workspace.messages):
        workspace.keep(messages, places, added=0)


def is_setting(workspace: Workspace, message: SystemMessage) -> bool:
    """Whether a system message only sets something, such as the effort, and the target reads that."""
    fields = workspace.target.rules.values("system_fields")
    if not fields or message.content or message.extra is None:
        return False
    return not fields.isdisjoint(data_of(message.extra, workspace.target.model.protocol))


def _has_to_stay(rules: Rules, previous: str | None) -> bool:
    """Whether removing an empty turn would change what an earlier request sent."""
    if rules.alternate or rules.system_messages == "before_assistant":
        return True
    return previous == "assistant" and (not rules.last_assistant or rules.has("final_space"))


def _fill_result(workspace: Workspace, index: int, message: ToolResultMessage) -> None:
    if workspace.is_given(index):
        workspace.note(ChangeCode.RESULT_FILLED, (*workspace.path(index), "content"), Loss.NONE)
    filler = TextContent(text=workspace.target.policy.texts.empty_result)
    workspace.put(index, replace(message, content=(filler,)), [INSERTED], added=len(filler.text))
