"""Values in URLs and headers: a model id never changes which method a request reaches, whatever it contains."""

from __future__ import annotations

import asyncio
import posixpath
from itertools import product
from urllib.parse import unquote, urlsplit

import httpx2
import pytest
from yarl import URL

from property_testing import tiers
from segue import Context, Model, Options, SegueError, UserMessage, prepare, read_call
from segue.client.http.addressing import fill_url
from segue.errors import SettingsError
from segue.foundation.quoting import (
    check_header,
    check_headers,
    check_path,
    quote_header,
    quote_path,
    quote_segment,
    raw_headers,
)
from segue.gateway.transport import AiohttpTransport
from segue.protocols.registry import PROTOCOLS, get_protocol

CONTEXT = Context(messages=(UserMessage.of("hi"),))
BASE = "https://provider.example/base"
MARKS = ["/", "\\", "?", "#", ";", ":", "&", "%", "\x00", "\r\n", "\t", " ", "\u2028", "é", "𝄞", "/../", "/./", "//"]
SPELLINGS = {
    "plain": lambda mark: mark,
    "encoded": lambda mark: "".join(f"%{byte:02x}" for byte in mark.encode()),
    "encoded twice": lambda mark: "".join(f"%25{byte:02X}" for byte in mark.encode()),
}
FORMS = ["{}", "x{}y", "..{}y", "models/x{}y", "projects/p{}y", "%2e%2e{}cachedContents", "%252e%252e{}y", ".%2e{}y"]
HOSTILE = [
    *(form.format(spell(mark)) for mark, form, spell in product(MARKS, FORMS, SPELLINGS.values())),
    *("", ".", "..", "%2e", "%2E%2E", "x\ud800y", "x%ffy", "x" * 3000, "é" * 3000, "..;x=1/y", "x/..;/y"),
    "veo-3.1:predictLongRunning#",
    "../cachedContents#",
    "models/../cachedContents#",
]
REAL = {
    "arn:aws:bedrock:us-east-1:12:inference-profile/us.anthropic.claude-v1:0": (
        "bedrock-converse",
        "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A12%3Ainference-profile%2Fus.anthropic.claude-v1%3A0/converse",
    ),
    "tunedModels/my-model-1": ("google-genai", "/tunedModels/my-model-1:generateContent"),
    "gemini-3.5-flash": ("google-genai", "/models/gemini-3.5-flash:generateContent"),
    "projects/example.com:team/locations/us/endpoints/7": (
        "google-genai",
        "/projects/example.com%3Ateam/locations/us/endpoints/7:generateContent",
    ),
}


def urls_of(protocol: str, model_id: str) -> list[tuple[str, str]]:
    """Give each URL of a model, with the one of a harmless model of the same kind."""
    found: list[tuple[str, str]] = []
    for stream in (False, True):
        pair = [
            prepare(
                CONTEXT,
                Model(each, get_protocol(protocol).provider, protocol, base_url=BASE),
                options=Options(stream=stream),
            )
            for each in (model_id, "harmless")
        ]
        found.append((pair[0].url, pair[1].url))
        counting = pair[0].count_url, pair[1].count_url
        if counting[0] is not None and counting[1] is not None:
            found.append((counting[0], counting[1]))
    return found


def fully_decoded(path: str) -> str:
    while (once := unquote(path)) != path:
        path = once
    return path


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("step", tiers([10], [1]))
def test_a_hostile_model_id_stays_below_the_path_of_its_method_or_is_refused(protocol: str, step: int) -> None:
    for model_id in HOSTILE[list(PROTOCOLS).index(protocol) % step :: step]:
        try:
            pairs = urls_of(protocol, model_id)
        except SegueError as refused:
            error = str(refused)
            pairs = []
        else:
            error = repr(model_id)
        assert repr(model_id[:20])[1:-1] in error, "an error names the model"
        for url, harmless in pairs:
            _, mark, end = harmless.partition("harmless")
            parts = urlsplit(url)
            assert url.isascii(), url
            assert (parts.netloc, parts.fragment) == ("provider.example", ""), url
            assert parts.query == urlsplit(harmless).query, url
            assert url.endswith(end if mark else harmless), url
            assert posixpath.normpath(fully_decoded(parts.path)).startswith("/base"), url
            if mark:
                inside = parts.path.removesuffix(end.partition("?")[0]).rpartition("/")[2]
                assert inside == inside.translate({ord(each): None for each in "?#;:\\"}), url
            sent = parts.path + (f"?{parts.query}" if parts.query else "")
            assert httpx2.URL(url).raw_path.decode() == sent
            assert URL(url, encoded=True).raw_path_qs == sent
            # A client that normalises the URL again reaches the same method.
            assert URL(url).raw_path.endswith(URL(harmless).raw_path.rpartition("harmless")[2])
            assert {".", ".."}.isdisjoint(URL(url).raw_path.split("/"))


