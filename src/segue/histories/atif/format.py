"""The record of ATIF: a trajectory with an agent and steps."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from segue.histories.atif.codec import CODEC, NAME, TITLE, renumbered
from segue.histories.kit.entries import Entry
from segue.histories.kit.format import Draft
from segue.histories.kit.framework import EntryList, Framework, framework_format, from_package, give_json, list_of
from segue.histories.kit.history import WrittenFile
from segue.histories.kit.lines import object_of, text_of
from segue.histories.kit.samples import read_samples


def _open(value: object, session: str | None) -> EntryList | None:  # noqa: ARG001 - one trajectory, one conversation
    whole = object_of(value)
    steps = list_of(whole.get("steps"))
    if not steps or "source" not in steps[0]:
        return None
    rest = {key: item for key, item in whole.items() if key != "steps"}
    return EntryList(steps, rest, id=text_of(whole.get("session_id")))


def _complete(entries: list[Entry], draft: Draft) -> list[Entry]:  # noqa: ARG001
    return renumbered(entries)


def _close(entries: list[Entry], rest: Mapping[str, Any], draft: Draft) -> object:
    if rest:
        head = {key: rest[key] for key in ("schema_version", "session_id", "agent") if key in rest}
        return {**head, "steps": entries, **{key: rest[key] for key in rest if key not in head}}
    model = next((entry["model_name"] for entry in reversed(entries) if "model_name" in entry), None)
    agent = {"name": "segue", "version": "1", **({} if model is None else {"model_name": model})}
    return {"schema_version": "ATIF-v1.8", "session_id": draft.id, "agent": agent, "steps": entries}


def _plain(value: object) -> object:
    if not from_package(value, NAME):
        return value
    trajectory: Any = value
    return trajectory.to_json_dict()


def _give(files: tuple[WrittenFile, ...]) -> object:
    types: Any = import_module(NAME)
    return types.Trajectory.model_validate(give_json(files))


FRAMEWORK: Final = Framework(
    codec=CODEC, title=TITLE, open=_open, close=_close, complete=_complete, plain=_plain, file_name="trajectory.json"
)
FORMAT: Final = framework_format(
    FRAMEWORK, give=_give, samples=read_samples(__package__), source="atif 1.8.0, its own dump"
)
