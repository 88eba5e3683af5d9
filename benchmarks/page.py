"""The page of a run: machine, goals at a glance, plots, tables, and how to read them."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from figures import HEADINGS, Figure, render_table, render_verdicts
from goals import GOALS
from peers import Peer
from plots import PLOTS

_INTRODUCTIONS: Final[Mapping[str, str]] = {
    "import": "A new interpreter, net of one that does nothing; the best of many runs, the libraries in turn.",
    "stored": "A history of an agent as segue stores it, beside orjson on the same bytes.",
    "projection": "The same history made ready for the model that wrote it (home) and for another (abroad).",
    "requests": (
        "A history that was decoded from a provider's replies becomes the body of a request, as plain values: for\n"
        "the model that wrote it (home: Claude, DeepSeek, GPT, Gemini, Claude at Amazon) and for another (abroad:\n"
        "GPT's at Claude, Claude's everywhere else). 1/3 against a peer: segue needs a third of what the peer needs."
    ),
    "parts": (
        "Where the cost of those requests lies, as multiples of `orjson.dumps` of the body, and two bounds: a loop\n"
        "over the history that does nothing, and the finished body's dicts and lists made once more, in C."
    ),
    "growth": (
        "The same as under requests, at home, in histories of ten to ten thousand messages: what one message costs.\n"
        "A message's cost that does not grow means that the whole is linear."
    ),
    "warm": (
        "One more step of an agent (a turn and three results) on a history that was sent before, to the bytes of the\n"
        "body: `Outbox(model).prepare(context).content`, beside one copy of those bytes, and beside what pydantic-ai\n"
        "does each time: map the whole history, and serialise it."
    ),
    "streams": (
        "A streamed reply, an event at a time: server-sent events to neutral events and the whole message, beside\n"
        "`orjson.loads` of each payload."
    ),
    "client": (
        "The same streamed reply over a loopback connection: read by segue's client, by httpx2 alone (the transport's\n"
        "own cost, which nobody can be below), and by the providers' own clients, whose raw streams give no message."
    ),
    "convert": "`segue convert` over a file of conversations, one a line: the whole program, its start included.",
}

_NOTES: Final = """\
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
- Of a peer, its own function is timed that maps a history, in its own types built beforehand, to the wire. What it does
  less than segue is said beside each row; segue's row has everything in it: tools, options, the report of what was
  changed. Peers' bodies differ from segue's in places, and were not judged here.
- langchain asks Python for the type hints of five classes again for every block: an accident, and no goal is set on it.
- llm-rosetta keeps no histories: it is given what it read from a request, and in the rows of `convert` reads it too.
  Its way to Google's wire grows faster than the history: a message of 1,000 costs it several times what one of 60 does.
- Two processes are compared as multiples of `orjson.dumps` of the same body, measured in both, in turn: "1/3" means
  that segue needs a third of what the peer needs. Peers without a goal are measured in a fifth of the rounds.
- What a history holds of its replies beyond segue's words (`extra`: who served it, how it was spelt, the request that
  OpenAI repeats) is there in the first row of a passage and left out in the second.
- orjson is given the payloads of a stream ready cut, and keeps nothing of them.
- The garbage collector is on, as it is where the library is used, unless the run says otherwise; histories that were
  made before the measuring are out of its sight, in all processes.
"""

_MISSED: Final = """\
- **A request home, on OpenAI's wires.** The table of parts shows where it goes; measured one by one they add up to less
  than the whole, as each finds in the processor's caches what it left there. Looking the history over is four to five
  times a loop that asks every piece for its class and nothing else. Writing the body is two to three times what C needs
  to make its dicts and lists: half of the difference are the arguments of calls, written as JSON each time, and on
  Responses the seals, read each time. To go lower, the JSON text of arguments and seals would have to be kept beside
  what was read of it, which doubles what they take in memory and in files, or the loops be compiled with direct access
  to the fields of a message: compiled as they are, they would ask for each field the slow way.
- **A tenth of llm-rosetta.** Outside Google's wire it needs six to eleven times `orjson.dumps`. A tenth of that is what
  looking the history over takes by itself, or what C takes to make the dicts and lists. On Google's wire, where its
  cost grows faster than the history, segue takes a thirtieth.
- **Storing.** msgspec's encoder alone stands beside `dump` in the table. What is added looks for what would make a file
  that nobody can read: numbers that JSON has no word for, and values of a wrong type. It would have to be done in C.
- **litellm to Anthropic, abroad.** It leaves the reasoning of other models out; segue tells it as text, with a line in
  the report for each.
- **The client's overhead** and the ratios beside peers lie within a tenth of their bounds: what is met in one run may
  be missed in the next. The rows that hold a thing against itself say how far to trust them.
"""

_PLOTS_OF: Final[Mapping[str, str]] = {"import": "import", "requests": "cold", "growth": "growth", "warm": "warm"}
"""Which plot belongs to which group."""


def describe_machine(peers: Sequence[Peer], *, collects: bool) -> list[tuple[str, ...]]:
    """Say where and when the figures were taken, with which versions."""
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("msgspec", "orjson")]
    return [
        ("machine", ""),
        ("processor", _processor()),
        ("cores", str(os.cpu_count())),
        ("load before the run", " ".join(f"{load:.1f}" for load in os.getloadavg())),
        ("system", f"{platform.system()} {platform.machine()}"),
        ("Python", platform.python_version()),
        ("libraries", ", ".join(versions)),
        ("peers", ", ".join(f"{peer.package} {peer.version}" for peer in peers) or "left out"),
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
    """Write the table of a group, its plot before it."""
    rows = [HEADINGS, *(figure.cells(GOALS.get(figure.key)) for figure in figures)]
    parts = [f"## {group}", _INTRODUCTIONS[group]]
    name = _PLOTS_OF.get(group, "")
    if any(figure.mark is not None and figure.mark.plot == name for figure in figures):
        parts.append(f"![{PLOTS[name].title}]({name}.svg)")
    return "\n\n".join([*parts, render_table(rows)]) + "\n"


def render_page(machine: list[tuple[str, ...]], groups: Mapping[str, Sequence[Figure]]) -> str:
    """Write the page of a whole run."""
    figures = [figure for group in groups.values() for figure in group]
    parts = [
        "# What segue costs\n",
        "Written by `make bench`; the goals stand in `benchmarks/goals.py`.\n",
        render_table(machine) + "\n",
        "## goals\n",
        "Of all figures that are held against a goal, the one that is worst off.\n",
        render_verdicts(figures, GOALS) + "\n",
        *(render_section(group, of_group) for group, of_group in groups.items()),
        "## What misses its bound, or nearly, and why\n",
        _MISSED,
        "## How to read this\n",
        _NOTES,
    ]
    return "\n".join(parts)
