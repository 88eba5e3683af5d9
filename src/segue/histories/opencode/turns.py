"""Makes messages of the messages of opencode.

Answers of opencode that were interrupted after their reasoning: kept in the file, and not sent.

Facts (opencode 1.18.33, seen 2026-11-15; 1.18.18, read 2026-11-16):
- Signatures are in `metadata` of a part, under the name of the provider's package.
- A message that the program was killed in has neither `finish` nor `time.completed`.
- Text files are stored twice: as `file` part, which is not sent, and as synthetic text.
- The output of a tool whose `time.compacted` is set is sent as a note that it was removed.
- A call with an error whose `metadata.interrupted` is true is sent with the output so far, as if it had ended.

Facts (opencode 1.18.33, seen 2026-11-15; anomalyco/opencode 2026-08-19, read):
- An answer whose program is killed there has its reasoning and a text part with an empty text. The program sends the
  text as one space, which Anthropic refuses, as it refuses a turn that ends in reasoning.
- The program does not send an answer with the error `MessageAbortedError` that has only reasoning.
- The import keeps what is under `metadata` of a part; a name that no provider has is not sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from segue.conversation.content import (
    AssistantContent,
    FileContent,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultContent,
    UserContent,
)
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    StopReason,
    ToolResultMessage,
    Usage,
    UsageCost,
    UserMessage,
)
from segue.histories.kit.envelope import with_envelope
from segue.histories.kit.lines import integer_of, number_of, object_of, objects_of, text_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import SEGUE, find_origin
from segue.histories.kit.pieces import make_call, media_of, reasoning_item
from segue.histories.kit.stamps import milliseconds_of

StoredPart = dict[str, Any]

_HIDDEN: Final = "hidden"
"""The field of our own metadata with the blank texts of an answer that is not sent."""
_ERROR: Final = {"name": "MessageAbortedError", "data": {"message": "The answer was interrupted."}}
_INTERRUPTED_IDS: Final = frozenset({"id", "messageID", "sessionID"})
_NOT_SENT: Final = frozenset({"step-start", "step-finish", "snapshot", "patch", "reasoning"})


def hide_interrupted(info: StoredPart, parts: list[StoredPart]) -> tuple[StoredPart, list[StoredPart]] | None:
    """Return an answer in a form that is not sent; None if it has more than reasoning and blank texts."""
    if info.get("role") != "assistant" or "error" in info:
        return None
    blanks = [part for part in parts if _is_blank(part)]
    kept = [part for part in parts if not _is_blank(part)]
    reasoning = [at for at, part in enumerate(kept) if part.get("type") == "reasoning"]
    if not reasoning or any(text_of(part.get("type")) not in _NOT_SENT for part in kept):
        return None
    at = reasoning[-1]
    metadata = object_of(kept[at].get("metadata"))
    hidden = [{key: value for key, value in part.items() if key not in _INTERRUPTED_IDS} for part in blanks]
    own = {**object_of(metadata.get(SEGUE)), _HIDDEN: hidden}
    kept[at] = {**kept[at], "metadata": {**metadata, SEGUE: own}}
    return {**info, "error": _ERROR}, kept


def restore_interrupted(info: StoredPart, parts: list[StoredPart]) -> tuple[StoredPart, list[StoredPart]]:
    """Return an answer as it was before `hide_interrupted`; any other one is not changed."""
    restored: list[StoredPart] = []
    found = False
    for part in parts:
        metadata = object_of(part.get("metadata"))
        own = object_of(metadata.get(SEGUE))
        if _HIDDEN not in own:
            restored.append(part)
            continue
        found = True
        metadata = _without(metadata, SEGUE) | ({SEGUE: rest} if (rest := _without(own, _HIDDEN)) else {})
        plain = _without(part, "metadata")
        restored += ({**plain, "metadata": metadata} if metadata else plain, *objects_of(own[_HIDDEN]))
    return (_without(info, "error"), restored) if found else (info, parts)


def _is_blank(part: Mapping[str, Any]) -> bool:
    text = part.get("text")
    return part.get("type") == "text" and isinstance(text, str) and not text.strip()


def _without(fields: Mapping[str, Any], name: str) -> StoredPart:
    return {key: value for key, value in fields.items() if key != name}


NAME: Final = "opencode"
_IDS: Final = ("id", "sessionID", "messageID", "parentID")
"""Fields that a new session has to write anew: ids are unique in the database."""
QUESTION: Final = "What did we do so far?"
"""What the program sends in place of a compaction part."""
CLEARED: Final = "[Old tool result content cleared]"
"""What the program sends in place of an output that it removed to save tokens."""
_STOPS: Final[Mapping[str, StopReason]] = {
    "stop": StopReason.STOP,
    "length": StopReason.LENGTH,
    "tool-calls": StopReason.TOOL_USE,
    "error": StopReason.ERROR,
}


def time_of_info(info: Mapping[str, Any]) -> int | None:
    """Return the time when a message was made."""
    return milliseconds_of(object_of(info.get("time")).get("created"))


class MessageReader:
    """Makes messages of opencode's messages; the originals are kept with them."""

    def __init__(self, notes: Notes, *, whole: bool = False) -> None:
        self._notes = notes
        self._whole = whole
        self.cleared: set[str] = set()
        """The ids of calls whose output is not sent; `whole` says that it is read nevertheless."""
        self._noted: set[str] = set()
        self._at = 0

    def messages(self, entries: Sequence[dict[str, Any]]) -> list[Message]:
        """Return the messages of entries."""
        made: list[Message] = []
        for entry in entries:
            self._at += 1
            info, parts = restore_interrupted(object_of(entry.get("info")), objects_of(entry.get("parts")))
            envelope: dict[str, object] = {
                "info": without(info, _IDS),
                "parts": [without(part, _IDS) for part in parts],
            }
            if info.get("role") == "assistant":
                made += self._assistant(info, parts, envelope)
            elif info.get("role") == "user":
                made += self._user(info, parts, envelope)
            else:
                self._notes.unreadable(self._at, "the message has no role")
        return made

    def _record(self, part: dict[str, Any], kind: str | None = None) -> None:
        key = str(part.get("id") or id(part))
        if key not in self._noted:
            self._noted.add(key)
            name = kind or text_of(part.get("type")) or "unknown"
            self._notes.record(name, self._at, len(str(part)), part if self._notes.keeps else None)

    def _user(self, info: dict[str, Any], parts: list[dict[str, Any]], envelope: dict[str, object]) -> list[Message]:
        content: list[UserContent] = []
        for part in parts:
            match part.get("type"):
                case "text" if part.get("ignored") is True:
                    self._record(part, "ignored text")
                case "text" if isinstance(part.get("text"), str):
                    content.append(TextContent(text=part["text"]))
                case "file":
                    content += self._file(part)
                case "compaction":
                    content.append(TextContent(text=QUESTION))
                case "subtask":
                    content.append(TextContent(text="The following tool was executed by the user"))
                case _:
                    self._record(part)
        if not content:
            return []
        own = all(part.get("synthetic") is True for part in parts)
        message = UserMessage(content=tuple(content), timestamp=time_of_info(info))
        return [with_envelope(message, NAME, envelope, own=own)]

    def _file(self, part: dict[str, Any]) -> list[ImageContent | FileContent]:
        mime = text_of(part.get("mime"))
        if mime in {"text/plain", "application/x-directory"}:
            self._record(part, "file that is sent as text")
            return []
        media = media_of(mime, url=part.get("url"), name=part.get("filename"))
        if media is None:
            self._record(part, "file without an address")
            return []
        return [media]

    def _assistant(
        self, info: dict[str, Any], parts: list[dict[str, Any]], envelope: dict[str, object]
    ) -> list[Message]:
        provider, model = text_of(info.get("providerID")) or "", text_of(info.get("modelID")) or ""
        protocol = find_origin(model, provider).protocol
        content: list[AssistantContent] = []
        results: list[ToolResultMessage] = []
        for part in parts:
            kind, metadata = part.get("type"), object_of(part.get("metadata"))
            if kind == "text" and isinstance(part.get("text"), str):
                content.append(TextContent(text=part["text"], text_signature=_item_signature(metadata)))
            elif kind == "reasoning" and isinstance(part.get("text"), str):
                content.append(_thinking(part["text"], metadata))
            elif kind == "tool" and text_of(part.get("callID")):
                content.append(_call(part, metadata))
                results += self._result(part, info)
            else:
                self._record(part)
        if not content and not info.get("error"):
            return []
        error = object_of(info.get("error"))
        message = AssistantMessage(
            content=tuple(content),
            protocol=protocol,
            provider=provider,
            model=model,
            usage=_usage(info),
            stop_reason=_stop(info, error),
            error_message=text_of(object_of(error.get("data")).get("message")) or text_of(error.get("name")),
            timestamp=time_of_info(info),
        )
        first = with_envelope(message, NAME, envelope)
        rest = [with_envelope(result, NAME, {"result": True}) for result in results]
        return [first, *rest]

    def _result(self, part: dict[str, Any], info: dict[str, Any]) -> Iterator[ToolResultMessage]:
        state = object_of(part.get("state"))
        status = text_of(state.get("status"))
        if status not in {"completed", "error"}:
            # The program was killed while the tool ran; then there is no output yet.
            if state.get("output") or state.get("error"):
                self._record(part, "state of a call")
            return
        metadata = object_of(state.get("metadata"))
        text = state.get("output") if status == "completed" else state.get("error")
        if status == "error" and metadata.get("interrupted") is True and isinstance(metadata.get("output"), str):
            status, text = "completed", metadata["output"]
        files = [content for each in objects_of(state.get("attachments")) for content in self._file(each)]
        if status == "completed" and object_of(state.get("time")).get("compacted"):
            self.cleared.add(str(part["callID"]))
            if not self._whole:
                text, files = CLEARED, []
        content: list[ToolResultContent] = [TextContent(text=text)] if isinstance(text, str) and text else []
        content += files
        yield ToolResultMessage(
            tool_call_id=str(part["callID"]),
            tool_name=text_of(part.get("tool")) or "",
            content=tuple(content),
            is_error=status == "error",
            details=state.get("metadata"),
            timestamp=milliseconds_of(object_of(state.get("time")).get("end")) or time_of_info(info),
        )


