"""`segue chat`: chat with a model in the terminal, and switch models during the conversation."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import cast

import click

from segue.cli.targets import CHAT, PROTOCOL_NAMES, catalogue_option, complete_model, find_target, open_catalogue
from segue.conversation.context import Options, ThinkingLevel
from segue.models.catalogue import Catalogue
from segue.models.model import Model
from segue.models.thinking import THINKING_LEVELS
from segue.sessions import read_session


@click.command("chat")
@click.argument("model", required=False, shell_complete=complete_model)
@click.option(
    "--protocol",
    metavar="PROTOCOL",
    type=PROTOCOL_NAMES,
    help="The protocol of MODEL, if the catalogue does not have it.",
)
@click.option("--base-url", help="The URL of the server, instead of the provider's own.")
@click.option(
    "--session",
    metavar="PATH",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Continue this session file; create it if needed.",
)
@click.option("--system", metavar="TEXT", help="The system prompt.")
@click.option("--thinking", type=click.Choice(THINKING_LEVELS), help="How much the model thinks before it answers.")
@click.option("--max-tokens", type=click.IntRange(1), help="The limit of each answer, in tokens.")
@catalogue_option
def command(
    *,
    model: str | None,
    protocol: str | None,
    base_url: str | None,
    session: Path | None,
    system: str | None,
    thinking: str | None,
    max_tokens: int | None,
    catalogue: str | None,
) -> None:
    """Chat with MODEL. `/model NAME` switches to another model and shows the changes; `/help` lists all commands.

    API keys are read from the environment variable of each provider, such as OPENAI_API_KEY. Without MODEL, the program
    offers a choice: providers whose key is set, servers on this machine, and the echo model, which needs no key. If
    only the echo model is available, it starts directly.
    """
    from segue.cli.chat_session import ChatSession
    from segue.client.http.clients import Client
    from segue.client.local.echo import ECHO, ECHO_MOUNT

    known = open_catalogue(catalogue).with_models(ECHO)
    target = ECHO if model == ECHO.id else _choose(model, protocol, session, known, catalogue)
    options = Options(thinking=cast("ThinkingLevel | None", thinking), max_tokens=max_tokens)
    urls = None if base_url is None else {target.provider: base_url}
    with Client(base_url=urls, transport=ECHO_MOUNT, catalogue=known) as client:
        session_chat = ChatSession(client, target, known, path=session, system_prompt=system, options=options)
        try:
            click.echo(f"Chatting with {target.full_name()}. /help lists the commands.", err=True)
            for line in _lines():
                if not session_chat.handle(line):
                    break
        finally:
            session_chat.close()


def _choose(
    name: str | None, protocol: str | None, session: Path | None, known: Catalogue, catalogue: str | None
) -> Model:
    from segue.client.local.echo import ECHO
    from segue.client.local.servers import find_keyed_models, find_local_models

    if name is not None:
        return find_target(name, protocol, catalogue, CHAT)
    if session is not None and session.exists():
        for message in reversed(read_session(session).messages):
            if message.role == "assistant" and message.model:
                return known.get(f"{message.provider}/{message.model}")
    offered = [*find_keyed_models(known), *find_local_models(), ECHO]
    if not sys.stdin.isatty() or len(offered) == 1:
        return offered[0]
    for number, model in enumerate(offered, 1):
        click.echo(f"{number:>3}  {model.full_name()}  {model.name}")
    chosen = click.prompt("Number of the model", type=click.IntRange(1, len(offered)), default=1)
    return offered[chosen - 1]


def _lines() -> Iterator[str]:
    """Yield the typed lines; Ctrl-C at the prompt clears the line, Ctrl-D ends."""
    if not sys.stdin.isatty():
        yield from sys.stdin
        return
    with suppress(ImportError):  # line editing and a history, if the system has them
        import_module("readline")
    while True:
        try:
            yield input("> ")
        except KeyboardInterrupt:
            click.echo("\n(Ctrl-D or /quit ends the chat)", err=True)
        except EOFError:
            click.echo()
            return
