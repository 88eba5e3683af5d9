"""The page of a run, for readers of the documentation: comparisons, machine, tables, and how to repeat them.

Goals are not on it: they are for those who work on segue, and `run.py` prints them.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from figures import COLUMNS, Figure, render_table
from peers import PEERS, Peer
from plots import PLOTS

INTRODUCTIONS: Final[Mapping[str, str]] = {
    "import": "Import in a new interpreter, minus an interpreter that does nothing; the best of many runs, in turn.",
    "stored": "Loading and dumping the stored history of an agent, compared with orjson on the same bytes.",
    "projection": (
        "Projection of the same history for the model that wrote it (same-model) and for another (cross-model)."
    ),
    "requests": (
        "A history that was decoded from a provider's replies is encoded as the body of a request, as dicts and\n"
        "lists, and as the bytes that a client sends: for the model that wrote it (same-model: Claude, DeepSeek, GPT,\n"
        "Gemini, Claude at Amazon) and for another (cross-model: GPT's history for Claude, Claude's for all others).\n"
        "1/3: a third of the peer's time."
    ),
    "parts": (
        "The parts of those requests, as multiples of `orjson.dumps` of the body, and two lower bounds: a loop over\n"
        "the history that does nothing, and the dicts and lists of the finished body, made again in C."
    ),
    "growth": (
        "The same-model requests with histories of ten to ten thousand messages: the time for one message.\n"
        "If it does not grow, the time for the whole history is linear."
    ),
    "warm": (
        "One more step of an agent (a turn and three results) after a history that was already sent, to the bytes of\n"
        "the body: `Outbox(model).prepare(context).content`, compared with one copy of those bytes, and with\n"
        "pydantic-ai, which each time encodes the whole history and serializes it."
    ),
    "bound": (
        "What it costs to keep reasoning valid: a request to a model that accepts it only behind what it was made\n"
        "after, compared with the same model without that check, for a warm turn and a whole request of the gateway."
    ),
    "windows": (
        "The same step with a history that is larger than the window of the model: what counting and fitting add to a\n"
        "warm turn of `Projector`, and counting alone, for a million tokens."
    ),
    "recall": (
        "What a request to a small window still holds of what the recorded next turn needs, wherever the whole\n"
        "history is above the high mark: names, rare words, runs of four words that its calls quote, planted facts,\n"
        "the newest and the first message of the user. Sessions are generated; `--sessions FOLDER` takes others."
    ),
    "streams": (
        "A streamed reply, one event at a time: from server-sent events to segue's events and the whole message,\n"
        "compared with `orjson.loads` of each payload."
    ),
    "relays": (
        "A streamed reply, passed on to a client: decoded, shown with `ReplyProjector`, encoded and written as bytes,\n"
        "compared with `orjson.loads` of the payloads and `orjson.dumps` of the frames."
    ),
    "client": (
        "The same streamed reply over a loopback connection: read by segue's client, by httpx2 alone (the time of the\n"
        "transport, a lower bound), and by the providers' own clients, whose raw streams make no message."
    ),
    "gateway": (
        "A request and a streamed event through the gateway, translated from Messages to Chat, with a store: the CPU\n"
        "time of its process, compared with uvicorn and httpx2 that pass the bytes on."
    ),
    "pairs": (
        "The gateway as `segue serve` runs it, and servers that pass bytes on (bare: uvicorn, Starlette and httpx2),\n"
        "in slices of 0.1 s in random order: the scheduler's CPU time of the process. Every server runs twice; the\n"
        "ratio of the copies, A/A, is the error of a row."
    ),
    "convert": "`segue convert` with a file of conversations, one on each line: the whole program and its start.",
    "corpus": (
        "Corpora: columns of Arrow, folders, batch files of providers, and Ray where it is installed. A rate is the\n"
        "input in MB for each second of CPU time."
    ),
}

TITLES: Final[Mapping[str, str]] = {
    "import": "Import",
    "stored": "Stored conversations",
    "projection": "Projection",
    "requests": "Requests",
    "parts": "Parts of a request",
    "growth": "Long histories",
    "warm": "One more turn",
    "bound": "Reasoning that is bound to its place",
    "windows": "Histories larger than the window",
    "recall": "What a small window keeps",
    "streams": "Streamed replies",
    "relays": "Streams passed on",
    "client": "The client",
    "gateway": "The gateway",
    "pairs": "The gateway in pairs",
    "convert": "Conversion of files",
    "corpus": "Corpora",
}
"""Group -> its heading."""

_INTRODUCTION: Final = """\
What segue costs, compared with other libraries that make requests from stored conversations. The unit of most
comparisons is the time that orjson, a fast serializer of JSON in Rust, needs to write the same request once: about the
least that a request can cost. `make bench` measures everything here and writes this page.
"""

_REPEAT: Final = """\
    make bench                           all of it; writes this page
    make BENCH=requests bench            one group, printed
    make BENCH="--no-peers warm" bench   without the other libraries
    make BENCH="--rounds 10" bench       a quarter of the rounds: faster and less exact
    make BENCH=--quick bench             only to see that it runs; the figures mean nothing

The groups are {groups}.

The first run installs each of the other libraries, in the version of the table above, into an environment of its own
below `.bench`. Other programs on the same machine make everything slower, the larger histories most, because they share
the processor's caches: compare figures of one run with each other, not with those of another machine.
"""

_NOTES: Final = """\
- Times are CPU times, not wall-clock times. Compared subjects run in turn in one process, and a value is the best time
  divided by the best time of the reference. Rows that compare code with itself show the measurement error: smaller
  differences mean nothing.
