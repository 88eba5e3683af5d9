"""Pass 7, first part: every single turn in a form the target takes.

Facts this file rests on:
- Text without words is refused; so is a turn that ends in thinking.      (litellm, forgecode #2107 and #3071)
- White space inside a signed turn is part of what was signed.            (vercel/ai, Bedrock)
- Some wires cannot mark a result as an error, or refuse an empty one.    (protocols' rules)

An assistant turn with nothing left to say is left out, except where its going would change what an earlier request has
sent: where turns have to alternate those around it would merge, and a request that ended in an assistant turn was
closed by a few words. There a short text stands in for it.
"""

from __future__ import annotations

from msgspec.structs import replace

from segue.conversation.arguments import encode_arguments
from segue.conversation.content import AnyContent, AssistantContent, TextContent
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from segue.models.rules import Rules
from segue.projection.passes.extra import lost_extra
from segue.projection.passes.pairing import is_told_error, result_as_user
from segue.projection.policy import fill
from segue.projection.report import ChangeCode, Loss
from segue.projection.workspace.surrogates import clean_text
from segue.projection.workspace.workspace import INSERTED, Work, joined_text, roles_of


def mend_turns(work: Work) -> None:
    """Take out what the target refuses inside a turn, fill what it refuses empty, drop what is left without words."""
    rules, survey = work.target.rules, work.survey
    if not rules.tools and (survey.call_ids or "t" in survey.roles):
        _flatten_tools(work)
    if survey.errors and rules.tool_error == "text":
        _tell_errors(work)
    if survey.blank and rules.refused_text != "none":
        _drop_blank_texts(work)
    if survey.thinks_last and rules.final_thinking != "allowed":
        _end_in_words(work)
    if survey.media and rules.text_beside_files:
        _caption_files(work)
    if survey.blank:
        _fill_or_drop(work)


# -- targets without tools ---------------------------------------------------------------------------------------------


def _flatten_tools(work: Work) -> None:
    for index, message in enumerate(work.messages):
        if message.role == "toolResult":
            texts = work.target.policy.texts
            told, origins, loss = result_as_user(message, texts, texts.result, work.origins(index))
            if work.is_given(index):
                work.note(ChangeCode.RESULT_AS_TEXT, work.path(index), loss)
            work.put(index, told, origins)
            work.reshaped = True  # not in number, but in roles
        elif message.role == "assistant":
            _flatten_calls(work, index, message)


def _flatten_calls(work: Work, index: int, message: AssistantMessage) -> None:
    content: list[AssistantContent] = list(message.content)
    origins = work.origins(index)
    changed = False
    for position, piece in enumerate(content):
        if piece.kind == "toolCall":
            loss = Loss.OPAQUE if piece.thought_signature else lost_extra(piece.extra)
            work.note(ChangeCode.CALL_AS_TEXT, work.content_path(index, position), loss)
            arguments = encode_arguments(piece.arguments)
            text = fill(work.target.policy.texts.call, name=clean_text(piece.name), arguments=arguments)
            content[position] = TextContent(text=text)
            changed = True
    if changed:
        work.put(index, replace(message, content=tuple(content)), origins)


# -- results -----------------------------------------------------------------------------------------------------------


def _tell_errors(work: Work) -> None:
    """Say it in the text where a result cannot be marked; the target's own calls keep their results as they were."""
    texts, home = work.target.policy.texts, work.target.home
    roles = roles_of(work)
    indexes = range(len(work.messages)) if work.reshaped else work.survey.errors
    for index in indexes:
        message = work.messages[index]
        if message.role == "toolResult" and is_told_error(message, texts):
            caller = work.messages[roles.rindex("a", 0, index)]  # since pairing, every result stands behind its call
            if caller.role == "assistant" and not home.is_own(caller):
                _tell_error(work, index, message)


def _tell_error(work: Work, index: int, message: ToolResultMessage) -> None:
    texts = [piece for piece in message.content if piece.kind == "text"]
    told = fill(work.target.policy.texts.error_result, text=joined_text(message.content))
    if len(texts) == 1 or (not texts and not told.strip()):
        content = tuple(replace(piece, text=told) if piece.kind == "text" else piece for piece in message.content)
        work.note(ChangeCode.ERROR_AS_TEXT, work.path(index), Loss.NONE)
        work.put(index, replace(message, content=content, is_error=False))
        return
    work.note(ChangeCode.ERROR_AS_TEXT, work.path(index), lost_extra(*(piece.extra for piece in texts)))
    media = [position for position, piece in enumerate(message.content) if piece.kind != "text"]
    content = (TextContent(text=told), *(message.content[position] for position in media))
    known = work.origins(index)
    origins = [INSERTED, *(known[position] for position in media)]
    work.put(index, replace(message, content=content, is_error=False), origins)


