"""Facts about endpoints out of recorded exchanges: what was answered although a rule refuses it, and what was refused.

A fact is a row of `counterevidence` with the endpoint that it is about: the protocol, the provider and the model. A
reply lowers the grade of a rule for that endpoint alone; it may mean that the value is accepted (`unsure`), or that it
is overlooked (`ignored`). A refusal keeps a rule, or makes one where the provider names a field of the request. Rows
hold names of fields and short values, and nothing else of a request: a file of them can be shared.

Nothing reads a file of facts by itself. `judge` applies rows to what `check` found, and `as_catalogue` writes the rules
that follow from them as a user's catalogue, which `prepare`, `convert` and a gateway read if it is passed to them.
"""

from __future__ import annotations

import gzip
import json
import operator
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from threading import Lock
from typing import Final, Literal, NamedTuple, cast, final
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from segue.calls.reading import read_call
from segue.client.flow.attempts import Attempt
from segue.errors import DecodeError, ModelError, SegueError
from segue.failures.masking import mask_keys
from segue.histories.places import store_file
from segue.models.catalogue import Catalogue, get_model
from segue.models.evidence import Grade
from segue.models.model import Model
from segue.models.providers import PROVIDERS
from segue.protocols.api import check, decode_error, resolve_endpoint
from segue.protocols.counterevidence import Answered, graded
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.codec import Violation
from segue.protocols.kit.json_values import Block, list_of, object_of
from segue.protocols.kit.limits import Limit, Limits
from segue.protocols.registry import PROTOCOLS, resolve_rules
from segue.requests.prepare import Request

_REFUSALS: Final = (400, 413, 422)
_ANSWERED: Final = 200
_CONTENT: Final = frozenset({"messages", "input", "contents", "model", "system", "tools", "instructions", "user"})
"""Keys whose values are a conversation, or name somebody: a refusal that names them says nothing about a setting."""
_QUOTED: Final = re.compile(r"[`'\"]([A-Za-z_]\w*)[`'\"]|^([a-z_]+): ")
_PLAIN: Final = re.compile(r"[\w.-]{1,32}")
_SHOWN: Final = 160
_PLACE: Final = re.compile(r"\^(?:\\d\+|\\\W|[^\\^$*+?{}\[\]|().])+\$", re.DOTALL)
"""What `_pattern_of` writes: any number, and characters as they are."""


@final
class RecordedExchange(NamedTuple):
    """A request, what it was answered with, and where it was recorded."""

    protocol: str
    provider: str
    model: str
    status: int
    request: Mapping[str, object]
    response: object
    source: str


