"""The configuration of a gateway: one TOML file, every part of it optional.

    [listen]
    address = "127.0.0.1:8787"

    [models."claude-auto"]
    try = ["anthropic/claude-opus-4-8", "openai/gpt-5.4"]

    [models."*"]
    try = ["same"]                       # the model that the client names

    [providers.anthropic]
    base_url = "https://proxy.example"   # in place of the provider's own
    key = "env:MY_KEY"                   # in place of the usual variable

    [providers.openai.accounts]          # several accounts, in place of one key
    team-a.key = "env:OPENAI_KEY_A"
    team-b.key = "env:OPENAI_KEY_B"
    team-b.weight = 3                    # three of four new conversations

    [keys.alice]                         # a key with limits; `segue gateway keys create` makes keys in the store
    key = "env:ALICE_KEY"
    budgets.month.dollars = 50

    [state]
    store = "sqlite:gateway.db"          # or "postgresql://...", "none", or "env:NAME" of one of them

Keys are names of environment variables (`env:NAME`) or files (`file:PATH`), so that the file itself has no secret.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias, cast, final, get_args

import msgspec

from segue.conversation.context import ThinkingLevel
from segue.errors import SettingsError
from segue.gateway.keys import Rights
from segue.planning.fallbacks import LossKind
from segue.projection.policy import InstructionsPolicy, ReasoningPolicy
from segue.protocols.kit.facts import ServerEdit

SAME: Final = "same"
"""In `try`: the model that the client names."""


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base class of the tables of the file."""


@final
class Listen(_Table, frozen=True, kw_only=True):
    """Where the gateway listens; the keys that clients have to send; further Host headers that are accepted.

    `require_key`: clients need a key, of this file or of the store. They also need one if `keys` is not empty, or if
    the store has or had a key.

    `admin_key` is the key of the admin API, which makes and revokes keys, and of the console for the requests of all
    clients; without one there is neither. It is accepted from this machine only, unless `admin_remote` is set. Where
    there is one, contents, switching, erasing and replays in the console need it, or the key of a client, on this
    machine too.

    `metrics_key` is the key for `/metrics`, which counts the requests of all clients: their own keys do not open it.

    `provider_ids`: clients with a key may name files, containers, stored conversations and the like that the operator's
    accounts have. Else they may name only those whose id they got in a reply of this gateway.
    """

    address: str = "127.0.0.1:8787"
    keys: tuple[str, ...] = ()
    host_names: tuple[str, ...] = ()
    require_key: bool = False
    admin_key: str | None = None
    admin_remote: bool = False
    metrics_key: str | None = None
    provider_ids: bool = False


@final
class KeyTable(Rights, frozen=True, kw_only=True):
    """A key of a client in this file, with the rights of keys in the store. The name of the table is its name."""

    key: str


_Positive: TypeAlias = Annotated[float, msgspec.Meta(gt=0)]
_NotNegative: TypeAlias = Annotated[float, msgspec.Meta(ge=0)]
_Count: TypeAlias = Annotated[int, msgspec.Meta(gt=0)]


@final
class FallbackTable(_Table, frozen=True, kw_only=True):
    """How the next model of a route is chosen when one fails (`FallbackPolicy`). Accounts of a model come before it.

    - `order`: "cost" tries the model first that costs least for the next `turns` requests of the conversation, with
      what its cache still has; "given" keeps the order of `try`. Models without a known price come last.
    - `max_dollars`: models whose next request is expected to cost more are left out, and those without a known price.
    - `never_lose`: models that would lose any of these are left out: "media", "reasoning", "tools", "turns" (messages
      that do not fit), or "content" for everything that a model would read.
    - `rest_seconds`: how long a model that failed is not returned to. After that a conversation that is `sticky`
      returns to the first model if that costs less for the next `turns` requests, or gets reasoning back that is worth
      the difference.
    """

    order: Literal["given", "cost"] = "cost"
    turns: _Count = 10
    max_dollars: _NotNegative | None = None
    never_lose: tuple[LossKind, ...] = ()
    rest_seconds: _NotNegative = 60.0


