"""Many conversations: a batch of lines becomes a batch of requests, here or in another process."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from typing import Final, NamedTuple, final

from segue.cli.reports import Kinds, count_kinds, report_json
from segue.documents import BadLine, Document, Lines, read_line
from segue.errors import SegueError
from segue.models.model import Model
from segue.projection.policy import Policy

BATCH: Final = 200
"""How many lines travel to another process together: enough that the journey does not cost more than the work."""

_AHEAD: Final = 3
"""How many batches wait for each process; more would only fill memory."""


@final
class Job(NamedTuple):
    """What is to be done with every line."""

    model: Model
    policy: Policy
    protocol: str | None
    stop: bool
    """Whether a bad line ends the work."""
    reports: bool
    """Whether a report is wanted for each conversation."""


@final
class Batch(NamedTuple):
    """What became of some lines."""

    output: bytes
    """The requests, one a line."""
    conversations: int
    messages: int
    kinds: Kinds
    reports: bytes
    bad: list[BadLine]
    last: int
    """The number of the last line that was read."""
    read: int
    """How many bytes of the file that was."""
    stopped: bool


def convert_batch(job: Job, lines: list[tuple[int, bytes]]) -> Batch:
    """Convert some lines, in order."""
    output: list[bytes] = []
    reports: list[bytes] = []
    bad: list[BadLine] = []
    kinds: Kinds = Counter()
    messages = last = read = 0
    for number, line in lines:
        last = number
        read += len(line)
        document = read_line(line, job.protocol, number)
        made = document if isinstance(document, BadLine) else _convert(job, document, number)
        if isinstance(made, BadLine):
            bad.append(made)
            if job.stop:
                break
            continue
        content, report, size = made
        output += (content, b"\n")
        messages += size
        if report is not None:
            kinds.update(report[0])
            reports += report[1]
    stopped = job.stop and bool(bad)
    return Batch(b"".join(output), len(output) // 2, messages, kinds, b"".join(reports), bad, last, read, stopped)


def _convert(
    job: Job, document: Document, number: int
) -> tuple[bytes, tuple[Kinds, tuple[bytes, ...]] | None, int] | BadLine:
    try:
        request = document.prepare(job.model, job.policy)
        content = request.content
    except SegueError as error:
        return BadLine(number, str(error))
    size = len(document.prompt.context.messages)
    if not request.report.changes:
        return content, None, size
    told = (report_json(request.report, number), b"\n") if job.reports else ()
    return content, (count_kinds(request.report.changes), told), size


def convert_lines(job: Job, lines: Lines, processes: int) -> Iterator[Batch]:
    """Convert every line and give the batches in the order of the file; memory does not grow with it."""
    if processes <= 1:
        for line in lines:
            batch = convert_batch(job, [line])
            yield batch
            if batch.stopped:
                return
        return
    # Forked children would share what threads of this process hold; started anew, they share nothing.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        waiting: deque[Future[Batch]] = deque()
        for chunk in iter(lambda: list(islice(lines, BATCH)), []):
            waiting.append(pool.submit(convert_batch, job, chunk))
            if len(waiting) >= processes * _AHEAD:
                batch = waiting.popleft().result()
                yield batch
                if batch.stopped:
                    break
        else:
            while waiting:
                batch = waiting.popleft().result()
                yield batch
                if batch.stopped:
                    break
        for future in waiting:
            future.cancel()