@final
class Fact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One row: a finding of `check` at one endpoint, and how often it was answered and refused there.

    `path` is a pattern of places. With a `key`, the provider refused that setting of the body, with the `value` that it
    had if it is a short one.
    """

    protocol: str
    provider: str
    model: str
    code: CheckCode
    grade: Grade
    source: str
    path: str = ""
    replies: int = 0
    refusals: int = 0
    key: str = ""
    value: str | int | float | bool | None = None
    message: str = ""

    def identity(self) -> tuple[object, ...]:
        """Return what two rows about the same have in common."""
        return self.protocol, self.provider, self.model, self.code, self.path, self.key, repr(self.value)

    def is_about(self, model: Model) -> bool:
        """Whether a row is about an endpoint."""
        return (self.protocol, self.provider, self.model) == (model.protocol, model.provider, model.id)


# -- reading -----------------------------------------------------------------------------------------------------------


def read_exchanges(path: Path) -> Iterator[RecordedExchange]:
    """Read the exchanges of a file or folder: cassettes of VCR (JSON, YAML), HAR files, and lines of JSON.

    A line has `protocol` (or `wire`), `provider`, `model`, `status`, `request` and `response`. Exchanges with other
    services are left out.

    Raises:
        DecodeError: a file cannot be read; has its name.
    """
    files = sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]
    for file in files:
        name = file.name.removesuffix(".gz")
        if name.endswith((".json", ".jsonl", ".ndjson", ".har", ".yaml", ".yml")):
            data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
            yield from _exchanges_of(data, name, str(file))


def _exchanges_of(data: bytes, name: str, source: str) -> Iterator[RecordedExchange]:
    try:
        if name.endswith((".jsonl", ".ndjson")):
            entries: list[object] = [msgspec.json.decode(line) for line in data.splitlines() if line.strip()]
        else:
            whole = _parse_yaml(data, source) if name.endswith((".yaml", ".yml")) else msgspec.json.decode(data)
            recorded = object_of(whole)
            listed = recorded.get("interactions") or object_of(recorded.get("log")).get("entries")
            entries = list_of(listed) if listed else [whole]
    except (msgspec.DecodeError, ValueError) as error:
        raise DecodeError(f"{source}: no recording: {error}; leave it out") from error
    for entry in map(object_of, entries):
        found = _read_line(entry, source) if isinstance(entry.get("status"), int) else _read_recording(entry, source)
        if found is not None:
            yield found


def _parse_yaml(data: bytes, source: str) -> object:
    try:
        from yaml import safe_load
    except ImportError as error:
        raise DecodeError(f"{source}: reading YAML needs PyYAML; run `pip install pyyaml`, or pass JSON") from error
    return cast("object", safe_load(data))


def _read_line(entry: Block, source: str) -> RecordedExchange | None:
    protocol, request = entry.get("protocol") or entry.get("wire"), entry.get("request")
    if protocol not in PROTOCOLS or not isinstance(request, Mapping):
        return None
    body = cast("Block", request)
    model = str(entry.get("model") or body.get("model") or body.get("modelId") or "")
    status = cast("int", entry["status"])
    place = str(entry.get("source") or source)
    return RecordedExchange(
        str(protocol), str(entry.get("provider") or ""), model, status, body, entry.get("response"), place
    )


def _read_recording(entry: Block, source: str) -> RecordedExchange | None:
    """Read an interaction of a cassette, or an entry of a HAR file."""
    asked, answer = object_of(entry.get("request")), object_of(entry.get("response"))
    address = urlsplit(str(asked.get("uri") or asked.get("url") or ""))
    status = object_of(answer.get("status")).get("code") or answer.get("status_code") or answer.get("status")
    body = _json_of(object_of(asked.get("postData")).get("text") or asked.get("body") or asked.get("parsed_body"))
    if not isinstance(body, Mapping) or not isinstance(status, int):
        return None
    try:
        call = read_call("POST", address.path, {}, cast("Block", body))
    except SegueError:
        return None
    reply = answer.get("body") or answer.get("parsed_body") or object_of(answer.get("content")).get("text")
    response = _json_of(reply)
    provider = _provider_of(address.hostname or "", call.protocol)
    return RecordedExchange(call.protocol, provider, call.model or "", status, cast("Block", body), response, source)


def _json_of(value: object) -> object:
    text = object_of(value).get("string", value)
    if not isinstance(text, str | bytes):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _provider_of(host: str, protocol: str) -> str:
    """Return the provider that has an address: the one in segue's catalogue, otherwise its host."""
    for row in PROVIDERS.values():
        known = urlsplit(row.base_url or "").hostname or ""
        if host and (host == known or (known.endswith(".amazonaws.com") and host.endswith(".amazonaws.com"))):
            return row.name
    return host or PROTOCOLS[protocol].provider


def read_probe(data: bytes, read: str) -> list[Fact]:
    """Read the options that `segue probe` saw refused, out of the catalogue file that it writes; empty for others."""
    try:
        file = object_of(msgspec.json.decode(data))
    except msgspec.DecodeError:
        return []
    asked = {str(row.get("name")): row for row in map(object_of, list_of(file.get("providers")))}
    facts: list[Fact] = []
    for model in map(object_of, list_of(file.get("models"))):
        row, protocol = asked.get(str(model.get("provider")), {}), str(model.get("protocol"))
        refused = object_of(object_of(row.get("rules")).get(protocol)).get("refused_options")
        facts += [
            Fact(
                protocol=protocol,
                provider=str(model.get("provider")),
                model=str(model.get("id")),
                code=CheckCode.OPTION_UNSUPPORTED,
                grade="refused",
                source=f"segue probe, {row.get('read') or read}",
                refusals=1,
                key=str(option),
            )
            for option in list_of(refused)
            if row.get("source") == "segue probe"
        ]
    return facts


# -- gathering ---------------------------------------------------------------------------------------------------------


