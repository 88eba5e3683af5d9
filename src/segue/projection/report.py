"""What projection did, as data: one `Change` for each thing, in one `Report`.

Paths are in the coordinates of what was given, never of what came out, so that a reader can look the place up in the
stored conversation. An insertion carries the path of the message it follows, `("messages",)` when it comes first.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import Final, final

import msgspec

from segue.errors import Path, render_path


class Loss(StrEnum):
    """What a change costs: nothing (spelling, order), data only its maker can read, or something a model would read."""

    NONE = "none"
    OPAQUE = "opaque"
    CONTENT = "content"


class ChangeCode(StrEnum):
    """Every kind of change there is. The sentence of each stands in `SENTENCES`."""

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
    MEDIA_OMITTED = "media_omitted"
    MEDIA_FLATTENED = "media_flattened"
    MEDIA_TOO_LARGE = "media_too_large"
    MEDIA_EVICTED = "media_evicted"
    MEDIA_MOVED = "media_moved"
    MEDIA_RESOLVED = "media_resolved"
    MEDIA_UNREACHABLE = "media_unreachable"
    MEDIA_TYPE_NAMED = "media_type_named"
    FILE_AS_TEXT = "file_as_text"
    FILE_AS_IMAGE = "file_as_image"
    # reasoning
    THINKING_DROPPED = "thinking_dropped"
    THINKING_AS_TEXT = "thinking_as_text"
    THINKING_UNSIGNED = "thinking_unsigned"
    THINKING_BLANK = "thinking_blank"
    SIGNATURE_REMOVED = "signature_removed"
    SIGNATURE_PLACEHOLDER = "signature_placeholder"
    EXTRA_REMOVED = "extra_removed"
    PREFIX_REMOVED = "prefix_removed"
    CALL_MOVED = "call_moved"
    # ids and names
    ID_CHANGED = "id_changed"
    NAME_CHANGED = "name_changed"
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
    # settings
    OPTION_REMOVED = "option_removed"
    OPTION_CLAMPED = "option_clamped"
    THINKING_LEVEL = "thinking_level"
    TOOL_REMOVED = "tool_removed"
    TOOL_ADDED = "tool_added"
    TOOL_SCHEMA = "tool_schema"
    CACHE_MARK_REMOVED = "cache_mark_removed"


SENTENCES: Final[dict[ChangeCode, str]] = {
    ChangeCode.UNFINISHED_TURN: "A turn that ended in an error or was aborted is left out.",
    ChangeCode.UNFINISHED_RESULT: "The result of a call in an unfinished turn is left out with it.",
    ChangeCode.SURROGATE_REPLACED: "Half a surrogate pair, which no wire can carry, became U+FFFD.",
    ChangeCode.SIGNED_BLOCK_UNUSABLE: "A signed block holds half a surrogate pair: it cannot be sent as it was signed.",
    ChangeCode.RESULT_MISSING: "A call had no result; an error result stands in for it.",
    ChangeCode.RESULT_MOVED: "A result moved up to its call, or into the order of the calls.",
    ChangeCode.RESULT_DUPLICATE: "A call has one result; a further one is left out.",
    ChangeCode.RESULT_ORPHANED: "A result without a call is left out.",
    ChangeCode.RESULT_AS_TEXT: "A result became text, because its call is not there or the target has no tools.",
    ChangeCode.ARGUMENTS_UNPARSED: "Tool arguments that are no JSON object are sent as what could be read of them.",
    ChangeCode.NATIVE_REPLACED: "A block that only its own protocol knows became its fallback.",
    ChangeCode.NATIVE_DROPPED: "A block that only its own protocol knows, and that has no fallback, is left out.",
    ChangeCode.MEDIA_OMITTED: "The model cannot read this kind of media; a placeholder says so.",
    ChangeCode.MEDIA_FLATTENED: "The wire cannot carry this kind of media; a short text names it.",
    ChangeCode.MEDIA_TOO_LARGE: "The target refuses media of this size; a placeholder says so.",
    ChangeCode.MEDIA_EVICTED: "The target takes fewer images or files than the conversation has; the oldest gave way.",
    ChangeCode.MEDIA_MOVED: "Media moved to a user turn, because the target does not take it where it stood.",
    ChangeCode.MEDIA_RESOLVED: "A URL or file id was replaced by what the caller supplied for it.",
    ChangeCode.MEDIA_UNREACHABLE: "The target cannot fetch this URL or file id and nothing was supplied for it.",
    ChangeCode.MEDIA_TYPE_NAMED: "The type of the media, which was not given, was read off its first bytes.",
    ChangeCode.FILE_AS_TEXT: "A text file the target cannot take as a file is sent as text.",
    ChangeCode.FILE_AS_IMAGE: "A file that is an image is sent as an image.",
    ChangeCode.THINKING_DROPPED: "Thinking that the target may not or cannot be shown is left out.",
    ChangeCode.THINKING_AS_TEXT: "Another model's thinking is sent as plain text.",
    ChangeCode.THINKING_UNSIGNED: "Another model's thinking is sent in the target's channel, without its signature.",
    ChangeCode.THINKING_BLANK: "Thinking with neither words nor a usable signature is left out.",
    ChangeCode.SIGNATURE_REMOVED: "A signature that only another model can read is left out.",
    ChangeCode.SIGNATURE_PLACEHOLDER: "The documented placeholder stands where the target demands a signature.",
    ChangeCode.EXTRA_REMOVED: "What another provider's wire said beyond segue's words is left out.",
    ChangeCode.PREFIX_REMOVED: "The target has no field that asks it to continue a message; the flag is removed.",
    ChangeCode.CALL_MOVED: "Calls moved behind the words of their turn, because the target takes nothing after them.",
    ChangeCode.ID_CHANGED: "An id that the target refuses, or that is taken, was replaced in call and result.",
    ChangeCode.NAME_CHANGED: "A tool name that the target refuses was replaced everywhere; replies are mapped back.",
    ChangeCode.CALL_AS_TEXT: "A tool call became text, because the target has no tools.",
    ChangeCode.ERROR_AS_TEXT: "The wire cannot mark a result as an error; its text says so.",
    ChangeCode.SYSTEM_AS_USER: "Instructions became a user's text, because the target has no place for them there.",
    ChangeCode.SYSTEM_AS_PROMPT: "Instructions before the first turn became the system prompt.",
    ChangeCode.TEXT_BLANK: "A text without words, which the target refuses, is left out.",
    ChangeCode.TURN_EMPTY: "A turn with nothing left to say is left out.",
    ChangeCode.TURN_FILLED: "A short text was added to a turn that the target would refuse without it.",
    ChangeCode.TURN_MERGED: "Neighbouring turns of one role became one, because the target wants them to alternate.",
    ChangeCode.TURN_INSERTED: "A short turn was inserted, because the target's order of turns demands it.",
    ChangeCode.RESULT_FILLED: "An empty result, which the target refuses, got a short text.",
    ChangeCode.FINAL_SPACE: "White space at the end of the last turn, which the target refuses, is left out.",
    ChangeCode.OPTION_REMOVED: "An option that the target has no word for or refuses is left out.",
    ChangeCode.OPTION_CLAMPED: "An option was brought into the target's range.",
    ChangeCode.THINKING_LEVEL: "The model does not have this thinking level; the nearest one is asked for.",
    ChangeCode.TOOL_REMOVED: "A tool that the target cannot run or be told of is left out.",
    ChangeCode.TOOL_ADDED: "A tool was declared, because the target wants to know every tool of the history.",
    ChangeCode.TOOL_SCHEMA: "A tool's schema was put into the target's dialect.",
    ChangeCode.CACHE_MARK_REMOVED: "The target takes fewer cache marks; the oldest gave way.",
}


@final
class Change(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One thing that projection did, at one place of what it was given."""

    code: ChangeCode
    path: Path
    loss: Loss
    detail: str = ""

    def sentence(self) -> str:
        """Say it for people: where, what, and the particulars if there are any."""
        particulars = f" ({self.detail})" if self.detail else ""
        return f"{render_path(self.path)}: {SENTENCES[self.code]}{particulars}"


