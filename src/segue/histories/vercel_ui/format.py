"""The record of the AI SDK: a list of `UIMessage`, or the body that a chat page sends.

`UIMessage` of the AI SDK: one message holds all steps of a turn.

Facts (ai 6.0.326 and 7.0.169, 2026-11-15):
- A message of the assistant is a list of parts; `step-start` begins the next request to the model. A tool part holds
  the call and its result, by its state: `input-available`, `output-available`, `output-error`, `output-denied`.
- Signatures are in `providerMetadata` of a part: `anthropic.signature`, `anthropic.redactedData`, `openai.itemId` and
  `openai.reasoningEncryptedContent`, `google.thoughtSignature`; those of a call in `callProviderMetadata`.
- Version 7 names the model in a part `custom` of the kind `anthropic.message_start`. Usage is there only if the
  application puts it into `metadata`.
- Version 4 had `tool-invocation` with the call and its result, `reasoning` with `details` that hold the signature,
  and `file` with `mimeType` and `data`.                               (vercel/ai 4.3, ui-utils: types; 2026-11-19)
- `errorText` is masked by default, so the text of an error can be lost before it is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, NativeContent, TextContent, ThinkingContent, ToolResultContent
from segue.conversation.context import Origin
from segue.conversation.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, Usage, UserMessage
from segue.histories.kit.entries import Entry, EntryCodec, Reading, Writing, runs_of
from segue.histories.kit.format import Draft
from segue.histories.kit.framework import EntryList, Framework, add_ids, framework_format, give_json, items_of, list_of
from segue.histories.kit.lines import object_of, objects_of, text_of
from segue.histories.kit.origins import (
    UNKNOWN,
    catalogue_name,
    find_origin,
    marked_origin,
    origin_mark,
    protocol_of,
    set_origin,
)
from segue.histories.kit.pieces import (
    Media,
    encode_json,
    is_media,
    item_of,
    item_signature,
    make_call,
    media_of,
    note_unsupported,
    read_media,
    shown,
    stop_of,
    string_of,
)
from segue.histories.kit.samples import read_samples
from segue.histories.kit.templates import ContentForms, Template
from segue.projection.report import ChangeCode, Loss

NAME: Final = "vercel-ui"
TITLE: Final = "the AI SDK"
SEGUE: Final = "segue"
_ANTHROPIC: Final = "anthropic"
"""Who made every signature that version 4 stored."""
_PROVIDERS: Final = (_ANTHROPIC, "openai", "google", "bedrock")
"""Keys of `providerMetadata`, and who wrote a step that has one."""
_KEYS: Final = {protocol_of(catalogue_name(key), ""): key for key in _PROVIDERS}
_NO_RESULT: Final = frozenset({"input-streaming", "input-available", "approval-requested", "approval-responded"})
_FAILED: Final = frozenset({"output-error", "output-denied"})
_FORMS: Final = ContentForms(
    NAME,
    TITLE,
    tag="type",
    keeps=True,
    text={"type": "text", "text": "$text"},
    media=[
        {"type": "file", "mediaType": "$any_type", "url": address, "filename": "$name?"}
        for address in ("$data_url!", "$url!")
    ],
)
_OUTPUT: Final = ContentForms(
    NAME,
    TITLE,
    tag="type",
    text={"type": "text", "text": "$text"},
    media=[
        {"type": "media", "mediaType": "$any_type", "data": "$data!"},
        {"type": "media", "mediaType": "$any_type", "url": "$url!"},
        {"type": "media", "mediaType": "$any_type", "file_id": "$file_id"},
    ],
)
_USAGE: Final = Template(
    "usage",
    {
        "inputTokens": "$whole_input",
        "inputTokenDetails": {
            "noCacheTokens": "$input",
            "cacheReadTokens": "$cache_read",
            "cacheWriteTokens": "$cache_write",
        },
        "outputTokens": "$output",
        "outputTokenDetails": {"reasoningTokens": "$reasoning?"},
        "totalTokens": "$total_tokens",
    },
)


# -- reading -----------------------------------------------------------------------------------------------------------


def _read(run: list[Entry], reading: Reading) -> list[Message]:
    entry = run[0]
    parts = [new for part in objects_of(entry.get("parts")) for new in _modern(part)]
    match text_of(entry.get("role")):
        case "system":
            texts = [TextContent(text=part["text"]) for part in parts if isinstance(part.get("text"), str)]
            return [SystemMessage(content=tuple(texts))]
        case "user":
            return [UserMessage(content=_FORMS.read_content(parts))]
        case "assistant":
            return _read_turn(entry, parts, reading)
        case _:
            return []


def _modern(part: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a part of version 4 in the form of later ones; other parts as they are."""
    kind, invocation = part.get("type"), object_of(part.get("toolInvocation"))
    if kind == "tool-invocation" and invocation:
        known = {"toolCallId": invocation.get("toolCallId"), "toolName": invocation.get("toolName")}
        ended = {"state": "output-available", "output": invocation["result"]} if "result" in invocation else {}
        call = {"type": "dynamic-tool", **known, "input": invocation.get("args"), "state": "input-available", **ended}
        return [call]
    if kind == "reasoning" and "text" not in part:
        details = objects_of(part.get("details")) or [{"type": "text", "text": part.get("reasoning")}]
        return [_modern_reasoning(detail) for detail in details]
    if kind == "file" and "url" not in part and isinstance(part.get("data"), str):
        mime = text_of(part.get("mimeType")) or ""
        return [{"type": "file", "mediaType": mime, "url": f"data:{mime};base64,{part['data']}"}]
    return [part]


