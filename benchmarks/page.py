"""The page of a run: machine, goals, plots, tables, and notes."""

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
    "import": "Import in a new interpreter, minus an interpreter that does nothing; the best of many runs, in turn.",
    "stored": "Loading and dumping the stored history of an agent, compared with orjson on the same bytes.",
    "projection": (
        "Projection of the same history for the model that wrote it (same-model) and for another (cross-model)."
    ),
    "requests": (
        "A history that was decoded from a provider's replies is encoded as the body of a request, as dicts and\n"
        "lists: for the model that wrote it (same-model: Claude, DeepSeek, GPT, Gemini, Claude at Amazon) and for\n"
        "another (cross-model: GPT's history for Claude, Claude's for all others). 1/3: a third of the peer's time."
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
    "convert": "`segue convert` with a file of conversations, one on each line: the whole program and its start.",
    "corpus": (
        "Corpora: columns of Arrow, folders, batch files of providers, and Ray where it is installed. A rate is the\n"
        "input in MB for each second of CPU time."
    ),
}

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
- segue is imported in an environment with only msgspec, like that of `pip install segue`.
- Peers are imported as their users import them for messages (litellm has no smaller part). They include more than
  segue, network clients for example. litellm is configured not to download its price list.
- For a peer, the timed function is its own that encodes a history, which was built in its types before. Where it does
  less work than segue, the row has a note; segue's time includes tools, options and the report of the changes. The
  requests of peers differ from segue's in places; they were not checked here.
- langchain gets the type hints of five classes again for every block, which is an accident; there is no goal for it.
- llm-rosetta stores no histories: it gets what it decoded from a request; in the rows of `convert` it also decodes it.
  For Google its time grows faster than the history: a message of 1,000 takes several times as long as one of 60.
- Two processes are compared as multiples of `orjson.dumps` of the same body, measured in both, in turn: "1/3" means
  that segue needs a third of the peer's time. Peers without a goal are measured in a fifth of the rounds.
- The fields of replies that segue has no types for (`extra`: provider, verbatim format, the request that OpenAI
  repeats) are included in the first row of a case and left out in the second.
- orjson gets the payloads of a stream already split and keeps nothing.
- The garbage collector is on, as in applications, unless the run turns it off; histories that were made before the
  measurement are frozen in all processes.
"""

_MISSED: Final = """\
- **Same-model requests with OpenAI's protocols.** The table of parts shows where the time goes; the parts add up to
  less than the whole, because each finds its own data in the processor's caches. The scan of the history takes four to
  five times as long as a loop that only checks classes. Encoding takes two to three times as long as C needs to make
  the dicts and lists: half of the difference is the arguments of calls, serialized each time, and with Responses the
  signatures, parsed each time. To be faster, the JSON text of arguments and signatures would have to be stored beside
  the parsed values, which doubles their size in memory and in files, or the loops be compiled with direct access to the
  fields of a message: compiled as they are, they would access each field in the slow way.
- **A tenth of llm-rosetta.** Except for Google it needs six to eleven times `orjson.dumps`. A tenth of that is the time
  of the scan alone, or of C for the dicts and lists. For Google, where its time grows faster than the history, segue
  needs a thirtieth.
- **Storing.** The table has msgspec's encoder alone beside `dump`. The rest of the time is the check for values that
  would make an unreadable file: numbers that JSON does not support, and values of a wrong type. It would have to be
  done in C.
- **litellm to Anthropic, cross-model.** It drops the reasoning of other models; segue sends it as text, with an entry
  in the report for each.
- **The client's overhead** and the ratios to peers are within a tenth of their bounds: a goal that one run meets may be
  missed by the next. The rows that compare code with itself show the measurement error.
"""

_PLOTS_OF: Final[Mapping[str, str]] = {"import": "import", "requests": "cold", "growth": "growth", "warm": "warm"}
"""Group -> its plot."""


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
        "# Benchmarks\n",
        "Written by `make bench`; the goals are in `benchmarks/goals.py`.\n",
        render_table(machine) + "\n",
        "## goals\n",
        "The worst figure of each goal.\n",
        render_verdicts(figures, GOALS) + "\n",
        *(render_section(group, of_group) for group, of_group in groups.items()),
        "## Missed goals, and why\n",
        _MISSED,
        "## Notes\n",
        _NOTES,
    ]
    return "\n".join(parts)