def gather(exchanges: Iterable[RecordedExchange], read: str) -> list[Fact]:
    """Return what exchanges show about the rules, a row for each finding at each endpoint; `read` is the day."""
    facts: list[Fact] = []
    for exchange in exchanges:
        if exchange.status == _ANSWERED:
            facts += [_fact(exchange, one, read, replies=1) for one in _find(exchange)]
        elif exchange.status in _REFUSALS:
            found = [_fact(exchange, one, read, refusals=1) for one in _find(exchange)]
            facts += found or _named_by_provider(exchange, read)
    return merge_facts(facts)


def merge_facts(facts: Iterable[Fact], *, add: Callable[[int, int], int] = operator.add) -> list[Fact]:
    """Merge rows about the same. What was refused as well keeps its grade: another value may have been answered.

    `add` makes one figure of two: their sum, or `max` where the same exchanges may have been read twice.
    """
    merged: dict[tuple[object, ...], Fact] = {}
    for fact in facts:
        known = merged.get(fact.identity())
        if known is not None:
            fact = replace(  # noqa: PLW2901 - the row that is kept
                fact,
                replies=add(fact.replies, known.replies),
                refusals=add(fact.refusals, known.refusals),
                grade="refused" if "refused" in (fact.grade, known.grade) else fact.grade,
            )
        merged[fact.identity()] = fact
    return sorted(merged.values(), key=lambda one: (one.protocol, one.provider, one.model, one.code, one.path, one.key))


def _model_of(exchange: RecordedExchange) -> Model:
    try:
        return replace(get_model(f"{exchange.provider}/{exchange.model}"), protocol=exchange.protocol)
    except ModelError:
        return Model(exchange.model, exchange.provider, exchange.protocol)


def _find(exchange: RecordedExchange) -> list[Violation]:
    return check(exchange.request, protocol=exchange.protocol, model=_model_of(exchange))


def _fact(exchange: RecordedExchange, found: Violation, read: str, *, replies: int = 0, refusals: int = 0) -> Fact:
    lowered: Grade = "ignored" if found.code == CheckCode.FIELD_UNKNOWN else "unsure"
    return Fact(
        protocol=exchange.protocol,
        provider=exchange.provider,
        model=exchange.model,
        code=CheckCode(found.code),
        grade="refused" if refusals else lowered,
        source=f"recorded exchanges, {read}",
        path=_pattern_of(found.path),
        replies=replies,
        refusals=refusals,
    )


def _pattern_of(path: Sequence[object]) -> str:
    """Return the pattern of a place: any item of a list, and any name that is not a field's."""
    parts = [r"\d+" if isinstance(one, int) else re.escape(str(one)) for one in path]
    return f"^{re.escape('.').join(parts)}$" if parts else ""


def _named_by_provider(exchange: RecordedExchange, read: str) -> list[Fact]:
    """Read a refusal that no rule explains: a setting of the body that the provider names in it."""
    failure = decode_error(exchange.response, protocol=exchange.protocol, status=exchange.status)
    param = object_of(object_of(exchange.response).get("error")).get("param")
    names = [str(param), *(one[1] or one[2] for one in _QUOTED.finditer(failure.message))]
    key = next((name for name in names if name in exchange.request and name not in _CONTENT), None)
    if key is None:
        return []
    value = exchange.request[key]
    is_plain = isinstance(value, bool | int | float) or (isinstance(value, str) and _PLAIN.fullmatch(value))
    row = Fact(
        protocol=exchange.protocol,
        provider=exchange.provider,
        model=exchange.model,
        code=CheckCode.OPTION_UNSUPPORTED,
        grade="refused",
        source=f"recorded exchanges, {read}",
        refusals=1,
        key=key,
        value=cast("str | int | float | bool", value) if is_plain else None,
        message=mask_keys(failure.message)[:_SHOWN],
    )
    return [row]


# -- in use ------------------------------------------------------------------------------------------------------------


@final
class FactsFile:
    """A file that a client's own requests fill: `Client(on_request=file.on_request, on_attempt=file.on_attempt)`.

    What is answered although a rule refuses it, and what is refused, becomes a row; `read` is the day. Every tenant
    needs its own file, because a row shows which settings were sent.
    """

    def __init__(self, path: Path, read: str) -> None:
        self.path: Final = path
        self._read: Final = read
        self._sent: Final[ContextVar[Mapping[str, object]]] = ContextVar("sent")
        self._lock: Final = Lock()

    def on_request(self, request: Request) -> None:
        """Remember what is sent in this thread or task."""
        self._sent.set(request.body)

    def on_attempt(self, attempt: Attempt) -> None:
        """Add what the request showed to the file."""
        body, failure, model = self._sent.get({}), attempt.failure, attempt.model
        status = _ANSWERED if failure is None else failure.status or 0
        answer = None if failure is None else {"error": {"message": failure.message}}
        facts = gather(
            [RecordedExchange(model.protocol, model.provider, model.id, status, body, answer, "")], self._read
        )
        if body and facts:
            with self._lock:
                known = load_facts(self.path.read_bytes(), str(self.path)) if self.path.exists() else []
                store_facts(self.path, merge_facts([*known, *facts]))


