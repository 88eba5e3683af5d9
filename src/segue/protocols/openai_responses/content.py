"""Parts of input messages and tool outputs: text, images and files.

Results of server tools as text that other models can read: what was done, then what it gave.

Items that only this protocol has: the turn they belong to, and their fallback for other protocols.

Pages that a reply of the Responses protocol cites.

Facts:
- `input_text`, `input_image` (`image_url` or `file_id`, with `detail`) and `input_file` (`file_data`, `file_url` or
  `file_id`) are the parts of a message and of an output; `image_url` and `file_data` take data URLs.
                                                                            (openai 3.49.0; read 2026-11-15)
- The types of the official client require `detail`; the server does not.     (openai 3.49.0; recorded traffic, 2026-11)
- `file_data` without a `filename` is refused.                                (OpenAI documentation: file inputs)
- A part of input may end with a cache breakpoint, `{"mode": "explicit"}`, whose `ttl` is "30m" or "12h".
                                                                            (openai 3.49.0; read 2026-11-16)
- A single text may be a plain string, and usually is one.                               (recorded traffic, 2026-11)
- A search has an `action`: a query with the sources that were asked for, an opened page, or a text that was looked for
  in a page. It has no titles and no contents; the text after it cites pages in annotations (`sources.py`).
                                                                                   (openai 3.49.0, read 2026-11-15)
- xAI writes the arguments of the call instead of an action.                            (recorded traffic, 2026-11)
- Code has its outputs only if they were asked for (`include`).                         (recorded traffic, 2026-11)
- Tools that the provider runs (searches, code, images, MCP, programs) and calls of tools on the client's machine
  (shell, patches, the computer) are items of the model's turn; the client's outputs for the latter are own items.
                                                             (openai 3.49.0: ResponseInputItemParam, ResponseOutputItem)
- `tool_search_output` and `shell_call_output` come from either side: the one has `execution`, of the other only the
  provider's have an `id`.                                               (openai 3.49.0; recorded traffic, 2026-11)
- Tools and settings that change in mid-conversation are items of the developer.                       (openai 3.49.0)
- A text has `annotations`; a `url_citation` has `url` and `title`, at xAI only `url`.
                                              (openai 3.49.0; recorded traffic, 2026-11; read 2026-11-15)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal, TypeAlias, cast

from msgspec.structs import replace

from segue.conversation.arguments import encode_arguments
from segue.conversation.content import (
    CacheMark,
    Extra,
    FallbackContent,
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
    UserContent,
)
from segue.conversation.messages import AssistantMessage
from segue.errors import EncodeError, Path
from segue.protocols.families.citations import read_span
from segue.protocols.kit.json_values import Block, Wire, kind_of, list_of, object_of, same
from segue.protocols.kit.option_table import wire_ttl
from segue.protocols.kit.reading import data_url, native_block, split_data_url, standard_base64, text_of
from segue.protocols.kit.replay import TOOL_RESULT, Pair, Replay
from segue.protocols.kit.sources import CitedPage, labelled, objects_in, write_sources
from segue.protocols.kit.verbatim import data_of, keep, restore
from segue.protocols.openai_responses.rules import PROTOCOL


def describe_search(item: Block) -> str:
    """Write a web search: its query or the page it opened, and the pages that it found."""
    action = object_of(item.get("action"))
    found = [*objects_in(action.get("sources")), *objects_in(item.get("results"))]
    pages = write_sources(
        CitedPage(url, text_of(page.get("title")) or "") for page in found if (url := text_of(page.get("url")))
    )
    url, pattern = text_of(action.get("url")), text_of(action.get("pattern"))
    if url:
        return labelled(f"web page searched for {pattern}: {url}" if pattern else f"web page opened: {url}", pages)
    query = text_of(action.get("query")) or ", ".join(_texts(action.get("queries")))
    query = query or text_of(item.get("arguments")) or ""
    if not query and not pages:
        return ""
    return labelled(f"web search: {query}" if query else "web search results", pages)


def describe_file_search(item: Block) -> str:
    """Write a search in files: its queries, and what it found in which file."""
    query = ", ".join(_texts(item.get("queries")))
    found = [
        f"- {text_of(result.get('filename')) or text_of(result.get('file_id')) or 'file'}: {text}"
        for result in objects_in(item.get("results"))
        if (text := text_of(result.get("text")))
    ]
    if not query and not found:
        return ""
    return labelled(f"file search: {query}" if query else "file search results", found)


def describe_code(item: Block) -> str:
    """Write code that was run, and what it printed."""
    code = text_of(item.get("code")) or ""
    logs = [logs for output in objects_in(item.get("outputs")) if (logs := text_of(output.get("logs")))]
    parts = [labelled("code run", [code]) if code else "", labelled("output of the code", logs) if logs else ""]
    return "\n".join(part for part in parts if part)


def _texts(value: object) -> Iterable[str]:
    return [entry for entry in list_of(value) if isinstance(entry, str)]


Side: TypeAlias = Literal["assistant", "user", "system"]

_ACTIONS: Final = ("computer_call", "local_shell_call", "shell_call", "apply_patch_call")
_OUTPUTS: Final = (*(f"{name}_output" for name in _ACTIONS), "function_call_output", "custom_tool_call_output")
_OF_USER: Final = ("tool_search_output", "mcp_approval_response", "item_reference", "compaction_trigger", *_OUTPUTS)
CLIENT_ITEMS: Final[Mapping[str, Side]] = {
    **dict[str, Side].fromkeys(_OF_USER, "user"),
    **dict[str, Side].fromkeys(("additional_tools", "configuration_update"), "system"),
}
"""Items that the client sends; every other type belongs to the model."""


def side_of(item: Block) -> Side:
    """Return the role whose turn an item belongs to; an unknown type belongs to the model."""
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
    """Whether a native block of a user or system turn is its own item, and not a part of a message."""
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


def _json(value: object) -> str:
    return encode_arguments(cast("Block", value)) if isinstance(value, Mapping) and value else ""


def _code(item: Block) -> tuple[FallbackContent, ...]:
    images = (_image_at(url) for output in objects_in(item.get("outputs")) if (url := _text(output.get("url"))))
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
    return _lines(*(_text(entry.get(key)) for entry in objects_in(output) for key in ("stdout", "stderr")))


def _program(item: Block) -> tuple[FallbackContent, ...]:
    code = _text(item.get("code"))
    return _lines(f"[program]\n{code}") if code else ()


def _program_output(item: Block) -> tuple[FallbackContent, ...]:
    return _lines(_text(item.get("result")) or _text(item.get("output")))


def _added_tools(item: Block) -> tuple[FallbackContent, ...]:
    names = [name for tool in objects_in(item.get("tools")) if (name := _text(tool.get("name")))]
    return _lines(f"[tools from here on: {', '.join(names)}]") if names else ()


def _message(item: Block) -> tuple[FallbackContent, ...]:
    content = item.get("content")
    if isinstance(content, str):
        return _lines(content)
    return _lines(*(_text(part.get("text")) or _text(part.get("refusal")) for part in objects_in(content)))


_READERS: Final[Mapping[str, Callable[[Block], tuple[FallbackContent, ...]]]] = {
    "message": _message,
    "web_search_call": lambda item: _lines(describe_search(item)),
    "file_search_call": lambda item: _lines(describe_file_search(item)),
    "code_interpreter_call": _code,
    "image_generation_call": _image,
    "mcp_call": _mcp_call,
    "mcp_approval_request": _approval_request,
    "mcp_approval_response": _approval,
    "program": _program,
    "program_output": _program_output,
    "additional_tools": _added_tools,
    **dict.fromkeys(_ACTIONS, _action),
    **dict.fromkeys(_OUTPUTS, _output),
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
"""Calls that are not function calls, and their outputs."""


_MARK: Final = "prompt_cache_breakpoint"
_TEXT_TYPES: Final = ("input_text", "text", "output_text")
_AUDIO_TYPES: Final[Mapping[str, str]] = {"wav": "audio/wav", "mp3": "audio/mpeg"}
_FILE_EXTENSIONS: Final[Mapping[str, str]] = {
    "application/pdf": ".pdf",
    "application/json": ".json",
    "text/plain": ".txt",
    "text/markdown": ".md",
    "text/csv": ".csv",
    "text/html": ".html",
}


def drop_replaced(default: Wire, received: Block, *keys: str) -> None:
    """Remove values that segue adds by itself where another value was received: `keep` then takes that one for data."""
    for key in keys:
        value = received.get(key)
        if value is not None and key in default and not same(default[key], value):
            del default[key]


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_content(content: object) -> tuple[UserContent, ...] | None:
    """Read the content of a message or an output; None when it is neither a string nor a list of parts."""
    if isinstance(content, str):
        return (TextContent(text=content),) if content else ()
    if not isinstance(content, list):
        return None
    parts = cast("list[object]", content)
    for part in parts:
        if type(part) is not dict and not isinstance(part, Mapping):
            return None
    return tuple([decode_part(part) for part in cast("list[Block]", parts)])


def default_content(content: Sequence[UserContent], received: object) -> object:
    """Return the content as segue writes it, made of the received parts."""
    return encode_content(content, ()) if _is_string(content) else received


def decode_part(part: Block) -> UserContent:
    """Read one part; an unknown one is kept as `NativeContent`."""
    kind, text = part.get("type"), part.get("text")
    if kind == "input_text" and len(part) == 2 and isinstance(text, str):
        return TextContent(text=text)
    content: UserContent | None = None
    if kind in _TEXT_TYPES and isinstance(text, str):
        content = TextContent(text=text)
    elif kind == "input_image":
        content = _decode_image(part)
    elif kind == "input_file":
        content = _decode_file(part)
    if content is None:
        return NativeContent(protocol=PROTOCOL, block=dict(part), fallback=_part_fallback(part))
    if kind == "input_image" and _has_exact_url(content, part):
        if len(part) == 3 and part.get("detail") == "auto":
            return content
        if len(part) == 2:
            return replace(content, extra=_NO_DETAIL)
    content = replace(content, cache_mark=_decode_mark(part.get(_MARK)))
    extra = _keep_part(part, content)
    return content if extra is None else replace(content, extra=extra)


_NO_DETAIL: Final = keep(PROTOCOL, {}, {"detail": "auto"})


def _has_exact_url(content: UserContent, part: Block) -> bool:
    """Whether the URL of an image part is written as it was received."""
    return content.kind == "image" and (content.data is None or str(part["image_url"]).endswith(content.data))


def _decode_mark(given: object) -> CacheMark | None:
    """Read a breakpoint; None if there is none, or one of an unknown mode, which is data."""
    wire = object_of(given)
    if wire.get("mode") != "explicit":
        return None
    ttl = wire.get("ttl")
    plain = CacheMark(ttl=ttl if isinstance(ttl, str) else None)
    return replace(plain, extra=keep(PROTOCOL, wire, encode_mark(plain)))


def encode_mark(mark: CacheMark) -> Wire:
    """Write a breakpoint; without a lifetime it has that of the request, 30 minutes by default."""
    ttl = wire_ttl(mark.ttl, "30m", "12h")
    wire: Wire = {"mode": "explicit"} if ttl is None else {"mode": "explicit", "ttl": ttl}
    return wire if mark.extra is None else restore(wire, mark.extra, PROTOCOL)


def _keep_part(part: Block, content: UserContent) -> Extra | None:
    default = encode_part(content, ())
    drop_replaced(default, part, "detail")
    return keep(PROTOCOL, part, default)


def _decode_image(part: Block) -> UserContent | None:
    url, file_id = part.get("image_url"), part.get("file_id")
    if isinstance(url, str) and file_id is None:
        split = split_data_url(url)
        if split is None:
            return ImageContent(url=url)
        mime, data = split
        return None if mime is None else ImageContent(data=standard_base64(data), mime_type=mime)
    if isinstance(file_id, str) and url is None:
        return FileContent(file_id=file_id, mime_type="image/*")
    return None


def _decode_file(part: Block) -> UserContent | None:
    given = [key for key in ("file_data", "file_url", "file_id") if part.get(key) is not None]
    source = part.get(given[0]) if len(given) == 1 else None
    name = part.get("filename")
    if not isinstance(source, str) or not (name is None or isinstance(name, str)):
        return None
    if given[0] == "file_url":
        return FileContent(url=source, name=name)
    if given[0] == "file_id":
        return FileContent(file_id=source, name=name)
    mime, data = split_data_url(source) or (None, "")
    if mime is None:
        return None
    name = None if name == _default_name(mime) else name
    return FileContent(data=standard_base64(data), mime_type=mime, name=name)


def _part_fallback(part: Block) -> tuple[FallbackContent, ...]:
    audio = object_of(part.get("input_audio"))
    data, mime = audio.get("data"), _AUDIO_TYPES.get(str(audio.get("format")))
    if isinstance(data, str) and mime is not None:
        return (FileContent(data=standard_base64(data), mime_type=mime),)
    text = part.get("text")
    return (TextContent(text=text),) if isinstance(text, str) and text else ()


# -- writing -----------------------------------------------------------------------------------------------------------


def encode_content(content: Sequence[UserContent], path: Path) -> str | list[Wire]:
    """Write the content of a message or an output: a string where it has no more than one text, else a list."""
    if _is_string(content):
        return content[0].text if content and content[0].kind == "text" else ""
    return encode_parts(content, path)


def encode_parts(content: Sequence[UserContent], path: Path) -> list[Wire]:
    """Write content as a list of parts."""
    return [encode_part(piece, (*path, index)) for index, piece in enumerate(content)]


def _is_string(content: Sequence[UserContent]) -> bool:
    if len(content) > 1:
        return False
    only = content[0] if content else None
    if only is None:
        return True
    if only.cache_mark is not None:
        return False
    return only.kind == "text" and bool(only.text) and not (only.extra is not None and only.extra.get(PROTOCOL))


def encode_part(content: UserContent, path: Path) -> Wire:
    """Write one part.

    Raises:
        EncodeError: media without a source, or a block of another protocol.
    """
    match content.kind:
        case "text":
            part: Wire = {"type": "input_text", "text": content.text}
        case "image":
            part = _encode_image(content, path)
        case "file":
            part = _encode_file(content, path)
        case "native":
            return dict(native_block(PROTOCOL, content, path))
    if content.cache_mark is not None:
        part[_MARK] = encode_mark(content.cache_mark)
    return part if content.extra is None else restore(part, content.extra, PROTOCOL)


def _encode_image(content: ImageContent, path: Path) -> Wire:
    if content.data is not None:
        url = data_url(content.mime_type or "image/png", content.data)
    elif content.url is not None:
        url = content.url
    else:
        raise EncodeError("the image has no source; set `data` or `url`", path=path)
    return _with_detail({"type": "input_image", "image_url": url}, content.extra)


def _with_detail(part: Wire, extra: Extra | None) -> Wire:
    if extra is None or "detail" not in data_of(extra, PROTOCOL):
        part["detail"] = "auto"
    return part


def _encode_file(content: FileContent, path: Path) -> Wire:
    part: Wire = {"type": "input_file"}
    if content.data is not None:
        mime = content.mime_type or "application/octet-stream"
        part["file_data"] = data_url(mime, content.data)
        part["filename"] = _default_name(mime) if content.name is None else content.name
        return part
    if content.url is not None:
        part["file_url"] = content.url
    elif content.file_id is None:
        raise EncodeError("the file has no source; set `data`, `url` or `file_id`", path=path)
    elif (content.mime_type or "").startswith("image/"):
        return _with_detail({"type": "input_image", "file_id": content.file_id}, content.extra)
    else:
        part["file_id"] = content.file_id
    if content.name is not None:
        part["filename"] = content.name
    return part


def _default_name(mime: str) -> str:
    """Name a file without a name: the wire requires one. When read, this name means none."""
    return f"unnamed-file{_FILE_EXTENSIONS.get(mime, '')}"


def cited_sources(message: AssistantMessage) -> Sequence[CitedPage]:
    """Return the pages that the texts of a message cite."""
    return [
        CitedPage(
            url,
            text_of(annotation.get("title")) or "",
            read_span(piece.text, annotation.get("start_index"), annotation.get("end_index")),
        )
        for piece in message.content
        if piece.extra is not None and piece.kind == "text"
        for annotation in objects_in(data_of(piece.extra, PROTOCOL).get("annotations"))
        if annotation.get("type") == "url_citation" and (url := text_of(annotation.get("url")))
    ]
