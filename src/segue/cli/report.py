"""`segue report`: what the conversion of a corpus changed, and how many tokens it has, merged over all of its files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Literal

import click
import msgspec

from segue.cli.printable import echo_data
from segue.cli.report_page import render_page
from segue.cli.reports import Kinds, open_console, show_kinds
from segue.corpus.files import files_at, is_remote
from segue.corpus.jobs import JobDescription
from segue.corpus.notes import ShardNote, find_note, read_notes
from segue.corpus.summary import Summary, merge
from segue.errors import CorpusError
from segue.foundation.json_text import encode_valid_json
from segue.foundation.plurals import counted


@click.command("report")
@click.argument("path", metavar="PATH")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "html"]),
    default="table",
    show_default=True,
    help="A table, JSON with samples, or a page with samples.",
)
@click.option("-o", "--output", metavar="FILE", type=click.Path(dir_okay=False), help="The file to write.")
def command(*, path: str, form: Literal["table", "json", "html"], output: str | None) -> None:
    """Show what `segue convert` did to a corpus: the changes with samples, the bad lines, the tokens and their price.

    PATH is the folder or the file that was written. The notes next to the files are merged; the input is not read.
    """
    notes = _read(path)
    jobs = {note.job.fingerprint: note.job for note in notes}
    total = merge(note.summary for note in notes)
    job = next(iter(jobs.values()))
    if len(jobs) > 1:
        names = ", ".join(sorted({each.target for each in jobs.values()}))
        raise CorpusError(
            f"{path}: it has the output of {counted(len(jobs), 'run')} ({names}); name the folder of one of them"
        )
    if form == "table" and output is None:
        _show(job, total, len(notes))
        return
    data = render_page(job, total, len(notes)) if form == "html" else _json(job, total, len(notes))
    if output is None:
        echo_data(data)
    else:
        Path(output).write_text(data + "\n", encoding="utf-8")


def _read(path: str) -> list[ShardNote]:
    files = files_at(path)
    if files.is_folder(path):
        notes = list(read_notes(path))
    else:
        folder, name = (path.rpartition("/")[0::2]) if is_remote(path) else (str(Path(path).parent), Path(path).name)
        note = find_note(folder, name)
        notes = [] if note is None else [note]
    if not notes:
        raise CorpusError(f"{path}: there is no note of a finished conversion; run `segue convert` with --output first")
    return notes


def _json(job: JobDescription, total: Summary, files: int) -> str:
    return msgspec.json.format(encode_valid_json({"files": files, "job": job, "summary": total}), indent=2).decode()


def _show(job: JobDescription, total: Summary, files: int) -> None:
    console = open_console()
    console.print(f"{counted(files, 'file')} for {job.target} ({job.purpose}), segue {job.version}")
    console.print(
        f"{counted(total.lines, 'line')}: {counted(total.conversations, 'conversation')}"
        f" with {counted(total.messages, 'message')},"
        f" {total.bad:,} bad, {total.blank:,} blank"
    )
    console.print(f"{total.bytes_read / 1e6:,.1f} MB read, {total.bytes_written / 1e6:,.1f} MB written")
    for line in token_lines(total):
        console.print(line)
    if total.filled_nulls:
        rows = counted(total.filled_nulls, "row has", "rows have")
        console.print(f"{rows} nulls in tool arguments that may have been filled in")
    for name, times in total.errors.items():
        console.print(f"{counted(times, 'bad line')} with {name}")
    for name, times in total.drift.items():
        console.print(f"{counted(times, 'reply', 'replies')} with something new: {name}", highlight=False)
    if total.changes:
        kinds: Kinds = Counter({(each.loss, each.code): each.times for each in total.changes.values()})
        places = {
            (each.loss, each.code): [f"{sample.file}:{sample.line} {sample.path}" for sample in each.samples]
            for each in total.changes.values()
        }
        show_kinds(kinds, places, stderr=False)


def token_lines(total: Summary) -> list[str]:
    """Describe the tokens: estimated for the target with its price, and what stored replies counted."""
    price = ""
    if total.cost is not None:
        price = f", ${total.cost:,.2f} at list price, ${total.batch_cost or 0:,.2f} as a batch"
    lines = [f"about {total.tokens:,} input tokens{price}"]
    for name, usage in total.usage.items():
        read = usage.input + usage.cache_read + usage.cache_write
        cost = f", ${usage.cost:,.2f}" if usage.cost else ""
        tokens = f"{read:,} input and {usage.output:,} output tokens"
        lines.append(f"{name}: {counted(usage.replies, 'reply', 'replies')} counted {tokens}{cost}")
    return lines
