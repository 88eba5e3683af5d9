"""The record of exports of Open WebUI.

Answers in an export of Open WebUI: items, or HTML in the text; see `read` for the facts.

Reads an export of Open WebUI: a list of chats, or one chat.

Facts (open-webui 0.10.2, utils/middleware.py and models/chats.py, read 2026-11-15):
- `chat.history.messages` is a tree by `parentId`; `currentId` is the end of the conversation that is shown. Several
  answers to one question are siblings.
- `output` of an answer has items like those of the Responses API: reasoning, function_call, function_call_output,
  message. Signatures are in `reasoning_details`.
- Older exports have thinking and calls as `<details type="reasoning">` and `<details type="tool_calls">` in `content`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import unescape
from typing import Any, Final

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent, ToolResultContent, UserContent
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from segue.errors import LoadError
from segue.histories.kit.documents import (
    OTHER,
    choose,
    conversations_of,
    finish_history,
    json_text,
    load_value,
    parse_text,
)
from segue.histories.kit.envelope import with_envelope
from segue.histories.kit.format import Format
from segue.histories.kit.history import History, Session
from segue.histories.kit.lines import object_of, objects_of, text_of, title_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.pieces import image_of, make_call, media_of, reasoning_item, usage_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.trees import Tree
from segue.histories.kit.unread import note_unread
from segue.projection.report import ChangeCode, Loss

NAME: Final = "open-webui"
_DETAILS: Final = re.compile(r"<details\b([^>]*)>(.*?)</details>\n?", re.DOTALL)
_SUMMARY: Final = re.compile(r"\s*<summary>.*?</summary>\s*", re.DOTALL)
_ATTRIBUTE: Final = re.compile(r'([\w-]+)="([^"]*)"')

AnswerPart = AssistantContent | ToolResultMessage


def read_answer(entry: dict[str, Any], time: int | None, notes: Notes, number: int) -> list[Message]:
    """Return the messages of one answer: each result of a tool ends a turn."""
    output = objects_of(entry.get("output"))
    parts = list(_items(output, notes, number)) if output else list(_html(text_of(entry.get("content")) or ""))
    shown = text_of(entry.get("content"))
    if output and shown and not any(isinstance(part, TextContent) for part in parts):
        parts += _html(shown)
    error = entry.get("error")
    made: list[Message] = []
    content: list[AssistantContent] = []
    for part in parts:
        if isinstance(part, ToolResultMessage):
            if content:
                made.append(_turn(entry, content, time))
                content = []
            made.append(part)
        else:
            content.append(part)
    if not parts and not error:
        notes.record("answer without content", number, len(json_text(entry)), entry if notes.keeps else None)
    if content or error or not made:
        made.append(_turn(entry, content, time, last=True, error=error))
    return made


def _turn(
    entry: dict[str, Any],
    content: Sequence[AssistantContent],
    time: int | None,
    *,
    last: bool = False,
    error: object = None,
) -> AssistantMessage:
    stop = StopReason.TOOL_USE if any(each.kind == "toolCall" for each in content) else StopReason.STOP
    if error:
        stop = StopReason.ERROR
    elif last and entry.get("done") is False:
        stop = StopReason.ABORTED
    # The chat is sent over openai-chat, through whatever server the user has connected.
    return AssistantMessage(
        content=tuple(content),
        protocol="openai-chat",
        provider="",
        model=text_of(entry.get("model")) or "",
        usage=_usage(object_of(entry.get("usage"))) if last else None,
        stop_reason=stop,
        error_message=(text_of(object_of(error).get("content")) or json_text(error)) if error else None,
        timestamp=time,
    )


def _usage(usage: dict[str, Any]) -> Usage | None:
    return usage_of(
        usage.get("prompt_tokens") or usage.get("input_tokens"),
        usage.get("completion_tokens") or usage.get("output_tokens"),
        cache_read=object_of(usage.get("prompt_tokens_details")).get("cached_tokens"),
    )


# -- items ------------------------------------------------------------------------------------------------------------


def _items(items: Sequence[dict[str, Any]], notes: Notes, number: int) -> Iterator[AnswerPart]:
    for item in items:
        match item.get("type"):
            case "reasoning":
                yield _reasoning(item)
            case "function_call":
                yield make_call(item.get("call_id") or item.get("id"), item.get("name"), item.get("arguments"))
            case "function_call_output":
                content = tuple(_result_pieces(item.get("output")))
                status = text_of(item.get("status"))
                yield _result(text_of(item.get("call_id")) or "", content, failed=status in {"failed", "error"})
            case "message":
                for piece in objects_of(item.get("content")):
                    if isinstance(piece.get("text"), str):
                        yield TextContent(text=piece["text"])
            case kind:
                notes.record(f"item {kind}", number, len(json_text(item)), item if notes.keeps else None)


def _reasoning(item: dict[str, Any]) -> ThinkingContent:
    pieces = [*objects_of(item.get("summary")), *objects_of(item.get("content"))]
    text = "\n\n".join(text for piece in pieces if (text := text_of(piece.get("text"))))
    for detail in objects_of(item.get("reasoning_details")):
        if signature := text_of(detail.get("signature")):
            return ThinkingContent(thinking=text, thinking_signature=signature)
        if data := text_of(detail.get("data")):
            return ThinkingContent(thinking=text, thinking_signature=data, redacted=not text)
    return reasoning_item(text, text_of(item.get("id")), text_of(item.get("encrypted_content")))


def _result_pieces(output: object) -> Iterator[ToolResultContent]:
    if isinstance(output, str):
        yield TextContent(text=output)
        return
    for piece in objects_of(output):
        text = piece.get("text")
        image = image_of(url=piece.get("image_url"))
        yield image or TextContent(text=text if isinstance(text, str) else json_text(piece))


def _result(call_id: str, content: tuple[ToolResultContent, ...], *, failed: bool = False) -> ToolResultMessage:
    return ToolResultMessage(tool_call_id=call_id, tool_name="", content=content, is_error=failed)


# -- HTML -------------------------------------------------------------------------------------------------------------


def _html(text: str) -> Iterator[AnswerPart]:
    end = 0
    for at, found in enumerate(_DETAILS.finditer(text)):
        attributes = {name: unescape(value) for name, value in _ATTRIBUTE.findall(found[1])}
        kind = attributes.get("type")
        if kind not in {"reasoning", "tool_calls"}:
            continue
        if before := text[end : found.start()].strip():
            yield TextContent(text=before)
        end = found.end()
        if kind == "reasoning":
            lines = unescape(_SUMMARY.sub("", found[2], count=1)).strip().split("\n")
            yield ThinkingContent(thinking="\n".join(line.removeprefix("> ").removeprefix(">") for line in lines))
        else:
            yield from _call(attributes, at)
    if rest := text[end:].strip():
        yield TextContent(text=rest)


def _call(attributes: dict[str, str], at: int) -> Iterator[AnswerPart]:
    own = attributes.get("id") or f"call_{at}"
    given = attributes.get("arguments")
    inner = parse_text(given)  # some versions encode the arguments twice
    yield make_call(own, attributes.get("name"), inner if isinstance(inner, str) else given)
    if "result" in attributes:
        result = parse_text(attributes["result"])
        yield _result(own, (TextContent(text=result if isinstance(result, str) else attributes["result"]),))


KNOWN_RECORDS: Final = frozenset({"status", OTHER})


def _chat(entry: dict[str, Any]) -> dict[str, Any]:
    return object_of(entry.get("chat")) or entry


def _id(entry: dict[str, Any]) -> str | None:
    return text_of(entry.get("id")) or text_of(_chat(entry).get("id"))


def _updated(entry: dict[str, Any]) -> int | None:
    return milliseconds_of(entry.get("updated_at")) or milliseconds_of(_chat(entry).get("timestamp"))


def list_sessions(source: Source) -> tuple[Session, ...]:
    """List the chats of an export.

    Raises:
        LoadError: it is not valid JSON.
    """
    found: list[Session] = []
    for entry in filter(None, conversations_of(load_value(source))):
        chat = _chat(entry)
        models = chat.get("models")
        title = text_of(entry.get("title")) or text_of(chat.get("title"))
        found.append(
            Session(
                format=NAME,
                id=_id(entry) or "",
                path=source.path or source.name,
                title=None if title is None else title_of(title),
                created=milliseconds_of(entry.get("created_at")),
                updated=_updated(entry),
                models=tuple(each for each in models if isinstance(each, str)) if isinstance(models, list) else (),  # pyright: ignore[reportUnknownVariableType]
                messages=len(object_of(object_of(chat.get("history")).get("messages"))),
            )
        )
    return tuple(found)


def read(source: Source, view: View) -> History:
    """Read one chat of an export.

    Raises:
        LoadError: there is none.
    """
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    found: list[dict[str, Any]] = []
    for number, each in enumerate(conversations_of(load_value(source)), 1):
        if isinstance(object_of(_chat(each).get("history")).get("messages"), dict):
            found.append(each)
        else:
            notes.unreadable(number, "a chat needs the messages of `chat.history`")
    if not found:
        raise LoadError("no conversation found: the file has no `chat.history` of Open WebUI with messages")
    entry = choose(found, source.session, notes, _id, _updated)
    chat = _chat(entry)
    history = object_of(chat.get("history"))
    entries = {name: object_of(each) for name, each in object_of(history.get("messages")).items()}
    tree = Tree({name: text_of(each.get("parentId")) for name, each in entries.items()})
    path = tree.path(tree.end(view, text_of(history.get("currentId"))))
    messages: list[Message] = []
    for number, name in enumerate(path, 1):
        since = notes.left_out
        made = _read_message(entries[name], number, notes)
        note_unread(entries[name], made, number, notes, since=since)
        messages += made
    branches = tree.branches(
        path,
        notes,
        is_message=lambda name: True,  # noqa: ARG005 - every entry is one
        text_of=lambda name: text_of(entries[name].get("content")) or "",
        time_of=lambda name: milliseconds_of(entries[name].get("timestamp")),
    )
    prompt = text_of(chat.get("system")) or text_of(object_of(chat.get("params")).get("system"))
    return finish_history(
        NAME,
        notes,
        messages,
        session_id=_id(entry),
        title=text_of(entry.get("title")) or text_of(chat.get("title")),
        created=milliseconds_of(entry.get("created_at")),
        updated=_updated(entry),
        system_prompt=prompt,
        branches=branches,
        extra={
            "entry": without(entry, ("chat",)),
            "chat": without(chat, ("history", "messages")),
            "history": without(history, ("messages",)),
        },
    )


def _read_message(entry: dict[str, Any], number: int, notes: Notes) -> list[Message]:
    time = milliseconds_of(entry.get("timestamp"))
    envelope = without(entry, ("content", "output", "files", "role"))
    match entry.get("role"):
        case "user":
            content: list[UserContent] = [TextContent(text=text)] if (text := text_of(entry.get("content"))) else []
            for file in objects_of(entry.get("files")):
                content += _file(file, number, notes)
            made: list[Message] = [UserMessage(content=tuple(content), timestamp=time)] if content else []
            if not isinstance(entry.get("content"), str):
                notes.unreadable(number, "a message without content")
        case "assistant":
            made = read_answer(entry, time, notes, number)
        case "system":
            made = [SystemMessage.of(text_of(entry.get("content")) or "")]
        case role:
            notes.unreadable(number, f"a message of the role {role!r}")
            made = []
    return [with_envelope(message, NAME, envelope) for message in made]


def _file(file: dict[str, Any], number: int, notes: Notes) -> list[UserContent]:
    """Return an attached file: an image, the text that was extracted, or a note that the export does not have it."""
    url, name = text_of(file.get("url")), text_of(file.get("name"))
    if file.get("type") == "image" and url is not None:
        return [image] if (image := image_of(url=url)) is not None else []
    stored = object_of(object_of(file.get("file")).get("data"))
    if text := text_of(stored.get("content")):
        return [TextContent(text=text)]
    if url is not None and url.startswith("data:") and (media := media_of(url=url, name=name)) is not None:
        return [media]
    detail = f"{name or url or 'a file'}: not in the export"
    notes.add(ChangeCode.FILE_MISSING, ("messages", number - 1), Loss.CONTENT, detail)
    return []


FORMAT: Final = Format(
    name=NAME,
    known_records=KNOWN_RECORDS,
    read=read,
    list=list_sessions,
    samples=read_samples(__package__),
    title="Open WebUI export",
    kind="export",
    reads_lines=False,
    source="open-webui 0.10.2",
    read_on="2026-11-15",
)
