"""Makes messages of the lines of a Claude Code session.

Facts this file rests on (Claude Code 2.1.325, seen 2026-11-15):
- A line holds one block of a reply; lines of one reply have the same `message.id`, and each repeats its usage.
- `isMeta` marks a text that the program added; `attachment` lines have such a text in `rendered`. Older versions did
  not store it: there the attachment itself has a message that the user sent while the model worked
  (`queued_command`), or a file that the user named (`file`).
- `system/local_command` is a command that the user ran in the program; it is sent as a text of the user.
- The program leaves out lines with `isApiErrorMessage: true` when it sends; other texts of the model `<synthetic>` it
  sends.
- An answer that was interrupted ends with `isAbortedMidStream`, then the user text `[Request interrupted by user]`.
- Older versions write `stop_reason: null` on every line of a finished reply.           (reported; read tolerantly)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, cast, final

from msgspec.structs import replace

from segue.conversation.content import TextContent, UserContent
from segue.conversation.messages import AssistantMessage, Message, StopReason, ToolResultMessage, Usage, UserMessage
from segue.errors import DecodeError
from segue.histories.claude_code.tree import Node
from segue.histories.kit.envelope import envelope_extra
from segue.histories.kit.lines import object_of, objects_of, text_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import SEGUE, with_marked_origin
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.wire import TurnCodec
from segue.models.price import find_cost

NAME: Final = "claude-code"
WIRE: Final = TurnCodec("anthropic-messages", "messages")
SYNTHETIC: Final = "<synthetic>"
INTERRUPTED: Final = "[Request interrupted by user"

_REPLY: Final = frozenset({"id", "type", "role", "model", "content", "stop_reason", "stop_sequence"})
_COUNTS: Final = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
_WRITTEN_ANEW: Final = frozenset({"type", "parentUuid", "sessionId", "message", "toolUseResult", "rendered", SEGUE})
"""Fields of a line that are not kept beside the message: they are in the message, or a new file has others."""


_OF_THE_USER: Final = frozenset({
    "queued_command", "file", "directory", "selected_lines_in_ide", "mcp_resource", "pdf_reference", "edited_text_file",
    "edited_image_file", "hook_additional_context",
})  # fmt: skip
"""Kinds of attachments that hold something of the user; all others are reminders and lists of the program."""


def attachment_content(attachment: dict[str, Any]) -> tuple[UserContent, ...]:
    """Give what the user attached, of a line whose text was not stored; empty for any other attachment."""
    blocks: object = None
    if attachment.get("type") == "queued_command":
        prompt = attachment.get("prompt")
        blocks = _reminder(f"The user sent a new message while you were working:\n{prompt}")
        if isinstance(prompt, list):
            blocks = cast("list[object]", prompt)
    elif attachment.get("type") == "file":
        content = object_of(attachment.get("content"))
        file = object_of(content.get("file"))
        if text := text_of(file.get("content")):
            blocks = _reminder(f"The content of {text_of(attachment.get('filename')) or 'a file'}:\n{text}")
        elif data := text_of(file.get("base64")):
            kind = "image" if content.get("type") == "image" else "document"
            media_type = text_of(file.get("type")) or ("image/png" if kind == "image" else "application/pdf")
            blocks = [{"type": kind, "source": {"type": "base64", "media_type": media_type, "data": data}}]
    if not blocks:
        return ()
    try:
        decoded = WIRE.decode([{"role": "user", "content": blocks}])
    except DecodeError:
        return ()
    return tuple(item for message in decoded if isinstance(message, UserMessage) for item in message.content)


def _reminder(text: str) -> str:
    """Mark a text as the program does it, so that a model does not take it for a turn of its own."""
    return f"<system-reminder>\n{text}\n</system-reminder>"


@final
class _Group(NamedTuple):
    """The lines of one reply."""

    id: object
    lines: list[Node]


@final
class LineReader:
    """Makes messages of lines. What a line holds beside its message is kept in `extra` of the message."""

    def __init__(self, notes: Notes) -> None:
        self.notes: Final = notes
        self._noted: set[str] = set()
        self._decoded: dict[str, tuple[Message, ...]] = {}
        self._answers: dict[int, AssistantMessage] = {}

    def messages(self, nodes: Sequence[Node]) -> list[Message]:
        """Give the messages of lines; lines that hold none are noted as records."""
        made: list[Message] = []
        groups: list[_Group | Node] = []
        open_group: _Group | None = None
        for node in nodes:
            if node.type != "assistant":
                groups.append(node)
                if node.type == "user" and not _only_results(node.fields(self.notes)):
                    open_group = None
                continue
            message_id = object_of(node.fields(self.notes).get("message")).get("id")
            if open_group is not None and message_id is not None and open_group.id == message_id:
                open_group.lines.append(node)
            else:
                open_group = _Group(message_id, [node])
                groups.append(open_group)
        asked = [node for node in nodes if node.type == "user" and node.uuid not in self._decoded]
        turns = [{**object_of(node.fields(self.notes).get("message")), "role": "user"} for node in asked]
        for node, decoded in zip(asked, WIRE.decode_users(turns), strict=False):
            self._decoded[node.uuid] = decoded
        replies = [group for group in groups if isinstance(group, _Group)]
        answers = WIRE.decode_answers([_content(group, self.notes) for group in replies])
        self._answers = {id(group): answer for group, answer in zip(replies, answers, strict=False)}
        for at, group in enumerate(groups):
            if isinstance(group, _Group):
                following = groups[at + 1] if at + 1 < len(groups) else None
                made += self._assistant(group, following if isinstance(following, Node) else None)
            elif group.type == "user":
                made += self._user(group)
            elif group.type == "attachment":
                made += self._attachment(group)
            elif group.subtype == "local_command" and text_of(group.fields(self.notes).get("content")):
                made.append(self._command(group))
            elif group.type == "system":
                self._record(group, f"system/{group.subtype}" if group.subtype else "system")
        return made

    def _record(self, node: Node, kind: str) -> None:
        if node.uuid not in self._noted:
            self._noted.add(node.uuid)
            data = node.fields(self.notes) if self.notes.keeps else None
            self.notes.record(kind, node.number, node.size, data)

    def _unreadable(self, node: Node, reason: str) -> None:
        if node.uuid not in self._noted:
            self._noted.add(node.uuid)
            self.notes.unreadable(node.number, reason)

    def _user(self, node: Node) -> list[Message]:
        fields = node.fields(self.notes)
        message = object_of(fields.get("message"))
        decoded = self._decoded.get(node.uuid)
        if decoded is None:
            try:
                decoded = WIRE.decode([{**message, "role": "user"}])
            except DecodeError as error:
                self._unreadable(node, str(error))
                return []
        time = milliseconds_of(fields.get("timestamp"))
        envelope = without(fields, _WRITTEN_ANEW)
        own = fields.get("isMeta") is True
        made: list[Message] = []
        for item in decoded:
            if not isinstance(item, (UserMessage, ToolResultMessage)):
                continue
            extra = envelope_extra(item.extra, NAME, {"uuid": node.uuid} if made else envelope, own=own)
            if isinstance(item, ToolResultMessage) and "toolUseResult" in fields:
                made.append(replace(item, timestamp=time, extra=extra, details=fields["toolUseResult"]))
            else:
                made.append(replace(item, timestamp=time, extra=extra))
        if not made or not isinstance(fields.get("message"), dict):
            self._unreadable(node, "the message has no content")
        return made

    def _command(self, node: Node) -> Message:
        fields = node.fields(self.notes)
        return UserMessage(
            content=(TextContent(text=fields["content"]),),
            timestamp=milliseconds_of(fields.get("timestamp")),
            extra=envelope_extra(None, NAME, without(fields, _WRITTEN_ANEW), own=fields.get("isMeta") is True),
        )

    def _attachment(self, node: Node) -> list[Message]:
        fields = node.fields(self.notes)
        attachment = object_of(fields.get("attachment"))
        texts = [text for item in objects_of(fields.get("rendered")) if (text := text_of(item.get("content")))]
        content = tuple(TextContent(text=text) for text in texts) or attachment_content(attachment)
        kind = text_of(attachment.get("type"))
        if not content:
            self._record(node, f"attachment/{kind}" if kind else "attachment")
            return []
        message = UserMessage(
            content=content,
            timestamp=milliseconds_of(fields.get("timestamp")),
            extra=envelope_extra(None, NAME, without(fields, _WRITTEN_ANEW), own=kind not in _OF_THE_USER),
        )
        return [message]

    def _assistant(self, group: _Group, following: Node | None) -> list[Message]:
        lines = [node.fields(self.notes) for node in group.lines]
        if lines[0].get("isApiErrorMessage") is True:
            for node in group.lines:
                self._record(node, "assistant/api-error")
            return []
        bodies = [object_of(fields.get("message")) for fields in lines]
        for node, each in zip(group.lines, bodies, strict=True):
            if not isinstance(each.get("content"), (str, list)):
                self._unreadable(node, "the message has no content")
        contents = [_blocks(body.get("content")) for body in bodies]
        body = {**bodies[0], **{key: bodies[-1][key] for key in ("stop_reason", "usage") if key in bodies[-1]}}
        body |= {"role": "assistant", "type": "message", "content": [block for blocks in contents for block in blocks]}
        model = text_of(body.get("model")) or ""
        known_as = "" if model == SYNTHETIC else model
        message = _quick_reply(body, self._answers.get(id(group)), known_as)
        try:
            # All other fields of the reply are kept in the envelope; the codec would compare each with its default.
            if message is None:
                known = {name: body[name] for name in _REPLY if name in body}
                known["usage"] = _counts(object_of(body.get("usage")))
                message = WIRE.decode_reply(known, known_as)
        except DecodeError as error:
            for node in group.lines:
                self._unreadable(node, str(error))
            return []
        if model in {"", SYNTHETIC}:
            message = replace(message, model=model, provider="")
        message = with_marked_origin(message, lines[0])
        envelope: dict[str, object] = {
            "lines": [
                {**without(fields, _WRITTEN_ANEW), "blocks": len(blocks)}
                for fields, blocks in zip(lines, contents, strict=True)
            ],
            "reply": without(body, ("content",)),
        }
        message = replace(
            message,
            timestamp=milliseconds_of(lines[0].get("timestamp")),
            extra=envelope_extra(message.extra, NAME, envelope, own=model == SYNTHETIC),
            **self._ending(message, body, lines, following),
        )
        return [message]

    def _ending(
        self, message: AssistantMessage, body: dict[str, Any], lines: Sequence[dict[str, Any]], following: Node | None
    ) -> dict[str, Any]:
        """Give the stop reason where the reply does not have it: it was interrupted, or an older version wrote it."""
        if body.get("stop_reason") is not None:
            return {}
        interrupted = any(fields.get("isAbortedMidStream") is True for fields in lines)
        if following is not None and following.type == "user" and not message.tool_calls():
            text = text_of_line(following.fields(self.notes))
            interrupted = interrupted or text.startswith(INTERRUPTED)
        if interrupted:
            return {"stop_reason": StopReason.ABORTED}
        return {"stop_reason": StopReason.TOOL_USE if message.tool_calls() else StopReason.STOP}


_PLAIN_STOPS: Final = {
    "end_turn": StopReason.STOP,
    "stop_sequence": StopReason.STOP,
    "max_tokens": StopReason.LENGTH,
    "tool_use": StopReason.TOOL_USE,
}
_PLAIN_CONTENT: Final = frozenset({"text", "thinking", "toolCall"})


def _quick_reply(body: dict[str, Any], answer: AssistantMessage | None, model: str) -> AssistantMessage | None:
    """Make a message of a plain reply, whose content was read together with others; None for any other reply.

    The codec compares a reply with its own encoding, to find what has to be kept verbatim. That takes most of the time
    of reading a session, and the reply is kept beside the message anyway.
    """
    if answer is None or answer.extra is not None or body.get("stop_sequence", "") is not None:
        return None
    raw, written_by = body.get("stop_reason"), body.get("model")
    stop = _PLAIN_STOPS.get(raw) if isinstance(raw, str) else None
    counts = _counts(object_of(body.get("usage")))
    is_plain = stop is not None and text_of(written_by) is not None and text_of(body.get("id")) is not None
    if not is_plain or len(counts) != len(_COUNTS) or any(type(count) is not int for count in counts.values()):
        return None
    kinds = {content.kind for content in answer.content}
    if kinds - _PLAIN_CONTENT or ("toolCall" in kinds) != (raw == "tool_use"):
        return None
    fresh, written, cached, output = cast("tuple[int, ...]", tuple(counts.values()))
    known = WIRE.model(model)
    usage = Usage(
        input=fresh,
        output=output,
        cache_read=cached,
        cache_write=written,
        total_tokens=fresh + written + cached + output,
    )
    return replace(
        answer,
        model=known.id,
        provider=known.provider,
        response_id=body["id"],
        response_model=written_by,
        usage=replace(usage, cost=find_cost(known.cost, usage)),
        stop_reason=stop or StopReason.STOP,
        raw_stop_reason=raw,
    )


def _content(group: _Group, notes: Notes) -> list[object]:
    """Give the blocks of all lines of a reply."""
    bodies = (object_of(node.fields(notes).get("message")) for node in group.lines)
    return [block for body in bodies for block in _blocks(body.get("content"))]


def _counts(usage: dict[str, Any]) -> dict[str, object]:
    """Give the token counts of a reply in the form in which the codec writes them."""
    counts: dict[str, object] = {name: usage.get(name) or 0 for name in _COUNTS}
    if thinking := object_of(usage.get("output_tokens_details")).get("thinking_tokens"):
        counts["output_tokens_details"] = {"thinking_tokens": thinking}
    if object_of(usage.get("cache_creation")).get("ephemeral_1h_input_tokens"):
        counts["cache_creation"] = usage["cache_creation"]
    return counts


def _blocks(content: object) -> list[object]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return cast("list[object]", content) if isinstance(content, list) else []


def _only_results(fields: dict[str, Any]) -> bool:
    blocks = objects_of(object_of(fields.get("message")).get("content"))
    return bool(blocks) and all(block.get("type") == "tool_result" for block in blocks)


def text_of_line(fields: dict[str, Any]) -> str:
    """Give the text of a line: its texts joined, without other blocks."""
    content = object_of(fields.get("message")).get("content")
    if isinstance(content, str):
        return content
    return "\n".join(text for block in objects_of(content) if (text := text_of(block.get("text"))))
