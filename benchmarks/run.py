"""Measure segue and write down the figures: `python benchmarks/run.py`.

It needs msgspec, orjson and segue itself installed beside it. The peers get virtual environments of their own below
`.bench/`, made on the first run. `--quick` is for seeing that it works: its figures mean nothing.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from figures import HEADINGS, Figure, Goal, render_table
from imports import Subject, measure_imports
from measure import FULL, QUICK, Effort
from peers import PEERS, Environment, Peer, get_peer, make_environment
from projections import measure_projection
from request_costs import measure_requests
from storage import measure_stored
from stream_costs import measure_streams

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "benchmarks" / "README.md"

GOALS: Final[Mapping[str, Goal]] = {
    "import.langchain": Goal(must=1 / 5),
    "import.litellm": Goal(must=1 / 70),
    "import.memory": Goal(must=8.0),
    "stored.load": Goal(must=1.0, aim=0.8),
    "stored.dump": Goal(must=2.0, aim=1.5),
    "stored.load.linear": Goal(must=2.0, aim=1.3),
    "stored.dump.linear": Goal(must=2.0, aim=1.3),
    "projection.home": Goal(must=1.5, aim=1.0),
    "projection.abroad": Goal(must=1.5, aim=1.0),
    "projection.home.linear": Goal(must=2.0, aim=1.3),
    "projection.abroad.linear": Goal(must=2.0, aim=1.3),
    "projection.home.warm": Goal(must=100.0, aim=30.0),
    "projection.abroad.warm": Goal(must=100.0, aim=30.0),
    "requests.home": Goal(must=2.5, aim=1.5),
    "requests.abroad": Goal(must=4.0, aim=2.5),
    "requests.pydantic-ai": Goal(must=1 / 2, aim=1 / 4),
    "requests.pydantic-ai.mean": Goal(must=1 / 2, aim=1 / 4),
    "requests.litellm": Goal(must=1 / 3, aim=1 / 5),
    "requests.litellm.mean": Goal(must=1 / 3, aim=1 / 5),
    "requests.decode": Goal(must=4.0, aim=2.5),
    "streams.mixed": Goal(must=5.0, aim=3.0),
    "streams.argument": Goal(must=5.0, aim=3.0),
    "streams.growth": Goal(must=1.2),
}
"""What every figure that has a goal must not exceed, and what it aims at. Quadratic work would show as 10 in the growth
from 1,000 to 10,000 messages; caches and the garbage collector alone bring some of it to 1.3."""

SEGUE_IMPORTS: Final = (
    ("import segue", "import segue"),
    ("segue, types and stored JSON", "from segue import Context, dump, load"),
)
"""The first loads nothing until a name is asked for, so the second is the one to hold against others."""

SEGUE_ALONE: Final = Peer("segue", "msgspec", importlib.metadata.version("msgspec"), "import msgspec")
"""What an installed segue stands in: msgspec and nothing else. msgspec loads `typing_extensions` where it finds it, and
the tools of a developer bring it along, so their environment would tell nothing about a user's."""

INTRODUCTIONS: Final[Mapping[str, str]] = {
    "import": "A new interpreter, net of one that does nothing; the best of many runs, the libraries in turn.",
    "stored": "A history of an agent as segue stores it, beside orjson on the same bytes.",
    "projection": "The same history made ready for the model that wrote it (home) and for another (abroad).",
    "requests": (
        "A history that was decoded from a provider's replies becomes the body of a request, as plain values: for the\n"
        "model that wrote it (home: Claude, DeepSeek, GPT) and for another (abroad: GPT's at Claude, Claude's at GPT)."
    ),
    "streams": (
        "A streamed reply, an event at a time: server-sent events to neutral events and the whole message, beside\n"
        "`orjson.loads` of each payload."
    ),
}

