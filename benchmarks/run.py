"""Run the benchmarks and write the page: `python benchmarks/run.py`.

It needs segue's development environment. The peers get their own virtual environments in `.bench/`, made by the first
run. `--quick` only tests that everything works: its figures are meaningless.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from batches import measure_batches
from bound_turns import measure_bound
from client_costs import measure_client
from corpus_costs import measure_corpus
from figures import HEADINGS, Figure, render_table, render_verdicts
from gateway_costs import measure_gateway
from gateway_pairs import compare_pairs
from goals import GOALS, check_goals
from growth import measure_growth
from imports import measure_import_costs
from measure import FULL, QUICK, Effort
from page import TITLES, describe_machine, render_figures, render_page
from parts import measure_parts
from peers import PEERS, Environment, Peer, make_environment
from plots import draw_plots
from projections import measure_projection
from recall import find_sessions, measure_recall
from relay_costs import measure_relays
from request_costs import measure_requests
from storage import measure_stored
from stream_costs import measure_streams
from warm_turns import measure_warm
from windows import measure_windows

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "benchmarks" / "README.md"

SEGUE_ALONE: Final = Peer("segue", "msgspec", importlib.metadata.version("msgspec"), "import msgspec")
"""The environment of an installed segue: only msgspec. msgspec imports `typing_extensions` if it is installed, which it
is in a development environment, so figures from there would not apply to users."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the chosen groups, print their tables with the goals, and write the page unless the run is quick."""
    options = parse_options(arguments)
    if options.no_gc:
        gc.disable()
    needed = [] if options.no_peers else [peer for peer in PEERS if NEEDED & set(options.groups)]
    machine = describe_machine(needed, collects=not options.no_gc)
    print(render_table(machine), flush=True)
    bench = Bench(options)
    groups: dict[str, list[Figure]] = {}
    for name in options.groups:
        begun = time.monotonic()
        groups[name] = GROUPS[name](bench)
        check_goals(name, groups[name])
        rows = [HEADINGS, *(figure.cells(GOALS.get(figure.key)) for figure in groups[name])]
        print(f"\n{TITLES[name]}\n\n{render_table(rows)}", flush=True)
        print(f"{name} took {time.monotonic() - begun:.0f} seconds", file=sys.stderr, flush=True)
    print(f"\nThe worst figure of each goal\n\n{render_verdicts([it for its in groups.values() for it in its], GOALS)}")
    if options.output is not None:
        write_page(options.output, machine, groups)


