"""Read the HTTP requests of clients: `read_call` says what is asked for, in which protocol, and returns the prompt.

It is for programs that serve clients. The path and, where several protocols have the same path, the headers decide
which protocol the client reads; the routes of the protocols are the data. A body is read as one of that protocol. Some
clients send a body of another protocol to a path (`Route.also_reads`): it is read as what it is, and answered as the
path says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias, cast, final
from urllib.parse import parse_qsl, unquote

import msgspec
from msgspec.structs import replace

from segue.conversation.context import Prompt
from segue.conversation.limits import parse_json
from segue.conversation.messages import Message
from segue.errors import CallError, DecodeError, LoadError
from segue.protocols.api import find_endpoint
from segue.protocols.detection import detect_protocol
from segue.protocols.kit.routing import NEEDS_PROMPT, CallKind, MatchedRoute, RouteTable
from segue.protocols.registry import all_routes, get_protocol, registered_count

if TYPE_CHECKING:
    from segue.models.catalogue import Catalogue
    from segue.protocols.kit.protocol import Protocol

Body: TypeAlias = bytes | bytearray | memoryview | str | Mapping[str, object] | None

_DECODE: Final = msgspec.json.Decoder().decode
_LARGE: Final = 256_000
"""Bytes of JSON whose values are counted before it is decoded, and of one step of counting."""
HALF_CHARACTERS: Final = re.compile(rb"\\u[dD][89a-fA-F]")
"""Escapes of surrogates in JSON. A body that has half a pair is read by another decoder."""
_SURROGATES_IN_TEXT: Final = re.compile(r"\\u[dD][89a-fA-F]")
_MANY: Final = 50_000
"""Values of JSON that is decoded item by item: one object of so many fields takes 30 ms."""
_WINDOW: Final = 65_536
"""Characters of JSON that are decoded at once there."""
_SPACE: Final = " \t\n\r"
_OPENED: Final = re.compile(rf"[\[{{][{_SPACE}]*")
_EMPTY: Final = re.compile(rf"\[[{_SPACE}]*\]|\{{[{_SPACE}]*\}}")
_MARK: Final = re.compile(rf"[{_SPACE}]*([,:\]}}])[{_SPACE}]*")
_MODEL_KEYS: Final = ("model", "name", "modelId")
"""Where a body names its model: `name` in old requests of Ollama about one model, `modelId` in arguments of boto3."""

LONGEST_NAME: Final = 512
"""Characters of the name of a model or a tool, and of the id of an earlier reply. The longest name of the catalogue has
77, an ARN of Bedrock some hundred; providers take tools of 64 to 128. A model's name is matched with many patterns."""

_OTHER_SERVICES: Final = re.compile(
    r"(?<=[/:])(?:embeddings|images|audio|files|batches|moderations|uploads|vector_stores|fine_tuning|videos|assistants)"
    r"(?=/|$)"
)
"""Endpoints of providers other than those of models that reply: the base URL of a client that asks for one is right."""


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_SCAN: Final = cast(
    "Callable[[str, int], tuple[object, int]]",
    json.JSONDecoder(parse_constant=_refuse_constant).scan_once,  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
)
"""Decodes the value at a place of a text; also returns its end."""