@final
class ModelRoute(_Table, frozen=True, kw_only=True, rename={"targets": "try"}):
    """What a name that clients ask for represents.

    - `try`: the models, in order; the next one is tried when one fails before the first content.
    - `fallback`: how the next one is chosen, by cost and loss, and when the first is returned to (`FallbackTable`).
    - `sticky`: a conversation stays with the model that answered last.
    - `max_price`: dollars for a million output tokens; dearer models are left out, and those without a known price.
    - `thinking`, `max_tokens`, `temperature`: options in place of the client's own.
    - `reasoning`: what happens to the thinking of other models (`Policy.reasoning`).
    - `instructions`: whether a changed system prompt or tool list is appended (`Policy.instructions`).
    - `fit`: a history that is too long for the window is cut instead of refused; with "clear" or "compact" by the
      provider itself, where it can (`Fit.server`).
    - `recall`: where a history is cut, the model may look up what was cut (tool `recall`). The gateway answers; clients
      see one reply.
    - `caching`: requests of a conversation ask for prompt caching where the client did not.
    - `listed`: whether lists of models have the name.
    """

    targets: tuple[str, ...]
    fallback: FallbackTable | None = None
    sticky: bool = True
    max_price: float | None = None
    thinking: ThinkingLevel | int | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    reasoning: ReasoningPolicy = "auto"
    instructions: InstructionsPolicy = "replace"
    fit: bool | ServerEdit = False
    recall: bool = True
    caching: bool = True
    listed: bool = True


@final
class AccountTable(_Table, frozen=True, kw_only=True):
    """One of several accounts or deployments at a provider. Reports show the name of the table, so it is not a secret.

    `weight` is its share of new conversations among the others; `base_url` is its own address, as of a deployment.
    """

    key: str
    weight: Annotated[float, msgspec.Meta(gt=0)] = 1.0
    base_url: str | None = None


@final
class ProviderTable(_Table, frozen=True, kw_only=True):
    """A provider: its address, its key or its accounts, its protocol if it is one of your own, and further headers."""

    base_url: str | None = None
    key: str | None = None
    accounts: dict[str, AccountTable] = msgspec.field(default_factory=dict[str, AccountTable])
    protocol: str | None = None
    headers: dict[str, str] = msgspec.field(default_factory=dict[str, str])


@final
class StateTable(_Table, frozen=True, kw_only=True):
    """Where the state of replies is kept, how long, and the key of the envelopes.

    `content`: whether the store also has what requests and replies say, for the console, and how long it is kept
    (`content_days`). With `redacted` it has their structure, and the lengths of texts in place of the texts.
    """

    store: str = "sqlite:~/.local/state/segue/gateway.db"
    key: str | None = None
    days: float = 30.0
    megabytes: int = 2000
    request_days: float = 7.0
    content: Literal["off", "redacted", "full"] = "off"
    content_days: float = 7.0


@final
class LimitsTable(_Table, frozen=True, kw_only=True):
    """Limits on clients and times of replies.

    - `head_seconds`, `header_kilobytes`, `headers`: how long a client may take to send the head of a request, and the
      size and number of its headers.
    - `body_seconds`, `body_megabytes`: the same for the body.
    - `held_megabytes`, `held_megabytes_per_key`: bodies of all requests that run, and of those with the same key.
    - `requests_per_key`: requests with the same key that run at once.
    - `large_bodies_per_key`: bodies of more than 1 MB with the same key that arrive at once; further ones wait.
    - `connections`, `connections_per_address`: open connections, in all and from one address.
    - `sockets_per_key`, `socket_idle_seconds`, `socket_minutes`: open WebSockets with the same key, how long one may be
      idle, and how long it may last.
    - `remembered_megabytes`: bodies of earlier requests in memory, so that only what is new of a conversation is read;
      a quarter of it for one key. 0: none.
    - `values`, `messages`: JSON values of a body, counted by commas and brackets, and entries of one list.
    - `envelopes`, `envelope_megabytes`: envelopes that are read in one request; further ones are dropped and reported.
    - `hold_seconds`, `heartbeat_seconds`: how long the head of a stream is held back, and when silence is filled.
    - `drain_seconds`: how long replies that run may take after a signal to stop; new connections are refused meanwhile.
    - `timeout_seconds`, `retries`, `breaker_failures`, `breaker_seconds`: when a provider counts as failed.
    - `cooldown_seconds`: how long one of several accounts is tried after all others, when its key was refused, its
      quota was spent, or the server failed; after a rate limit, as long as the provider says.
    """

    head_seconds: _Positive = 10.0
    header_kilobytes: _Positive = 64.0
    headers: _Count = 200
    body_seconds: _Positive = 60.0
    body_megabytes: _Positive = 32.0
    held_megabytes: _Positive = 512.0
    held_megabytes_per_key: _Positive = 256.0
    requests_per_key: _Count = 1000
    large_bodies_per_key: _Count = 4
    connections: _Count = 4000
    connections_per_address: _Count = 1000
    sockets_per_key: _Count = 100
    socket_idle_seconds: _Positive = 900.0
    socket_minutes: _Positive = 60.0
    remembered_megabytes: _NotNegative = 32.0
    values: _Count = 1_000_000
    messages: _Count = 50_000
    envelopes: _Count = 10_000
    envelope_megabytes: _Positive = 16.0
    hold_seconds: float = 10.0
    heartbeat_seconds: float = 15.0
    drain_seconds: _Count = 30
    timeout_seconds: float = 600.0
    retries: int = 1
    breaker_failures: int = 5
    breaker_seconds: float = 30.0
    cooldown_seconds: float = 30.0


