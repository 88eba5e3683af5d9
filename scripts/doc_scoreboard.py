"""What the scoreboard of the conformance suite shows, from docs/scoreboard.json (`scripts/scoreboard.py`)."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from doc_tables import table

RESULTS: Final = Path(__file__).parent.parent / "docs" / "scoreboard.json"
_SHOWN: Final = 8
"""How many cases of one reason are named."""
_ALL: Final = 0.8
"""From this share of the cases on, the reason is shown in place of their names."""


def scoreboard(_: str) -> str:
    """Show a row for each lane: what was accepted, kept, reported and streamed."""
    rows: list[tuple[str, ...]] = []
    for program in json.loads(RESULTS.read_text("utf-8"))["programs"]:
        for at, lane in enumerate(program["lanes"]):
            name = f"{program['name']} {program['version']}" if at == 0 else ""
            counts = [_share(lane[each]) for each in ("accepted", "kept", "reported", "streamed")]
            rows.append((name, _lane(lane), *counts, f"{lane['passed']} of {lane['cases']}"))
    return table(("program", "client → provider", "accepted", "kept", "reported", "streamed", "passed"), rows)


def scoreboard_faults(_: str) -> str:
    """Name the cases that failed, with the command of each program."""
    found = json.loads(RESULTS.read_text("utf-8"))
    lines: list[str] = []
    for program in found["programs"]:
        lines.append(f"**{program['name']}** {program['version']}, {program['date']}: `{program['install']}`.")
        lines += [program["note"]] if program["note"] else []
        lines += ["", *(f"- {_lane(lane)}, `{lane['command']}`: {_faults(lane)}" for lane in program["lanes"]), ""]
    lines += [f"- **{name}** has no row: {reason}." for name, reason in found["notRun"].items()]
    return "\n".join(lines) + "\n"


def _share(counts: list[int] | None) -> str:
    return "-" if not counts else f"{counts[0]}/{counts[1]}"


def _lane(lane: Mapping[str, Any]) -> str:
    return lane["wire"] if lane["provider"] is None else f"{lane['wire']} → {lane['provider']}"


def _faults(lane: Mapping[str, Any]) -> str:
    failed = lane["failed"]
    if not failed:
        return "all pass."
    reasons: dict[str, list[str]] = defaultdict(list)
    for case, each in failed.items():
        reasons[each["fault"]].append(case)
    return "; ".join(_reasons(reasons, len(failed), lane["cases"])) + "."


def _reasons(reasons: Mapping[str, list[str]], failed: int, cases: int) -> Iterator[str]:
    reason, most = max(reasons.items(), key=lambda each: len(each[1]))
    if failed >= _ALL * cases and len(most) >= _ALL * failed:
        yield f"{failed} of {cases} fail, mostly with `{reason.replace('`', '')}`"
        return
    names = [case for group in reasons.values() for case in group]
    shown = ", ".join(f"`{name}`" for name in names[:_SHOWN])
    yield f"{shown}{f' and {len(names) - _SHOWN} more' if len(names) > _SHOWN else ''}"
