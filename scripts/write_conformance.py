"""Write the cases of the conformance suite from `conformance_cases.py`, or with `--check` list the files that differ.

A case is written for every wire that can express it and whose provider accepts it: what `encode_request` refuses or
`check` names is left out. `--list` shows which wires each case has, and why it lacks the others.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from conformance_cases import ANTHROPIC, CASES, CHAT, GOOGLE, REPLY, RESPONSES, Draft, Fields, Source, Step

from segue.conversation.context import Context, Prompt
from segue.errors import SegueError
from segue.models.catalogue import get_model
from segue.models.model import Model
from segue.protocols.api import check, encode_request
from segue.protocols.registry import get_protocol
from segue.testing.conformance.cases import FOLDER, VERSION, WireCases
from segue.testing.conformance.judging import leaves

WIRES: Final[Mapping[str, Fields]] = {
    CHAT: {
        "model": "openai/gpt-4.1",
        "provider": "openrouter",
        "path": "/v1/chat/completions",
        "also": Model("gpt-4o", "openai", CHAT),
        "headers": {"authorization": "Bearer {key}"},
        "reply_path": ["choices", 0, "message"],
    },
    RESPONSES: {
        "model": "gpt-5.4",
        "provider": "openai",
        "path": "/v1/responses",
        "headers": {"authorization": "Bearer {key}"},
        "reply_path": ["output"],
    },
    ANTHROPIC: {
        "model": "claude-opus-4-8",
        "provider": "anthropic",
        "path": "/v1/messages",
        "headers": {"anthropic-version": "2023-06-01", "x-api-key": "{key}"},
        "reply_path": ["content"],
        "reply_role": "assistant",
    },
    GOOGLE: {
        "model": "gemini-2.5-pro",
        "provider": "google",
        "path": "/v1beta/models/{model}:generateContent",
        "stream_path": "/v1beta/models/{model}:streamGenerateContent?alt=sse",
        "headers": {"x-goog-api-key": "{key}"},
        "reply_path": ["candidates", 0, "content"],
    },
}
"""The wires, with a model that each case is written for, the provider that serves it, and the endpoint.

A case that has no model of its own has to be accepted by `also` too: the provider who defined the wire.
"""


class NotExpressible(Exception):
    """A wire cannot express a case, or its provider refuses it."""


def write_wire(wire: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the file of a wire, and the reasons of the cases that it lacks."""
    row = WIRES[wire]
    cases: list[Fields] = []
    missing: dict[str, str] = {}
    for name, source in CASES.items():
        if source.wires and wire not in source.wires:
            continue
        try:
            cases.append(_write_case(name, source, wire))
        except NotExpressible as error:
            missing[name] = str(error)
    head = {key: value for key, value in row.items() if key not in ("also", "provider")}
    return {"version": VERSION, "wire": wire, **head, "cases": cases}, missing


def _write_case(name: str, source: Source, wire: str) -> Fields:
    draft = Draft(name)
    made = source.make(draft)
    steps = [Step(made)] if isinstance(made, Context) else [made] if isinstance(made, Step) else list(made)
    model = source.models.get(wire, WIRES[wire]["model"])
    written = [_write_step(step, at, wire, model, draft) for at, step in enumerate(steps)]
    arriving = [text for step in written for text in leaves(step["body"])]
    for each in draft.kept:
        if not any(each["word"] in text for text in arriving):
            raise NotExpressible(f"the body lacks {each['part']}")
    expect: Fields = {"kept": draft.kept}
    turns = [text for step in written for text in leaves(step["body"][_turns_key(wire)])]
    placed = [each["word"] for each in draft.kept if "role" in each]
    if draft.is_ordered and len(placed) > 1:
        expect["order"] = sorted(placed, key=lambda word: next(at for at, text in enumerate(turns) if word in text))
    if draft.pairs:
        expect["pairs"] = draft.pairs
    if draft.asked:
        expect["asked"] = draft.asked
    case: Fields = {"id": name, "title": source.title, "steps": written, "expect": expect}
    return case if model == WIRES[wire]["model"] else {**case, "model": model}


