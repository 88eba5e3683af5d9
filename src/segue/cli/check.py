"""`segue check`: a linter for requests and stored conversations, with the exit status of a linter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any, BinaryIO, Final, Literal, NamedTuple, final

import click
import msgspec

from segue.cli.fixing import fix
from segue.cli.inputs import EXAMPLE, SourceFile, choose_input, example_option, open_input, raise_named
from segue.cli.places import LinesOfPaths
from segue.cli.progress import Advance, show_progress
from segue.cli.reports import open_console, show_report
from segue.cli.statuses import Status
from segue.cli.targets import (
    FOR,
    catalogue_option,
    complete_model_or_protocol,
    find_target,
    open_catalogue,
    source_option,
)
from segue.cli.wording import in_program_words
from segue.conversation.context import Context, Prompt
from segue.corpus.pieces import find_again
from segue.corpus.rows import ID_COLUMN
from segue.corpus.training import ONLY_REQUESTS, has_weights, is_training_line, writing_model
from segue.errors import DecodeError, DoesNotFit, EmptyConversation, Path, SegueError, render_path
from segue.foundation.json_text import encode_valid_json
from segue.foundation.plurals import counted
from segue.foundation.safe_text import in_one_line, printable
from segue.histories.api import check_bound_state
from segue.histories.opening import BadLine, How, Opened, OpenedDocument, open_line
from segue.models.catalogue import Catalogue
from segue.models.evidence import Grade
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.projection.report import Loss
from segue.protocols.api import WINDOW_EXCEEDED, find_endpoint
from segue.protocols.check_scope import explain_check
from segue.protocols.registry import PROTOCOLS
from segue.requests.check import check as check_body
from segue.requests.tokens import estimate_tokens
from segue.testing.evidence import Fact, judge, load_facts

Level = Literal["error", "warning", "notice"]

_LEVELS: Final[Mapping[Loss, Level]] = {Loss.CONTENT: "error", Loss.OPAQUE: "warning", Loss.NONE: "notice"}
_COLOURS: Final[Mapping[Level, str]] = {"error": "bold red", "warning": "yellow", "notice": "green"}


@final
class CheckProblem(NamedTuple):
    """One problem, and its place."""

    level: Level
    code: str
    path: Path
    message: str
    line: int
    file: str = ""
    grade: Grade = "refused"


@click.command("check")
@click.argument("files", metavar="[FILE]...", nargs=-1, type=SourceFile())
@example_option
@click.option(
    "--for",
    "target",
    metavar="MODEL|PROTOCOL",
    shell_complete=complete_model_or_protocol,
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
@click.option(
    "--api-version", metavar="VERSION", help="The version of the API that a header names, such as 2026-10-21."
)
@click.option(
    "--after",
    type=SourceFile(),
    metavar="FILE",
    help="The request before FILE in the same conversation: also list what changed since, and what that costs.",
)
@click.option(
    "--explain",
    is_flag=True,
    help="Also list what a request is compared with, and what only the provider can know.",
)
@click.option(
    "--state",
    "is_state",
    is_flag=True,
    help="Check what binds replies of a session to their models, in ATIF or Agent Trail; takes no --for.",
)
@click.option("--strict", is_flag=True, help="Fail also on what may be refused, or is accepted without effect.")
@click.option(
    "--facts",
    metavar="FILE",
    envvar="SEGUE_FACTS",
    type=click.Path(exists=True, dir_okay=False, path_type=FilePath),
    help="A file of `segue facts`: what your own exchanges showed about this provider and model.  [env: SEGUE_FACTS]",
)
@click.option(
    "--fix",
    "is_fixed",
    is_flag=True,
    help="Write the request as the provider would accept it, to --output, and report every change.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="The file that --fix writes.  [default: standard output]",
)
@click.option("--all", "harmless", is_flag=True, help="Also list changes that drop nothing.")
@catalogue_option
@click.pass_context
def command(
    ctx: click.Context,
    *,
    files: tuple[BinaryIO, ...],
    example: bool,
    target: str | None,
    source: str | None,
    form: str,
    after: BinaryIO | None,
    explain: bool,
    harmless: bool,
    is_state: bool,
    strict: bool,
    is_fixed: bool,
    output: str | None,
    catalogue: str | None,
    api_version: str | None,
    facts: FilePath | None,
) -> None:
    """List the problems of each FILE for a model, or for any model of a protocol.

    For a request of the same protocol: what the provider would refuse. For a stored conversation, or a request of
    another protocol: what has to change before it can be sent to the model. A line of a training set, which ends with
    an answer and has no options, needs neither a limit of tokens nor signatures.

    A request that is larger than the window of the model is an error if it has more words than the window has tokens:
    no tokenizer joins two words. It is a warning if only the estimate is larger.

    What may be refused (a flag of a catalogue, a rule of another host), or is accepted without effect, is a notice and
    no reason to fail; with --strict it is.

    With --fix the repaired request is written, and what cannot be repaired is listed.

    Exit status: 0 without findings, 1 with findings, 2 for an error. With --fix, findings are those that are left.
    """
    if output is not None and not is_fixed:
        raise click.UsageError("--output is the file that --fix writes; add --fix")
    if is_fixed and (len(files) > 1 or after is not None or explain or form != "human"):
        raise click.UsageError("--fix is for one FILE, without --after, --explain and --format")
    if len(files) > 1 and (after is not None or explain):
        raise click.UsageError("--after and --explain are for one FILE")
    inputs = files if len(files) > 1 and not example else (choose_input(files[0] if files else None, example=example),)
    if is_state:
        faults = [fault for file in inputs for fault in _check_state(file)]
        _PRINTERS[form](faults)
        ctx.exit(Status.FOUND if faults else Status.SUCCESS)
    if target is None:
        raise click.MissingParameter(ctx=ctx, param_hint="'--for'", param_type="option")
    wire_only = target in PROTOCOLS
    model = find_target(None, target, catalogue) if wire_only else find_target(target, None, catalogue, FOR)
    known = open_catalogue(catalogue)
    if is_fixed:
        document = _open_request(inputs[0], source, model)
        try:
            ctx.exit(_fix(document, model, known if wire_only else None, output))
        except DecodeError as error:
            raise_named(error, inputs[0].name)
    before = None if after is None else _read_before(after, source)
    rows = [] if facts is None else load_facts(facts.read_bytes(), str(facts))
    found: list[CheckProblem] = []
    document: OpenedDocument | None = None
    for file in inputs:
        opened = open_input(file, source)
        document = opened.document
        path = find_again(file) if document is None else None
        name, is_of_rows = EXAMPLE.name if example else file.name, file.name.endswith((".jsonl", ".ndjson"))
        with show_progress(None if path is None else path.stat().st_size, shows=document is None) as advance:
            found += [
                finding._replace(file=name)
                for each in _documents(opened, source, advance)
                for finding in _findings(each, model, known if wire_only else None, before, api_version, facts=rows)
                if harmless or finding.level != "notice" or finding.grade != "refused"
                if not (is_of_rows and finding.path == (ID_COLUMN,))  # the id of a row is not a field of its request
            ]
    _PRINTERS[form](found)
    if explain:
        _explain(document, model, known if wire_only else None, form)
    failed = any(strict or finding.grade == "refused" for finding in found)
    ctx.exit(Status.FOUND if failed else Status.SUCCESS)


def _check_state(file: BinaryIO) -> Iterator[CheckProblem]:
    try:
        faults = check_bound_state(file.read())
    except SegueError as error:
        raise_named(error, file.name)
    for fault in faults:
        line = fault.path[1] if fault.path[0] == "lines" else 1
        yield CheckProblem("error", fault.code, fault.path, fault.message, int(line), file.name)


def _open_request(file: BinaryIO, source: str | None, model: Model) -> OpenedDocument | None:
    """Open a request; one that its protocol cannot read may have parts in the form of another."""
    try:
        return open_input(file, source).document
    except DecodeError:
        if source not in (None, model.protocol) or not file.seekable():
            raise
        file.seek(0)
        try:
            body = msgspec.json.decode(file.read(), type=dict[str, Any])
        except msgspec.DecodeError:
            body = None
        if body is None:
            raise
        return OpenedDocument(Prompt(context=Context(), model=body.get("model")), model.protocol, body)


def _fix(document: OpenedDocument | None, model: Model, known: Catalogue | None, output: str | None) -> Status:
    """Write the repaired request; say what was changed, removed and left."""
    if document is None or document.protocol != model.protocol or not isinstance(document.body, dict):
        raise click.UsageError("--fix takes one request of the protocol that it is checked for; use `segue convert`")
    named = document.prompt.model
    judged = model if known is None or not named else find_endpoint(model.protocol, None, named, known).model
    fixed = fix(document, judged)
    data = msgspec.json.format(encode_valid_json(fixed.body), indent=2)
    if output is None:
        click.echo(data)
    else:
        FilePath(output).write_bytes(data + b"\n")
    for part in fixed.rewritten:
        form = f"the form of {part.protocol}" if part.protocol else "another form"
        click.echo(f"rewritten: {printable(render_path(part.path))}: it had {form}", err=True)
    show_report(fixed.report)
    for word, violations in (("removed", fixed.removed), ("left", fixed.left)):
        for each in violations:
            click.echo(
                f"{word}: {printable(render_path(each.path))}: {printable(each.message)} [{each.code}]", err=True
            )
    return Status.FOUND if fixed.left else Status.SUCCESS


def _explain(document: OpenedDocument | None, model: Model, known: Catalogue | None, form: str) -> None:
    """Print what the request was compared with, and what only the provider can know."""
    if document is None or document.protocol != model.protocol or not isinstance(document.body, dict):
        raise click.UsageError("--explain takes one request of the protocol that it is checked for")
    judged = None if known is not None and document.prompt.model else model
    scope = explain_check(document.body, protocol=model.protocol, model=judged, catalogue=known)
    if form == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(scope), indent=2))
        return
    for line in scope.checked:
        click.echo(f"checked: {line}")
    for unknown in scope.unknown:
        where = f"{render_path(unknown.path)}: " if unknown.path else ""
        click.echo(f"cannot know: {where}{unknown.reason}")


def _documents(opened: Opened, protocol: str | None, advance: Advance) -> Iterator[OpenedDocument | BadLine]:
    if opened.document is not None:
        yield opened.document
    for number, line in opened.lines:
        document = open_line(line, How(format=protocol), number)
        yield document
        advance(len(line), 1, 0 if isinstance(document, BadLine) else len(document.prompt.context.messages))


def _read_before(file: BinaryIO, source: str | None) -> OpenedDocument:
    """Read the request before."""
    document = open_input(file, source).document
    if document is None or not isinstance(document.body, dict):
        raise click.UsageError(f"--after takes one request body, and {file.name} is none; pass the request before FILE")
    return document


def _findings(
    document: OpenedDocument | BadLine,
    model: Model,
    known: Catalogue | None,
    before: OpenedDocument | None = None,
    version: str | None = None,
    *,
    facts: Sequence[Fact] = (),
) -> Iterator[CheckProblem]:
    """Yield the problems for a model; with the `known` models, those for the model that a request names.

    `before` is the request before; a request of another protocol than it cannot be compared with it.
    """
    if isinstance(document, BadLine):
        yield CheckProblem("error", "unreadable", (), document.reason, document.line)
        return
    places = LinesOfPaths(document)
    is_training = is_training_line(document)
    if is_training:
        model = writing_model(model)
        if has_weights(document.protocol or "") and has_weights(model.protocol):
            document = document._replace(protocol=model.protocol)
    if document.protocol == model.protocol and isinstance(document.body, dict):
        # With only a protocol, the check is for the model that the body names.
        named = document.prompt.model
        judged = None if known is not None and named else model
        after = None
        if before is not None and before.protocol == document.protocol and isinstance(before.body, dict):
            after = before.body
        violations = check_body(
            document.body,
            protocol=model.protocol,
            model=judged,
            catalogue=known,
            after=after,
            version=version,
            strict=True,
        )
        if facts:
            whose = find_endpoint(model.protocol, judged, named, known).model
            violations = judge(document.body, violations, whose, facts)
        for violation in violations:
            if is_training and violation.code in ONLY_REQUESTS:
                continue
            line = places.find_line(violation.path, is_wire=True)
            level: Level = "error" if violation.grade == "refused" else "notice"
            yield CheckProblem(level, violation.code, violation.path, violation.message, line, grade=violation.grade)
        if not any(violation.code == WINDOW_EXCEEDED for violation in violations):
            endpoint = find_endpoint(model.protocol, judged, named, known)
            yield from _estimated(document.prompt, endpoint.model, places.find_line((), is_wire=True))
        return
    try:
        request = document.prepare(model, Policy())
    except EmptyConversation as empty:
        line = places.find_line((), is_wire=False)
        yield CheckProblem("error", "empty_conversation", (), in_program_words(str(empty)), line)
        return
    except DoesNotFit as unsendable:
        line = places.find_line(unsendable.path, is_wire=False)
        text = in_program_words(str(unsendable))
        yield CheckProblem("error", "does_not_fit", unsendable.path, text, line)
        return
    for change in request.report.changes:
        line = places.find_line(change.path, is_wire=False)
        text = in_program_words(change.sentence())
        yield CheckProblem(_LEVELS[change.loss], change.code.value, change.path, text, line)


def _estimated(prompt: Prompt, model: Model, line: int) -> Iterator[CheckProblem]:
    """Compare the estimate with the window. It may be wrong by a tenth or more, so the finding is a warning."""
    if model.context_window and (tokens := estimate_tokens(prompt, model)) > model.context_window:
        message = (
            f"the request has about {tokens:,} tokens, and the window of the model has {model.context_window:,};"
            " this is an estimate"
        )
        yield CheckProblem("warning", "window_exceeded_by_estimate", (), message, line)


def _print_human(found: list[CheckProblem]) -> None:
    from rich.text import Text

    console = open_console()
    for finding in found:
        where = render_path(finding.path)
        message = finding.message.removeprefix(f"{where}: ")
        place = in_one_line(f"{finding.file}:{finding.line}: {where or 'whole conversation'}: ")
        end = in_one_line(f": {message} [{finding.code}]")
        if console.is_terminal:
            text = Text().append(place, "bold").append(finding.level, _COLOURS[finding.level]).append(end)
            console.print(text, soft_wrap=True)
        else:  # much faster, for many findings
            click.echo(f"{place}{finding.level}{end}")
    click.echo(_count(found) if found else "no problems found", err=True)


def _count(found: Sequence[CheckProblem]) -> str:
    """Count the findings, of each level."""
    counts = Counter(finding.level for finding in found)
    levels = (counted(counts[level], level) for level in _COLOURS if counts[level])
    return f"{len(found):,} found: {', '.join(levels)}"


def _print_json(found: list[CheckProblem]) -> None:
    rows = [{"file": finding.file, **finding._asdict()} for finding in found]
    click.echo(msgspec.json.format(encode_valid_json(rows), indent=2))


def _print_github(found: list[CheckProblem]) -> None:
    for finding in found:
        click.echo(
            f"::{finding.level} file={_escape(finding.file, _IN_PROPERTY)},line={finding.line},"
            f"title={_escape(finding.code, _IN_PROPERTY)}::{_escape(finding.message, _IN_MESSAGE)}"
        )


_IN_MESSAGE: Final = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_IN_PROPERTY: Final = {**_IN_MESSAGE, ":": "%3A", ",": "%2C"}
"""Characters that a workflow command escapes (actions/toolkit, packages/core/src/command.ts; read 2026-11-15)."""


def _escape(text: str, replacements: Mapping[str, str]) -> str:
    return text.translate(str.maketrans(dict(replacements)))


_PRINTERS: Final = {"human": _print_human, "json": _print_json, "github": _print_github}