@final
class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A client's HTTP request, read.

    - `kind`: "generate" (a reply is asked for), "count" (the number of tokens of a request), "models" (the model
      `model`, or all of them if it is None), "version" (of the server; `answer` is what to send), "compact" (a shorter
      form of the history in `prompt`), or about the stored reply `reply`: "retrieve", "delete", "cancel",
      "input_items".
    - `protocol`: the protocol in which the client reads the answer; `body_protocol` the one of its body.
    - `model`: the id of the model that it asks for, from the path or the body.
    - `reply`: the id of the stored reply that the path names.
    - `prompt`: the decoded request of "generate", "count" and "compact".
    - `transport`: how the request was sent, if not in the protocol's own way; `headers` are those of the protocol that
      its body has in place of headers. `prompt` is read from the rest of the body.
    - `stream`, `framing`: whether the reply is streamed, and how its frames are written (`frame_encoder`).
    - `body`: the body as JSON; None if there is none.
    - `query`: the parameters of the query. It may hold a key: some clients of Google send it there.
    """

    kind: CallKind
    protocol: str
    body_protocol: str
    model: str | None = None
    reply: str | None = None
    prompt: Prompt | None = None
    stream: bool = False
    framing: str = "none"
    transport: str | None = None
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    body: Mapping[str, object] | None = None
    query: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    answer: Mapping[str, object] | None = None


@lru_cache(maxsize=4)
def _table(count: int) -> RouteTable:  # noqa: ARG001 - the cache key: new records need a new table
    return RouteTable(all_routes())


def read_call(
    method: str, path: str, headers: Mapping[str, str], body: Body = None, *, catalogue: Catalogue | None = None
) -> Call:
    """Read a client's HTTP request.

    `path` is the path with its query as sent, still escaped. `body` is JSON, as bytes or parsed. `catalogue` has
    models and providers of your own, for the model that the request names.

    Raises:
        CallError: no protocol has such an endpoint (404, 405), the client asks for a WebSocket (426), or the body
            cannot be read (400). It has the status, and the protocol in which the client reads errors.
    """
    place, _, rest = path.partition("?")
    query = dict(parse_qsl(rest, keep_blank_values=True)) if rest else {}
    if not "".join(headers).islower():
        headers = {name.lower(): value for name, value in headers.items()}
    found = _match(method.upper(), place, headers, query)
    route, name = found.route, found.protocol
    plain = parse_body(body, name)
    check_name(found.model or _named(plain), "the name of the model", name)
    if route.kind not in NEEDS_PROMPT:
        return Call(
            kind=route.kind,
            protocol=name,
            body_protocol=name,
            model=found.model or _named(plain),
            reply=found.reply,
            body=plain,
            query=query,
            answer=route.answer,
        )
    if plain is None:
        raise CallError(f"{method} {place}: the body is missing; send a JSON object", status=400, protocol=name)
    record = get_protocol(name)
    counted = record.token_count if route.kind == "count" else None
    request = plain if counted is None else counted.request_in(plain)
    transport = record.transports.get(route.transport or "")
    moved: dict[str, str] = {}
    if transport is not None:
        request, moved = transport.open(request)
    reader = _reader(record, found, request)
    prompt = _decode(request, reader, found, catalogue)
    return Call(
        kind=route.kind,
        protocol=name,
        body_protocol=reader.name,
        model=prompt.model,
        prompt=prompt,
        stream=bool(prompt.options.stream) and route.kind == "generate",
        framing=route.framing or record.framing,
        transport=route.transport,
        headers=moved,
        body=plain,
        query=query,
    )


def read_continued(call: Call, turns: Sequence[object], catalogue: Catalogue | None = None) -> Call:
    """Read a request that names the reply before it as one that sends the whole history: `turns` are all of its turns.

    The prompt is the one that a client would get which keeps its history itself. `body` stays what the client sent.

    Raises:
        CallError: the turns cannot be read.
    """
    reader, prompt, body = get_protocol(call.body_protocol), call.prompt, call.body
    assert prompt is not None, "only requests with a prompt continue a reply"
    assert body is not None, "a request with a prompt has a body"
    assert reader.turns_key is not None, "a protocol that continues replies has its turns in one list"
    transport = reader.transports.get(call.transport or "")
    opened = body if transport is None else transport.open(body)[0]
    whole = {key: value for key, value in opened.items() if key != reader.held_content.reply}
    whole[reader.turns_key] = [*turns]
    try:
        read = reader.decode_request(whole, find_endpoint(reader.name, None, call.model, catalogue))
    except DecodeError as error:
        raise CallError(str(error), status=400, protocol=call.protocol) from error
    options = replace(read.options, stream=prompt.options.stream)
    return replace(call, prompt=replace(read, model=prompt.model, options=options))


def read_further(known: Call, turns: int, messages: int, items: list[object], catalogue: Catalogue) -> Call | None:
    """Read a request whose first `turns` turns, which are `messages` messages, are those of a known one.

    The common turns are not read again: the call has the objects of the known request. They end with a request that was
    sent as it is, or there are none: then `known` has no turns at all. None: the new turns cannot be read without those
    before them.

    Raises:
        CallError: the name of a tool is too long.
    """
    reader, prompt, body = get_protocol(known.body_protocol), known.prompt, known.body
    key = reader.turns_key
    if not reader.reads_apart or known.transport is not None or prompt is None or body is None or key is None:
        return None
    new: tuple[Message, ...] = ()
    if items:
        endpoint = find_endpoint(reader.name, None, known.model, catalogue)
        if endpoint.rules.reasoning_replay == "required":  # the options say which turns have none
            return None
        named = body.get("model", endpoint.model.id)
        try:
            # A bare list has no options to be read.
            given = items if named == endpoint.model.id else {"model": named, key: items}
            read = reader.decode_request(given, endpoint).context
        except DecodeError:
            return None
        new = read.messages
        _check_calls(new, known.protocol)
        if read.system_prompt is not None:
            return None
        if turns and not _stands_alone(prompt.context.messages[:messages], new):
            return None
    turns_before = cast("list[object]", body[key])[:turns]
    context = replace(prompt.context, messages=(*prompt.context.messages[:messages], *new))
    return replace(known, prompt=replace(prompt, context=context), body={**body, key: [*turns_before, *items]})


def _stands_alone(before: Sequence[Message], new: Sequence[Message]) -> bool:
    """Whether messages are a reply and what follows it, and refer to nothing in the messages before them."""
    if not new or new[0].role != "assistant" or (before and before[-1].role == "assistant"):
        return False
    ids: set[str] = set()
    for message in new:
        if message.role == "assistant":
            ids.update([piece.id for piece in message.content if piece.kind == "toolCall"])
        elif message.role == "system" or (message.role == "toolResult" and message.tool_call_id not in ids):
            return False
    return True


def find_protocol(method: str, path: str, headers: Mapping[str, str]) -> str | None:
    """Return the protocol in which the client of a request reads errors, without its body; None if no path matches."""
    return find_error_form(method, path, headers)[0]


def has_socket(path: str, headers: Mapping[str, str]) -> bool:
    """Whether the requests of an endpoint may also be sent over a WebSocket."""
    place, _, rest = path.partition("?")
    try:
        return _match("POST", place, headers, dict(parse_qsl(rest, keep_blank_values=True))).route.socket
    except CallError:
        return False


def find_error_form(method: str, path: str, headers: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Return the protocol and the transport of the errors that the client of a request reads, without its body."""
    place, _, rest = path.partition("?")
    try:
        found = _match(method.upper(), place, headers, dict(parse_qsl(rest, keep_blank_values=True)))
    except CallError as error:
        return error.protocol, None
    return found.protocol, found.route.transport


