"""Pass 5: thinking, signatures and everything else that only its maker may see.

Facts this file rests on:
- A signature is valid only for the model that made it; elsewhere it is refused or corrupts the reply.
                                      (llxprt-code #2335, 9router #4136, strands #682, codex #8119)
- At home every signed block is replayed as it was: order, bytes, even with empty text.
                                      (claude-code #63203, strands #2704, langchain #38638)
- Redacted and encrypted payloads mean nothing to others and must not be re-typed.     (llxprt-code #2337, pi #1665)
- Signed thinking and the calls behind it are one: with the one gone, the other's seal is refused.
                                      (mastra #8738, opencode #38620, rig #751)
- Gemini 3 refuses a step whose first call has no signature; a documented placeholder is accepted for other models'
  calls.                              (litellm #16893; recorded traffic, 2026-11)
- Whether foreign thinking is shown is a policy: as text it may be imitated, dropped it is lost.
                                      (ktsoator/or, alchemy-rs and tirea disagree)
"""

from __future__ import annotations

from operator import is_
from typing import Final, Literal, TypeAlias, assert_never

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.messages import AssistantMessage
from segue.errors import Path
from segue.projection.passes.extra import lost_extra
from segue.projection.report import Change, ChangeCode, Loss
from segue.projection.workspace.workspace import Target, Workspace

Treatment: TypeAlias = Literal["channel", "text", "drop"]

# Reading a member of an enum costs as much as making the change that carries it (CPython 3.11, measured 2026-11-15).
_AS_TEXT: Final = ChangeCode.THINKING_AS_TEXT
_DROPPED: Final = ChangeCode.THINKING_DROPPED
_UNSIGNED: Final = ChangeCode.THINKING_UNSIGNED
_BLANK: Final = ChangeCode.THINKING_BLANK
_SIGNATURE_DROPPED: Final = ChangeCode.SIGNATURE_REMOVED
_PLACEHOLDER: Final = ChangeCode.SIGNATURE_PLACEHOLDER
_NONE: Final = Loss.NONE
_OPAQUE: Final = Loss.OPAQUE
_CONTENT: Final = Loss.CONTENT


def reconcile_reasoning(workspace: Workspace) -> None:
    """Keep at home what is the target's own, and show it of others what the policy allows."""
    reasoning = _Reasoning(workspace)
    if reasoning.has_changes():
        reasoning.run()


def thinking_treatment(target: Target) -> Treatment:
    """Decide where another model's readable thinking goes."""
    has_channel = target.model.reasoning and target.rules.reasoning_replay in ("open", "required")
    match target.policy.reasoning:
        case "auto":
            if not target.model.reasoning:
                return "drop"
            return "channel" if has_channel else "text"
        case "native":
            return "channel" if has_channel else "text"
        case "text":
            return "text"
        case "drop":
            return "drop"
        case _:
            assert_never(target.policy.reasoning)


