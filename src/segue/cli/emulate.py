"""`segue emulate`: local servers that answer like the providers, and refuse what they refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from segue.cli.listening import listen


@click.command("emulate")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port.  [default: a free one]")
@click.option(
    "--script",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A JSON list of steps: what is answered, one step for each request.",
)
@click.option("--key", default="emulator", show_default=True, help="Signatures are valid only at the same key.")
@click.option(
    "--account",
    type=click.Choice(["new", "old"]),
    default="new",
    show_default=True,
    help="Refuse Claude thinking of another conversation as new accounts do, or as accounts before 2026-08-31.",
)
@click.option(
    "--organization",
    "organizations",
    metavar="KEY=NAME",
    multiple=True,
    help="The organization of an API key; repeatable.  [default: all keys share one]",
)
@click.option("--model", "models", metavar="NAME", multiple=True, help="Serve this model too; repeatable.")
@click.option("--lenient", is_flag=True, help="Accept unknown models, and requests that `segue check` refuses.")
@click.option("--api-key", metavar="KEY", help="The only API key that is accepted.  [default: any]")
def command(
    *,
    port: int,
    script: Path | None,
    key: str,
    account: Literal["new", "old"],
    organizations: tuple[str, ...],
    models: tuple[str, ...],
    lenient: bool,
    api_key: str | None,
) -> None:
    """Answer like Anthropic, Bedrock, OpenAI, Google and others, without a network. Ctrl-C ends it.

    Thinking is signed, and signatures that come back are verified: model, account, and for current Claude models the
    conversation. POST /emulator/steps adds steps, GET /emulator/requests lists the requests with what was refused, and
    GET /emulator/bill has what they cost.
    """
    import uvicorn

    from segue.testing.emulator import Emulator, load_steps

    steps = () if script is None else load_steps(script.read_bytes())
    emulator = Emulator(
        *steps,
        key=key,
        account=account,
        organizations=_read_organizations(organizations),
        strict=not lenient,
        api_key=api_key,
        models=models,
    )
    listener = listen("127.0.0.1", port)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    click.echo(f"The emulator is at {url}")
    click.echo(f"  Anthropic  {url}\n  OpenAI     {url}/v1\n  Google     {url}/v1beta\n  Bedrock    {url}")
    click.echo("Press Ctrl-C to end it.")
    uvicorn.Server(uvicorn.Config(emulator, log_level="critical", lifespan="on")).run(sockets=[listener])


def _read_organizations(given: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, each in enumerate(given, 1):
        key, _, name = each.partition("=")
        if not key or not name:
            raise click.BadParameter(
                f"number {number} is not KEY=NAME; write an API key, `=` and the name of its organization",
                param_hint="--organization",
            )
        found[key] = name
    return found