NOTES: Final = """\
- CPU time, never the clock on the wall; what is compared runs in turn in one process, and a value is best over best.
  The rows that hold a thing against itself show what the machine could not tell apart: less means nothing.
- Where a value lies below the middle half of its rounds, a usual call costs more than the best: read the middle half.
- Absolute values depend on the machine and on what else it does (see the load); ratios travel better.
- Transcripts are made, not recorded: 55 % tool results of 0.2 to 8 KB, 38 % assistant messages with sealed thinking and
  one to three calls, 6 % user messages; every seventh string holds characters beyond ASCII. The seed is fixed.
- orjson makes plain dicts and checks nothing, segue makes frozen values and checks every field: the ratio is the price
  of that, not a race between equals.
- `import segue` alone loads next to nothing until a name is asked for; the row with the types is the fair one.
- segue is imported in an environment with msgspec alone, as `pip install segue` makes it.
- Peers are imported as their users import them for messages alone (litellm has no smaller part). They bring more than
  segue does, network clients among it. litellm is told not to fetch its price list.
- Of a peer, its own function is timed that maps a history, in its own types, to the wire: pydantic-ai's leaves out
  tools, options and what it does before; litellm's to OpenAI is nearly a pass-through, and to Claude it leaves foreign
  reasoning out. segue's row has everything in it, the report of what was changed too. Their bodies differ in places.
- Two processes are compared as multiples of `orjson.dumps` of the same body, measured in both, in turn: "1/3" means
  that segue needs a third of what the peer needs.
- What a history holds of its replies beyond segue's words (`extra`: who served it, how it was spelt, the request that
  OpenAI repeats) is there in the first row of a passage and left out in the second.
- orjson is given the payloads of a stream ready cut, and keeps nothing of them.
- The garbage collector is on, as it is where the library is used, unless the run says otherwise.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the chosen groups, print their tables, and write the page unless the run was a quick one."""
    options = parse_options(arguments)
    if options.no_gc:
        gc.disable()
    machine = describe_machine(options)
    print(render_table(machine), flush=True)
    sections: list[str] = []
    for name in options.groups:
        figures = GROUPS[name](options)
        check_goals(name, figures)
        rows = [HEADINGS, *(figure.cells(GOALS.get(figure.key)) for figure in figures)]
        sections.append(f"## {name}\n\n{INTRODUCTIONS[name]}\n\n{render_table(rows)}\n")
        print("\n" + sections[-1], flush=True)
    if options.output is not None:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(render_page(machine, sections), encoding="utf-8")


class Options(argparse.Namespace):
    """The command line, read."""

    quick: bool
    groups: list[str]
    no_peers: bool
    no_gc: bool
    output: Path | None


def parse_options(arguments: Sequence[str] | None) -> Options:
    """Read the command line; a whole run at full length writes the page unless told where else."""
    parser = argparse.ArgumentParser(description="Measure segue.")
    parser.add_argument("--quick", action="store_true", help="see that it works; the figures mean nothing")
    parser.add_argument("--groups", nargs="+", choices=list(GROUPS), default=list(GROUPS), help="what to measure")
    parser.add_argument("--no-peers", action="store_true", help="leave other libraries out")
    parser.add_argument("--no-gc", action="store_true", help="switch the garbage collector off")
    parser.add_argument("--output", type=Path, help="where to write the page")
    options = parser.parse_args(arguments, namespace=Options())
    if options.output is None and not options.quick and options.groups == list(GROUPS):
        options.output = PAGE
    return options


def check_goals(group: str, figures: Sequence[Figure]) -> None:
    """Refuse a goal that no figure of its group is held against: a misspelt key would never be missed."""
    unused = {key for key in GOALS if key.startswith(f"{group}.")} - {figure.key for figure in figures}
    if unused:
        raise AssertionError(f"goals without a figure: {sorted(unused)}")


