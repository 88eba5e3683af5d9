"""The page of a run, for readers of the documentation: pictures, one table, and how to repeat it.

Every figure is in a file next to the page. Goals are in neither: they are for those who work on segue, and `run.py`
prints them.
"""

from __future__ import annotations

import csv
import importlib.metadata
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Final

from figures import COLUMNS, Figure, render_table
from peers import PEERS, Peer
from plots import PLOTS

INTRODUCTIONS: Final[Mapping[str, str]] = {
    "import": "a new interpreter with the import, minus one that does nothing",
    "stored": "loading and dumping the stored history of an agent",
    "projection": "the history for the model that wrote it (same-model) and for another (cross-model)",
    "requests": "a history that was decoded from replies, encoded as a request body and as bytes",
    "parts": "the parts of those requests, and two lower bounds: an empty loop, and the finished body made again in C",
    "growth": "the time for one message in histories of ten to ten thousand messages",
    "warm": "one more step of an agent (a turn and three results) after a history that was sent, with an `Outbox`",
    "bound": "the check that keeps reasoning valid, compared with the same model without it",
    "windows": "counting and fitting, for a history that is larger than the window",
    "recall": "what a request to a small window still has of what the next turn needs; `--sessions FOLDER` reads yours",
    "streams": "from server-sent events to segue's events and the whole message",
    "relays": "a streamed reply that is decoded, projected and encoded for a client",
    "client": "a streamed reply over loopback, compared with httpx2 alone and with the providers' SDKs",
    "gateway": "CPU time of the process, Messages to Chat, compared with uvicorn and httpx2 that forward the bytes",
    "pairs": "CPU time of the process, in pairs with servers that pass bytes on; each runs twice, and A/A is the error",
    "convert": "`segue convert` with a file of conversations",
    "corpus": "columns of Arrow, folders, batch files, and Ray if it is installed",
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
The unit of most comparisons is the time that orjson, a fast JSON serializer in Rust, needs to write the same request
once: about the least that a request can cost. `make bench` measures everything and writes this page.
"""

_TABLE: Final = """\
1/3 is a third of the other's time. A range is over the protocols, or over the cases of one. Comparisons with libraries
are geometric means over the protocols that both support, for requests after the first one of a conversation.
[figures.csv](figures.csv) has every figure, with the quartiles of its rounds.
"""

SUMMARY: Final[Mapping[str, str]] = {
    "stored.load": "load a stored conversation / `orjson.loads`",
    "stored.dump": "dump it / `orjson.dumps`",
    "requests.same-model": "a request for the model that wrote the history / `orjson.dumps`",
    "requests.cross-model": "a request for another model / `orjson.dumps`",
    "requests.decode": "decode a request / `orjson.loads`",
    "growth.prepare": "time for a message of 10,000 / of 1,000: 1 is linear",
    "warm.copy": "one more turn with an `Outbox` / one copy of the body's bytes",
    "warm.pydantic-ai": "one more turn with an `Outbox` / pydantic-ai",
    "bound.warm": "one more turn with the check of bound reasoning / without it",
    "windows.added": "fitting a window, added to one more turn",
    "windows.count": "count a million tokens",
    "streams.mixed": "decode a streamed reply / `orjson.loads` of its events",
    "relays.other": "relay a stream to another protocol / `orjson.loads` and `orjson.dumps`",
    "client.overhead": "read a stream with the client / httpx2 alone",
    "client.sdks": "read a stream with the client / the provider's SDK",
    "gateway.request.32": "the gateway, 32 requests of 44 KB at a time / a bare proxy",
    "gateway.event": "the gateway, an event of 200 live streams / a bare proxy",
    "convert.rate": "`segue convert`, messages on one core",
    "corpus.agent": "`segue convert`, MB of agent traces on one core",
}
"""Key of figures -> the row that shows their range."""

_REPEAT: Final = """\
    make bench                           all of it; writes this page
    make BENCH=requests bench            one group, printed
    make BENCH="--no-peers warm" bench   without the other libraries
    make BENCH="--rounds 10" bench       a quarter of the rounds: faster and less exact
    make BENCH=--quick bench             only to see that it runs; the figures mean nothing

The first run installs each of the other libraries into its own environment below `.bench`. Other programs on the
machine slow everything down: compare figures of one run with each other, not with another machine's.

| group | what it measures |
| --- | --- |
"""

_NOTES: Final = """\
- Times are CPU times. Compared subjects run in turn, and a value is the best time divided by the best time of the
  reference. Rows that compare code with itself show the measurement error.
- Transcripts are generated with a fixed seed: 55% tool results of 0.2 to 8 KB, 38% assistant messages with signed
  thinking and one to three calls, 6% user messages; every seventh string has non-ASCII characters.
- orjson checks nothing; segue makes frozen values, checks every field, and reports the changes.
- segue is imported with only msgspec installed; the others as their users import them for messages. They include more
  than segue, such as network clients.
- For a library, the timed function is its own that encodes a history, built in its types before. Where it does less
  work than segue (no tools, no reasoning), its row in figures.csv says so.
- The garbage collector is on unless the run turns it off.
"""

PLOTTED: Final = ("cold", "import", "growth", "warm")
"""The pictures, in the order of the page."""


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


def render_page(machine: list[tuple[str, ...]], groups: Mapping[str, Sequence[Figure]]) -> str:
    """Write the page of a run."""
    figures = [figure for group in groups.values() for figure in group]
    described = "; ".join(f"{name}: {value}" for name, value in machine[1:])
    rows = [("measured", "value"), *_compare_peers(figures), *_summarize(figures)]
    parts = [
        "# How fast is segue?\n",
        _INTRODUCTION,
        *(f"![{PLOTS[name].title}]({name}.svg)\n" for name in PLOTTED if _has_plot(figures, name)),
        "## Figures\n",
        _TABLE,
        render_table(rows) + "\n",
        f"{described}.\n",
        "## How to repeat it\n",
        _REPEAT + "".join(f"| `{group}` | {INTRODUCTIONS[group]} |\n" for group in TITLES),
        "## How it is measured\n",
        _NOTES,
    ]
    return "\n".join(parts)


def render_figures(groups: Mapping[str, Sequence[Figure]]) -> str:
    """Write every figure as CSV."""
    written = StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(("group", *COLUMNS))
    writer.writerows((group, *figure.row()) for group, figures in groups.items() for figure in figures)
    return written.getvalue()


def _compare_peers(figures: Sequence[Figure]) -> list[tuple[str, ...]]:
    """Return the rows of the peers: the mean of the requests, and the import of the types."""
    by_key = {figure.key: figure for figure in figures if figure.key}
    keys = {"a request from 1,000 stored messages": "requests.{}.mean", "import of the message types": "import.{}"}
    rows: list[tuple[str, ...]] = []
    for what, key in keys.items():
        for peer in PEERS:
            figure = by_key.get(key.format(peer.name))
            if figure is not None and figure.value is not None:
                rows.append((f"{what} / {peer.package} {peer.version}", figure.written()))
    return rows


def _summarize(figures: Sequence[Figure]) -> list[tuple[str, ...]]:
    """Return a row for each kind of figure: its lowest and highest value."""
    rows: list[tuple[str, ...]] = []
    for key, what in SUMMARY.items():
        measured = sorted(
            (figure for figure in figures if figure.key == key and figure.value is not None),
            key=lambda figure: figure.value or 0.0,
        )
        if measured:
            low, high = measured[0].written(), measured[-1].written()
            rows.append((what, low if low == high else f"{low} to {high}"))
    return rows


def _has_plot(figures: Sequence[Figure], name: str) -> bool:
    return any(figure.mark is not None and figure.mark.plot == name for figure in figures)
