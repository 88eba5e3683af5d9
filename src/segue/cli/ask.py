"""`segue ask`: one question, one answer; for pipes and scripts."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO, cast

import click
import msgspec

from segue.cli.printable import echo_styled
from segue.cli.progress import read_pipe
from segue.cli.starting import NoModel, Sending, Start, find_start, offer_models, sending_options, session_option
from segue.cli.statuses import Status
from segue.cli.targets import ASK, complete_model, open_catalogue
from segue.conversation.content import UserContent
from segue.conversation.context import Options
from segue.conversation.messages import AssistantMessage
from segue.foundation.json_text import encode_json
from segue.models.model import Model
from segue.projection.report import Report


@click.command("ask")
@click.argument("question", nargs=-1)
@click.option(
    "-m",
    "--model",
    metavar="MODEL",
    shell_complete=complete_model,
    help="The model.  [default: that of the session, of `segue config`, of a key, or of a server on this machine]",
)
@click.option(
    "-f",
    "--file",
    "files",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    help="Send this image, PDF, text or other file with the question; can be repeated.",
)
@session_option
@click.option(
    "--schema",
    metavar="FILE|JSON",
    help="The JSON schema of the answer: a file, or the schema itself. The answer is JSON.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the answer with its model, tokens and cost as JSON.")
@click.option("--usage", is_flag=True, help="Print tokens and cost to standard error.")
@sending_options
@click.pass_context
def command(
    ctx: click.Context,
    *,
    question: tuple[str, ...],
    model: str | None,
    files: tuple[Path, ...],
    session: Path | None,
    schema: str | None,
    as_json: bool,
    usage: bool,
    sending: Sending,
) -> None:
    """Send QUESTION to a model and print the answer as it arrives.

    Text from a pipe is sent with the question, or is the question if there is no other. Only the answer goes to
    standard output. API keys are read from environment variables, such as OPENAI_API_KEY, and from `segue keys`.

    Exit status: 0 for an answer, 1 if it is not JSON with --schema, 2 for wrong usage, 3 without a valid API key, 4 if
    the request failed or the answer is incomplete, 130 after Ctrl-C.
    """
    from segue.cli.answers import print_answer, print_end, print_usage, status_of
    from segue.client.http.clients import Client
    from segue.client.session.conversation import Conversation

    output_schema = _read_schema(schema)
    content = _read_content(question, files)
    known = open_catalogue(sending.catalogue)
    start = find_start(model, sending, session, ASK) or _first_offer(next(offer_models(known), None))
    options = Options(thinking=sending.thinking, max_tokens=sending.max_tokens, output_schema=output_schema)
    with (
        Client(**sending.client_settings(start.provider, known)) as client,
        Conversation(
            start.model, client=client, path=session, system_prompt=sending.system, options=options
        ) as conversation,
    ):
        if start.reason:
            echo_styled(f"({conversation.model.full_name()}: {start.reason})", dim=True, err=True)
        stream = conversation.stream(*content)
        message = print_answer(stream, on_first=_nothing, thinking_to_stderr=True, quiet=as_json)
        answered, report, status = stream.model, stream.report, status_of(message, stream.attempts)
    print_end(message)
    if usage:
        print_usage(message.usage)
    if message.tool_calls():
        names = ", ".join(call.name for call in message.tool_calls())
        click.echo(f"segue: the model calls a tool ({names}), and `segue ask` runs none", err=True)
        status = Status.FAILED
    output = None
    if output_schema is not None and status == Status.SUCCESS:
        output, status = _read_output(message.text())
    if as_json:
        click.echo(_describe(message, answered, report, output))
    ctx.exit(status)


def _nothing() -> None:
    """Do nothing when the answer begins."""


def _first_offer(offer: Start | None) -> Start:
    if offer is None:
        raise NoModel
    return offer


def _read_content(question: tuple[str, ...], files: tuple[Path, ...]) -> list[str | UserContent]:
    """Read everything that is sent: the question, the files, and what a pipe brings."""
    from segue.cli.attachments import make_attachment, read_attachment

    asked = "" if question == ("-",) else " ".join(question).strip()
    content: list[str | UserContent] = [read_attachment(path) for path in files]
    stdin = cast("TextIO | None", sys.stdin)  # None if the program was started with a closed standard input
    if stdin is not None and (question == ("-",) or not stdin.isatty()):
        piped = read_pipe()
        try:
            content.append(piped.decode("utf-8").strip())
        except UnicodeDecodeError:
            content.append(make_attachment(piped, "stdin"))
    content = [each for each in (*content, asked) if each]
    if not content:
        raise click.UsageError("there is no question; write it after `segue ask`, or send it in a pipe")
    return content


def _read_schema(given: str | None) -> Mapping[str, Any] | None:
    """Read the schema: JSON, or the file that has it."""
    if given is None:
        return None
    is_text = given.lstrip().startswith(("{", "["))
    data = given.encode() if is_text else Path(given).expanduser().read_bytes()
    name = "--schema" if is_text else given
    try:
        schema: object = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{name}: the schema is not valid JSON: {error}") from None
    if not isinstance(schema, dict):
        raise click.UsageError(f'{name}: a JSON schema is an object, such as {{"type": "object"}}')
    return cast("dict[str, Any]", schema)


def _read_output(text: str) -> tuple[object, Status]:
    """Parse an answer that has to be JSON."""
    try:
        return msgspec.json.decode(text), Status.SUCCESS
    except msgspec.DecodeError as error:
        click.echo(f"segue: the answer is not JSON, although --schema asks for it: {error}", err=True)
        return None, Status.FOUND


def _describe(message: AssistantMessage, model: Model, report: Report, output: object) -> bytes:
    """Write an answer as one line of JSON."""
    usage = message.usage
    whole: dict[str, object] = {"text": message.text()}
    if output is not None:
        whole["output"] = output
    whole |= {"model": model.full_name(), "stopReason": message.stop_reason}
    if message.error_message:
        whole["error"] = message.error_message
    if usage is not None:
        whole |= {"usage": usage, "cost": None if usage.cost is None else usage.cost.total}
    whole["changes"] = report.changes
    return encode_json(whole)
