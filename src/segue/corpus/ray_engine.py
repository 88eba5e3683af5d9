"""`--engine ray`: one Ray task for each shard. Only paths and notes travel; the workers read and write the files.

Facts:
- Ray tasks over shards cost 23.8 CPU seconds and 551 MB for 1.2 GB, Ray Data over rows 44 seconds and 2.5 GB. Ray Data
  also repeats a row that ends its process without an end.           (ray 2.60.0, two cores, measured 2026-11-15)
- `max_retries` counts deaths of the worker and of its machine; an exception is not retried.   (Ray documentation)
"""

from __future__ import annotations

from collections.abc import Generator
from importlib import import_module
from typing import Any, Final

from segue.corpus.batches import Batch
from segue.corpus.files import files_at
from segue.corpus.jobs import Job
from segue.corpus.notes import ShardNote, find_note, refuse_other_job
from segue.corpus.runs import RowStopped, RunStep, convert_shard
from segue.corpus.shards import Shard
from segue.errors import CorpusError

_RETRIES: Final = 1
"""Somebody may have killed the first process. After the second one the row that does it is looked for."""
_RETRIES_ALONE: Final = 3
"""A row cannot end the process that looks for it, so these are for machines that are lost."""
_WAITING: Final = 2
"""Tasks for each processor of the cluster that are handed out at once: Ray keeps a record of each."""


def convert_on_ray(
    shards: list[Shard], folder: str, job: Job, *, lost: list[str], address: str | None = None, resume: bool = False
) -> Generator[RunStep]:
    """Convert shards on a cluster, and yield their notes as they are finished.

    `address` is that of a running cluster, such as `auto`; without it Ray is started on this machine. The sentences
    about shards that could not be converted are appended to `lost`.

    Raises:
        CorpusError: Ray is not installed, the folder has the output of another job, or a row stopped the run.
    """
    ray = _import_ray()
    started = not ray.is_initialized()
    if started:
        _start(ray, address)
    try:
        waiting = list(_unfinished(shards, folder, job, resume=resume))
        yield from (RunStep(None, shard, note) for shard, note in waiting if note is not None)
        yield from _run(ray, [shard for shard, note in waiting if note is None], folder, job, lost)
    finally:
        if started:
            ray.shutdown()


def _start(ray: Any, address: str | None) -> None:  # noqa: ANN401
    """Connect to a cluster, or start one on this machine."""
    try:
        ray.init(address=address, log_to_driver=False, logging_level="error", include_dashboard=False)
    except Exception as error:  # noqa: BLE001 - Ray raises errors of many classes, also plain ones
        where = "Ray cannot be started here" if address is None else f"the cluster {address} cannot be reached"
        reason = str(error).strip().partition("\n")[0]
        raise CorpusError(f"{where}: {reason}; check it, then run again with --resume") from None


def _import_ray() -> Any:  # noqa: ANN401 - Ray is not installed with segue
    try:
        return import_module("ray")
    except ModuleNotFoundError:
        raise CorpusError("--engine ray needs Ray, which is not installed with segue; run: pip install ray") from None


def _unfinished(
    shards: list[Shard], folder: str, job: Job, *, resume: bool
) -> Generator[tuple[Shard, ShardNote | None]]:
    files, description = files_at(folder), job.description()
    for shard in shards:
        note = find_note(folder, shard.name, files)
        if note is not None:
            refuse_other_job(note.job, description, folder)
        yield shard, note if note is not None and resume and note.is_of(shard) else None


def _run(ray: Any, shards: list[Shard], folder: str, job: Job, lost: list[str]) -> Generator[RunStep]:  # noqa: ANN401
    task = ray.remote(num_cpus=1, max_retries=_RETRIES)(_task)
    alone = ray.remote(num_cpus=1, max_retries=_RETRIES_ALONE)(_task)
    shared = ray.put(job)
    most = max(2, int(ray.cluster_resources().get("CPU", 1))) * _WAITING
    running: dict[Any, tuple[Shard, bool]] = {}
    left = iter(shards)
    while True:
        while len(running) < most and (shard := next(left, None)) is not None:
            running[task.remote(shard, folder, shared, isolated=False)] = shard, False
        if not running:
            return
        (ready,), _ = ray.wait(list(running), num_returns=1)
        shard, was_alone = running.pop(ready)
        try:
            note: ShardNote = ray.get(ready)
        except ray.exceptions.RayTaskError as error:
            # The error of the task itself: the input cannot be read, or a row stopped the run.
            if isinstance(error.cause, RowStopped):
                raise error.cause from None
            lost.append(f"{shard.file}: not converted: {error.cause}; run again with --resume")
            continue
        except ray.exceptions.RayError as error:
            if was_alone:
                lost.append(f"{shard.file}: not converted, its workers died: {type(error).__name__}; use --resume")
            else:
                running[alone.remote(shard, folder, shared, isolated=True)] = shard, True
            continue
        yield RunStep(Batch(b"", note.summary, [], [], [], stopped=False, shard=0, last=True), shard, note)


def _task(shard: Shard, folder: str, job: Job, *, isolated: bool) -> ShardNote:
    """Convert one shard; runs on the cluster. A shard that another attempt finished is not made again."""
    return convert_shard(shard, folder, job, resume=isolated, isolated=isolated)
