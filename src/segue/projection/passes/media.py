"""Pass 4: send images, files and native blocks in a form and place that the target accepts.

Facts:
- Media that `Model.input` does not list are replaced by a placeholder text; equal neighbours are sent once.
                                                                       (ktsoator/or; pi-ai 1.5.0, read 2026-11)
- Several protocols have no media in tool results: they move to one user turn after all results of the batch, never
  between results.                                              (OpenHands #7700, vllm #43203; pi-ai does the same)
- Some targets cannot fetch URLs, and a file id is valid only at its provider.   (litellm and pydantic-ai, read 2026-11)
- No history raises an error for what a target does not support: it becomes a placeholder and, if the caller can supply
  it, a requirement. What no target could read (broken base64, a path in place of a URL) raises an error with its path.

Media are not decoded, with two exceptions: a text file that is sent as text, and the first bytes of media without a
MIME type.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_not

from msgspec.structs import replace

from segue.conversation.content import AnyContent, FallbackContent, NativeContent, TextContent, UserContent
from segue.conversation.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, UserMessage
from segue.errors import ConversationError, Path
from segue.projection.passes.cache_marks import moved_mark
from segue.projection.passes.extra import lost_extra
from segue.projection.passes.held_content import note_reference, reference_of_native
from segue.projection.passes.media_fit import Media, MediaFit, fit_media, kind_of
from segue.projection.report import ChangeCode, Loss
from segue.projection.requirements import MediaNeeded
from segue.projection.workspace.workspace import INSERTED, Workspace
from segue.protocols.shared_fields import share_block


def place_media(workspace: Workspace) -> None:
    """Fit every image, file and native block to the target, or replace it by a text."""
    if workspace.scan.media:
        _Media(workspace).run()


class _Pieces:
    """The new content of one message, and the original index of each piece."""

    __slots__ = ("content", "given", "known", "moved", "origins")

    def __init__(self, given: Sequence[AnyContent], known: list[int]) -> None:
        self.given = given
        self.known = known
        self.content: list[AnyContent] = []
        self.origins: list[int] = []
        self.moved = False

    def keep(self, position: int) -> None:
        """Append a given piece unchanged."""
        self.content.append(self.given[position])
        self.origins.append(self.known[position])

    def add(self, piece: AnyContent, position: int) -> None:
        """Append a replacement of the piece at `position`."""
        self.content.append(piece)
        self.origins.append(self.known[position] if piece is self.given[position] else INSERTED)

    def add_fit(self, fit: MediaFit, position: int) -> None:
        """Append fitted media; a placeholder equal to the one before it is skipped."""
        if fit.placeholder and fit.content.kind == "text" and self.content:
            last = self.content[-1]
            if last.kind == "text" and last.text == fit.content.text:
                self.content[-1] = moved_mark(last, fit.content.cache_mark)
                return
        self.add(fit.content, position)

    def differs(self) -> bool:
        return len(self.content) != len(self.given) or any(map(is_not, self.content, self.given))


def _fallback_without_extra(piece: NativeContent) -> list[FallbackContent]:
    """Return the fallback without signatures and `extra`, which belong to the protocol of the native block.

    A cache mark of the block moves to the end of its fallback.
    """
    spares: list[FallbackContent] = []
    for spare in piece.fallback:
        if spare.kind == "text" and spare.text_signature is not None:
            spares.append(TextContent(text=spare.text, cache_mark=spare.cache_mark))
        else:
            spares.append(spare if spare.extra is None else replace(spare, extra=None))
    if spares:
        spares[-1] = moved_mark(spares[-1], piece.cache_mark)
    return spares


def _open_batch(workspace: Workspace) -> int:
    """Find the last turn if some of its calls have no result yet; the length of the list if there is none."""
    messages = workspace.messages
    results = 0
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role == "toolResult":
            results += 1
            continue
        if message.role == "assistant" and results < len(message.tool_calls()):
            return index
        break
    return len(messages)


class _Media:
    """Fits the media of all messages; holds media that move until their new turn is reached."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.rules = workspace.target.rules
        self.texts = workspace.target.policy.texts
        self.out: list[Message] = []
        self.places: list[int] = []
        self.from_results: list[Media] = []
        self.from_assistant: list[Media] = []
        self.open_from = _open_batch(workspace)

    def run(self) -> None:
        messages = self.workspace.messages
        for index, message in enumerate(messages):
            if self.from_results and message.role != "toolResult":
                self.emit_moved_results()
            match message.role:
                case "user":
                    pieces = self.user(index, message)
                case "toolResult":
                    pieces = self.result(index, message)
                case "assistant":
                    follower = messages[index + 1].role if index + 1 < len(messages) else None
                    pieces = self.assistant(index, message, follower)
                case "system":
                    pieces = self.system(index, message)
            self.emit(index, message, pieces)
        if self.from_results:
            self.emit_moved_results()
        if len(self.out) != len(messages):
            self.workspace.keep(self.out, self.places)

    def emit(self, index: int, message: Message, pieces: _Pieces | None) -> None:
        if pieces is not None and pieces.differs():
            message = replace(message, content=tuple(pieces.content))
            self.workspace.put(index, message, pieces.origins)
            # A fallback may be blank or come after a call; a turn may now be empty or end in thinking.
            scan = self.workspace.scan
            scan.blank = scan.thinks_last = scan.text_after_call = True
        self.out.append(message)
        self.places.append(self.workspace.places[index])

    def emit_moved_results(self) -> None:
        """Insert one user turn after the results of a batch, with the media that they cannot hold."""
        lead = TextContent(text=self.texts.tool_media)
        self.out.append(UserMessage(content=(lead, *self.from_results)))
        self.places.append(self.workspace.insertion(ChangeCode.TURN_INSERTED, "media of tool results"))
        self.from_results = []

    # -- one message ---------------------------------------------------------------------------------------------------

    def user(self, index: int, message: UserMessage) -> _Pieces:
        moved, self.from_assistant = self.from_assistant, []
        pieces = self.fitted(index, message.content, self.rules.user_media, in_result=False)
        if moved:
            pieces.content[:0] = moved
            pieces.origins[:0] = [INSERTED] * len(moved)
            path = (*self.workspace.path(index), "content")
            self.workspace.note(ChangeCode.TURN_FILLED, path, Loss.NONE, "media moved from the turn before")
        return pieces

    def result(self, index: int, message: ToolResultMessage) -> _Pieces:
        """Keep the media that a result may hold; add a text if no text is left next to moved media."""
        patterns = self.rules.result_media if not (message.is_error and self.rules.has("error_media")) else ()
        pieces = self.fitted(index, message.content, patterns, in_result=True)
        if pieces.moved and not any(piece.kind == "text" for piece in pieces.content):
            pieces.content.insert(0, TextContent(text=self.texts.media_moved))
            pieces.origins.insert(0, INSERTED)
            self.workspace.note(ChangeCode.RESULT_FILLED, (*self.workspace.path(index), "content"), Loss.NONE)
        return pieces

    def assistant(self, index: int, message: AssistantMessage, follower: str | None) -> _Pieces | None:
        """Keep native blocks of the same model; replace others by their fallback, with media in the next user turn.

        Media move only to a user turn that follows directly: any later place would change as the conversation grows.
        """
        self.from_assistant = []
        if not any(piece.kind == "native" for piece in message.content):
            return None
        is_own, protocol = self.workspace.is_own(index), self.workspace.target.model.protocol
        pieces = _Pieces(message.content, self.workspace.origins(index))
        for position, piece in enumerate(message.content):
            why = self.refusal(index, position)
            if piece.kind == "native" and piece.protocol == protocol and self.lost_signature(index):
                why = "its signed turn is not complete"  # the same reason for all, whichever of them was found first
            if piece.kind != "native" or (is_own and piece.protocol == protocol and why is None):
                pieces.keep(position)
                continue
            path = self.workspace.content_path(index, position)
            self.note_native(piece, path, why)
            for spare in _fallback_without_extra(piece):
                if spare.kind == "text":
                    pieces.add(spare, position)
                    continue
                fit = self.fit(spare, path, self.rules.user_media if follower == "user" else (), in_result=False)
                self.add_context(spare, fit, path, pieces, position)
                if fit.content.kind == "text":
                    pieces.add_fit(fit, position)
                else:
                    self.from_assistant.append(fit.content)
                    self.workspace.note(ChangeCode.MEDIA_MOVED, path, Loss.NONE)
                    pieces.add(TextContent(text=self.texts.assistant_media), position)
        return pieces

    def system(self, index: int, message: SystemMessage) -> _Pieces:
        """System messages hold only text: media of a fallback become short texts."""
        pieces = _Pieces(message.content, self.workspace.origins(index))
        for position, piece in enumerate(message.content):
            path = self.workspace.content_path(index, position)
            for spare in self.unwrapped(piece, path, self.refusal(index, position)):
                if spare.kind == "image" or spare.kind == "file":
                    fit = self.fit(spare, path, (), in_result=False)
                    self.add_context(spare, fit, path, pieces, position)
                    pieces.add_fit(fit, position)
                else:
                    pieces.add(spare, position)
        return pieces

    # -- the content of one message ------------------------------------------------------------------------------------

    def fitted(
        self, index: int, given: Sequence[UserContent], patterns: tuple[str, ...], *, in_result: bool
    ) -> _Pieces:
        pieces = _Pieces(given, self.workspace.origins(index))
        for position, piece in enumerate(given):
            if piece.kind == "text":
                pieces.keep(position)
                continue
            path = self.workspace.content_path(index, position)
            for spare in self.unwrapped(piece, path, self.refusal(index, position)):
                if spare.kind != "image" and spare.kind != "file":
                    pieces.add(spare, position)
                    continue
                fit = self.fit(spare, path, patterns, in_result=in_result, is_own=spare is piece)
                self.add_context(spare, fit, path, pieces, position)
                if fit.moves and fit.content.kind != "text":
                    self.move(fit.content, path, index)
                    pieces.moved = True
                else:
                    pieces.add_fit(fit, position)
        return pieces

    def move(self, piece: Media, path: Path, index: int) -> None:
        """Move media of a result to the user turn after the batch; there is none while results are missing."""
        if index > self.open_from:
            detail = "sent when all results of the batch are there"
            self.workspace.note(ChangeCode.MEDIA_MOVED, path, Loss.CONTENT, detail)
        else:
            # The `extra` of a part of a result is not valid for a part of a user turn.
            self.workspace.note(ChangeCode.MEDIA_MOVED, path, lost_extra(piece.extra))
            self.from_results.append(piece if piece.extra is None else replace(piece, extra=None))

    def refusal(self, index: int, position: int) -> str | None:
        """Return why the target would refuse a native block of its own protocol; None if it would not."""
        refused = self.workspace.refused
        return refused.get((self.workspace.places[index], position)) if refused else None

    def lost_signature(self, index: int) -> bool:
        """Whether the target wrote a turn but its signed blocks are not complete."""
        return self.workspace.places[index] in self.workspace.cross_model

    def unwrapped(self, piece: UserContent, path: Path, why: str | None) -> Sequence[UserContent]:
        """Return the fallback of a native block of another protocol or that is refused; any other piece unchanged."""
        if piece.kind != "native" or (piece.protocol == self.workspace.target.model.protocol and why is None):
            return (piece,)
        shared = share_block(piece.block, piece.protocol, self.workspace.target.model) if why is None else None
        if shared is not None:
            self.workspace.note(ChangeCode.NATIVE_REPLACED, path, Loss.NONE, f"the same of {piece.protocol}")
            return (replace(piece, protocol=self.workspace.target.model.protocol, block=shared),)
        self.note_native(piece, path, why)
        return _fallback_without_extra(piece)

    def note_native(self, piece: NativeContent, path: Path, why: str | None) -> None:
        loss = Loss.OPAQUE if piece.fallback else Loss.CONTENT
        if why is not None:
            self.workspace.note(ChangeCode.NATIVE_REFUSED, path, loss, why)
        elif piece.fallback:
            self.workspace.note(ChangeCode.NATIVE_REPLACED, path, loss, piece.protocol)
        else:
            reference = reference_of_native(piece)
            if reference is not None:
                note_reference(self.workspace, reference, path)
            else:
                self.workspace.note(ChangeCode.NATIVE_DROPPED, path, Loss.CONTENT, piece.protocol)

    def fit(
        self, piece: Media, path: Path, patterns: tuple[str, ...], *, in_result: bool, is_own: bool = False
    ) -> MediaFit:
        """Fit one piece and report the changes. `is_own` is false for the fallback of a native block.

        Raises:
            ConversationError: no provider could read the piece.
        """
        fit = fit_media(piece, self.workspace.target, patterns, in_result=in_result)
        if is_own and fit.fault is not None:
            field, reason = fit.fault
            raise ConversationError(reason, path=(*path, field))
        fit.content = moved_mark(fit.content, piece.cache_mark)
        for code, loss, detail in fit.changes:
            self.workspace.note(code, path, loss, detail)
        if fit.needed is not None:
            self.workspace.needed.append(MediaNeeded(path=path, reference=fit.needed))
        if fit.content.extra is not None:
            self.workspace.scan.extra = True  # content of `Policy.media` may have an `extra`
        return fit

    def add_context(self, given: Media, fit: MediaFit, path: Path, pieces: _Pieces, position: int) -> None:
        """Keep the context of a document with it; append it as a text where it cannot be sent so."""
        if given.kind != "file" or given.context is None:
            return
        if fit.content.kind == "file" and self.rules.file_context and kind_of(fit.content) == "document":
            if fit.content.context is None:  # content of `Policy.media`
                fit.content = replace(fit.content, context=given.context)
            return
        if fit.content.kind == "file":
            fit.content = replace(fit.content, context=None)
        # The text is inserted, so the path is that of the content as a whole.
        self.workspace.note(ChangeCode.FILE_CONTEXT_AS_TEXT, path[:3], Loss.NONE)
        pieces.add(TextContent(text=given.context), position)
