"""The batch files of providers: one row of data for each form of request lines.

Facts this file rests on (all read 2026-11-15):
- OpenAI: `{custom_id, method, url, body}`, one endpoint and one model a file, 50,000 requests, 200 MB.
                                                                     (openai 3.49.0, BatchCreateParams; Batch guide)
- Azure OpenAI: the same, `url` without `/v1`, `model` is the deployment (newer examples have `/v1`); 100,000 requests,
  200 MB.                          (MicrosoftDocs/azure-ai-docs, global-batch-limits.md, batch-rest.md; ruby_llm)
- Anthropic: `{custom_id, params}`, elements of `requests` in one POST; 100,000 requests or 256 MB; an id has 1 to 64
  letters, digits, `-` and `_`.                                       (anthropic 2.8.0; API reference; SDK issue 984)
- Gemini API: `{key, request}` in a file of at most 2 GB; the model is in the URL.  (google-genai 3.1.0; Batch guide)
- Vertex AI: `{request}` without an id; `request.labels` come back. A label has up to 63 small letters, digits, `-` and
  `_`. Claude there: `{custom_id, request}` with `anthropic_version`.                    (Google Cloud documentation)
- Bedrock: `{recordId, modelInput}`, one model a job. A Converse job refuses `toolConfig`; InvokeModel takes the model's
  own body. By default 50,000 records and 1 GB a file; an account may have more records, and new models may differ.
                              (botocore 1.44.0; user guide; quotas of the AWS General Reference in a copy of June 2025)
- Mistral: `{custom_id, body}`; 512 MB; 100,000 requests (another page says a million).  (mistralai 3.7.0; Batch guide)
- xAI: `{batch_request_id, batch_request: {responses | chat_get_completion: body}}`.              (recorded exchanges)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Final, NamedTuple, TypeAlias, cast, final

from segue.errors import CorpusError
from segue.models.model import Model

Fields: TypeAlias = dict[str, object]

_MEGABYTE: Final = 1_000_000
_NO_LIMIT: Final = 1_000_000_000_000
_WORD: Final = "a-zA-Z0-9_-"
_STREAMING: Final = frozenset({"stream", "stream_options"})


@final
class RequestLine(NamedTuple):
    """A line of a batch file, read: the id, the body, its protocol, and the model if the body does not name it."""

    id: str | None
    body: Fields
    protocol: str


@final
class BatchForm(NamedTuple):
    """How one provider's batch files are written and read.

    `places` maps a protocol to what stands around the body for it: the url, or the key of the body. `constants` are
    keys that a body needs there, `dropped` keys that it must not have, `refused` keys that the provider answers with an
    error in a batch, with a sentence about it.
    """

    name: str
    providers: frozenset[str]
    places: Mapping[str, str]
    write: Callable[[str, Fields, str], Fields]
    read: Callable[[Fields], tuple[str | None, object, str | None] | None]
    """Gives the id, the body, and what stands around it; None for a line of another form."""
    alphabet: str = ""
    """Characters that an id may have; any if empty."""
    longest: int = 512
    """The characters of the longest id."""
    requests: int = _NO_LIMIT
    size: int = _NO_LIMIT
    constants: Mapping[str, object] = {}
    dropped: frozenset[str] = _STREAMING
    refused: Mapping[str, str] = {}

    @property
    def is_plain(self) -> bool:
        """Whether a body is written as it is; requests of a batch are not streamed."""
        return not (self.constants or self.refused) and self.dropped == _STREAMING and self.write is not _write_vertex

    def line(self, name: str, body: Fields, protocol: str) -> Fields:
        """Write a line.

        Raises:
            CorpusError: the provider refuses this body in a batch.
        """
        for key, reason in self.refused.items():
            if key in body:
                raise CorpusError(reason)
        kept = {key: value for key, value in body.items() if key not in self.dropped}
        return self.write(name, {**kept, **self.constants}, self.places[protocol])

    def legal_id(self, given: str) -> str:
        """Give an id that the provider accepts: the given one if it can be, otherwise one that is made from it.

        The same id gives the same one again, so that results can be matched without a table.
        """
        pattern = f"[{self.alphabet}]" if self.alphabet else "."
        if 0 < len(given) <= self.longest and re.fullmatch(f"{pattern}+", given, re.DOTALL):
            return given
        digest = sha256(given.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        lower = given.lower() if self.alphabet and "A-Z" not in self.alphabet else given
        cleaned = re.sub(f"[^{self.alphabet}]+" if self.alphabet else "$^", "-", lower).strip("-")
        return f"{cleaned[: self.longest - 17]}-{digest}".lstrip("-")


# -- lines -------------------------------------------------------------------------------------------------------------


def _object(value: object) -> Fields | None:
    return cast("Fields", value) if isinstance(value, dict) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _write_openai(name: str, body: Fields, url: str) -> Fields:
    return {"custom_id": name, "method": "POST", "url": url, "body": body}


def _read_openai(line: Fields) -> tuple[str | None, object, str | None] | None:
    if "custom_id" not in line or "body" not in line or "url" not in line:
        return None
    return _text(line["custom_id"]), line["body"], _text(line["url"])


def _write_anthropic(name: str, body: Fields, _: str) -> Fields:
    return {"custom_id": name, "params": body}


def _read_anthropic(line: Fields) -> tuple[str | None, object, str | None] | None:
    if "custom_id" not in line or "params" not in line:
        return None
    return _text(line["custom_id"]), line["params"], None


def _write_gemini(name: str, body: Fields, _: str) -> Fields:
    return {"key": name, "request": body}


def _read_gemini(line: Fields) -> tuple[str | None, object, str | None] | None:
    if "request" not in line or "custom_id" in line:
        return None
    metadata = _object(line.get("metadata")) or {}
    if "key" not in line and "metadata" not in line:
        return None
    return _text(line.get("key")) or _text(metadata.get("key")), line["request"], None


LABEL: Final = "segue_id"
"""The label of a Vertex request that has its id."""


def _write_vertex(name: str, body: Fields, _: str) -> Fields:
    labels = _object(body.get("labels")) or {}
    return {"request": {**body, "labels": {**labels, LABEL: name}}}


def _read_vertex(line: Fields) -> tuple[str | None, object, str | None] | None:
    request = _object(line.get("request"))
    if request is None or "custom_id" in line or "key" in line or "metadata" in line:
        return None
    labels = _object(request.get("labels")) or {}
    rest = {key: value for key, value in labels.items() if key != LABEL}
    body = {key: value for key, value in request.items() if key != "labels"}
    return _text(labels.get(LABEL)), {**body, "labels": rest} if rest else body, None


def _write_vertex_claude(name: str, body: Fields, _: str) -> Fields:
    return {"custom_id": name, "request": body}


def _read_vertex_claude(line: Fields) -> tuple[str | None, object, str | None] | None:
    if "custom_id" not in line or "request" not in line:
        return None
    return _text(line["custom_id"]), line["request"], None


def _write_bedrock(name: str, body: Fields, _: str) -> Fields:
    return {"recordId": name, "modelInput": body}


def _read_bedrock(line: Fields) -> tuple[str | None, object, str | None] | None:
    if "modelInput" not in line:
        return None
    body = _object(line["modelInput"]) or {}
    kind = "InvokeModel" if "anthropic_version" in body else "Converse"
    return _text(line.get("recordId")), body, kind


def _write_mistral(name: str, body: Fields, _: str) -> Fields:
    return {"custom_id": name, "body": body}


def _read_mistral(line: Fields) -> tuple[str | None, object, str | None] | None:
    if "custom_id" not in line or "body" not in line or "url" in line:
        return None
    return _text(line["custom_id"]), line["body"], None


def _write_xai(name: str, body: Fields, kind: str) -> Fields:
    return {"batch_request_id": name, "batch_request": {kind: body}}


def _read_xai(line: Fields) -> tuple[str | None, object, str | None] | None:
    request = _object(line.get("batch_request"))
    if not request:
        return None
    kind = next(iter(request))
    return _text(line.get("batch_request_id")), request[kind], kind


_NO_TOOLS: Final = (
    "Bedrock refuses tools in a batch of Converse requests; for Claude add --to-protocol anthropic-messages, which"
    " writes the body of InvokeModel"
)
_PATH_KEYS: Final = _STREAMING | {"model", "modelId"}
"""Keys that stand in the URL or in the job, not in a request."""

FORMS: Final = (
    BatchForm(
        "openai",
        frozenset({"openai"}),
        {"openai-chat": "/v1/chat/completions", "openai-responses": "/v1/responses"},
        _write_openai,
        _read_openai,
        requests=50_000,
        size=200 * _MEGABYTE,
    ),
    BatchForm(
        "azure",
        frozenset({"azure"}),
        {"openai-chat": "/chat/completions", "openai-responses": "/responses"},
        _write_openai,
        _read_openai,
        requests=100_000,
        size=200 * _MEGABYTE,
    ),
    BatchForm(
        "anthropic",
        frozenset({"anthropic"}),
        {"anthropic-messages": ""},
        _write_anthropic,
        _read_anthropic,
        alphabet=_WORD,
        longest=64,
        requests=100_000,
        size=256 * _MEGABYTE,
    ),
    BatchForm(
        "gemini",
        frozenset({"google"}),
        {"google-genai": ""},
        _write_gemini,
        _read_gemini,
        size=2_000 * _MEGABYTE,
        dropped=_PATH_KEYS,
    ),
    BatchForm(
        "vertex",
        frozenset({"google-vertex"}),
        {"google-genai": ""},
        _write_vertex,
        _read_vertex,
        alphabet="a-z0-9_-",
        longest=63,
        dropped=_PATH_KEYS,
    ),
    BatchForm(
        "vertex-claude",
        frozenset({"google-vertex"}),
        {"anthropic-messages": ""},
        _write_vertex_claude,
        _read_vertex_claude,
        alphabet=_WORD,
        longest=64,
        constants={"anthropic_version": "vertex-2023-10-16"},
        dropped=_PATH_KEYS,
    ),
    BatchForm(
        "bedrock",
        frozenset({"amazon-bedrock"}),
        {"bedrock-converse": "Converse"},
        _write_bedrock,
        _read_bedrock,
        alphabet=_WORD,
        longest=64,
        requests=50_000,
        size=1_000 * _MEGABYTE,
        dropped=_PATH_KEYS,
        refused={"toolConfig": _NO_TOOLS},
    ),
    BatchForm(
        "bedrock-claude",
        frozenset({"amazon-bedrock"}),
        {"anthropic-messages": "InvokeModel"},
        _write_bedrock,
        _read_bedrock,
        alphabet=_WORD,
        longest=64,
        requests=50_000,
        size=1_000 * _MEGABYTE,
        constants={"anthropic_version": "bedrock-2023-05-31"},
        dropped=_PATH_KEYS,
    ),
    BatchForm(
        "mistral",
        frozenset({"mistral"}),
        {"mistral-chat": ""},
        _write_mistral,
        _read_mistral,
        requests=100_000,
        size=512 * _MEGABYTE,
    ),
    BatchForm(
        "xai",
        frozenset({"xai"}),
        {"openai-responses": "responses", "openai-chat": "chat_get_completion"},
        _write_xai,
        _read_xai,
    ),
)
"""In this order a line is recognised; the forms of one provider differ by the protocol of the body."""


def find_form(model: Model) -> BatchForm:
    """Find the form of the batch files for a model; vendors with the API of OpenAI take its files.

    Raises:
        CorpusError: no form is known.
    """
    for form in FORMS:
        if model.provider in form.providers and model.protocol in form.places:
            return form
    if model.protocol in FORMS[0].places and not any(model.provider in form.providers for form in FORMS):
        return FORMS[0]
    known = ", ".join(sorted({name for form in FORMS for name in form.providers}))
    raise CorpusError(
        f"no batch file is known for {model.full_name()} with {model.protocol}; the providers with one are: {known}"
    )


def read_request_line(line: Fields) -> RequestLine | None:
    """Read a line of any provider's batch file; None for a line of none."""
    for form in FORMS:
        found = form.read(line)
        if found is None:
            continue
        name, body, place = found
        if not isinstance(body, dict):
            continue
        protocol = next((each for each, at in form.places.items() if not place or at == place), None)
        if protocol is not None:
            kept = {key: value for key, value in cast("Fields", body).items() if key not in form.constants}
            return RequestLine(name, kept, protocol)
    return None
