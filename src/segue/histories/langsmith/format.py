"""The record of runs of LangSmith: a bulk export, or what `client.list_runs` returns, as lines or as a list.

Facts (fields of a run in langsmith-sdk, messages as `dumpd` of langchain-core 1.7.2 writes them; 2026-11-18; not run):
- One trace is one conversation. Runs of the type `llm` are requests: `inputs.messages` is a batch of one list of
  messages, `outputs.generations` a batch of one list of replies. Runs of a wrapped OpenAI client have messages of Chat,
  and `outputs.choices`.
- `dotted_order` is the order of the runs of a trace; lists of the API are newest first. `outputs` of a run that failed
  is null.
"""

from __future__ import annotations

from typing import Any, Final

from segue.histories.kit.format import Format
from segue.histories.kit.history import History, Session
from segue.histories.kit.lines import object_of, text_of
from segue.histories.kit.logged_calls import KNOWN_RECORDS, Logged, list_traces, load_rows, read_traces
from segue.histories.kit.logged_messages import messages_in, prompt_in, reply_in
from segue.histories.kit.notes import Notes
from segue.histories.kit.pieces import usage_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of

NAME: Final = "langsmith"
_REQUEST: Final = "llm"
_ABOUT: Final = frozenset(
    {
        "id", "trace_id", "parent_run_id", "parent_run_ids", "child_run_ids", "direct_child_run_ids", "dotted_order",
        "name", "run_type", "start_time", "end_time", "status", "extra", "serialized", "events", "tags", "session_id",
        "reference_example_id", "feedback_stats", "app_path", "manifest_id", "manifest_s3_id", "prompt_tokens",
        "completion_tokens", "total_tokens", "prompt_cost", "completion_cost", "total_cost", "first_token_time",
        "execution_order", "thread_id", "trace_min_start_time", "trace_max_start_time", "inputs_s3_urls",
        "outputs_s3_urls", "inputs_preview", "outputs_preview", "in_dataset", "last_queued_at", "share_token",
    }
)  # fmt: skip
"""Fields that are not part of a conversation."""


def _logged(source: Source, notes: Notes) -> list[Logged]:
    rows = load_rows(source, notes, lambda whole: whole.get("runs"))
    rows.sort(key=lambda row: text_of(row[1].get("dotted_order")) or "")
    return [_item(number, row) for number, row in rows]


def _item(number: int, row: dict[str, Any]) -> Logged:
    kind = text_of(row.get("run_type")) or "run"
    item = Logged(
        number=number,
        item={"sent" if key == "inputs" else key: value for key, value in row.items() if key not in _ABOUT},
        kind=kind,
        trace=text_of(row.get("trace_id")) or "",
        time=milliseconds_of(row.get("start_time")),
    )
    if kind != _REQUEST:
        return item
    about = object_of(object_of(row.get("extra")).get("metadata"))
    total = row.get("total_tokens")
    return item._replace(
        sent=messages_in(row.get("inputs")),
        reply=reply_in(row.get("outputs")),
        prompt=prompt_in(row.get("inputs")),
        model=text_of(about.get("ls_model_name")) or "",
        provider=text_of(about.get("ls_provider")) or "",
        usage=usage_of(row.get("prompt_tokens"), row.get("completion_tokens"), total=total),
    )


def read(source: Source, view: View) -> History:
    """Read the conversation of one trace.

    Raises:
        LoadError: no run has messages.
    """
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    return read_traces(NAME, _logged(source, notes), source, view, notes)


def list_sessions(source: Source) -> tuple[Session, ...]:
    """List the traces that have a conversation."""
    return list_traces(NAME, _logged(source, Notes()), source)


FORMAT: Final = Format(
    name=NAME,
    known_records=KNOWN_RECORDS,
    read=read,
    list=list_sessions,
    kind="export",
    samples=read_samples(__package__),
    title="runs of LangSmith",
    source="langsmith-sdk: fields of a run",
    read_on="2026-11-18",
)