# -- applying ----------------------------------------------------------------------------------------------------------


def judge(
    body: Mapping[str, object], found: Sequence[Violation], model: Model, facts: Sequence[Fact]
) -> list[Violation]:
    """Return what `check` found with the grades that facts about the same endpoint give, and what else was refused."""
    own = [fact for fact in facts if fact.is_about(model)]
    if not own:
        return list(found)
    lowered = tuple(
        Answered(fact.protocol, fact.code, fact.source, path=fact.path, grade=fact.grade)
        for fact in own
        if fact.grade != "refused" and not fact.key
    )
    endpoint = replace(resolve_endpoint(model), cautious=True)
    judged = graded(found, endpoint, lowered)
    rows = [_limit_of(fact) for fact in own if fact.grade == "refused" and fact.key]
    named = {one.path for one in judged}
    return judged + [one for one in Limits(rows).check(body, endpoint) if one.path not in named]


def _limit_of(fact: Fact) -> Limit:
    source = f"{fact.source}: {fact.message}" if fact.message else fact.source
    return Limit(
        fact.key, source, equals=fact.value, refused=f"{fact.provider} answered: {fact.message or 'a refusal'}"
    )


def as_catalogue(facts: Iterable[Fact]) -> Catalogue:
    """Return a catalogue of the endpoints that facts are about, with the rules that follow from them.

    A setting that was refused is removed from requests, and one that was answered is sent. Facts about other places are
    for `judge` alone.
    """
    models: dict[tuple[str, str, str], Model] = {}
    for fact in facts:
        where = fact.protocol, fact.provider, fact.model
        key = fact.key or fact.path.strip("^$")
        if fact.code != CheckCode.OPTION_UNSUPPORTED or not key.isidentifier():
            continue
        model = models.get(where) or _model_of(RecordedExchange(*where, _ANSWERED, {}, None, fact.source))
        rules = resolve_rules(model)
        refused = f"{key}={fact.value}" if isinstance(fact.value, str) else key
        changes: dict[str, object] = {}
        for field, name in (("refused_extra", refused), ("refused_options", key)):
            is_known = name in getattr(rules, field)
            if fact.grade == "refused" and field == "refused_extra" and not is_known:
                changes[field] = [*cast("list[str]", model.rules.get(field, [])), name]
            elif fact.grade != "refused" and is_known:
                changes[field] = [*cast("list[str]", model.rules.get(field, [])), f"-{name}"]
        if changes:
            models[where] = replace(model, rules={**model.rules, **changes}, flags={})
    return Catalogue(models=tuple(models.values()))


# -- files -------------------------------------------------------------------------------------------------------------

Form = Literal["facts"]


def load_facts(data: bytes, name: str = "facts") -> list[Fact]:
    """Read a file of facts. It may be somebody else's: a place is a pattern only as `segue facts` writes it.

    Raises:
        DecodeError: it is another file; has its name.
    """
    try:
        facts = msgspec.json.decode(data, type=dict[Form, list[Fact]]).get("facts", [])
    except msgspec.DecodeError as error:
        raise DecodeError(f"{name}: no file of facts: {error}; `segue facts` writes one") from error
    for fact in facts:
        if fact.path and _PLACE.fullmatch(fact.path) is None:
            raise DecodeError(
                f"{name}: no file of facts: {fact.path[:_SHOWN]!r} is not a place; `segue facts` writes one"
            )
    return facts


def store_facts(path: Path, facts: Sequence[Fact]) -> None:
    """Replace a file of facts, readable for the user alone."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    store_file(temporary, dump_facts(facts))
    temporary.replace(path)


def dump_facts(facts: Sequence[Fact]) -> bytes:
    """Write a file of facts."""
    return msgspec.json.format(msgspec.json.encode({"facts": facts}), indent=2) + b"\n"
