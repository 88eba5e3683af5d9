"""The result of the suite: an outcome for each case, and a card as text, JSON, JUnit or a badge."""

from __future__ import annotations

from typing import Final, Literal, final
from xml.sax.saxutils import escape, quoteattr

import msgspec

from segue.testing.conformance.cases import VERSION

Verdict = Literal["passed", "reported", "failed"]

_COLOURS: Final = ((100, "#2da44e"), (90, "#7aa116"), (70, "#bf8700"), (0, "#cf222e"))
_BADGE: Final = """<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{label}">
<title>{label}</title><rect width="{width}" height="20" rx="3" fill="#555"/>
<path d="M{left} 0h{right}a3 3 0 0 1 3 3v14a3 3 0 0 1 -3 3h-{right}z" fill="{colour}"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
<text x="6" y="14">histories</text><text x="{text}" y="14">{score}</text></g></svg>
"""
_COLUMNS: Final = ("wire", "cases", "accepted", "kept", "reported", "streamed", "passed")


@final
class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one case.

    - `accepted`: whether every request was answered, and reached the provider in a form that it accepts.
    - `kept`: whether all of it reached the provider, and the answer the client; None without a scripted provider.
    - `reported`: whether the client was told of what was lost or refused; None if nothing was.
    - `streamed`: whether the streamed answer was whole and ended as it should; None if it was not asked for.
    """

    wire: str
    case: str
    title: str
    accepted: bool
    kept: bool | None = None
    reported: bool | None = None
    streamed: bool | None = None
    faults: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Whether the case passed; "reported" if something was lost and the client was told."""
        if not self.accepted or self.streamed is False:
            return "failed"
        if self.kept is False:
            return "reported" if self.reported else "failed"
        return "passed"


@final
class Card(msgspec.Struct, frozen=True, kw_only=True):
    """The outcomes of a run. `skipped` are cases that need a scripted provider."""

    target: str
    outcomes: tuple[Outcome, ...]
    skipped: int = 0
    version: int = VERSION

    @property
    def score(self) -> int:
        """The share of cases that passed, in percent, rounded down."""
        passed = sum(outcome.verdict == "passed" for outcome in self.outcomes)
        return 100 * passed // max(1, len(self.outcomes))

    def failed(self, *, strict: bool = False) -> list[Outcome]:
        """Return the cases that failed; `strict` counts losses that were reported too."""
        wanted = ("failed", "reported") if strict else ("failed",)
        return [outcome for outcome in self.outcomes if outcome.verdict in wanted]

    def render_text(self) -> str:
        """Write the card for a terminal."""
        rows = [_COLUMNS, *(self._row(wire) for wire in dict.fromkeys(each.wire for each in self.outcomes))]
        widths = [max(len(row[at]) for row in rows) for at in range(len(_COLUMNS))]
        lines = [f"Histories, version {self.version}: {self.target}", ""]
        for row in rows:
            first, *others = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            lines.append("  ".join((first.strip().ljust(widths[0]), *others)).rstrip())
        for outcome in self.failed(strict=True):
            lines += ["", f"{outcome.verdict}: {outcome.case} ({outcome.wire}): {outcome.title}"]
            lines += [f"  {fault}" for fault in outcome.faults]
        skipped = f"; {self.skipped} need a scripted provider (--upstream) and were left out" if self.skipped else ""
        return "\n".join([*lines, "", f"{self.score} % passed{skipped}", ""])

    def _row(self, wire: str) -> tuple[str, ...]:
        found = [outcome for outcome in self.outcomes if outcome.wire == wire]
        cells = [wire, str(len(found))]
        for name in ("accepted", "kept", "reported", "streamed"):
            values: list[bool] = [value for each in found if (value := getattr(each, name)) is not None]
            cells.append(f"{sum(values)}/{len(values)}" if values else "-")
        return (*cells, str(sum(each.verdict == "passed" for each in found)))

    def render_json(self) -> bytes:
        """Write the card as JSON, with the verdict of each case."""
        cases = [{**msgspec.to_builtins(each), "verdict": each.verdict} for each in self.outcomes]
        card = {"version": self.version, "target": self.target, "score": self.score, "skipped": self.skipped}
        return msgspec.json.format(msgspec.json.encode({**card, "cases": cases}), indent=2) + b"\n"

    def render_junit(self, *, strict: bool = False) -> str:
        """Write the outcomes as JUnit, which most systems of continuous integration show."""
        failed = self.failed(strict=strict)
        lines = [
            '<?xml version="1.0" encoding="utf-8"?>',
            f'<testsuite name="segue conformance" tests="{len(self.outcomes)}" failures="{len(failed)}">',
        ]
        for each in self.outcomes:
            head = f"  <testcase classname={quoteattr(each.wire)} name={quoteattr(each.case)}"
            if each in failed:
                text = escape("\n".join(each.faults))
                lines.append(f"{head}><failure message={quoteattr(each.title)}>{text}</failure></testcase>")
            else:
                lines.append(f"{head}/>")
        return "\n".join([*lines, "</testsuite>", ""])

    def render_badge(self) -> str:
        """Write an SVG with the score."""
        score = f"{self.score}% · v{self.version}"
        colour = next(colour for least, colour in _COLOURS if self.score >= least)
        left, right = 62, 12 + 7 * len(score)
        return _BADGE.format(
            label=f"histories: {score}",
            score=score,
            colour=colour,
            left=left,
            right=right - 3,
            text=left + 6,
            width=left + right,
        )