def measure_import_group(options: Options) -> list[Figure]:
    """Hold `import segue` against an interpreter without it, msgspec alone, and the peers."""
    python = _environment(SEGUE_ALONE, options).python or Path(sys.executable)
    environments = [_environment(peer, options) for peer in PEERS]
    subjects = [Subject(name, python, statement) for name, statement in SEGUE_IMPORTS]
    subjects.append(Subject("msgspec alone", python, "import msgspec"))
    subjects += [Subject(it.peer.name, it.python, it.peer.statement) for it in environments if it.python is not None]
    costs, bare = measure_imports(subjects, source=ROOT / "src", rounds=2 if options.quick else 15)
    figures = [
        Figure("", "bare python, CPU", "ms", bare.cpu_ms),
        Figure("", "bare python, memory", "MB", bare.memory_mb),
    ]
    for subject in subjects:
        cost = costs[subject.name]
        is_segue = subject.name in dict(SEGUE_IMPORTS)
        figures.append(Figure("", f"{subject.name}, CPU", "ms", cost.cpu_ms))
        figures.append(Figure("import.memory" if is_segue else "", f"{subject.name}, memory", "MB", cost.memory_mb))
    for it in environments:
        for name, _ in SEGUE_IMPORTS:
            what, key = f"{name} / {it.peer.statement.removeprefix('import ')}", f"import.{it.peer.name}"
            if it.python is None:
                figures.append(Figure(key, what, "part", None, note=f"not measured: {it.reason}"))
            else:
                value = max(costs[name].cpu_ms, 0.0) / costs[it.peer.name].cpu_ms
                figures.append(Figure(key, what, "part", value))
    return figures


def _environment(peer: Peer, options: Options) -> Environment:
    if options.no_peers:
        return Environment(peer, None, "peers were left out")
    return make_environment(peer, ROOT / ".bench")


def _effort(options: Options) -> tuple[Effort, tuple[int, int]]:
    return (QUICK, (60, 240)) if options.quick else (FULL, (1_000, 10_000))


def measure_request_group(options: Options) -> list[Figure]:
    """Hold `prepare` against orjson and against the peers that map a history."""
    effort, (length, _) = _effort(options)
    environments = [_environment(get_peer(name), options) for name in ("pydantic-ai", "litellm")]
    return measure_requests(effort, length, environments)


GROUPS: Final[Mapping[str, Callable[[Options], list[Figure]]]] = {
    "import": measure_import_group,
    "stored": lambda options: measure_stored(*_effort(options)),
    "projection": lambda options: measure_projection(*_effort(options)),
    "requests": measure_request_group,
    "streams": lambda options: measure_streams(
        _effort(options)[0], (1_000, 4_000) if options.quick else (12_000, 200_000)
    ),
}


def describe_machine(options: Options) -> list[tuple[str, ...]]:
    """Say where and when the figures were taken, with which versions."""
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("msgspec", "orjson")]
    peers = [f"{peer.package} {peer.version}" for peer in PEERS if _asks_for(peer, options)]
    return [
        ("machine", ""),
        ("processor", _processor()),
        ("cores", str(os.cpu_count())),
        ("load before the run", " ".join(f"{load:.1f}" for load in os.getloadavg())),
        ("system", f"{platform.system()} {platform.machine()}"),
        ("Python", platform.python_version()),
        ("libraries", ", ".join(versions)),
        ("peers", ", ".join(peers) or "left out"),
        ("garbage collector", "off" if options.no_gc else "on"),
        ("date", datetime.now(UTC).date().isoformat()),
    ]


def _asks_for(peer: Peer, options: Options) -> bool:
    mapped = "requests" in options.groups and peer.name != "langchain"
    return not options.no_peers and ("import" in options.groups or mapped)


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


def render_page(machine: list[tuple[str, ...]], sections: Sequence[str]) -> str:
    """Write the page of a whole run."""
    parts = [
        "# What segue costs\n",
        "Written by `make bench`; the goals stand in `benchmarks/run.py`.\n",
        render_table(machine) + "\n",
        *sections,
        "## How to read this\n",
        NOTES,
    ]
    return "\n".join(parts)


if __name__ == "__main__":
    main()
