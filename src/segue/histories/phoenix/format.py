"""The record of spans of Phoenix, and of other programs with the conventions of OpenInference.

Facts (semantic conventions of OpenInference; the object around the attributes as other readers describe it;
2026-11-18; not run):
- `llm.input_messages` and `llm.output_messages` are lists of messages. Their keys are nested, or flat with dots and
  numbers (`llm.input_messages.0.message.role`), or flat inside each item, as in columns of a table.
- A message has `role`, `content` or `contents`, `tool_calls` with `tool_call.function`, and `tool_call_id`. There is no
  error flag. Arguments are JSON text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from segue.histories.kit.format import Format
from segue.histories.kit.framework import items_of
from segue.histories.kit.history import History, Session
from segue.histories.kit.lines import object_of, text_of, without
from segue.histories.kit.logged_calls import KNOWN_RECORDS, Logged, list_traces, load_rows, read_traces
from segue.histories.kit.notes import Notes
from segue.histories.kit.pieces import usage_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of

NAME: Final = "phoenix"
_ABOUT: Final = frozenset(
    {
        "name", "context", "span_kind", "parent_id", "start_time", "end_time", "status_code", "status_message",
        "attributes", "events", "id", "annotations", "trace_id",
    }
)  # fmt: skip
_ATTRIBUTES: Final = frozenset(
    {"llm", "openinference", "input", "output", "metadata", "session", "user", "tag", "tool", "exception", "graph"}
)
_LLM: Final = frozenset(
    {
        "input_messages", "output_messages", "model_name", "provider", "system", "token_count", "cost", "tools",
        "invocation_parameters", "prompt_template", "prompts", "function_call", "finish_reason",
    }
)  # fmt: skip
"""Fields of a span, of its attributes and of `llm` that are not part of a conversation, or repeat it."""
_MOST: Final = 100_000
"""Messages of one span."""


def nested(value: object) -> object:
    """Return a value whose keys with dots are objects inside each other; keys that are numbers are a list."""
    if isinstance(value, list):
        return [nested(item) for item in cast("list[object]", value)]
    if not isinstance(value, Mapping):
        return value
    made: dict[str, Any] = {}
    for key, item in cast("Mapping[str, object]", value).items():
        *before, last = key.split(".")
        place = made
        for step in before:
            inner = place.setdefault(step, {})
            if not isinstance(inner, dict):
                break
            place = cast("dict[str, Any]", inner)
        else:
            known, given = place.get(last), nested(item)
            both = isinstance(known, dict) and isinstance(given, dict)
            place[last] = {**cast("dict[str, Any]", known), **cast("dict[str, Any]", given)} if both else given
            continue
        made[key] = item
    return _listed(made)


def _listed(fields: dict[str, Any]) -> object:
    inner = {
        key: _listed(cast("dict[str, Any]", item)) if isinstance(item, dict) else item for key, item in fields.items()
    }
    if inner and all(key.isdecimal() for key in inner) and len(inner) < _MOST:
        return [inner[key] for key in sorted(inner, key=int)]
    return inner


def _logged(source: Source, notes: Notes) -> list[Logged]:
    rows = load_rows(source, notes, lambda whole: whole.get("data", whole.get("spans")))
    return [_item(number, object_of(nested(row))) for number, row in rows]


def _item(number: int, row: dict[str, Any]) -> Logged:
    context, attributes = object_of(row.get("context")), object_of(row.get("attributes"))
    llm = object_of(attributes.get("llm"))
    span = object_of(object_of(attributes.get("openinference")).get("span"))
    sent, reply = (_messages(llm.get(key)) for key in ("input_messages", "output_messages"))
    usage = object_of(llm.get("token_count"))
    rest = [without(row, _ABOUT), without(attributes, _ATTRIBUTES), without(llm, _LLM)]
    shown = {"sent": llm.get("input_messages"), "received": llm.get("output_messages"), "rest": rest}
    if not sent and not reply:
        shown = {**shown, "attributes": attributes}
    return Logged(
        number=number,
        item=shown,
        kind=str(row.get("span_kind") or span.get("kind") or "span").lower(),
        trace=text_of(context.get("trace_id")) or text_of(row.get("trace_id")) or "",
        time=milliseconds_of(row.get("start_time")),
        sent=sent,
        reply=reply,
        model=text_of(llm.get("model_name")) or "",
        provider=text_of(llm.get("provider")) or "",
        usage=usage_of(usage.get("prompt"), usage.get("completion"), total=usage.get("total")),
    )


def _messages(value: object) -> list[object]:
    return [_message(object_of(object_of(item).get("message")) or object_of(item)) for item in items_of(value)]


def _message(fields: dict[str, Any]) -> dict[str, Any]:
    """Return a message of Chat: `contents` are its blocks, and a missing content is none."""
    if not fields.get("contents"):
        return fields
    return {**{key: item for key, item in fields.items() if key != "contents"}, "content": fields["contents"]}


def read(source: Source, view: View) -> History:
    """Read the conversation of one trace.

    Raises:
        LoadError: no span has messages.
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
    title="spans of Phoenix",
    source="OpenInference: semantic conventions",
    read_on="2026-11-18",
)
