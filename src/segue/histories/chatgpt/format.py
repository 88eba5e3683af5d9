"""The record of exports of ChatGPT.

Makes messages of the nodes of a ChatGPT export; see `read` for the facts.

Reads an export of ChatGPT: `conversations.json` or `conversations-NNN.json`, alone or in its zip archive.

Facts (descriptions of exports by others, read 2026-11-15):
- `mapping` is a tree of nodes; `current_node` is the end of the conversation that is shown.
- A message with `weight: 0` is hidden, except for `user_editable_context`, which has the user's instructions.
- A message to a tool has its name in `recipient`; the answer of the tool has it in `author.name`. There are no ids of
  calls: an answer belongs to the last call of that tool.
- An image is a pointer (`sediment://ID`, `file-service://ID`); the file in the archive has a name that begins so.
- `metadata.model_slug` names the model. There are no signatures.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, final

from msgspec.structs import replace

from segue.conversation.content import (
    AssistantContent,
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    UserContent,
)
from segue.conversation.messages import AssistantMessage, Message, StopReason, ToolResultMessage, UserMessage
from segue.errors import LoadError
from segue.histories.kit.documents import (
    OTHER,
    choose,
    conversations_of,
    finish_history,
    json_text,
    load_value,
    parse_object,
    parse_text,
)
from segue.histories.kit.envelope import with_envelope
from segue.histories.kit.format import Format
from segue.histories.kit.history import History, Session
from segue.histories.kit.lines import object_of, objects_of, text_of, title_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.pieces import media_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.trees import Tree
from segue.histories.kit.unread import note_unread
from segue.projection.report import ChangeCode, Loss

_PROTOCOL: Final = "openai-responses"
_STOPS: Final = {"max_tokens": StopReason.LENGTH, "interrupted": StopReason.ABORTED}
_NAME: Final = re.compile(r"\w[\w.-]*")
_POINTERS: Final = ("asset_pointer", "audio_asset_pointer", "video_container_asset_pointer")


def is_shown(node: dict[str, Any]) -> bool:
    """Whether a node has a message of the conversation."""
    message = object_of(node.get("message"))
    return bool(message) and message.get("weight") != 0 and _role(message) in {"user", "assistant", "tool"}


def text_of_message(message: dict[str, Any]) -> str:
    """Return the texts of a message."""
    content = object_of(message.get("content"))
    texts = [part for part in _parts(content) if isinstance(part, str)]
    return "\n".join(texts) or text_of(content.get("text")) or ""


def _role(message: dict[str, Any]) -> str | None:
    return text_of(object_of(message.get("author")).get("role"))


def _parts(content: dict[str, Any]) -> list[object]:
    parts = content.get("parts")
    return list(parts) if isinstance(parts, list) else []  # pyright: ignore[reportUnknownArgumentType]


@final
class MessageReader:
    """The messages of one path. Nodes of the model up to the next result or question are one turn."""

    def __init__(self, format_name: str, source: Source, notes: Notes) -> None:
        self.instructions: str | None = None
        self._name = format_name
        self._source = source
        self._notes = notes
        self._made: list[Message] = []
        self._turn: AssistantMessage | None = None
        self._open: list[tuple[str, str]] = []

    def messages(self, nodes: Sequence[tuple[str, dict[str, Any]]]) -> list[Message]:
        """Read the nodes of a path."""
        for number, (name, node) in enumerate(nodes, 1):
            since, start = self._notes.left_out, len(self._made)
            if message := object_of(node.get("message")):
                self._add(name, message, number)
            turn = self._turn if self._turn is not None and self._turn.content else None  # an empty one is dropped
            made = (self._made[start:], turn, self.instructions)
            note_unread(node, made, number, self._notes, since=since)
        self._end_turn()
        made = sum(message.role == "toolResult" for message in self._made)
        if made:
            self._notes.add(ChangeCode.ID_MADE, ("messages",), Loss.NONE, f"ids of {made} tool calls")
        return self._made

    def _add(self, name: str, message: dict[str, Any], number: int) -> None:
        role, content = _role(message), object_of(message.get("content"))
        kind = text_of(content.get("content_type")) or ""
        if kind in {"user_editable_context", "model_editable_context"}:
            self._keep_instructions(content, message, number)
        elif role == "system" or message.get("weight") == 0:
            self.record("system message" if role == "system" else "hidden message", message, number)
        elif role == "user":
            self._end_turn()
            self._append(UserMessage(content=self._user_content(message), timestamp=_time(message)), name, message)
        elif role == "tool":
            self._end_turn()
            self._tool(name, message)
        elif role == "assistant":
            self._reply(name, message, kind, number)
        else:
            self._notes.unreadable(number, f"a message of the role {role!r}")

    def _append(self, message: UserMessage | ToolResultMessage, name: str, fields: dict[str, Any]) -> None:
        if message.content or message.role == "toolResult":
            self._made.append(with_envelope(message, self._name, {"id": name, **without(fields, ("content", "id"))}))

    def record(self, kind: str, message: dict[str, Any], number: int) -> None:
        """Note a message that is not part of the conversation."""
        self._notes.record(kind, number, len(json_text(message)), message if self._notes.keeps else None)

    def _keep_instructions(self, content: dict[str, Any], message: dict[str, Any], number: int) -> None:
        names = ("user_profile", "user_instructions", "model_set_context")
        texts = [text for name in names if (text := text_of(content.get(name)))]
        if not texts:
            self.record("hidden message", message, number)
            return
        given = "\n\n".join(texts)
        self.instructions = given if self.instructions is None else f"{self.instructions}\n\n{given}"

    # -- content -------------------------------------------------------------------------------------------------------

    def _user_content(self, message: dict[str, Any]) -> tuple[UserContent, ...]:
        content = object_of(message.get("content"))
        pieces = self._pieces(content)
        if not pieces and (text := _other_text(content)):
            pieces = [TextContent(text=text)]
        shown = {_pointer(object_of(part)) for part in _parts(content)}
        for attachment in objects_of(object_of(message.get("metadata")).get("attachments")):
            own = text_of(attachment.get("id"))
            if own is not None and own not in shown:
                pieces += self._file(own, text_of(attachment.get("mime_type")), text_of(attachment.get("name")))
        return tuple(pieces)

    def _pieces(self, content: dict[str, Any]) -> list[UserContent]:
        made: list[UserContent] = []
        for part in _parts(content):
            fields = object_of(part)
            pointer = _pointer(fields)
            if isinstance(part, str):
                made += [TextContent(text=part)] if part else []
            elif pointer is not None:
                made += self._file(pointer, None, None)
            elif isinstance(fields.get("text"), str):
                made += [TextContent(text=fields["text"])] if fields["text"] else []
            else:
                made.append(TextContent(text=json_text(part)))
        return made

    def _file(self, pointer: str, mime: str | None, name: str | None) -> list[ImageContent | FileContent]:
        """Read a file of the archive by the beginning of its name."""
        files = self._source.neighbours
        is_name = _NAME.fullmatch(pointer) is not None  # and no pattern or path
        found = [*files.find(f"{pointer}*"), *files.find(f"**/{pointer}*")] if is_name else []
        data = files.read(found[0]) if found else None
        if data is None:
            at = ("messages", len(self._made))
            self._notes.add(ChangeCode.FILE_MISSING, at, Loss.CONTENT, f"{name or pointer}: not in the export")
            return []
        media = media_of(mime, data=data, name=name or found[0].rpartition("/")[2])
        return [media] if media is not None else []

    # -- turns of the model --------------------------------------------------------------------------------------------

    def _reply(self, name: str, message: dict[str, Any], kind: str, number: int) -> None:
        recipient = text_of(message.get("recipient")) or "all"
        content = object_of(message.get("content"))
        pieces: list[AssistantContent] = []
        if kind == "reasoning_recap":
            self.record(kind, message, number)
            return
        if kind == "thoughts":
            pieces += (ThinkingContent(thinking=_thought(each)) for each in objects_of(content.get("thoughts")))
        elif recipient != "all":
            call = ToolCall(id=f"call_{name}", name=recipient, arguments=_arguments(content))
            self._open.append((call.id, recipient))
            pieces.append(call)
        else:
            for piece in self._pieces(content) or _as_text(content):
                if isinstance(piece, TextContent):
                    pieces.append(piece)
                else:
                    native: dict[str, Any] = {"type": piece.kind}
                    kept = piece if not isinstance(piece, NativeContent) else None
                    fallback = () if kept is None else (kept,)
                    pieces.append(NativeContent(protocol=self._name, block=native, fallback=fallback))
        self._extend(name, message, tuple(pieces))

    def _extend(self, name: str, message: dict[str, Any], pieces: tuple[AssistantContent, ...]) -> None:
        metadata = object_of(message.get("metadata"))
        model = text_of(metadata.get("model_slug")) or ""
        turn = self._turn
        if turn is not None and model and turn.model and turn.model != model:
            self._end_turn()
            turn = None
        if turn is None:
            fresh = AssistantMessage(content=(), protocol=_PROTOCOL, provider="openai", model=model)
            envelope = {"id": name, **without(message, ("content", "id"))}
            turn = with_envelope(replace(fresh, timestamp=_time(message)), self._name, envelope)
        finish = text_of(object_of(metadata.get("finish_details")).get("type"))
        stop = _STOPS.get(finish or "", StopReason.STOP)
        if text_of(message.get("status")) == "in_progress":
            stop = StopReason.ABORTED
        self._turn = replace(turn, content=(*turn.content, *pieces), model=turn.model or model, stop_reason=stop)

    def _end_turn(self) -> None:
        turn = self._turn
        if turn is not None and turn.content:
            if turn.tool_calls() and turn.stop_reason == StopReason.STOP:
                turn = replace(turn, stop_reason=StopReason.TOOL_USE)
            self._made.append(turn)
        self._turn = None

    def _tool(self, name: str, message: dict[str, Any]) -> None:
        content = object_of(message.get("content"))
        author = text_of(object_of(message.get("author")).get("name")) or ""
        pieces = tuple(self._pieces(content) or _as_text(content))
        status = text_of(object_of(object_of(message.get("metadata")).get("aggregate_result")).get("status"))
        failed = content.get("content_type") == "system_error" or (status or "success") not in {"success", "finished"}
        call = self._answered(author)
        if call is None:
            # A tool that the program ran by itself: there is no call that the result could belong to.
            given = UserMessage(content=pieces, timestamp=_time(message))
            if pieces:
                envelope = {"id": name, **without(message, ("content", "id"))}
                self._made.append(with_envelope(given, self._name, envelope, own=True))
            return
        result = ToolResultMessage(
            tool_call_id=call, tool_name=author, content=pieces, is_error=failed, timestamp=_time(message)
        )
        self._append(result, name, message)

    def _answered(self, author: str) -> str | None:
        """Find the call that a tool answers; a tool may answer as `python` what was sent to `python.exec`."""
        for at in reversed(range(len(self._open))):
            own, recipient = self._open[at]
            if recipient.partition(".")[0] == author.partition(".")[0]:
                del self._open[at]
                return own
        return None


def _time(message: dict[str, Any]) -> int | None:
    return milliseconds_of(message.get("create_time"))


def _pointer(part: dict[str, Any]) -> str | None:
    """Return the id of the file that a part points to."""
    for name in _POINTERS:
        value = part.get(name)
        if inner := object_of(value):
            return _pointer(inner)
        if isinstance(value, str) and value:
            return value.rpartition("/")[2].partition("#")[0] or None
    return None


def _thought(thought: dict[str, Any]) -> str:
    return "\n".join(text for name in ("summary", "content") if (text := text_of(thought.get(name))))


def _arguments(content: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call: an object that was written as JSON, or the text."""
    text = text_of(content.get("text")) or "\n".join(part for part in _parts(content) if isinstance(part, str))
    return parse_object(text) or {"input": text}


