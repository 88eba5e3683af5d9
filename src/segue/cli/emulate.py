"""`segue emulate`: local servers that answer like the providers, and refuse what they refuse."""

from __future__ import annotations

from pathlib import Path

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
@click.option("--bind-prefix", is_flag=True, help="A signature is valid only after the same conversation.")
@click.option("--lenient", is_flag=True, help="Accept requests that `segue check` refuses.")
@click.option("--api-key", metavar="KEY", help="The only API key that is accepted.  [default: any]")
def command(*, port: int, script: Path | None, key: str, bind_prefix: bool, lenient: bool, api_key: str | None) -> None:
    """Answer like Anthropic, OpenAI and Google, without a network. Ctrl-C ends it.

    Thinking is signed, and signatures that come back are verified. POST /emulator/steps adds steps, and GET
    /emulator/requests lists the requests with what was refused.
    """
    import uvicorn

    from segue.testing.emulator import Emulator, load_steps

    steps = () if script is None else load_steps(script.read_bytes())
    emulator = Emulator(*steps, key=key, binds_prefix=bind_prefix, strict=not lenient, api_key=api_key)
    listener = listen("127.0.0.1", port)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    click.echo(f"The emulator is at {url}")
    click.echo(f"  Anthropic  {url}\n  OpenAI     {url}/v1\n  Google     {url}/v1beta")
    click.echo("Press Ctrl-C to end it.")
    uvicorn.Server(uvicorn.Config(emulator, log_level="critical", lifespan="on")).run(sockets=[listener])
