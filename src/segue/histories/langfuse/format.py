"""The record of traces of Langfuse: the download of a trace, or a list of observations.

Facts (fields of the public API of Langfuse, and of its table export; the object around a downloaded trace as other
readers describe it; 2026-11-18; not run):
- `observations` are next to `trace`, inside it, or alone as a list or as lines. One of the type `GENERATION` is a
  request; its `input` and `output` are what the application logged, or that as JSON text.
- Every request repeats the messages before it; several agents in one trace are several conversations.
- The table export has the names with underscores.
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

NAME: Final = "langfuse"
_REQUEST: Final = "GENERATION"
_ABOUT: Final = frozenset(
    {
        "id", "traceid", "projectid", "type", "name", "starttime", "endtime", "completionstarttime", "createdat",
        "updatedat", "metadata", "parentobservationid", "level", "statusmessage", "version", "environment", "model",
        "modelid", "internalmodelid", "providedmodelname", "modelparameters", "usage", "usagedetails",
        "providedusagedetails", "costdetails", "providedcostdetails", "totalcost", "promptid", "promptname",
        "promptversion", "tracename", "unit", "latency", "timetofirsttoken", "tags", "userid", "sessionid", "scores",
        "inputprice", "outputprice", "totalprice", "calculatedinputcost", "calculatedoutputcost", "calculatedtotalcost",
        "prompttokens", "completiontokens", "totaltokens", "inputusage", "outputusage", "totalusage", "bookmarked",
    }
)  # fmt: skip
"""Fields that are not part of a conversation, without underscores and in lower case."""


def _logged(source: Source, notes: Notes) -> list[Logged]:
    trace: dict[str, Any] = {}

    def find(whole: dict[str, Any]) -> object:
        trace.update(object_of(whole.get("trace")) or whole)
        return next((each[key] for key in ("observations", "data") for each in (whole, trace) if key in each), None)

    rows = load_rows(source, notes, find)
    return [_item(number, row, trace) for number, row in rows]


def _item(number: int, row: dict[str, Any], trace: dict[str, Any]) -> Logged:
    kind = text_of(row.get("type")) or "observation"
    usage = object_of(_field(row, "usageDetails")) or object_of(row.get("usage"))
    item = Logged(
        number=number,
        item=_content(row),
        kind=kind.lower(),
        trace=text_of(_field(row, "traceId")) or text_of(trace.get("id")) or "",
        time=milliseconds_of(_field(row, "startTime")),
        title=text_of(trace.get("name")) or text_of(_field(row, "traceName")),
    )
    if kind != _REQUEST:
        return item
    return item._replace(
        sent=messages_in(row.get("input")),
        reply=reply_in(row.get("output")),
        prompt=prompt_in(row.get("input")),
        model=text_of(row.get("model")) or text_of(_field(row, "providedModelName")) or "",
        usage=usage_of(usage.get("input"), usage.get("output"), total=usage.get("total")),
    )


def _content(row: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that can be part of a conversation; under `input` they would be the arguments of a call."""
    kept = {key: value for key, value in row.items() if key.replace("_", "").lower() not in _ABOUT}
    return {"sent" if key == "input" else key: value for key, value in kept.items()}


def _field(row: dict[str, Any], name: str) -> object:
    """Return a field by its name in the API, or by the one with underscores."""
    under = "".join(f"_{char.lower()}" if char.isupper() else char for char in name)
    return row.get(name, row.get(under))


def read(source: Source, view: View) -> History:
    """Read the conversation of one trace.

    Raises:
        LoadError: no request has messages.
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
    title="traces of Langfuse",
    reads_lines=False,
    source="Langfuse: fields of its public API",
    read_on="2026-11-18",
)