def _match(method: str, path: str, headers: Mapping[str, str], query: Mapping[str, str]) -> MatchedRoute:
    """Find the route.

    Raises:
        CallError: there is none.
    """
    table = _table(registered_count())
    asked = "GET" if method == "HEAD" else method
    places = tuple(dict.fromkeys((path, unquote(path)))) if "%" in path else (path,)  # an escaped colon, for Google
    for place in places:
        found = table.find(asked, place, headers, query, is_decoded=place is not path)
        if found is not None:
            return found
    for place in places:
        methods = table.methods(place)
        if methods:
            wanted = table.find(methods[0], place, headers, query)
            protocol = None if wanted is None else wanted.protocol
            if "websocket" in headers.get("upgrade", "").lower():
                message = f"{path} does not support WebSockets; send a {methods[0]} request"
                raise CallError(message, status=426, protocol=protocol)
            message = f"{path} does not support {method}; send a {' or '.join(methods)} request"
            raise CallError(message, status=405, protocol=protocol, methods=methods)
    # Several protocols have this endpoint, and the headers decide between them: they name the protocol here, too.
    kin, default = table.find("GET", "/v1/models", headers, {}), table.find("GET", "/v1/models", {}, {})
    protocol = None if kin is None or default is None or kin.protocol == default.protocol else kin.protocol
    if other := _OTHER_SERVICES.search(path):
        message = (
            f"{other[0]} are not served here, only replies, token counts and lists of models; ask the provider itself"
        )
        raise CallError(f"{method} {path}: {message}", status=404, protocol=protocol)
    message = f"no protocol has an endpoint {method} {path}; correct the base URL of the client or its path"
    raise CallError(message, status=404, protocol=protocol)


