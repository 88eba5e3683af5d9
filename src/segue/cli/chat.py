"""`segue chat`: chat with a model in the terminal, and switch models during the conversation."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from segue.cli.prompt import read_questions
from segue.cli.starting import LOCAL_OFFER, Sending, Start, find_start, offer_models, sending_options, session_option
from segue.cli.targets import CHAT, complete_model, open_catalogue
from segue.conversation.context import Options
from segue.models.catalogue import Catalogue


@click.command("chat")
@click.argument("model", required=False, shell_complete=complete_model)
@click.option(
    "-m", "--model", "named", metavar="MODEL", shell_complete=complete_model, help="The model, as for `segue ask`."
)
@session_option
@click.option(
    "--usage", is_flag=True, help="In a pipe as well, print tokens and cost of each answer to standard error."
)
@sending_options
@click.pass_context
def command(
    ctx: click.Context,
    *,
    model: str | None,
    named: str | None,
    session: Path | None,
    usage: bool,
    sending: Sending,
) -> None:
    """Chat with MODEL. `/model NAME` switches to another model and shows the changes; `/help` lists all commands.

    API keys are read from environment variables, such as OPENAI_API_KEY, and from `segue keys`. Without MODEL and
    without a model in `segue config`, the program offers a choice: providers that have a key, servers on this machine,
    and the echo model, which needs no key. If only the echo model is available, it starts directly. A text that is
    pasted is one question, with all its lines.

    In a pipe, each line is a question, and the exit status is that of the last answer: 3 without a valid API key, 4 if
    the request failed or the answer is incomplete.
    """
    from segue.cli.chat_session import ChatSession
    from segue.client.http.clients import Client

    if model is not None and named is not None:
        raise click.UsageError(f"the model is named twice: {model} and {named}")
    known = open_catalogue(sending.catalogue)
    start = find_start(named or model, sending, session, CHAT) or _choose(known)
    options = Options(thinking=sending.thinking, max_tokens=sending.max_tokens)
    with Client(**sending.client_settings(start.provider, known)) as client:
        session_chat = ChatSession(
            client,
            start.model,
            known,
            path=session,
            system_prompt=sending.system,
            options=options,
            usage=usage or (sys.stdin.isatty() and sys.stderr.isatty()),
        )
        try:
            reason = f" ({start.reason})" if start.reason else ""
            name = session_chat.model.full_name()
            click.echo(f"Chatting with {name}{reason}. /help lists the commands.", err=True)
            if sys.stdin.isatty():
                session_chat.prepare_model()
            for line in read_questions(session_chat.complete):
                if not session_chat.handle(line):
                    break
        finally:
            session_chat.close()
    ctx.exit(0 if sys.stdin.isatty() else session_chat.status)


def _choose(known: Catalogue) -> Start:
    """Let the user choose a model, or take the first where nobody can be asked."""
    from segue.models.built_in import ECHO

    offered = list(offer_models(known))
    nothing = f"no API key is set, and no server answers on this machine; {LOCAL_OFFER}"
    why = "it needs no key" if offered else nothing
    offered.append(Start(ECHO, ECHO.provider, why))
    if not sys.stdin.isatty() or len(offered) == 1:
        return offered[0]
    for number, (model, _, reason) in enumerate(offered, 1):
        assert model is not None, "every offer has a model"
        click.echo(f"{number:>3}  {model.full_name()}  {model.name or model.id} ({reason})")
    return offered[click.prompt("Number of the model", type=click.IntRange(1, len(offered)), default=1) - 1]