- If a value is below the quartiles of its rounds, a typical call takes longer than the best: use the quartiles.
- Absolute values depend on the machine and its load; ratios depend on them less.
- Transcripts are generated: 55 % tool results of 0.2 to 8 KB, 38 % assistant messages with signed thinking and one to
  three calls, 6 % user messages; every seventh string contains non-ASCII characters. The seed is fixed.
- orjson makes dicts and checks nothing, segue makes frozen values and checks every field: the ratio is the cost of
  that.
- `import segue` alone imports next to nothing until a name is used; compare the row with the types.
- segue is imported in an environment with only msgspec, like that of `pip install segue-llm`.
- Peers are imported as their users import them for messages (litellm has no smaller part). They include more than
  segue, network clients for example. litellm is configured not to download its price list.
- For a peer, the timed function is its own that encodes a history, which was built in its types before. Where it does
  less work than segue, the row has a note; segue's time includes tools, options and the report of the changes. The
  requests of peers differ from segue's in places; they were not checked here.
- langchain gets the type hints of five classes again for every block.
- llm-rosetta stores no histories: it gets what it decoded from a request; in the rows of `convert` it also decodes it.
  For Google its time grows faster than the history: a message of 1,000 takes several times as long as one of 60.
- Two processes are compared as multiples of `orjson.dumps` of the same body, measured in both, in turn: "1/3" means
  that segue needs a third of the peer's time. Most peers are measured in a fifth of the rounds.
- The fields of replies that segue has no types for (`extra`: provider, verbatim format, the request that OpenAI
  repeats) are included in the first row of a case and left out in the second.
- orjson gets the payloads of a stream already split and keeps nothing.
- The garbage collector is on, as in applications, unless the run turns it off; histories that were made before the
  measurement are frozen in all processes.
"""

_PLOTS_OF: Final[Mapping[str, str]] = {"import": "import", "growth": "growth", "warm": "warm"}
"""Group -> its plot; that of requests is at the beginning."""


def describe_machine(peers: Sequence[Peer], *, collects: bool) -> list[tuple[str, ...]]:
    """Describe the machine, the date and the versions."""
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("msgspec", "orjson")]
    return [
        ("machine", ""),
        ("processor", _processor()),
        ("cores", str(os.cpu_count())),
        ("load before the run", " ".join(f"{load:.1f}" for load in os.getloadavg())),
        ("system", f"{platform.system()} {platform.machine()}"),
        ("Python", platform.python_version()),
        ("libraries", ", ".join(versions)),
        ("peers", ", ".join(f"{peer.package} {peer.version}" for peer in peers) or "not measured"),
        ("garbage collector", "on" if collects else "off"),
        ("date", datetime.now(UTC).date().isoformat()),
    ]


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


def render_section(group: str, figures: Sequence[Figure]) -> str:
    """Write the table of a group, with its plot before it."""
    rows = [COLUMNS, *(figure.row() for figure in figures)]
    parts = [f"## {TITLES[group]}", INTRODUCTIONS[group]]
    name = _PLOTS_OF.get(group, "")
    if _has_plot(figures, name):
        parts.append(f"![{PLOTS[name].title}]({name}.svg)")
    return "\n\n".join([*parts, render_table(rows)]) + "\n"


def render_page(machine: list[tuple[str, ...]], groups: Mapping[str, Sequence[Figure]]) -> str:
    """Write the page of a whole run."""
    figures = [figure for group in groups.values() for figure in group]
    summary = _compare_peers({figure.key: figure for figure in figures if figure.key})
    parts = [
        "# Benchmarks\n",
        _INTRODUCTION,
        *(["## Compared with other libraries\n", _COMPARED, render_table(summary) + "\n"] if len(summary) > 1 else []),
        *([f"![{PLOTS['cold'].title}](cold.svg)\n"] if _has_plot(figures, "cold") else []),
        "## The machine\n",
        render_table(machine) + "\n",
        "## How to repeat it\n",
        _REPEAT.format(groups=_listed([f"`{name}`" for name in TITLES])),
        *(render_section(group, of_group) for group, of_group in groups.items()),
        "## How it is measured\n",
        _NOTES,
    ]
    return "\n".join(parts)


_COMPARED: Final = """\
The share of a peer's time that segue needs: 1/3 is a third. Requests are those of the bars below, from 1,000 stored
messages; the mean is the geometric one over the protocols that the peer supports. A conversation remembers what was
found in its messages, so these are requests after its first one, which has rows of its own below.
"""


def _listed(names: Sequence[str]) -> str:
    """Join names, on two lines."""
    half = len(names) // 2
    return f"{', '.join(names[:half])},\n{', '.join(names[half:-1])} and {names[-1]}"


def _compare_peers(figures: Mapping[str, Figure]) -> list[tuple[str, ...]]:
    """Give a row for each peer: the mean of the requests, and the import of the types."""
    keys = {"a request": "requests.{}.mean", "import": "import.{}"}
    columns = {name: key for name, key in keys.items() if any(key.format(peer.name) in figures for peer in PEERS)}
    rows: list[tuple[str, ...]] = [("peer", *columns)]
    for peer in PEERS:
        asked = [figures.get(key.format(peer.name)) for key in columns.values()]
        cells = ["" if figure is None or figure.value is None else figure.written() for figure in asked]
        if any(cells):
            rows.append((f"{peer.package} {peer.version}", *cells))
    return rows


def _has_plot(figures: Sequence[Figure], name: str) -> bool:
    return any(figure.mark is not None and figure.mark.plot == name for figure in figures)
