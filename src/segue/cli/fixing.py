"""`segue check --fix`: a request body that a provider would accept, made of one that it would refuse.

Turns, functions and fields that have the form of another protocol are read by that protocol. Then the body is read as a
conversation and written for its own model, which repairs what projection can repair. Fields that are refused even then
are removed. What is left is not repaired: only the caller knows what was meant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any, Final, NamedTuple, cast, final

from msgspec.structs import replace

from segue.conversation.context import Context, Options, Prompt, ToolDefinition
from segue.conversation.messages import Message, UserMessage
from segue.errors import DecodeError, Path, SegueError
from segue.histories.opening import OpenedDocument
from segue.histories.reading import read_body
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.projection.report import Report
from segue.protocols.api import decode_request, encode_request
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.codec import Violation
from segue.protocols.kit.protocol import Protocol
from segue.protocols.kit.verbatim import FORMAT_KEYS
from segue.protocols.registry import all_protocols, get_protocol
from segue.requests.check import check
from segue.requests.prepare import prepare

_REMOVED: Final = frozenset({CheckCode.FIELD_UNKNOWN, CheckCode.OPTION_UNSUPPORTED, CheckCode.OPTION_NEEDS_OTHER})
"""What can be repaired by removing a field: its advice says so."""
_ROUNDS: Final = 20
"""Removing a field may show another one that needed it."""


_FORMS: Final = frozenset(
    {
        CheckCode.BLOCK_TYPE_UNKNOWN,
        CheckCode.FIELD_MISSING,
        CheckCode.FIELD_UNKNOWN,
        CheckCode.OPTION_RENAMED,
        CheckCode.ROLE_UNKNOWN,
        CheckCode.TYPE_WRONG,
        CheckCode.VALUE_UNKNOWN,
    }
)
"""What is found where something has the form of another protocol."""
_PROBE: Final = {"role": "user", "content": [{"type": "text", "text": "-"}]}


@final
class Rewritten(NamedTuple):
    """A part of a body that had another form: that of a protocol, if one is known to have it."""

    path: Path
    protocol: str | None = None


def _read_turn(item: object, protocol: str, model: Model | None) -> tuple[Message, ...]:
    """Read one turn; nothing if the protocol does not know its form."""
    key = get_protocol(protocol).turns_key
    if key is None:
        return ()
    body = {key: [item]}
    try:
        messages = decode_request(body, protocol=protocol, model=model).context.messages
        found = check(body, protocol=protocol, model=model)
    except SegueError:
        return ()
    if any(each.code in _FORMS and each.path[:2] == (key, 0) for each in found) or any(map(_has_more, messages)):
        return ()
    return messages if messages and all(each.content for each in messages) else ()


def _has_more(message: Message) -> bool:
    """Whether a turn has fields that its protocol does not know."""
    kept = (message, *message.content)
    return any(each.extra is not None and _fields_in(each.extra) for each in kept)


def _fields_in(extra: object) -> bool:
    """Whether there is a field among the notes of a codec; a note is not one."""
    if not isinstance(extra, Mapping):
        return True
    given = cast("Mapping[str, object]", extra)
    return any(key not in FORMAT_KEYS and _fields_in(value) for key, value in given.items())


def _rewrite_turns(body: dict[str, Any], model: Model) -> tuple[dict[str, Any], list[Rewritten]]:
    """Write turns that another protocol knows in the form of the model's protocol."""
    key = get_protocol(model.protocol).turns_key
    source = next((each for each in (key, *(record.turns_key for record in all_protocols())) if each in body), None)
    if key is None or source is None:
        return body, []
    given: object = body[source]
    if isinstance(given, str) and (source != key or _has_form_of_another(body, key, model)):
        given = [{"role": "user", "content": given}]
    if not isinstance(given, list):
        return body, []
    names: dict[str, str] = {}
    items, rewritten = list[object](), list[Rewritten]()
    runs = groupby(enumerate(_readings(cast("list[object]", given), model)), key=lambda each: each[1].protocol)
    for protocol, run in runs:
        parts = list(run)
        messages = _read_run([part for _, part in parts])
        names |= {call.id: call.name for each in messages if each.role == "assistant" for call in each.tool_calls()}
        received = [part.item for _, part in parts]
        written = received if protocol is None else _write_turns(messages, names, model) or received
        items += written
        rewritten += [Rewritten((source, at), part.protocol) for at, part in parts if part.item not in written]
    if not rewritten and (source != key or given is not body[key]):
        rewritten.append(Rewritten((source,)))
    if not rewritten:
        return body, []
    return {**{name: value for name, value in body.items() if name != source}, key: items}, rewritten


