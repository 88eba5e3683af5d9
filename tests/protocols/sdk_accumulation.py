"""What the official SDKs make of a stream: each function takes the frames of a stream and gives a plain value.

Where an SDK has no accumulation (google-genai, mistralai, cohere, ollama, botocore), its types read every frame, and
the frames are folded as their documentation shows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, cast

from segue.framing import frame_encoder

Frames = Sequence[Any]


def accumulate_anthropic(frames: Frames) -> Any:
    from anthropic._models import construct_type_unchecked
    from anthropic.lib.streaming._messages import accumulate_event
    from anthropic.types import RawMessageStreamEvent

    snapshot: Any = None
    buffers: dict[int, bytes] = {}
    for frame in frames:
        if frame.get("type") in ("ping", "error"):
            continue
        event: Any = construct_type_unchecked(type_=cast("Any", RawMessageStreamEvent), value=frame)
        snapshot = accumulate_event(event=event, current_snapshot=snapshot, json_bufs=buffers)
    return None if snapshot is None else snapshot.to_dict()


def accumulate_chat(frames: Frames) -> Any:
    from openai.lib.streaming.chat import ChatCompletionStreamState
    from openai.types.chat import ChatCompletionChunk

    state: Any = ChatCompletionStreamState()
    for frame in frames:
        if isinstance(frame, Mapping) and "error" not in frame:
            for choice in frame.get("choices") or ():  # vendors repeat the role, and the SDK joins it
                if state._ChatCompletionStreamState__current_completion_snapshot and "delta" in choice:
                    choice["delta"] = {key: item for key, item in choice["delta"].items() if key != "role"}
            state.handle_chunk(ChatCompletionChunk.construct(**_built(ChatCompletionChunk, frame)))
    body = state.current_completion_snapshot.to_dict()
    for choice in body["choices"]:
        details = choice["message"].get("reasoning_details") or ()
        for entry in details:  # vendors repeat these keys, too
            for key in ("id", "format", "type"):
                entry.pop(key, None)
        text = "".join(entry.get("text") or "" for entry in details)
        if choice["message"].get("reasoning_content") == text:  # repeats the details
            del choice["message"]["reasoning_content"]
    return body


def _built(kind: Any, frame: Any) -> Any:
    from openai._models import construct_type

    built: Any = construct_type(value=frame, type_=kind)
    return dict(built) | (built.model_extra or {})


def accumulate_responses(frames: Frames) -> Any:
    from openai._models import construct_type
    from openai._types import omit
    from openai.lib.streaming.responses._responses import ResponseStreamState
    from openai.types.responses import ResponseStreamEvent

    state: Any = ResponseStreamState(input_tools=omit, text_format=omit)
    for frame in frames:
        if frame.get("type") not in ("keepalive", "error"):
            state.handle_event(construct_type(value=frame, type_=ResponseStreamEvent))
    if state._completed_response is not None:
        return state._completed_response.to_dict()
    # The SDK keeps completed replies only; of an incomplete one it gives the last event.
    last: Any = construct_type(value=frames[-1], type_=ResponseStreamEvent)
    return last.response.to_dict() if hasattr(last, "response") else None


def accumulate_google(frames: Frames) -> Any:
    from google.genai.types import GenerateContentResponse

    parts: list[Any] = []
    found: dict[str, Any] = {"parts": parts}
    for frame in frames:
        reply = GenerateContentResponse.model_validate(typed_by_google(frame))
        found |= reply.model_dump(exclude_none=True, exclude={"candidates"})
        for candidate in (reply.candidates or ())[:1]:
            found |= candidate.model_dump(exclude_none=True, exclude={"content"})
            for part in (candidate.content.parts if candidate.content else None) or ():
                _add_part(parts, part.model_dump(exclude_none=True))
    return found


def typed_by_google(frame: Any) -> Any:
    """Return a frame without what its types lack: google-genai 3.1.0 removes it when it reads a reply.

    Gemini's recorded replies name the tier in `usageMetadata.serviceTier` (2026).
    """
    typed = {key: value for key, value in frame.items() if key != "error"}
    if "usageMetadata" in typed:
        usage = typed["usageMetadata"]
        typed["usageMetadata"] = {key: value for key, value in usage.items() if key != "serviceTier"}
    return typed


def _add_part(parts: list[Any], part: Any) -> None:
    """Join adjacent texts of one kind, as users of the SDK do; signatures in their order."""
    last = parts[-1] if parts else None
    if part.get("text") == "" and not part.get("thought_signature"):
        return
    if last is not None and "text" in part and "text" in last and part.get("thought") == last.get("thought"):
        last["text"] += part["text"]
        if "thought_signature" in part:
            last.setdefault("signatures", []).append(part["thought_signature"])
        return
    if "text" in part and "thought_signature" in part:
        part = {**part, "signatures": [part.pop("thought_signature")]}
    parts.append(part)


def accumulate_ollama(frames: Frames) -> Any:
    from ollama import ChatResponse

    found: dict[str, Any] = {"content": "", "thinking": "", "calls": []}
    for frame in frames:
        if "error" in frame:
            continue
        line = ChatResponse(**frame)
        found["content"] += line.message.content or ""
        found["thinking"] += line.message.thinking or ""
        found["calls"] += [call.model_dump() for call in line.message.tool_calls or ()]
        found |= {key: value for key, value in line.model_dump().items() if key != "message"}
    return found


def accumulate_bedrock(frames: Frames) -> Any:
    blocks: dict[int, dict[str, Any]] = {}
    found: dict[str, Any] = {"blocks": blocks}
    for frame in _events_of_botocore(frames):
        for kind, event in frame.items():
            if kind == "contentBlockStart":
                blocks[event["contentBlockIndex"]] = {"start": event["start"]}
            elif kind == "contentBlockDelta":
                _join(blocks.setdefault(event["contentBlockIndex"], {}), event["delta"])
            elif kind in ("messageStop", "metadata"):
                found |= event
    return {**found, "blocks": [blocks[at] for at in sorted(blocks)]}


def _events_of_botocore(frames: Frames) -> list[Any]:
    """Decode the bytes of the stream with botocore, by its service model."""
    from botocore.eventstream import EventStreamBuffer
    from botocore.parsers import EventStreamJSONParser

    buffer = EventStreamBuffer()
    buffer.add_data(frames_as_bytes("aws-event-stream", frames))
    shape = _converse_stream_shape()
    return [EventStreamJSONParser().parse(event.to_response_dict(), shape) for event in buffer]


@lru_cache
def _converse_stream_shape() -> Any:
    import botocore.session

    return botocore.session.get_session().get_service_model("bedrock-runtime").shape_for("ConverseStreamOutput")


def _join(known: dict[str, Any], delta: Any) -> None:
    """Add a delta: texts and bytes are joined, lists extended."""
    for key, value in delta.items():
        if key == "citation":
            known.setdefault("citations", []).append(value)
        elif isinstance(value, dict):
            _join(known.setdefault(key, {}), value)
        else:
            known[key] = known[key] + value if key in known else value


def accumulate_mistral(frames: Frames) -> Any:
    from mistralai.client.models import CompletionChunk

    found: dict[str, Any] = {"content": [], "calls": []}
    for frame in frames:
        if not isinstance(frame, Mapping) or "choices" not in frame:
            continue
        chunk = CompletionChunk.model_validate(frame).model_dump(exclude_none=True)
        found |= {key: value for key, value in chunk.items() if key != "choices"}
        for choice in chunk["choices"][:1]:
            found |= {key: value for key, value in choice.items() if key != "delta"}
            content = choice["delta"].get("content") or []
            for piece in [{"type": "text", "text": content}] if isinstance(content, str) else content:
                _add_chunk(found["content"], piece)
            found["calls"] += choice["delta"].get("tool_calls") or []
    return found


def _add_chunk(chunks: list[Any], piece: Any) -> None:
    if chunks and chunks[-1]["type"] == piece["type"] == "text":
        chunks[-1]["text"] += piece["text"]
    elif chunks and chunks[-1]["type"] == piece["type"] == "thinking":
        chunks[-1]["thinking"] += "".join(part.get("text", "") for part in piece["thinking"])
        chunks[-1] |= {key: value for key, value in piece.items() if key not in ("type", "thinking")}
    elif piece["type"] == "thinking":
        chunks.append({**piece, "thinking": "".join(part.get("text", "") for part in piece["thinking"])})
    elif piece.get("text") != "":
        chunks.append(dict(piece))


def accumulate_cohere(frames: Frames) -> Any:
    from cohere.core.unchecked_base_model import construct_type
    from cohere.v2.types import V2ChatStreamResponse

    found: dict[str, Any] = {"text": "", "thinking": "", "calls": {}, "citations": []}
    for frame in frames:
        event: Any = construct_type(type_=cast("Any", V2ChatStreamResponse), object_=dict(frame))
        message: Any = getattr(getattr(event, "delta", None), "message", None)
        match event.type:
            case "message-start":
                found["id"] = event.id
            case "tool-plan-delta":
                found["text"] += message.tool_plan
            case "content-delta":
                found["text"] += message.content.text or ""
                found["thinking"] += message.content.thinking or ""
            case "tool-call-start":
                call = message.tool_calls
                found["calls"][event.index] = [call.id, call.function.name, call.function.arguments]
            case "tool-call-delta":
                found["calls"][event.index][2] += message.tool_calls.function.arguments
            case "citation-start":
                found["citations"].append(message.citations.dict())
            case "message-end":
                found["end"] = event.delta.dict()
            case _:
                pass
    return found


def accumulate_interactions(frames: Frames) -> Any:
    """Put the steps together as google-genai's types give them; the SDK itself has no function for it."""
    from google.genai.interactions import InteractionSSEEvent
    from pydantic import TypeAdapter

    events: Any = TypeAdapter(InteractionSSEEvent)
    found: dict[str, Any] = {"steps": []}
    for frame in frames:
        if not isinstance(frame, Mapping):
            assert frame == "[DONE]"
            continue
        event = events.validate_python(dict(frame))
        assert not getattr(event, "is_unknown", False), frame
        match event.event_type:
            case "interaction.created" | "interaction.completed":
                found |= event.interaction.model_dump(exclude_none=True)
            case "step.start":
                assert event.index == len(found["steps"])
                found["steps"].append({**event.step.model_dump(exclude_none=True), "json": ""})
            case "step.delta":
                assert not getattr(event.delta, "is_unknown", False), frame
                _add_delta(found["steps"][event.index], event.delta.model_dump(exclude_none=True))
            case "step.stop":
                step = found["steps"][event.index]
                text = step.pop("json")
                if text:
                    step["arguments"] = json.loads(text)
            case _:
                pass
    return found


