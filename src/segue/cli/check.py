"""`segue check`: a linter for requests and stored conversations, with the exit status of a linter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import BinaryIO, Final, Literal, NamedTuple, final

import click
import msgspec

from segue.cli.history_inputs import SourceFile
from segue.cli.inputs import open_input
from segue.cli.targets import FOR, catalogue_option, complete_model, find_target, open_catalogue, source_option
from segue.conversation.context import Prompt
from segue.documents import BadLine, Document, Source, read_line
from segue.errors import DoesNotFit, EmptyConversation, Path, render_path
from segue.models.catalogue import Catalogue
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.projection.report import Loss
from segue.protocols.api import WINDOW_EXCEEDED, find_endpoint
from segue.protocols.api import check as check_body
from segue.protocols.registry import PROTOCOLS
from segue.tokens import estimate_tokens

Level = Literal["error", "warning", "notice"]

_LEVELS: Final[Mapping[Loss, Level]] = {Loss.CONTENT: "error", Loss.OPAQUE: "warning", Loss.NONE: "notice"}


@final
class Finding(NamedTuple):
    """One problem, and its place."""

    level: Level
    code: str
    path: Path
    message: str
    line: int | None = None


@click.command("check")
@click.argument("file", type=SourceFile())
@click.option(
    "--for",
    "target",
    metavar="MODEL|PROTOCOL",
    required=True,
    shell_complete=complete_model,
    help="The model, or any model of this protocol.",
)
@source_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["human", "json", "github"]),
    default="human",
    show_default=True,
    help="How to print findings; github prints workflow commands.",
)
@click.option("--all", "harmless", is_flag=True, help="Also list changes that drop nothing.")
@catalogue_option
@click.pass_context
def command(
    ctx: click.Context,
    *,
    file: BinaryIO,
    target: str,
    source: str | None,
    form: str,
    harmless: bool,
    catalogue: str | None,
) -> None:
    """List the problems of FILE for a model, or for any model of a protocol.

    For a request of the same protocol: what the provider would refuse. For a stored conversation, or a request of
    another protocol: what has to change before it can be sent to the model.

    A request that is larger than the window of the model is an error if it has more words than the window has tokens:
    no tokenizer joins two words. It is a warning if only the estimate is larger.

    Exit status: 0 without findings, 1 with findings, 2 for an error.
    """
    wire_only = target in PROTOCOLS
    model = find_target(None, target, catalogue) if wire_only else find_target(target, None, catalogue, FOR)
    known = open_catalogue(catalogue)
    opened = open_input(file, source)
    found = [
        finding
        for document in _documents(opened, source)
        for finding in _findings(document, model, known if wire_only else None)
        if harmless or finding.level != "notice"
    ]
    _PRINTERS[form](found, file.name)
    ctx.exit(1 if found else 0)


def _documents(opened: Source, protocol: str | None) -> Iterator[Document | BadLine]:
    if opened.document is not None:
        yield opened.document
    for number, line in opened.lines:
        yield read_line(line, protocol, number)


def _findings(document: Document | BadLine, model: Model, known: Catalogue | None) -> Iterator[Finding]:
    """Give the problems for a model; with the `known` models, those for the model that a request names."""
    if isinstance(document, BadLine):
        yield Finding("error", "unreadable", (), document.reason, document.line)
        return
    line = document.line
    if document.protocol == model.protocol and isinstance(document.body, dict):
        # With only a protocol, the check is for the model that the body names.
        named = document.prompt.model
        judged = None if known is not None and named else model
        violations = check_body(document.body, protocol=model.protocol, model=judged, catalogue=known)
        for violation in violations:
            yield Finding("error", violation.code, violation.path, violation.message, line)
        if not any(violation.code == WINDOW_EXCEEDED for violation in violations):
            endpoint = find_endpoint(model.protocol, judged, named, known)
            yield from _estimated(document.prompt, endpoint.model, line)
        return
    try:
        request = document.prepare(model, Policy())
    except EmptyConversation as empty:
        yield Finding("error", "empty_conversation", (), str(empty), line)
        return
    except DoesNotFit as unsendable:
        yield Finding("error", "does_not_fit", unsendable.path, str(unsendable), line)
        return
    for change in request.report.changes:
        yield Finding(_LEVELS[change.loss], change.code.value, change.path, change.sentence(), line)


def _estimated(prompt: Prompt, model: Model, line: int | None) -> Iterator[Finding]:
    """Compare the estimate with the window. It may be wrong by a tenth or more, so the finding is a warning."""
    if model.context_window and (tokens := estimate_tokens(prompt, model)) > model.context_window:
        message = (
            f"the request has about {tokens:,} tokens, and the window of the model has {model.context_window:,};"
            " this is an estimate"
        )
        yield Finding("warning", "window_exceeded_by_estimate", (), message, line)


def _print_human(found: list[Finding], name: str) -> None:
    for finding in found:
        place = f"{name}:{finding.line}" if finding.line is not None else name
        where = render_path(finding.path)
        message = finding.message.removeprefix(f"{where}: ")
        click.echo(f"{place}: {where or 'whole file'}: {finding.level}: {message} [{finding.code}]")
    click.echo(f"{len(found)} found" if found else "no problems found", err=True)


def _print_json(found: list[Finding], name: str) -> None:
    rows = [{"file": name, **finding._asdict()} for finding in found]
    click.echo(msgspec.json.format(msgspec.json.encode(rows), indent=2))


def _print_github(found: list[Finding], name: str) -> None:
    for finding in found:
        # Characters that a workflow command escapes (GitHub documentation, workflow commands; read 2026-11-15).
        message = finding.message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
        click.echo(f"::{finding.level} file={name},line={finding.line or 1},title={finding.code}::{message}")


_PRINTERS: Final = {"human": _print_human, "json": _print_json, "github": _print_github}