class _Reading(NamedTuple):
    """A turn as it was received, what it says, and whose form it has; None: its own protocol's, or nobody's."""

    item: object
    messages: tuple[Message, ...]
    protocol: str | None = None


def _read_run(parts: Sequence[_Reading]) -> Sequence[Message]:
    """Read turns of one protocol together: in some, a message is several of them, or several are one."""
    protocol = parts[0].protocol
    if protocol is not None:
        with suppress(SegueError):
            body = {get_protocol(protocol).turns_key or "": [part.item for part in parts]}
            return decode_request(body, protocol=protocol).context.messages
    return [message for part in parts for message in part.messages]


def _readings(items: Sequence[object], model: Model) -> Iterator[_Reading]:
    for item in items:
        own = _read_turn(item, model.protocol, model)
        if own and not _has_native(own):
            yield _Reading(item, own)
            continue
        found = (_Reading(item, _read_turn(item, each.name, None), each.name) for each in all_protocols())
        yield next((each for each in found if each.messages and not _has_native(each.messages)), _Reading(item, own))


def _has_form_of_another(body: dict[str, Any], key: str, model: Model) -> bool:
    try:
        decode_request(body, protocol=model.protocol, model=model)
    except DecodeError as error:
        return error.path[:1] == (key,)
    return any(
        each.code in _FORMS and each.path[:1] == (key,) for each in check(body, protocol=model.protocol, model=model)
    )


def _has_native(messages: Sequence[Message]) -> bool:
    return any(piece.kind == "native" for each in messages for piece in each.content)


def _write_turns(messages: Sequence[Message], names: Mapping[str, str], model: Model) -> list[object]:
    """Write messages as turns; nothing if the protocol has no form for them."""
    messages = tuple(
        replace(each, tool_name=names.get(each.tool_call_id, ""))
        if each.role == "toolResult" and not each.tool_name
        else each
        for each in messages
    )
    key = get_protocol(model.protocol).turns_key or ""
    turns: object = []
    with suppress(SegueError):
        turns = encode_request(Context(messages=messages), model=model)[key]
        if isinstance(turns, str):  # the short form of one text
            turns = encode_request(Context(messages=(*messages, UserMessage.of("-"))), model=model)[key][:-1]
    return cast("list[object]", turns)


def _read_fields(body: dict[str, Any], model: Model) -> tuple[dict[str, Any], Prompt, list[Rewritten]]:
    """Read fields that another protocol knows; returns the body without them, and what they say."""
    found, rewritten = Prompt(context=Context()), list[Rewritten]()
    key = get_protocol(model.protocol).turns_key
    for name in [name for name in body if name not in (key, "model", "tools", "stream")]:
        if not _has_form_of_another(body, name, model):
            continue
        for record in all_protocols():
            more = _read_field(name, body[name], record) if record.name != model.protocol else None
            if more is not None and _has_room(found, more):
                found = _joined(found, more)
                rewritten.append(Rewritten((name,), record.name))
                body = {each: value for each, value in body.items() if each != name}
                break
    return body, found, rewritten


def _read_field(name: str, value: object, record: Protocol) -> Prompt | None:
    """Read what one field says about the options or the instructions; None if it says nothing."""
    if record.turns_key is None:
        return None
    try:
        without = decode_request({record.turns_key: [_PROBE]}, protocol=record.name)
        body = {record.turns_key: [_PROBE], name: value}
        read = decode_request(body, protocol=record.name)
        if any(each.code in _FORMS and each.path[:1] == (name,) for each in check(body, protocol=record.name)):
            return None
    except SegueError:
        return None
    has_meaning = read.context.system_prompt or _options_of(read) != _options_of(without)
    return read if has_meaning else None


def _options_of(prompt: Prompt) -> dict[str, object]:
    names = (name for name in Options.__struct_fields__ if name not in ("extra", "shared"))
    return {name: value for name in names if (value := getattr(prompt.options, name)) != getattr(Options(), name)}


def _has_room(found: Prompt, more: Prompt) -> bool:
    has_prompt = bool(found.context.system_prompt and more.context.system_prompt)
    return not has_prompt and not _options_of(found).keys() & _options_of(more).keys()


def _joined(prompt: Prompt, more: Prompt) -> Prompt:
    """Add what fields say; what the rest of the body says comes first."""
    options = replace(prompt.options, **{**_options_of(more), **_options_of(prompt)})
    instructions = prompt.context.system_prompt or more.context.system_prompt
    return replace(prompt, options=options, context=replace(prompt.context, system_prompt=instructions))


