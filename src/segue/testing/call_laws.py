"""Laws over the endpoints of a protocol: what its clients send is recognised, and answered in its format."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from segue.calls.reading import read_call
from segue.calls.replies import encode_model, encode_model_list, encode_token_count
from segue.conversation.context import Prompt
from segue.errors import CallError, UnknownProtocol
from segue.protocols.api import find_endpoint, resolve_endpoint
from segue.protocols.kit.protocol import Protocol, Sample
from segue.protocols.kit.routing import NEEDS_PROMPT, Route
from segue.testing.broken_law import expect_equal, fail

_PREFIXES: Final = ("", "/gateway", "/api/v1")
_REPLY: Final = "resp_0123"


def evidence_of(route: Route, *, first: bool = True) -> tuple[dict[str, str], str]:
    """Return the headers and the query that identify a client of this route."""
    headers: dict[str, str] = {}
    query: list[str] = []
    for name, beginning in list(route.evidence.items())[: 1 if first else None]:
        if name.startswith("?"):
            query.append(f"{name[1:]}={beginning or 'x'}")
        else:
            headers[name.title()] = f"{beginning}x" if beginning else "x"
    return headers, "&".join(query)


def check_routes(record: Protocol) -> None:
    """Every endpoint is found below any base path, with the model of the path.

    Raises:
        BrokenLaw: it is read as another endpoint.
    """
    law = "an endpoint is found by its path"
    body = next((sample.request for sample in record.samples() if sample.request is not None), None)
    model = record.example.id
    for route in record.routes:
        headers, query = evidence_of(route)
        for prefix in _PREFIXES:
            path = (
                prefix
                + route.path.replace("{model}", model).replace("{reply}", _REPLY)
                + (f"?{query}" if query else "")
            )
            call = read_call(route.method, path, headers, body if route.kind in NEEDS_PROMPT else None)
            found = (call.protocol, call.kind, call.framing if call.stream else None)
            streams = route.stream if route.stream is not None else call.stream
            framing = (route.framing or record.framing) if streams and route.kind == "generate" else None
            expect_equal(record, law, path, found, (record.name, route.kind, framing))
            if "{model}" in route.path:
                expect_equal(record, law, path, call.model, route.model_id.format(model))
            if "{reply}" in route.path:
                expect_equal(record, law, path, call.reply, _REPLY)


def check_sent_requests(record: Protocol, sample: Sample) -> None:
    """A request that segue sends is read as the same prompt, of the same model, streamed as it asks.

    Raises:
        BrokenLaw: the prompt, the model or the kind of reply differs.
    """
    if sample.request is None or not record.routes:
        return
    law, endpoint = "a request is read where it arrives", resolve_endpoint(record.example)
    headers = _client_headers(record)
    for stream in (False, True):
        where, path = f"{sample.name}, stream {stream}", record.path(endpoint, stream)
        try:
            call = read_call("POST", path, headers, sample.request)
        except CallError as error:
            fail(record, law, where, f"`path` gives {path!r}, which ends with no path of `routes`: {error}")
        expect_equal(record, law, where, call.protocol, record.name)
        wanted = record.decode_request(sample.request, find_endpoint(record.name, None, call.model))
        expect_equal(record, law, where, _without_address(call.prompt), _without_address(wanted))
        if record.path(endpoint, stream) != record.path(endpoint, not stream):
            expect_equal(record, law, where, call.stream, stream)
    if record.token_count is not None:
        body = record.token_count.body(sample.request, endpoint)
        call = read_call("POST", record.token_count.path(endpoint), headers, body)
        expect_equal(record, law, f"{sample.name}, count", (call.protocol, call.kind), (record.name, "count"))
        wanted = record.decode_request(sample.request, find_endpoint(record.name, None, call.model))
        found = None if call.prompt is None else call.prompt.context
        expect_equal(record, law, f"{sample.name}, count", found, wanted.context)


def _client_headers(record: Protocol) -> dict[str, str]:
    """Return headers that identify a client of the protocol, if it needs any."""
    return {
        name: value
        for route in record.routes
        if route.kind == "generate"
        for name, value in evidence_of(route)[0].items()
    }


def _without_address(prompt: Prompt | None) -> Prompt | None:
    """Return a prompt without the fields that the path may set."""
    return None if prompt is None else replace(prompt, model=None, options=replace(prompt.options, stream=None))


def check_answers(record: Protocol) -> None:
    """Lists of models and token counts are written if, and only if, the protocol has endpoints for them.

    Raises:
        BrokenLaw: an answer is missing, or does not have what was asked for.
    """
    law = "questions about models and tokens are answered"
    kinds = {route.kind for route in record.routes}
    if "models" in kinds:
        for answer in (
            encode_model_list([record.example], protocol=record.name),
            encode_model(record.example, protocol=record.name),
        ):
            if record.example.id not in repr(answer):
                fail(record, law, "models", f"{record.example.id} is not in {answer!r}")
    if ("count" in kinds) != (record.token_count is not None):
        fail(record, law, "routes", "there is a route for counting tokens without `token_count`, or the reverse")
    if record.token_count is None:
        try:
            encode_token_count(1, protocol=record.name)
        except UnknownProtocol:
            return
        fail(record, law, "tokens", "a count is written although there is no endpoint for it")
    answer = encode_token_count(12_345, protocol=record.name)
    expect_equal(record, law, "tokens", record.token_count.read(answer), 12_345)
