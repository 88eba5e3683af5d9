"""Fit the system prompt to the target: clean text, no blocks of other protocols, not blank where that is refused.

The prompt comes before all messages, so it is fitted once, before the passes run.
"""

from __future__ import annotations

from msgspec.structs import replace

from segue.conversation.content import NativeContent, SystemContent
from segue.errors import Path
from segue.projection.passes.cache_marks import move_system_marks
from segue.projection.passes.extra import kept_extra, lost_extra, lost_fields, removal_of
from segue.projection.passes.media_fit import fit_media
from segue.projection.passes.text import clean_piece, is_clean_extra
from segue.projection.report import Change, ChangeCode, Loss
from segue.projection.workspace.surrogates import clean_text, clean_value, only_joins
from segue.projection.workspace.workspace import SystemPrompt, Target


def fit_system_prompt(given: SystemPrompt, target: Target) -> tuple[SystemPrompt, tuple[Change, ...]]:
    """Fit the prompt; the same object when nothing changes."""
    if given is None:
        return None, ()
    fitting = _Fitting(target)
    if isinstance(given, str):
        return fitting.text(given, ("system_prompt",), Loss.NONE), tuple(fitting.changes)
    pieces, moves = move_system_marks(given, target)
    fitting.changes += moves
    out: list[SystemContent] = []
    for position, piece in enumerate(pieces):
        out.extend(fitting.piece(piece, ("system_prompt", position)))
    if not out and not fitting.changes:
        fitting.note(ChangeCode.TEXT_BLANK, ("system_prompt",), Loss.NONE)
    return (given if not fitting.changes else tuple(out) or None), tuple(fitting.changes)


class _Fitting:
    def __init__(self, target: Target) -> None:
        self.target = target
        self.changes: list[Change] = []

    def note(self, code: ChangeCode, path: Path, loss: Loss, detail: str = "") -> None:
        self.changes.append(Change(code=code, path=path, loss=loss, detail=detail))

    def text(self, given: str, path: Path, cost: Loss) -> str | None:
        """Clean a text; None, reported with the loss `cost`, if it is blank and the target refuses blank texts."""
        cleaned = clean_text(given)
        if cleaned is not given:
            self.note(ChangeCode.SURROGATE_REPLACED, path, Loss.NONE if only_joins(given) else Loss.CONTENT)
        # Without a system prompt the target gets it as a user turn, which must not be blank.
        refused = self.target.rules.refused_text if self.target.rules.system_prompt else "blank"
        if (refused != "none" and not cleaned) or (refused == "blank" and cleaned.isspace()):
            self.note(ChangeCode.TEXT_BLANK, path, cost)
            return None
        return cleaned

    def piece(self, given: SystemContent, path: Path) -> list[SystemContent]:
        if given.kind == "native":
            return self.native(given, path)
        text = self.text(given.text, path, lost_extra(given.extra))
        if text is None:
            return []
        signature, mark = given.text_signature and clean_value(given.text_signature), clean_value(given.cache_mark)
        is_same = signature is given.text_signature and mark is given.cache_mark
        if not is_same and text is given.text:
            self.note(ChangeCode.SURROGATE_REPLACED, path, Loss.OPAQUE)
        if not is_same or text is not given.text:
            given = replace(given, text=text, text_signature=signature, cache_mark=mark)
        return [self.keep_supported_extra(given, path)]

    def native(self, given: NativeContent, path: Path) -> list[SystemContent]:
        """Keep a block of the target's protocol; replace another one by its fallback, with media as short texts."""
        if given.protocol == self.target.model.protocol:
            cleaned = self.clean_native(given, path)
            if cleaned.kind != "native" or not self.is_refused(cleaned):
                return [self.keep_supported_extra(cleaned, path)]
            self.note(ChangeCode.NATIVE_REFUSED, path, Loss.OPAQUE if given.fallback else Loss.CONTENT, "malformed")
        elif not given.fallback:
            self.note(ChangeCode.NATIVE_DROPPED, path, Loss.CONTENT, given.protocol)
        else:
            self.note(ChangeCode.NATIVE_REPLACED, path, Loss.OPAQUE, given.protocol)
        out: list[SystemContent] = []
        for spare in given.fallback:
            if spare.kind == "text":
                out += self.piece(replace(spare, extra=None), path)
                continue
            fit = fit_media(spare, self.target, (), in_result=False)
            for code, loss, detail in fit.changes:
                self.note(code, path, loss, clean_text(detail))
            if fit.content.kind == "text":
                out += self.piece(fit.content, path)
        return out

    def is_refused(self, given: NativeContent) -> bool:
        """Whether the target refuses a native block of its own protocol."""
        replay = self.target.protocol.replay
        kind, _ = replay.read(given.block)
        return kind in replay.malformed or (not replay.is_known(kind) and self.target.acceptance.refuses_prompt(given))

    def clean_native(self, given: NativeContent, path: Path) -> SystemContent:
        cleaned = clean_piece(given, self.target.model.protocol)
        if cleaned is given or cleaned.kind != "native":
            return given
        self.note(ChangeCode.SURROGATE_REPLACED, path, Loss.CONTENT)
        return cleaned

    def keep_supported_extra(self, given: SystemContent, path: Path) -> SystemContent:
        """Remove `extra` of other protocols."""
        if given.extra is None:
            return given
        kept = kept_extra(given.extra, self.target.model.protocol, self.target.rules, same_provider=True)
        if kept is not given.extra:
            self.note(ChangeCode.EXTRA_REMOVED, path, *removal_of(lost_fields(given.extra, kept)))
        if kept is not None and not is_clean_extra(kept, self.target.model.protocol):
            self.note(ChangeCode.SURROGATE_REPLACED, path, Loss.OPAQUE)
            kept = clean_value(kept)
        supported = given if kept is given.extra else replace(given, extra=kept)
        accepted = self.target.acceptance.accepted_prompt(supported)
        if accepted is not supported:
            self.note(ChangeCode.EXTRA_REMOVED, path, *removal_of({}))
        return accepted
