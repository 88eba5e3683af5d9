"""What the official SDKs make of a stream: each function takes the frames of a stream and gives a plain value.

Where an SDK has no accumulation (google-genai, mistralai, cohere, ollama, botocore), its types read every frame, and the
frames are folded as their documentation shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

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
        event: Any = construct_type_unchecked(type_=RawMessageStreamEvent, value=frame)
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
    from openai._types import NOT_GIVEN
    from openai.lib.streaming.responses._responses import ResponseStreamState
    from openai.types.responses import ResponseStreamEvent

    state: Any = ResponseStreamState(input_tools=NOT_GIVEN, text_format=NOT_GIVEN)
    for frame in frames:
        if frame.get("type") not in ("keepalive", "error"):
            state.handle_event(construct_type(value=frame, type_=ResponseStreamEvent))
    return None if state._completed_response is None else state._completed_response.to_dict()


def accumulate_google(frames: Frames) -> Any:
    from google.genai.types import GenerateContentResponse

    parts: list[Any] = []
    found: dict[str, Any] = {"parts": parts}
    for frame in frames:
        reply = GenerateContentResponse.model_validate(_camel(frame))
        found |= reply.model_dump(exclude_none=True, exclude={"candidates"})
        for candidate in (reply.candidates or ())[:1]:
            found |= candidate.model_dump(exclude_none=True, exclude={"content"})
            for part in (candidate.content.parts if candidate.content else None) or ():
                _add_part(parts, part.model_dump(exclude_none=True))
    return found


def _camel(frame: Any) -> Any:
    return {key: value for key, value in frame.items() if key != "error"}


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
        found |= {key: value for key, value in line.model_dump().items() if key not in ("message",)}
    return found


ACCUMULATIONS: Final[dict[str, Callable[[Frames], Any]]] = {
    "anthropic-messages": accumulate_anthropic,
    "openai-chat": accumulate_chat,
    "openai-responses": accumulate_responses,
    "google-genai": accumulate_google,
    "ollama-chat": accumulate_ollama,
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
