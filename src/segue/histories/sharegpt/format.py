"""The record of ShareGPT: rows with `conversations`, `tools` as JSON text, and the names of `images`.

Turns of ShareGPT: `{"from": "human", "value": "..."}`.

Facts (LLaMA-Factory and data sets in this form, 2026-11-15):
- Authors are human, gpt, system, function_call, observation, and tool in some data sets. A call is JSON text with name
  and arguments, or a list of them. There are no ids: observations follow their calls in order.
- Thinking is text between `<think>` tags at the beginning of an answer.
- An image is a mark `<image>` in the text, and its file name in a list next to the turns. Here every entry has its own
  share of that list, under `images`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, zip_longest
from typing import Any, Final

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent, ToolCall, UserContent
from segue.conversation.limits import parse_json
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from segue.errors import DecodeError, LoadError
from segue.histories.kit.chat_messages import read_tools, take_call, write_functions
from segue.histories.kit.documents import LINES, load_value
from segue.histories.kit.entries import Entry, EntryCodec, Reading, Writing, with_weight
from segue.histories.kit.format import Draft
from segue.histories.kit.framework import EntryList, Framework, framework_format, give_json, items_of, list_of
from segue.histories.kit.lines import object_of, text_of
from segue.histories.kit.pictures import PICTURES, picture_addresses
from segue.histories.kit.pieces import (
    encode_json,
    image_of,
    is_media,
    make_call,
    media_address,
    note_flag,
    note_signatures,
    note_unsupported,
    shown,
)
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Neighbours, Source
from segue.projection.report import Change, ChangeCode, Loss

NAME: Final = "sharegpt"
TITLE: Final = "ShareGPT"
IMAGES: Final = "images"
MARK: Final = "<image>"
_USER: Final = frozenset({"human", "user"})
_CALL: Final = frozenset({"function_call", "tool_call"})
_REPLY: Final = frozenset({"gpt", "assistant", "chatgpt", "bing", "bard", "model"})
_RESULT: Final = frozenset({"observation", "tool", "function_response"})
_TAG: Final = "<think>"
_UNNAMED: Final = "the turns do not name their model"
_THINK: Final = re.compile(r"\A<think>\n?(.*?)\n?</think>\n{0,2}", re.DOTALL)


def _read_plain(entry: Entry, reading: Reading) -> Message | None:
    """Read a turn of the user or the model that is only a text."""
    author, value = entry.get("from"), entry.get("value")
    if len(entry) != 2 or type(value) is not str or not value or _is_marked(value):
        return None
    if author == "human":
        return UserMessage(content=(TextContent(text=value),))
    if author == "gpt":
        reading.note_once(ChangeCode.MODEL_UNKNOWN, _UNNAMED)
        return AssistantMessage(content=(TextContent(text=value),), stop_reason=StopReason.STOP)
    return None


def _is_marked(text: str) -> bool:
    """Whether a text has marks of images, or begins with what is read as thinking."""
    return MARK in text or text.startswith(("\n", _TAG))


def _read(run: list[Entry], reading: Reading) -> list[Message]:
    entry = run[0]
    author, value = text_of(entry.get("from")) or "", entry.get("value")
    if not isinstance(value, str):
        return []
    if author in _USER:
        return [UserMessage(content=_read_content(value, entry))]
    if author == "system":
        return [SystemMessage(content=(TextContent(text=value),))]
    if author in _RESULT:
        call_id = take_call(reading, "")
        return [ToolResultMessage(tool_call_id=call_id, content=_read_content(value, entry))]
    if author in _CALL or author in _REPLY:
        reading.note_once(ChangeCode.MODEL_UNKNOWN, _UNNAMED)
        pieces: list[AssistantContent] = []
        if value.startswith(_TAG) and (found := _THINK.match(value)):
            pieces.append(ThinkingContent(thinking=found[1]))
            value = value[found.end() :]
        calls = _read_calls(value, reading) if author in _CALL else []
        if author in _CALL and not calls:
            reading.note_once(ChangeCode.ARGUMENTS_UNPARSED, "a call that is not valid JSON is kept as text")
        if value and not calls:
            pieces.append(TextContent(text=value))
        stop = StopReason.TOOL_USE if calls else StopReason.STOP
        return [AssistantMessage(content=(*pieces, *calls), stop_reason=stop)]
    return []


def _read_content(value: str, entry: Entry) -> tuple[UserContent, ...]:
    """Put the images of an entry in place of their marks."""
    if MARK not in value:
        return (TextContent(text=value),) if value else ()
    images = [image_of(None, url=address) for address in items_of(entry.get(IMAGES))]
    found: list[UserContent] = []
    for at, text in enumerate(value.split(MARK)):
        image = images[at - 1] if 0 < at <= len(images) else None
        if image is not None:
            found.append(image)
        elif at:
            text = MARK + text  # noqa: PLW2901 - a mark without an image stays text
        if text:
            last = found[-1] if found and image is None and at else None
            if isinstance(last, TextContent):
                found[-1] = TextContent(text=last.text + text)
            else:
                found.append(TextContent(text=text))
    return tuple(found)


def _read_calls(value: str, reading: Reading) -> list[ToolCall]:
    try:
        parsed = parse_json(value.encode("utf-8", "surrogatepass"))
    except (LoadError, UnicodeError):
        return []
    calls: list[ToolCall] = []
    for item in items_of(parsed) or [parsed]:
        fields = object_of(item)
        if text_of(fields.get("name")) is None:
            return []
        call_id = f"call_{reading.line}_{len(calls)}"
        calls.append(make_call(call_id, fields["name"], fields.get("arguments")))
    reading.open_calls.extend((call.id, call.name) for call in calls)  # results of several turns come in order
    return calls


def _write(messages: Sequence[Message], writing: Writing) -> list[Entry]:
    entries: list[Entry] = []
    for message, missing_of in _in_order(messages, writing):
        if message is not None:
            entries += with_weight(_write_message(message, writing), message, NAME)
        elif missing_of is not None:
            writing.note(missing_of, ChangeCode.RESULT_MISSING, Loss.NONE, "an empty result is written")
            entries.append({"from": "observation", "value": ""})
    return entries


def _in_order(
    messages: Sequence[Message], writing: Writing
) -> Iterator[tuple[Message, None] | tuple[None, AssistantMessage]]:
    """Yield the results in the order of their calls, because that order alone says whose they are.

    For a result that is missing, yield the turn with its call: the results after it would be read as those of others.
    """
    waiting: list[tuple[AssistantMessage, int]] = []
    written: set[int] = set()
    for is_result, group in groupby(messages, _is_result):
        run = [message for message in group if id(message) not in written]
        if not is_result:
            yield from ((message, None) for message in run)
            turns = [message for message in run if message.role == "assistant"]
            waiting += [(turn, at) for turn in turns for at in range(len(turn.tool_calls()))]
            continue
        expected = [(owner, writing.result_of(owner, at)) for owner, at in waiting]
        written |= {id(result) for _, result in expected}
        rest = [message for message in run if message.role == "toolResult" and id(message) not in written]
        sent = [*(result for _, result in expected if result is not None), *sorted(rest, key=writing.rank_of)]
        for result, given in zip_longest(sent, run):
            if result is not None and result is not given:
                writing.note(result, ChangeCode.RESULT_MOVED, Loss.NONE, f"{TITLE} has no ids")
        yield from ((None, owner) if result is None else (result, None) for owner, result in expected)
        yield from ((result, None) for result in sent[len(sent) - len(rest) :])
        waiting = []


def _is_result(message: Message) -> bool:
    return message.role == "toolResult"


def _together(messages: Sequence[Message]) -> list[list[Message]]:
    return [list(messages)] if messages else []


def _write_message(message: Message, writing: Writing) -> list[Entry]:
    if (plain := _plain_text(message)) is not None:
        return [{"from": "gpt" if message.role == "assistant" else "human", "value": plain}]
    if message.role == "assistant":
        return _write_assistant(message, writing)
    texts: list[str] = []
    images: list[str] = []
    for piece in shown(message, writing):
        if piece.kind == "text":
            texts.append(piece.text)
        elif piece.kind == "image" and (address := media_address(piece)) is not None:
            texts.append(MARK)
            images.append(address)
        elif is_media(piece):
            note_unsupported(message, writing, piece, TITLE)
    joined = "".join(texts) if images else "\n".join(texts)
    if (len(texts) > 1 and not images) or any(MARK in text for text in texts if text != MARK) or len(texts) > 2:
        writing.note(message, ChangeCode.TURN_MERGED, Loss.NONE, f"{TITLE} has one text for each turn")
    author = {"user": "human", "system": "system", "toolResult": "observation"}[message.role]
    if isinstance(message, ToolResultMessage):
        note_flag(message, writing, TITLE)
        writing.note(message, ChangeCode.ID_CHANGED, Loss.NONE, f"{TITLE} has no ids")
    return [{"from": author, "value": joined, **({IMAGES: images} if images else {})}]


def _plain_text(message: Message) -> str | None:
    """Return the text of a turn that has only text, and nothing to report, as nearly all turns of data sets."""
    if len(message.content) != 1 or (message.role != "user" and message.role != "assistant"):
        return None
    piece = message.content[0]
    if not isinstance(piece, TextContent) or piece.text_signature is not None:
        return None
    return None if _is_marked(piece.text) else piece.text


def _write_assistant(message: AssistantMessage, writing: Writing) -> list[Entry]:
    note_signatures(message, writing, TITLE)
    thoughts = [piece.thinking for piece in message.content if piece.kind == "thinking"]
    texts = [piece.text for piece in shown(message, writing) if piece.kind == "text"]
    calls: list[Any] = [{"name": call.name, "arguments": dict(call.arguments)} for call in message.tool_calls()]
    if len(thoughts) > 1 or len(texts) > 1 or not all(thoughts):
        writing.note(message, ChangeCode.TURN_MERGED, Loss.NONE, f"{TITLE} has one text for each turn")
    if any("</think>" in text or text != text.strip("\n") for text in thoughts):
        writing.note(message, ChangeCode.TURN_MERGED, Loss.NONE, "thinking is written between tags")
    thinking = f"<think>\n{joined}\n</think>\n\n" if (joined := "\n".join(thoughts)) else ""
    entries: list[Entry] = []
    if texts or not calls:
        text = "".join(texts)
        if text.startswith("\n") or (text.startswith("<think>") and not thinking):
            writing.note(message, ChangeCode.TURN_MERGED, Loss.NONE, "the text begins like thinking")
        entries.append({"from": "gpt", "value": thinking + text})
        thinking = ""
    if calls:
        writing.note(message, ChangeCode.ID_CHANGED, Loss.NONE, f"{TITLE} has no ids")
        value = encode_json(calls[0] if len(calls) == 1 else calls)
        entries.append({"from": "function_call", "value": thinking + value})
    return entries


CODEC: Final = EntryCodec(name=NAME, read=_read, write=_write, join=_together, read_plain=_read_plain)


_FILES: Final = "image_files"
_TYPES: Final = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
}


def _rows(value: object) -> list[dict[str, Any]]:
    whole = object_of(value)
    items = items_of(whole[LINES]) if LINES in whole else items_of(value) or [value]
    return [object_of(row) for row in items]


def _turns_of(row: Mapping[str, Any]) -> list[Entry]:
    turns = list_of(row.get("conversations"))
    return turns if turns and "from" in turns[0] else []


def _open(value: object, session: str | None) -> EntryList | None:
    return _open_row(value, session, None)


def _open_source(source: Source) -> EntryList | None:
    value = load_value(source, lines=True)
    return _open_row(value, source.session, source.neighbours)


def _open_row(value: object, session: str | None, files: Neighbours | None) -> EntryList | None:
    rows = [(row, turns) for row in _rows(value) if (turns := _turns_of(row))]
    if not rows:
        return None
    at = int(session) if session is not None and session.isdecimal() and int(session) < len(rows) else 0
    row, entries = rows[at]
    column = next((name for name in PICTURES if row.get(name)), IMAGES)
    images = items_of(row.get(column)) or ([row[column]] if row.get(column) else [])
    names = [name for name in images if isinstance(name, str)]
    addresses, changes = _find_images(names, files)
    if images != names:
        names = []
        try:
            addresses, changes = picture_addresses(images, column), []
        except DecodeError as error:
            reason = str(error)
            changes.append(Change(code=ChangeCode.LINE_UNREADABLE, path=(column,), loss=Loss.CONTENT, detail=reason))
    if addresses:
        entries = _with_images(entries, addresses)
    rest = {key: item for key, item in row.items() if key not in {"conversations", IMAGES}}
    if names:
        rest[_FILES] = names
    return EntryList(
        entries,
        rest,
        tools=read_tools(_parsed(row.get("tools"))),
        others=len(rows) - 1,
        changes=tuple(changes),
    )


def _with_images(turns: list[Entry], addresses: list[str]) -> list[Entry]:
    """Assign to each turn the images that it has marks of."""
    entries: list[Entry] = []
    for turn in turns:
        value = turn.get("value")
        count = value.count(MARK) if isinstance(value, str) else 0
        own, addresses = addresses[:count], addresses[count:]
        entries.append({**turn, IMAGES: own} if own else turn)
    return entries


def _find_images(names: list[str], files: Neighbours | None) -> tuple[list[str], list[Change]]:
    """Return the addresses of images: data URLs if the files are there."""
    addresses: list[str] = []
    changes: list[Change] = []
    for at, name in enumerate(names):
        data = None if files is None or ":" in name else files.read(name)
        if data is not None:
            kind = _TYPES.get(name.rpartition(".")[2].lower(), "image/png")
            addresses.append(f"data:{kind};base64,{base64.b64encode(data).decode()}")
            continue
        addresses.append(name)
        if ":" not in name:
            path = ("images", at)
            changes.append(Change(code=ChangeCode.FILE_MISSING, path=path, loss=Loss.CONTENT, detail=name))
    return addresses, changes


def _parsed(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return parse_json(value.encode("utf-8", "surrogatepass"))
    except (LoadError, UnicodeError):
        return None


def _close(entries: list[Entry], rest: Mapping[str, Any], draft: Draft) -> object:
    names = [name for name in items_of(rest.get(_FILES)) if isinstance(name, str)]
    images: list[object] = []
    turns: list[Entry] = []
    for entry in entries:
        turns.append({key: value for key, value in entry.items() if key != IMAGES})
        for address in items_of(entry.get(IMAGES)):
            images.append(names[len(images)] if len(images) < len(names) else address)
    made: dict[str, Any] = {"conversations": turns, **{key: rest[key] for key in rest if key != _FILES}}
    tools = draft.history.context.tools
    if tools and read_tools(_parsed(rest.get("tools"))) != tools:
        made["tools"] = encode_json(write_functions(tools))
    return {**made, IMAGES: images} if images and made.keys().isdisjoint(PICTURES) else made


FRAMEWORK: Final = Framework(
    codec=CODEC,
    title=TITLE,
    open=_open,
    open_source=_open_source,
    close=_close,
    stores_tools=True,
    lines=True,
    file_name="conversations.jsonl",
)
FORMAT: Final = framework_format(
    FRAMEWORK,
    give=give_json,
    samples=read_samples(__package__),
    source="LLaMA-Factory's description of the form; data sets in this form",
)