@pytest.mark.parametrize("model_id", REAL)
def test_a_real_model_id_is_written_as_the_client_of_the_provider_writes_it(model_id: str) -> None:
    protocol, path = REAL[model_id]
    assert urls_of(protocol, model_id)[0][0] == BASE + path


def test_the_reproductions_of_another_method_and_another_resource_are_refused() -> None:
    for model_id in ("veo-3.1:predictLongRunning#", "../cachedContents#", "x?y", "x&y"):
        with pytest.raises(SettingsError, match="cannot be part of a URL"):
            _ = prepare(CONTEXT, Model(model_id, "google", "google-genai")).url
    with pytest.raises(SettingsError, match="cannot be part of a URL"):
        _ = prepare(CONTEXT, Model("../cachedContents", "google-vertex", "google-genai")).url


def test_a_path_of_a_protocol_that_does_not_quote_is_refused() -> None:
    for path in ("/a/../b", "/a/%2e%2e/b", "/a b", "/a#b", "/é", "/a%zz", "/a\r\nb"):
        with pytest.raises(SettingsError):
            check_path(path, model_id="x")
    for path in ("", "/v1/messages", "/v1/projects/{GOOGLE_CLOUD_PROJECT}/models/x:y?alt=sse"):
        assert check_path(path, model_id="x") == path


def test_percent_is_encoded() -> None:
    assert (quote_segment("a%41/b"), quote_path("a%41/b c")) == ("a%2541%2Fb", "a%2541/b%20c")


@pytest.mark.parametrize(
    ("value", "path"),
    {"p/../q": None, "..": None, "a.example/b": None, "a@b": None, "a:1": None, "us-east-1": "ok", "a b": None}.items(),
)
def test_a_variable_in_a_host_is_a_part_of_its_name(value: str, path: str | None) -> None:
    url = "https://{AWS_REGION}.provider.example/v1"
    if path is None:
        with pytest.raises(SettingsError, match="AWS_REGION"):
            fill_url(url, {"AWS_REGION": value})
    else:
        assert fill_url(url, {"AWS_REGION": value}) == f"https://{value}.provider.example/v1"


def test_a_variable_in_a_path_is_quoted() -> None:
    url = "https://provider.example/v1/{ACCOUNT}/ai"
    assert fill_url(url, {"ACCOUNT": "a b?c"}) == "https://provider.example/v1/a%20b%3Fc/ai"
    with pytest.raises(SettingsError, match="ACCOUNT"):
        fill_url(url, {"ACCOUNT": "../x"})


def test_a_header_of_a_reply_is_short_and_printable() -> None:
    for value in (*HOSTILE, "x" * 200_000, "𝄞" * 200_000, " ", " a b  ", " " * 400, "a" * 511 + " "):
        shown = quote_header(value)
        assert shown == shown.strip()
        assert shown.isascii()
        assert shown.isprintable()
        assert len(shown) <= 512
        assert raw_headers({"x-segue-model": value}) == [(b"x-segue-model", shown.encode())]
        between = {"a": "1", "x-segue-model": value, "b": "2"}
        assert raw_headers(between) == [(b"a", b"1"), (b"x-segue-model", shown.encode()), (b"b", b"2")]


@pytest.mark.parametrize("value", ["a\r\nb: c", "a\x00", "é", "Ā", "x" * 10_000])
def test_a_header_of_a_request_is_refused_without_its_value(value: str) -> None:
    with pytest.raises(SettingsError, match="anthropic-beta") as caught:
        check_header(value, name="anthropic-beta")
    assert value not in str(caught.value)
    with pytest.raises(SettingsError, match="anthropic-beta") as caught:
        check_headers({"accept": "a", "anthropic-beta": value, "x-last": "b"})
    assert value not in str(caught.value)


def test_headers_of_a_request_may_be_long_together() -> None:
    check_headers({"a": "x" * 8_000, "b": "y" * 8_000})


@pytest.mark.parametrize(
    ("path", "model"),
    {
        "/v1beta/models/a%252Fb:generateContent": "a%2Fb",
        "/v1beta/models/a%252Fb%3AgenerateContent": "a%2Fb",
        "/v1beta/models/a%25252Fb%3AgenerateContent": "a%252Fb",
    }.items(),
)
def test_a_model_in_the_path_of_a_call_is_decoded_once(path: str, model: str) -> None:
    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    assert read_call("POST", path, {}, body).model == model


def test_the_transport_of_the_gateway_sends_a_url_as_it_is_written() -> None:
    lines: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines.append(await reader.readline())
        while (await reader.readline()).strip():
            pass
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        for transport in (AiohttpTransport(), httpx2.AsyncHTTPTransport()):
            async with httpx2.AsyncClient(transport=transport, trust_env=False) as client:
                await client.get(f"http://127.0.0.1:{port}/model/a%3Ab%2Fc%7E%2541/converse?x=%2F")
        server.close()
        await server.wait_closed()

    asyncio.run(run())
    assert lines == [b"GET /model/a%3Ab%2Fc%7E%2541/converse?x=%2F HTTP/1.1\r\n"] * 2
