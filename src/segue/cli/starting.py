"""Which model a chat or a question starts with, and why; and the options of all commands that send requests."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, final
from urllib.parse import urlsplit

import click

from segue.cli.printable import echo_styled
from segue.cli.statuses import Status
from segue.cli.targets import PROTOCOL_NAMES, ModelWords, catalogue_option, find_target, gather
from segue.client.local.user_files import key_sources, read_settings, reads_url_variables
from segue.conversation.context import ThinkingLevel
from segue.errors import SegueError, install_line
from segue.histories.sessions import read_session
from segue.models.built_in import LOCAL
from segue.models.catalogue import Catalogue
from segue.models.model import Model
from segue.models.providers import PROVIDERS
from segue.models.thinking import THINKING_LEVELS

if TYPE_CHECKING:
    from segue.client.http.clients import Client
    from segue.client.http.settings import ClientSettings
    from segue.gateway.service import Gateway

LOCAL_OFFER: Final = f"`segue local get` (93 MB) fetches a small model for this machine, after {install_line('local')}"
"""How to get a model that needs no key: it is offered, and never fetched unasked."""


@final
class Sending(NamedTuple):
    """The options of a command that sends requests."""

    protocol: str | None
    base_url: str | None
    url_variables: bool
    key: str | None
    system: str | None
    thinking: ThinkingLevel | None
    max_tokens: int | None
    catalogue: str | None

    def client_settings(self, provider: str, known: Catalogue) -> ClientSettings:
        """Return the settings of a client: key and URL are those of the provider that is asked."""
        settings: ClientSettings = {"catalogue": known}
        if (key := read_key(self.key)) is not None:
            settings["api_key"] = {provider: key}
        if self.base_url is not None:
            settings["base_url"] = {provider: self.base_url}
        if not (self.url_variables and reads_url_variables(os.environ)):
            settings["url_variables"] = False
        return settings


def sending_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a command that sends requests; it gets them as `sending`."""
    command = gather(sending=Sending)(command)
    for option in reversed(_OPTIONS):
        command = option(command)
    return catalogue_option(command)


session_option: Final = click.option(
    "-s",
    "--session",
    metavar="PATH",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Continue this session file; create it if needed.",
)

_OPTIONS: Final = (
    click.option(
        "--protocol",
        metavar="PROTOCOL",
        type=PROTOCOL_NAMES,
        help="The protocol of the model, if the catalogue does not have it.",
    ),
    click.option("--base-url", metavar="URL", help="The URL of the server, instead of the provider's own."),
    click.option(
        "--url-variables/--no-url-variables",
        default=True,
        help="Use the URLs in variables such as OPENAI_BASE_URL, as the providers' SDKs do.  [default: use them]",
    ),
    click.option(
        "--key",
        metavar="KEY|@FILE",
        help="The API key, or the file that has it.  [default: the provider's environment variable]",
    ),
    click.option("--system", metavar="TEXT", help="The system prompt."),
    click.option("--thinking", type=click.Choice(THINKING_LEVELS), help="How much the model thinks before it answers."),
    click.option("--max-tokens", type=click.IntRange(1), help="The limit of each answer, in tokens."),
)


def read_key(given: str | None) -> str | None:
    """Return the key of the option; `@FILE` is read.

    Raises:
        OSError: the file cannot be read.
        UsageError: the file has no key.
    """
    if not given or not given.startswith("@"):
        return given
    try:
        key = Path(given[1:]).expanduser().read_text("utf-8").strip()
    except UnicodeDecodeError:
        raise click.UsageError(f"{given[1:]} is not a text file; --key @FILE needs a file with the API key") from None
    if not key:
        raise click.UsageError(f"{given[1:]} is empty; --key @FILE needs a file with the API key")
    return key


@final
class Start(NamedTuple):
    """A model to start with."""

    model: Model | None
    """None if the session file names it."""
    provider: str
    reason: str = ""
    """Why it was chosen; empty if the user named it."""


class NoModel(click.ClickException):
    """No model can be used: there is no key and no server."""

    exit_code: ClassVar[int] = Status.NO_KEY

    def __init__(self) -> None:
        super().__init__(
            "no API key is set, and no server answers on this machine; set a key, such as ANTHROPIC_API_KEY or"
            " OPENAI_API_KEY, store one with `segue keys set PROVIDER`, or name a model with -m; without a key,"
            f" `-m echo` repeats the question, and {LOCAL_OFFER}"
        )