def write_page(path: Path, machine: list[tuple[str, ...]], groups: Mapping[str, Sequence[Figure]]) -> None:
    """Write the page, every figure, and the plots."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render_page(machine, groups), encoding="utf-8")
    (path.parent / "figures.csv").write_text(render_figures(groups), encoding="utf-8")
    figures = [figure for group in groups.values() for figure in group]
    for name, drawing in draw_plots(figures).items():
        (path.parent / f"{name}.svg").write_text(drawing, encoding="utf-8")


class Options(argparse.Namespace):
    """The options of the command line."""

    quick: bool
    rounds: int
    groups: list[str]
    named: list[str]
    no_peers: bool
    no_gc: bool
    sessions: Path | None
    output: Path | None


def parse_options(arguments: Sequence[str] | None) -> Options:
    """Parse the command line; a full run writes the default page, unless another is given."""
    parser = argparse.ArgumentParser(description="Measure segue.")
    parser.add_argument(
        "--quick", action="store_true", help="only test that everything works; the figures are meaningless"
    )
    parser.add_argument("--rounds", type=int, default=FULL.rounds, help="how often each subject is measured")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"the groups to measure: {', '.join(GROUPS)}")
    parser.add_argument("--groups", nargs="+", dest="named", choices=list(GROUPS), default=[], help="the same")
    parser.add_argument("--no-peers", action="store_true", help="do not measure other libraries")
    parser.add_argument("--no-gc", action="store_true", help="turn the garbage collector off")
    parser.add_argument("--sessions", type=Path, metavar="FOLDER", help="recorded sessions for the group recall")
    parser.add_argument("--output", type=Path, help="the page to write")
    options = parser.parse_args(arguments, namespace=Options())
    unknown = [name for name in options.groups if name not in GROUPS]
    if unknown:
        parser.error(f"there is no group {unknown[0]!r}; choose from {', '.join(GROUPS)}")
    options.groups = [*options.groups, *options.named] or list(GROUPS)
    if options.output is None and not options.quick and options.groups == list(GROUPS):
        options.output = PAGE
    return options


class Bench:
    """Shared by the groups: the effort, and the environments of peers, made when first needed."""

    def __init__(self, options: Options) -> None:
        self.quick = options.quick
        self.effort: Effort = QUICK if options.quick else Effort(options.rounds, FULL.sample_ns)
        self.lengths: tuple[int, int] = (60, 240) if options.quick else (1_000, 10_000)
        self.sessions = options.sessions
        self._no_peers = options.no_peers
        self._made: dict[str, Environment] = {}

    def environments(self, peers: Sequence[Peer] = PEERS) -> list[Environment]:
        """Return the environments of peers; missing ones are made, two at a time."""
        missing = [peer for peer in peers if peer.name not in self._made]
        with ThreadPoolExecutor(2) as pool:
            self._made.update(zip((peer.name for peer in missing), pool.map(self._make, missing), strict=True))
        return [self._made[peer.name] for peer in peers]

    def _make(self, peer: Peer) -> Environment:
        if self._no_peers:
            return Environment(peer, None, "peers were left out")
        return make_environment(peer, ROOT / ".bench")


def _measure_import(bench: Bench) -> list[Figure]:
    (alone,) = bench.environments([SEGUE_ALONE])
    python = alone.python or Path(sys.executable)
    return measure_import_costs(python, bench.environments(), source=ROOT / "src", rounds=min(8, bench.effort.rounds))


def _measure_warm(bench: Bench) -> list[Figure]:
    peers = [peer for peer in PEERS if peer.name == "pydantic-ai"]
    return measure_warm(bench.effort, bench.lengths, *bench.environments(peers))


def _measure_recall(bench: Bench) -> list[Figure]:
    return measure_recall(find_sessions(bench.sessions, quick=bench.quick))


GROUPS: Final[Mapping[str, Callable[[Bench], list[Figure]]]] = {
    "import": _measure_import,
    "stored": lambda bench: measure_stored(bench.effort, bench.lengths),
    "projection": lambda bench: measure_projection(bench.effort, bench.lengths),
    "requests": lambda bench: measure_requests(bench.effort, bench.lengths[0], bench.environments()),
    "parts": lambda bench: measure_parts(bench.effort, bench.lengths[0]),
    "growth": lambda bench: measure_growth(
        bench.effort, (10, 40, 100) if bench.quick else (10, 100, 1_000, 10_000), bench.environments()
    ),
    "warm": _measure_warm,
    "bound": lambda bench: measure_bound(bench.effort, bench.lengths[0]),
    "windows": lambda bench: measure_windows(bench.effort, bench.lengths),
    "recall": _measure_recall,
    "streams": lambda bench: measure_streams(bench.effort, (1_000, 4_000) if bench.quick else (12_000, 200_000)),
    "relays": lambda bench: measure_relays(bench.effort, (1_000, 4_000) if bench.quick else (12_000, 200_000)),
    "client": lambda bench: measure_client(Effort(3 if bench.quick else 15, bench.effort.sample_ns)),
    "gateway": lambda bench: measure_gateway(quick=bench.quick),
    "pairs": lambda bench: compare_pairs(quick=bench.quick),
    "convert": lambda bench: measure_batches(1_000 if bench.quick else 120_000),
    "corpus": lambda bench: measure_corpus(quick=bench.quick),
}
NEEDED: Final = frozenset({"import", "requests", "growth", "warm"})
"""Groups with comparisons with peers."""


if __name__ == "__main__":
    main()
