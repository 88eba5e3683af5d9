"""Pass 3: every batch of calls gets exactly one result per call, in call order, before the next turn.

Facts this file rests on:
- Every provider refuses a call without a result and a result without a call.         (claude-code #1237, ellmer #459,
  eca #209, pi #7777, pydantic-ai #4882)
- Two results for one call are refused.                                                (hindsight #4250, kilocode #3772)
- Results answer in call order, or caches and some providers are upset.      (gemini-cli #4217; litellm, run 2026-11)
- A late result belongs to its call; what stood between them must not be lost.         (litellm deletes it, run 2026-11)
- Arguments that are no JSON object are refused when replayed.   (koda #501, vercel/ai #19274, llama.cpp answers 500)

No clock and no randomness: a result that stands in for a missing one is the same in every process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from segue.conversation.content import AssistantContent, TextContent, ToolCall
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from segue.projection.passes.extra import lost_extra
from segue.projection.passes.matching import Call, match_results
from segue.projection.policy import Texts, fill
from segue.projection.report import ChangeCode, Loss
from segue.projection.workspace.surrogates import clean_text
from segue.projection.workspace.workspace import INSERTED, Workspace, joined_text


def pair_results(workspace: Workspace) -> None:
    """Bring calls and results together; histories that are in order already pass untouched."""
    if not workspace.scan.paired:
        _Pairing(workspace).run()
    if workspace.scan.original:
        _repair_arguments(workspace)


class _Pairing:
    """The walk that puts a broken history in order, in the coordinates of the working list."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.given = workspace.messages
        self.results: dict[Call, int] = {}
        self.out: list[Message] = []
        self.places: list[int] = []
        self.order: list[int] = []
        """Where each message that comes out stood in the working list; -1 for one that is put in."""

    def run(self) -> None:
        """Rebuild the list: each turn, its results, then whatever stood between."""
        matches = match_results(self.given, self.workspace.prefix_state)
        self.results = {call: index for index, call in matches.answers.items()}
        if self.workspace.target.policy.duplicate_results == "last":
            self.results |= {call: index for index, call in matches.duplicates.items()}
        taken = set(self.results.values())
        repeated = matches.owners()
        last_turn = self.last_turn(repeated)
        for index, message in enumerate(self.given):
            if message.role == "assistant":
                self.emit(index)
                calls = message.tool_calls()
                if calls:
                    self.emit_results(index, calls, is_trailing=index == last_turn and self.workspace.final)
            elif message.role != "toolResult":
                self.emit(index)
            elif index in taken:
                continue
            elif index in repeated:
                self.workspace.note(
                    ChangeCode.RESULT_DUPLICATE, self.workspace.path(index), Loss.CONTENT, message.tool_call_id
                )
            else:
                self.emit_orphan(index, message)
        if self.order != list(range(len(self.given))):
            self.workspace.keep(self.out, self.places)

    def last_turn(self, owners: Mapping[int, Call]) -> int:
        """Find the last message that will not be a result."""
        keep_supported_extra = self.workspace.target.policy.orphan_results == "text"
        for index in range(len(self.given) - 1, -1, -1):
            if self.given[index].role != "toolResult" or (keep_supported_extra and index not in owners):
                return index
        return -1

    def emit(self, index: int) -> None:
        self.out.append(self.given[index])
        self.places.append(self.workspace.places[index])
        self.order.append(index)

    def emit_results(self, turn: int, calls: Sequence[ToolCall], *, is_trailing: bool) -> None:
        """Give each call its result; one that is not there is told as an error.

        Calls that the caller will still run are left open: those behind the last one that has its result, because the
        results come in call order and what was sent once stays as it was.
        """
        found = [self.results.get((turn, position)) for position in range(len(calls))]
        if is_trailing and self.workspace.target.policy.trailing_calls == "open":
            while found and found[-1] is None:
                found.pop()
        for call, index in zip(calls, found, strict=False):
            if index is not None:
                if self.order[-1] + 1 != index:
                    self.workspace.has_moves = True
                self.workspace.results.add(self.workspace.places[index])
                self.emit(index)
                continue
            self.out.append(
                ToolResultMessage(
                    tool_call_id=call.id,
                    tool_name=call.name,
                    content=(TextContent(text=self.workspace.target.policy.texts.missing_result),),
                    is_error=True,
                )
            )
            self.places.append(self.workspace.insertion(ChangeCode.RESULT_MISSING, clean_text(call.id)))
            self.order.append(-1)

    def emit_orphan(self, index: int, message: ToolResultMessage) -> None:
        workspace, path = self.workspace, self.workspace.path(index)
        if workspace.target.policy.orphan_results == "drop":
            workspace.note(ChangeCode.RESULT_ORPHANED, path, Loss.CONTENT, clean_text(message.tool_call_id))
            return
        texts = workspace.target.policy.texts
        keep_supported_extra, origins, loss = result_as_user(
            message, texts, texts.orphan_result, workspace.origins(index)
        )
        workspace.note(ChangeCode.RESULT_AS_TEXT, path, loss, clean_text(message.tool_call_id))
        workspace.put(index, keep_supported_extra, origins)
        workspace.reshaped = True  # not in number, but in roles
        self.emit(index)


def result_as_user(
    message: ToolResultMessage, texts: Texts, template: str, origins: Sequence[int]
) -> tuple[UserMessage, list[int], Loss]:
    """Tell a result as a user's text, its media behind it; also where the content came from, and what it costs."""
    text = joined_text(message.content)
    if is_error_text(message, texts):
        text = fill(texts.error_result, text=text)
    text = fill(template, name=clean_text(message.tool_name), text=text)
    media = [(piece, origin) for piece, origin in zip(message.content, origins, strict=True) if piece.kind != "text"]
    keep_supported_extra = UserMessage(
        content=(TextContent(text=text), *(piece for piece, _ in media)), timestamp=message.timestamp
    )
    extras = (message.extra, *(piece.extra for piece in message.content if piece.kind == "text"))
    return keep_supported_extra, [INSERTED, *(origin for _, origin in media)], lost_extra(*extras)


def is_error_text(message: ToolResultMessage, texts: Texts) -> bool:
    """Whether a result's text has to say that it is an error: what stands in for a missing result says so itself."""
    if not message.is_error:
        return False
    first = message.content[0] if len(message.content) == 1 else None
    return first is None or first.kind != "text" or first.text != texts.missing_result


def _repair_arguments(workspace: Workspace) -> None:
    """Drop a spelling of arguments that is not the JSON of those arguments: the best-effort object is sent instead."""
    for index, message in enumerate(workspace.messages):
        if message.role == "assistant":
            _repair_argument_texts(workspace, index, message)


def _repair_argument_texts(workspace: Workspace, index: int, message: AssistantMessage) -> None:
    content: list[AssistantContent] = list(message.content)
    for position, piece in enumerate(content):
        if piece.kind == "toolCall" and piece.arguments_text is not None and not _text_matches_arguments(piece):
            workspace.note(ChangeCode.ARGUMENTS_UNPARSED, workspace.content_path(index, position), Loss.CONTENT)
            content[position] = replace(piece, arguments_text=None)
            workspace.put(index, replace(message, content=tuple(content)))


def _text_matches_arguments(call: ToolCall) -> bool:
    try:
        return msgspec.json.decode(call.arguments_text or "") == call.arguments
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return False