def _other_text(content: dict[str, Any]) -> str:
    """Return the text of content that has no parts: output of code, quotes of pages."""
    names = ("text", "result", "content", "summary", "title", "name")
    texts = [text for name in names if (text := text_of(content.get(name)))]
    if url := text_of(content.get("url")):
        texts.append(url)
    return "\n".join(texts)


def _as_text(content: dict[str, Any]) -> list[UserContent]:
    text = _other_text(content)
    known = {"content_type", "parts", "language", "response_format_name"}
    if not text and content.keys() - known:
        text = json_text(without(content, frozenset(known)))
    return [TextContent(text=text)] if text else []


NAME: Final = "chatgpt"
KNOWN_RECORDS: Final = frozenset({"hidden message", "reasoning_recap", "system message", OTHER})
MEMBERS: Final = ("conversations.json", "conversations-*.json", "*/conversations.json", "*/conversations-*.json")


def _all_conversations(source: Source) -> Iterator[dict[str, Any]]:
    """Yield the conversations of the file, and of the other files of an export that is split."""
    yield from conversations_of(load_value(source))
    folder, _, own = source.name.rpartition("/")
    if not own.startswith("conversations-"):
        return
    for name in source.neighbours.find(f"{folder}/conversations-*.json" if folder else "conversations-*.json"):
        if name != source.name:
            yield from conversations_of(parse_text(source.neighbours.read(name)))


