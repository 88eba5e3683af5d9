"""Keys: which is used, in which header it travels, who never sees it, and that it is written nowhere else."""

from __future__ import annotations

import asyncio
import io
import logging
import pickle
import traceback
from base64 import b64encode
from urllib.parse import urlsplit

import pytest

from client.both_clients import AT_ONCE, HELLO
from client.wires import TEXT, WIRES
from segue.client.http.addressing import fill_url
from segue.client.http.clients import AsyncClient, Client
from segue.client.http.settings import ClientSettings
from segue.client.session.conversation import Conversation
from segue.conversation.stored import dump_message
from segue.errors import RequestFailed, SettingsError
from segue.failures.failure import FailureKind
from segue.models.model import Model
from segue.models.providers import PROVIDERS
from servers.script import Reply
from servers.scripted import ScriptedServer

KEY = "sk-planted-0123456789abcdef"

HEADERS = {
    "openai": ("openai-chat", "OPENAI_API_KEY", "authorization", f"Bearer {KEY}"),
    "anthropic": ("anthropic-messages", "ANTHROPIC_API_KEY", "x-api-key", KEY),
    "azure": ("openai-responses", "AZURE_OPENAI_API_KEY", "api-key", KEY),
    "google": ("google-genai", "GOOGLE_API_KEY", "x-goog-api-key", KEY),
    "google-vertex": ("google-genai", "GOOGLE_CLOUD_API_KEY", "x-goog-api-key", KEY),
    "amazon-bedrock": ("bedrock-converse", "AWS_BEARER_TOKEN_BEDROCK", "authorization", f"Bearer {KEY}"),
    "openrouter": ("anthropic-messages", "OPENROUTER_API_KEY", "authorization", f"Bearer {KEY}"),
    "mistral": ("mistral-chat", "MISTRAL_API_KEY", "authorization", f"Bearer {KEY}"),
    "ollama": ("ollama-chat", "OLLAMA_API_KEY", "authorization", f"Bearer {KEY}"),
}


def answering(protocol: str, url: str, provider: str) -> Model:
    # Vertex and its like name projects in their paths; the server takes any.
    return Model("a-model", provider, protocol, base_url=url)


