"""Pass 4: images, files and native blocks, in a form and a place the target takes.

Facts this file rests on:
- A model that does not list a kind in `input` is told so by a placeholder; a run of them collapses to one.
                                                                       (ktsoator/or; pi-ai 1.5.0, read 2026-11)
- Tool results carry no media on several wires: they move to one user turn after all results of the batch, never
  between them.                                            (OpenHands #7700, vllm #43203; pi-ai batches them so)
- Some targets cannot fetch URLs, and no provider has another's files.   (litellm and pydantic-ai, read 2026-11)
- Many-image limits evict the oldest first, in steps, so that the cached prefix changes once a step and not once a
  turn.                                                                (gsd-2 #2874, pi #401, pi-condense #3)
- History never raises: what cannot be sent becomes a placeholder and, where the caller could help, a requirement.

Media are carried, never decoded: the exceptions are a text file that has to become text, and the first bytes of an
image whose type nobody named.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from segue.conversation.content import AnyContent, FallbackContent, NativeContent, TextContent, UserContent
from segue.conversation.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, UserMessage
from segue.errors import Path
from segue.projection.passes.extra import lost_extra
from segue.projection.passes.media_fit import Fit, Media, fit_media, kind_of
from segue.projection.policy import fill
from segue.projection.report import ChangeCode, Loss
from segue.projection.requirements import MediaNeeded
from segue.projection.workspace.workspace import INSERTED, Workspace


def place_media(workspace: Workspace) -> None:
    """Fit every image, file and native block to the target, or put a text in its place."""
    if workspace.scan.media:
        _Media(workspace).run()


class _Pieces:
    """The content of one message as it comes out, and where each piece came from."""

    __slots__ = ("content", "given", "known", "moved", "origins")

    def __init__(self, given: Sequence[AnyContent], known: list[int]) -> None:
        self.given = given
        self.known = known
        self.content: list[AnyContent] = []
        self.origins: list[int] = []
        self.moved = False

    def keep(self, position: int) -> None:
        """Take over a piece as it was given."""
        self.content.append(self.given[position])
        self.origins.append(self.known[position])

    def add(self, piece: AnyContent, position: int) -> None:
        """Put in what stands for the piece given at `position`."""
        self.content.append(piece)
        self.origins.append(self.known[position] if piece is self.given[position] else INSERTED)

    def add_fit(self, fit: Fit, position: int) -> None:
        """Put in what media became; a run of placeholders says the same thing once."""
        if fit.placeholder and fit.content.kind == "text" and self.content:
            last = self.content[-1]
            if last.kind == "text" and last.text == fit.content.text:
                return
        self.add(fit.content, position)

    def differs(self) -> bool:
        return len(self.content) != len(self.given) or any(map(_is_not, self.content, self.given))


def _is_not(one: object, other: object) -> bool:
    return one is not other


def _fallback_without_extra(piece: NativeContent) -> list[FallbackContent]:
    """Give a fallback without seals and `extra` of the block's own protocol: whoever reads the fallback is another."""
    spares: list[FallbackContent] = []
    for spare in piece.fallback:
        if spare.kind == "text" and spare.text_signature is not None:
            spares.append(TextContent(text=spare.text))
        else:
            spares.append(spare if spare.extra is None else replace(spare, extra=None))
    return spares


