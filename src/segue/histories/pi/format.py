"""The record of pi.

Recognises a pi session, and describes it for a list from its beginning and its end.

Writes a pi session.

Facts (pi 0.87.1, seen 2026-11-15):
- A file needs a header of the type `session` and a `cwd` that exists; the message format is that of pi-ai.
- The program closes open calls and makes ids legal; it sends a result without a call unchanged.
- The folder of a project is its path with `-` for slashes and colons, between `--`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from segue.conversation.messages import Message, Usage
from segue.histories.kit.envelope import find_envelope, find_title
from segue.histories.kit.format import Draft, Excerpt, Format, Output, Place
from segue.histories.kit.history import Parent, Session, WrittenFile
from segue.histories.kit.lines import first_objects, integer_of, number_of, object_of, objects_of, text_of, title_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.stamps import file_time_of, iso_of, make_id, milliseconds_of, time_of
from segue.histories.kit.writing import Clock, json_line
from segue.histories.pi.read import BRANCH_SUMMARY, KNOWN_RECORDS, NAME, SUMMARY, SUMMARY_ENDS, read
from segue.histories.pi.repairing import ANATOMY
from segue.models.model import Model
from segue.projection.report import ChangeCode, Loss


def describe(excerpt: Excerpt) -> Session | None:
    """Describe a session; None for a file without a header."""
    lines = [*first_objects(excerpt.head, 400), *first_objects(excerpt.tail, 400)]
    header = next((line for line in lines if line.get("type") == "session"), None)
    if header is None:
        return None
    messages = [object_of(line.get("message")) for line in lines if line.get("type") == "message"]
    visible = [message for message in messages if text_of(message.get("role")) in {"user", "assistant", "toolResult"}]
    times = [time for line in lines if (time := milliseconds_of(line.get("timestamp"))) is not None]
    names = [text_of(line.get("name")) for line in lines if line.get("type") == "session_info"]
    models = (text_of(message.get("model")) for message in messages)
    usages = [object_of(message.get("usage")) for message in messages]
    costs = [object_of(usage.get("cost")).get("total") for usage in usages]
    parent = text_of(header.get("parentSession"))
    return Session(
        format=NAME,
        id=text_of(header.get("id")) or excerpt.name.rpartition("_")[2].removesuffix(".jsonl"),
        path=excerpt.path,
        title=next((name for name in reversed(names) if name), None) or _title(messages),
        cwd=text_of(header.get("cwd")),
        created=min(times, default=None),
        updated=max(times, default=excerpt.modified),
        models=tuple(dict.fromkeys(model for model in models if model)),
        messages=len(visible) if excerpt.whole else None,
        tokens=sum(integer_of(usage.get("totalTokens")) for usage in usages) if excerpt.whole else None,
        cost=sum(number_of(cost) or 0 for cost in costs) if excerpt.whole else None,
        size=excerpt.size,
        parent=None
        if parent is None
        else Parent(id=parent.rpartition("_")[2].removesuffix(".jsonl"), kind="fork", path=parent),
    )


def _title(messages: list[dict[str, object]]) -> str | None:
    for message in messages:
        if message.get("role") != "user":
            continue
        content = message.get("content")
        texts = [content] if isinstance(content, str) else [piece.get("text") for piece in objects_of(content)]
        for text in texts:
            if (title := text_of(text)) is not None:
                return title_of(title)
    return None


_API: Final[Mapping[str, str]] = {
    "openai-chat": "openai-completions",
    "google-genai": "google-generative-ai",
    "bedrock-converse": "bedrock-converse-stream",
    "mistral-chat": "mistral-conversations",
}
"""Names of protocols in the file, where they differ from segue's."""
_NO_COST: Final = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}
_ENTRY_KINDS: Final = frozenset({"compaction", "branch_summary", "custom_message"})


def write(draft: Draft) -> Output:
    """Write one session: a chain of entries."""
    clock = Clock(draft)
    header = {
        "type": "session",
        "version": 3,
        "id": draft.id,
        "timestamp": iso_of(draft.started),
        "cwd": draft.cwd or "/",
    }
    lines: list[dict[str, Any]] = [header]
    last: str | None = None
    for at, message in enumerate((*draft.messages, None)):
        if draft.cut is not None and draft.cut.at == at:
            # The entries before it are kept in the file; as it names itself, none of them is sent.
            entry_id = make_id(draft.id, "compaction")[:8]
            fields = {"summary": draft.cut.text, "firstKeptEntryId": entry_id, "tokensBefore": draft.cut.tokens}
            entry = {"type": "compaction", "id": entry_id, "parentId": last, "timestamp": iso_of(clock.at(None))}
            lines.append({**entry, **fields})
            last = entry_id
        if message is None:
            break
        envelope = find_envelope(message, NAME) or {}
        entry_id = text_of(envelope.get("id")) or make_id(draft.id, str(at))[:8]
        stamp = text_of(envelope.get("timestamp")) or iso_of(clock.at(time_of(message)))
        fields = {key: value for key, value in envelope.items() if key != "bash"}
        if envelope.get("type") in _ENTRY_KINDS:
            fields |= _entry_fields(message, envelope)
        else:
            fields["message"] = _message(draft, message, at, envelope)
            if message.role == "user" and message.content and fields["message"].get("content") == []:
                continue  # nothing of it can be stored, and no provider takes an empty message
        lines.append({"type": "message", **fields, "id": entry_id, "parentId": last, "timestamp": stamp})
        last = entry_id
    title, first = draft.history.title, find_title(draft.messages)
    if title and (first is None or title_of(first) != title):
        info = {"type": "session_info", "id": make_id(draft.id, "title")[:8], "parentId": last}
        lines.append({**info, "timestamp": lines[-1]["timestamp"], "name": title})
    folder = (draft.cwd or "/").removeprefix("/").translate(str.maketrans("/\\:", "---"))
    time = f"{file_time_of(draft.started)}-{draft.started % 1000:03d}Z"
    name = f"sessions/--{folder}--/{time}_{draft.id}.jsonl"
    data = b"".join(json_line(line) for line in lines)
    return Output((WrittenFile(name=name, data=data),), ("pi", "--session", draft.id), ("pi", "--session", "{file}"))