def _id(conversation: dict[str, Any]) -> str | None:
    return text_of(conversation.get("conversation_id")) or text_of(conversation.get("id"))


def _updated(conversation: dict[str, Any]) -> int | None:
    return milliseconds_of(conversation.get("update_time")) or milliseconds_of(conversation.get("create_time"))


def list_sessions(source: Source) -> tuple[Session, ...]:
    """List the conversations of an export.

    Raises:
        LoadError: it is not valid JSON.
    """
    found: list[Session] = []
    for each in filter(None, _all_conversations(source)):
        model = text_of(each.get("default_model_slug"))
        title = text_of(each.get("title"))
        found.append(
            Session(
                format=NAME,
                id=_id(each) or "",
                path=source.path or source.name,
                title=None if title is None else title_of(title),
                created=milliseconds_of(each.get("create_time")),
                updated=_updated(each),
                models=() if model is None else (model,),
                messages=sum(is_shown(object_of(node)) for node in object_of(each.get("mapping")).values()),
            )
        )
    return tuple(found)


def read(source: Source, view: View) -> History:
    """Read one conversation of an export.

    Raises:
        LoadError: there is none.
    """
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    found: list[dict[str, Any]] = []
    for number, each in enumerate(_all_conversations(source), 1):
        if object_of(each.get("mapping")):
            found.append(each)
        else:
            notes.unreadable(number, "a conversation needs a `mapping`")
    if not found:
        raise LoadError("no conversation found: the file has no `mapping` of ChatGPT")
    conversation = choose(found, source.session, notes, _id, _updated)
    nodes = {name: object_of(node) for name, node in object_of(conversation["mapping"]).items()}
    tree = Tree({name: text_of(node.get("parent")) for name, node in nodes.items()})
    path = tree.path(tree.end(view, text_of(conversation.get("current_node"))))
    reader = MessageReader(NAME, source, notes)
    messages: Sequence[Message] = reader.messages([(name, nodes[name]) for name in path])
    branches = tree.branches(
        path,
        notes,
        is_message=lambda name: is_shown(nodes[name]),
        text_of=lambda name: text_of_message(object_of(nodes[name].get("message"))),
        time_of=lambda name: milliseconds_of(object_of(nodes[name].get("message")).get("create_time")),
    )
    for number, (name, node) in enumerate(nodes.items(), 1):
        if not node:
            notes.unreadable(number, "a node of the `mapping` is an object")
        if name not in path and object_of(node.get("message")) and not is_shown(node):
            reader.record("hidden message", object_of(node.get("message")), number)
    return finish_history(
        NAME,
        notes,
        messages,
        session_id=_id(conversation),
        title=text_of(conversation.get("title")),
        created=milliseconds_of(conversation.get("create_time")),
        updated=milliseconds_of(conversation.get("update_time")),
        system_prompt=reader.instructions,
        branches=branches,
        extra={"conversation": without(conversation, ("mapping",))},
    )


FORMAT: Final = Format(
    name=NAME,
    known_records=KNOWN_RECORDS,
    read=read,
    list=list_sessions,
    samples=read_samples(__package__),
    title="ChatGPT export",
    kind="export",
    archive_members=MEMBERS,
    reads_lines=False,
    source="descriptions of exports by others",
    read_on="2026-11-15",
)
