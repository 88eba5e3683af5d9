"""`segue handover`: continues a session of one agent in another one, on another model."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp

import click
from msgspec.structs import replace

from segue.cli.history_outputs import (
    commands_of,
    print_report,
    render_commands,
    run_commands,
    save_fresh,
)
from segue.cli.inputs import EXAMPLE, check_input, chosen_view, example_option, open_history, view_options
from segue.cli.reports import ReportForm, report_option
from segue.cli.sessions import in_order, pick_one
from segue.cli.targets import (
    TO,
    catalogue_option,
    complete_model,
    find_target,
    name_option,
    open_catalogue,
    reasoning_option,
)
from segue.errors import LoadError
from segue.foundation.plurals import counted
from segue.histories.api import find_sessions, keep_originals, restore_history
from segue.histories.kit.format import Format
from segue.histories.kit.history import History, Written
from segue.histories.registry import all_formats, get_format
from segue.models.model import Model
from segue.models.providers import DEFAULT_MODELS
from segue.projection.policy import Policy, ReasoningPolicy
from segue.projection.report import Report


@click.command("handover")
@click.argument("source", required=False)
@example_option
@click.option("--to", "target", metavar="AGENT", required=True, help="The agent that continues the session.")
@click.option(
    "--model",
    metavar="MODEL",
    shell_complete=complete_model,
    help="The model that continues it.  [default: that of the last answer, or the current one of the agent]",
)
@click.option("--cwd", metavar="DIR", help="The folder of the project.  [default: that of the session]")
@name_option
@click.option("--session", metavar="ID", help="The conversation to read, of a source with several.  [default: newest]")
@view_options
@click.option(
    "--from-message",
    "first",
    type=click.IntRange(0),
    metavar="N",
    help="Leave out the messages before this one; `segue show` numbers them.",
)
@reasoning_option
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="A folder of your own for the files.  [default: the folder of the agent]",
)
@click.option("--run", is_flag=True, help="Start the agent with the session.")
@report_option
@catalogue_option
@click.pass_context
def command(
    ctx: click.Context,
    *,
    source: str | None,
    example: bool,
    target: str,
    model: str | None,
    cwd: str | None,
    name: str | None,
    session: str | None,
    view: str,
    branch: str | None,
    first: int | None,
    reasoning: ReasoningPolicy,
    output: Path | None,
    run: bool,
    form: ReportForm,
    catalogue: str | None,
) -> None:
    """Write the session SOURCE for another agent, and print the command that continues it there.

    SOURCE is what `segue import` takes, such as `claude-code:last`; without it, you pick a session in the terminal. It
    is never changed; the new session has a new id.
    Standard output has only the command; with --run it is run in the folder of the project. A session that comes back
    from another agent gets its own messages back, with their reasoning, and the turns that the other one added.
    """
    record = agent_format(target)
    check_input(source, example=example, is_required=False, name="SOURCE")
    if example:
        source = str(EXAMPLE)
    if source is None:
        picked = pick_one(in_order(find_sessions()))
        if picked is None:
            ctx.exit(1)
        source = f"{picked.format}:{picked.id}"
    opened = open_history(source, name=name, view=chosen_view(view, branch), session=session)
    history = restore_history(opened)
    if history is not opened:
        own = set(map(id, opened.context.messages))
        count = sum(id(message) not in own for message in history.context.messages)
        click.echo(f"Restored: {counted(count, 'message')} as before the handover to {opened.origin.format}", err=True)
    if first is not None:
        history = _from_message(history, first)
    chosen = default_model(record, history, model, catalogue)
    written, paths, commands = hand_over(
        history, record, chosen, cwd, output=output, policy=Policy(reasoning=reasoning)
    )
    click.echo(f"Written: {', '.join(map(str, paths))}, for {chosen.full_name()}", err=True)
    print_report(Report((*history.report.changes, *written.report.changes)), form, converts=True)
    place = cwd or history.cwd
    if not commands:
        click.echo(f"{record.title} continues only sessions of its own folder; leave out -o", err=True)
        ctx.exit(2 if run else 0)
    click.echo(render_commands(commands, place))
    if run:
        ctx.exit(run_commands(commands, place))


def agent_format(name: str) -> Format:
    """Find the format of an agent that can continue sessions.

    Raises:
        UnknownFormat: no format has that name.
        UsageError: no session can be continued there.
    """
    record = get_format(name)
    if record.write is None or record.kind != "agent":
        names = ", ".join(each.name for each in all_formats() if each.write is not None and each.kind == "agent")
        raise click.UsageError(f"--to {name}: no session can be continued there; choose one of {names}")
    return record


def hand_over(
    history: History,
    record: Format,
    model: Model,
    cwd: str | None,
    *,
    output: Path | None = None,
    policy: Policy | None = None,
) -> tuple[Written, tuple[Path, ...], list[list[str]]]:
    """Store a history for an agent; also gives the files, and the commands that continue it there."""
    folder = output
    if folder is None and (record.place is None or not record.place.patterns):
        folder = Path(mkdtemp(prefix="segue-"))  # the program takes the file into its database
    written, paths = save_fresh(history, record, model, cwd, folder, policy=policy)
    if output is None and folder is not None:
        keep_originals(written)
    return written, paths, commands_of(written, paths[0], elsewhere=folder is not None)


def _from_message(history: History, first: int) -> History:
    """Leave out the messages before one; it has to be one of the user, because a result alone has no call."""
    messages = history.context.messages
    if first >= len(messages) or messages[first].role != "user":
        users = [at for at, message in enumerate(messages) if message.role == "user"]
        near = sorted(users, key=lambda at: abs(at - first))[:3]
        raise LoadError(
            f"--from-message {first}: this is no message of the user;"
            f" the nearest are {', '.join(map(str, sorted(near))) or 'none'}"
        )
    pins = tuple(at - first for at in history.context.pins if at >= first)
    context = replace(history.context, messages=messages[first:], pins=pins, summaries=())
    return replace(history, context=context)


def default_model(record: Format, history: History, name: str | None, catalogue: str | None) -> Model:
    """Find the model that continues a history.

    Without a name it is the one of the last answer, if the format can hold it, else the current model of the provider
    that the agent is made for.

    Raises:
        UnknownModel: the catalogue has no model of that name.
    """
    if name is not None:
        return find_target(name, record.wire, catalogue, TO._replace(model="--model", protocol="--to"))
    for message in reversed(history.context.messages):
        if message.role == "assistant" and message.model and record.wire in (None, message.protocol):
            return Model(message.model, message.provider, message.protocol, reasoning=True)
    assert record.example is not None, "the conformance kit asks for one"
    provider = record.example.provider
    current = open_catalogue(catalogue).lookup(f"{provider}/{DEFAULT_MODELS.get(provider, '')}")
    return current if current is not None and record.wire in (None, current.protocol) else record.example
