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
from collections.abc import Mapping, Sequence
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


_PLACE: Final = "*"


@final
class Envelope(NamedTuple):
    """What stands around the body of a request in a line of a batch file: the keys that lead to its parts."""

    id: tuple[str, ...]
    body: tuple[str, ...]
    """The last key is one of the form's places where it is `*`."""
    place: str | None = None
    """The key beside the body whose value is one of the form's places."""
    constants: Mapping[str, object] = {}
    other_ids: tuple[tuple[str, ...], ...] = ()
    """Where the id of a line may stand that segue did not write."""
    is_named: bool = True
    """Whether a line without an id is one of another form."""
    absent: frozenset[str] = frozenset()
    """Keys by which a line is one of another form."""

    @property
    def holds_id_inside(self) -> bool:
        """Whether the id is part of the body."""
        return self.id[: len(self.body)] == self.body

    def write(self, name: str, body: object, place: str) -> Fields:
        """Write a line."""
        line: Fields = {} if self.holds_id_inside else {self.id[0]: name}
        line.update(self.constants)
        if self.place is not None:
            line[self.place] = place
        line = _put(line, [place if key == _PLACE else key for key in self.body], body)
        return self.with_id(line, name) if self.holds_id_inside else line

    def with_id(self, line: Fields, name: str) -> Fields:
        """Give a line with another id."""
        return _put(line, self.id, name)

    def read(self, line: Fields) -> tuple[str | None, object, str | None] | None:
        """Give the id, the body, and its place; None for a line of another form."""
        ids = (self.id, *self.other_ids)
        has_name = not self.is_named or any(path[0] in line for path in ids)
        if not has_name or not self.absent.isdisjoint(line) or (self.place is not None and self.place not in line):
            return None
        place = None if self.place is None else _text(line[self.place])
        body: object = line
        for step in self.body:
            fields = _object(body) or {}
            if step == _PLACE:
                place = next(iter(fields), None)
            key = place if step == _PLACE else step
            if key is None or key not in fields:
                return None
            body = fields[key]
        name = next((text for path in ids if (text := _text(_reach(line, path)))), None)
        if self.holds_id_inside and isinstance(body, dict):
            body = _without(cast("Fields", body), self.id[len(self.body) :])
        return name, body, place


def _object(value: object) -> Fields | None:
    return cast("Fields", value) if isinstance(value, dict) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _reach(value: object, path: Sequence[str]) -> object:
    for key in path:
        value = (_object(value) or {}).get(key)
    return value


def _put(fields: Fields, path: Sequence[str], value: object) -> Fields:
    """Give a copy of an object with a value at a path."""
    first, rest = path[0], path[1:]
    return {**fields, first: _put(_object(fields.get(first)) or {}, rest, value) if rest else value}


def _without(fields: Fields, path: Sequence[str]) -> Fields:
    """Give a copy of an object without the value at a path, and without objects that are empty then."""
    first, rest = path[0], path[1:]
    inner = _object(fields.get(first)) if rest else None
    if inner is not None and (kept := _without(inner, rest)):
        return {**fields, first: kept}
    return {key: value for key, value in fields.items() if key != first or (rest and inner is None)}


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
    envelope: Envelope
    alphabet: str = ""
    """Characters that an id may have; any if empty."""
    longest: int = 512
    """The characters of the longest id."""
    requests: int = _NO_LIMIT
    size: int = _NO_LIMIT
    constants: Mapping[str, object] = {}
    recognised_by: frozenset[str] = frozenset()
    """Keys without which a body belongs to another form with the same envelope."""
    dropped: frozenset[str] = _STREAMING
    refused: Mapping[str, str] = {}

    @property
    def is_plain(self) -> bool:
        """Whether a body is written as it is; requests of a batch are not streamed."""
        is_changed = self.constants or self.refused or self.dropped != _STREAMING
        return not is_changed and not self.envelope.holds_id_inside

    def line(self, name: str, body: Fields, protocol: str) -> Fields:
        """Write a line.

        Raises:
            CorpusError: the provider refuses this body in a batch.
        """
        for key, reason in self.refused.items():
            if key in body:
                raise CorpusError(reason)
        kept = {key: value for key, value in body.items() if key not in self.dropped}
        return self.envelope.write(name, {**kept, **self.constants}, self.places[protocol])

    def read(self, line: Fields) -> RequestLine | None:
        """Read a line; None for one of another form."""
        found = self.envelope.read(line)
        if found is None:
            return None
        name, body, place = found
        fields = _object(body)
        if fields is None or not self.recognised_by <= fields.keys():
            return None
        # An address may be complete, or have the version of another service before the path.
        protocol = next((each for each, at in self.places.items() if place is None or place.endswith(at)), None)
        if protocol is None:
            return None
        return RequestLine(name, {key: value for key, value in fields.items() if key not in self.constants}, protocol)

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

