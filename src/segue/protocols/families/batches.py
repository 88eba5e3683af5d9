"""Forms of batch files that several wires share, and the result lines of every provider.

A result has the reply or the failure of one request.

Facts (facts of each provider as next to its form; recorded replies of five of them, August 2026):
- OpenAI and Mistral: `response.status_code` and `response.body`; failures are in `error`, or the status is not 2xx;
  at OpenAI they have their own file. An expired request has the code `batch_expired`.
- Anthropic: `result.type` is `succeeded`, `errored`, `canceled` or `expired`.
- Gemini: `{key, response}` or `{key, error}` in a file; inline results are in `response.inlinedResponses` of the job.
- Vertex: the request line with `response` and `status`, an empty text on success. Bedrock: the request line with
  `modelOutput`, or `error` with `errorCode` and `errorMessage`. xAI: `batch_result.response.chat_get_completion`, a
  reply of chat completions also for other requests.
- Replies do not say reliably that they were part of a batch: only Anthropic's `usage.service_tier` is `batch`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, cast

from segue.protocols.kit.batch_form import MEGABYTE, PLACE, BatchForm, Envelope, Fields, Outcome, ResultLine

LABEL: Final = "segue_id"
"""The label of a Vertex request that has its id."""


def _object(value: object) -> Fields:
    return cast("Fields", value) if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


_EXPIRED: Final = frozenset({"batch_expired", "expired"})
_CANCELED: Final = frozenset({"batch_cancelled", "batch_canceled", "canceled", "cancelled"})


def _outcome(error: Fields) -> Outcome:
    code = str(error.get("code") or error.get("errorCode") or error.get("type") or "").lower()
    return "expired" if code in _EXPIRED else "canceled" if code in _CANCELED else "errored"


def read_http_result(line: Fields) -> ResultLine | None:
    """Read a result of OpenAI, of Azure, of Mistral, or of a vendor with the API of OpenAI."""
    if "custom_id" not in line or not ({"response", "error"} & line.keys()) or "request" in line:
        return None
    name, response, error = _text(line["custom_id"]), _object(line.get("response")), line.get("error")
    status = response.get("status_code")
    status = status if isinstance(status, int) else None
    if error is not None or not response:
        found = _object(error)
        return ResultLine(name, _outcome(found), found or error or "no response", status)
    if status is not None and not 200 <= status < 300:
        return ResultLine(name, "errored", response.get("body"), status)
    return ResultLine(name, "succeeded", response.get("body"), status)


def read_anthropic_result(line: Fields) -> ResultLine | None:
    """Read a result of Anthropic."""
    result = _object(line.get("result"))
    if "custom_id" not in line or "type" not in result:
        return None
    name, kind = _text(line["custom_id"]), result["type"]
    if kind == "succeeded":
        return ResultLine(name, "succeeded", result.get("message"))
    if kind in ("canceled", "expired"):
        return ResultLine(name, kind, f"the request was {kind} before it was answered")
    return ResultLine(name, "errored", result.get("error"))


def read_gemini_result(line: Fields) -> ResultLine | None:
    """Read a result of the Gemini API."""
    metadata = _object(line.get("metadata"))
    if "key" not in line and "metadata" not in line:
        return None
    name = _text(line.get("key")) or _text(metadata.get("key"))
    if "response" in line:
        return ResultLine(name, "succeeded", line["response"])
    error = line.get("error") or line.get("status")
    return None if error is None else _google_error(name, error)


def _google_error(name: str | None, error: object) -> ResultLine:
    fields = _object(error)
    code = fields.get("code")
    # Codes of gRPC are below 100; HTTP has the same meaning in `status`.
    status = code if isinstance(code, int) and code >= 100 else None
    return ResultLine(name, _outcome(fields), {"error": fields} if fields else error, status)


def read_vertex_result(line: Fields) -> ResultLine | None:
    """Read a result of Vertex AI, of Gemini or Claude."""
    if "request" not in line or not ({"response", "status"} & line.keys()) or "key" in line or "metadata" in line:
        return None
    labels = _object(_object(line["request"]).get("labels"))
    name = _text(line.get("custom_id")) or _text(labels.get(LABEL))
    status, response = line.get("status"), line.get("response")
    if isinstance(status, str) and status:
        return ResultLine(name, "errored", status)
    if isinstance(response, dict) and response:
        return ResultLine(name, "succeeded", cast("object", response))
    return _google_error(name, status or "no response")


def read_bedrock_result(line: Fields) -> ResultLine | None:
    """Read a result of Bedrock."""
    if "recordId" not in line or not ({"modelOutput", "error"} & line.keys()):
        return None
    name = _text(line["recordId"])
    if "modelOutput" in line and line.get("error") is None:
        return ResultLine(name, "succeeded", _object(line["modelOutput"]))
    error = _object(line["error"])
    code, message = error.get("errorCode"), error.get("errorMessage")
    status = int(str(code)) if str(code).isdecimal() else None
    return ResultLine(name, _outcome(error), {"message": message, "code": code}, status)


def read_xai_result(line: Fields) -> ResultLine | None:
    """Read a result of xAI."""
    result = _object(line.get("batch_result"))
    if "batch_request_id" not in line or not (result or "error" in line or "error_message" in line):
        return None
    name = _text(line["batch_request_id"])
    response = _object(result.get("response"))
    if response:
        return ResultLine(name, "succeeded", next(iter(response.values())))
    error = result.get("error") or line.get("error") or line.get("error_message") or "no response"
    return ResultLine(name, _outcome(_object(error)), error)


_LISTS: Final = (
    ("response", "inlinedResponses", "inlinedResponses"),
    ("inlinedResponses", "inlinedResponses"),
    ("dest", "inlinedResponses"),
    ("output", "inlinedResponses", "inlinedResponses"),
    ("outputs",),
    ("results",),
)
"""Where documents have their results: jobs of Gemini, pages of xAI, jobs of Mistral with inline results."""


def results_of_document(document: object) -> Iterable[Fields]:
    """Return the results of a document that is not a file of lines: a job with inline results, or a page of results."""
    if isinstance(document, list):
        return _numbered(cast("list[object]", document))
    for path in _LISTS:
        value: object = document
        for step in path:
            value = _object(value).get(step)
        if isinstance(value, list):
            return _numbered(cast("list[object]", value))
    return [_object(cast("object", document))] if isinstance(document, dict) else []


_NAMED: Final = frozenset({"key", "metadata", "custom_id", "recordId", "request"})
"""Keys that tell which request a result belongs to."""


def _numbered(items: list[object]) -> Iterator[Fields]:
    """Yield results; an inline one without metadata gets an empty one, because its place says which request it is."""
    for item in items:
        fields = _object(item)
        is_inline = ("response" in fields or "error" in fields) and _NAMED.isdisjoint(fields)
        yield {**fields, "metadata": {}} if is_inline else fields


# -- forms ------------------------------------------------------------------------------------------------------------

BEDROCK: Final = Envelope(("recordId",), ("modelInput",), is_named=False)
_OPENAI: Final = Envelope(("custom_id",), ("body",), "url", {"method": "POST"})
_XAI: Final = Envelope(("batch_request_id",), ("batch_request", PLACE), is_named=False)


def openai_forms(path: str, xai: str) -> tuple[BatchForm, ...]:
    """Return the forms of a protocol of OpenAI, which other vendors take as well.

    Facts (all read 2026-11-15):
    - OpenAI: `{custom_id, method, url, body}`, one endpoint and one model a file, 50,000 requests, 200 MB.
                                                                     (openai 3.49.0, BatchCreateParams; Batch guide)
    - Azure OpenAI: the same, `url` without `/v1`, `model` is the deployment (newer examples have `/v1`); 100,000
      requests, 200 MB.            (MicrosoftDocs/azure-ai-docs, global-batch-limits.md, batch-rest.md; ruby_llm)
    - xAI: `{batch_request_id, batch_request: {responses | chat_get_completion: body}}`.          (recorded exchanges)
    """
    return (
        BatchForm(
            "openai",
            frozenset({"openai"}),
            _OPENAI,
            read_http_result,
            place=f"/v1{path}",
            for_others=True,
            requests=50_000,
            size=200 * MEGABYTE,
        ),
        BatchForm(
            "azure",
            frozenset({"azure"}),
            _OPENAI,
            read_http_result,
            place=path,
            requests=100_000,
            size=200 * MEGABYTE,
        ),
        BatchForm("xai", frozenset({"xai"}), _XAI, read_xai_result, place=xai),
    )
