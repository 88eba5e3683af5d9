"""The record of MCP sampling: the parameters of `sampling/createMessage`, its result, or the messages alone."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, cast

from segue.histories.kit.chat_messages import read_tools, write_functions
from segue.histories.kit.entries import Entry
from segue.histories.kit.format import Draft
from segue.histories.kit.framework import (
    EntryList,
    Framework,
    dumped_by,
    framework_format,
    give_json,
    items_of,
    list_of,
    prompt_text,
)
from segue.histories.kit.history import WrittenFile
from segue.histories.kit.lines import object_of, text_of
from segue.histories.kit.samples import read_samples
from segue.histories.mcp_sampling.codec import BLOCKS, CODEC, TITLE

_FORM: Final = "form"
_PROMPT: Final = "systemPrompt"
_PACKAGES: Final = ("mcp", "mcp_types")


def _is_message(entry: Mapping[str, Any]) -> bool:
    blocks = _blocks(entry)
    known = all(text_of(object_of(block).get("type")) in BLOCKS for block in blocks)
    return text_of(entry.get("role")) in {"user", "assistant"} and bool(blocks) and known


def _open(value: object, session: str | None) -> EntryList | None:  # noqa: ARG001 - one request, one conversation
    whole = object_of(value)
    whole = object_of(whole.get("params")) or whole
    if _is_message(whole):
        return EntryList([whole], {_FORM: "message"})
    entries = list_of(whole.get("messages", value))
    if not entries or not any(_is_message(entry) for entry in entries):
        return None
    if not whole:
        return EntryList(entries, {_FORM: "messages"})
    rest = {key: item for key, item in whole.items() if key not in {"messages", _PROMPT, "tools"}}
    tools = read_tools(whole.get("tools"))
    rest |= {"tools": whole["tools"]} if "tools" in whole else {}
    return EntryList(entries, rest, system=text_of(whole.get(_PROMPT)), tools=tools)


def _close(entries: list[Entry], rest: Mapping[str, Any], draft: Draft) -> object:
    if rest.get(_FORM) == "message" and len(entries) == 1:
        return entries[0]
    if rest.get(_FORM) is not None:
        return entries
    context = draft.history.context
    made: dict[str, Any] = {"messages": entries, "maxTokens": draft.model.max_tokens or 1000, **rest}
    if prompt := prompt_text(context):
        made[_PROMPT] = prompt
    if context.tools and read_tools(rest.get("tools")) != context.tools:
        made["tools"] = [_tool(function) for function in write_functions(context.tools)]
    return made


def _tool(function: Mapping[str, Any]) -> Entry:
    schema = {"type": "object", **object_of(function.get("parameters"))}
    described = {"description": function["description"]} if function.get("description") else {}
    return {"name": function["name"], **described, "inputSchema": schema}


def _give(files: tuple[WrittenFile, ...]) -> object:
    types: Any = import_module("mcp.types")
    value = give_json(files)
    if entries := list_of(value):
        return [types.SamplingMessage.model_validate(entry) for entry in entries]
    kind = "CreateMessageRequestParams" if "messages" in object_of(value) else "SamplingMessage"
    return getattr(types, kind).model_validate(value)


def _blocks(entry: Mapping[str, Any]) -> list[object]:
    content: object = entry.get("content")
    return [cast("object", content)] if isinstance(content, dict) else items_of(content)


FRAMEWORK: Final = Framework(
    codec=CODEC,
    title=TITLE,
    open=_open,
    close=_close,
    plain=dumped_by("model_dump", *_PACKAGES, alone=True, mode="json", by_alias=True, exclude_none=True),
    separate_system=True,
    stores_tools=True,
    file_name="request.json",
)
FORMAT: Final = framework_format(
    FRAMEWORK, give=_give, samples=read_samples(__package__), source="mcp 2.3.0: types, and its own dump"
)