@pytest.mark.parametrize(("provider", "row"), HEADERS.items(), ids=HEADERS.keys())
def test_a_key_from_the_environment_is_sent_in_the_providers_header(
    server: ScriptedServer, provider: str, row: tuple[str, str, str, str]
):
    protocol, variable, header, value = row
    server.reply(WIRES[protocol].answer(), WIRES[protocol].answer())
    environment = {variable: f" {KEY}\n", "GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "global"}
    given: list[ClientSettings] = [
        {"environment": environment},
        {"environment": {**environment, variable: "other"}, "api_key": KEY},
    ]
    for settings in given:
        with Client(**settings) as client:
            client.complete(HELLO, answering(protocol, server.url, provider))
        headers = server.requests.pop().headers
        assert headers[header] == value
        assert KEY not in str({name: reported for name, reported in headers.items() if name != header})


def test_keys_by_provider_and_a_key_without_a_name(server: ScriptedServer):
    claude, gpt = WIRES["anthropic-messages"], WIRES["openai-chat"]
    models = claude.model(server.url), gpt.model(server.url)
    down = Reply.json({"error": {"message": "unavailable"}}, status=503)
    for api_key, expected in (
        ({"anthropic": "key-of-anthropic", "openai": "key-of-openai"}, ("key-of-anthropic", "Bearer key-of-openai")),
        (KEY, (KEY, None)),
    ):
        server.reply(down, gpt.answer())
        with Client(retry=0, api_key=api_key) as client:
            client.complete(HELLO, models[0], fallback_models=models[1:])
        first, second = server.requests[-2:]
        assert (first.headers["x-api-key"], second.headers.get("authorization")) == expected
        assert KEY not in str(second.headers)


def test_auth_is_called_for_each_attempt_and_its_token_sent_as_a_bearer(server: ScriptedServer):
    wire = WIRES["google-genai"]
    model = wire.model(server.url)
    down = Reply.json({"error": {"message": "unavailable"}}, status=503)
    server.reply(down, wire.answer(), wire.answer(), wire.answer(), wire.answer())
    tokens = iter(["token-1", "token-2", "token-3", "token-4"])

    async def later(model: Model) -> str:
        await asyncio.sleep(0)
        return f"{next(tokens)}-{model.provider}"

    async def ask() -> None:
        async with AsyncClient(auth=later) as client:
            await client.complete(HELLO, model)

    with Client(retry=AT_ONCE, auth=lambda: next(tokens)) as client:
        client.complete(HELLO, model)
    asyncio.run(ask())
    with Client(auth={"google": lambda: {"Authorization": "Custom xyz", "X-Extra": "1"}}) as client:
        client.complete(HELLO, model)
    reported = [request.headers["authorization"] for request in server.requests]
    assert reported == ["Bearer token-1", "Bearer token-2", "Bearer token-3-google", "Custom xyz"]
    assert server.requests[-1].headers["x-extra"] == "1"


def test_async_hooks_need_an_async_client(server: ScriptedServer):
    async def later() -> str:
        return KEY

    with Client(auth=later) as client, pytest.raises(SettingsError, match="AsyncClient"):
        client.complete(HELLO, WIRES["openai-chat"].model(server.url))


def test_a_missing_key_is_reported_without_a_request():
    with Client(environment={}) as client, pytest.raises(RequestFailed, match="set OPENAI_API_KEY") as raised:
        client.complete(HELLO, Model("gpt-5", "openai", "openai-responses"))
    assert raised.value.failure.kind == FailureKind.AUTH


def test_a_missing_key_leads_to_the_fallback_model(server: ScriptedServer):
    wire = WIRES["openai-chat"]
    server.reply(wire.answer())
    with Client(environment={}) as client:
        mine = Model("mine", "my-server", "openai-chat", base_url=server.url)
        message = client.complete(HELLO, Model("gpt-5", "openai", "openai-responses"), fallback_models=(mine,))
    assert message.text() == TEXT


def test_a_custom_server_needs_no_key(server: ScriptedServer):
    server.reply(WIRES["openai-chat"].answer())
    with Client(environment={}) as client:
        client.complete(HELLO, Model("gpt-5", "openai", "openai-chat", base_url=server.url))
    assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize("key", ["", "  ", "sk-ключ", "sk-two\nlines"])
def test_an_unsendable_key_is_refused_without_being_shown(server: ScriptedServer, key: str):
    model = Model("gpt-5", "openai", "openai-chat", base_url=server.url)
    with Client(auth=lambda: key) as client, pytest.raises(RequestFailed) as raised:
        client.complete(HELLO, model)
    assert raised.value.failure.kind == FailureKind.AUTH
    assert key.strip() == "" or key.strip() not in str(raised.value)
    assert server.requests == []


def test_a_given_environment_replaces_that_of_the_process(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server.reply(WIRES["openai-chat"].answer())
    with Client(environment={}) as client:
        client.complete(HELLO, WIRES["openai-chat"].model(server.url))
    assert "authorization" not in server.requests[0].headers


def test_header_names_are_case_insensitive(server: ScriptedServer):
    server.reply(WIRES["openai-chat"].answer())
    headers = {"Authorization": f"Bearer {KEY}", "USER-AGENT": "mine"}
    with Client(environment={}) as client:
        client.complete(HELLO, Model("gpt-5", "openai", "openai-chat", base_url=server.url, headers=headers))
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert server.requests[0].headers["user-agent"] == "mine"


# -- addresses ---------------------------------------------------------------------------------------------------------

ADDRESSES = {
    "as it is": ("https://a.b/v1", {}, "https://a.b/v1"),
    "a variable": ("https://{REGION}.b", {"REGION": "eu"}, "https://eu.b"),
    "a second name": ("https://x.{AWS_REGION}.b", {"AWS_DEFAULT_REGION": "eu-1"}, "https://x.eu-1.b"),
    "everywhere at Google's": (
        "https://{GOOGLE_CLOUD_LOCATION}-aiplatform.googleapis.com",
        {"GOOGLE_CLOUD_LOCATION": "global"},
        "https://aiplatform.googleapis.com",
    ),
    "in a part of the world at Google's": (
        "https://{GOOGLE_CLOUD_LOCATION}-aiplatform.googleapis.com",
        {"GOOGLE_CLOUD_LOCATION": "eu"},
        "https://aiplatform.eu.rep.googleapis.com",
    ),
}


@pytest.mark.parametrize(("url", "environment", "filled"), ADDRESSES.values(), ids=ADDRESSES.keys())
def test_variables_in_a_url_are_replaced(url: str, environment: dict[str, str], filled: str):
    assert fill_url(url, environment) == filled


def test_a_variable_that_is_not_set_is_named():
    with pytest.raises(SettingsError, match="AWS_REGION"):
        fill_url(PROVIDERS["amazon-bedrock"].base_url or "", {})


def test_a_base_url_applies_only_to_its_provider(server: ScriptedServer):
    wire = WIRES["openai-chat"]
    server.reply(wire.answer(), wire.answer())
    model = Model("gpt-5", "openai", "openai-chat")
    with Client(base_url=f"{server.url}/here/", environment={}) as client:
        client.complete(HELLO, model)
    with Client(base_url={"openai": f"{server.url}/there"}, environment={}) as client:
        client.complete(HELLO, model)
    assert [request.path for request in server.requests] == ["/here/chat/completions", "/there/chat/completions"]


def test_the_query_of_a_base_url_comes_behind_the_path(server: ScriptedServer):
    streams = {"openai-chat": "/x/chat/completions?api-version=1", "google-genai": "?alt=sse&api-version=1"}
    for protocol, end in streams.items():
        wire = WIRES[protocol]
        server.reply(wire.stream())
        with Client(environment={}) as client:
            client.stream(HELLO, wire.model(f"{server.url}/x/?api-version=1")).result()
        assert server.requests[-1].path.endswith(end)
        assert server.requests[-1].path.startswith("/x/")


# -- nothing secret anywhere -------------------------------------------------------------------------------------------


def echo(request) -> Reply:
    """Answer with everything that was sent, as careless gateways do."""
    return Reply.json({"error": {"message": f"cannot use {dict(request.headers)}"}}, status=401)


def echo_in_stream(request) -> Reply:
    event = f'data: {{"error": {{"message": "bad key {request.headers["authorization"]}", "code": 500}}}}\n\n'
    return Reply.sse(event.encode())


def echo_in_document(request) -> Reply:
    return Reply.json({"error": {"message": f"bad key {request.headers['authorization']}"}})


@pytest.mark.parametrize("server_error", [echo, echo_in_stream, echo_in_document])
def test_a_key_appears_in_no_output(server_error, caplog, tmp_path, capfd):
    caplog.set_level(logging.DEBUG)
    seen = io.StringIO()
    with ScriptedServer(server_error) as server:
        model = Model("gpt-5", "openai", "openai-chat", base_url=server.url)
        attempts: list[object] = []
        with Client(api_key=KEY, retry=AT_ONCE, on_attempt=attempts.append) as client:
            with Conversation(model, client=client, path=tmp_path / "session.jsonl") as conversation:
                with pytest.raises(RequestFailed) as raised:
                    conversation.ask("hello")
                print(repr(conversation), repr(conversation.context), file=seen)
            stream = client.stream(HELLO, model)
            events = list(stream)
            print(repr(client), repr(client._builder), repr(client._setup), repr(stream), repr(events), file=seen)
            print(repr(stream._wire), dump_message(stream.message), stream.report.summary(), file=seen)
        print(repr(attempts), file=seen)
        print(repr(raised.value), repr(raised.value.attempts), pickle.dumps(raised.value), file=seen)
        traceback.print_exception(raised.value, file=seen)
        assert any(KEY in str(request.headers) for request in server.requests)
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    reported = capfd.readouterr()
    everything = f"{seen.getvalue()}\n{caplog.text}\n{written.decode()}\n{reported.out}\n{reported.err}"
    assert "gpt-5" in everything
    assert KEY not in everything
    assert KEY[6:] not in everything


def repeat_everything(request) -> Reply:
    return Reply.json({"error": {"message": f"no: {request.path} {dict(request.headers)}"}}, status=400)


HIDDEN: dict[str, tuple[str, dict[str, str]]] = {
    "a password in the address": (f"//me:{KEY}@", {}),
    "a key in the query": (f"?api-version=1&key={KEY}", {}),
    "a gateway's own header": ("", {"X-Portkey-Api-Key": KEY}),
    "a cookie": ("", {"Cookie": f"session={KEY}"}),
}


@pytest.mark.parametrize(("address", "headers"), HIDDEN.values(), ids=HIDDEN.keys())
def test_secrets_in_other_headers_and_urls_appear_in_no_output(address: str, headers: dict[str, str], caplog):
    caplog.set_level(logging.DEBUG)
    with ScriptedServer(repeat_everything) as server:
        url = server.url.replace("//", address, 1) if address.startswith("//") else server.url + address
        with Client(headers=headers, environment={}, base_url=url) as client, pytest.raises(RequestFailed) as raised:
            client.complete(HELLO, Model("m", "mine", "openai-chat"))
        sent = f"{server.requests[0].path} {server.requests[0].headers}"
    encoded = b64encode(f"me:{KEY}".encode()).decode()
    assert KEY in sent or encoded in sent
    shown = "".join(traceback.format_exception(raised.value)) + repr(raised.value.failure) + caplog.text
    assert "no: /" in shown
    assert KEY not in shown
    assert encoded not in shown


def redirect_with_the_key(request) -> Reply:
    """Redirect to an address that repeats the key of the request in its path."""
    key = request.headers["authorization"].rpartition(" ")[2]
    return Reply(status=307, headers={"location": f"https://elsewhere.test/{key}/login"}, framing="length")


def test_a_header_of_the_response_that_repeats_the_key_does_not_show_it(caplog):
    """The message of the error quotes `location`, which no pattern for keys matches: only the key itself is hidden."""
    caplog.set_level(logging.DEBUG)
    plain = "a-key-without-a-known-prefix"
    with ScriptedServer(redirect_with_the_key) as server:
        model = Model("gpt-5", "openai", "openai-chat", base_url=server.url)
        with Client(api_key=plain, retry=0) as client:
            with pytest.raises(RequestFailed, match="elsewhere") as raised:
                client.complete(HELLO, model)
            stream = client.stream(HELLO, model)
            events = list(stream)
        assert plain in server.requests[0].headers["authorization"]
    shown = "".join(traceback.format_exception(raised.value)) + repr(raised.value.attempts) + repr(raised.value.failure)
    shown += repr(raised.value.message) + repr(events) + repr(stream.message)
    assert "https://elsewhere.test/(key)/login" in shown
    assert plain not in shown
    # A transport that logs at this level shows the headers it received; segue logs none.
    assert plain not in "".join(record.getMessage() for record in caplog.records if record.name.startswith("segue"))


def test_a_transport_that_repeats_a_header_does_not_show_the_key(monkeypatch):
    import httpx2

    def refuse(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.LocalProtocolError(f"Illegal header value {request.headers['x-api-key']!r}")

    client = Client(api_key=KEY, transport=httpx2.MockTransport(refuse))
    with client, pytest.raises(RequestFailed) as raised:
        client.complete(HELLO, Model("claude-x", "anthropic", "anthropic-messages"))
    shown = "".join(traceback.format_exception(raised.value)) + repr(raised.value.attempts)
    assert "Illegal header value" in shown
    assert KEY not in shown


# -- AWS ---------------------------------------------------------------------------------------------------------------

SECRET = "aws-secret-0123456789abcdef"
SESSION = "aws-session-0123456789abcdef"


def test_a_request_to_bedrock_is_signed(server: ScriptedServer, monkeypatch, caplog):
    """The signature is made again from what arrived: it holds for exactly those bytes, at that address."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", SESSION)
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    wire = WIRES["bedrock-converse"]
    server.reply(wire.answer(), wire.stream(), wire.answer())
    model = Model("eu.anthropic.claude-x-v1:0", "amazon-bedrock", "bedrock-converse", base_url=server.url)
    with Client() as client:
        assert client.complete(HELLO, model).text() == TEXT
        assert client.stream(HELLO, model).result().text() == TEXT

    async def ask() -> None:
        async with AsyncClient() as client:
            assert (await client.complete(HELLO, model)).text() == TEXT

    asyncio.run(ask())
    assert SESSION not in caplog.text
    assert SECRET not in caplog.text
    for received in server.requests:
        authorization = received.headers["authorization"]
        assert "Credential=AKIDEXAMPLE/" in authorization
        assert "/eu-west-1/bedrock/aws4_request" in authorization
        assert received.headers["x-amz-security-token"] == SESSION
        names = authorization.partition("SignedHeaders=")[2].partition(",")[0].split(";")
        sent = {name: received.headers[name] for name in names if name not in ("host", "x-amz-security-token")}
        again = AWSRequest(method="POST", url=server.url + received.path, data=received.body, headers=sent)
        again.context["timestamp"] = received.headers["x-amz-date"]
        signer = SigV4Auth(Credentials("AKIDEXAMPLE", SECRET, SESSION), "bedrock", "eu-west-1")
        again.headers["X-Amz-Security-Token"] = SESSION
        text = signer.string_to_sign(again, signer.canonical_request(again))
        assert authorization.endswith(f"Signature={signer.signature(text, again)}")
        assert urlsplit(received.path).path.startswith("/model/eu.anthropic.claude-x-v1%3A0/")


def test_missing_aws_credentials_are_named(server: ScriptedServer):
    model = Model("m", "amazon-bedrock", "bedrock-converse", base_url=server.url)
    client = Client(environment={"AWS_REGION": "eu-west-1"})
    with client, pytest.raises(RequestFailed, match="AWS_ACCESS_KEY_ID") as raised:
        client.complete(HELLO, model)
    assert raised.value.failure.kind == FailureKind.AUTH


def test_a_missing_extra_is_named(monkeypatch):
    from segue.client.http import signing
    from segue.errors import MissingExtra

    def missing(name: str) -> object:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(signing, "import_module", missing)
    with pytest.raises(MissingExtra, match=r"pip install 'segue-llm\[bedrock\]'"):
        signing.AwsSigner().sign("https://bedrock-runtime.eu-west-1.amazonaws.com/x", b"", {}, {})
    monkeypatch.setattr("segue.client.http.settings.import_module", missing)
    with Client(api_key="x") as client, pytest.raises(ImportError, match=r"pip install 'segue-llm\[client\]'"):
        client.complete("Hi", "openai/gpt-5.4")


MISTAKES = {
    "a typo": ({"api_kye": "x"}, "did you mean api_key"),
    "another library's name": ({"max_retries": 3}, "unexpected setting 'max_retries'; the settings are .*retry"),
    "a field of Options": ({"temperature": 1.0}, r"pass options=Options\(temperature=...\)"),
    "a field of Context": ({"system": "x"}, r"a part of the conversation: pass Context\(system_prompt=..., "),
    "a number as a string": ({"retry": "3"}, "retry= takes a number"),
    "seconds as a string": ({"timeout": "10"}, "timeout= takes a number"),
}


@pytest.mark.parametrize(("settings", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_an_unknown_or_mistyped_setting_is_refused_with_advice(settings, message: str):
    with pytest.raises(SettingsError, match=message):
        Client(**settings)