LABEL: Final = "segue_id"
"""The label of a Vertex request that has its id."""

_OPENAI: Final = Envelope(("custom_id",), ("body",), "url", {"method": "POST"})
_GEMINI: Final = Envelope(
    ("key",), ("request",), other_ids=(("metadata", "key"), ("metadata",)), absent=frozenset({"custom_id"})
)
_VERTEX: Final = Envelope(
    ("request", "labels", LABEL), ("request",), absent=frozenset({"custom_id", "key", "metadata"})
)
_BEDROCK: Final = Envelope(("recordId",), ("modelInput",), is_named=False)
_XAI: Final = Envelope(("batch_request_id",), ("batch_request", _PLACE), is_named=False)

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
        _OPENAI,
        requests=50_000,
        size=200 * _MEGABYTE,
    ),
    BatchForm(
        "azure",
        frozenset({"azure"}),
        {"openai-chat": "/chat/completions", "openai-responses": "/responses"},
        _OPENAI,
        requests=100_000,
        size=200 * _MEGABYTE,
    ),
    BatchForm(
        "anthropic",
        frozenset({"anthropic"}),
        {"anthropic-messages": ""},
        Envelope(("custom_id",), ("params",)),
        alphabet=_WORD,
        longest=64,
        requests=100_000,
        size=256 * _MEGABYTE,
    ),
    BatchForm(
        "gemini",
        frozenset({"google"}),
        {"google-genai": ""},
        _GEMINI,
        size=2_000 * _MEGABYTE,
        dropped=_PATH_KEYS,
    ),
    BatchForm(
        "vertex",
        frozenset({"google-vertex"}),
        {"google-genai": ""},
        _VERTEX,
        alphabet="a-z0-9_-",
        longest=63,
        dropped=_PATH_KEYS,
    ),
    BatchForm(
        "vertex-claude",
        frozenset({"google-vertex"}),
        {"anthropic-messages": ""},
        Envelope(("custom_id",), ("request",)),
        alphabet=_WORD,
        longest=64,
        constants={"anthropic_version": "vertex-2023-10-16"},
        dropped=_PATH_KEYS,
    ),
    BatchForm(
        "bedrock-claude",
        frozenset({"amazon-bedrock"}),
        {"anthropic-messages": ""},
        _BEDROCK,
        alphabet=_WORD,
        longest=64,
        requests=50_000,
        size=1_000 * _MEGABYTE,
        constants={"anthropic_version": "bedrock-2023-05-31"},
        recognised_by=frozenset({"anthropic_version"}),
        dropped=_PATH_KEYS,
    ),
    BatchForm(
        "bedrock",
        frozenset({"amazon-bedrock"}),
        {"bedrock-converse": ""},
        _BEDROCK,
        alphabet=_WORD,
        longest=64,
        requests=50_000,
        size=1_000 * _MEGABYTE,
        dropped=_PATH_KEYS,
        refused={"toolConfig": _NO_TOOLS},
    ),
    BatchForm(
        "mistral",
        frozenset({"mistral"}),
        {"mistral-chat": ""},
        Envelope(("custom_id",), ("body",), absent=frozenset({"url"})),
        requests=100_000,
        size=512 * _MEGABYTE,
    ),
    BatchForm(
        "xai",
        frozenset({"xai"}),
        {"openai-responses": "responses", "openai-chat": "chat_get_completion"},
        _XAI,
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
        if found is not None:
            return found
    return None
