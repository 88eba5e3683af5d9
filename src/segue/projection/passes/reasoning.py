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
from segue.projection.workspace.workspace import Target, Work

Fate: TypeAlias = Literal["channel", "text", "drop"]

# Reading a member of an enum costs as much as making the change that carries it (CPython 3.11, measured 2026-11-15).
_AS_TEXT: Final = ChangeCode.THINKING_AS_TEXT
_DROPPED: Final = ChangeCode.THINKING_DROPPED
_UNSIGNED: Final = ChangeCode.THINKING_UNSIGNED
_BLANK: Final = ChangeCode.THINKING_BLANK
_SEAL_GONE: Final = ChangeCode.SIGNATURE_REMOVED
_PLACEHOLDER: Final = ChangeCode.SIGNATURE_PLACEHOLDER
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
        self.fate: Fate = thinking_fate(work.target)
        texts = work.target.policy.texts
        self.placeholder = texts.call_signature if work.target.rules.call_signature == "required" else None

    def has_work(self) -> bool:
        """Whether there is anything that is not plainly the target's own, with a seal where one belongs."""
        survey = self.work.survey
        return bool(
            survey.foreign
            or survey.unusable
            or self.work.estranged
            or (survey.unsigned and self.replay in ("signed", "none"))
            or (survey.signed and self.replay == "none")
            or (self.placeholder is not None and (survey.unsealed or survey.unclean))
        )

    def run(self) -> None:
        work, foreign = self.work, self.work.survey.foreign
        is_as_surveyed = not work.reshaped and not work.estranged
        for index, message in enumerate(work.messages):
            if type(message) is AssistantMessage:
                self.turn(index, message, is_own=index not in foreign if is_as_surveyed else work.is_own(index))

    # -- one turn ------------------------------------------------------------------------------------------------------

    def turn(self, index: int, message: AssistantMessage, *, is_own: bool) -> None:
        """Give every block of a turn the form in which it can be sent."""
        if is_own:
            if self.is_whole(message):
                return
            is_own = self.lives(message)
        work, place, wants_seal = self.work, self.work.places[index], self.placeholder is not None
        as_given = not work.blocks
        out: list[AssistantContent] = list(message.content)
        gone: list[int] = []
        is_changed = has_call = is_mixed = False
        for position, piece in enumerate(message.content):
            if type(piece) is ToolCall:
                has_call = True
                seal = piece.thought_signature
                if wants_seal:
                    wants_seal = False
                    path = ("messages", place, "content", position) if as_given else work.content_path(index, position)
                    out[position] = self.first_call(piece, path, is_own=is_own)
                    is_changed = is_changed or out[position] is not piece
                    continue
            elif type(piece) is TextContent:
                is_mixed = has_call
                seal = piece.text_signature
            elif type(piece) is ThinkingContent:
                is_mixed = has_call
                path = ("messages", place, "content", position) if as_given else work.content_path(index, position)
                new = self.thinking(piece, path, is_own=is_own)
                if new is None:
                    gone.append(position)
                elif new is not piece:
                    out[position] = new
                    is_changed = True
                continue
            else:
                is_mixed = has_call
                continue
            if seal is None or (is_own and seal):
                continue
            # An own seal stays, another's goes, and one that is none. Written out: most of a long report is made here.
            path = ("messages", place, "content", position) if as_given else work.content_path(index, position)
            work.changes.append(Change(code=_SEAL_GONE, path=path, loss=_OPAQUE if seal else _NONE))
            is_call = type(piece) is ToolCall
            out[position] = replace(piece, thought_signature=None) if is_call else replace(piece, text_signature=None)
            is_changed = True
        if gone or (is_mixed and self.target.rules.calls_last and not is_own):
            self.rearrange(index, message, out, gone, is_own=is_own)
        elif is_changed:
            work.messages[index] = replace(message, content=tuple(out))
            work.changed = True

    def is_whole(self, message: AssistantMessage) -> bool:
        """Whether an own turn can be replayed as it is."""
        wants_seal = self.placeholder is not None
        for piece in message.content:
            if type(piece) is ToolCall:
                seal = piece.thought_signature
                if seal == "" or (wants_seal and seal is None):
                    return False
                wants_seal = False
            elif type(piece) is ThinkingContent:
                if piece.thinking_signature == "" or not self.can_replay(piece):
                    return False
            elif type(piece) is TextContent and piece.text_signature == "":
                return False
        return True

    def lives(self, message: AssistantMessage) -> bool:
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
        self, index: int, message: AssistantMessage, out: list[AssistantContent], gone: list[int], *, is_own: bool
    ) -> None:
        """Go on without what is gone, and with the calls last where they have to be."""
        work = self.work
        order = [position for position in range(len(out)) if position not in gone]
        if self.target.rules.calls_last and not is_own:
            order = self.calls_last(index, out, order)
        content = tuple([out[position] for position in order])
        if len(content) == len(message.content) and all(map(is_, content, message.content)):
            return
        if not content:
            work.survey.blank = True
        elif content[-1].kind == "thinking":
            work.survey.thinks_last = True
        known = work.blocks.get(work.places[index])
        origins = order if known is None else [known[position] for position in order]
        work.put(index, replace(message, content=content), origins)

    def calls_last(self, index: int, out: list[AssistantContent], order: list[int]) -> list[int]:
        """Let the words come first and the calls behind them; thinking stays where it stood, between."""
        words_first: list[int] = []
        calls: list[int] = []
        for position in order:
            if out[position].kind == "toolCall":
                calls.append(position)
                continue
            if out[position].kind == "thinking":
                words_first += calls
                calls = []
            words_first.append(position)
        words_first += calls
        if words_first != order:
            self.work.note(ChangeCode.CALL_MOVED, (*self.work.path(index), "content"), _NONE)
        return words_first

    def thinking(self, piece: ThinkingContent, path: Path, *, is_own: bool) -> AssistantContent | None:
        """Keep a thought that can be replayed; give another one the form its fate says, never its seal."""
        work, seal = self.work, piece.thinking_signature
        if is_own and self.can_replay(piece):
            if seal != "":
                return piece
            work.note(_SEAL_GONE, path, _NONE)
            return replace(piece, thinking_signature=None)
        if piece.redacted:
            work.note(_DROPPED, path, _OPAQUE, "redacted")
        elif piece.thinking.isspace() or not piece.thinking:
            work.note(_BLANK, path, _OPAQUE if seal else _NONE)
        elif self.fate == "text":
            loss = _OPAQUE if seal else lost_extra(piece.extra)
            work.changes.append(Change(code=_AS_TEXT, path=path, loss=loss))
            return TextContent(text=piece.thinking)
        elif self.fate == "drop":
            work.note(_DROPPED, path, _CONTENT)
        elif seal is None:
            return piece
        else:
            work.changes.append(Change(code=_UNSIGNED, path=path, loss=_OPAQUE if seal else _NONE))
            return ThinkingContent(thinking=piece.thinking, extra=piece.extra)
        return None

    def first_call(self, piece: ToolCall, path: Path, *, is_own: bool) -> ToolCall:
        """Put the documented placeholder on the first call of a step that has no seal, or another model's."""
        seal = piece.thought_signature
        if seal is not None and not (is_own and seal) and seal != self.placeholder:
            self.work.note(_SEAL_GONE, path, _OPAQUE if seal else _NONE)
            seal = None
        if not seal:
            self.work.changes.append(Change(code=_PLACEHOLDER, path=path, loss=_NONE))
            seal = self.placeholder
        return piece if seal is piece.thought_signature else replace(piece, thought_signature=seal)