def _write_step(step: Step, at: int, wire: str, model: str, draft: Draft) -> Fields:
    options = (
        step.options
        if step.options.max_tokens or wire != ANTHROPIC
        else msgspec.structs.replace(step.options, max_tokens=2000)
    )
    target = get_model(f"{WIRES[wire]['provider']}/{model}")
    try:
        body = encode_request(Prompt(context=step.context, options=options, model=model), model=target)
    except SegueError as error:
        raise NotExpressible(f"{type(error).__name__}: {error}") from error
    body.pop("stream", None)
    turns_key = _turns_key(wire)
    if step.turns is not None:
        body[turns_key] = step.turns(body[turns_key])
    patch = cast("Mapping[str, Any]", step.patch.get(wire, {} if set(step.patch) & set(WIRES) else step.patch))
    for key, value in patch.items():
        body[key] = {**body.get(key, {}), **value} if isinstance(value, dict) and "$id" not in value else value
    named: Fields = {**body, "previous_response_id": "resp_0"} if "previous_response_id" in body else body
    findings = check(named, protocol=wire, model=target)
    if not findings and "also" in WIRES[wire] and model == WIRES[wire]["model"]:
        findings = check({**named, "model": "gpt-4o"}, protocol=wire, model=WIRES[wire]["also"])
    if findings:
        raise NotExpressible("; ".join(f"{each.code}: {each.message}" for each in findings[:2]))
    for key in ("model", "stream"):
        body.pop(key, None)
    body[turns_key] = _with_places(body[turns_key])
    upstream = step.upstream or {"text": f"Answer {at} to {draft.name}."}
    return {"body": body, "upstream": upstream}


def _turns_key(wire: str) -> str:
    key = get_protocol(wire).turns_key
    assert key is not None, "every wire of the suite has turns"
    return key


def _with_places(turns: Sequence[Any]) -> list[Any]:
    """Put a place for a reply where the turns of it are, and for the ids of its calls."""
    placed: list[Any] = []
    for turn in turns:
        if (step := _step_of(turn)) is not None:
            place = {"$reply": step}
            if place not in placed:
                placed.append(place)
        else:
            placed.append(_with_ids(turn))
    return placed


def _step_of(turn: Mapping[str, Any]) -> int | None:
    """Return the step whose reply a turn is; None if it is another turn."""
    if turn.get("role") in ("assistant", "model") or turn.get("type") in ("function_call", "reasoning"):
        text = json.dumps(turn)
        if REPLY in text:
            return int(text.split(REPLY, 1)[1][0])
    return None


def _with_ids(value: object) -> object:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {key: _with_ids(each) for key, each in fields.items()}
    if isinstance(value, list):
        return [_with_ids(each) for each in cast("list[Any]", value)]
    if isinstance(value, str) and value.startswith(REPLY):
        step, at = value.removeprefix(REPLY).split("-")
        return {"$call": [int(step), int(at)]}
    return value


def render(file: Mapping[str, Any]) -> str:
    """Write a file with a line for each case, so that a change of one is a line of the diff."""
    head = json.dumps({key: value for key, value in file.items() if key != "cases"}, ensure_ascii=False)
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in file["cases"])
    return f'{head[:-1]}, "cases": [\n{lines}\n]}}\n'


def write_schema() -> str:
    """Write the JSON schema of the files."""
    schema = msgspec.json.schema(WireCases)
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}, indent=2) + "\n"


def generated() -> dict[Path, str]:
    """Return every generated file with its text."""
    folder = Path(str(FOLDER))
    files = {folder / f"{wire}.json": render(write_wire(wire)[0]) for wire in WIRES}
    return {**files, folder / "schema.json": write_schema()}


def main() -> int:
    """Write the files, check them, or list the cases."""
    if "--list" in sys.argv:
        for wire in WIRES:
            file, missing = write_wire(wire)
            print(f"{wire}: {len(file['cases'])} cases")
            for name, reason in missing.items():
                print(f"  not {name}: {reason[:150]}")
        return 0
    differing = [path for path, text in generated().items() if not path.exists() or path.read_text("utf-8") != text]
    if "--check" in sys.argv:
        for path in differing:
            print(f"{path.name} differs; run scripts/write_conformance.py")
        return bool(differing)
    for path in differing:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(generated()[path], "utf-8")
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
