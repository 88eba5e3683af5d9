"""The record of Copilot Chat in VS Code.

Reads a chat of GitHub Copilot in VS Code: a JSON file, or the log of changes to one.

Facts (microsoft/vscode, microsoft/vscode-copilot-chat; read 2026-11-16):
- `requests` has a prompt and its answer each. What the model wrote, its calls and their results are in
  `result.metadata` (`toolCallRounds`, `toolCallResults`); `response` is what the screen shows, and all there is of an
  answer that was cancelled.
- A result has no error flag. Its values are texts, or trees with the texts in them.
- A request with `shouldBeRemovedOnSend` or `isHidden` was undone.
- Lines of the log are `{kind, k, v, i}`: 0 is the whole state, 1 sets what is at the path `k`, 2 appends to it, after
  it was cut to the length `i`, and 3 deletes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast
from urllib.parse import unquote, urlsplit

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent
from segue.conversation.context import Origin
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from segue.errors import LoadError
from segue.histories.kit.documents import (
    describe_document,
    finish_history,
    json_text,
    load_value,
    parse_object,
    refuse_branch,
)
from segue.histories.kit.envelope import with_envelope
from segue.histories.kit.format import Excerpt, Format, Place
from segue.histories.kit.history import History, Session
from segue.histories.kit.lines import decode_objects, object_of, objects_of, text_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import find_origin, set_origin
from segue.histories.kit.pieces import make_call, stop_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.unread import note_unread

NAME: Final = "vscode-copilot-chat"
PROVIDER: Final = "github-copilot"
KNOWN_RECORDS: Final = frozenset({"empty request"})
_RENDERED: Final = ("renderedUserMessage", "renderedGlobalContext", "codeBlocks", "summary", "summaries")
"""Fields of an answer that repeat the prompt and the answer."""
_SCREEN: Final = frozenset(
    {
        "mcpServersStarting",
        "progressMessage",
        "undoStop",
        "codeblockUri",
        "textEditGroup",
        "confirmation",
        "workspaceEdit",
    }
)
"""Kinds of what the screen shows that are not part of the answer."""


def read(source: Source, view: View) -> History:
    """Read one chat.

    Raises:
        LoadError: the source is not a chat of VS Code.
    """
    refuse_branch(view, "VS Code")
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    chat = _load(source, notes)
    given = chat.get("requests")
    if not isinstance(given, list):
        raise LoadError("no conversation found: the file has no `requests` of a chat of VS Code")
    messages: list[Message] = []
    for number, value in enumerate(cast("list[object]", given), 1):
        request = object_of(value)
        if request.get("shouldBeRemovedOnSend") or request.get("isHidden"):
            notes.record("request that was undone", number, 0, request if notes.keeps else None)
            continue
        since = notes.left_out
        made = list(_read_request(request))
        note_unread(_without_repeated(request) if request else {"value": value}, made, number, notes, since=since)
        shown = {"rounds": [_shown(each) for each in _rounds(request)]}
        note_unread(shown, [message.content for message in made], number, notes, since=since)
        for call_id in _lone_results(request):
            notes.record("result without its call", number, 0, call_id)
        if not made:
            notes.record("empty request", number, 0, request if notes.keeps else None)
        messages += made
    note_unread(
        without(chat, ("requests", "inputState", "pendingRequests", "responderUsername", "requesterUsername")),
        [text_of(chat.get("customTitle"))],
        0,
        notes,
        since=notes.left_out,
    )
    return finish_history(
        NAME,
        notes,
        messages,
        session_id=text_of(chat.get("sessionId")) or _exported_id(chat.get("requests")),
        title=text_of(chat.get("customTitle")),
        cwd=_folder(source),
        created=milliseconds_of(chat.get("creationDate")),
        updated=milliseconds_of(chat.get("lastMessageDate")),
    )


def _exported_id(requests: object) -> str | None:
    """Return the id of a chat that was exported, which only the results of its requests have."""
    results = (object_of(object_of(each.get("result")).get("metadata")) for each in objects_of(requests))
    return next((found for result in results if (found := text_of(result.get("sessionId")))), None)


def _folder(source: Source) -> str | None:
    """Return the folder of the project, which a file next to the chats names."""
    place, found, _ = source.name.rpartition("/chatSessions/")
    data = source.neighbours.read(f"{place}/workspace.json") if found else None
    address = text_of(parse_object(data).get("folder")) if data else None
    try:
        return unquote(urlsplit(address or "").path) or None
    except ValueError:  # it is not an address
        return address


# -- the log of changes ------------------------------------------------------------------------------------------------


def _load(source: Source, notes: Notes) -> dict[str, Any]:
    """Return the chat; for a log, after all changes."""
    if source.data is None or source.value is not None:
        return object_of(source.value)
    lines = list(decode_objects(source.data, notes)) if source.data.lstrip().startswith(b'{"kind"') else []
    if not lines:
        return object_of(load_value(source))
    state: list[object] = [{}]
    for line, fields in lines:
        if not _apply(state, fields):
            notes.unreadable(line.number, "a change of an unknown kind, of what is not there, or back to the beginning")
    return object_of(state[0])


def _requests(chat: object) -> Sequence[object]:
    given = object_of(chat).get("requests")
    return cast("list[object]", given) if isinstance(given, list) else ()


def _apply(state: list[object], fields: Mapping[str, Any]) -> bool:
    """Make one change; False if it cannot be made."""
    kind, given, value = fields.get("kind"), fields.get("k"), cast("object", fields.get("v"))
    if kind == 0 and isinstance(value, dict):
        if len(_requests(cast("object", value))) < len(_requests(state[0])):
            return False  # the beginning again, which would remove what follows it
        state[0] = cast("object", value)
        return True
    path = cast("list[object]", given) if isinstance(given, list) else []
    if not path or kind not in (1, 2, 3):
        return False
    holder: object = state
    for step in (0, *path[:-1]):
        holder = _at(holder, step)
    last = path[-1]
    target = _at(holder, last)
    if isinstance(holder, dict) and isinstance(last, str):
        named = cast("dict[str, object]", holder)
        if kind == 3:
            return named.pop(last, state) is not state
        if kind == 1:
            named[last] = value
            return "v" in fields
        target = named.setdefault(last, [])
    elif kind == 1 and target is not None and isinstance(last, int):
        cast("list[object]", holder)[last] = value
        return "v" in fields
    if kind != 2 or not isinstance(target, list) or not isinstance(value, list | None):
        return False
    items, length = cast("list[object]", target), fields.get("i")
    if isinstance(length, int):
        if length < 0:
            return False
        del items[length:]
    items += cast("list[object]", value or [])
    return "v" in fields or "i" in fields


def _at(holder: object, step: object) -> object:
    if isinstance(holder, dict):
        return cast("dict[object, object]", holder).get(step) if isinstance(step, str) else None
    items = cast("list[object]", holder) if isinstance(holder, list) else []
    return items[step] if type(step) is int and 0 <= step < len(items) else None


# -- requests ----------------------------------------------------------------------------------------------------------


def _without_repeated(request: dict[str, Any]) -> dict[str, Any]:
    """Return a request without what only repeats the prompt and the answer."""
    result = object_of(request.get("result"))
    metadata = object_of(result.get("metadata"))
    kept = without(request, ("response", "agent") if _rounds(request) else ("agent",))
    if message := object_of(request.get("message")):
        kept["message"] = message if text_of(message.get("text")) is None else without(message, ("parts",))
    if metadata:
        kept["result"] = {**result, "metadata": without(metadata, _RENDERED)}
    return kept


def _rounds(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    return objects_of(object_of(object_of(request.get("result")).get("metadata")).get("toolCallRounds"))


def _shown(each: Mapping[str, Any]) -> dict[str, object]:
    """Return what a round has next to its text and its calls: the thoughts, without what only the provider reads."""
    kept = without(each, ("response", "toolCalls", "summary", "statefulMarker"))
    thinking = object_of(each.get("thinking"))
    return {**kept, "thinking": without(thinking, ("encrypted",))} if thinking else kept


def _results(request: Mapping[str, Any]) -> dict[str, Any]:
    return object_of(object_of(object_of(request.get("result")).get("metadata")).get("toolCallResults"))


def _lone_results(request: Mapping[str, Any]) -> list[str]:
    calls = {text_of(call.get("id")) for each in _rounds(request) for call in objects_of(each.get("toolCalls"))}
    return [call_id for call_id in _results(request) if call_id not in calls] if calls else []


def _read_request(request: dict[str, Any]) -> Iterator[Message]:
    time = milliseconds_of(request.get("timestamp"))
    if prompt := text_of(object_of(request.get("message")).get("text")):
        message = UserMessage(content=(TextContent(text=prompt),), timestamp=time)
        yield with_envelope(message, NAME, {"requestId": request.get("requestId")})
    model = (text_of(request.get("modelId")) or "").rpartition("/")[2]
    origin = find_origin(model, PROVIDER)
    results = _results(request)
    rounds = _rounds(request)
    for each in rounds:
        pieces = list(_read_round(each))
        if pieces:
            yield _answer(pieces, origin, time, _unread_fields(each))
        for call in objects_of(each.get("toolCalls")):
            call_id = text_of(call.get("id")) or ""
            if call_id in results:
                text = "\n".join(_texts(object_of(results[call_id]).get("content"))) or json_text(results[call_id])
                yield ToolResultMessage(tool_call_id=call_id, content=(TextContent(text=text),), timestamp=time)
    if not rounds and (shown := list(_read_response(request.get("response")))):
        yield _answer(shown, origin, time, {"responseId": request.get("responseId")})


def _answer(
    pieces: Sequence[AssistantContent], origin: Origin, time: int | None, fields: Mapping[str, object]
) -> AssistantMessage:
    message = AssistantMessage(content=tuple(pieces), stop_reason=stop_of(None, pieces), timestamp=time)
    return with_envelope(set_origin(message, origin), NAME, fields)


def _unread_fields(each: Mapping[str, Any]) -> dict[str, object]:
    """Return the fields of a round that are not content."""
    calls = each.get("toolCalls")
    kept = without(each, ("response", "toolCalls"))
    if not isinstance(calls, list):
        return {**kept, "toolCalls": calls}
    return {**kept, "toolCalls": [without(call, ("id", "name", "arguments")) for call in objects_of(calls)]}  # pyright: ignore[reportUnknownArgumentType]


def _read_round(each: Mapping[str, Any]) -> Iterator[AssistantContent]:
    thinking = object_of(each.get("thinking"))
    if words := "".join(_texts(thinking.get("text"))):
        yield ThinkingContent(thinking=words)
    if text := text_of(each.get("response")):
        yield TextContent(text=text)
    for call in objects_of(each.get("toolCalls")):
        yield make_call(call.get("id"), call.get("name"), call.get("arguments"))


def _read_response(items: object) -> Iterator[AssistantContent]:
    """Read what the screen shows of an answer; calls are the sentences about them."""
    for item in objects_of(items):
        kind = text_of(item.get("kind"))
        if kind in _SCREEN:
            continue
        names = ("value", "content", "pastTenseMessage", "invocationMessage", "name", "inlineReference")
        words = next((found for name in names if (found := _texts(item.get(name)))), list[str]())
        if text := "".join(words):
            yield ThinkingContent(thinking=text) if kind == "thinking" else TextContent(text=text)


def _texts(value: object) -> list[str]:
    """Return the texts of a value: a text, a list, Markdown, or a tree of nodes with texts."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for item in cast("list[object]", value) for text in _texts(item)]
    fields = object_of(value)
    found = next((fields[name] for name in ("value", "text", "children", "node", "path") if fields.get(name)), None)
    return [] if found is None else _texts(found)


def describe(excerpt: Excerpt) -> Session | None:
    """Describe a chat for a list."""
    name = excerpt.name.rpartition("/")[2].partition(".")[0]
    return describe_document(excerpt, NAME, read, name)


FORMAT: Final = Format(
    name=NAME,
    known_records=KNOWN_RECORDS,
    read=read,
    describe=describe,
    samples=read_samples(__package__),
    title="Copilot Chat in VS Code",
    place=Place(
        folder=".config/Code/User",
        system_folders={
            "darwin": "Library/Application Support/Code/User",
            "win32": "AppData/Roaming/Code/User",
        },
        patterns=(
            "workspaceStorage/*/chatSessions/*.json",
            "workspaceStorage/*/chatSessions/*.jsonl",
            "globalStorage/emptyWindowChatSessions/*.json",
            "globalStorage/emptyWindowChatSessions/*.jsonl",
        ),
    ),
    reads_lines=False,
    source="microsoft/vscode, microsoft/vscode-copilot-chat",
    read_on="2026-11-16",
)
