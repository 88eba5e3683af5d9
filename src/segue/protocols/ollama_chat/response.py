"""An Ollama reply, both ways: content, counts, stop reason.

The difference between the default format of a reply and the received body is in the message's `extra` under
`reply`. Only `encode_response` reads it; a request never contains it.

The answers of `ollama-chat` about models: `/api/tags` lists them, `/api/show` describes one.

Clients read the abilities from `capabilities`, and the window from `model_info` under the name of the architecture.
                                            (ollama 0.6.3; microsoft/vscode-copilot-chat: ollamaProvider.ts, 2026-11-15)

Error bodies of Ollama: `{"error": "..."}`, with an HTTP status before a stream begins, as a line within a stream.

Facts:
- {model, created_at, message, done, done_reason, durations in nanoseconds, prompt_eval_count, eval_count, logprobs};
  counts of zero are omitted.                                          (ollama server source @fb30760, read 2026-11-15)
- There is no stop reason for tool calls; `load` and `unload` answer a request without messages; old servers send no
  reason, and some replies no message.                                                  (the same; ollama #1407)
- There are no counts of a cache: `prompt_eval_count` is the whole prompt.                                (the same)
- The error is a text, without code and type.                            (ollama server source @fb30760, 2026-11-15)
- Gateways in front of it respond in OpenAI's format, with a text, or with an HTML page.             (litellm #6808)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final

from msgspec.structs import replace

from segue.conversation.content import AssistantContent
from segue.conversation.messages import AssistantMessage, Diagnostic, StopReason, Usage
from segue.errors import DecodeError
from segue.models.model import Model
from segue.models.origin import new_assistant_message
from segue.models.price import find_cost
from segue.protocols.kit.codec import Endpoint, ErrorReply, Fault, WireError
from segue.protocols.kit.error_bodies import describe_error, find_error_object
from segue.protocols.kit.error_writing import STATUSES, error_headers, error_message, find_status
from segue.protocols.kit.json_values import Block, Wire
from segue.protocols.kit.model_lists import ModelList
from segue.protocols.kit.reading import expect_object, number_of, parse_body, text_of
from segue.protocols.kit.replies import keep_reply, rename_calls, restore_reply
from segue.protocols.ollama_chat.rules import PROTOCOL
from segue.protocols.ollama_chat.turns import decode_assistant, encode_assistant

_UNKNOWN_DATE: Final = "1970-01-01T00:00:00Z"
_ARCHITECTURE: Final = "segue"


def _details() -> Wire:
    return {
        "parent_model": "",
        "format": "",
        "family": _ARCHITECTURE,
        "families": [_ARCHITECTURE],
        "parameter_size": "",
        "quantization_level": "",
    }


def _one(model: Model) -> Wire:
    abilities = ["completion", "tools"]
    abilities += ["vision"] if "image" in model.input else []
    abilities += ["thinking"] if model.reasoning else []
    about: Wire = {"general.architecture": _ARCHITECTURE, "general.basename": model.name or model.id}
    if model.context_window:
        about[f"{_ARCHITECTURE}.context_length"] = model.context_window
    return {
        "modified_at": _UNKNOWN_DATE,
        "template": "",
        "parameters": "",
        "details": _details(),
        "model_info": about,
        "capabilities": abilities,
    }


def _entry(model: Model) -> Wire:
    return {
        "name": model.id,
        "model": model.id,
        "modified_at": _UNKNOWN_DATE,
        "size": 0,
        "digest": sha256(model.id.encode()).hexdigest(),
        "details": _details(),
    }


def _every(models: Sequence[Model]) -> Wire:
    return {"models": [_entry(model) for model in models]}


MODEL_LIST: Final = ModelList(every=_every, one=_one)


def decode_error(body: object, status: int | None) -> WireError:
    """Read an error body, parsed or not, or the error line of a stream."""
    error = find_error_object(parse_body(body), status)
    if isinstance(error, WireError):
        return error
    return describe_error(error, status, text_of(error.get("message")) or text_of(error.get("detail")) or "")


# ollama server source @fb30760: routes.go; it has the common statuses, no types and no codes; read 2026-11-15
_OVERFLOW: Final = "the request ({used} tokens) exceeds the available context size ({limit} tokens)"
_UNKNOWN_OVERFLOW: Final = "the request exceeds the available context size"


def encode_error(fault: Fault) -> ErrorReply:
    """Write an error body; it is the error line of a stream, too."""
    status = find_status(STATUSES, fault)
    message = error_message(fault, _OVERFLOW, _UNKNOWN_OVERFLOW)
    return ErrorReply(status, error_headers(fault, status), {"error": message})


STOP_REASONS: Final[Mapping[str, StopReason]] = {
    "stop": StopReason.STOP,
    "length": StopReason.LENGTH,
    "load": StopReason.STOP,
    "unload": StopReason.STOP,
    "": StopReason.STOP,
}
UNKNOWN_STOP: Final = StopReason.STOP
"""For unknown reasons: they come with a complete reply."""
_WIRE_REASONS: Final[Mapping[StopReason, str]] = {
    StopReason.STOP: "stop",
    StopReason.TOOL_USE: "stop",
    StopReason.LENGTH: "length",
}
_MESSAGE: Final = "message"


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_response(body: Block, endpoint: Endpoint, tool_names: Mapping[str, str]) -> AssistantMessage:
    """Read a whole reply; an error body becomes a failed message.

    Raises:
        DecodeError: it has neither a message nor an error, or a value of an unexpected type.
    """
    if _MESSAGE not in body and "error" in body:
        return finish_response(body, (), endpoint, error=error_text(body))
    if _MESSAGE not in body and "done" not in body:
        raise DecodeError("the reply has no `message`; pass the body of a chat reply", path=(_MESSAGE,))
    received = body.get(_MESSAGE)
    if received is None:
        return finish_response(body, (), endpoint)
    notes: list[Diagnostic] = []
    pieces = decode_assistant(expect_object(received, (_MESSAGE,)), (_MESSAGE,), notes, reply=True)
    message = finish_response(body, pieces, endpoint, notes=notes)
    return replace(message, content=rename_calls(message.content, tool_names)) if tool_names else message


def finish_response(
    body: Block,
    pieces: tuple[AssistantContent, ...],
    endpoint: Endpoint,
    *,
    notes: Sequence[Diagnostic] = (),
    error: str | None = None,
) -> AssistantMessage:
    """Make a message of its content and of the whole body, which a stream puts together from its lines."""
    raw = text_of(body.get("done_reason"))
    if error is None and body.get("done") is False:
        error = "the reply was not finished"
    message = replace(
        new_assistant_message(endpoint.model, content=pieces),
        protocol=PROTOCOL,
        response_model=text_of(body.get("model")),
        usage=decode_usage(body, endpoint),
        stop_reason=stop_reason_of(raw, pieces) if error is None else StopReason.ERROR,
        raw_stop_reason=raw,
        error_message=error,
        diagnostics=tuple(notes),
    )
    return replace(message, extra=keep_reply(PROTOCOL, default_response(message, endpoint), body))


def stop_reason_of(raw: str | None, pieces: Sequence[AssistantContent]) -> StopReason:
    """Map the stop reason of a complete reply; a reply with calls waits for their results."""
    stop = StopReason.STOP if raw is None else STOP_REASONS.get(raw, UNKNOWN_STOP)
    has_calls = any(piece.kind == "toolCall" for piece in pieces)
    return StopReason.TOOL_USE if has_calls and stop == StopReason.STOP else stop


def error_text(body: Block) -> str:
    """Return the message of an error body, or of the error line of a stream."""
    return decode_error(body, None).message or "the server reported an error"


def decode_usage(body: Block, endpoint: Endpoint) -> Usage | None:
    """Read the counts, and compute the cost; None when there are none."""
    if "prompt_eval_count" not in body and "eval_count" not in body:
        return None
    read, written = number_of(body.get("prompt_eval_count")), number_of(body.get("eval_count"))
    usage = Usage(input=read, output=written, total_tokens=read + written)
    return replace(usage, cost=find_cost(endpoint.model.cost, usage))


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_response(message: AssistantMessage, endpoint: Endpoint) -> Wire:
    """Write a whole reply; what `decode_response` read is written as it was received.

    Raises:
        EncodeError: a native block of another protocol.
    """
    return restore_reply(PROTOCOL, default_response(message, endpoint), message.extra)


def default_response(message: AssistantMessage, endpoint: Endpoint) -> Wire:
    """Write a whole reply in the default format.

    Raises:
        EncodeError: a native block of another protocol.
    """
    wire: Wire = {
        "model": message.response_model or message.model,
        _MESSAGE: encode_assistant(message.content, ("content",), ids=endpoint.dialect.call_ids),
        "done": True,
    }
    raw = message.raw_stop_reason
    reason = raw if raw in STOP_REASONS else _WIRE_REASONS.get(message.stop_reason)
    if reason is not None:
        wire["done_reason"] = reason
    usage = message.usage
    if usage is not None:
        counts = {
            "prompt_eval_count": usage.input + usage.cache_read + usage.cache_write,
            "eval_count": usage.output,
        }
        wire.update((key, count) for key, count in counts.items() if count)
    return wire
