"""How clouds take requests of the Messages protocol: Bedrock InvokeModel, and rawPredict of Vertex AI.

Facts this file relies on:
- Bedrock: `POST /model/{model}/invoke` and `/invoke-with-response-stream`. The body has `anthropic_version` and
  `anthropic_beta`, a list, and neither `model` nor `stream`. A stream is an AWS event stream whose `chunk`s have the
  events as base64. An error is one of AWS: `{"message"}`, its type in a header.
                                                                   (anthropic 2.8.0: lib/bedrock; botocore 1.44.0)
- Vertex: `.../publishers/anthropic/models/{model}:rawPredict` and `:streamRawPredict`. The body has
  `anthropic_version` and no `model`. Betas are in their header; Claude Code writes them into the body, and both are
  read. A stream is SSE.                              (anthropic 2.8.0: lib/vertex; Claude Code documentation: gateways)
- The body names the version "2026-10-21"; the older one is `bedrock-2023-05-31` or `vertex-2023-10-16`.
                                                                          (anthropic 2.8.0, and the majors before it)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from segue.protocols.anthropic_messages.errors import encode_error
from segue.protocols.kit.codec import ErrorReply, Fault
from segue.protocols.kit.json_values import object_of
from segue.protocols.kit.transports import Transport

_VERSION_HEADER: Final = "anthropic-version"
_VERSION_KEY: Final = "anthropic_version"
_BETAS: Final = {"anthropic-beta": "anthropic_beta"}
_VERTEX_MODEL: Final = (
    "/v1/projects/{GOOGLE_CLOUD_PROJECT}/locations/{GOOGLE_CLOUD_LOCATION}/publishers/anthropic/models/{model}"
)
_READ: Final = "2026-11-17"

_AWS_ERRORS: Final[Mapping[int, tuple[int, str]]] = {
    # botocore 1.44.0 service model: errors of InvokeModel, with their statuses
    401: (403, "AccessDeniedException"),
    402: (400, "ServiceQuotaExceededException"),
    403: (403, "AccessDeniedException"),
    404: (404, "ResourceNotFoundException"),
    408: (408, "ModelTimeoutException"),
    429: (429, "ThrottlingException"),
    500: (500, "InternalServerException"),
    502: (424, "ModelErrorException"),
    503: (503, "ServiceUnavailableException"),
    529: (503, "ServiceUnavailableException"),
}
"""The status and the type of an error at Bedrock, by the status of the same error at Anthropic."""


def _encode_aws_error(fault: Fault) -> ErrorReply:
    status, headers, body = encode_error(fault)
    status, kind = _AWS_ERRORS.get(status, (status, "ValidationException"))
    message = object_of(body["error"])["message"]
    return ErrorReply(status, {**headers, "x-amzn-errortype": kind}, {"message": message})


TRANSPORTS: Final[Mapping[str, Transport]] = {
    "bedrock-invoke": Transport(
        paths=("/model/{model}/invoke", "/model/{model}/invoke-with-response-stream"),
        framing="aws-chunks",
        removed=frozenset({"model", "stream"}),
        version_key=_VERSION_KEY,
        version_header=_VERSION_HEADER,
        versions={"2023-06-01": "bedrock-2023-05-31"},
        lists=_BETAS,
        moves_lists=True,
        encode_error=_encode_aws_error,
        source="anthropic 2.8.0: lib/bedrock; botocore 1.44.0: bedrock-runtime",
        read=_READ,
    ),
    "vertex-raw-predict": Transport(
        paths=(f"{_VERTEX_MODEL}:rawPredict", f"{_VERTEX_MODEL}:streamRawPredict"),
        removed=frozenset({"model"}),
        version_key=_VERSION_KEY,
        version_header=_VERSION_HEADER,
        versions={"2023-06-01": "vertex-2023-10-16"},
        lists=_BETAS,
        moves_lists=False,
        source="anthropic 2.8.0: lib/vertex; Claude Code documentation: gateways",
        read=_READ,
    ),
}