@final
class SpendingTable(_Table, frozen=True, kw_only=True):
    """How requests of keys with a budget, or a limit of tokens, are held within it.

    - `reserve`: what a request may cost is reserved before it is sent. Where less than that is left, with `lower` it
      gets fewer output tokens, which is reported; with `refuse` it is refused with the figures. With `loose` only what
      a reply is expected to cost is reserved: requests that run at once may overspend the budget many times.
    - `output_tokens`: the output tokens that are asked for if the client names none; without it, those that the model
      can write are reserved.
    """

    reserve: Literal["lower", "refuse", "loose"] = "lower"
    output_tokens: _Count | None = None


@final
class TelemetryTable(_Table, frozen=True, kw_only=True):
    """What is told to other programs about requests; nothing of it by default.

    - `endpoint`: the address of a collector for OTLP over HTTP, such as `http://127.0.0.1:4318`.
    - `content`: whether spans have the instructions and messages of requests and replies.
    - `propagate`: whether providers get the trace context, in the header `traceparent`.
    - `log`: one line for each request on the standard error, as text or as a JSON object.
    """

    endpoint: str | None = None
    content: bool = False
    propagate: bool = False
    log: Literal["off", "text", "json"] = "off"


@final
class Config(_Table, frozen=True, kw_only=True):
    """A whole configuration."""

    listen: Listen = Listen()
    models: dict[str, ModelRoute] = msgspec.field(default_factory=dict[str, ModelRoute])
    providers: dict[str, ProviderTable] = msgspec.field(default_factory=dict[str, ProviderTable])
    keys: dict[str, KeyTable] = msgspec.field(default_factory=dict[str, KeyTable])
    state: StateTable = StateTable()
    limits: LimitsTable = LimitsTable()
    spending: SpendingTable = SpendingTable()
    telemetry: TelemetryTable = TelemetryTable()
    catalogue: str | None = None


_UNKNOWN: Final = re.compile(r"unknown field `(?P<name>[^`]*)`(?: - at `(?P<path>[^`]*)`)?")
_PLACES: Final[Mapping[str, type[msgspec.Struct]]] = {
    "": Config,
    "listen": Listen,
    "state": StateTable,
    "limits": LimitsTable,
    "spending": SpendingTable,
    "telemetry": TelemetryTable,
    "models": ModelRoute,
    "providers": ProviderTable,
    "keys": KeyTable,
}


def load_config(data: bytes | str, *, name: str = "the configuration") -> Config:
    """Read a configuration.

    Raises:
        SettingsError: it is not TOML, or a key or a value of it is wrong; the message names the place.
    """
    try:
        parsed = tomllib.loads(data.decode() if isinstance(data, bytes) else data)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{name} cannot be read as TOML: {error}", key=name) from error
    try:
        config = msgspec.convert(parsed, Config)
    except msgspec.ValidationError as error:
        raise SettingsError(f"{name}: {_explain(str(error), parsed)}", key=name) from error
    for asked, route in config.models.items():
        if not route.targets:
            raise SettingsError(f'{name}: models."{asked}".try is empty; name at least one model', key=name)
        if route.fallback is not None and len(route.targets) == 1:
            raise SettingsError(
                f'{name}: models."{asked}" has a fallback table, but only one model in try; name another one', key=name
            )
    for provider, table in config.providers.items():
        if table.accounts and table.key is not None:
            raise SettingsError(
                f"{name}: providers.{provider} has a key and accounts; make the key that of an account", key=name
            )
        if "" in table.accounts:
            raise SettingsError(f"{name}: an account in providers.{provider}.accounts has no name; add one", key=name)
    endpoint = config.telemetry.endpoint
    if endpoint is not None and not endpoint.startswith(("http://", "https://")):
        raise SettingsError(
            f'{name}: telemetry.endpoint is not an address over HTTP; write "http://127.0.0.1:4318"', key=name
        )
    return config