# -- words -------------------------------------------------------------------------------------------------------------


def _drop_blank_texts(work: Work) -> None:
    refuses_blank = work.target.rules.refused_text == "blank"
    for index, message in enumerate(work.messages):
        for piece in message.content:
            if piece.kind == "text" and not piece.text.strip():
                break
        else:
            continue
        is_sealed = message.role == "assistant" and any(
            piece.kind == "thinking" and piece.thinking_signature for piece in message.content
        )
        _drop_blanks(work, index, blank=refuses_blank and not is_sealed)


def _drop_blanks(work: Work, index: int, *, blank: bool) -> None:
    message = work.messages[index]
    known = work.origins(index)
    content: list[AnyContent] = []
    origins: list[int] = []
    for position, piece in enumerate(message.content):
        may_be_blank = work.target.rules.text_seals and message.role == "assistant"
        is_sealed = may_be_blank and piece.kind == "text" and piece.text_signature
        if piece.kind == "text" and not is_sealed and not (piece.text.strip() if blank else piece.text):
            if work.is_given(index) and known[position] != INSERTED:
                work.note(ChangeCode.TEXT_BLANK, work.content_path(index, position), lost_extra(piece.extra))
            continue
        content.append(piece)
        origins.append(known[position])
    if len(content) != len(message.content):
        work.survey.thinks_last = True
        work.put(index, replace(message, content=tuple(content)), origins)


def _end_in_words(work: Work) -> None:
    for index, message in enumerate(work.messages):
        if message.role == "assistant" and message.content and message.content[-1].kind == "thinking":
            if work.target.rules.final_thinking == "text":
                _add_text(work, index, message, work.target.policy.texts.empty_turn)
            else:
                _drop_last_thoughts(work, index, message)


def _drop_last_thoughts(work: Work, index: int, message: AssistantMessage) -> None:
    content = list(message.content)
    while content and content[-1].kind == "thinking":
        content.pop()
        path = work.content_path(index, len(content))
        work.note(ChangeCode.THINKING_DROPPED, path, Loss.CONTENT, "last in its turn")
    work.survey.blank = True
    work.put(index, replace(message, content=tuple(content)), work.origins(index)[: len(content)])


def _add_text(work: Work, index: int, message: AssistantMessage | UserMessage, text: str) -> None:
    if work.is_given(index):
        work.note(ChangeCode.TURN_FILLED, (*work.path(index), "content"), Loss.NONE)
    content = (*message.content, TextContent(text=text))
    work.put(index, replace(message, content=content), [*work.origins(index), INSERTED])


def _caption_files(work: Work) -> None:
    for index, message in enumerate(work.messages):
        if message.role == "user":
            kinds = {piece.kind for piece in message.content}
            if "file" in kinds and "text" not in kinds:
                _add_text(work, index, message, work.target.policy.texts.file_caption)


# -- turns without content ---------------------------------------------------------------------------------------------


def _fill_or_drop(work: Work) -> None:
    """Fill what may not be missing, leave out what may."""
    messages: list[Message] = []
    places: list[int] = []
    previous = work.carry.last_role
    for index, message in enumerate(work.messages):
        if not message.content:
            if message.role == "toolResult":
                if not work.target.rules.empty_result:
                    _fill_result(work, index, message)
            elif message.role == "assistant" and _has_to_stay(work.target.rules, previous):
                _add_text(work, index, message, work.target.policy.texts.empty_turn)
            else:
                if work.is_given(index):
                    work.note(ChangeCode.TURN_EMPTY, work.path(index), lost_extra(message.extra))
                continue
        messages.append(work.messages[index])
        places.append(work.places[index])
        previous = message.role
    if len(messages) != len(work.messages):
        work.keep(messages, places)


def _has_to_stay(rules: Rules, previous: str | None) -> bool:
    """Whether a turn without words answered a request that would look different without it."""
    if rules.alternate or rules.system_messages == "before_assistant":
        return True
    return previous == "assistant" and (not rules.last_assistant or rules.refused_final_space)


def _fill_result(work: Work, index: int, message: ToolResultMessage) -> None:
    if work.is_given(index):
        work.note(ChangeCode.RESULT_FILLED, (*work.path(index), "content"), Loss.NONE)
    filler = TextContent(text=work.target.policy.texts.empty_result)
    work.put(index, replace(message, content=(filler,)), [INSERTED])