def parse_body(body: Body, protocol: str | None) -> Mapping[str, object] | None:
    """Parse the body of a request.

    Raises:
        CallError: it is not a JSON object.
    """
    if body is None or (type(body) is not bytes and isinstance(body, (dict, Mapping))):
        return body
    if isinstance(body, memoryview):
        body = body.tobytes()
    if not body:
        return None
    try:
        value = _decode_large(body) if len(body) > _LARGE else _decode_json(body)
    except (LoadError, ValueError, RecursionError) as error:  # a DecodeError of msgspec is a ValueError
        raise CallError(f"the body cannot be read as JSON: {error}", status=400, protocol=protocol) from error
    if not isinstance(value, dict):
        message = f"the body has to be a JSON object, not a value of type {type(value).__name__}"
        raise CallError(message, status=400, protocol=protocol)
    return cast("dict[str, object]", value)


def _decode_json(data: bytes | bytearray | str) -> object:
    try:
        return cast("object", _DECODE(data))
    except (msgspec.DecodeError, ValueError, RecursionError):  # lone surrogates, or no JSON
        return parse_json(bytes(data) if isinstance(data, bytearray) else data)


def _decode_large(data: bytes | bytearray | str) -> object:
    """Decode many values item by item: the decoder does not let another thread run before it has finished."""
    if count_values(data, _MANY) <= _MANY:
        try:
            return cast("object", _DECODE(data))
        except (msgspec.DecodeError, UnicodeError):
            # Half a surrogate is read as in a small body. Nothing else is decoded again: that would let others wait.
            if not (_SURROGATES_IN_TEXT if isinstance(data, str) else HALF_CHARACTERS).search(data):  # pyright: ignore[reportArgumentType, reportCallIssue]
                raise
    return _ByItem(data if isinstance(data, str) else data.decode()).decode()


def count_values(data: bytes | bytearray | str, most: int) -> int:
    """Count the commas and the opening brackets of a text, in pieces, until there are more than `most`."""
    found, marks = 0, ",[{" if isinstance(data, str) else (b",", b"[", b"{")
    for at in range(0, len(data), _LARGE):
        found += sum([data.count(mark, at, at + _LARGE) for mark in marks])  # pyright: ignore[reportArgumentType]
        if found > most:
            break
    return found