def _add_delta(step: dict[str, Any], delta: dict[str, Any]) -> None:
    match delta["type"]:
        case "text":
            contents = step.setdefault("content", [])
            if contents and contents[-1]["type"] == "text":
                contents[-1]["text"] += delta["text"]
            else:
                contents.append(delta)
        case "text_annotation_delta":
            step["content"][-1].setdefault("annotations", []).extend(delta["annotations"])
        case "thought_summary":
            summary = step.setdefault("summary", [])
            if summary:
                summary[-1]["text"] += delta["content"]["text"]
            else:
                summary.append(delta["content"])
        case "thought_signature":
            step["signature"] = delta["signature"]
        case "arguments_delta":
            step["json"] += delta["arguments"]
        case "image" | "audio" | "video" | "document":
            step.setdefault("content", []).append(delta)
        case _:
            step |= {key: value for key, value in delta.items() if key != "type"}


ACCUMULATIONS: Final[dict[str, Callable[[Frames], Any]]] = {
    "anthropic-messages": accumulate_anthropic,
    "openai-chat": accumulate_chat,
    "openai-responses": accumulate_responses,
    "google-genai": accumulate_google,
    "ollama-chat": accumulate_ollama,
    "bedrock-converse": accumulate_bedrock,
    "mistral-chat": accumulate_mistral,
    "cohere-chat": accumulate_cohere,
    "google-interactions": accumulate_interactions,
}


def filled(value: Any) -> Any:
    """Give a value without keys that are null or empty: for an SDK they are the same as absent ones."""
    if isinstance(value, dict):
        inner = {key: filled(item) for key, item in value.items()}
        return {key: item for key, item in inner.items() if item not in (None, "", [], {})}
    return [filled(item) for item in value] if isinstance(value, list) else value


def frames_as_bytes(framing: str, frames: Frames) -> bytes:
    """Write frames as bytes."""
    encoder = frame_encoder(framing)
    return b"".join(map(encoder.feed, frames)) + encoder.finish()
