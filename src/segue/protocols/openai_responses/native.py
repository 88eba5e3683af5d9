"""Items that only this protocol has: the turn they belong to, and their fallback for other protocols.

Facts this file rests on:
- Tools that the provider runs (searches, code, images, MCP, programs) and calls of tools on the client's machine
  (shell, patches, the computer) are items of the model's turn; the client's outputs for the latter are own items.
                                                             (openai 3.49.0: ResponseInputItemParam, ResponseOutputItem)
- `tool_search_output` and `shell_call_output` come from either side: the one has `execution`, of the other only the
  provider's have an `id`.                                               (openai 3.49.0; recorded traffic, 2026-11)
- Tools and settings that change in mid-conversation are items of the developer.                       (openai 3.49.0)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias, cast

from segue.conversation.arguments import encode_arguments
from segue.conversation.content import FallbackContent, ImageContent, NativeContent, TextContent
from segue.protocols.kit.json_values import Block, kind_of, object_of
from segue.protocols.kit.reading import split_data_url, standard_base64
from segue.protocols.kit.replay import TOOL_RESULT, Pair, Replay
from segue.protocols.openai_responses.rules import PROTOCOL
from segue.protocols.openai_responses.server_results import describe_code, describe_file_search, describe_search

Side: TypeAlias = Literal["assistant", "user", "system"]

CLIENT_ITEMS: Final[Mapping[str, Side]] = {
    "computer_call_output": "user",
    "local_shell_call_output": "user",
    "shell_call_output": "user",
    "apply_patch_call_output": "user",
    "tool_search_output": "user",
    "mcp_approval_response": "user",
    "item_reference": "user",
    "compaction_trigger": "user",
    "function_call_output": "user",
    "custom_tool_call_output": "user",
    "additional_tools": "system",
    "configuration_update": "system",
}
"""Items that the client sends; every other type belongs to the model."""


def side_of(item: Block) -> Side:
    """Give the role whose turn an item belongs to; an unknown type belongs to the model."""
    kind = item.get("type")
    if kind is None or kind == "message":
        role = item.get("role")
        if role == "assistant":
            return "assistant"
        return "system" if role in ("system", "developer") else "user"
    if kind == "tool_search_output":
        return "assistant" if item.get("execution") == "server" else "user"
    if kind == "shell_call_output":
        return "assistant" if "id" in item else "user"
    return CLIENT_ITEMS.get(str(kind), "assistant")


ID_PREFIXES: Final[Mapping[str, str]] = {"reasoning": "rs", "message": "msg", "function_call": "fc"}
"""How the ids of OpenAI's items begin: "Expected an ID that begins with 'rs'." (vscode #316536, eca #465)"""
LONGEST_ID: Final = 64
""""string too long. Expected a string with maximum length 64" (opencode #44587)"""


def is_item_id(item_id: object, kind: str) -> bool:
    """Whether OpenAI accepts the id of an item of the model; one without an id is accepted."""
    prefix = ID_PREFIXES.get(kind)
    if prefix is None or not isinstance(item_id, str):
        return True
    return item_id.startswith(prefix) and len(item_id) <= LONGEST_ID


def is_item(block: Block) -> bool:
    """Whether a native block of a user or system turn is an item of its own, and not a part of a message."""
    kind = block.get("type")
    return isinstance(kind, str) and (kind in CLIENT_ITEMS or (kind == "message" and "role" in block))


def native_item(item: Block) -> NativeContent:
    """Keep an item unchanged, with its fallback."""
    reader = _READERS.get(str(item.get("type")))
    fallback = reader(item) if reader is not None else ()
    return NativeContent(protocol=PROTOCOL, block=item, fallback=fallback)


# -- fallbacks ---------------------------------------------------------------------------------------------------------


def _lines(*lines: str) -> tuple[FallbackContent, ...]:
    text = "\n".join(line for line in lines if line)
    return (TextContent(text=text),) if text else ()


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _mappings(value: object) -> list[Block]:
    if not isinstance(value, list):
        return []
    return [cast("Block", entry) for entry in cast("list[object]", value) if isinstance(entry, Mapping)]


def _json(value: object) -> str:
    return encode_arguments(cast("Block", value)) if isinstance(value, Mapping) and value else ""


def _code(item: Block) -> tuple[FallbackContent, ...]:
    images = (_image_at(url) for output in _mappings(item.get("outputs")) if (url := _text(output.get("url"))))
    return (*_lines(describe_code(item)), *images)


def _image_at(url: str) -> ImageContent:
    split = split_data_url(url)
    return ImageContent(url=url) if split is None else ImageContent(data=split[1], mime_type=split[0] or "image/png")


def _image(item: Block) -> tuple[FallbackContent, ...]:
    result = item.get("result")
    if not isinstance(result, str) or not result:
        return ()
    if result.startswith(("data:", "http://", "https://")):
        return (_image_at(result),)
    mime = f"image/{_text(item.get('output_format')) or 'png'}"
    return (ImageContent(data=standard_base64(result), mime_type=mime),)


def _mcp_call(item: Block) -> tuple[FallbackContent, ...]:
    error = item.get("error")
    output = _text(item.get("output")) or _text(error) or _json(error)
    head = f"[{_text(item.get('server_label'))}: {_text(item.get('name'))} {_text(item.get('arguments'))}]"
    return _lines(head, output)


def _approval_request(item: Block) -> tuple[FallbackContent, ...]:
    return _lines(f"[asked to approve {_text(item.get('name'))} {_text(item.get('arguments'))}]")


