"""Pass 3, part 2: give every tool call exactly one result, in call order, directly after the turn with the calls.

Facts:
- Every provider refuses a call without a result and a result without a call.         (claude-code #1237, ellmer #459,
  eca #209, pi #7777, pydantic-ai #4882)
- Two results for one call are refused.                                                (hindsight #4250, kilocode #3772)
- Results out of call order miss the cache, and some providers refuse them.  (gemini-cli #4217; litellm, run 2026-11)
- A late result belongs to its call; messages between them must not be lost.           (litellm drops them, run 2026-11)
- Arguments that are not a JSON object are refused when replayed.  (koda #501, vercel/ai #19274, llama.cpp answers 500)

An inserted result has no timestamp and no random id: it is the same in every process.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from segue.conversation.content import AssistantContent, TextContent, ToolCall, UserContent
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from segue.projection.passes.cache_marks import last_mark, moved_mark
from segue.projection.passes.extra import lost_extra
from segue.projection.passes.held_content import has_reference, is_continued
from segue.projection.passes.matching import Call, Matches, Unsettled, last_turn, match_results
from segue.projection.passes.native_blocks import refuse_in_user_turn, refuse_native_blocks
from segue.projection.policy import Texts, fill
from segue.projection.report import ChangeCode, Loss
from segue.projection.workspace.surrogates import clean_text, is_clean
from segue.projection.workspace.workspace import INSERTED, Workspace, joined_text
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.replay import TOOL_RESULT

_Answer: TypeAlias = tuple[str, str, int | None]


def pair_results(workspace: Workspace) -> None:
    """Pair calls and results; a history that is already paired is not changed."""
    matches = None if workspace.scan.paired else match_results(workspace.messages, workspace.prefix_state)
    natives = refuse_native_blocks(workspace, matches)
    if not workspace.scan.paired:
        _Pairing(workspace).run(matches or match_results(workspace.messages, workspace.prefix_state))
    elif workspace.scan.native:
        _record_references(workspace)
    if natives is not None:
        natives.record()
    if workspace.scan.original:
        _repair_arguments(workspace)


def _record_references(workspace: Workspace) -> None:
    protocol = workspace.target.model.protocol
    if any(map(partial(has_reference, protocol=protocol), workspace.messages)):
        workspace.prefix_state.has_references = True


class _Pairing:
    """Rebuilds the list of messages of a history that is not paired. Indexes are those of the workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.given = workspace.messages
        self.results: dict[Call, int] = {}
        self.native_results: dict[tuple[int, int], int] = {}
        self.out: list[Message] = []
        self.places: list[int] = []
        self.order: list[int] = []
        """The previous index of each message of the new list; -1 for an inserted one."""
        self.is_continued = is_continued(workspace)

    def run(self, matches: Matches) -> None:
        """Rebuild the list: each turn, its results, then the messages that were between them."""
        self.results = {call: index for index, call in matches.answers.items()}
        if self.workspace.target.policy.duplicate_results == "last":
            self.results |= {call: index for index, call in matches.duplicates.items()}
        taken = set(self.results.values())
        repeated = matches.owners()
        self.find_native_answers(taken)
        keeps_orphans = self.workspace.target.policy.orphan_results == "text"
        last = last_turn(self.given, repeated, keeps_orphans=keeps_orphans)
        for index, message in enumerate(self.given):
            if message.role == "assistant":
                self.emit(index)
                calls = self.calls_of(index, message)
                if calls:
                    self.emit_results(calls, is_trailing=index == last and self.workspace.final)
            elif message.role != "toolResult":
                self.emit(index)
                if self.workspace.scan.native and has_reference(message, self.workspace.target.model.protocol):
                    self.is_continued = self.workspace.prefix_state.has_references = True
            elif index in taken:
                continue
            elif index in repeated:
                self.workspace.note(
                    ChangeCode.RESULT_DUPLICATE, self.workspace.path(index), Loss.CONTENT, message.tool_call_id
                )
            elif self.workspace.prefix_state.made_native(message.tool_call_id):
                raise Unsettled
            else:
                self.emit_orphan(index, message)
        if self.order != list(range(len(self.given))):
            self.workspace.keep(self.out, self.places)

    def emit(self, index: int) -> None:
        self.out.append(self.given[index])
        self.places.append(self.workspace.places[index])
        self.order.append(index)

    def find_native_answers(self, taken: set[int]) -> None:
        """Add the results of native calls to the results; a result of a function call is not one of them."""
        answers = self.workspace.native_answers
        if answers:
            indexes = {place: index for index, place in enumerate(self.workspace.places)}
            for (result, _), call in answers.items():
                if indexes[result] not in taken:
                    self.native_results[call] = indexes[result]
            taken.update(self.native_results.values())

    def calls_of(self, index: int, message: AssistantMessage) -> list[_Answer]:
        """Return the calls of a turn, in order: id, name, and the index of the result or None.

        Native calls are among them if a tool result answers them, or has to.
        """
        place, replay = self.workspace.places[index], self.workspace.target.protocol.replay
        is_own = bool(replay.pairs) and self.workspace.scan.native and self.workspace.is_own(index)
        calls: list[_Answer] = []
        count = 0
        for position, piece in enumerate(message.content):
            if piece.kind == "toolCall":
                calls.append((piece.id, piece.name, self.results.get((index, count))))
                count += 1
            elif piece.kind == "native" and is_own and piece.protocol == self.workspace.target.model.protocol:
                if (place, position) in self.workspace.refused:
                    continue
                kind, inner = replay.read(piece.block)
                pair, result = replay.call_of(kind), self.native_results.get((place, position))
                call_id = text_of(inner.get(pair.call_id)) if pair is not None else None
                if pair is not None and call_id and (result is not None or pair.results == (TOOL_RESULT,)):
                    calls.append((call_id, text_of(inner.get("type")) or kind, result))
        return calls

    def emit_results(self, calls: Sequence[_Answer], *, is_trailing: bool) -> None:
        """Append the result of each call; an error result is inserted for a missing one.

        With `Policy(trailing_calls="open")` the calls after the last one that has a result stay without one, because
        the caller will still run them. Calls before it get an error result: results are sent in call order, and what
        was sent must not change.
        """
        count = len(calls)
        if is_trailing and self.workspace.target.policy.trailing_calls == "open":
            while count and calls[count - 1][2] is None:
                count -= 1
        for call_id, name, index in calls[:count]:
            if index is not None:
                if self.order[-1] + 1 != index:
                    self.workspace.has_moves = True
                self.workspace.results.add(self.workspace.places[index])
                self.emit(index)
                continue
            self.out.append(
                ToolResultMessage(
                    tool_call_id=call_id,
                    tool_name=name,
                    content=(TextContent(text=self.workspace.target.policy.texts.missing_result),),
                    is_error=True,
                )
            )
            self.places.append(self.workspace.insertion(ChangeCode.RESULT_MISSING, clean_text(call_id)))
            self.order.append(-1)

    def emit_orphan(self, index: int, message: ToolResultMessage) -> None:
        workspace, path = self.workspace, self.workspace.path(index)
        if self.is_continued:
            if not is_clean(message.tool_call_id):
                # The provider has no call with such an id, and a request cannot hold it.
                workspace.note(ChangeCode.SURROGATE_REPLACED, (*path, "tool_call_id"), Loss.OPAQUE)
                workspace.put(index, replace(message, tool_call_id=clean_text(message.tool_call_id)), added=0)
            self.emit(index)
            return
        if workspace.target.policy.orphan_results == "drop":
            workspace.note(ChangeCode.RESULT_ORPHANED, path, Loss.CONTENT, clean_text(message.tool_call_id))
            return
        texts = workspace.target.policy.texts
        user, origins, loss = result_as_user(message, texts, texts.orphan_result, workspace.origins(index))
        workspace.note(ChangeCode.RESULT_AS_TEXT, path, loss, clean_text(message.tool_call_id))
        if workspace.scan.native:
            refuse_in_user_turn(workspace, workspace.places[index], message, user)
        workspace.put(index, user, origins)
        workspace.reordered = True  # roles changed
        self.emit(index)


