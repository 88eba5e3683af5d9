"""Pass 6: replace tool call ids that the target refuses.

Facts:
- Alphabets and lengths differ: 40 characters at OpenAI chat, 64 at Responses, nine letters and digits at Mistral.
                                        (openai-python types; autogen #6377; fastllm #45; opencode #1680)
- Replacing illegal characters can make two ids equal (`a.b` and `a_b`); a hash of the whole id keeps them different.
                                        (litellm, pi-ai and ktsoator/or, run 2026-11)
- The new id must not depend on later messages, or later requests miss the cache.                (context-guru #24)
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from typing import Final, TypeAlias

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, ToolCall
from segue.conversation.messages import AssistantMessage, ToolResultMessage
from segue.errors import SettingsError
from segue.models.model import Model
from segue.models.rules import Rules
from segue.projection.report import Change, ChangeCode, Loss
from segue.projection.workspace.surrogates import clean_text, is_clean
from segue.projection.workspace.workspace import Workspace

NormalizeId: TypeAlias = Callable[[str, Model, AssistantMessage], str]

_ALPHANUMERIC: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
"""Characters of generated ids. Every provider accepts most of them."""

_HASHED_LENGTH: Final = 24

# Reading a member of an enum costs as much as creating a Change with it (CPython 3.11, measured 2026-11-15).
_CHANGED: Final = ChangeCode.ID_CHANGED
_NONE: Final = Loss.NONE


@lru_cache(maxsize=256)
def _legal_bytes(alphabet: str) -> bytes:
    return bytes(code for code in range(128) if re.fullmatch(f"[{alphabet}]", chr(code)))


def uses_alphabet(alphabet: str | None, text: str) -> bool:
    """Whether a text has no character outside an alphabet, and no half of a surrogate pair."""
    if alphabet is None:
        return is_clean(text)
    if text.isascii():
        # Deleting the legal characters is eight times faster than a regular expression (measured 2026-11-15).
        return not text.encode().translate(None, _legal_bytes(alphabet))
    return is_clean(text) and re.fullmatch(f"[{alphabet}]*", text) is not None


@lru_cache(maxsize=256)
def characters_of(alphabet: str | None) -> str:
    """Return the letters and digits of an alphabet."""
    return "".join(character for character in _ALPHANUMERIC if uses_alphabet(alphabet, character)) or _ALPHANUMERIC


@lru_cache(maxsize=256)
def _translation_table(alphabet: str | None) -> bytes:
    """Map each byte to a letter or digit of an alphabet."""
    characters = characters_of(alphabet).encode()
    return bytes(characters[code % len(characters)] for code in range(256))


def digest(text: str, length: int, alphabet: str | None) -> str:
    """Return a hash of the text, encoded in letters and digits of an alphabet."""
    # The fastest hash that every build of Python has (CPython 3.11, measured 2026-11-15).
    hashed = blake2b(text.encode("utf-8", "surrogatepass")).digest()[:length]
    encoded = hashed.translate(_translation_table(alphabet)).decode()
    return encoded if len(encoded) == length else encoded.ljust(length, encoded[0])


def assign_ids(workspace: Workspace, normalize: NormalizeId | None = None) -> None:
    """Assign every call a legal and unused id, in order of appearance; results get the id of their call."""
    if normalize is None and _can_keep_all(workspace):
        return
    assignment = _IdAssignment(workspace, normalize)
    for index, message in enumerate(workspace.messages):
        if message.role == "assistant":
            assignment.turn(index, message)


def _can_keep_all(workspace: Workspace) -> bool:
    """Check all ids at once: most of the time they are legal, new and different."""
    call_ids = workspace.scan.call_ids
    if not call_ids:
        return True
    rules = workspace.target.rules
    return (
        not workspace.scan.unfinished
        and rules.call_id_min <= min(map(len, call_ids))
        and (not rules.call_id_max or max(map(len, call_ids)) <= rules.call_id_max)
        and uses_alphabet(rules.call_id_alphabet, "".join(call_ids))
        and workspace.prefix_state.count_new_ids(call_ids)
    )


def _replace_all(workspace: Workspace, length: int) -> dict[str, str]:
    """Generate all ids at once, if the target refuses all given ones for their length and all are new; else none.

    This is the common case when the history of another provider is sent to a target with short ids.
    """
    call_ids, rules, prefix_state = workspace.scan.call_ids, workspace.target.rules, workspace.prefix_state
    lengths = set(map(len, call_ids))
    is_legal = any(rules.call_id_min <= size <= (rules.call_id_max or size) for size in lengths)
    if is_legal or workspace.scan.unfinished:
        return {}
    made = {given: digest(f"0:{given}", length, rules.call_id_alphabet) for given in call_ids}
    wire_ids = set(made.values())
    if len(wire_ids) < len(call_ids) or not prefix_state.are_new(wire_ids) or not prefix_state.count_new_ids(call_ids):
        return {}
    prefix_state.use_ids(wire_ids)
    return made


class _IdAssignment:
    """Assigns ids, turn by turn."""

    def __init__(self, workspace: Workspace, normalize: NormalizeId | None) -> None:
        self.workspace = workspace
        self.rules = workspace.target.rules
        self.normalize = normalize
        self.length = max(self.rules.call_id_min, min(_HASHED_LENGTH, self.rules.call_id_max or _HASHED_LENGTH))
        """The length of generated ids."""
        self.owners: dict[str, str] = {}
        """Wire id -> the given id that first got it. Used only with `normalize`, which may map two ids to one."""
        self.ready = _replace_all(workspace, self.length) if normalize is None else {}

    def turn(self, index: int, message: AssistantMessage) -> None:
        """Assign the ids of one turn and of its results."""
        workspace = self.workspace
        content: list[AssistantContent] = list(message.content)
        renamed: list[tuple[str, str]] = []
        batch: set[str] = set()
        place = workspace.places[index]
        is_as_given = place >= 0 and place not in workspace.blocks
        is_changed = False
        for position, piece in enumerate(content):
            if type(piece) is not ToolCall:
                continue
            given = piece.id
            wire_id = self.assign_id(given, message, batch)
            batch.add(wire_id)
            renamed.append((given, wire_id))
            if wire_id != given:
                is_changed = True
                block = (
                    ("messages", place, "content", position) if is_as_given else workspace.content_path(index, position)
                )
                path = (*block, "id")
                workspace.changes.append(Change(code=_CHANGED, path=path, loss=_NONE, detail=wire_id))
                content[position] = replace(piece, id=wire_id)
        if is_changed:
            workspace.put(index, replace(message, content=tuple(content)), added=0)
            self.rename_results(index + 1, renamed)

    def assign_id(self, given: str, message: AssistantMessage, batch: set[str]) -> str:
        """Keep an id that is legal and unused; otherwise generate one."""
        ready = self.ready.get(given)
        if ready is not None:
            return ready
        prefix_state, rules = self.workspace.prefix_state, self.rules
        before = prefix_state.count_id(given)
        if self.normalize is not None:
            return self.normalized(self.normalize, given, before, message, batch)
        is_free = not rules.has("repeated_call_ids") or not (before or prefix_state.is_made(given))
        if is_free and given not in batch and is_legal_id(given, rules):
            return given
        return self.generate(given, before, batch)

    def normalized(
        self, normalize: NormalizeId, given: str, before: int, message: AssistantMessage, batch: set[str]
    ) -> str:
        """Apply `normalize` to ids of other models; generate an id if two become equal."""
        if self.workspace.target.ownership.is_own(message):
            wanted, legal = given, is_legal_id(given, self.rules)
            is_taken = before > 0 or self.workspace.prefix_state.is_made(given)
        else:
            wanted = normalize(given, self.workspace.target.model, message)
            if not isinstance(wanted, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                message_text = f"normalize_tool_call_id({given!r}, ...) returned {wanted!r}; it has to return a string"
                raise SettingsError(message_text, key="normalize_tool_call_id")
            wanted = clean_text(wanted)
            legal = bool(wanted)
            is_taken = wanted in self.owners
        is_free = not self.rules.has("repeated_call_ids") or not is_taken
        if legal and is_free and wanted not in batch and self.owners.get(wanted, given) == given:
            self.owners[wanted] = given
            return wanted
        return self.generate(given, before, batch)

    def generate(self, given: str, before: int, batch: set[str]) -> str:
        """Generate an id from the given one and the number of equal ones before it."""
        prefix_state, alphabet = self.workspace.prefix_state, self.rules.call_id_alphabet
        seed = f"{before}:{given}"
        attempt = 0
        while True:
            candidate = digest(seed, self.length, alphabet)
            if candidate not in batch and candidate not in self.owners and not prefix_state.is_used(candidate):
                prefix_state.use_ids((candidate,))
                return candidate
            attempt += 1
            seed = f"{before}:{attempt}:{given}"

    def rename_results(self, start: int, renamed: list[tuple[str, str]]) -> None:
        """Rename the results, which directly follow the calls in call order (the last ones may be missing)."""
        workspace, messages = self.workspace, self.workspace.messages
        for index, (given, wire_id) in enumerate(renamed, start):
            if index >= len(messages):
                return
            message = messages[index]
            if type(message) is not ToolResultMessage or message.tool_call_id != given:
                return
            if wire_id != given:
                place = workspace.places[index]
                if place >= 0:  # a change of an inserted result is not reported
                    path = ("messages", place, "tool_call_id")
                    workspace.changes.append(Change(code=_CHANGED, path=path, loss=_NONE, detail=wire_id))
                messages[index] = replace(message, tool_call_id=wire_id)


def is_legal_id(call_id: str, rules: Rules) -> bool:
    """Whether the target accepts this id."""
    return (
        rules.call_id_min <= len(call_id)
        and (not rules.call_id_max or len(call_id) <= rules.call_id_max)
        and uses_alphabet(rules.call_id_alphabet, call_id)
    )
