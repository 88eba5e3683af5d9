"""What corpora cost: columns against bytes, rates of one core, batch files, merged notes, memory, and Ray.

Rates are CPU time of this process, the best of some interleaved rounds. Memory is the sum of the proportional set sizes
of all processes. The rows of Ray are measured where Ray is installed, and rows of columns where pyarrow is.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from corpus_lines import agent_lines, chat_lines, split, write_lines
from figures import Figure

from segue.corpus.converter import Converter
from segue.corpus.files import LOCAL
from segue.corpus.jobs import Job
from segue.corpus.notes import ShardNote, read_notes, write_note
from segue.corpus.rows import Reader
from segue.corpus.summary import ChangeCount, ChangeSample, Summary, merge
from segue.histories.opening import BadLine, How, open_line
from segue.models.catalogue import get_model
from segue.projection.policy import Policy
from segue.projection.report import ChangeCode, Loss

_TARGET: Final = "anthropic/claude-sonnet-4-5"
_NOTES: Final = 10_000


def measure_corpus(*, quick: bool) -> list[Figure]:
    """Measure everything; a quick run only tests that it works."""
    rounds, scale = (1, 20) if quick else (3, 1)
    return [
        *_measure_rates(rounds, agents=100 // scale, chats=2_000 // scale),
        _measure_merge(_NOTES // scale),
        *_measure_programs(megabytes=60 / scale, has_ray=not quick and find_spec("ray") is not None),
    ]


def _best(subjects: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Run subjects in turn, and give the best CPU time of each."""
    best = dict.fromkeys(subjects, float("inf"))
    for _ in range(rounds):
        for name, subject in subjects.items():
            begun = time.process_time()
            subject()
            best[name] = min(best[name], time.process_time() - begun)
    return best


def _measure_rates(rounds: int, *, agents: int, chats: int) -> Iterator[Figure]:
    model, policy = get_model(_TARGET), Policy()
    agent, chat = list(islice(agent_lines(), agents)), list(islice(chat_lines(), chats))
    turn = [b'{"model":"gpt-5.4","messages":[{"role":"user","content":"What is the tallest mountain?"}]}'] * chats

    def prepare_all(lines: list[bytes]) -> None:
        for line in lines:
            opened = open_line(line, How(), 1)
            assert not isinstance(opened, BadLine)
            _ = opened.prepare(model, policy).content

    batch = [_as_openai_batch(line, number) for number, line in enumerate(agent)]
    convert, batching = Converter(model), Converter(model, purpose="batch")
    batching.job = batching.job._replace(reader=Reader(envelopes=True))
    subjects: dict[str, Callable[[], object]] = {
        "agent": lambda: prepare_all(agent),
        "chat": lambda: prepare_all(chat),
        "turn": lambda: prepare_all(turn),
        "batch": lambda: batching({"line": batch}),
    }
    missing = "" if find_spec("pyarrow") is not None else "pyarrow is not installed"
    if not missing:
        arrow: Any = import_module("pyarrow")
        texts = arrow.table({"body": [line.decode() for line in agent]})
        rows: list[dict[str, object]] = [json.loads(line) for line in agent]
        structs = arrow.table({key: [row[key] for row in rows] for key in rows[0]})
        subjects |= {"texts": lambda: convert(texts), "structs": lambda: convert(structs)}
    best = _best(subjects, rounds)
    for key, what in (("texts", "a column of JSON texts"), ("structs", "a column of lists of structs")):
        ratio = best[key] / best["agent"] if key in best else None
        yield Figure(f"corpus.{key}", f"Converter over {what}, against segue over bytes", "times", ratio, note=missing)
    for key, lines in (("agent", agent), ("chat", chat), ("batch", batch)):
        what = {"agent": "agent traces", "chat": "short chats", "batch": "a batch file of OpenAI for Anthropic"}[key]
        rate = sum(map(len, lines)) / best[key] / 1e6
        yield Figure(f"corpus.{key}", f"{what}, one core, MB", "a second", rate)
    yield Figure("corpus.turn", "one short user turn, read and prepared", "us", best["turn"] / len(turn) * 1e6)


def _as_openai_batch(line: bytes, number: int) -> bytes:
    fields = {"custom_id": f"task-{number}", "method": "POST", "url": "/v1/chat/completions", "body": msgspec.Raw(line)}
    return msgspec.json.encode(fields)


