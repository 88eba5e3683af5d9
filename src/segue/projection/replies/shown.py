"""The client that a reply is shown to, and what it has been shown so far: parts, changes, names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Final, TypeAlias, final

from segue.conversation.content import AssistantContent, Extra, TextContent, ThinkingContent, ToolCall
from segue.conversation.events import Event, TextDelta, TextEnd, TextStart, ThinkingDelta, ToolCallDelta
from segue.conversation.messages import AssistantMessage
from segue.errors import Path, ProjectionRefused
from segue.models.model import Model
from segue.models.rules import Rules
from segue.projection.passes.extra import kept_extra, lost_fields, removal_of
from segue.projection.policy import Policy
from segue.projection.replies.shared import lost_replies, missing_usage
from segue.projection.report import Change, ChangeCode, Loss, Report
from segue.projection.workspace.ownership import Ownership
from segue.protocols.api import find_endpoint
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import EMPTY, Block, object_of
from segue.protocols.kit.protocol import Protocol
from segue.protocols.kit.reading import REPLY
from segue.protocols.kit.reply_form import ReplyForm
from segue.protocols.kit.verbatim import VERBATIM
from segue.protocols.registry import find_protocol, get_protocol
from segue.protocols.shared_replies import ANSWERS, STOP_REASONS, reply_keys

Signed: TypeAlias = TextContent | ThinkingContent | ToolCall
Sign: TypeAlias = Callable[[Signed], str | None]
"""Returns the opaque text that is written in place of a signature of another model; None leaves it out."""
Delta: TypeAlias = TextDelta | ThinkingDelta | ToolCallDelta


_PLAIN: Final[tuple[object, ...]] = ("default", "standard", {"type": "default"}, {"type": "standard"}, [], {})
"""Values that say nothing: the common tier, and empty ones."""
_FIELD: Final = "@field"
_REFUSAL: Final = "refusal"


@final
class ReplyClient:
    """The client of one reply: its protocol, the model that it asked for, and whether that model wrote the reply."""

    def __init__(
        self,
        protocol: str,
        model: Model | str | None,
        policy: Policy,
        origin: AssistantMessage | None,
        sign: Sign | None,
    ) -> None:
        self.record: Final[Protocol] = get_protocol(protocol)
        self.form: Final[ReplyForm] = self.record.reply_form
        self.policy: Final[Policy] = policy
        self.origin: Final[AssistantMessage | None] = origin
        self.source: Final[Protocol | None] = None if origin is None else find_protocol(origin.protocol)
        """The protocol of the reply, None if it is unknown."""
        self.model_name: str | None = None
        """The name under which the client knows the model, None if the reply may name its own."""
        is_named = model is not None
        if model is None and origin is not None and origin.model:
            model = Model(origin.model, self.record.provider, protocol)
        self.endpoint: Final[Endpoint] = find_endpoint(protocol, model)
        if is_named:
            self.model_name = self.endpoint.model.id
        owner = Ownership(self.endpoint.model, policy.same_model, policy.routers)
        self.is_own: Final[bool] = origin is not None and owner.is_own(origin)
        """Whether the model that the client asked for wrote the reply: its signatures are valid there."""
        self.is_same_protocol: Final[bool] = origin is not None and origin.protocol == protocol
        self.is_same: Final[bool] = self.is_own and self.is_same_protocol
        self.sign: Final[Sign | None] = sign
        self.changes: list[Change] = []

    @property
    def rules(self) -> Rules:
        """The rules of the model that the client asked for."""
        return self.endpoint.rules

    def note(self, code: ChangeCode, path: Path, loss: Loss, detail: str = "") -> None:
        """Report a change.

        Raises:
            ProjectionRefused: the policy refuses it.
        """
        change = Change(code=code, path=path, loss=loss, detail=detail)
        self.changes.append(change)
        if code in self.policy.refuse or loss in self.policy.refuse:
            message = f"a client of {self.record.name} needs a change that the policy refuses: {change.sentence()}"
            message += " Remove it from Policy(refuse=...), or let another model answer."
            raise ProjectionRefused(message, report=Report(tuple(self.changes)))

    def signature(self, content: Signed, signature: str | None, path: Path) -> str | None:
        """Return the signature that the client gets: the model's own one, the caller's, or none."""
        if signature is None or self.is_own:
            return signature
        if self.sign is not None and (given := self.sign(content)) is not None:
            return given
        self.note(ChangeCode.SIGNATURE_REMOVED, path, Loss.OPAQUE if signature else Loss.NONE)
        return None

    def kept_extra(self, extra: Extra | None, path: Path, *, is_read: bool = False) -> Extra | None:
        """Return the part of an `extra` that the client may get; `is_read` if its content is shown in another way."""
        if extra is None or self.is_same:
            return extra
        kept = kept_extra(extra, self.record.name, self.rules, same_provider=False) if self.is_same_protocol else None
        if not is_read and (lost := {**lost_fields(extra, kept), **refusal_in(extra, kept)}):
            self.note(ChangeCode.EXTRA_REMOVED, path, *removal_of(lost))
        return kept

    def note_reply_fields(self, message: AssistantMessage, shown: AbstractSet[str]) -> None:
        """Report what only the reply of another protocol has a place for; `HOUSEKEEPING` says nothing of the answer.

        `shown` are the names of what the client's protocol has a place for too.
        """
        lost: dict[str, object] = {}
        raw, client, protocol = message.raw_stop_reason, self.record.name, message.protocol
        if any(raw == words.get(protocol, ...) and client not in words for words in STOP_REASONS):
            lost["stop_reason"] = raw
        usage, read = message.usage, reply_keys(protocol)
        found = lost_replies(message)
        for entry in (message.extra or {}).get(REPLY, {}).values():
            _note_others(object_of(entry), read, found)
        if usage is not None and usage.extra is not None and protocol != client:
            found |= {name: value for name, value in usage.extra.get(protocol, EMPTY).items() if name not in read}
        lost |= {name: value for name, value in found.items() if name not in shown and value and value not in _PLAIN}
        if usage is not None and (usage.reasoning or usage.cache_read or usage.cache_write):
            counts = {name: getattr(usage, name) for name in sorted(missing_usage(client))}
            lost |= {f"usage.{name}": count for name, count in counts.items() if count}
        if lost:
            self.note(ChangeCode.EXTRA_REMOVED, ("extra",), *removal_of(lost))

    def kept_first(self, extra: Extra | None) -> Extra | None:
        """Keep what the beginning of a part has of this protocol, if the model that the client asked for wrote it."""
        return extra if self.is_same else None


def _note_others(entry: Block, read: AbstractSet[str], found: dict[str, object], name: str = "") -> None:
    """Find what else a reply had next to the message, and further answers; `entry` is one of `kit.json_patch`."""
    for part, inside in entry.items():
        if part == "add":
            found |= {key: value for key, value in object_of(inside).items() if key not in read}
        elif part in ("in", "at"):
            for key, inner in object_of(inside).items():
                _note_others(object_of(inner), read, found, key if part == "in" else name)
        elif part == "more" and name in ANSWERS.values():
            found[name] = inside


def refusal_in(extra: Extra | None, kept: Extra | None = None) -> Mapping[str, object]:
    """Return the mark of a text that is a refusal, if it is not among what is kept."""
    for protocol, part in (extra or {}).items():
        choice = object_of(object_of(part.get(VERBATIM)).get(_FIELD))
        if choice.get("to") == _REFUSAL and protocol not in (kept or {}):
            return {_REFUSAL: "the text is one"}
    return {}


@final
class Parts:
    """The parts that the client was shown, and the indexes of open ones; parts are numbered as they begin."""

    __slots__ = ("_count", "content", "places")

    def __init__(self) -> None:
        self.content: dict[int, AssistantContent] = {}
        self.places: dict[int, int] = {}
        """Of open parts: the given index -> the index for the client."""
        self._count = 0

    def add(self) -> int:
        """Begin a part that the given reply does not have."""
        self._count += 1
        return self._count - 1

    def open(self, index: int) -> int:
        """Begin a part."""
        place = self.places[index] = self.add()
        return place

    def is_open(self, index: int) -> bool:
        """Whether a part was begun."""
        return index in self.places

    def close(self, index: int) -> int:
        """End a part, which may not have begun yet."""
        place = self.places.pop(index, None)
        return self.add() if place is None else place

    def moved(self, event: Delta) -> Delta:
        """Return a delta with the index for the client."""
        place = self.places.get(event.index)
        if place is None:
            place = self.open(event.index)
        if place == event.index:
            return event
        return type(event)(index=place, delta=event.delta)

    def add_text(self, text: str, out: list[Event]) -> None:
        """Add a separate text."""
        place, content = self.add(), TextContent(text=text)
        self.content[place] = content
        out += (TextStart(index=place), TextDelta(index=place, delta=text), TextEnd(index=place, content=content))

    def whole(self) -> tuple[AssistantContent, ...]:
        """Return all finished parts, in order."""
        return tuple(self.content[place] for place in sorted(self.content))