def _entry_fields(message: Message, envelope: Mapping[str, object]) -> dict[str, Any]:
    """Write a summary or a message of an extension as the entry that it was read from."""
    text = "".join(content.text for content in message.content if content.kind == "text")
    if envelope.get("type") == "custom_message":
        return {"content": [_piece(content) for content in msgspec.to_builtins(message.content)]}
    ends = SUMMARY_ENDS[SUMMARY if envelope.get("type") == "compaction" else BRANCH_SUMMARY]
    fields: dict[str, Any] = {"summary": text.partition("<summary>\n")[2].removesuffix(ends)}
    if envelope.get("type") == "compaction":
        # The entries before it are not written.
        fields["firstKeptEntryId"] = envelope.get("id")
    return fields


def _message(draft: Draft, message: Message, at: int, envelope: Mapping[str, object]) -> dict[str, Any]:
    bash = envelope.get("bash")
    if isinstance(bash, Mapping):
        return {"role": "bashExecution", **cast("Mapping[str, Any]", bash)}
    fields = cast("dict[str, Any]", msgspec.to_builtins(message))
    extra = cast("dict[str, Any]", fields.pop("extra", None) or {})
    content = [_piece(piece) for piece in fields.pop("content")]
    lost = [piece for piece in content if piece["type"] in {"file", "native"}]
    if lost:
        draft.notes.add(ChangeCode.MEDIA_OMITTED, ("messages", at), Loss.CONTENT, "pi stores texts and images only")
        content = [piece for piece in content if piece not in lost]
    made: dict[str, Any] = {"role": message.role, "content": content, **fields, **extra.get("stored", {})}
    made.pop("cacheMark", None)
    if message.role == "toolResult":
        made.setdefault("toolName", message.tool_name)
        made.setdefault("isError", message.is_error)
    if message.role == "assistant":
        protocol = made.pop("protocol", "")
        made["api"] = _API.get(protocol, protocol) or draft.model.protocol
        made.setdefault("provider", draft.model.provider)
        made.setdefault("model", draft.model.id)
        made["usage"] = _usage(message.usage, made.get("usage"))
        made["stopReason"] = str(message.stop_reason)
    if "timestamp" not in made:
        made["timestamp"] = time_of(message) or draft.started
    return made


def _piece(piece: dict[str, Any]) -> dict[str, Any]:
    extra = cast("dict[str, Any]", piece.get("extra") or {})
    kept = {key: value for key, value in piece.items() if key not in {"extra", "cacheMark", "phase"}}
    return {**kept, **extra.get("stored", {})}


def _usage(usage: Usage | None, written: object) -> dict[str, Any]:
    made = cast("dict[str, Any]", written) if isinstance(written, dict) else {}
    extra = cast("dict[str, Any]", made.pop("extra", None) or {})
    given = usage or Usage()
    whole = {"input": given.input, "output": given.output, "cacheRead": given.cache_read}
    whole |= {"cacheWrite": given.cache_write, "totalTokens": given.total_tokens, "cost": _NO_COST}
    cost = cast("dict[str, Any]", made.get("cost") or {})
    return {**whole, **made, "cost": {**_NO_COST, **cost}, **extra.get("stored", {})}


_OPENCLAW: Final = "agents/*/sessions/*.jsonl"
"""Where OpenClaw stores sessions, below `~/.openclaw` or the folder that its variable names (OpenClaw documentation:
CLI, sessions and transcripts, 2026-11-17)."""

FORMAT: Final = Format(
    name=NAME,
    known_records=KNOWN_RECORDS,
    read=read,
    describe=describe,
    write=write,
    samples=read_samples(__package__),
    anatomy=ANATOMY,
    title="pi",
    compacts=True,
    place=Place(
        folder=".pi/agent",
        variables=("PI_CODING_AGENT_DIR",),
        patterns=("sessions/*/*.jsonl",),
        projects=(f".openclaw/{_OPENCLAW}",),
        others=(Place(folder=".openclaw", variables=("OPENCLAW_STATE_DIR",), patterns=(_OPENCLAW,)),),
    ),
    example=Model("claude-sonnet-4-5", "anthropic", "anthropic-messages", reasoning=True, max_tokens=8000),
    source="pi 0.87.1, run against a scripted model; its session-format page",
    read_on="2026-11-15",
)
