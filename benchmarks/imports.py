"""CPU time and memory of importing a library in a new interpreter, minus those of an interpreter that does nothing.

Facts this file relies on:
- `ru_maxrss` of a child includes the parent it was forked from, so memory is read from the child's `/proc` entry.
                                                                              (Linux, getrusage(2); seen here)
- The first import writes bytecode, so the first run is not counted.
- litellm downloads its price list during import, unless it is configured to use its own.         (litellm 1.106.2)
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from figures import Figure, Mark
from peers import Environment

_SEGUE: Final = (
    ("import segue", "import segue"),
    ("segue, types and stored JSON", "from segue import Context, dump, load"),
)
"""The first imports nothing until a name is used, so the second is the one to compare with others."""

_REPORT_MEMORY: Final = """
import os
if os.path.exists("/proc/self/status"):
    handle = os.open("/proc/self/status", os.O_RDONLY)
    os.write(1, os.read(handle, 65536))
"""


@dataclass(frozen=True)
class Subject:
    """An import statement, and the interpreter that runs it."""

    name: str
    python: Path
    statement: str


@dataclass(frozen=True)
class ImportCost:
    """The best of many runs, minus the cost of the same interpreter without the statement."""

    cpu_ms: float
    memory_mb: float


def measure_import_costs(
    python: Path, environments: Sequence[Environment], *, source: Path, rounds: int
) -> list[Figure]:
    """Compare importing segue, in an environment with only msgspec, with importing the peers."""
    subjects = [Subject(name, python, statement) for name, statement in _SEGUE]
    subjects.append(Subject("msgspec alone", python, "import msgspec"))
    subjects += [Subject(it.peer.name, it.python, it.peer.statement) for it in environments if it.python is not None]
    costs, bare = measure_imports(subjects, source=source, rounds=rounds)
    figures = [
        Figure("", "bare python, CPU", "ms", bare.cpu_ms),
        Figure("", "bare python, memory", "MB", bare.memory_mb),
    ]
    for subject in subjects:
        cost = costs[subject.name]
        is_segue = subject.name in dict(_SEGUE)
        mark = Mark("import", subject.statement, "segue" if is_segue else subject.name, max(cost.cpu_ms, 0.0))
        figures.append(Figure("", f"{subject.name}, CPU", "ms", cost.cpu_ms, mark=mark))
        figures.append(Figure("import.memory" if is_segue else "", f"{subject.name}, memory", "MB", cost.memory_mb))
    for it in environments:
        for name, _ in _SEGUE:
            what, key = f"{name} / {it.peer.statement.removeprefix('import ')}", f"import.{it.peer.name}"
            if it.python is None:
                figures.append(Figure(key, what, "part", None, note=f"not measured: {it.reason}"))
            else:
                value = max(costs[name].cpu_ms, 0.0) / costs[it.peer.name].cpu_ms
                figures.append(Figure(key, what, "part", value))
    return figures


def measure_imports(
    subjects: Sequence[Subject], *, source: Path, rounds: int
) -> tuple[dict[str, ImportCost], ImportCost]:
    """Measure all statements in turn, each with `source` on its path.

    Returns their net costs by name, and the cost of the first interpreter without a statement.
    """
    pythons = list(dict.fromkeys(subject.python for subject in subjects))
    runs = [Subject(f"bare {python}", python, "pass") for python in pythons] + list(subjects)
    taken: dict[str, list[tuple[float, float]]] = {subject.name: [] for subject in runs}
    for subject in runs:
        _run(subject, source)
    for turn in range(rounds):
        start = turn % len(runs)
        for subject in runs[start:] + runs[:start]:
            taken[subject.name].append(_run(subject, source))
    best = {
        name: ImportCost(min(cpu for cpu, _ in samples), min(rss for _, rss in samples))
        for name, samples in taken.items()
    }
    net: dict[str, ImportCost] = {}
    for subject in subjects:
        cost, bare = best[subject.name], best[f"bare {subject.python}"]
        net[subject.name] = ImportCost(cost.cpu_ms - bare.cpu_ms, cost.memory_mb - bare.memory_mb)
    return net, best[f"bare {subjects[0].python}"]


def _run(subject: Subject, source: Path) -> tuple[float, float]:
    """Run a statement in a new interpreter; return its CPU milliseconds and its peak memory in MB."""
    command = [str(subject.python), "-c", subject.statement + _REPORT_MEMORY]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = str(source)
    environment["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
    assert child.stdout is not None  # asked for above
    with child.stdout:
        output = child.stdout.read().decode()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, command)
    return (usage.ru_utime + usage.ru_stime) * 1e3, _memory_mb(output) or usage.ru_maxrss / 1024


def _memory_mb(status: str) -> float:
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0
