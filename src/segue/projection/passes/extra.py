"""Remove `extra` that was written for another protocol or another provider.

Facts:
- A codec reads only the `extra` of its own protocol. One protocol serves many providers, and strict ones answer unknown
  keys with 400 or 422.                                               (qwen-code #3304, LibreChat #6724)
- What was received in a form that the provider refuses is refused again; `acceptance` has the sources.
- The keys `verbatim` and `shape` (in older files) under a protocol's key record the wire format; all others are data.
- A key that is not the name of a protocol is never sent: formats of stored sessions keep their records there.

An assistant message names its provider. A user message or tool result does not: it is taken to be written for the
provider of the assistant turn before it, and its `extra` is sent to that provider only. Before the first assistant turn
the provider is unknown, and `extra` is kept. See docs/decisions/0005-origin-of-extra.md. What several protocols or
providers have is an exception: it is written in the target's place for it (`protocols.shared_fields`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple, TypeGuard, cast

from msgspec.structs import replace

from segue.conversation.content import AnyContent, Extra, TextContent
from segue.conversation.messages import Message
from segue.foundation.quoting import SECRET_NAME
from segue.models.model import Model
from segue.models.rules import Rules
from segue.projection.passes.held_content import ELSEWHERE
from segue.projection.policy import fill
from segue.projection.report import ChangeCode, Loss
from segue.projection.workspace.surrogates import clean_text
from segue.projection.workspace.workspace import INSERTED, Workspace
from segue.protocols.kit.json_values import Block, object_of
from segue.protocols.kit.reading import REPLY
from segue.protocols.kit.verbatim import FORMAT_KEYS
from segue.protocols.registry import PROTOCOLS
from segue.protocols.shared_fields import Carried, move_fields, put
from segue.protocols.shared_replies import cited_elsewhere
from segue.protocols.shared_rows import Level

_NEVER_SENT: Final = frozenset({"stored", REPLY})
"""Keys that are always kept, because no codec sends them: unknown fields of a file, and fields of a reply."""

_WIRE_ROLES: Final[Mapping[str, str]] = {"toolResult": "tool"}
"""Roles of messages -> their names in the row `content_parts`, where they differ."""
_LEVELS: Final[Mapping[str, Level]] = {"text": "text", "file": "file", "toolCall": "tool"}
_FORM: Final = "only the form in which it was written"
_SHOWN: Final = 200
"""The characters of a lost value that a report shows."""
_MASK: Final = "***"


def kept_extra(extra: Extra, protocol: str, rules: Rules, *, same_provider: bool) -> Extra | None:
    """Return the part of an `extra` that may be sent to the target; the same object when that is all of it.

    That is the part of the target's protocol: all keys if it was written for the same provider, otherwise only the keys
    of `rules.portable_extra`, which every provider of the protocol accepts. A part of another protocol that says
    nothing (format, empty values, defaults) stays: no codec writes it, so leaving it out would be no difference.
    """
    kept: dict[str, Mapping[str, object]] = {}
    changed = False
    for key, part in extra.items():
        if key in _NEVER_SENT or (key == protocol and same_provider):
            kept[key] = part
        elif key == protocol:
            portable = portable_fields(part, rules)
            changed = changed or portable != part
            if portable:
                kept[key] = portable
        elif _is_of_protocol(key) and lost_fields({key: part}):
            changed = True
        else:
            kept[key] = part
    return (kept or None) if changed else extra


def is_format_alone(extra: Extra, protocol: str) -> bool:
    """Whether an `extra` has nothing for a protocol, and no data for others: nothing of it is sent, moved or lost."""
    return protocol not in extra and all(part.keys() <= FORMAT_KEYS for part in extra.values())


class Shared(NamedTuple):
    """The shared fields of an `extra`: what is left without them, what the target has in their place, what differs."""

    rest: Extra
    added: tuple[Carried, ...] = ()

    def differences(self) -> list[str]:
        """Return what a report says about values that are not the same."""
        return [carried.difference for carried in self.added if carried.difference]

    def sources(self) -> dict[str, str]:
        """Return the keys of the target that hold a shared field -> where it was read from."""
        return {path.partition(".")[0]: carried.source for carried in self.added for path in carried.added}

    def put_into(self, extra: Extra | None, protocol: str) -> Extra | None:
        """Return an `extra` of the target with the fields; a field that it has already stays as it is."""
        if not self.added:
            return extra
        part: Block = (extra or {}).get(protocol, {})
        for carried in self.added:
            for path, value in carried.added.items():
                part = put(part, path, value, carried.member)
        return {**(extra or {}), protocol: part}


def share_fields(extra: Extra, level: Level, model: Model, *, same_provider: bool = True) -> Shared:
    """Find what other protocols and providers have in common with the target; `shared_rows` says what that is."""
    if same_provider and len(extra) == 1 and model.protocol in extra:
        return Shared(extra)  # the common case
    parts: dict[str, Block] = dict(extra)
    added: list[Carried] = []
    for key in tuple(parts):
        if same_provider and key == model.protocol:
            continue
        record = PROTOCOLS.get(key.removesuffix(ELSEWHERE))
        if record is None:
            continue
        for carried in move_fields(level, parts[key], record.name, model, record.default_fields):
            parts[key] = carried.rest
            added.append(carried)
    return Shared({key: part for key, part in parts.items() if part}, tuple(added)) if added else Shared(extra)


def share_system(extra: Extra, model: Model) -> Extra:
    """Write the fields of a system prompt that were set apart for other providers where the target has them."""
    apart = [key for key, part in extra.items() if key.endswith(ELSEWHERE) and "system" in part]
    if not apart:
        return extra
    parts: dict[str, Block] = dict(extra)
    for key in apart:
        for carried in move_fields("message", object_of(parts[key].get("system")), key.removesuffix(ELSEWHERE), model):
            parts[key] = {**parts[key], "system": carried.rest}
            for path, value in carried.added.items():
                parts[model.protocol] = put(parts.get(model.protocol, {}), f"system.{path}", value)
    return {key: part for key, part in parts.items() if any(part.values())}


def portable_fields(part: Mapping[str, object], rules: Rules) -> dict[str, object]:
    """Return the fields of a part that every provider of the protocol accepts; `a.b` names a field of an object."""
    portable: dict[str, object] = {}
    names = rules.portable_extra
    for key, value in part.items():
        if key in names:
            portable[key] = value
        elif isinstance(value, Mapping) and key not in FORMAT_KEYS:
            inner = {
                name: item for name, item in cast("Mapping[str, object]", value).items() if f"{key}.{name}" in names
            }
            if inner:
                portable[key] = inner
    return portable


def _is_of_protocol(key: str) -> bool:
    """Whether a key is the name of a protocol, also where another provider of it is meant."""
    return key.removesuffix(ELSEWHERE) in PROTOCOLS


def lost_fields(extra: Extra, kept: Extra | None = None) -> dict[str, object]:
    """Return the fields, with their values, that a reduced `extra` has lost.

    Wire format is none of them, nor is a value that says nothing: one that is empty, or the default of its provider.
    """
    lost: dict[str, object] = {}
    for key, part in extra.items():
        if key == REPLY or (key not in _NEVER_SENT and not _is_of_protocol(key)):
            continue
        record = PROTOCOLS.get(key.removesuffix(ELSEWHERE))
        defaults: Mapping[str, object] = record.default_fields if record is not None else {}
        remaining = kept.get(key) if kept is not None else None
        for name, value in part.items():
            gone = value if remaining is None or name not in remaining else _removed(value, remaining[name])
            if name not in FORMAT_KEYS and (given_value := _beyond(gone, defaults.get(name))) is not None:
                lost[name] = given_value
    return lost


def _removed(value: object, remaining: object) -> object:
    """Return the members of an object that are removed from it; None if there are none."""
    if value is remaining or not (isinstance(value, Mapping) and isinstance(remaining, Mapping)):
        return None
    return {name: item for name, item in cast("Mapping[str, object]", value).items() if name not in remaining}


def _beyond(value: object, default: object) -> object:
    """Return the part of a value that is not the default; None if the value is empty or nothing but the default."""
    if isinstance(value, Mapping) and isinstance(default, Mapping):
        given, known = cast("Mapping[str, object]", value), cast("Mapping[str, object]", default)
        rest = {
            name: given_value for name in given if (given_value := _beyond(given[name], known.get(name))) is not None
        }
        return rest or None
    is_default = value == default and isinstance(value, bool) == isinstance(default, bool)
    is_empty = isinstance(value, (str, list, tuple, Mapping)) and not value
    return None if is_default or is_empty else cast("object", value)


def extra_loss(extra: Extra, kept: Extra | None) -> Loss:
    """Return the loss of a reduced `extra`: opaque if data is removed, none if only wire format is."""
    return Loss.OPAQUE if lost_fields(extra, kept) else Loss.NONE


def lost_extra(*extras: Extra | None) -> Loss:
    """Return the loss if all of these are removed."""
    return Loss.OPAQUE if any(extra is not None and lost_fields(extra) for extra in extras) else Loss.NONE


def removal_of(lost: Mapping[str, object]) -> tuple[Loss, str]:
    """Return loss and detail of a removal: the lost fields, each with the start of its value, or that it was only form.

    Values that are secrets by their name are not shown.
    """
    if not lost:
        return Loss.NONE, _FORM
    return Loss.OPAQUE, ", ".join(f"{name}: {_start(_masked(name, value))}" for name, value in lost.items())


def _start(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _masked(name: str, value: object) -> object:
    """Return a value without secrets, as far as its start is shown: a client may send a million fields."""
    if SECRET_NAME.search(name):
        return _MASK
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, object]", value).items()
        return {key: _masked(key, item) for key, item in islice(fields, _SHOWN + 1)}
    if isinstance(value, (list, tuple)):
        return [_masked(name, item) for item in islice(cast("Sequence[object]", value), _SHOWN + 1)]
    return value[: _SHOWN + 1] if isinstance(value, str) else value


def withhold_extra(workspace: Workspace) -> None:
    """Remove `extra` of other protocols and providers; reported once for each message."""
    prefix_state, provider = workspace.prefix_state, workspace.target.model.provider
    if not (workspace.scan.extra or workspace.cross_model):
        writers = (message.provider for message in reversed(workspace.messages) if message.role == "assistant")
        prefix_state.provider = next(writers, prefix_state.provider)
        return
    for index, message in enumerate(workspace.messages):
        if message.role == "assistant":
            if message.prefix and not workspace.target.rules.assistant_prefix:
                workspace.note(ChangeCode.PREFIX_REMOVED, workspace.path(index), Loss.NONE)
                message = replace(message, prefix=False)  # noqa: PLW2901 - the rest of the loop sees what is sent
                workspace.put(index, message, added=0)
            prefix_state.provider = message.provider
            same_provider = message.provider == provider and workspace.places[index] not in workspace.cross_model
        else:
            same_provider = prefix_state.provider in (None, provider)
        if message.extra is not None or any(piece.extra is not None for piece in message.content):
            _withhold(workspace, index, same_provider=same_provider)


def _withhold(workspace: Workspace, index: int, *, same_provider: bool) -> None:
    message = workspace.messages[index]
    protocol, rules = workspace.target.model.protocol, workspace.target.rules
    lost: dict[str, object] = {}
    changed = False
    differences: list[str] = []
    moved: list[object] = []

    def keep(extra: Extra, level: Level) -> Extra | None:
        extra, cited = cited_elsewhere(extra, workspace.target.model)
        shared = share_fields(extra, level, workspace.target.model, same_provider=same_provider)
        kept = kept_extra(shared.rest, protocol, rules, same_provider=same_provider)
        lost.update(lost_fields(shared.rest, kept) if kept is not shared.rest else {})
        differences.extend(shared.differences())
        moved.extend([*shared.added, *cited])
        kept = shared.put_into(kept, protocol)
        return {**(kept or {}), protocol: {**(kept or {}).get(protocol, {}), **cited}} if cited else kept

    extra = message.extra
    if extra is not None:
        extra = keep(extra, "message")
        changed = extra is not message.extra
    content: list[AnyContent] = list(message.content)
    is_string = _WIRE_ROLES.get(message.role, message.role) in rules.values("content_parts")  # no part can have a field
    for position, piece in enumerate(content):
        if piece.extra is None:
            continue
        kept = keep(piece.extra, _LEVELS.get(piece.kind, "image"))
        if is_string and kept is not None and protocol in kept:
            kept = {key: part for key, part in kept.items() if key != protocol} or None
        if kept is not piece.extra:
            if is_string:
                lost |= lost_fields(piece.extra, kept)
            content[position] = replace(piece, extra=kept)
            changed = True
    if changed:
        message = replace(message, content=tuple(content), extra=extra)
    for difference in differences:
        workspace.note(ChangeCode.OPTION_CLAMPED, workspace.path(index), Loss.NONE, difference)
    accepted = workspace.target.acceptance.accepted(message)
    if not changed and accepted is message:
        return
    name = lost.get("name")
    if accepted.role == "user" and _is_name(name) and workspace.target.policy.user_names == "text":
        del lost["name"]
        workspace.put(index, accepted, added=0)
        put_name(workspace, index, name)
        if not lost:
            return
        accepted = workspace.messages[index]
    if not lost and moved:
        workspace.put(index, accepted, added=0)
        return
    workspace.note(ChangeCode.EXTRA_REMOVED, workspace.path(index), *removal_of(lost))
    workspace.put(index, accepted, added=0)


def name_of(message: Message, protocol: str) -> str | None:
    """Return the name of a user that a message has in a field of the protocol; None if there is none."""
    name = (message.extra or {}).get(protocol, {}).get("name")
    return name if message.role == "user" and _is_name(name) else None


def _is_name(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and bool(value.strip())


def put_name(workspace: Workspace, index: int, name: str) -> None:
    """Let the text of a user begin with the user's name, in place of a field for it, and report it."""
    message, texts, protocol = workspace.messages[index], workspace.target.policy.texts, workspace.target.model.protocol
    extra = dict(message.extra or {})
    part = {key: value for key, value in extra.pop(protocol, {}).items() if key != "name"}
    extra |= {protocol: part} if part else {}
    name = clean_text(name)
    origins = list(workspace.origins(index))
    first = message.content[0] if message.content else None
    if first is not None and first.kind == "text":
        named = replace(first, text=fill(texts.user_name, name=name, text=first.text))
        content = (named, *message.content[1:])
    else:
        named = TextContent(text=fill(texts.user_name, name=name, text="").rstrip() or name)
        content, origins = (named, *message.content), [INSERTED, *origins]
    workspace.note(ChangeCode.NAME_AS_TEXT, workspace.path(index), Loss.NONE, name)
    workspace.put(
        index, replace(message, content=content, extra=extra or None), origins, added=len(name) + len(texts.user_name)
    )