@final
class Report(msgspec.Struct, frozen=True):
    """Every change between what was given and what is sent; empty, and false, when nothing was changed."""

    changes: tuple[Change, ...] = ()

    def __len__(self) -> int:
        return len(self.changes)

    @property
    def lossless(self) -> bool:
        """Whether the target is told everything the conversation holds."""
        return all(change.loss == Loss.NONE for change in self.changes)

    def of(self, *codes: ChangeCode) -> tuple[Change, ...]:
        """Give the changes of these kinds, in order."""
        return tuple(change for change in self.changes if change.code in codes)

    def summary(self) -> str:
        """Say it in a few lines: one for each kind of change, the costliest first, with the first place it was made."""
        if not self.changes:
            return "Nothing was changed."
        counts = Counter((change.loss, change.code) for change in self.changes)
        first = {(change.loss, change.code): change for change in reversed(self.changes)}
        severity = (Loss.CONTENT, Loss.OPAQUE, Loss.NONE)
        count = "1 change" if len(self.changes) == 1 else f"{len(self.changes)} changes"
        lines = [f"{count}, {'nothing' if self.lossless else 'something'} lost:"]
        for key in sorted(counts, key=lambda key: (severity.index(key[0]), -counts[key], key[1])):
            loss, code = key
            place = render_path(first[key].path)
            lines.append(f"  {counts[key]:>4} x {code.value} [{loss.value}] {SENTENCES[code]} First at {place}.")
        return "\n".join(lines)

    def to_json(self) -> bytes:
        """Write the report as JSON: a list of changes with code, path, loss, detail."""
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, data: bytes) -> Report:
        """Read what `to_json` wrote."""
        return msgspec.json.decode(data, type=cls)