def _approval(item: Block) -> tuple[FallbackContent, ...]:
    answer = "approved" if item.get("approve") is True else "not approved"
    return _lines(f"[{answer}]", _text(item.get("reason")))


def _action(item: Block) -> tuple[FallbackContent, ...]:
    """Read a call of a tool on the client's machine."""
    action = _json(item.get("action")) or _json(item.get("operation"))
    return _lines(f"[{_text(item.get('type')).removesuffix('_call')}: {action}]") if action else ()


def _output(item: Block) -> tuple[FallbackContent, ...]:
    """Read the output of the client's machine: a text, an image, or a list of both streams of each command."""
    output = item.get("output")
    if isinstance(output, str):
        return _lines(output)
    image_url = _text(object_of(output).get("image_url"))
    if image_url:
        return (_image_at(image_url),)
    return _lines(*(_text(entry.get(key)) for entry in _mappings(output) for key in ("stdout", "stderr")))


def _program(item: Block) -> tuple[FallbackContent, ...]:
    code = _text(item.get("code"))
    return _lines(f"[program]\n{code}") if code else ()


def _program_output(item: Block) -> tuple[FallbackContent, ...]:
    return _lines(_text(item.get("result")) or _text(item.get("output")))


def _added_tools(item: Block) -> tuple[FallbackContent, ...]:
    names = [name for tool in _mappings(item.get("tools")) if (name := _text(tool.get("name")))]
    return _lines(f"[tools from here on: {', '.join(names)}]") if names else ()


def _message(item: Block) -> tuple[FallbackContent, ...]:
    content = item.get("content")
    if isinstance(content, str):
        return _lines(content)
    return _lines(*(_text(part.get("text")) or _text(part.get("refusal")) for part in _mappings(content)))


_READERS: Final[Mapping[str, Callable[[Block], tuple[FallbackContent, ...]]]] = {
    "message": _message,
    "web_search_call": lambda item: _lines(describe_search(item)),
    "file_search_call": lambda item: _lines(describe_file_search(item)),
    "code_interpreter_call": _code,
    "image_generation_call": _image,
    "mcp_call": _mcp_call,
    "mcp_approval_request": _approval_request,
    "mcp_approval_response": _approval,
    "computer_call": _action,
    "computer_call_output": _output,
    "local_shell_call": _action,
    "local_shell_call_output": _output,
    "shell_call": _action,
    "shell_call_output": _output,
    "apply_patch_call": _action,
    "apply_patch_call_output": _output,
    "function_call_output": _output,
    "custom_tool_call_output": _output,
    "program": _program,
    "program_output": _program_output,
    "additional_tools": _added_tools,
}
"""Other items have no fallback: references, compacted history, lists of tools, settings."""


# -- pairs -------------------------------------------------------------------------------------------------------------

_CALL_ID: Final = ("call_id",)


_HOSTED_SEARCH: Final = "hosted_tool_search"


def _read(item: Block) -> tuple[str, Block]:
    kind = kind_of(item)
    if kind in ("tool_search_call", "tool_search_output") and item.get("execution") == "server":
        return _HOSTED_SEARCH, item
    return TOOL_RESULT if kind == "function_call_output" else kind, item


REPLAY: Final = Replay(
    read=_read,
    pairs=(
        # "No tool output found for local shell call .." (openai-agents-python #1855, 2025-10-04); openai 3.49.0 calls
        # the key of the output `id`, the server wants `call_id`
        Pair(
            call="local_shell_call",
            results=("local_shell_call_output",),
            call_id="call_id",
            result_id=("call_id", "id"),
        ),
        # ".. for shell call .." (agent-framework #8663)
        Pair(call="shell_call", results=("shell_call_output",), call_id="call_id", result_id=_CALL_ID),
        # ".. for apply patch call ..", ".. for computer call .." (quoted in gateways and clients, read 2026-11-15)
        Pair(call="apply_patch_call", results=("apply_patch_call_output",), call_id="call_id", result_id=_CALL_ID),
        Pair(call="computer_call", results=("computer_call_output",), call_id="call_id", result_id=_CALL_ID),
        # Both halves were refused (two clients, 2026-11). The output of a function may answer it (recorded, 2026-11).
        Pair(
            call="tool_search_call",
            results=("tool_search_output", TOOL_RESULT),
            call_id="call_id",
            result_id=_CALL_ID,
            without_id=True,
        ),
        # No refusal of a request without a response is known.                                             (2026-11-15)
        Pair(
            call="mcp_approval_request",
            results=("mcp_approval_response",),
            call_id="id",
            result_id=("approval_request_id",),
            call_alone=True,
        ),
        # A program waits while the outputs of the calls that it made return. (OpenAI documentation; openai 3.49.0)
        Pair(call="program", results=("program_output",), call_id="call_id", result_id=_CALL_ID, scope="run"),
    ),
    whole=frozenset(
        {
            _HOSTED_SEARCH,  # a call without its output was accepted (recorded traffic, 2026-11)
            "web_search_call",
            "file_search_call",
            "code_interpreter_call",
            "image_generation_call",
            "mcp_call",
            "mcp_list_tools",
            "compaction",
            "item_reference",
        }
    ),
    malformed=frozenset({"function_call", "custom_tool_call", "custom_tool_call_output", TOOL_RESULT}),
    # recorded traffic, 2026-11
    forms=frozenset({"@turn", "@content", "@item", "logprobs:absent", "message.type:absent"}),
    reference=("caller", "caller_id"),  # openai 3.49.0: of calls that a program made, and of their outputs
    stored=frozenset({"previous_response_id", "conversation", "prompt"}),
)
"""Calls that are no function calls, and their outputs."""
