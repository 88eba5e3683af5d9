"""Write streams, errors, lists of models and token counts in the format of any protocol.

They are for programs that serve clients: gateways, emulators, servers of one's own. An error is written so that
`classify` gives the same kind for what was written. The message of a failure comes from another provider, and its
wording may be evidence of another kind where the protocol has no code for the kind; then a plain sentence replaces it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from msgspec.structs import replace

from segue.conversation.context import Options
from segue.errors import UnknownProtocol
from segue.failures.classify import classify
from segue.failures.failure import Failure, FailureKind
from segue.models.catalogue import get_model
from segue.models.model import Model
from segue.protocols.api import find_endpoint
from segue.protocols.kit.codec import Endpoint, ErrorReply
from segue.protocols.kit.model_lists import ModelList
from segue.protocols.kit.protocol import Protocol
from segue.protocols.kit.stream_writing import StreamEncoder
from segue.protocols.registry import get_protocol

_SENTENCES: Final[dict[str, str]] = {
    FailureKind.OVERFLOW: "prompt is too long",
    FailureKind.PAYLOAD_TOO_LARGE: "Request exceeds the maximum size.",
    FailureKind.RATE_LIMIT: "Rate limit reached; try again later.",
    FailureKind.QUOTA: "You exceeded your current quota, please check your plan and billing details.",
    FailureKind.AUTH: "Invalid API key.",
    FailureKind.OPAQUE_REJECTED: "Invalid `signature` in `thinking` block",
    FailureKind.INVALID_HISTORY: "messages: roles must alternate between user and assistant",
    FailureKind.INVALID_REQUEST: "The request is invalid.",
    FailureKind.NOT_FOUND: "The model does not exist.",
    FailureKind.OVERLOADED: "Overloaded; try again later.",
    FailureKind.SERVER: "Internal server error.",
    FailureKind.NETWORK: "Connection error.",
    FailureKind.REFUSED: "The request was blocked by the content policy.",
    FailureKind.UNKNOWN: "The request failed.",
}
"""A message for each kind, in words that `classify` recognises where neither a code nor a status decides."""
_UNAUTHORIZED: Final = 401
_DENIED: Final = "Permission denied."
"""The same where a key is not known to be wrong: it may lack a right, or be that of another place."""


def stream_encoder(
    *, protocol: str | None = None, model: Model | str | None = None, options: Options | None = None
) -> StreamEncoder:
    """Make an encoder for one streamed reply.

    `feed(event)`, `heartbeat()`, `fail(failure)` and `finish()` each give a list of frames, which the encoders of
    `segue.framing` write as bytes. `options` are those of the client's request (`decode_request(...).options`); without
    them everything that the protocol can carry is written, such as token counts.

    The reply has the id of the `StartEvent` throughout. If it has none, pass one with an id of your own first: ids that
    are made up here are the same in every reply.

    Raises:
        UnknownProtocol: neither a protocol nor a model is given, or the protocol has no stream.
    """
    endpoint = find_endpoint(protocol, model)
    record = get_protocol(endpoint.model.protocol)
    if record.stream_encoder is None:
        raise UnknownProtocol(f"{record.name} has no stream to write; use encode_response()", name=record.name)
    return record.stream_encoder(endpoint, options, lambda error: _for_stream(classify(error), record, endpoint))


def encode_error(failure: Failure, *, protocol: str, transport: str | None = None) -> ErrorReply:
    """Write a failure as a provider of this protocol, or with this transport, would: HTTP status, headers and body.

    Statuses 429, 503 and 529 have `retry-after`: some clients give up without it, as they should where a quota is used
    up; that has `x-should-retry: false`. An overflow has the words that
    clients of the protocol recognise.

    Raises:
        UnknownProtocol: the protocol has no errors.
    """
    record = get_protocol(protocol)
    if record.encode_error is None:
        raise UnknownProtocol(f"{record.name} has no errors to write; send the message as text", name=record.name)
    encode = record.encode_error
    if transport is not None and (other := record.transports[transport].encode_error) is not None:
        encode = other

    def is_recognised(written: Failure) -> bool:
        status, headers, body = encode(written)
        return _is_same(classify(body, status=status, headers=headers).kind, failure.kind)

    return encode(_presentable(failure, is_recognised))


def encode_model_list(models: Iterable[Model | str], *, protocol: str) -> dict[str, Any]:
    """Write the list of models that a client of this protocol asks for; what it names has to be what it may send.

    Raises:
        UnknownProtocol: the protocol has no list of models.
        UnknownModel: a name is not in the catalogue; pass a `Model`.
    """
    return _model_list(protocol).every([get_model(model) for model in models])


def encode_model(model: Model | str, *, protocol: str) -> dict[str, Any]:
    """Write the answer to a client of this protocol that asks about one model.

    Raises:
        UnknownProtocol: the protocol has no list of models.
        UnknownModel: the name is not in the catalogue; pass a `Model`.
    """
    return _model_list(protocol).one(get_model(model))


def _model_list(protocol: str) -> ModelList:
    record = get_protocol(protocol)
    if record.model_list is None:
        raise UnknownProtocol(f"{record.name} has no list of models; do not answer such a request", name=record.name)
    return record.model_list


def encode_token_count(tokens: int, *, protocol: str) -> dict[str, Any]:
    """Write the answer to a client of this protocol that asks how many tokens a request has.

    Raises:
        UnknownProtocol: the protocol has no endpoint that counts tokens.
    """
    record = get_protocol(protocol)
    if record.token_count is None:
        raise UnknownProtocol(f"{record.name} does not count tokens; do not answer such a request", name=record.name)
    return record.token_count.encode(tokens)


def _for_stream(failure: Failure, record: Protocol, endpoint: Endpoint) -> Failure:
    """Give what a stream says about a failure; its error frame has less evidence than a body with its status."""
    make = record.stream_encoder
    if make is None:
        return failure

    def is_recognised(written: Failure) -> bool:
        decoder = record.stream_decoder(endpoint, {})
        for frame in make(endpoint, None, lambda _: written).fail(written):
            decoder.feed(frame)
        decoder.finish()
        return _is_same(classify(decoder.message).kind, failure.kind)

    return _presentable(failure, is_recognised)


def _is_same(found: FailureKind, meant: FailureKind) -> bool:
    """Whether a client finds the kind that was meant; a failure of no known kind is written as one of the server."""
    return found == meant or (meant == FailureKind.UNKNOWN and found == FailureKind.SERVER)


def _presentable(failure: Failure, is_recognised: Callable[[Failure], bool]) -> Failure:
    """Give a failure whose message is no evidence of another kind.

    The first that is recognised: the given message, the sentence of the kind before it, the sentence alone.
    """
    sentence = _SENTENCES.get(failure.kind, _SENTENCES[FailureKind.UNKNOWN])
    if failure.kind == FailureKind.AUTH and failure.status != _UNAUTHORIZED:
        sentence = _DENIED
    given = failure.message.strip()
    for message in (given, f"{sentence} ({given})") if given else ():
        written = replace(failure, message=message)
        if is_recognised(written):
            return written
    return replace(failure, message=sentence)
