"""Pass 5: replay thinking and signatures to the same model; convert or remove them for other models.

Facts:
- A signature is valid only for the model that produced it; another one refuses it or gives a corrupt reply.
                                      (llxprt-code #2335, 9router #4136, strands #682, codex #8119)
- The same model requires every signed block unchanged: order, bytes, even with empty text.
                                      (claude-code #63203, strands #2704, langchain #38638)
- Redacted and encrypted payloads are useless to other models and must not be converted. (llxprt-code #2337, pi #1665)
- Signed thinking and the calls after it belong together: without one, the signature of the other is refused.
                                      (mastra #8738, opencode #38620, rig #751)
- Gemini 3 refuses a step whose first call has no signature; it accepts a documented placeholder for other models'
  calls.                              (litellm #16893; recorded traffic, 2026-11)
- At the Interactions API the signature is that of a thought at the head of the turn, also the placeholder.
                                      (live calls of a public adapter, read 2026-11-16)
- Claude up to 4.5 works in one mode during a tool cycle: "When thinking is disabled, an `assistant` message in the
  final position cannot contain `thinking`."  (forgecode #1853 and #1195, the second at Vertex)
- Whether to send thinking of other models is a policy: as text it may be imitated, dropped it is lost.
                                      (ktsoator/or, alchemy-rs and tirea disagree)
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Final, Literal, TypeAlias, assert_never

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.messages import AssistantMessage
from segue.errors import Path
from segue.projection.passes.extra import lost_extra
from segue.projection.report import Change, ChangeCode, Loss
from segue.projection.workspace.workspace import INSERTED, Target, Workspace
from segue.protocols.kit.readable_signatures import WRAPPED, is_wrapped, read_wrapped

Treatment: TypeAlias = Literal["channel", "text", "drop"]

# Reading a member of an enum costs as much as creating a Change with it (CPython 3.11, measured 2026-11-15).
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
    """Keep thinking and signatures of the target's own turns; convert those of other models as the policy says."""
    if _has_changes(workspace):
        _Reasoning(workspace).run()


def _has_changes(workspace: Workspace) -> bool:
    """Whether any turn may have to change: another model wrote it, or a signature is missing or not accepted."""
    scan, rules = workspace.scan, workspace.target.rules
    return bool(
        (scan.foreign and (scan.signatures or scan.unsigned or scan.phases or scan.native))
        or scan.unusable
        or workspace.cross_model
        or (scan.unsigned and rules.reasoning_replay in ("signed", "none"))
        or (scan.signed and rules.reasoning_replay == "none")
        or (workspace.thinking_off and (scan.signed or scan.unsigned))
        or (scan.phases and not rules.has("text_phases"))
        or (scan.text_after_call and rules.calls_last)
        or (rules.call_signature == "required" and (scan.without_signature or scan.unclean))
        or (rules.call_signature == "thought" and scan.call_ids)
    )


def thinking_treatment(target: Target) -> Treatment:
    """Decide how to send the readable thinking of other models: as thinking, as text, or not at all."""
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


_FIXED: Final = frozenset({"thinking"})
_FIXED_IN_OWN: Final = frozenset({"thinking", "native"})
"""Kinds of content that calls do not move past: the target signed them in this order, or a server tool wrote them."""


