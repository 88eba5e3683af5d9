"""The report of a corpus as one HTML page without scripts or other files."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final

from segue.cli.wording import in_program_words
from segue.corpus.jobs import JobDescription
from segue.corpus.summary import ChangeCount, ChangeSample, Summary
from segue.projection.report import SENTENCES, Loss, describe_loss

_SEVERITY: Final = (Loss.CONTENT, Loss.OPAQUE, Loss.NONE)
_STYLE: Final = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #1a1d24;
  background: #fff; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid #d8dce3; vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
.content { color: #a3161a; font-weight: 600; } .opaque { color: #7a4a00; } .none { color: #1d6b35; }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; }
details { margin: .3rem 0; } summary { cursor: pointer; }
@media (prefers-color-scheme: dark) {
  body { color: #e6e8ec; background: #16181d; } th, td { border-color: #3a3f4a; }
  .content { color: #ff8a8a; } .opaque { color: #f0b95a; } .none { color: #7fd39a; }
}
"""


def render_page(job: JobDescription, total: Summary, files: int) -> str:
    """Write the page."""
    title = f"Conversion for {job.target}"
    counts: list[tuple[str, str]] = [
        ("files", f"{files:,}"),
        ("lines", f"{total.lines:,}"),
        ("conversations", f"{total.conversations:,}"),
        ("messages", f"{total.messages:,}"),
        ("bad lines", f"{total.bad:,}"),
        ("blank lines", f"{total.blank:,}"),
        ("read", f"{total.bytes_read / 1e6:,.1f} MB"),
        ("written", f"{total.bytes_written / 1e6:,.1f} MB"),
        ("estimated input", f"{total.tokens:,} tokens"),
    ]
    if total.cost is not None:
        counts += [("at list price", f"${total.cost:,.2f}"), ("as a batch", f"${total.batch_cost or 0:,.2f}")]
    if total.filled_nulls:
        counts.append(("rows with nulls in tool arguments", f"{total.filled_nulls:,}"))
    parts = [
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>',
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>',
        f"<h1>{escape(title)}</h1>",
        f"<p>{escape(job.purpose)}, protocol {escape(job.protocol)}, segue {escape(job.version)}</p>",
        _table(("", ""), counts),
        "<h2>Changes</h2>",
        _changes(total) if total.changes else "<p>No changes.</p>",
    ]
    if total.errors:
        parts += ["<h2>Bad lines</h2>", _table(("error", "lines"), [(k, f"{v:,}") for k, v in total.errors.items()])]
    if total.usage:
        rows = [
            (name, f"{each.replies:,}", f"{each.input + each.cache_read + each.cache_write:,}", f"{each.output:,}")
            for name, each in total.usage.items()
        ]
        parts += ["<h2>Stored replies</h2>", _table(("model", "replies", "input tokens", "output tokens"), rows)]
    if total.drift:
        rows = [(name, f"{times:,}") for name, times in total.drift.items()]
        parts += ["<h2>New to this version</h2>", _table(("what replies have", "replies"), rows)]
    return "\n".join([*parts, "</body></html>"])


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    head = "".join(f"<th{_number(at)}>{escape(name)}</th>" for at, name in enumerate(heads)) if any(heads) else ""
    body = "".join(
        "<tr>" + "".join(f"<td{_number(at)}>{escape(cell)}</td>" for at, cell in enumerate(row)) + "</tr>"
        for row in rows
    )
    return f"<table>{f'<tr>{head}</tr>' if head else ''}{body}</table>"


def _number(column: int) -> str:
    return ' class="number"' if column else ""


def _changes(total: Summary) -> str:
    ordered = sorted(total.changes.values(), key=lambda each: (_SEVERITY.index(each.loss), -each.times, each.code))
    rows = "".join(map(_change, ordered))
    return (
        '<table><tr><th class="number">times</th><th class="number">conversations</th><th>dropped</th><th>change</th>'
        f"<th>meaning</th></tr>{rows}</table>"
    )


def _change(count: ChangeCount) -> str:
    samples = "".join(map(_sample, count.samples))
    sentence = in_program_words(SENTENCES[count.code], converts=True)
    return (
        f'<tr><td class="number">{count.times:,}</td><td class="number">{count.conversations:,}</td>'
        f'<td class="{count.loss.value}">{escape(describe_loss(count.code, count.loss))}</td>'
        f"<td><code>{count.code.value}</code></td>"
        f"<td>{escape(sentence)}<details><summary>samples</summary>{samples}</details></td></tr>"
    )


def _sample(sample: ChangeSample) -> str:
    detail = f" ({escape(sample.detail)})" if sample.detail else ""
    before = f"<br>before <code>{escape(sample.before)}</code>" if sample.before else ""
    after = f"<br>after <code>{escape(sample.after)}</code>" if sample.after else ""
    return f"<p><code>{escape(sample.file)}:{sample.line} {escape(sample.path)}</code>{detail}{before}{after}</p>"