def result_as_user(
    message: ToolResultMessage, texts: Texts, template: str, origins: Sequence[int]
) -> tuple[UserMessage, list[int], Loss]:
    """Convert a result to a user message, the text first, then its media; also return original indexes and the loss."""
    text = joined_text(message.content)
    if is_error_text(message, texts):
        text = fill(texts.error_result, text=text)
    text = fill(template, name=clean_text(message.tool_name), text=text)
    media = [(piece, origin) for piece, origin in zip(message.content, origins, strict=True) if piece.kind != "text"]
    joined = TextContent(text=text, cache_mark=last_mark(message.content))
    pieces: list[UserContent] = [joined, *(piece for piece, _ in media)]
    pieces[-1] = moved_mark(pieces[-1], message.cache_mark)
    user = UserMessage(content=tuple(pieces), timestamp=message.timestamp)
    extras = (message.extra, *(piece.extra for piece in message.content if piece.kind == "text"))
    return user, [INSERTED, *(origin for _, origin in media)], lost_extra(*extras)


def is_error_text(message: ToolResultMessage, texts: Texts) -> bool:
    """Whether the text of a result needs an error mark; the text for a missing result needs none."""
    if not message.is_error:
        return False
    first = message.content[0] if len(message.content) == 1 else None
    return first is None or first.kind != "text" or first.text != texts.missing_result


def _repair_arguments(workspace: Workspace) -> None:
    """Drop the original text of arguments if it is not the JSON of the parsed arguments, which are sent instead."""
    for index, message in enumerate(workspace.messages):
        if message.role == "assistant":
            _repair_argument_texts(workspace, index, message)


def _repair_argument_texts(workspace: Workspace, index: int, message: AssistantMessage) -> None:
    content: list[AssistantContent] = list(message.content)
    is_changed = False
    for position, piece in enumerate(content):
        if piece.kind == "toolCall" and piece.arguments_text is not None and not _text_matches_arguments(piece):
            workspace.note(ChangeCode.ARGUMENTS_UNPARSED, workspace.content_path(index, position), Loss.CONTENT)
            content[position] = replace(piece, arguments_text=None)
            is_changed = True
    if is_changed:
        workspace.put(index, replace(message, content=tuple(content)))


def _text_matches_arguments(call: ToolCall) -> bool:
    try:
        return msgspec.json.decode(call.arguments_text or "") == call.arguments
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return False
