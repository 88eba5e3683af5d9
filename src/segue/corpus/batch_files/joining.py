"""Results of a batch, appended to the conversations that they answer, with failures classified and batch prices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, cast, final

import msgspec
from msgspec.structs import replace

from segue.calls.batch_forms import batch_forms, read_request_line
from segue.calls.replies import encode_error
from segue.conversation.context import Prompt
from segue.conversation.messages import AssistantMessage
from segue.conversation.stored import dump
from segue.corpus.batch_files.writing import BatchTable
from segue.errors import DecodeError, SegueError, UnknownModel
from segue.failures.classify import classify
from segue.failures.failure import Failure
from segue.foundation.json_text import encode_json
from segue.models.catalogue import Catalogue, get_model
from segue.models.model import Model
from segue.models.price import batch_share, reduce_cost
from segue.projection.replies.projector import project_reply
from segue.protocols.api import decode_request, decode_response, encode_response
from segue.protocols.detection import detect_reply
from segue.protocols.families.batches import read_http_result
from segue.protocols.kit.batch_form import Fields, Outcome, ResultLine
from segue.protocols.registry import DEFAULT_PROTOCOL, get_protocol


@final
class SentLine(NamedTuple):
    """A request of the batch: the id of the row, the request itself, and the protocol of the line."""

    id: str
    prompt: Prompt
    protocol: str


@final
class Joined(NamedTuple):
    """A request with its result: the conversation as stored JSON, or the failure."""

    id: str
    conversation: bytes | None
    message: AssistantMessage | None
    outcome: Outcome
    failure: Failure | None = None

    def failure_line(self) -> bytes:
        """Write the failure as a line of JSON."""
        failure = cast("dict[str, object]", {} if self.failure is None else msgspec.to_builtins(self.failure))
        return encode_json({"id": self.id, "outcome": self.outcome, **failure}) + b"\n"

    def openai_line(self, sent: SentLine) -> bytes:
        """Write the result as OpenAI's batches have it; a reply in the protocol of the request, if that is OpenAI's."""
        own = [name for name, form in batch_forms() if form.read_result is read_http_result and form.for_others]
        protocol = sent.protocol if sent.protocol in own else DEFAULT_PROTOCOL
        line: Fields = {"id": f"batch_req_{self.id}", "custom_id": self.id, "response": None, "error": None}
        if self.conversation is not None and self.message is not None:
            shown = project_reply(self.message, protocol=protocol).message
            line["response"] = {
                "status_code": 200,
                "request_id": None,
                "body": encode_response(shown, protocol=protocol),
            }
        elif self.outcome == "errored" and self.failure is not None:
            status, _, body = encode_error(self.failure, protocol=protocol)
            line["response"] = {"status_code": status, "request_id": None, "body": body}
        else:
            reason = "" if self.failure is None else self.failure.message
            line["error"] = {"code": f"batch_{self.outcome}", "message": reason}
        return encode_json(line) + b"\n"


def read_sent(lines: Iterable[tuple[int, bytes]]) -> Iterator[SentLine]:
    """Read the requests of a batch file, in any provider's form.

    Raises:
        DecodeError: a line is not a request of a batch.
    """
    for number, data in lines:
        value: object = msgspec.json.decode(data)
        line = read_request_line(cast("Fields", value)) if isinstance(value, dict) else None
        if line is None:
            raise DecodeError(f"line {number} is not a request of a batch file; name the file that was sent")
        prompt = decode_request(line.body, protocol=line.protocol)
        yield SentLine(line.id or f"line-{number}", prompt, line.protocol)


@final
class Joiner:
    """Joins results with the requests of one batch.

    `model` is the model that answered. Without it, that is the model which the reply names, or else the request.
    """

    def __init__(self, model: Model | None, table: BatchTable | None, catalogue: Catalogue | None = None) -> None:
        self._model = model
        self._table = table
        self._catalogue = catalogue

    def names_of(self, sent: SentLine) -> Iterator[str]:
        """Yield the ids under which the result of a request may come: its own, and those made from it."""
        yield sent.id
        for _, form in batch_forms():
            yield form.legal_id(sent.id)

    def join(self, sent: SentLine, result: ResultLine | None) -> Joined:
        """Append a reply to its conversation, or classify the failure."""
        name = self._given_id(sent.id)
        provider = None if self._model is None else self._model.provider
        if result is None:
            failure = classify("the batch has no result for this request", provider=provider)
            return Joined(name, None, None, "missing", failure)
        if result.outcome != "succeeded":
            failure = classify(result.body, provider=provider, status=result.status)
            return Joined(name, None, None, result.outcome, failure)
        try:
            message = self._decode(sent, result)
        except SegueError as error:
            return Joined(name, None, None, "errored", classify(str(error), provider=provider))
        if message.stop_reason == "error":
            return Joined(name, None, message, "errored", classify(message, provider=provider))
        stored = dump(sent.prompt.context.add(message)).removeprefix(b"{")
        return Joined(name, b'{"id":%b,%b' % (encode_json(name), stored), message, "succeeded")

    def _given_id(self, name: str) -> str:
        found = None if self._table is None else self._table.requests.get(name)
        return name if found is None else found.id

    def _decode(self, sent: SentLine, result: ResultLine) -> AssistantMessage:
        given = result.body
        if not isinstance(given, dict):
            raise DecodeError("the result has no reply")
        body = cast("dict[str, object]", given)
        protocol = self._protocol(sent, body)
        model = self._model or self._named(body, sent, protocol)
        if model is not None and model.protocol != protocol:
            model = replace(model, protocol=protocol)
        found = None if self._table is None else self._table.requests.get(sent.id)
        names: Mapping[str, str] | None = None if found is None else found.tool_names
        message = decode_response(body, protocol=protocol, model=model, tool_names=names or None)
        return message if model is None else _priced(message, body, batch_share(model))

    def _protocol(self, sent: SentLine, body: Mapping[str, object]) -> str:
        """Return the protocol of a reply by its keys; the request may be in another provider's form."""
        likely = sent.protocol if self._model is None else self._model.protocol
        return detect_reply(body, likely) or likely

    def _named(self, body: Mapping[str, object], sent: SentLine, protocol: str) -> Model | None:
        """Find the model that a reply or its request names, at the provider of the protocol."""
        provider = get_protocol(protocol).provider
        for key in ("model", "modelVersion"):
            if isinstance(name := body.get(key), str) and (found := self._find(f"{provider}/{name}")) is not None:
                return found
        same = sent.protocol == protocol and sent.prompt.model is not None
        return self._find(f"{provider}/{sent.prompt.model}") if same else None

    def _find(self, name: str) -> Model | None:
        try:
            return get_model(name, catalogue=self._catalogue)
        except UnknownModel:
            return None


def _priced(message: AssistantMessage, body: Mapping[str, object], share: float) -> AssistantMessage:
    """Price a reply as part of a batch, unless it says itself that it was one."""
    usage = message.usage
    if usage is None or usage.cost is None or share == 1.0:
        return message
    wire = body.get("usage")
    if isinstance(wire, dict) and cast("dict[str, object]", wire).get("service_tier") == "batch":
        return message
    return replace(message, usage=replace(usage, cost=reduce_cost(usage.cost, share)))