def _modern_reasoning(detail: dict[str, Any]) -> dict[str, Any]:
    signed = {"signature": detail.get("signature"), "redactedData": detail.get("data")}
    kept = {name: value for name, value in signed.items() if isinstance(value, str)}
    return {
        "type": "reasoning",
        "text": detail.get("text") or "",
        **_under("providerMetadata", _under(_ANTHROPIC, kept)),
    }


def _read_turn(entry: Entry, parts: list[dict[str, Any]], reading: Reading) -> list[Message]:
    steps: list[list[dict[str, Any]]] = [[]]
    for part in parts:
        if part.get("type") == "step-start":
            steps.append([])
        else:
            steps[-1].append(part)
    metadata = object_of(entry.get("metadata"))
    marks = objects_of(object_of(metadata.get(SEGUE)).get("steps"))
    messages: list[Message] = []
    kept = [step for step in steps if step]
    for at, step in enumerate(kept):
        origin = marked_origin(_origin_of(step), {SEGUE: marks[at]} if at < len(marks) else {})
        if not origin.model:
            reading.note_once(ChangeCode.MODEL_UNKNOWN, "the messages do not name their model")
        messages += _read_step(step, origin)
    usage = _read_usage(object_of(metadata.get("totalUsage")) or object_of(metadata.get("usage")))
    last = next((at for at in reversed(range(len(messages))) if messages[at].role == "assistant"), None)
    if usage is not None and last is not None:
        messages[last] = replace(messages[last], usage=usage)
    return messages


def _origin_of(step: Sequence[Mapping[str, Any]]) -> Origin:
    found = UNKNOWN
    for part in step:
        fields = object_of(part.get("providerMetadata")) or object_of(part.get("callProviderMetadata"))
        for key, details in fields.items():
            if key in _PROVIDERS:
                model = text_of(object_of(details).get("model")) if part.get("type") == "custom" else None
                found = find_origin(model or found.model, key)
    return found


def _read_step(step: Sequence[Mapping[str, Any]], origin: Origin) -> list[Message]:
    pieces: list[AssistantContent] = []
    results: list[Message] = []
    for part in step:
        kind = text_of(part.get("type")) or ""
        if kind.startswith("tool-") or kind == "dynamic-tool":
            name = text_of(part.get("toolName")) if kind == "dynamic-tool" else kind.removeprefix("tool-")
            signature = _signature(part.get("callProviderMetadata"), origin)
            arguments = part.get("input", part.get("rawInput"))
            call = make_call(part.get("toolCallId"), name, arguments, signature=signature)
            pieces.append(call)
            if (text_of(part.get("state")) or "") not in _NO_RESULT and ("output" in part or "errorText" in part):
                results.append(_read_result(part, call.id, call.name))
        elif kind != "custom":
            pieces.append(_read_part(part, kind, origin))
    reply = AssistantMessage(content=tuple(pieces), stop_reason=stop_of(None, pieces))
    return [set_origin(reply, origin), *results]


def _read_part(part: Mapping[str, Any], kind: str, origin: Origin) -> AssistantContent:
    metadata = object_of(part.get("providerMetadata"))
    if kind == "text" and isinstance(part.get("text"), str):
        return TextContent(text=part["text"], text_signature=_signature(metadata, origin, status="completed"))
    if kind == "reasoning":
        redacted = string_of(object_of(metadata.get("anthropic")).get("redactedData"))
        if redacted is not None:
            return ThinkingContent(thinking=text_of(part.get("text")) or "", thinking_signature=redacted, redacted=True)
        own = object_of(metadata.get(SEGUE))
        return ThinkingContent(
            thinking=text_of(part.get("text")) or "",
            thinking_signature=_signature(metadata, origin),
            redacted=own.get("redacted") is True,
        )
    fallback: tuple[Media, ...] = ()
    if kind == "file" and (media := media_of(part.get("mediaType"), url=part.get("url"))) is not None:
        fallback = (media,)
    return NativeContent(protocol=NAME, block=dict(part), fallback=fallback)


