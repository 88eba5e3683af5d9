"""A generateContent request, both ways: the conversation, its tools, and what is asked besides.

Facts this file rests on:
- Instructions are a content beside the others; its role says nothing. Texts, single parts and bare parts are taken for
  one as well.                                                     (google-genai 3.1.0, read 2026-11-15)
- The model is named in the address; some clients repeat it in the body.              (google-genai 3.1.0: batches)

A prompt that is one string is written as a content without a role, one made of pieces as the official client does it,
under the role `user`: so each is read back as what it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from segue.conversation.content import SystemContent
from segue.conversation.context import Context, Prompt
from segue.errors import DecodeError, EncodeError
from segue.protocols.google_genai.content import decode_user_part, encode_user_content
from segue.protocols.google_genai.native import decode_native
from segue.protocols.google_genai.options import decode_options, encode_options
from segue.protocols.google_genai.rules import PROTOCOL
from segue.protocols.google_genai.tools import decode_tools, encode_tools
from segue.protocols.google_genai.turns import decode_turns, encode_turns, parts_of
from segue.protocols.google_genai.verbatim import TO_SNAKE, Block, Wire, object_of
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import VERBATIM, verbatim_of

_SYSTEM: Final = "systemInstruction"


def decode_request(body: Mapping[str, object] | Sequence[object], endpoint: Endpoint) -> Prompt:
    """Read a body, or its bare list of contents.

    Raises:
        DecodeError: it has no contents, or something in it is not what the protocol says.
    """
    if not isinstance(body, Mapping):
        return Prompt(context=Context(messages=decode_turns(body, endpoint, endpoint.model.id)))
    if "contents" not in body:
        raise DecodeError("a request has to have contents", path=("contents",))
    named = body.get("model")
    model = named if isinstance(named, str) else None
    verbatim: Wire = {}
    contents = body["contents"]
    if isinstance(contents, Mapping):
        verbatim["contents"] = "single"
        contents = [cast("Block", contents)]
    elif isinstance(contents, str):
        verbatim["contents"] = "string"
        contents = [{"role": "user", "parts": [{"text": contents}]}]
    context = Context(
        system_prompt=_decode_system(body, verbatim),
        messages=decode_turns(contents, endpoint, model or endpoint.model.id),
        tools=decode_tools(body, verbatim),
        extra={PROTOCOL: {VERBATIM: verbatim}} if verbatim else None,
    )
    has_functions = any(tool.kind == "function" for tool in context.tools)
    return Prompt(context=context, options=decode_options(body, endpoint, has_functions=has_functions), model=model)


def encode_request(prompt: Prompt, endpoint: Endpoint) -> dict[str, object]:
    """Write a body.

    Raises:
        EncodeError: something has no word on this wire; `path` leads to it.
    """
    context, options = prompt.context, prompt.options
    verbatim = verbatim_of(context.extra, PROTOCOL)
    contents = encode_turns(context.messages, endpoint)
    body: Wire = {"contents": _original_contents(contents, verbatim)}
    _encode_system(context, verbatim, body)
    if context.tools:
        body["tools"] = encode_tools(context.tools, verbatim)
    elif "tools" in verbatim and verbatim["tools"] != "single":
        body["tools"] = verbatim["tools"]
    has_functions = any(tool.kind == "function" for tool in context.tools)
    body.update(encode_options(options, endpoint, prompt.model, has_functions=has_functions))
    return body


def _original_contents(contents: list[Wire], verbatim: Block) -> object:
    """Give a lone content without its list, or its words alone, if that is how it came and still says it all."""
    if len(contents) != 1 or "contents" not in verbatim:
        return contents
    if verbatim["contents"] == "string":
        parts = contents[0].get("parts")
        pieces = cast("list[object]", parts) if isinstance(parts, list) else []
        texts = object_of(pieces[0] if len(pieces) == 1 else None)
        return texts["text"] if len(texts) == 1 and "text" in texts else contents
    return contents[0] if verbatim["contents"] == "single" else contents


# -- instructions ------------------------------------------------------------------------------------------------------


def _decode_system(body: Block, verbatim: Wire) -> str | tuple[SystemContent, ...] | None:
    """Read instructions. What is not written the usual way stands in the shape under `system`."""
    key = _SYSTEM if _SYSTEM in body else TO_SNAKE[_SYSTEM]
    if key not in body:
        return None
    given = body[key]
    odd: Wire = {} if key == _SYSTEM else {"key": key}
    prompt: str | tuple[SystemContent, ...] | None = None
    if isinstance(given, str):
        prompt, odd["form"] = given, "string"
    elif given is None:
        odd["form"] = "null"
    elif isinstance(given, list):
        odd["form"] = "parts"
        prompt = _decode_pieces(parts_of({"parts": cast("object", given)}, (key,), {}))
    elif isinstance(given, Mapping):
        content = cast("Block", given)
        if "parts" in content or "text" not in content:
            prompt = _decode_content(content, key, odd)
        else:
            odd["form"] = "part"
            prompt = _decode_pieces((content,))
    else:
        raise DecodeError("instructions have to be a content", path=(key,))
    if odd:
        verbatim["system"] = odd
    return prompt


def _decode_content(content: Block, key: str, odd: Wire) -> str | tuple[SystemContent, ...]:
    original: Wire = {}
    parts = parts_of(content, (key,), original)
    odd.update(original)
    beyond = {name: value for name, value in content.items() if name not in ("role", "parts")}
    if beyond:
        odd["beyond"] = beyond
    if "role" not in content:
        text = parts[0].get("text") if len(parts) == 1 and len(parts[0]) == 1 else None
        if isinstance(text, str):
            return text
        odd["role"] = None
    elif content["role"] != "user":
        odd["role"] = {"is": content["role"]}
    return _decode_pieces(parts)


def _decode_pieces(parts: Sequence[Block]) -> tuple[SystemContent, ...]:
    pieces: list[SystemContent] = []
    for part in parts:
        piece = decode_user_part(part)
        pieces.append(piece if piece.kind == "text" or piece.kind == "native" else decode_native(part))
    return tuple(pieces)


def _encode_system(context: Context, verbatim: Block, body: Wire) -> None:
    prompt, odd = context.system_prompt, object_of(verbatim.get("system"))
    key, form = odd.get("key"), odd.get("form")
    key = key if isinstance(key, str) else _SYSTEM
    if prompt is None:
        if form == "null":
            body[key] = None
        return
    parts: list[Wire] = [{"text": prompt}] if isinstance(prompt, str) else []
    for index, piece in enumerate(() if isinstance(prompt, str) else prompt):
        try:
            parts.append(encode_user_content(piece))
        except EncodeError as error:
            raise EncodeError(error.reason, path=("system_prompt", index)) from error
    if form == "string" and isinstance(prompt, str):
        body[key] = prompt
    elif form == "parts":
        body[key] = parts
    elif form == "part" and len(parts) == 1:
        body[key] = parts[0]
    else:
        body[key] = _content(parts, odd, is_text=isinstance(prompt, str))


def _content(parts: list[Wire], odd: Block, *, is_text: bool) -> Wire:
    content: Wire = {"parts": parts}
    role = odd.get("role")
    if isinstance(role, Mapping):
        content["role"] = cast("Block", role).get("is")
    elif not is_text and "role" not in odd:
        content["role"] = "user"
    content.update(object_of(odd.get("beyond")))
    wire_format = odd.get("parts")
    if wire_format == "single" and len(parts) == 1:
        content["parts"] = parts[0]
    elif wire_format == "null" and not parts:
        content["parts"] = None
    elif wire_format == "absent" and not parts:
        del content["parts"]
    return content
