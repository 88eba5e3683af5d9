"""Several accounts for one provider: a conversation stays with the account that holds its state.

The upstream is the strict emulator with one organization for each key. It drops thinking of another organization, and
says so in what it recorded; a test in which that happens fails.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from msgspec.structs import replace

from bound_state.inbound import Chat, Inbound, Messages, Responses, show
from gateway.bound_clients import WIRES, WireClient
from gateway.bound_walk import Walk
from gateway.running import KEYS, config_text
from segue import Client, Context, Model, UserMessage
from segue.client.http.accounts import Accounts
from segue.errors import SettingsError
from segue.gateway.app import create_app
from segue.gateway.config import load_config
from segue.gateway.conversations import Conversations
from segue.gateway.service import Gateway
from segue.projection.workspace.ownership import ONE_OF_SEVERAL
from segue.requests.binding import bind
from segue.requests.prepare import Request
from segue.testing.emulator import EmulatedCall, Emulator, EmulatorServer, Step, serve_in_thread

SONNET = "claude-sonnet-5-5"
NAMES = ("alpha", "beta", "gamma")
ENVIRONMENT = {**KEYS, "XDG_STATE_HOME": "/tmp", **{f"KEY_{name.upper()}": f"sk-{name}-secret" for name in NAMES}}
STORES = ("sqlite", "none")
CLIENTS: dict[str, type[Inbound]] = {"chat": Chat, "messages": Messages, "responses": Responses}
THINK = Step(thinking="Hm.", text="Yes.")
CALL = Step(thinking="Look.", calls=(EmulatedCall(name="look", arguments={"n": 1}),))
FAILURES: tuple[int | str, ...] = (401, 403, 429, 500, 529, "closed", "silent")

PATIENCE = 60
"""Seconds until a provider that does not answer has failed: a busy machine is no failure."""


class Upstream:
    """The emulator, behind keys that can fail: with a status, a closed connection, or silence."""

    def __init__(self, organizations: dict[str, str]) -> None:
        keys = {f"sk-{name}-secret": organization for name, organization in organizations.items()}
        self.emulator = Emulator(organizations=keys)
        self.down: dict[str, int | str] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = {name.decode(): value.decode() for name, value in scope.get("headers", ())}
        key = headers.get("x-api-key") or headers.get("authorization", "")
        failure = next((how for name, how in self.down.items() if f"sk-{name}-" in key), None)
        if failure is None:
            await self.emulator(scope, receive, send)
        elif failure == "closed":
            raise ConnectionAbortedError("the test closes the connection")
        elif failure == "silent":
            while (await receive())["type"] != "http.disconnect":
                pass
        else:
            body = json.dumps({"type": "error", "error": {"type": "api_error", "message": "not now"}}).encode()
            kind = (b"content-type", b"application/json")
            await send({"type": "http.response.start", "status": failure, "headers": [kind]})
            await send({"type": "http.response.body", "body": body})


class Served:
    """A gateway with several accounts in front of an emulator; it can be restarted, with another configuration too."""

    def __init__(self, store: str, organizations: dict[str, str]) -> None:
        self.store = store
        self.patience = PATIENCE
        self.upstream_app = Upstream(organizations)
        self.emulator = self.upstream_app.emulator
        self.down = self.upstream_app.down
        self.names = tuple(organizations)
        self.environment = dict(ENVIRONMENT)
        self._servers, self._gateways = ExitStack(), ExitStack()
        self.http = self._servers.enter_context(httpx2.Client(verify=False, timeout=30))
        self.upstream = EmulatorServer(self._servers.enter_context(serve_in_thread(self.upstream_app)), self.emulator)
        self.restart()

    def config(self) -> str:
        accounts = "\n".join(f'{name}.key = "env:KEY_{name.upper()}"' for name in self.names)
        more = f"[limits]\nretries = 0\ntimeout_seconds = {self.patience}\nbreaker_failures = 1000"
        text = config_text(self.upstream.url, store=self.store, more=more)
        for provider in ("anthropic", "openai"):
            text += f"\n[providers.{provider}.accounts]\n{accounts}"
        return text

    def connect(self, wire: str) -> WireClient:
        return WIRES[wire](self.url)

    def restart(self) -> None:
        self._gateways.close()
        self.url = self.replica()

    def replica(self) -> str:
        """Start another gateway with the same store."""
        gateway = Gateway(load_config(self.config()), environment=self.environment)
        return self._gateways.enter_context(serve_in_thread(create_app(gateway=gateway)))

    def close(self) -> None:
        self._gateways.close()
        self._servers.close()

    # -- what arrived --------------------------------------------------------------------------------------------------

    @property
    def last(self) -> str | None:
        """The organization of the last request."""
        return self.emulator.requests[-1].organization

    def sent(self) -> int:
        """Give the number of signed blocks in the last request."""
        text = str(self.emulator.requests[-1].body)
        return text.count("'signature'") + text.count("'encrypted_content'")

    def row(self, response: httpx2.Response) -> dict[str, Any]:
        url = f"{self.url}/segue/requests/{response.headers['x-segue-request-id']}"
        for _ in range(1000):  # it is written after the reply
            if (reply := self.http.get(url)).status_code == 200:
                return reply.json()
        raise AssertionError("the request has no row")

    def check(self) -> None:
        """Check that nothing was refused, and no foreign state was sent."""
        for request in self.emulator.requests:
            assert request.status == 200, request.refusal
            assert not request.transformations, f"foreign state was sent: {request.transformations}"


@contextmanager
def served(store: str, folder: Path, organizations: dict[str, str] | None = None) -> Generator[Served]:
    folder.mkdir(exist_ok=True)
    address = store if store == "none" else f"sqlite:{folder}/gateway.db"
    made = Served(address, organizations or {name: f"org_{name}" for name in NAMES})
    try:
        yield made
    finally:
        made.close()


class Talk:
    """A conversation of a client."""

    def __init__(self, server: Served, wire: str, model: str = SONNET, name: str = "") -> None:
        self.server = server
        self.name = name
        self.client = CLIENTS[wire](server.http, model)

    def say(self, text: str, step: Step = THINK, *, url: str | None = None) -> httpx2.Response:
        """Send; the client has to get a reply."""
        self.server.http.base_url = url or self.server.url
        self.server.emulator.script.add(step)
        response = self.client.ask(f"{self.name} {text}".strip())
        assert response.status_code == 200, show(response)
        self.server.check()
        return response


def _name(organization: str | None) -> str:
    return (organization or "").removeprefix("org_")


# -- affinity ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("wire", "store"), [("messages", "sqlite"), ("chat", "sqlite"), ("responses", "none")])
def test_a_conversation_stays_with_the_account_that_holds_its_state(wire: str, store: str, tmp_path: Path) -> None:
    with served(store, tmp_path) as server:
        talk = Talk(server, wire)
        talk.say("one")
        first = _name(server.last)
        server.down[first] = 429
        talk.say("two")
        holder = _name(server.last)
        assert holder != first
        assert server.sent() == 0, "the next account gets the history without the state"
        server.down.clear()
        for number in range(2):
            talk.say(f"more {number}", CALL)
            talk.say("")
            assert (_name(server.last), server.sent()) == (holder, 2 + 2 * number)
        server.restart()
        talk.say("after a restart")
        assert (_name(server.last), server.sent()) == (holder, 5)
        talk.say("on another gateway", url=server.replica())
        assert (_name(server.last), server.sent()) == (holder, 6)


def test_new_conversations_are_spread_and_every_gateway_chooses_the_same(tmp_path: Path) -> None:
    with served("none", tmp_path) as server:
        chosen: list[list[str | None]] = []
        for url in (server.url, server.replica()):
            chosen.append([])
            for number in range(12):
                Talk(server, "chat", name=f"conversation {number}").say("hello", url=url)
                chosen[-1].append(server.last)
        assert chosen[0] == chosen[1]
        assert {chosen[0].count(f"org_{name}") for name in NAMES} <= {2, 3, 4, 5, 6}


def test_a_model_whose_state_any_account_reads_stays_with_the_account_that_answered_last(tmp_path: Path) -> None:
    with served("sqlite", tmp_path) as server:
        talk = Talk(server, "chat", "claude-opus-4-8")
        talk.say("one")
        first = _name(server.last)
        server.down[first] = 500
        talk.say("two")
        second = _name(server.last)
        server.down.clear()
        talk.say("three")
        assert (second != first, _name(server.last)) == (True, second)


# -- an account fails --------------------------------------------------------------------------------------------------


@pytest.fixture(name="server", scope="module")
def _server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    with served("sqlite", tmp_path_factory.mktemp("accounts")) as server:
        yield server


@pytest.mark.parametrize("failure", FAILURES, ids=str)
@pytest.mark.parametrize("wire", ["messages", "chat"])
def test_the_next_account_gets_the_history_without_the_state(wire: str, failure: int | str, server: Served) -> None:
    try:
        talk = Talk(server, wire, name=f"{wire} {failure}")
        talk.say("one")
        talk.say("two", CALL)
        first = _name(server.last)
        server.down[first] = failure
        if failure == "silent":
            server.patience = 2
            server.restart()
        row = server.row(talk.say("", THINK))  # inside a tool loop
        assert (_name(server.last) != first, server.sent()) == (True, 0)
        assert [attempt["account"] for attempt in row["attempts"]] == [first, _name(server.last)]
        withheld = [change for change in row["changes"] if change["code"] == "reasoning_withheld"]
        assert [change["cause"] for change in withheld] == ["made with another account"] * 2
        assert "secret" not in json.dumps(row)
        server.down.clear()
        server.down.update({name: failure for name in NAMES if name != first})
        talk.say("three")
        assert (_name(server.last), server.sent()) == (first, 2), "the first account still reads what it made"
    finally:
        server.down.clear()
        if server.patience != PATIENCE:
            server.patience = PATIENCE
            server.restart()


def test_nothing_is_left_to_try_when_every_account_fails(server: Served) -> None:
    try:
        talk = Talk(server, "chat", name="all")
        talk.say("one")
        server.down.update(dict.fromkeys(NAMES, 401))
        response = talk.client.ask("two")
        assert response.status_code == 502, show(response)
        row = server.row(response)
        assert sorted(attempt["account"] for attempt in row["attempts"]) == sorted(NAMES)
    finally:
        server.down.clear()


def test_two_keys_of_one_organization_share_its_state(tmp_path: Path) -> None:
    with served("sqlite", tmp_path, {"alpha": "org_one", "beta": "org_one"}) as server:
        for number in range(8):  # both keys are known by now
            Talk(server, "chat", name=f"conversation {number}").say("hello")
        talk = Talk(server, "messages")
        talk.say("one")
        key = server.emulator.requests[-1].headers["x-api-key"]
        server.down[key.split("-")[1]] = 429
        talk.say("two")
        assert server.emulator.requests[-1].headers["x-api-key"] != key
        assert server.sent() == 1


@pytest.mark.parametrize("store", STORES)
def test_encrypted_reasoning_of_openai_stays_with_its_organization(store: str, tmp_path: Path) -> None:
    with served(store, tmp_path) as server:
        talk = Talk(server, "responses", "m-responses")
        talk.say("one")
        first = _name(server.last)
        server.down[first] = 401
        talk.say("two")
        assert (_name(server.last) != first, server.sent()) == (True, 0)
        second = _name(server.last)
        server.down.clear()
        server.restart()
        talk.say("three")
        assert (_name(server.last), server.sent()) == (second, 1)


def test_a_client_that_asks_to_drop_state_does_not_send_it_to_another_account(tmp_path: Path) -> None:
    with served("sqlite", tmp_path) as server:
        talk = Talk(server, "messages")
        body = talk.client.body

        def asking() -> dict[str, Any]:
            drop = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
            return {**body(), "thinking": drop}

        talk.client.body = asking  # pyright: ignore[reportAttributeAccessIssue]
        talk.client.http.headers["anthropic-beta"] = "thinking-binding-controls-2026-08-01"
        talk.say("one")
        server.down[_name(server.last)] = 429
        talk.say("two")
        assert server.sent() == 0


def test_no_account_is_asked_about_an_imported_session_of_another(tmp_path: Path) -> None:
    with served("sqlite", tmp_path) as server:
        talk = Talk(server, "messages")
        talk.client.history.append({"role": "user", "content": "imported"})
        headers = {"x-api-key": "sk-alpha-secret", "anthropic-version": "2023-06-01"}
        raw = json.dumps(talk.client.body()).encode()
        reply = server.emulator.respond("POST", "/v1/messages", headers, raw, step=THINK, is_recorded=False)
        talk.client.keep(json.loads(reply.body))
        others = {name: 500 for name in NAMES if name != "alpha"}
        server.down.update(others)
        talk.say("one", Step(text="Yes."))
        assert (server.last, server.sent()) == ("org_alpha", 1)
        server.down.clear()
        server.down["alpha"] = 500
        talk.client.system = "Be kind."
        talk.say("two", Step(text="Yes."))
        assert server.sent() == 0
        assert "block_binding" not in str(server.emulator.requests[-1].body)
        talk.say("three", Step(text="Yes."))
        assert server.sent() == 0, "no account has accepted what it did not get"
        server.down.clear()
        server.down.update(others)
        talk.client.system = "Be brief."
        talk.say("four")
        assert (server.last, server.sent()) == ("org_alpha", 1), "the first account still reads what it made"


def test_tokens_are_counted_with_the_account_that_holds_the_state(server: Served) -> None:
    talk = Talk(server, "messages", name="count")
    talk.say("one")
    talk.client.history.append({"role": "user", "content": "two"})
    body = {name: value for name, value in talk.client.body().items() if name != "max_tokens"}
    reply = server.http.post(f"{server.url}/v1/messages/count_tokens", json=body, headers={"x-api-key": "k"})
    assert reply.status_code == 200
    counted, asked = server.emulator.requests[-1], server.emulator.requests[-2]
    assert (counted.path, counted.organization) == ("/v1/messages/count_tokens", asked.organization)
    server.check()


# -- the configuration -------------------------------------------------------------------------------------------------

WRONG = {
    'key = "env:A"\naccounts.a.key = "env:A"': "has a key and accounts; make the key that of an account",
    'accounts.a.kye = "env:A"': 'there is no key \'kye\' in [providers."anthropic".accounts."a"]; did you mean key?',
    'accounts.a = "env:A"': "Expected `object`, got `str`",
    "accounts.a = {}": "there is no `key`",
    'accounts."".key = "env:A"': "an account in providers.anthropic.accounts has no name",
}


@pytest.mark.parametrize(("lines", "text"), WRONG.items(), ids=WRONG.values())
def test_a_wrong_account_is_refused(lines: str, text: str) -> None:
    with pytest.raises(SettingsError, match="configuration") as caught:
        load_config(f"[providers.anthropic]\n{lines}")
    assert text in str(caught.value)


@pytest.mark.parametrize("value", ["sk-secret", "env:NOT_SET"])
def test_a_key_of_an_account_is_named_and_never_written_down(value: str) -> None:
    config = load_config(f'[providers.anthropic.accounts]\nalpha.key = "{value}"')
    with pytest.raises(SettingsError, match=r"providers\.anthropic\.accounts\.alpha\.key") as caught:
        Gateway(config, environment=ENVIRONMENT)
    assert "sk-secret" not in str(caught.value)


def test_a_conversation_of_an_account_that_is_gone_goes_on_without_its_state(tmp_path: Path) -> None:
    with served("sqlite", tmp_path) as server:
        talk = Talk(server, "chat")
        talk.say("one")
        gone = _name(server.last)
        server.names = tuple(name for name in NAMES if name != gone)
        server.restart()
        talk.say("two")
        assert (_name(server.last) != gone, server.sent()) == (True, 0)
        talk.say("three")
        assert server.sent() == 1


def test_keys_that_change_their_names_get_no_foreign_state(tmp_path: Path) -> None:
    with served("none", tmp_path) as server:
        talk = Talk(server, "responses")
        talk.say("one")
        holder, names = server.last, list(NAMES)
        values = [server.environment[f"KEY_{name.upper()}"] for name in names]
        server.environment.update(zip([f"KEY_{name.upper()}" for name in names], values[1:] + values[:1], strict=True))
        server.restart()
        talk.say("two")
        assert (server.last, server.sent()) == (holder, 1)


def test_a_new_account_is_used_after_the_file_has_changed(tmp_path: Path) -> None:
    with served("none", tmp_path) as server:
        path = tmp_path / "gateway.toml"
        server.names = ("alpha",)
        path.write_text(server.config())
        gateway = Gateway(load_config(path.read_bytes()), path=path, environment=server.environment)
        server.down["alpha"] = 401
        server.names = ("alpha", "delta")
        path.write_text(server.config())
        assert "accounts.delta.key names the environment variable KEY_DELTA" in (gateway.reload() or "")
        assert gateway.router.accounts_of("anthropic") == ("alpha",)
        server.names = ("alpha", "beta")
        path.write_text(server.config())
        assert gateway.reload() is None
        with serve_in_thread(create_app(gateway=gateway)) as url:
            Talk(server, "chat").say("one", url=url)
            assert server.last == "org_beta"


def test_a_client_chooses_the_account_by_the_model() -> None:
    upstream = Upstream({name: f"org_{name}" for name in NAMES})
    with serve_in_thread(upstream) as url:
        keys = {name: f"sk-{name}-secret" for name in NAMES}
        model = Model(SONNET, "anthropic", "anthropic-messages", base_url=url)
        with Client(api_key={"anthropic": keys}, retry=0) as client:
            context = Context(messages=(UserMessage.of("hi"),))
            for account, organization in (("", "org_alpha"), ("beta", "org_beta")):
                reply = client.complete(context, replace(model, account=account))
                assert reply.sent is not None
                assert reply.sent.account == organization
            with pytest.raises(SettingsError, match="no key for the account 'delta' of anthropic"):
                client.complete(context, replace(model, account="delta"))


# -- random switches ---------------------------------------------------------------------------------------------------


class AccountWalk(Walk):
    """A random conversation during which keys fail and work again."""

    def __init__(self, wire: str, server: Served, seed: int) -> None:
        super().__init__(wire, server, seed)  # pyright: ignore[reportArgumentType] - what it uses of it
        self.served = server
        self.model = SONNET

    def act(self, action: str) -> None:
        super().act(action)
        if self.random.random() < 0.35:
            self.served.down.clear()
            kinds = [each for each in FAILURES if each != "silent"]
            failing = self.random.sample(NAMES, self.random.randrange(len(NAMES)))
            self.served.down.update({name: self.random.choice(kinds) for name in failing})
        if self.random.random() < 0.5:
            self.model = SONNET


def _walk(server: Served, wire: str, seeds: range, steps: int) -> None:
    for seed in seeds:
        server.down.clear()
        walk = AccountWalk(wire, server, seed)
        try:
            walk.run(steps)
        except (AssertionError, openai.APIError, anthropic.APIError) as error:
            raise AssertionError(f"{wire}, store {server.store}, seed {seed}: {error}") from error
        finally:
            walk.close()


@pytest.mark.parametrize(("wire", "store"), [("messages", "sqlite"), ("gemini", "sqlite"), ("responses", "none")])
def test_random_switches_send_no_foreign_state_and_give_none_up(wire: str, store: str, tmp_path: Path) -> None:
    with served(store, tmp_path) as server:
        _walk(server, wire, range(1), 6)


@pytest.mark.proof
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("wire", WIRES)
def test_many_random_switches(wire: str, store: str, tmp_path: Path) -> None:
    with served(store, tmp_path) as server:
        _walk(server, wire, range(100, 110), 25)


# -- faults that are noticed -------------------------------------------------------------------------------------------


def _fail_over(server: Served) -> None:
    """Let the account that holds the state fail, and go on after a restart."""
    talk = Talk(server, "responses")
    talk.say("one")
    first = _name(server.last)
    server.down[first] = 429
    talk.say("two")
    second = _name(server.last)
    server.down.clear()
    server.restart()
    talk.say("three")
    assert (_name(server.last), server.sent()) == (second, 1)


def _fail_after_restart(server: Served) -> None:
    """Let the account fail before the gateway has heard the name of any account."""
    talk = Talk(server, "responses")
    talk.say("one")
    server.restart()
    server.down[_name(server.last)] = 429
    talk.say("two")


def _second_conversation(server: Served) -> None:
    """Begin when the gateway already knows the names of the accounts, and go on when it does not."""
    for number in range(8):
        Talk(server, "responses", name=f"conversation {number}").say("hello")
    _fail_over(server)


def _any_account(*_: object) -> Callable[[object], bool]:
    return lambda _message: True


def _without_key(stamped: Any) -> Any:
    return lambda self, message, *, account=None, key=None: stamped(self, message, account=account)


def _without_doubt(find: Any) -> Any:
    return lambda self, model: (find(self, model) or "").removeprefix(ONE_OF_SEVERAL) or None


FAULTS: dict[str, tuple[object, str, object, Callable[[Served], None]]] = {
    "affinity is ignored": (
        Conversations,
        "order_accounts",
        lambda _, __, models, ___, router, *____: [
            replace(model, account=name) for model in models for name in router.accounts_of(model.provider)
        ],
        _fail_over,
    ),
    "every account gets all state": (bind, "account_check", _any_account, _fail_over),
    "an unknown account counts as the same": (Accounts, "find", _without_doubt(Accounts.find), _fail_after_restart),
    "replies do not remember the key": (Request, "stamped", _without_key(Request.stamped), _second_conversation),
    "keys are not told apart": (Accounts, "key_label", lambda *_: "key:same", _fail_over),
}


@pytest.mark.parametrize("fault", [None, *FAULTS], ids=str)
def test_a_fault_is_noticed(fault: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served("none", tmp_path) as server, monkeypatch.context() as patch:
        if fault is None:
            for run in (_fail_after_restart, _second_conversation):  # the second one contains the third
                run(server)
                server.down.clear()
            return
        place, name, value, run = FAULTS[fault]
        patch.setattr(place, name, value)
        with pytest.raises(AssertionError):
            run(server)