class _Reasoning:
    """One walk over the turns of a stretch."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.target = workspace.target
        self.replay = workspace.target.rules.reasoning_replay
        self.treatment: Treatment = thinking_treatment(workspace.target)
        texts = workspace.target.policy.texts
        self.placeholder = texts.call_signature if workspace.target.rules.call_signature == "required" else None

    def has_changes(self) -> bool:
        """Whether there is anything that is not plainly the target's own, with a seal where one belongs."""
        scan = self.workspace.scan
        return bool(
            scan.foreign
            or scan.unusable
            or self.workspace.cross_model
            or (scan.unsigned and self.replay in ("signed", "none"))
            or (scan.signed and self.replay == "none")
            or (scan.phases and not self.target.rules.text_phases)
            or (self.placeholder is not None and (scan.without_signature or scan.unclean))
        )

    def run(self) -> None:
        workspace, foreign = self.workspace, self.workspace.scan.foreign
        is_as_surveyed = not workspace.reshaped and not workspace.cross_model
        for index, message in enumerate(workspace.messages):
            if type(message) is AssistantMessage:
                self.turn(index, message, is_own=index not in foreign if is_as_surveyed else workspace.is_own(index))

    # -- one turn ------------------------------------------------------------------------------------------------------

    def turn(self, index: int, message: AssistantMessage, *, is_own: bool) -> None:
        """Give every block of a turn the form in which it can be sent."""
        if is_own:
            if self.is_whole(message):
                return
            is_own = self.is_own_turn(message)
        workspace, place, wants_signature = self.workspace, self.workspace.places[index], self.placeholder is not None
        as_given = not workspace.blocks
        out: list[AssistantContent] = list(message.content)
        dropped: list[int] = []
        is_changed = has_call = is_mixed = False
        for position, piece in enumerate(message.content):
            if type(piece) is ToolCall:
                has_call = True
                signature = piece.thought_signature
                if wants_signature:
                    wants_signature = False
                    path = (
                        ("messages", place, "content", position)
                        if as_given
                        else workspace.content_path(index, position)
                    )
                    out[position] = self.first_call(piece, path, is_own=is_own)
                    is_changed = is_changed or out[position] is not piece
                    continue
            elif type(piece) is TextContent:
                is_mixed = has_call
                signature = piece.text_signature
                if piece.phase is not None and not (is_own and self.target.rules.text_phases):
                    # Bound to the signed item it came in, so both are removed in one change.
                    path = workspace.content_path(index, position)
                    workspace.note(_SIGNATURE_DROPPED, path, _OPAQUE, "phase")
                    kept = signature if is_own and signature else None
                    out[position] = replace(piece, phase=None, text_signature=kept)
                    is_changed = True
                    continue
            elif type(piece) is ThinkingContent:
                is_mixed = has_call
                path = ("messages", place, "content", position) if as_given else workspace.content_path(index, position)
                new = self.thinking(piece, path, is_own=is_own)
                if new is None:
                    dropped.append(position)
                elif new is not piece:
                    out[position] = new
                    is_changed = True
                continue
            else:
                is_mixed = has_call
                continue
            if signature is None or (is_own and signature):
                continue
            # An own seal stays, another's goes, and one that is none. Written out: most of a long report is made here.
            path = ("messages", place, "content", position) if as_given else workspace.content_path(index, position)
            workspace.changes.append(Change(code=_SIGNATURE_DROPPED, path=path, loss=_OPAQUE if signature else _NONE))
            is_call = type(piece) is ToolCall
            out[position] = replace(piece, thought_signature=None) if is_call else replace(piece, text_signature=None)
            is_changed = True
        if dropped or (is_mixed and self.target.rules.calls_last and not is_own):
            self.rearrange(index, message, out, dropped, is_own=is_own)
        elif is_changed:
            workspace.messages[index] = replace(message, content=tuple(out))
            workspace.changed = True

    def is_whole(self, message: AssistantMessage) -> bool:
        """Whether an own turn can be replayed as it is."""
        wants_signature = self.placeholder is not None
        for piece in message.content:
            if type(piece) is ToolCall:
                signature = piece.thought_signature
                if signature == "" or (wants_signature and signature is None):
                    return False
                wants_signature = False
            elif type(piece) is ThinkingContent:
                if piece.thinking_signature == "" or not self.can_replay(piece):
                    return False
            elif type(piece) is TextContent and (
                piece.text_signature == "" or (piece.phase is not None and not self.target.rules.text_phases)
            ):
                return False
        return True

    def is_own_turn(self, message: AssistantMessage) -> bool:
        """Whether an own turn keeps its seals: with all of its thinking gone, the rest is not what was signed."""
        thoughts = [piece for piece in message.content if piece.kind == "thinking"]
        return not thoughts or any(map(self.can_replay, thoughts))

    def can_replay(self, piece: ThinkingContent) -> bool:
        """Whether the target takes its own thought back."""
        if self.replay == "none":
            return False
        if piece.thinking_signature:
            return True
        return self.replay != "signed" and not piece.redacted and bool(piece.thinking) and not piece.thinking.isspace()

    def rearrange(
        self, index: int, message: AssistantMessage, out: list[AssistantContent], dropped: list[int], *, is_own: bool
    ) -> None:
        """Go on without what is gone, and with the calls last where they have to be."""
        workspace = self.workspace
        order = [position for position in range(len(out)) if position not in dropped]
        if self.target.rules.calls_last and not is_own:
            order = self.calls_last(index, out, order)
        content = tuple([out[position] for position in order])
        if len(content) == len(message.content) and all(map(is_, content, message.content)):
            return
        if not content:
            workspace.scan.blank = True
        elif content[-1].kind == "thinking":
            workspace.scan.thinks_last = True
        known = workspace.blocks.get(workspace.places[index])
        origins = order if known is None else [known[position] for position in order]
        workspace.put(index, replace(message, content=content), origins)

    def calls_last(self, index: int, out: list[AssistantContent], order: list[int]) -> list[int]:
        """Let the words come first and the calls behind them; thinking stays where it stood, between."""
        text_first: list[int] = []
        calls: list[int] = []
        for position in order:
            if out[position].kind == "toolCall":
                calls.append(position)
                continue
            if out[position].kind == "thinking":
                text_first += calls
                calls = []
            text_first.append(position)
        text_first += calls
        if text_first != order:
            self.workspace.note(ChangeCode.CALL_MOVED, (*self.workspace.path(index), "content"), _NONE)
        return text_first

    def thinking(self, piece: ThinkingContent, path: Path, *, is_own: bool) -> AssistantContent | None:
        """Keep a thought that can be replayed; give another one the form its fate says, never its seal."""
        workspace, signature = self.workspace, piece.thinking_signature
        if is_own and self.can_replay(piece):
            if signature != "":
                return piece
            workspace.note(_SIGNATURE_DROPPED, path, _NONE)
            return replace(piece, thinking_signature=None)
        if piece.redacted:
            workspace.note(_DROPPED, path, _OPAQUE, "redacted")
        elif piece.thinking.isspace() or not piece.thinking:
            workspace.note(_BLANK, path, _OPAQUE if signature else _NONE)
        elif self.treatment == "text":
            loss = _OPAQUE if signature else lost_extra(piece.extra)
            workspace.changes.append(Change(code=_AS_TEXT, path=path, loss=loss))
            return TextContent(text=piece.thinking)
        elif self.treatment == "drop":
            workspace.note(_DROPPED, path, _CONTENT)
        elif signature is None:
            return piece
        else:
            workspace.changes.append(Change(code=_UNSIGNED, path=path, loss=_OPAQUE if signature else _NONE))
            return ThinkingContent(thinking=piece.thinking, extra=piece.extra)
        return None

    def first_call(self, piece: ToolCall, path: Path, *, is_own: bool) -> ToolCall:
        """Put the documented placeholder on the first call of a step that has no seal, or another model's."""
        signature = piece.thought_signature
        if signature is not None and not (is_own and signature) and signature != self.placeholder:
            self.workspace.note(_SIGNATURE_DROPPED, path, _OPAQUE if signature else _NONE)
            signature = None
        if not signature:
            self.workspace.changes.append(Change(code=_PLACEHOLDER, path=path, loss=_NONE))
            signature = self.placeholder
        return piece if signature is piece.thought_signature else replace(piece, thought_signature=signature)
