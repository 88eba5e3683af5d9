"""The report of a projection: one `Change` for each thing that differs between the conversation and the request.

Paths refer to the given conversation, never to the projected one, so that a reader can look them up in the stored
file. An inserted message has the path of the message before it, `("messages",)` when it comes first.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import Final, final

import msgspec
from msgspec.structs import replace

from segue.errors import Path, render_path
from segue.foundation.json_text import encode_valid_json
from segue.foundation.plurals import counted


class Loss(StrEnum):
    """What a change loses: nothing (format, order), opaque data such as a signature, or content a model would read."""

    NONE = "none"
    OPAQUE = "opaque"
    CONTENT = "content"


class ChangeCode(StrEnum):
    """Every kind of change. `SENTENCES` explains each of them."""

    # unfinished
    UNFINISHED_TURN = "unfinished_turn"
    UNFINISHED_RESULT = "unfinished_result"
    # text
    SURROGATE_REPLACED = "surrogate_replaced"
    SIGNED_BLOCK_UNUSABLE = "signed_block_unusable"
    # pairing
    RESULT_MISSING = "result_missing"
    RESULT_MOVED = "result_moved"
    RESULT_DUPLICATE = "result_duplicate"
    RESULT_ORPHANED = "result_orphaned"
    RESULT_AS_TEXT = "result_as_text"
    ARGUMENTS_UNPARSED = "arguments_unparsed"
    # media
    NATIVE_REPLACED = "native_replaced"
    NATIVE_DROPPED = "native_dropped"
    NATIVE_REFUSED = "native_refused"
    MEDIA_OMITTED = "media_omitted"
    MEDIA_FLATTENED = "media_flattened"
    MEDIA_TOO_LARGE = "media_too_large"
    MEDIA_EVICTED = "media_evicted"
    MEDIA_SHORTENED = "media_shortened"
    MEDIA_MOVED = "media_moved"
    MEDIA_RESOLVED = "media_resolved"
    MEDIA_UNREACHABLE = "media_unreachable"
    MEDIA_TYPE_NAMED = "media_type_named"
    FILE_AS_TEXT = "file_as_text"
    FILE_AS_IMAGE = "file_as_image"
    IMAGE_AS_FILE = "image_as_file"
    SOURCES_AS_TEXT = "sources_as_text"
    FILE_CONTEXT_AS_TEXT = "file_context_as_text"
    # reasoning
    THINKING_DROPPED = "thinking_dropped"
    THINKING_AS_TEXT = "thinking_as_text"
    THINKING_UNSIGNED = "thinking_unsigned"
    THINKING_BLANK = "thinking_blank"
    REASONING_WITHHELD = "reasoning_withheld"
    REASONING_ASKED = "reasoning_asked"
    REASONING_REJECTED = "reasoning_rejected"
    INSTRUCTIONS_APPENDED = "instructions_appended"
    SIGNATURE_REMOVED = "signature_removed"
    SIGNATURE_PLACEHOLDER = "signature_placeholder"
    EXTRA_REMOVED = "extra_removed"
    PROVIDER_HISTORY = "provider_history"
    PREFIX_REMOVED = "prefix_removed"
    CALL_MOVED = "call_moved"
    # ids and names
    ID_CHANGED = "id_changed"
    NAME_CHANGED = "name_changed"
    NAME_AS_TEXT = "name_as_text"
    # turns
    CALL_AS_TEXT = "call_as_text"
    ERROR_AS_TEXT = "error_as_text"
    SYSTEM_AS_USER = "system_as_user"
    SYSTEM_AS_PROMPT = "system_as_prompt"
    TEXT_BLANK = "text_blank"
    TURN_EMPTY = "turn_empty"
    TURN_FILLED = "turn_filled"
    TURN_MERGED = "turn_merged"
    TURN_INSERTED = "turn_inserted"
    RESULT_FILLED = "result_filled"
    FINAL_SPACE = "final_space"
    # fitting
    RESULT_SHORTENED = "result_shortened"
    TURNS_DROPPED = "turns_dropped"
    SUMMARY_USED = "summary_used"
    SERVER_EDITED = "server_edited"
    # settings
    OPTION_REMOVED = "option_removed"
    OPTION_CLAMPED = "option_clamped"
    OUTPUT_ASKED = "output_asked"
    THINKING_LEVEL = "thinking_level"
    TOOL_REMOVED = "tool_removed"
    TOOL_ADDED = "tool_added"
    SERVER_TOOL_MAPPED = "server_tool_mapped"
    TOOL_SEARCH_REMOVED = "tool_search_removed"
    NAMESPACE_FLATTENED = "namespace_flattened"
    TOOL_LOADED = "tool_loaded"
    TOOL_SCHEMA = "tool_schema"
    CACHE_MARK_REMOVED = "cache_mark_removed"
    CACHE_MARK_MOVED = "cache_mark_moved"
    CACHE_MARK_SHORTENED = "cache_mark_shortened"
    # histories: reading and writing stored sessions
    RECORD_LEFT_OUT = "record_left_out"
    BRANCH_LEFT_OUT = "branch_left_out"
    CHILD_LEFT_OUT = "child_left_out"
    COMPACTED_AWAY = "compacted_away"
    LINE_UNREADABLE = "line_unreadable"
    AGENT_TEXT_LEFT_OUT = "agent_text_left_out"
    INSTRUCTIONS_LEFT_OUT = "instructions_left_out"
    ID_MADE = "id_made"
    TIME_MADE = "time_made"
    MODEL_UNKNOWN = "model_unknown"
    FILE_MISSING = "file_missing"
    ORIGINAL_NOT_RESTORED = "original_not_restored"


SENTENCES: Final[dict[ChangeCode, str]] = {
    ChangeCode.UNFINISHED_TURN: (
        "An assistant turn that ended in an error or was aborted is removed; providers refuse partial turns."
    ),
    ChangeCode.UNFINISHED_RESULT: "A tool result is removed, because the unfinished turn with its call is removed.",
    ChangeCode.SURROGATE_REPLACED: (
        "Half a surrogate pair, which is not valid UTF-8, is joined to its other half or replaced by U+FFFD."
    ),
    ChangeCode.SIGNED_BLOCK_UNUSABLE: (
        "A signed block with half a surrogate pair is removed; repairing it would break the signature."
    ),
    ChangeCode.RESULT_MISSING: (
        "A tool call has no result; an error result is inserted. Append a ToolResultMessage to send the real one."
    ),
    ChangeCode.RESULT_MOVED: "A tool result is moved after its call, or into the order of the calls.",
    ChangeCode.RESULT_DUPLICATE: (
        "A second result for the same call is removed; Policy(duplicate_results=...) selects which one is sent."
    ),
    ChangeCode.RESULT_ORPHANED: (
        'A tool result without a call is removed; Policy(orphan_results="text") sends it as text.'
    ),
    ChangeCode.RESULT_AS_TEXT: (
        "A tool result is converted to text, because it has no call or the target does not support tools."
    ),
    ChangeCode.ARGUMENTS_UNPARSED: (
        "The tool arguments are cut off or not valid JSON; the part that could be parsed is sent."
    ),
    ChangeCode.NATIVE_REPLACED: (
        "A block of another protocol is replaced by the same of the target's, or by its fallback content."
    ),
    ChangeCode.NATIVE_DROPPED: "A block that only another protocol supports is removed; it has no fallback content.",
    ChangeCode.NATIVE_REFUSED: (
        "A block of the target's own protocol that it would refuse (a call without its result, a result without its "
        "call, a malformed block) is replaced by its fallback content, or removed if it has none."
    ),
    ChangeCode.MEDIA_OMITTED: "The model does not support this kind of media; a placeholder text is sent instead.",
    ChangeCode.MEDIA_FLATTENED: (
        "The protocol does not support this media type here; a short text with its type is sent instead."
    ),
    ChangeCode.MEDIA_TOO_LARGE: (
        "The media is larger than the target accepts; a placeholder text is sent. Send a smaller file."
    ),
    ChangeCode.MEDIA_EVICTED: (
        "The conversation has more images or files than the target accepts; the oldest become placeholder texts."
    ),
    ChangeCode.MEDIA_SHORTENED: (
        "An older image or file is replaced by a placeholder text, so that the conversation fits the window."
    ),
    ChangeCode.MEDIA_MOVED: (
        "Media is moved to a user turn, because the target does not accept it in its original place."
    ),
    ChangeCode.MEDIA_RESOLVED: (
        "A URL or file id is replaced by its content: that of Policy(media=...), or the data of a data URL."
    ),
    ChangeCode.MEDIA_UNREACHABLE: (
        "The target cannot read this media; a placeholder text is sent. Supply the bytes with Policy(media=...)."
    ),
    ChangeCode.MEDIA_TYPE_NAMED: "A missing or wrong MIME type is set from the first bytes of the data.",
    ChangeCode.FILE_AS_TEXT: "A text file is sent as text, because the target does not accept it as a file.",
    ChangeCode.FILE_AS_IMAGE: "A file that is an image is sent as an image.",
    ChangeCode.IMAGE_AS_FILE: "An image whose type is that of a document, sound or video is sent as a file.",
    ChangeCode.SOURCES_AS_TEXT: "The web pages that a turn of another model cites are listed as text after it.",
    ChangeCode.FILE_CONTEXT_AS_TEXT: (
        "The context of a file is sent as text before it, because the target has no field for it."
    ),
    ChangeCode.THINKING_DROPPED: (
        "Thinking is removed: the target does not accept it, the policy excludes it, or the window is too small."
    ),
    ChangeCode.THINKING_AS_TEXT: (
        'Thinking of another model is sent as plain text; Policy(reasoning="drop") removes it.'
    ),
    ChangeCode.THINKING_UNSIGNED: "Thinking of another model is sent as thinking, without its signature.",
    ChangeCode.THINKING_BLANK: "Thinking without text and without a usable signature is removed.",
    ChangeCode.REASONING_WITHHELD: (
        "Signed thinking is left out: the provider accepts it only after its original prefix, in one unbroken run."
    ),
    ChangeCode.REASONING_ASKED: (
        "It is not known what signed thinking was made after; the provider is asked to drop it if it is not valid."
    ),
    ChangeCode.REASONING_REJECTED: "The provider did not read signed thinking of this request, and said so.",
    ChangeCode.INSTRUCTIONS_APPENDED: (
        "The changed system prompt or tools are sent after a later message; the model reads the earlier ones before."
    ),
    ChangeCode.SIGNATURE_REMOVED: "A signature that only another model accepts is removed.",
    ChangeCode.SIGNATURE_PLACEHOLDER: (
        "The target requires a signature here; the placeholder that its documentation allows is added."
    ),
    ChangeCode.EXTRA_REMOVED: "Fields that only another protocol or provider supports (extra) are removed.",
    ChangeCode.PROVIDER_HISTORY: (
        "A reference to content that only another provider holds is removed; add that content to the conversation."
    ),
    ChangeCode.PREFIX_REMOVED: "The target cannot continue a given message (prefix); the flag is removed.",
    ChangeCode.CALL_MOVED: (
        "Tool calls are moved to the end of their turn, because the target accepts nothing after them."
    ),
    ChangeCode.ID_CHANGED: (
        "A tool call id that the target refuses, or that was used before, is replaced in call and result; the id of "
        "an item that was used before is removed."
    ),
    ChangeCode.NAME_CHANGED: (
        "The name of a tool or property that the target refuses is replaced everywhere; replies are mapped back."
    ),
    ChangeCode.NAME_AS_TEXT: (
        'The name of a user is sent as the start of the text; Policy(user_names="drop") removes it.'
    ),
    ChangeCode.CALL_AS_TEXT: "A tool call is converted to text, because the target does not support tools.",
    ChangeCode.ERROR_AS_TEXT: "The protocol has no error flag for tool results; the text is marked as an error.",
    ChangeCode.SYSTEM_AS_USER: (
        "Instructions are converted to a user turn, because the target does not accept them in their place."
    ),
    ChangeCode.SYSTEM_AS_PROMPT: "Instructions before the first turn become the system prompt.",
    ChangeCode.TEXT_BLANK: "A blank text, which the target refuses, is removed.",
    ChangeCode.TURN_EMPTY: "A turn without content is removed.",
    ChangeCode.TURN_FILLED: "Content is added to a turn that the target would refuse without it.",
    ChangeCode.TURN_MERGED: "Consecutive user turns are merged, because the target requires alternating roles.",
    ChangeCode.TURN_INSERTED: "A short turn is inserted, because the target requires it in its order of turns.",
    ChangeCode.RESULT_FILLED: "A short text is added to a tool result without text, which the target refuses.",
    ChangeCode.FINAL_SPACE: "White space at the end of the last turn, which the target refuses, is removed.",
    ChangeCode.RESULT_SHORTENED: (
        "The middle of a long tool result is removed, so that the conversation fits the window of the target."
    ),
    ChangeCode.TURNS_DROPPED: (
        "The oldest messages are left out, so that the conversation fits the window of the target. A note with"
        " facts and the words of the user, or a Summary if there is one, is sent in their place; Policy(fit=...) says"
        " how."
    ),
    ChangeCode.SUMMARY_USED: "A summary is sent in the place of messages that are left out.",
    ChangeCode.SERVER_EDITED: (
        "The provider itself cleared or summarised the beginning of the conversation, as Fit(server=...) asks."
    ),
    ChangeCode.OPTION_REMOVED: "An option that the target does not support in this request is removed.",
    ChangeCode.OPTION_CLAMPED: "An option is changed to the nearest value that the target accepts.",
    ChangeCode.OUTPUT_ASKED: (
        "The type of the answer is asked for in the best form that the target has; the answer is checked in any form."
    ),
    ChangeCode.THINKING_LEVEL: "The model does not support this thinking level; the nearest one is used.",
    ChangeCode.TOOL_REMOVED: "A tool that the target does not support is removed.",
    ChangeCode.TOOL_ADDED: (
        "A tool that only the history uses is declared, because the target requires a definition of every tool."
    ),
    ChangeCode.SERVER_TOOL_MAPPED: (
        "A tool that another provider runs is replaced by the target's own; the detail names options that are lost."
    ),
    ChangeCode.TOOL_SEARCH_REMOVED: (
        "A search for tools, which the target does not support, is removed; all tools are sent with their definitions."
    ),
    ChangeCode.NAMESPACE_FLATTENED: (
        "The functions of a namespace are sent one by one, with the namespace in their names; replies are mapped back."
    ),
    ChangeCode.TOOL_LOADED: (
        "A deferred tool is sent in full, because the history has a call of it that another model made."
    ),
    ChangeCode.TOOL_SCHEMA: "The JSON schema of a tool is changed to the subset that the target accepts.",
    ChangeCode.CACHE_MARK_REMOVED: (
        "The target accepts fewer cache marks, or none in this place; the oldest, or those, are removed."
    ),
    ChangeCode.CACHE_MARK_MOVED: "The target refuses a cache mark in this place; it is moved to the nearest other one.",
    ChangeCode.CACHE_MARK_SHORTENED: (
        "The target does not have the lifetime of the mark, or refuses it after a shorter one; it gets the default."
    ),
    ChangeCode.RECORD_LEFT_OUT: (
        "Records of the session that are not part of the conversation (settings, statistics, display) are left out."
    ),
    ChangeCode.BRANCH_LEFT_OUT: "Another branch of the session is left out; the view `branch` with its id reads it.",
    ChangeCode.CHILD_LEFT_OUT: "The conversation of a sub-agent is not part of the messages; it is in `children`.",
    ChangeCode.COMPACTED_AWAY: (
        "Messages that the agent replaced by a summary are left out; the view `full` reads them."
    ),
    ChangeCode.LINE_UNREADABLE: "A record of the session cannot be read; everything else was read.",
    ChangeCode.AGENT_TEXT_LEFT_OUT: (
        "A text that the agent added by itself (reminders, environment) is left out; the next agent adds its own."
    ),
    ChangeCode.INSTRUCTIONS_LEFT_OUT: (
        "Instructions of the conversation are left out; the program has its own, or the format stores them elsewhere."
    ),
    ChangeCode.ID_MADE: "An id that the format requires and the history does not have is derived from the history.",
    ChangeCode.TIME_MADE: (
        "A time that the format requires and the history does not have is derived from other times, or is the present."
    ),
    ChangeCode.MODEL_UNKNOWN: "The session does not name the model of a turn, so signatures in it cannot be used.",
    ChangeCode.ORIGINAL_NOT_RESTORED: (
        "A part of a session that came back from another agent was changed there: it is handed over as it is there."
    ),
    ChangeCode.FILE_MISSING: "A file that the session refers to is not there; what it held is left out.",
}

_SIGNED: Final = frozenset(
    {
        ChangeCode.SIGNED_BLOCK_UNUSABLE,
        ChangeCode.THINKING_DROPPED,
        ChangeCode.THINKING_AS_TEXT,
        ChangeCode.THINKING_UNSIGNED,
        ChangeCode.THINKING_BLANK,
        ChangeCode.REASONING_WITHHELD,
        ChangeCode.REASONING_REJECTED,
        ChangeCode.SIGNATURE_REMOVED,
    }
)
"""Changes whose opaque loss is a signature; that of all others is a native block or fields that segue does not know."""
_DROPPED: Final[dict[Loss, str]] = {Loss.CONTENT: "content", Loss.OPAQUE: "provider data", Loss.NONE: "nothing"}


OPAQUE_MEANING: Final = "a signature or other provider data: what a provider reads and no model does, such as a user id"
"""What the opaque losses of a report are, for people who see one for the first time."""


def describe_loss(code: ChangeCode, loss: Loss) -> str:
    """Return a word for what a change drops: content, signature, provider data or nothing."""
    return "signature" if loss == Loss.OPAQUE and code in _SIGNED else _DROPPED[loss]


@final
class Change(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One change, with the path of the changed value in the given conversation.

    A change of several messages has the path of the first one, and the index of the last one in `last`. `tokens` is how
    many tokens are lost, and `share` which part of the whole conversation that is; 0 if they were not counted.
    """

    code: ChangeCode
    path: Path
    loss: Loss
    detail: str = ""
    last: int | None = None
    tokens: int = 0
    share: float = 0.0

    @property
    def messages(self) -> int:
        """How many messages the change concerns; 0 if it is one of the system prompt, the tools or the options."""
        if self.path[0] != "messages" or len(self.path) == 1:
            return 0
        return 1 if self.last is None else self.last - int(self.path[1]) + 1

    def sentence(self) -> str:
        """Describe the change: path, sentence, and detail if there is one."""
        detail = f" ({self.detail})" if self.detail else ""
        return f"{render_path(self.path)}: {SENTENCES[self.code]}{detail}"

    def __str__(self) -> str:
        return self.sentence()


