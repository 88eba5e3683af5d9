"""The record of Semantic Kernel: `ChatHistory.serialize()`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from segue.histories.kit.entries import Entry
from segue.histories.kit.format import Draft
from segue.histories.kit.framework import Framework, dumped_by, framework_format, list_opener
from segue.histories.kit.history import WrittenFile
from segue.histories.kit.lines import object_of
from segue.histories.kit.samples import read_samples
from segue.histories.semantic_kernel.codec import CODEC, TITLE


def _give(files: tuple[WrittenFile, ...]) -> object:
    contents: Any = import_module("semantic_kernel.contents")
    return contents.ChatHistory.restore_chat_history(files[0].data.decode())


def _close(entries: list[Entry], rest: Mapping[str, Any], draft: Draft) -> object:  # noqa: ARG001
    return {"messages": entries, **object_of(rest.get("around"))}


FRAMEWORK: Final = Framework(
    codec=CODEC,
    title=TITLE,
    open=list_opener(lambda entry: isinstance(entry.get("items"), list)),
    close=_close,
    plain=dumped_by("model_dump_json", "semantic_kernel", alone=True, exclude_none=True),
)
FORMAT: Final = framework_format(
    FRAMEWORK,
    give=_give,
    samples=read_samples(__package__),
    source="semantic-kernel 1.45.0, run against a scripted model",
    read_on="2026-11-17",
)