def _signature(metadata: object, origin: Origin, *, status: str | None = None) -> str | None:
    fields = object_of(metadata)
    own = string_of(object_of(fields.get(SEGUE)).get("signature"))
    if own is not None:
        return own
    item = object_of(fields.get("openai"))
    if origin.protocol == "openai-responses" and item:
        encrypted = item.get("reasoningEncryptedContent")
        name = item.get("itemId")
        return item_signature(id=name, encrypted_content=encrypted, status=status if name is not None else None)
    for details in fields.values():
        for name in ("signature", "thoughtSignature"):
            found = string_of(object_of(details).get(name))
            if found is not None:
                return found
    return None


def _read_result(part: Mapping[str, Any], call_id: str, name: str) -> ToolResultMessage:
    failed = text_of(part.get("state")) in _FAILED or "errorText" in part
    content: tuple[ToolResultContent, ...] = ()
    if failed:
        text = text_of(part.get("errorText"))
        content = () if text is None else (TextContent(text=text),)
    else:
        content = _read_output(part.get("output"))
    return ToolResultMessage(tool_call_id=call_id, tool_name=name, content=content, is_error=failed)


def _read_output(output: object) -> tuple[ToolResultContent, ...]:
    if isinstance(output, str):
        return (TextContent(text=output),) if output else ()
    fields = object_of(output)
    if fields.keys() == {"type", "value"} and fields["type"] == "content" and items_of(fields["value"]):
        found: list[ToolResultContent] = []
        for item in items_of(fields["value"]):
            block = object_of(item)
            media = read_media({**block, "type": "media"} if "media" in str(block.get("type")) else block)
            if isinstance(block.get("text"), str):
                found.append(TextContent(text=block["text"]))
            elif media is not None:
                found.append(media)
        return tuple(found)
    return (TextContent(text=encode_json(output)),)


def _read_usage(usage: Mapping[str, Any]) -> Usage | None:
    """Read the usage; versions before 6 have no details."""
    older = {"inputTokenDetails": {"cacheReadTokens": usage.get("cachedInputTokens")}}
    older["outputTokenDetails"] = {"reasoningTokens": usage.get("reasoningTokens")}
    return _USAGE.read({**older, **usage})


# -- writing -----------------------------------------------------------------------------------------------------------


def _join(messages: Sequence[Message]) -> list[list[Message]]:
    """Group replies and results that follow each other into one run; everything else is alone."""
    return runs_of(messages, lambda before, message: {before.role, message.role} <= {"assistant", "toolResult"})


def _write(messages: Sequence[Message], writing: Writing) -> list[Entry]:
    entries: list[Entry] = []
    for run in _join(messages):
        if run[0].role in {"user", "system"}:
            entries.append({"role": run[0].role, "parts": _FORMS.write(run[0], writing)})
        elif (entry := _write_turn(run, writing)) is not None:
            entries.append(entry)
    return entries


def _write_turn(run: Sequence[Message], writing: Writing) -> Entry | None:
    parts: list[Entry] = []
    marks: list[dict[str, Any]] = []
    usage: Usage | None = None
    for message in run:
        if isinstance(message, ToolResultMessage):
            _note_unwritten(message, writing)
        elif isinstance(message, AssistantMessage):
            step = _write_step(message, writing)
            parts += [{"type": "step-start"}, *step]
            marks.append(origin_mark(message, _origin_of(step)).get(SEGUE, {}))
            usage = message.usage or usage
    if not parts:
        return None
    metadata: dict[str, Any] = {}
    if usage is not None:
        metadata["totalUsage"] = _USAGE.write(usage)
    if any(marks):
        metadata[SEGUE] = {"steps": marks}
    return {**({"metadata": metadata} if metadata else {}), "role": "assistant", "parts": parts}


def _note_unwritten(result: ToolResultMessage, writing: Writing) -> None:
    """Report a result that is not in the part of its call."""
    if writing.call_of(result) is None:
        writing.note(result, ChangeCode.RESULT_ORPHANED, Loss.CONTENT, f"{TITLE} stores results with their calls")
    elif not writing.is_first(result):
        writing.note(result, ChangeCode.RESULT_DUPLICATE, Loss.CONTENT, f"{TITLE} stores one result for each call")