def read_config(path: str | Path) -> Config:
    """Read a configuration file.

    Raises:
        SettingsError: the file cannot be read, or is wrong.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}; check the path", key=str(path)) from error
    return load_config(data, name=str(path))


def _explain(text: str, parsed: Mapping[str, Any]) -> str:
    """Explain what is wrong with the values; a misspelt key gets the nearest ones."""
    found = _UNKNOWN.search(text)
    if found is None:
        return text.replace("$.", "").replace("Object missing required field", "there is no") + _explain_choice(text)
    path = (found["path"] or "$").removeprefix("$").lstrip(".")
    table = path.partition(".")[0].partition("[")[0]
    kind = AccountTable if ".accounts" in path else FallbackTable if ".fallback" in path else _PLACES.get(table, Config)
    names = [field.encode_name for field in msgspec.structs.fields(kind)]
    near = get_close_matches(found["name"], names, n=2)
    hint = f"did you mean {' or '.join(near)}?" if near else f"the keys there are {', '.join(names)}"
    place = _place_of(table, found["name"], parsed)
    return f"there is no key {found['name']!r} in {place}; {hint}"


_CHOICE: Final = re.compile(r"Invalid enum value .* - at `\$\.(?P<path>[^`]*)`")


def _explain_choice(text: str) -> str:
    """Return the values that a key may have, if the wrong one is not among them."""
    found = _CHOICE.search(text)
    if found is None:
        return ""
    kind = msgspec.inspect.type_info(Config)
    for part in re.findall(r"\[[^]]*\]|[^.\[]+", found["path"]):
        kinds = kind.types if isinstance(kind, msgspec.inspect.UnionType) else (kind,)
        inner = (_step_into(each, part) for each in kinds)
        if (step := next((each for each in inner if each is not None), None)) is None:
            return ""
        kind = step
    kinds = kind.types if isinstance(kind, msgspec.inspect.UnionType) else (kind,)
    values = [value for each in kinds if isinstance(each, msgspec.inspect.LiteralType) for value in each.values]
    return f"; it can be {', '.join(map(str, values))}" if values else ""


def _step_into(kind: msgspec.inspect.Type, part: str) -> msgspec.inspect.Type | None:
    match kind:
        case msgspec.inspect.StructType():
            return next((field.type for field in kind.fields if field.encode_name == part), None)
        case msgspec.inspect.DictType():
            return kind.value_type
        case msgspec.inspect.VarTupleType():
            return kind.item_type
        case _:
            return None


def _place_of(table: str, name: str, parsed: Mapping[str, Any]) -> str:
    if not table:
        return "the file"
    for key, inner in cast("dict[str, Any]", parsed.get(table, {})).items():
        if not isinstance(inner, dict):
            continue
        if name in inner:
            return f'[{table}."{key}"]'
        fallback = cast("dict[str, Any]", inner).get("fallback")
        if isinstance(fallback, dict) and name in fallback:
            return f'[{table}."{key}".fallback]'
        accounts = cast("dict[str, Any]", inner).get("accounts")
        for account, values in cast("dict[str, Any]", accounts).items() if isinstance(accounts, dict) else ():
            if isinstance(values, dict) and name in values:
                return f'[{table}."{key}".accounts."{account}"]'
    return f"[{table}]"


def read_secret(given: str, environment: Mapping[str, str], *, key: str) -> str:
    """Return the secret that a value names: `env:NAME` or `file:PATH`.

    Raises:
        SettingsError: the value is neither, the variable is not set, or the file cannot be read.
    """
    kind, _, rest = given.partition(":")
    if kind == "env" and rest:
        if found := environment.get(rest, "").strip():
            return found
        raise SettingsError(f"{key} names the environment variable {rest}, which is not set; set it", key=key)
    if kind == "file" and rest:
        try:
            return Path(rest).expanduser().read_text().strip()
        except OSError as error:
            raise SettingsError(f"{key} names the file {rest}: {error.strerror}; check the path", key=key) from error
    raise SettingsError(
        f'{key} has to be "env:NAME" or "file:PATH", so that the configuration has no secret in it', key=key
    )


SetupName = Literal[
    "claude-code",
    "codex",
    "gemini-cli",
    "opencode",
    "pi",
    "cline",
    "qwen-code",
    "copilot",
    "aider",
    "goose",
    "crush",
    "zed",
    "vscode",
]
SETUP_NAMES: Final[tuple[str, ...]] = get_args(SetupName)
