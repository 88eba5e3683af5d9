"""`segue results`: the answers of a provider's batch, put after the conversations that they answer."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

import click
import msgspec
from msgspec.structs import replace

from segue.calls.batch_forms import read_result_line
from segue.cli.inputs import raise_named
from segue.cli.statuses import Status
from segue.cli.targets import catalogue_option, complete_model, open_catalogue
from segue.corpus.batch_files.joining import Joiner, SentLine, read_sent
from segue.corpus.batch_files.writing import IDS, BatchTable, read_table
from segue.corpus.files import LOCAL
from segue.errors import CorpusError, DecodeError, UnknownModel
from segue.foundation.plurals import counted
from segue.models.catalogue import Catalogue, get_model
from segue.models.model import Model
from segue.protocols.families.batches import results_of_document
from segue.protocols.kit.batch_form import Fields, ResultLine

FAILURES: Final = ".failures.jsonl"
"""The ending of the file with the requests that failed."""


@click.command("results")
@click.argument("results", metavar="RESULTS...", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--for",
    "sent",
    metavar="BATCH",
    required=True,
    type=click.Path(exists=True, dir_okay=False),
    help="The batch file that was sent, or the one that it was made from.",
)
@click.option(
    "--model",
    "name",
    metavar="MODEL",
    shell_complete=complete_model,
    help="The model that answered.  [default: that of the table of ids or of the requests]",
)
@click.option("-o", "--output", metavar="FILE", required=True, type=click.Path(dir_okay=False), help="The output.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["segue", "openai"]),
    default="segue",
    show_default=True,
    help="segue: stored conversations with their answers. openai: lines of results as OpenAI returns them.",
)
@catalogue_option
@click.pass_context
def command(
    ctx: click.Context,
    *,
    results: tuple[str, ...],
    sent: str,
    name: str | None,
    output: str,
    form: str,
    catalogue: str | None,
) -> None:
    """Write the conversations of a batch with their answers, in the order of BATCH; one stored conversation a line.

    RESULTS are the files that the provider returned, of any provider, also several: those with errors as well.
    Requests that failed are written to FILE.failures.jsonl, with the kind of the failure. Costs are those of a batch.

    Exit status: 0 if every request has an answer, 1 if some failed, 2 for an error.
    """
    known = open_catalogue(catalogue)
    table = _read_table(sent)
    given = _find(name, table, known)
    try:
        requests = list(read_sent(_lines(sent)))
    except DecodeError as error:
        raise_named(error, sent)
    found, unnamed = _read_results(results)
    outcomes, cost = _join(Joiner(given, table, known), requests, (found, unnamed), output, form)
    others = [f"{times:,} {outcome}" for outcome, times in sorted(outcomes.items()) if outcome != "succeeded"]
    price = f", ${cost:,.4f} at batch price" if cost is not None else ""
    click.echo(", ".join([f"{outcomes['succeeded']:,} answered", *others]) + price, err=True)
    if found:
        belong = counted(len(found), "result belongs", "results belong")
        click.echo(f"segue: {belong} to no request of {sent}, such as {min(found)!r}", err=True)
    if unnamed and len(unnamed) != len(requests):
        click.echo(
            f"segue: {len(unnamed):,} results have no id, and {sent} has {len(requests):,} requests, so they cannot be"
            " matched by their order; name all files of results of one batch, and the file that was sent",
            err=True,
        )
    ctx.exit(Status.FOUND if others else Status.SUCCESS)


def _join(
    joiner: Joiner,
    requests: list[SentLine],
    results: tuple[dict[str, ResultLine], list[ResultLine]],
    output: str,
    form: str,
) -> tuple[Counter[str], float | None]:
    """Write conversations and failures; results that were used are taken out of those with an id."""
    found, unnamed = results
    outcomes: Counter[str] = Counter()
    costs: list[float] = []
    folder, name = str(Path(output).parent), Path(output).name
    done, failed = LOCAL.begin(folder, name), LOCAL.begin(folder, f"{name}{FAILURES}")
    # Results without ids come in the order of the requests.
    in_order = unnamed if len(unnamed) == len(requests) else [None] * len(requests)
    try:
        for request, placed in zip(requests, in_order, strict=True):
            key = next((each for each in joiner.names_of(request) if each in found), None)
            joined = joiner.join(request, placed if key is None else found.pop(key))
            outcomes[joined.outcome] += 1
            is_done = joined.conversation is not None
            if form == "openai":
                (done if is_done else failed).file.write(joined.openai_line(request))
            elif joined.conversation is not None:
                done.file.write(joined.conversation + b"\n")
            else:
                failed.file.write(joined.failure_line())
            usage = None if joined.message is None else joined.message.usage
            if usage is not None and usage.cost is not None:
                costs.append(usage.cost.total)
    except BaseException:
        done.discard()
        failed.discard()
        raise
    done.commit()
    if outcomes.total() > outcomes["succeeded"]:
        failed.commit()
    else:
        failed.discard()
        LOCAL.remove(folder, f"{name}{FAILURES}")
    return outcomes, sum(costs) if costs else None


def _lines(path: str) -> Iterator[tuple[int, bytes]]:
    with Path(path).open("rb") as file:
        for number, given in enumerate(file, 1):
            line = given.removeprefix(BOM_UTF8) if number == 1 else given
            if line and not line.isspace():
                try:
                    msgspec.json.decode(line)
                except (msgspec.DecodeError, UnicodeError) as error:
                    raise DecodeError(f"line {number} is not valid JSON: {error}") from None
                yield number, line


def _read_table(sent: str) -> BatchTable | None:
    path = Path(f"{sent}{IDS}")
    return read_table(path.read_bytes(), str(path)) if path.exists() else None


def _find(name: str | None, table: BatchTable | None, known: Catalogue) -> Model | None:
    """Find the model that answered: the one that was named, or that of the table, whose protocol it has."""
    if name is not None or table is None:
        return None if name is None else get_model(name, catalogue=known)
    provider, _, model_id = table.model.partition("/")
    try:
        return replace(get_model(table.model, catalogue=known), protocol=table.protocol)
    except UnknownModel:
        return Model(model_id, provider, table.protocol)


def _read_results(paths: tuple[str, ...]) -> tuple[dict[str, ResultLine], list[ResultLine]]:
    """Read all results, by id, and in their order those without one."""
    found: dict[str, ResultLine] = {}
    unnamed: list[ResultLine] = []
    for path in paths:
        for place, fields in _named_fields(path):
            line = read_result_line(fields)
            if line is None:
                raise CorpusError(
                    f"{path}: {place} is not a result of a batch; name the files that the provider returned"
                )
            if line.id is None:
                unnamed.append(line)
            elif line.id not in found or found[line.id].outcome != "succeeded":
                found[line.id] = line
    return found, unnamed


def _named_fields(path: str) -> Iterator[tuple[str, Fields]]:
    try:
        yield from _fields(path)
    except DecodeError as error:
        raise_named(error, path)


def _fields(path: str) -> Iterator[tuple[str, Fields]]:
    """Yield the results of a file of lines, or of one JSON document."""
    data = Path(path).read_bytes().removeprefix(BOM_UTF8)
    try:
        document: object = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError):
        for number, line in _lines(path):
            value: object = msgspec.json.decode(line)
            yield f"line {number}", cast("Fields", value if isinstance(value, dict) else {})
        return
    for number, fields in enumerate(results_of_document(document), 1):
        yield f"result {number}", fields