def _write_step(message: AssistantMessage, writing: Writing) -> list[Entry]:
    parts: list[Entry] = []
    at = 0
    for piece in message.content:
        match piece.kind:
            case "text":
                signed = _signed(piece.text_signature, message, {"id", "status"})
                parts.append(
                    {"type": "text", "text": piece.text, **_under("providerMetadata", signed), "state": "done"}
                )
            case "thinking":
                signed = _signed_thinking(piece, message)
                part = {"type": "reasoning", "text": piece.thinking, **_under("providerMetadata", signed)}
                parts.append({**part, "state": "done"})
            case "toolCall":
                result = writing.result_of(message, at)
                at += 1
                signed = _signed(piece.thought_signature, message, {"id", "status"})
                call: Entry = {"type": f"tool-{piece.name}", "toolCallId": piece.id, "input": dict(piece.arguments)}
                call |= {"state": "input-available"} if result is None else _write_result(result, writing)
                parts.append({**call, **_under("callProviderMetadata", signed)})
            case "native":
                if piece.protocol == NAME:
                    parts.append(dict(piece.block))
                    continue
                for each in shown(message, writing, [piece]):
                    if each.kind == "text":
                        parts.append({"type": "text", "text": each.text, "state": "done"})
                    elif (part := _FORMS.write_one(each)) is not None:
                        parts.append(part)
                    else:
                        note_unsupported(message, writing, each, TITLE)
    return parts


def _under(name: str, fields: Mapping[str, Any]) -> Entry:
    return {name: dict(fields)} if fields else {}


def _signed(signature: str | None, message: AssistantMessage, known: set[str]) -> dict[str, Any]:
    """Write a signature where the package of the provider looks for it; one that it does not know under our own key."""
    if signature is None:
        return {}
    key = _KEYS.get(message.protocol)
    item = item_of(signature) if key == "openai" else {}
    if item:
        fields = {"itemId": item.get("id"), "reasoningEncryptedContent": item.get("encrypted_content")}
        own = {} if item.keys() <= known else {SEGUE: {"signature": signature}}
        return {"openai": {name: value for name, value in fields.items() if value is not None}, **own}
    if key == "google":
        return {"google": {"thoughtSignature": signature}}
    if key in {"anthropic", "bedrock"}:
        return {key: {"signature": signature}}
    return {SEGUE: {"signature": signature}}


def _signed_thinking(piece: ThinkingContent, message: AssistantMessage) -> dict[str, Any]:
    if piece.redacted and message.protocol == "anthropic-messages" and piece.thinking_signature is not None:
        return {"anthropic": {"redactedData": piece.thinking_signature}}
    signed = _signed(piece.thinking_signature, message, {"id", "encrypted_content"})
    if piece.redacted:
        signed[SEGUE] = {**object_of(signed.get(SEGUE)), "redacted": True}
    return signed


def _write_result(result: ToolResultMessage, writing: Writing) -> Entry:
    texts = [piece.text for piece in result.content if piece.kind == "text"]
    media = [piece for piece in shown(result, writing) if is_media(piece)]
    if result.is_error:
        for piece in media:
            note_unsupported(result, writing, piece, TITLE)
        return {"state": "output-error", "errorText": "\n".join(texts)}
    if not media:
        return {"state": "output-available", "output": "\n".join(texts)}
    value = [part for piece in shown(result, writing) if (part := _OUTPUT.write_one(piece)) is not None]
    return {"state": "output-available", "output": {"type": "content", "value": value}}


CODEC: Final = EntryCodec(name=NAME, read=_read, write=_write, join=_join)


_ROLES: Final = frozenset({"system", "user", "assistant"})


def _is_message(entry: Mapping[str, Any]) -> bool:
    parts = objects_of(entry.get("parts"))
    typed = all(isinstance(part.get("type"), str) for part in parts)
    return text_of(entry.get("role")) in _ROLES and isinstance(entry.get("parts"), list) and typed


def _open(value: object, session: str | None) -> EntryList | None:  # noqa: ARG001 - one list is one conversation
    rest: dict[str, Any] = {}
    if isinstance(value, dict):
        whole = object_of(cast("object", value))
        rest = {"body": {key: item for key, item in whole.items() if key != "messages"}}
        value = cast("object", whole.get("messages"))
    entries = list_of(value)
    if not entries or not any(_is_message(entry) for entry in entries):
        return None
    return EntryList(entries, rest, id=text_of(object_of(rest.get("body")).get("id")))


def _close(entries: list[Entry], rest: Mapping[str, Any], draft: Draft) -> object:  # noqa: ARG001
    body = rest.get("body")
    return {"messages": entries, **cast("Mapping[str, Any]", body)} if isinstance(body, Mapping) else entries


FRAMEWORK: Final = Framework(
    codec=CODEC, title=TITLE, open=_open, close=_close, complete=add_ids, file_name="ui-messages.json"
)
FORMAT: Final = framework_format(
    FRAMEWORK,
    give=give_json,
    samples=read_samples(__package__),
    title="Vercel AI SDK (UIMessage)",
    source="ai 6.0.326 and 7.0.169, run against a scripted model",
)