class _Reasoning:
    """Processes the assistant turns of a segment."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.target = workspace.target
        self.replay = workspace.target.rules.reasoning_replay
        self.treatment: Treatment = thinking_treatment(workspace.target)
        self.content: tuple[AssistantContent, ...] = ()
        texts = workspace.target.policy.texts
        rule = workspace.target.rules.call_signature
        self.placeholder = texts.call_signature if rule == "required" else None
        self.lead = ThinkingContent(thinking="", thinking_signature=texts.thought_signature)
        """The thinking that is put before calls without signed thinking, where the target requires that."""
        self.needs_lead: bool = rule == "thought"
        self.moves_calls: bool = workspace.target.rules.calls_last

    def run(self) -> None:
        workspace, foreign, ownership = self.workspace, self.workspace.scan.foreign, self.target.ownership
        is_as_scanned = not workspace.reordered and not workspace.cross_model
        for index, message in enumerate(workspace.messages):
            if type(message) is AssistantMessage:
                is_own = index not in foreign if is_as_scanned else workspace.is_own(index)
                if is_own and workspace.thinking_off:
                    is_own = not self.is_in_cycle(index, message)
                self.content = message.content
                if not is_own and ownership.refused:
                    # Sent as text, what a provider refused would be a change that nobody asked for.
                    is_refused = ownership.is_refused(message)
                    self.treatment = "drop" if is_refused else thinking_treatment(self.target)
                self.turn(index, message, is_own=is_own)

    # -- one turn ------------------------------------------------------------------------------------------------------

    def turn(self, index: int, message: AssistantMessage, *, is_own: bool) -> None:  # noqa: PLR0915 - see below
        """Convert or remove the thinking and signatures of one turn that the target does not accept."""
        if is_own:
            if self.can_replay_all(message):
                return
            is_own = self.is_own_turn(message)
        workspace, wants_signature = self.workspace, self.placeholder is not None
        root: Path = ("messages", workspace.places[index], "content")
        as_given, changes = not workspace.blocks, workspace.changes
        out: list[AssistantContent] = []
        dropped: list[int] = []
        is_changed = has_call = is_mixed = False
        position = -1  # counted by hand, and every piece appended in its branch: 8 % less time for the pass
        for piece in message.content:
            position += 1
            if type(piece) is ToolCall:
                has_call = True
                signature = piece.thought_signature
                if wants_signature:
                    wants_signature = False
                    path = (*root, position) if as_given else workspace.content_path(index, position)
                    new = self.first_call(piece, path, is_own=is_own)
                    is_changed = is_changed or new is not piece
                    out.append(new)
                    continue
                if signature is None or (is_own and signature):
                    out.append(piece)
                    continue
                out.append(replace(piece, thought_signature=None))
            elif type(piece) is TextContent:
                is_mixed = has_call
                signature = piece.text_signature
                if piece.phase is not None and not (is_own and self.target.rules.has("text_phases")):
                    out.append(self.without_phase(piece, workspace.content_path(index, position), is_own=is_own))
                    is_changed = True
                    continue
                if signature is None or (is_own and signature):
                    out.append(piece)
                    continue
                out.append(replace(piece, text_signature=None))
            elif type(piece) is ThinkingContent:
                is_mixed = has_call
                path = (*root, position) if as_given else workspace.content_path(index, position)
                new = self.thinking(piece, path, is_own=is_own)
                if new is None:
                    dropped.append(position)
                    out.append(piece)
                else:
                    out.append(new)
                    is_changed = is_changed or new is not piece
                continue
            else:
                is_mixed = has_call
                out.append(piece)
                continue
            # Removed a signature of another model, or an empty one. Written without calls: most changes are made here.
            path = (*root, position) if as_given else workspace.content_path(index, position)
            changes.append(Change(code=_SIGNATURE_DROPPED, path=path, loss=_OPAQUE if signature else _NONE))
            is_changed = True
        if dropped or (is_mixed and self.moves_calls) or (self.needs_lead and self.lacks_lead(out, dropped)):
            self.rearrange(index, message, out, dropped, is_own=is_own)
        elif is_changed:
            workspace.messages[index] = replace(message, content=tuple(out))
            workspace.changed = True

    def without_phase(self, piece: TextContent, path: Path, *, is_own: bool) -> TextContent:
        """Remove the phase of a text. It belongs to the signed item of the text, so one change reports both."""
        self.workspace.note(_SIGNATURE_DROPPED, path, _OPAQUE, "phase")
        return replace(piece, phase=None, text_signature=(piece.text_signature or None) if is_own else None)

    def can_replay_all(self, message: AssistantMessage) -> bool:
        """Whether an own turn can be replayed unchanged."""
        wants_signature = self.placeholder is not None
        called, calls_last = False, self.target.rules.calls_last
        if self.lacks_lead(message.content, ()):
            return False
        for piece in message.content:
            if type(piece) is ToolCall:
                called = calls_last
                signature = piece.thought_signature
                if signature == "" or (wants_signature and signature is None):
                    return False
                wants_signature = False
            elif type(piece) is ThinkingContent:
                if piece.thinking_signature == "" or not self.can_replay(piece):
                    return False
            elif type(piece) is TextContent and (
                called
                or piece.text_signature == ""
                or (piece.phase is not None and not self.target.rules.has("text_phases"))
            ):
                return False
        return True

    def is_in_cycle(self, index: int, message: AssistantMessage) -> bool:
        """Whether thinking of a turn is refused while thinking is off: the turn has calls, or the request ends with it.

        Only the last turn of the running cycle is refused. Those before it were the last ones once, so they are sent
        as they were sent then, and the cached prefix stays valid. Consecutive turns are one turn on the wire.
        """
        if not any(piece.kind == "thinking" for piece in message.content):
            return False
        if message.tool_calls():
            return True
        # Where a message was dropped after the turn, a user turn will be inserted, unless the provider goes on.
        workspace, messages, places = self.workspace, self.workspace.messages, self.workspace.places
        if index == len(messages) - 1:
            is_last = workspace.final and places[index] + 1 == workspace.end
            return is_last or bool(workspace.prefix_state.waiting)
        is_next = places[index] + 1 == places[index + 1] or places[index + 1] in workspace.joined
        return is_next and messages[index + 1].role == "assistant"

    def is_own_turn(self, message: AssistantMessage) -> bool:
        """Whether an own turn keeps its signatures: without any of its thinking the others are not valid."""
        thinking = [piece for piece in message.content if piece.kind == "thinking"]
        return not thinking or any(map(self.can_replay, thinking))

    def can_replay(self, piece: ThinkingContent) -> bool:
        """Whether the target accepts thinking that it produced."""
        if self.replay == "none":
            return False
        if piece.thinking_signature:
            return True
        return self.replay != "signed" and not piece.redacted and bool(piece.thinking) and not piece.thinking.isspace()

    def rearrange(
        self, index: int, message: AssistantMessage, out: list[AssistantContent], dropped: list[int], *, is_own: bool
    ) -> None:
        """Remove dropped content, move calls to the end and put signed thinking first if the target requires it."""
        workspace = self.workspace
        gone = set(dropped)
        order = [position for position in range(len(out)) if position not in gone]
        if self.target.rules.calls_last:
            order = self.calls_last(index, out, order, _FIXED_IN_OWN if is_own else _FIXED)
        content = tuple([out[position] for position in order])
        lead = self.lacks_lead(out, dropped)
        if not lead and len(content) == len(message.content) and all(map(is_, content, message.content)):
            return
        if not content:
            workspace.scan.blank = True
        elif content[-1].kind == "thinking":
            workspace.scan.thinks_last = True
        known = workspace.blocks.get(workspace.places[index])
        origins = order if known is None else [known[position] for position in order]
        added = 0
        if lead:
            content, origins = (self.lead, *content), [INSERTED, *origins]
            added = len(self.lead.thinking_signature or "")
            workspace.note(_PLACEHOLDER, (*workspace.path(index), "content"), _NONE)
        workspace.put(index, replace(message, content=content), origins, added=added)

    def is_lead(self, piece: ThinkingContent) -> bool:
        """Whether thinking is the placeholder that an earlier projection put before the calls of the turn."""
        has_calls = any(type(other) is ToolCall for other in self.content)
        return piece is self.content[0] and piece == self.lead and has_calls

    def lacks_lead(self, content: Sequence[AssistantContent], dropped: Sequence[int]) -> bool:
        """Whether the target requires signed thinking before the first call, and there is none."""
        if self.needs_lead:
            for position, piece in enumerate(content):
                if type(piece) is ToolCall:
                    return True
                if type(piece) is ThinkingContent and piece.thinking_signature and position not in dropped:
                    return False
        return False

    def calls_last(self, index: int, out: list[AssistantContent], order: list[int], fixed: frozenset[str]) -> list[int]:
        """Return the order with calls after the text; calls do not move past content of the kinds `fixed`."""
        text_first: list[int] = []
        calls: list[int] = []
        for position in order:
            if out[position].kind == "toolCall":
                calls.append(position)
                continue
            if out[position].kind in fixed:
                text_first += calls
                calls = []
            text_first.append(position)
        text_first += calls
        if text_first != order:
            self.workspace.note(ChangeCode.CALL_MOVED, (*self.workspace.path(index), "content"), _NONE)
        return text_first

    def thinking(self, piece: ThinkingContent, path: Path, *, is_own: bool) -> AssistantContent | None:
        """Keep thinking that can be replayed; convert or drop (None) any other, always without its signature."""
        workspace, signature = self.workspace, piece.thinking_signature
        if self.needs_lead and self.is_lead(piece):
            return piece
        if is_own and self.can_replay(piece):
            if signature != "":
                return piece
            workspace.note(_SIGNATURE_DROPPED, path, _NONE)
            return replace(piece, thinking_signature=None)
        if signature is not None and signature.startswith(WRAPPED):
            piece = self.unwrapped(piece)
        text = piece.thinking
        if piece.redacted:
            workspace.note(_DROPPED, path, _OPAQUE, "redacted")
        elif not text or text.isspace():
            workspace.note(_BLANK, path, _OPAQUE if signature else lost_extra(piece.extra))
        elif self.treatment == "text":
            loss = _OPAQUE if signature else lost_extra(piece.extra)
            workspace.changes.append(Change(code=_AS_TEXT, path=path, loss=loss))
            return TextContent(text, cache_mark=piece.cache_mark)
        elif self.treatment == "drop":
            workspace.note(_DROPPED, path, _CONTENT)
        elif signature is None:
            return piece
        else:
            workspace.changes.append(Change(code=_UNSIGNED, path=path, loss=_OPAQUE if signature else _NONE))
            return ThinkingContent(thinking=piece.thinking, cache_mark=piece.cache_mark, extra=piece.extra)
        return None

    def unwrapped(self, piece: ThinkingContent) -> ThinkingContent:
        """Return thinking whose signature holds its text; without the text if the turn has it already."""
        text = read_wrapped(piece.thinking_signature)
        others = [other for other in self.content if other.kind == "thinking"]
        if text is None or any(text == other.thinking and not is_wrapped(other.thinking_signature) for other in others):
            return replace(piece, redacted=True)
        return replace(piece, thinking=text, redacted=False)

    def first_call(self, piece: ToolCall, path: Path, *, is_own: bool) -> ToolCall:
        """Set the documented placeholder on the first call of a step, unless it has a signature of the target."""
        signature = piece.thought_signature
        if signature is not None and not (is_own and signature) and signature != self.placeholder:
            self.workspace.note(_SIGNATURE_DROPPED, path, _OPAQUE if signature else _NONE)
            signature = None
        if not signature:
            self.workspace.changes.append(Change(code=_PLACEHOLDER, path=path, loss=_NONE))
            signature = self.placeholder
            self.workspace.add(len(signature or ""))
        return piece if signature is piece.thought_signature else replace(piece, thought_signature=signature)