_SEVERITY: Final = (Loss.CONTENT, Loss.OPAQUE, Loss.NONE)


def weight_of(changes: Sequence[Change]) -> tuple[int, int, int, int, str]:
    """Return the sort key of the changes of one kind: the worst loss first, and the largest of equal ones."""
    tokens, messages = sum(change.tokens for change in changes), sum(change.messages for change in changes)
    return _SEVERITY.index(changes[0].loss), -tokens, -messages, -len(changes), changes[0].code


def describe_size(changes: Sequence[Change]) -> str:
    """Say how much changes lose, such as "2,491 messages, 182,748 tokens, 84%"; empty if it was not counted."""
    tokens, share = sum(change.tokens for change in changes), sum(change.share for change in changes)
    if not tokens:
        return ""
    places = counted(sum(change.messages for change in changes), "message")
    return f"{places}, {counted(tokens, 'token')}{f', {share:.0%}' if share else ''}"


_ROOTS: Final = {"extra": -3, "system_prompt": -2, "messages": -1, "tools": sys.maxsize - 1, "options": sys.maxsize}


def place_of(change: Change) -> int:
    """Return the sort key of a change: reports are in the order of the request."""
    path = change.path
    root = path[0]
    if root == "messages" and len(path) > 1:
        return path[1]  # pyright: ignore[reportReturnType] - an index; called for every change of a long report
    return _ROOTS[str(root)]