def _read_function(tool: object) -> ToolDefinition | None:
    """Read a function in the form of any protocol; None if it is something else."""
    given = cast("dict[str, Any]", tool) if isinstance(tool, dict) else {}
    inner = given.get("function")
    function = cast("dict[str, Any]", inner) if isinstance(inner, dict) else given
    name, schema = function.get("name"), function.get("parameters") or function.get("input_schema")
    if given.get("type", "function") not in ("function", "custom") or not isinstance(name, str):
        return None
    if not isinstance(schema, dict):
        return None
    return ToolDefinition(
        name=name, description=str(function.get("description") or ""), parameters=cast("dict[str, Any]", schema)
    )


def _read_functions(prompt: Prompt, tools: object) -> Prompt:
    """Read functions that a body has in the form of another protocol; nothing else is touched."""
    given = cast("list[object]", tools) if isinstance(tools, list) else []
    known = {tool.name for tool in prompt.context.tools if tool.kind == "function" and tool.name}
    found = {at: tool for at, each in enumerate(given) if (tool := _read_function(each)) and tool.name not in known}
    if not found or len(given) != len(prompt.context.tools):
        return prompt
    read = tuple(found.get(at, tool) for at, tool in enumerate(prompt.context.tools))
    return replace(prompt, context=replace(prompt.context, tools=read))


@final
class Fixed(NamedTuple):
    """A repaired body: what had another form, what projection changed, what was then removed, and what is refused."""

    body: dict[str, Any]
    rewritten: tuple[Rewritten, ...]
    report: Report
    removed: tuple[Violation, ...]
    left: tuple[Violation, ...]


def fix(document: OpenedDocument, model: Model) -> Fixed:
    """Repair a request body for its own model.

    Raises:
        DecodeError: it has a form that no protocol knows.
        EmptyConversation, DoesNotFit: nothing of it can be sent.
    """
    given, rewritten = _rewrite_turns(cast("dict[str, Any]", document.body), model)
    given, meant, fields = _read_fields(given, model)
    rewritten += fields
    document = read_body(given, model.protocol, None)
    prompt = _read_functions(_joined(document.prompt, meant), given.get("tools"))
    document = document._replace(prompt=prompt)
    request = document.prepare(model, Policy())
    if left := len(check(request.body, protocol=model.protocol, model=model)):
        # A request to its own model is sent in the form that was received; another one may be accepted.
        whole = prepare(_without_forms(prompt.context), model, options=prompt.options)
        request = whole if len(check(whole.body, protocol=model.protocol, model=model)) < left else request
    body, removed = _without_defaults(request.body, given, model), list[Violation]()
    for _ in range(_ROUNDS):
        found = check(body, protocol=model.protocol, model=model)
        chosen = next((each for each in found if each.code in _REMOVED and _remove(body, each.path)), None)
        if chosen is None:
            return Fixed(body, tuple(rewritten), request.report, tuple(removed), tuple(found))
        removed.append(chosen)
    return Fixed(
        body, tuple(rewritten), request.report, tuple(removed), tuple(check(body, protocol=model.protocol, model=model))
    )


def _without_forms(context: Context) -> Context:
    """Leave out how turns were divided and written."""
    messages: list[Message] = []
    for message in context.messages:
        kept = {
            protocol: {key: value for key, value in notes.items() if key not in FORMAT_KEYS}
            for protocol, notes in (message.extra or {}).items()
        }
        messages.append(replace(message, extra={name: notes for name, notes in kept.items() if notes} or None))
    return replace(context, messages=tuple(messages))


def _without_defaults(body: dict[str, Any], given: dict[str, Any], model: Model) -> dict[str, Any]:
    """Leave out fields that every request of segue has, the caller did not write, and the provider does not need."""
    common = prepare(Context().add(UserMessage.of("-")), model).body
    for key in [key for key in body if key not in given and key in common and body[key] == common[key]]:
        shorter = {name: value for name, value in body.items() if name != key}
        before = check(body, protocol=model.protocol, model=model)
        if len(check(shorter, protocol=model.protocol, model=model)) <= len(before):
            body = shorter
    return body


def _remove(body: object, path: Path) -> bool:
    """Remove the key that a path ends with; False if it names a whole item of a list, or nothing."""
    if not path or not isinstance(path[-1], str):
        return False
    for key in path[:-1]:
        try:
            body = cast("Any", body)[key]
        except (KeyError, IndexError, TypeError):
            return False
    return isinstance(body, dict) and cast("dict[str, Any]", body).pop(path[-1], _REMOVED) is not _REMOVED