def _open_batch(workspace: Workspace) -> int:
    """Find the turn whose calls are left open, some results being there; beyond the end when there is none."""
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
    """One walk over the messages; media that have to leave where they stand wait here for their new place."""

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
            # A fallback may be blank, a turn may be left with nothing or with a thought.
            self.workspace.scan.blank = self.workspace.scan.thinks_last = True
        self.out.append(message)
        self.places.append(self.workspace.places[index])

    def emit_moved_results(self) -> None:
        """Put what the results of a batch could not carry into one user turn behind all of them."""
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
            self.workspace.note(ChangeCode.TURN_FILLED, path, Loss.NONE, "media of the turn before")
        return pieces

    def result(self, index: int, message: ToolResultMessage) -> _Pieces:
        """Keep what a result may carry; where nothing is left to read, a text says where the rest went."""
        patterns = self.rules.result_media if self.rules.error_result_media or not message.is_error else ()
        pieces = self.fitted(index, message.content, patterns, in_result=True)
        if pieces.moved and not any(piece.kind == "text" for piece in pieces.content):
            pieces.content.insert(0, TextContent(text=self.texts.media_moved))
            pieces.origins.insert(0, INSERTED)
            self.workspace.note(ChangeCode.RESULT_FILLED, (*self.workspace.path(index), "content"), Loss.NONE)
        return pieces

    def assistant(self, index: int, message: AssistantMessage, follower: str | None) -> _Pieces | None:
        """Native blocks stay at home; elsewhere their fallback speaks, its media from the user turn that follows.

        Only a user turn that follows at once can take them: further on, the place would change as the history grows.
        """
        self.from_assistant = []
        if not any(piece.kind == "native" for piece in message.content):
            return None
        is_own = self.workspace.target.ownership.is_own(message)
        pieces = _Pieces(message.content, self.workspace.origins(index))
        for position, piece in enumerate(message.content):
            if piece.kind != "native" or (is_own and piece.protocol == self.workspace.target.model.protocol):
                pieces.keep(position)
                continue
            path = self.workspace.content_path(index, position)
            self.note_native(piece, path)
            for spare in _fallback_without_extra(piece):
                if spare.kind == "text":
                    pieces.add(spare, position)
                    continue
                fit = self.fit(spare, path, self.rules.user_media if follower == "user" else (), in_result=False)
                if fit.content.kind == "text":
                    pieces.add_fit(fit, position)
                else:
                    self.from_assistant.append(fit.content)
                    self.workspace.note(ChangeCode.MEDIA_MOVED, path, Loss.NONE)
                    pieces.add(TextContent(text=self.texts.assistant_media), position)
        return pieces

    def system(self, index: int, message: SystemMessage) -> _Pieces:
        """Instructions are words: a fallback's media are named."""
        pieces = _Pieces(message.content, self.workspace.origins(index))
        for position, piece in enumerate(message.content):
            path = self.workspace.content_path(index, position)
            for spare in self.unwrapped(piece, path):
                if spare.kind == "image" or spare.kind == "file":
                    pieces.add_fit(self.fit(spare, path, (), in_result=False), position)
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
            for spare in self.unwrapped(piece, path):
                if spare.kind != "image" and spare.kind != "file":
                    pieces.add(spare, position)
                    continue
                fit = self.fit(spare, path, patterns, in_result=in_result)
                if fit.moves and fit.content.kind != "text":
                    self.move(fit.content, path, index)
                    pieces.moved = True
                else:
                    pieces.add_fit(fit, position)
        return pieces

    def move(self, piece: Media, path: Path, index: int) -> None:
        """Let media of a result wait for the turn behind the batch; there is none while results are still to come."""
        if index > self.open_from:
            self.workspace.note(ChangeCode.MEDIA_MOVED, path, Loss.CONTENT, "waits for the other results")
        else:
            # What a wire said about a part of a result does not hold for a part of a user's turn.
            self.workspace.note(ChangeCode.MEDIA_MOVED, path, lost_extra(piece.extra))
            self.from_results.append(piece if piece.extra is None else replace(piece, extra=None))

    def unwrapped(self, piece: UserContent, path: Path) -> Sequence[UserContent]:
        """Give a native block of another protocol as its fallback, everything else as it is."""
        if piece.kind != "native" or piece.protocol == self.workspace.target.model.protocol:
            return (piece,)
        self.note_native(piece, path)
        return _fallback_without_extra(piece)

    def note_native(self, piece: NativeContent, path: Path) -> None:
        if piece.fallback:
            self.workspace.note(ChangeCode.NATIVE_REPLACED, path, Loss.OPAQUE, piece.protocol)
        else:
            self.workspace.note(ChangeCode.NATIVE_DROPPED, path, Loss.CONTENT, piece.protocol)

    def fit(self, piece: Media, path: Path, patterns: tuple[str, ...], *, in_result: bool) -> Fit:
        """Fit one piece and report what that took."""
        fit = self.evicted(piece, fit_media(piece, self.workspace.target, patterns, in_result=in_result))
        for code, loss, detail in fit.changes:
            self.workspace.note(code, path, loss, detail)
        if fit.needed is not None:
            self.workspace.needed.append(MediaNeeded(path=path, reference=fit.needed))
        if fit.content.extra is not None:
            self.workspace.scan.extra = True  # what the caller supplied may bring one along
        return fit

    def evicted(self, piece: Media, fit: Fit) -> Fit:
        """Count what will be sent; the oldest beyond the target's limit give way to a placeholder."""
        prefix_state, (images, files) = self.workspace.prefix_state, self.workspace.evicted
        if fit.content.kind == "image":
            prefix_state.images += 1
            gives_way = prefix_state.images <= images
        elif fit.content.kind == "file":
            prefix_state.files += 1
            gives_way = prefix_state.files <= files
        else:
            return fit
        if not gives_way:
            return fit
        text = fill(self.texts.media_evicted, kind=kind_of(piece))
        return Fit(TextContent(text=text), (ChangeCode.MEDIA_EVICTED, Loss.CONTENT, ""), placeholder=True)
