"""Encode and decode the request and response bodies of each protocol, without projection.

Use it to import other programs' requests, to write a reply in a provider's format, or to check a body. To send a stored
conversation to a model, use `segue.prepare`: it projects the conversation for that model first.
"""

from segue.calls.reading import Call, read_call
from segue.calls.replies import (
    encode_error,
    encode_model,
    encode_model_list,
    encode_token_count,
    stream_encoder,
)
from segue.protocols.api import (
    decode_error,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    stream_decoder,
)
from segue.protocols.detection import detect_protocol
from segue.protocols.kit.codec import ErrorReply, Violation, WireError
from segue.protocols.kit.stream_writing import StreamEncoder
from segue.protocols.kit.streaming import StreamDecoder
from segue.requests.check import check

__all__ = [  # noqa: RUF022 - verbs first
    "detect_protocol",
    "decode_request",
    "encode_request",
    "decode_response",
    "encode_response",
    "stream_decoder",
    "stream_encoder",
    "decode_error",
    "encode_error",
    "read_call",
    "encode_model",
    "encode_model_list",
    "encode_token_count",
    "check",
    "Call",
    "StreamDecoder",
    "StreamEncoder",
    "ErrorReply",
    "Violation",
    "WireError",
]
