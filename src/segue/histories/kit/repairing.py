"""What a program refuses in its own sessions, and how the stored records are repaired: data in, data out.

A fault is found in the conversation as it is read, so that only what would be sent is touched. It is repaired in the
stored records, at every place that holds the same id, signature or picture; records without a fault stay byte for
byte. `Anatomy` says how the records of one program hold calls, results, reasoning and pictures.

Facts:
- A stored fault makes every later request fail, also that for a compaction.  (threads of users of programs, 2026-11)
- Claude accepts a turn without its thinking, and refuses one with a signature that it did not make; OpenAI likewise for
  encrypted reasoning. Gemini needs a signature at calls of the current turn, and takes a placeholder.
                                                              (provider documentation; `segue.projection.policy`)
- A picture needs a type that the provider reads (PNG, JPEG, GIF, WebP), at most 5 MB and 8,000 pixels on a side at
  Claude, which has the smallest limits.                                  (Anthropic: vision, read 2026-11-18)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast, final

from segue.conversation.content import AnyContent
from segue.conversation.context import Context
from segue.conversation.media_sources import find_data_fault, is_base64
from segue.conversation.media_types import size_of_image, type_of_data
from segue.foundation.plurals import counted
from segue.histories.kit.anatomy import PLACEHOLDER, Anatomy, OpenCall
from segue.histories.kit.lines import Fields
from segue.histories.kit.originals import is_bound
from segue.histories.kit.stamps import make_id
from segue.histories.kit.writing import json_line
from segue.projection.report import Change, ChangeCode, Loss

FaultKind: TypeAlias = Literal["line", "call", "signature", "size", "image", "model"]
"""A broken line; a call without a result, or a result without a call; reasoning whose signature is refused; results
that are too long; a picture that is refused; a model that is not there any more."""
_PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_LARGEST_PICTURE: Final = 5 * 1024 * 1024
_LONGEST_SIDE: Final = 8000
_LONG: Final = 40
"""Characters of the shortest encrypted content; ids are shorter."""
_TRIES: Final = 200
"""How many places of a broken line are tried as the beginning of a record."""


@final
class Many(NamedTuple):
    """A node, and nodes that follow it."""

    nodes: tuple[dict[str, Any], ...]


Outcome: TypeAlias = "dict[str, Any] | Many | None"
"""A node as it was or changed, with others after it, or None to take it out."""


@final
@dataclass
class Faults:
    """What is at fault in a conversation."""

    open_calls: dict[str, str] = field(default_factory=dict[str, str])
    """Ids and names of calls without a result."""
    lone_results: set[str] = field(default_factory=set[str])
    signatures: set[str] = field(default_factory=set[str])
    pictures: dict[str, str] = field(default_factory=dict[str, str])
    """Data and what is wrong with it."""
    longest: int | None = None
    """Characters that a text of a result may have."""
    first: int | None = None
    """The first message that is changed."""

    def note(self, at: int) -> None:
        """Note that a message will be changed."""
        self.first = at if self.first is None else min(self.first, at)

    def __bool__(self) -> bool:
        return bool(
            self.open_calls or self.lone_results or self.signatures or self.pictures or self.longest is not None
        )


def find_faults(
    context: Context, anatomy: Anatomy, wanted: Iterable[FaultKind], reported: Iterable[FaultKind], *, model: str = ""
) -> Faults:
    """Find what is at fault in what a program would send.

    `wanted` are the kinds to look for. `reported` are kinds that a provider refused, or that the user names: of these
    all signatures and all pictures count, because nothing shows which one it is. `model` is the one that goes on: if it
    is of the program's own provider, signatures of others are refused.
    """
    wanted, reported = set(wanted), set(reported)
    asks_own = bool(model) and anatomy.own_models(model)
    faults = Faults()
    calls: dict[str, tuple[int, str]] = {}
    results: set[str] = set()
    for at, message in enumerate(context.messages):
        if message.role == "toolResult":
            results.add(message.tool_call_id)
            if message.tool_call_id not in calls and "call" in wanted:
                faults.lone_results.add(message.tool_call_id)
                faults.note(at)
        is_own = not asks_own or message.role != "assistant" or not message.model or anatomy.own_models(message.model)
        for piece in message.content:
            if piece.kind == "toolCall":
                calls[piece.id] = (at, piece.name)
            if "signature" in wanted and (signatures := _signatures_of(piece)):
                protocol = message.protocol if message.role == "assistant" else ""
                if "signature" in reported or not is_own or _is_malformed(signatures[0], protocol):
                    faults.signatures.update(signatures)
            if "image" in wanted and piece.kind == "image" and piece.data is not None:
                fault = find_picture_fault(piece.data, piece.mime_type)
                if fault is not None or "image" in reported:
                    faults.pictures[piece.data] = fault or "the provider refused it"
                    faults.note(at)
    if "call" in wanted:
        for each, (at, name) in calls.items():
            if each not in results:
                faults.open_calls[each] = name
                faults.note(at)
    return faults


def add_bound_signatures(context: Context, faults: Faults) -> None:
    """Add the signatures of reasoning that is valid only after the messages that it was made after, unchanged."""
    if faults.first is None:
        return
    for message in context.messages[faults.first :]:
        if message.role == "assistant" and is_bound(message):
            faults.signatures.update(each for piece in message.content for each in _signatures_of(piece))


def _signatures_of(piece: AnyContent) -> list[str]:
    """Return the signature of a piece; of one that is a JSON object also the texts in it, which a record may hold."""
    match piece.kind:
        case "thinking":
            signature = piece.thinking_signature
        case "toolCall":
            signature = piece.thought_signature
        case "text":
            signature = piece.text_signature
        case _:
            signature = None
    if signature is None:
        return []
    inner = _object(signature.encode("utf-8", "replace")) if signature.startswith("{") else None
    return [signature, *(each for each in (inner or {}).values() if isinstance(each, str) and len(each) >= _LONG)]


def _is_malformed(signature: str, protocol: str) -> bool:
    if protocol in {"anthropic-messages", "google-genai"} and signature != PLACEHOLDER:
        return not is_base64(signature) or not signature.strip()
    return not signature.strip()


def find_picture_fault(data: str, claimed: str | None) -> str | None:
    """Describe what a provider refuses in a picture; None if nothing is known."""
    if find_data_fault(data, "image") is not None:
        return "its data is not base64"
    found = type_of_data(data)
    if found not in _PICTURES:
        return "its data is not a picture that providers read"
    if claimed and claimed.lower() not in {found, "image/jpg" if found == "image/jpeg" else found}:
        return f"it is {found} and is named {claimed[:60]}"
    if len(data) > _LARGEST_PICTURE:
        return "it is larger than 5 MB"
    size = size_of_image(data)
    return "it has more than 8,000 pixels on a side" if size is not None and max(size) > _LONGEST_SIDE else None


@final
@dataclass
class Stored:
    """One record: its key (the number of its line, or its row), its bytes, and its fields; None for a broken line."""

    key: object
    raw: bytes
    fields: dict[str, Any] | None
    is_changed: bool = False

    def data(self) -> bytes:
        """Return the line: as it was, unless it was changed."""
        return json_line(self.fields) if self.is_changed else self.raw


class Repairer:
    """Repairs the records of one session; `changes` tells what was done."""

    def __init__(self, records: Sequence[Stored], anatomy: Anatomy) -> None:
        self.records: list[Stored] = list(records)
        self.changes: list[Change] = []
        self._anatomy = anatomy
        self._pending: list[OpenCall] = []
        self._moves: list[tuple[object, object]] = []
        self._done: set[tuple[str, str]] = set()

    def drop_broken_lines(self) -> None:
        """Take out lines that cannot be read, keep the records that are in them, and close the gap in the chain."""
        kept: list[Stored] = []
        gap = b""
        last: object = None
        known = {self._id(each) for each in self.records}
        for record in self.records:
            if record.fields is None:
                gap += record.raw
                saved = [] if record.raw.isspace() or not record.raw else salvage(record.raw, self._anatomy.is_record)
                kept += (Stored(record.key, b"", fields, is_changed=True) for fields in saved)
                known.update(self._id(each) for each in kept[len(kept) - len(saved) :])
                if not record.raw.isspace() and record.raw:
                    detail = f"{counted(len(record.raw), 'byte')} taken out"
                    detail += f"; {counted(len(saved), 'record')} in it kept" if saved else ""
                    self._note(ChangeCode.LINE_UNREADABLE, record.key, Loss.NONE if saved else Loss.CONTENT, detail)
                continue
            parent = self._parent(record)
            if gap and parent is not None and parent not in known and last is not None:
                kept.append(self._with_parent(record, last))
            else:
                kept.append(record)
            last = self._id(record) or last
            gap = b"" if parent is None or parent in known else gap
        self.records = kept

    def repair(self, faults: Faults) -> None:
        """Repair all faults of a conversation."""
        kept: list[Stored] = []
        group: object = None
        for record in self.records:
            here = None if record.fields is None else self._anatomy.group(record.fields)
            if self._pending and (here is None or here != group):
                self._insert_results(kept)
            group = here
            if record.fields is None:
                kept.append(record)
                continue
            outcome = self._rewrite(record.fields, record, faults)
            nodes = outcome.nodes if isinstance(outcome, Many) else () if outcome is None else (outcome,)
            if not nodes:
                self._relink(self._id(record), self._parent(record))
                continue
            first, *others = nodes
            kept.append(record if first is record.fields else Stored(record.key, record.raw, first, is_changed=True))
            for fields in others:
                self._add(kept, fields)
        if self._pending:
            self._insert_results(kept)
        self.records = kept
        self._relink_all()

    def append(self, fields: dict[str, Any], code: ChangeCode, detail: str) -> None:
        """Add a record at the end."""
        self.records.append(Stored(None, b"", fields, is_changed=True))
        self._note(code, None, Loss.NONE, detail)

    def note(self, code: ChangeCode, key: object, loss: Loss, detail: str) -> None:
        """Note a change that was made elsewhere."""
        self._note(code, key, loss, detail)

    # -- nodes -----------------------------------------------------------------------------------------------------

    def _rewrite(self, node: dict[str, Any], record: Stored, faults: Faults) -> Outcome:
        anatomy = self._anatomy
        made: dict[str, Any] = {}
        is_same, added = True, list[dict[str, Any]]()
        for key, value in node.items():
            new = self._rewrite_value(value, record, faults)
            if isinstance(new, Many):
                first, *others = new.nodes
                added += ({**node, key: other} for other in others)
                new = first
            if new is None and isinstance(value, dict):
                if key == anatomy.carrier:
                    return None
                is_same = False
                continue
            made[key] = new
            is_same = is_same and new is value
        changed = node if is_same else made
        if not is_same and anatomy.is_hollow(changed):
            return None
        outcome = self._judge(changed, record, faults)
        if outcome is not None and self._pending and anatomy.is_holder(node) and anatomy.group(node) is None:
            answers = tuple(anatomy.answer(outcome, call) for call in self._pending)
            self._pending = []
            outcome = Many((outcome, *answers))
        if not added or outcome is None:
            return outcome
        return Many((*(outcome.nodes if isinstance(outcome, Many) else (outcome,)), *added))

    def _rewrite_value(self, value: object, record: Stored, faults: Faults) -> object:
        if isinstance(value, dict):
            return self._rewrite(cast("dict[str, Any]", value), record, faults)
        if not isinstance(value, list):
            return value
        items = cast("list[object]", value)
        made: list[object] = []
        for item in items:
            new = self._rewrite_value(item, record, faults)
            if isinstance(new, Many):
                made += new.nodes
            elif new is not None or item is None:
                made.append(new)
        is_same = len(made) == len(items) and all(one is other for one, other in zip(items, made, strict=True))
        return cast("object", items) if is_same else made

    def _judge(self, node: dict[str, Any], record: Stored, faults: Faults) -> dict[str, Any] | None:
        anatomy = self._anatomy
        for name in anatomy.signatures & node.keys() if faults.signatures else ():
            if node[name] in faults.signatures:
                code = ChangeCode.SIGNATURE_REMOVED
                unsigned = anatomy.unsign(node, name)
                detail = "a signature was taken out" if unsigned is not None else "reasoning was taken out"
                self._once(code, record, str(node[name]), Loss.OPAQUE, detail)
                if unsigned is None:
                    return None
                node = unsigned
        if faults.pictures and (data := anatomy.picture(node)) in faults.pictures:
            reason = faults.pictures[data]
            self._once(ChangeCode.MEDIA_OMITTED, record, str(data), Loss.CONTENT, f"a picture was taken out: {reason}")
            return anatomy.note(node, f"[A picture was here; it was taken out because {reason}.]")
        if (answered := anatomy.result_id(node)) is not None:
            if answered in faults.lone_results:
                self._once(
                    ChangeCode.RESULT_ORPHANED, record, answered, Loss.CONTENT, f"result of {answered} taken out"
                )
                return None
            if faults.longest is not None:
                return self._shortened(node, record, faults.longest, answered)
        call = anatomy.call_id(node)
        if call is not None and call in faults.open_calls:
            self._once(ChangeCode.RESULT_MISSING, record, call, Loss.NONE, f"a result was added for {call}")
            closed = anatomy.close(node)
            if closed is not None:
                return closed
            self._pending.append(OpenCall(call, faults.open_calls[call]))
        return node

    def _shortened(self, node: dict[str, Any], record: Stored, longest: int, call: str) -> dict[str, Any]:
        removed = 0

        def cut(value: object) -> object:
            nonlocal removed
            if isinstance(value, str) and len(value) > longest:
                removed += len(value) - longest
                gone = f"\n[{len(value) - longest} characters of this result were taken out.]\n"
                return value[: longest // 2] + gone + value[-(longest - longest // 2) :]
            if isinstance(value, list):
                return [cut(each) for each in cast("list[object]", value)]
            if isinstance(value, dict):
                fields = cast("dict[str, object]", value)
                return (
                    fields
                    if self._anatomy.picture(fields) is not None
                    else {key: cut(each) for key, each in fields.items()}
                )
            return value

        made = cast("dict[str, Any]", cut(node))
        if not removed:
            return node
        self._once(ChangeCode.RESULT_SHORTENED, record, call, Loss.CONTENT, f"{removed} characters of {call} taken out")
        return made

    # -- records ---------------------------------------------------------------------------------------------------

    def _insert_results(self, kept: list[Stored]) -> None:
        for call in self._pending:
            holder = kept[-1].fields
            assert holder is not None
            self._add(kept, self._anatomy.answer(holder, call))
        self._pending = []

    def _add(self, kept: list[Stored], fields: dict[str, Any]) -> None:
        """Add a record after the last one, and hang what follows under it."""
        anatomy = self._anatomy
        before = kept[-1]
        if anatomy.id_key is not None and anatomy.parent_key is not None:
            parent = self._id(before)
            fresh = make_id("repair", str(parent), str(len(kept)))
            fresh = fresh if len(str(parent)) > 12 else fresh[:8]
            fields = {**fields, anatomy.id_key: fresh, anatomy.parent_key: parent}
            self._moves.append((parent, fresh))
        kept.append(Stored(None, b"", fields, is_changed=True))

    def _relink(self, gone: object, parent: object) -> None:
        if gone is not None:
            self._moves.append((gone, parent))

    def _relink_all(self) -> None:
        """Hang records under those that were inserted, or under the parent of those that were taken out."""
        added = {self._id(each) for each in self.records if each.key is None}
        for old, new in self._moves:
            for at, record in enumerate(self.records):
                is_added = self._id(record) in added
                # A record that was inserted stays under the one that it answers, unless that was taken out.
                if self._parent(record) == old and self._id(record) != new and (not is_added or new not in added):
                    self.records[at] = self._with_parent(record, new)
        self._moves.clear()

    def _with_parent(self, record: Stored, parent: object) -> Stored:
        assert record.fields is not None
        assert self._anatomy.parent_key is not None
        return Stored(record.key, record.raw, {**record.fields, self._anatomy.parent_key: parent}, is_changed=True)

    def _id(self, record: Stored) -> object:
        key = self._anatomy.id_key
        return None if key is None or record.fields is None else record.fields.get(key)

    def _parent(self, record: Stored) -> object:
        key = self._anatomy.parent_key
        return None if key is None or record.fields is None else record.fields.get(key)

    def _once(self, code: ChangeCode, record: Stored, what: str, loss: Loss, detail: str) -> None:
        if (code, what) not in self._done:
            self._done.add((code, what))
            self._note(code, record.key, loss, detail)

    def _note(self, code: ChangeCode, key: object, loss: Loss, detail: str) -> None:
        path = ("lines", key) if isinstance(key, int) else ("records", str(key)) if key is not None else ("records",)
        self.changes.append(Change(code=code, path=path, loss=loss, detail=detail))


def salvage(raw: bytes, is_record: Callable[[Fields], bool]) -> list[dict[str, Any]]:
    """Find whole records in a broken line: programs that write at the same time, or again after a kill, join lines."""
    text = raw.replace(b"\0", b"").decode("utf-8", "replace").strip().lstrip("\ufeff")
    decoder = json.JSONDecoder()
    found: list[dict[str, Any]] = []
    at, tries = text.find("{"), 0
    while 0 <= at < len(text) and tries < _TRIES:
        tries += 1
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at = text.find('{"', at + 1)
            continue
        if isinstance(value, dict) and is_record(cast("dict[str, Any]", value)):
            found.append(cast("dict[str, Any]", value))
            at = text.find("{", end)
        else:
            at = text.find('{"', at + 1)
    return found


def read_lines(data: bytes) -> list[Stored]:
    """Read a file of lines as records; a line that is not an object has no fields."""
    lines = data.split(b"\n")
    ended = [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    return [Stored(number, raw, _object(raw)) for number, raw in enumerate(ended, 1)]


def join_lines(records: Sequence[Stored]) -> bytes:
    """Write records as the lines of a file."""
    lines = [record.data() for record in records]
    return b"".join(line if line.endswith(b"\n") else line + b"\n" for line in lines[:-1]) + b"".join(lines[-1:])


def _object(raw: bytes) -> dict[str, Any] | None:
    try:
        value: object = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