def _shifted(change: Change, count: int) -> Change:
    path = change.path
    if path[0] == "system_prompt" and count == 1:
        return replace(change, path=("messages", 0, "content", *path[1:]))
    if path[0] != "messages" or len(path) == 1:
        return change
    last = None if change.last is None else change.last + count
    return replace(change, path=("messages", int(path[1]) + count, *path[2:]), last=last)


@final
class Report(msgspec.Struct, frozen=True):
    """Every change between the given conversation and the projected one; empty, and false, if nothing changed."""

    changes: tuple[Change, ...] = ()

    def __len__(self) -> int:
        return len(self.changes)

    @property
    def losses(self) -> tuple[Change, ...]:
        """The changes that lose opaque data or content; all others are of form or place."""
        return tuple(change for change in self.changes if change.loss != Loss.NONE)

    @property
    def lossless(self) -> bool:
        """Whether no change loses opaque data or content."""
        return all(change.loss == Loss.NONE for change in self.changes)

    def shifted(self, count: int) -> Report:
        """Return the report with the paths of a list that has so many messages before those of the conversation."""
        return Report(tuple(_shifted(change, count) for change in self.changes)) if count else self

    def of(self, *codes: ChangeCode) -> tuple[Change, ...]:
        """Return the changes with these codes, in order."""
        return tuple(change for change in self.changes if change.code in codes)

    def kinds(self) -> list[tuple[tuple[Loss, ChangeCode], list[Change]]]:
        """Return the changes by what they drop and their code, the worst loss first."""
        found: dict[tuple[Loss, ChangeCode], list[Change]] = {}
        for change in self.changes:
            found.setdefault((change.loss, change.code), []).append(change)
        return sorted(found.items(), key=lambda kind: weight_of(kind[1]))

    def _has_opaque(self) -> bool:
        return any(change.loss == Loss.OPAQUE for change in self.changes)

    def summary(self) -> str:
        """Summarise the report: one line for each code that loses something, the worst loss first, with the first path.

        Changes that lose nothing are named at the end, by their codes.
        """
        if not self.changes:
            return "Nothing was changed."
        losses = self.losses
        count = counted(len(losses), "change drops", "changes drop")
        lines = [f"{count} content or provider data:" if losses else "Nothing is dropped."]
        for (loss, code), changes in self.kinds():
            if loss == Loss.NONE:
                continue
            dropped, first = describe_loss(code, loss), changes[0]
            size = f": {text}" if (text := describe_size(changes)) else ""
            detail = f" ({first.detail})" if first.detail and not first.tokens else ""
            lines.append(
                f"  {len(changes):>4} x {code.value} [{dropped} dropped{size}] {SENTENCES[code]}"
                f" First at {render_path(first.path)}{detail}."
            )
        lines += [f"  ({OPAQUE_MEANING})"] * self._has_opaque()
        forms = Counter(change.code.value for change in self.changes if change.loss == Loss.NONE)
        if forms:
            named = (f"{number} x {code}" if number > 1 else code for code, number in forms.items())
            lines.append(f"Changed without a loss: {', '.join(named)}.")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Show the report in a notebook: a row for each kind of change, the worst first, with all its places."""
        from html import escape  # few programs are notebooks

        def place(each: Change) -> str:
            return f"<code>{escape(render_path(each.path))}</code>{f' ({escape(each.detail)})' if each.detail else ''}"

        rows = [
            f"<tr><td>{len(changes)}</td><td>{describe_loss(code, loss)}</td><td><code>{code.value}</code></td>"
            f"<td>{'<br>'.join(map(place, changes))}</td><td>{escape(SENTENCES[code])}</td></tr>"
            for (loss, code), changes in self.kinds()
        ]
        head = "<tr><th>count</th><th>dropped</th><th>change</th><th>at</th><th>meaning</th></tr>"
        table = f"<table>{head}{''.join(rows)}</table>{f'<p>{OPAQUE_MEANING}</p>' * self._has_opaque()}"
        return table if rows else "<p>Nothing was changed.</p>"

    def to_json(self) -> bytes:
        """Write the report as JSON: a list of changes with code, path, loss, detail."""
        return encode_valid_json(self)

    @classmethod
    def from_json(cls, data: bytes) -> Report:
        """Read what `to_json` wrote."""
        return msgspec.json.decode(data, type=cls)