def _measure_merge(notes: int) -> Figure:
    job = Job(get_model(_TARGET)).description()
    codes = list(ChangeCode)[:12]
    with tempfile.TemporaryDirectory() as folder:
        for number in range(notes):
            samples = [ChangeSample(f"{number:016x}", "part.jsonl", 7, 9, "messages[1]", "x" * 200)]
            counts = {f"none {code}": ChangeCount(code, Loss.NONE, 9, 5, samples) for code in codes}
            note = ShardNote(
                output=f"{number:06}.jsonl", file="part.jsonl", job=job, summary=Summary(lines=9, changes=counts)
            )
            write_note(LOCAL, folder, note)
        begun = time.process_time()
        total = merge(note.summary for note in read_notes(folder))
        spent = time.process_time() - begun
        assert total.lines == 9 * notes, "every note is merged"
    return Figure("corpus.merge", f"merging {notes:,} notes of shards", "ms", spent * 1e3)


class _Run(NamedTuple):
    """CPU seconds of all processes, the peak of their memory in MB, and what a worker of Ray has above an idle one."""

    cpu: float
    memory: float
    worker: float | None


def _measure_programs(*, megabytes: float, has_ray: bool) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_lines(agent_lines(), megabytes, folder / "agent.jsonl")
        split(folder / "agent.jsonl", folder / "few", 14)
        for part in range(4):
            for file in (folder / "few").iterdir():
                (folder / "many").mkdir(exist_ok=True)
                (folder / "many" / f"{part}-{file.name}").symlink_to(file)
        two = _convert(folder / "few", folder / "two", "--jobs", "2")
        yield Figure("corpus.memory", "memory of --jobs 2 on a folder", "MB", two.memory)
        if not has_ray:
            for key, what in _RAY_FIGURES.items():
                yield Figure(key, what, "times" if key.endswith("cpu") else "MB", None, note="Ray is not installed")
            return
        one = [_convert(folder / source, folder / f"one-{source}").cpu for source in ("few", "many")]
        ray = [_convert(folder / source, folder / f"ray-{source}", "--engine", "ray") for source in ("few", "many")]
        extra = (ray[1].cpu - ray[0].cpu) / (one[1] - one[0])
        yield Figure("corpus.ray.cpu", _RAY_FIGURES["corpus.ray.cpu"], "times", extra)
        yield Figure("corpus.ray.worker", _RAY_FIGURES["corpus.ray.worker"], "MB", ray[1].worker)
        yield Figure("", "memory of --engine ray, all processes", "MB", ray[1].memory)


_RAY_FIGURES: Final = {
    "corpus.ray.cpu": "extra CPU time of --engine ray for each MB, against --jobs 1",
    "corpus.ray.worker": "memory of a worker of Ray above an idle one",
}


def _convert(source: Path, output: Path, *options: str) -> _Run:
    """Run the program, and add up the CPU time and the memory of its processes while it runs."""
    command = [sys.executable, "-m", "segue", "convert", str(source), "--to", _TARGET, "--report", "none"]
    begun = os.times()
    with subprocess.Popen([*command, "-o", str(output), *options], start_new_session=True) as process:
        peak, seen, workers, used = 0.0, dict[int, float](), dict[str, float](), set[int]()
        while process.poll() is None:
            family = {pid: _memory(pid) for pid in _descendants(process.pid)}
            peak = max(peak, sum(family.values()))
            for pid, memory in family.items():
                kind = _ray_worker(pid)
                used.update({pid} if kind == _BUSY else ())
                if kind == _BUSY or (kind == _IDLE and pid not in used):
                    workers[kind] = max(memory, workers.get(kind, 0.0))
            seen.update({pid: spent for pid in family if (spent := _cpu(pid)) is not None})
            time.sleep(0.05)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    ended = os.times()
    waited = ended.children_user + ended.children_system - begun.children_user - begun.children_system
    above = workers[_BUSY] - workers[_IDLE] if _BUSY in workers and _IDLE in workers else None
    return _Run(max(waited, sum(seen.values())), peak, above)


def _descendants(pid: int) -> list[int]:
    found, waiting = list[int](), [pid]
    while waiting:
        current = waiting.pop()
        found.append(current)
        try:
            for task in Path(f"/proc/{current}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except OSError:
            continue
    return found


_BUSY, _IDLE = "ray::_task", "ray::IDLE"
"""The names that Ray gives its workers."""


def _ray_worker(pid: int) -> str | None:
    try:
        name = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
    except OSError:
        return None
    return next((kind for kind in (_BUSY, _IDLE) if name.startswith(kind)), None)


def _memory(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:")), 0.0)


def _cpu(pid: int) -> float | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
