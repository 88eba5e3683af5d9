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
- Whether foreign thinking is shown is a policy: as text it may be imitated, dropped it is lost.    (seeds 000-002)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias, assert_never

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.messages import AssistantMessage
from segue.projection.extra import lost_extra
from segue.projection.report import ChangeCode, Loss
from segue.projection.work import Target, Work

Fate: TypeAlias = Literal["channel", "text", "drop"]

# Reading a member of an enum costs as much as making the change that carries it (CPython 3.11, measured 2026-11-16).
_AS_TEXT: Final = ChangeCode.THINKING_AS_TEXT
_DROPPED: Final = ChangeCode.THINKING_DROPPED
_UNSIGNED: Final = ChangeCode.THINKING_UNSIGNED
_BLANK: Final = ChangeCode.THINKING_BLANK
_NONE: Final = Loss.NONE
_OPAQUE: Final = Loss.OPAQUE
_CONTENT: Final = Loss.CONTENT


def reconcile_reasoning(work: Work) -> None:
    """Keep at home what is the target's own, and show it of others what the policy allows."""
    reasoning = _Reasoning(work)
    if reasoning.has_work():
        reasoning.run()


def thinking_fate(target: Target) -> Fate:
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

    def __init__(self, work: Work) -> None:
        self.work = work
        self.target = work.target
        self.replay = work.target.rules.reasoning_replay
        self.fate = thinking_fate(work.target)
        texts = work.target.policy.texts
        self.placeholder = texts.call_signature if work.target.rules.call_signature == "required" else None

    def has_work(self) -> bool:
        """Whether there is anything that is not plainly the target's own, with a seal where one belongs."""
        survey = self.work.survey
        return bool(
            survey.foreign
            or survey.unsigned
            or self.work.estranged
            or (survey.signed and self.replay == "none")
            or (self.placeholder is not None and survey.call_ids)
        )

    def run(self) -> None:
        work, home = self.work, self.target.home
        for index, message in enumerate(work.messages):
            if message.role == "assistant":
                is_own = home.is_own(message) and work.places[index] not in work.estranged
                self.turn(index, message, is_own=is_own)

    # -- one turn ------------------------------------------------------------------------------------------------------

    def turn(self, index: int, message: AssistantMessage, *, is_own: bool) -> None:
        """Give every block of a turn the form in which it can be sent."""
        if is_own and (self.work.survey.unsigned or self.replay == "none"):
            is_own = self.lives(message)
        wants_seal = self.placeholder is not None
        for piece in message.content:
            if piece.kind == "toolCall":
                if wants_seal or (piece.thought_signature is not None and not (is_own and piece.thought_signature)):
                    break
            elif piece.kind == "thinking":
                if not is_own or not piece.thinking_signature or self.replay == "none":
                    break
            elif piece.kind == "text" and piece.text_signature is not None and not (is_own and piece.text_signature):
                break
        else:
            if is_own or not self.target.rules.calls_last or _calls_are_last(message.content):
                return
        out: list[AssistantContent] = []
        kept: list[int] = []
        is_changed = False
        for position, piece in enumerate(message.content):
            new: AssistantContent | None = piece
            if piece.kind == "thinking":
                new = self.thinking(index, position, piece, is_own=is_own)
            elif piece.kind == "toolCall":
                new = self.call(index, position, piece, is_own=is_own, wants_seal=wants_seal)
                wants_seal = False
            elif piece.kind == "text" and piece.text_signature is not None and not (is_own and piece.text_signature):
                self.note(ChangeCode.SIGNATURE_REMOVED, index, position, _OPAQUE if piece.text_signature else _NONE)
                new = TextContent(text=piece.text, extra=piece.extra)
            is_changed = is_changed or new is not piece
            if new is not None:
                out.append(new)
                kept.append(position)
        if self.target.rules.calls_last and not is_own:
            is_changed = self.put_calls_last(index, out, kept) or is_changed
        if is_changed:
            self.put(index, message, out, kept)

    def put_calls_last(self, index: int, out: list[AssistantContent], kept: list[int]) -> bool:
        """Let the words come first and the calls behind them; thinking stays where it stood, between."""
        if _calls_are_last(out):
            return False
        order: list[int] = []
        calls: list[int] = []
        for position, piece in enumerate(out):
            if piece.kind == "thinking":
                order += [*calls, position]
                calls = []
            else:
                (calls if piece.kind == "toolCall" else order).append(position)
        order += calls
        if order == list(range(len(out))):
            return False
        self.work.note(ChangeCode.CALL_MOVED, (*self.work.path(index), "content"), _NONE)
        out[:] = [out[position] for position in order]
        kept[:] = [kept[position] for position in order]
        return True

    def lives(self, message: AssistantMessage) -> bool:
        """Whether an own turn keeps its seals: with all of its thinking gone, the rest is not what was signed."""
        thoughts = [piece for piece in message.content if piece.kind == "thinking"]
        return not thoughts or any(map(self.can_replay, thoughts))

    def can_replay(self, piece: ThinkingContent) -> bool:
        """Whether the target takes its own thought back."""
        if self.replay == "none":
            return False
        is_readable = not piece.redacted and bool(piece.thinking.strip())
        return bool(piece.thinking_signature) or (self.replay != "signed" and is_readable)

    def put(self, index: int, message: AssistantMessage, out: list[AssistantContent], kept: list[int]) -> None:
        work = self.work
        origins = None
        if kept != list(range(len(message.content))):
            known = work.blocks.get(work.places[index])
            origins = kept if known is None else [known[position] for position in kept]
            if not out:
                work.survey.blank = True
            elif out[-1].kind == "thinking":
                work.survey.thinks_last = True
        work.put(index, replace(message, content=tuple(out)), origins)

    def note(self, code: ChangeCode, index: int, position: int, loss: Loss, detail: str = "") -> None:
        self.work.note(code, self.work.content_path(index, position), loss, detail)

    def thinking(self, index: int, position: int, piece: ThinkingContent, *, is_own: bool) -> AssistantContent | None:
        """Keep a thought that can be replayed; give another one the form its fate says, never its seal."""
        seal = piece.thinking_signature
        if is_own and self.can_replay(piece):
            if seal != "":
                return piece
            self.note(ChangeCode.SIGNATURE_REMOVED, index, position, _NONE)
            return replace(piece, thinking_signature=None)
        loss = _OPAQUE if seal else _NONE
        if piece.redacted:
            self.note(_DROPPED, index, position, _OPAQUE, "redacted")
            return None
        if not piece.thinking.strip():
            self.note(_BLANK, index, position, loss)
            return None
        match self.fate:
            case "drop":
                self.note(_DROPPED, index, position, _CONTENT)
                return None
            case "text":
                self.note(_AS_TEXT, index, position, _OPAQUE if seal else lost_extra(piece.extra))
                return TextContent(text=piece.thinking)
            case "channel":
                if seal is None:
                    return piece
                self.note(_UNSIGNED, index, position, loss)
                return ThinkingContent(thinking=piece.thinking, extra=piece.extra)
            case _:
                assert_never(self.fate)

    def call(self, index: int, position: int, piece: ToolCall, *, is_own: bool, wants_seal: bool) -> ToolCall:
        """Take another model's seal off; put the documented placeholder on the first call of a step without one."""
        seal = piece.thought_signature
        if seal is not None and not (is_own and seal) and (seal != self.placeholder or not wants_seal):
            self.note(ChangeCode.SIGNATURE_REMOVED, index, position, _OPAQUE if seal else _NONE)
            seal = None
        if not seal and wants_seal:
            self.note(ChangeCode.SIGNATURE_PLACEHOLDER, index, position, _NONE)
            seal = self.placeholder
        return piece if seal is piece.thought_signature else replace(piece, thought_signature=seal)


def _calls_are_last(content: Sequence[AssistantContent]) -> bool:
    has_called = False
    for piece in content:
        if piece.kind == "toolCall":
            has_called = True
        elif has_called:
            return False
    return True
