"""Write the JSON schema and the fixtures of the profile *bound state*, or with `--check` list the files that differ.

`docs/bound-state.schema.json` is generated from the types in `segue.histories.kit.bound_state`. Each line of
`docs/bound-state.fixtures.jsonl` is a conversation in the stored format, the same in ATIF and in Agent Trail, and the
codes of the faults that a validator has to find in both (`bound_state_cases.py`).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from bound_state_cases import Fields, Fixture, fixtures
from write_schema import ANYTHING, write_files

from segue import dump, write_history
from segue.histories.kit.bound_state import BOUND_STATE, META, BoundState

DOCS: Final = Path(__file__).parent.parent / "docs"
SCHEMA: Final = DOCS / "bound-state.schema.json"
FIXTURES: Final = DOCS / "bound-state.fixtures.jsonl"
_SESSION: Final = "0f5a3c1e-7b2d-4c8f-9a6e-1d2c3b4a5f60"
_NOW: Final = 1763170000000


def make_schema() -> Fields:
    """Return the schema of the object."""
    (schema,), parts = msgspec.json.schema_components(
        [BoundState], schema_hook=lambda _: ANYTHING, ref_template="#/$defs/{name}"
    )
    about = "What binds a message to model, account and prefix, next to a step of ATIF or an event of Agent Trail."
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Bound state, version 1"}
    return {**head, "description": about, **schema, "$defs": dict(sorted(parts.items()))}


def make_line(fixture: Fixture) -> Fields:
    """Return one fixture."""
    files = {
        name: [
            json.loads(line)
            for line in write_history(fixture.context, format=name, session_id=_SESSION, now=_NOW)
            .files[0]
            .data.splitlines()
        ]
        for name in ("atif", "agent-trail")
    }
    for lines in files.values():
        if fixture.plant is not None:
            fixture.plant([state for state in _states(lines) if state.get("model") is not None])
    made = {"atif": files["atif"][0], "agent_trail": files["agent-trail"]}
    if fixture.words is not None:
        made = json.loads(json.dumps(made, ensure_ascii=False).replace(*fixture.words))
    conversation = json.loads(dump(fixture.context))
    return {"name": fixture.name, "faults": sorted(fixture.faults), "conversation": conversation, **made}


def _states(value: object) -> list[Fields]:
    """Return the objects of the profile in a file, in order."""
    if isinstance(value, list):
        return [state for item in cast("list[object]", value) for state in _states(item)]
    if not isinstance(value, dict):
        return []
    fields = cast("dict[str, Any]", value)
    own = [fields[key] for key in (BOUND_STATE, META) if key in fields]
    return [*own, *(state for item in fields.values() for state in _states(item))]


def main() -> int:
    """Update the files; with `--check` only list those that differ."""
    lines = [json.dumps(make_line(each), ensure_ascii=False, separators=(",", ":")) for each in fixtures()]
    return write_files(
        {
            SCHEMA: json.dumps(make_schema(), indent=2, ensure_ascii=False) + "\n",
            FIXTURES: "".join(f"{line}\n" for line in lines),
        }
    )


if __name__ == "__main__":
    sys.exit(main())