def _signature(metadata: dict[str, Any], name: str) -> str | None:
    found = (text_of(object_of(fields).get(name)) for fields in metadata.values())
    return next((value for value in found if value is not None), None)


def _item_signature(metadata: dict[str, Any]) -> str | None:
    """Return the signature of a text or a call: that of Google, or the id of an item of OpenAI in segue's form."""
    if (item := _signature(metadata, "itemId")) is not None:
        return msgspec.json.encode({"id": item}).decode()
    return _signature(metadata, "thoughtSignature")


def _thinking(text: str, metadata: dict[str, Any]) -> ThinkingContent:
    if redacted := _signature(metadata, "redactedData"):
        return ThinkingContent(thinking="", thinking_signature=redacted, redacted=True)
    if encrypted := _signature(metadata, "reasoningEncryptedContent"):
        return reasoning_item(text, _signature(metadata, "itemId"), encrypted)
    signature = _signature(metadata, "signature") or _signature(metadata, "thoughtSignature")
    return ThinkingContent(thinking=text, thinking_signature=signature)


def _call(part: dict[str, Any], metadata: dict[str, Any]) -> ToolCall:
    arguments = object_of(part.get("state")).get("input")
    return make_call(part["callID"], part.get("tool"), arguments, signature=_item_signature(metadata))


def _stop(info: dict[str, Any], error: dict[str, Any]) -> StopReason:
    if error:
        return StopReason.ABORTED if error.get("name") == "MessageAbortedError" else StopReason.ERROR
    finish = text_of(info.get("finish"))
    if finish is None and not object_of(info.get("time")).get("completed"):
        return StopReason.ABORTED
    return _STOPS.get(finish or "", StopReason.STOP)


def _usage(info: dict[str, Any]) -> Usage | None:
    tokens = object_of(info.get("tokens"))
    if not tokens:
        return None
    cache, cost = object_of(tokens.get("cache")), number_of(info.get("cost"))
    counts = [integer_of(tokens.get(name)) for name in ("input", "output", "reasoning")]
    read_, write_ = integer_of(cache.get("read")), integer_of(cache.get("write"))
    return Usage(
        input=counts[0],
        output=counts[1] + counts[2],
        reasoning=counts[2],
        cache_read=read_,
        cache_write=write_,
        total_tokens=integer_of(tokens.get("total")) or sum(counts) + read_ + write_,
        cost=UsageCost(total=cost) if cost else None,
    )