class _ByItem:
    """Decodes JSON item by item, so that other threads can run in between; also half a surrogate pair."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._window, self._start = "", 0

    def decode(self) -> object:
        """Decode the text.

        Raises:
            ValueError: it is not JSON.
        """
        text = self._text
        try:
            value, end = self._decode_value(len(text) - len(text.lstrip(_SPACE)))
        except (StopIteration, IndexError) as error:
            raise ValueError("a value is missing or not complete") from error
        if text[end:].strip(_SPACE):
            raise ValueError(f"there is more after the value, at character {end + 1}")
        return value

    def _decode_value(self, at: int) -> tuple[object, int]:
        """Decode the value at a place; also return its end. What fits into a window is decoded at once."""
        if self._text[at] not in "{[":
            return _SCAN(self._text, at)
        while True:
            begin = at - self._start
            if begin < len(self._window):
                with suppress(ValueError, StopIteration):
                    value, end = _SCAN(self._window, begin)
                    return value, self._start + end
                if begin == 0:
                    return self._decode_items(at)
            self._window, self._start = self._text[at : at + _WINDOW], at

    def _decode_items(self, at: int) -> tuple[object, int]:
        text, scan = self._text, _SCAN
        fields: dict[object, object] = {}
        items: list[object] = []
        found, end = (fields, "}") if text[at] == "{" else (items, "]")
        if (empty := _EMPTY.match(text, at)) is not None:
            return found, empty.end()
        mark, key, at = ",", None, _OPENED.match(text, at).end()  # pyright: ignore[reportOptionalMemberAccess]
        while mark == ",":
            if found is fields:
                key, at = scan(text, at)
                mark, at = _find_mark(text, at)
                if mark != ":" or type(key) is not str:
                    raise ValueError(f"a key is missing before character {at + 1}")
            value, at = self._decode_value(at) if text[at] in "{[" else scan(text, at)
            if found is fields:
                fields[key] = value
            else:
                items.append(value)
            mark, at = _find_mark(text, at)
        if mark != end:
            raise ValueError(f"{end!r} or a comma is missing before character {at + 1}")
        return found, at


def _find_mark(text: str, at: int) -> tuple[str, int]:
    """Return the mark at a place, without the space around it, and where the next value begins."""
    found = _MARK.match(text, at)
    if found is None:
        raise ValueError(f"a mark is missing at character {at + 1}")
    return found[1], found.end()


def _reader(record: Protocol, found: MatchedRoute, body: Mapping[str, object]) -> Protocol:
    """Return the protocol of the body: another one only if the body has no turns where this protocol has them."""
    if found.route.also_reads and (record.turns_key is None or body.get(record.turns_key) is None):
        other = detect_protocol(body)
        if other in found.route.also_reads:
            return get_protocol(other)
    return record


def _decode(body: Mapping[str, object], reader: Protocol, found: MatchedRoute, catalogue: Catalogue | None) -> Prompt:
    """Decode the request; the path goes before the body where both name a model or decide about streaming.

    Raises:
        CallError: the body does not follow the protocol.
    """
    named = found.model or _named(body)
    check_name(named, "the name of the model", found.protocol)
    if found.model is not None and "model" in body:
        body = {**body, "model": found.model}
    endpoint = find_endpoint(reader.name, None, named, catalogue)
    try:
        prompt = reader.decode_request(body, endpoint)
    except DecodeError as error:
        raise CallError(str(error), status=400, protocol=found.protocol) from error
    if found.model is not None or prompt.model is None:
        prompt = replace(prompt, model=named)
    for tool in prompt.context.tools:
        if tool.kind == "function":
            check_name(tool.name, "the name of a tool", found.protocol)
    _check_calls(prompt.context.messages, found.protocol)
    if found.route.stream is not None:
        prompt = replace(prompt, options=replace(prompt.options, stream=found.route.stream))
    return prompt


def check_name(name: str | None, what: str, protocol: str | None) -> None:
    """Check the length of a name before anything is looked up by it.

    Raises:
        CallError: it is longer than `LONGEST_NAME`.
    """
    if name is not None and len(name) > LONGEST_NAME:
        message = f"{what} has {len(name)} characters; send at most {LONGEST_NAME} ({name[:40]!r}...)"
        raise CallError(message, status=400, protocol=protocol)


def _check_calls(messages: Sequence[Message], protocol: str) -> None:
    """Check the names of the tools that were called.

    Raises:
        CallError: one is too long.
    """
    for message in messages:
        if message.role == "toolResult":
            check_name(message.tool_name, "the name of a tool", protocol)
        elif message.role == "assistant":
            for piece in message.content:
                if piece.kind == "toolCall":
                    check_name(piece.name, "the name of a tool", protocol)


def _named(body: Mapping[str, object] | None) -> str | None:
    for key in () if body is None else _MODEL_KEYS:
        if isinstance(name := cast("Mapping[str, object]", body).get(key), str) and name:
            return name
    return None