class NotUsable(click.ClickException):
    """A model that the user named cannot answer: it has no key, or its server does not run."""

    exit_code: ClassVar[int] = Status.NO_KEY


def check_usable(gateway: Gateway, name: str) -> None:
    """Check before the start that a model can answer: programs repeat requests that fail for a minute or more.

    Raises:
        UnknownModel: there is no such model.
        NotUsable: a key is not set, or no server answers on this machine.
    """
    from segue.client.local.gguf import check_ready

    for model in gateway.router.find(name).models:
        missing = gateway.runtime.client.find_missing(model)
        if missing is not None:
            reason, _, hint = missing.partition(", or pass ")
            more = f", or providers.{model.provider}.key in a file for --config" if hint.startswith("api_key") else ""
            raise NotUsable(f"{model.full_name()} cannot answer: {reason}{more}")
        if model.provider == LOCAL.provider:
            try:
                check_ready(model.id, os.environ)
            except SegueError as error:
                raise NotUsable(f"{model.full_name()} cannot answer: {error}") from None
        row = PROVIDERS.get(model.provider)
        url = model.base_url or (None if row is None else row.base_url)
        if url is not None and not _has_server(url):
            raise NotUsable(f"{model.full_name()} cannot answer: no server answers at {url}; start it first")


def find_obstacle(client: Client, model: Model) -> str | None:
    """Describe what every request to a model would fail for: no key, no file, no package. None if nothing is known."""
    from segue.client.local.gguf import check_ready

    missing = client.find_missing(model)
    if missing is None and model.base_url == LOCAL.base_url:
        try:
            check_ready(model.id, os.environ)
        except SegueError as error:
            return str(error)
    return missing


def start_local(model: Model) -> bool:
    """Start the server of a model of this machine while the user still types; whether it is one."""
    from threading import Thread

    from segue.client.local.gguf import check_ready, start

    if model.base_url != LOCAL.base_url:
        return False
    path = check_ready(model.id, os.environ)

    def run() -> None:
        with suppress(SegueError, OSError):  # the first request tries again, and reports it
            start(path)

    echo_styled(f"(starting {path.name}, {path.stat().st_size / 1e6:,.0f} MB, on this machine)", dim=True, err=True)
    Thread(target=run, daemon=True).start()
    return True


def _has_server(url: str) -> bool:
    """Whether something listens at a URL of this machine; other machines are not asked."""
    try:
        parts = urlsplit(url)
        if parts.hostname not in ("localhost", "127.0.0.1", "::1"):
            return True
        port = parts.port or (443 if parts.scheme == "https" else 80)
        with socket.create_connection((parts.hostname, port), timeout=2):
            return True
    except (OSError, ValueError):
        return False


def find_start(name: str | None, sending: Sending, session: Path | None, words: ModelWords) -> Start | None:
    """Find the model that the user named, that the session was continued with last, or that is set; None without."""
    if name is not None:
        model = find_target(name, sending.protocol, sending.catalogue, words)
        return Start(model, model.provider)
    if session is not None and session.exists():
        for message in reversed(read_session(session).messages):
            if message.role == "assistant" and message.model:
                return Start(None, message.provider or "", f"the model of the last answer in {session}")
    if (name := read_settings(os.environ).get("model")) is not None:
        model = find_target(name, sending.protocol, sending.catalogue, words)
        return Start(model, model.provider, f"`segue config` sets it{_priced(model)}")
    return None


def offer_models(known: Catalogue) -> Iterator[Start]:
    """Yield the models that can be used at once, with the reasons; the echo model is not among them."""
    from segue.client.local.servers import find_keyed_models, find_local_models

    sources = key_sources(os.environ)
    for model in find_keyed_models(known):
        source = sources[model.provider]
        reason = f"its key is stored ({source})" if source in ("file", "keyring") else f"{source} is set"
        yield Start(model, model.provider, f"{reason}{_priced(model)}")
    for model in find_local_models():
        reason = f"a server answers at {PROVIDERS[model.provider].base_url}"
        yield Start(model, model.provider, "on this machine, without a key" if model == LOCAL else reason)


def _priced(model: Model) -> str:
    """Name the price of a model that the user did not choose; nothing if it is not known."""
    cost = model.cost
    if not (cost.input or cost.output):
        return ""
    return f"; ${cost.input:,.2f} for a million tokens of input, ${cost.output:,.2f} of output"
