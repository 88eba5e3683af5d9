"""What became of a case: whether its words arrived, in order, in the right places, and what the client was answered."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast, final

import msgspec

from segue.calls.reading import Call
from segue.conversation.messages import AssistantMessage, Message, StopReason
from segue.protocols.registry import get_protocol
from segue.testing.conformance.cases import AskedSettings, Expectation

_STATE: Final = re.compile(r"ZW11A[A-Za-z0-9+/=_-]{40,}")
"""The emulator's signatures: base64 of a fixed beginning."""
_JSON_MODES: Final = frozenset(("json_object", "application/json"))
_ROLES: Final = {"toolResult": "tool"}
FAILING: Final = ("cut-after", "fail-after")
"""The fields of a step whose stream breaks off."""
_SEVERAL_WORDS: Final = 20
"""From so many words on, a stream has to arrive in pieces."""


@final
class Received(NamedTuple):
    """A request that reached the provider."""

    call: Call
    body: Mapping[str, Any]


def leaves(value: object) -> Iterator[str]:
    """Yield the keys and values of JSON as texts, in order; a text that is an object in JSON is also read."""
    if isinstance(value, Mapping):
        for key, each in cast("Mapping[str, object]", value).items():
            yield key
            yield from leaves(each)
    elif isinstance(value, (list, tuple)):
        for each in cast("Sequence[object]", value):
            yield from leaves(each)
    elif isinstance(value, str):
        yield value
        if value.startswith("{"):
            try:
                yield from leaves(msgspec.json.decode(value))
            except msgspec.DecodeError:
                return
    elif value is not None:
        yield str(value)


def state_of(reply: bytes) -> frozenset[str]:
    """Return the signatures in a reply of the scripted provider."""
    return frozenset(_STATE.findall(reply.decode("utf-8", "replace")))


def find_losses(
    expected: Expectation, wire: str, received: Received, earlier: Sequence[Received], state: Collection[str]
) -> list[str]:
    """List what the provider did not receive as it was sent on a wire.

    `earlier` are the requests before it, whose content a request that names the reply before it does not repeat.
    `state` are the signatures that have to be there again.
    """
    is_continued = received.body.get("previous_response_id") is not None
    chain = [*(earlier if is_continued else ()), received]
    texts = [text for each in chain for text in leaves(each.body)]
    turns = [text for each in chain for text in leaves(each.body.get(get_protocol(each.call.protocol).turns_key or ""))]
    messages = [
        message for each in chain if each.call.prompt is not None for message in each.call.prompt.context.messages
    ]
    parts = [part for part in expected.kept if not part.own or received.call.protocol == wire]
    missing = {part.word for part in parts if not any(part.word in text for text in texts)}
    lost = [f"lost: {part.part}" for part in parts if part.word in missing]
    lost += [
        f"another role: {part.part}"
        for part in parts
        if part.role is not None and part.word not in missing and part.role not in _roles(part.word, messages)
    ]
    places = [_place(word, turns) for word in expected.order if word not in missing]
    if places != sorted(places):
        lost.append("another order of turns")
    lost += _lost_pairs(expected.pairs, messages, missing)
    if not is_continued and (count := sum(not any(token in text for text in texts) for token in state)):
        lost.append(f"lost: {count} of {len(state)} signatures")
    return [*dict.fromkeys(lost), *_lost_settings(expected.asked, received, texts)]


def _place(word: str, turns: Sequence[str]) -> int:
    return next((at for at, text in enumerate(turns) if word in text), -1)


def _roles(word: str, messages: Iterable[Message]) -> set[str]:
    return {
        _ROLES.get(message.role, message.role)
        for message in messages
        if any(word in text for text in leaves(msgspec.to_builtins(message.content)))
    }


def _lost_pairs(pairs: Iterable[tuple[str, str]], messages: Sequence[Message], missing: set[str]) -> Iterator[str]:
    calls = [
        piece for each in messages if each.role == "assistant" for piece in each.content if piece.kind == "toolCall"
    ]
    results = [each for each in messages if each.role == "toolResult"]
    for called, answered in pairs:
        ids = {call.id for call in calls if any(called in text for text in leaves(call.arguments))}
        found = {
            result.tool_call_id
            for result in results
            if any(answered in text for text in leaves(msgspec.to_builtins(result.content)))
        }
        if not {called, answered} & missing and not ids & found:
            yield "a result belongs to another call"


def _lost_settings(asked: AskedSettings, received: Received, texts: Sequence[str]) -> Iterator[str]:
    assert received.call.prompt is not None, "only requests for a reply are judged"
    options = received.call.prompt.options
    if asked.json and options.output_schema is None and not _JSON_MODES.intersection(texts):
        yield "lost: JSON mode"
    for name in ("tool_choice", "max_tokens", "temperature"):
        wanted: object = getattr(asked, name)
        if wanted is not None and getattr(options, name) != wanted:
            yield f"lost: {name}"


def find_reply_faults(
    reply: AssistantMessage, step: Mapping[str, Any], *, pieces: Sequence[str] | None = None
) -> list[str]:
    """List how a reply differs from what the scripted provider answered; `pieces` are the texts of a stream."""
    text, calls = str(step.get("text") or ""), cast("list[dict[str, Any]]", step.get("calls", []))
    if pieces is not None and any(key in step for key in FAILING):
        is_shown = reply.stop_reason in (StopReason.ERROR, StopReason.ABORTED) or reply.text() == text
        return [] if is_shown else ["the reply broke off, and the stream ends as if it were complete"]
    faults: list[str] = []
    if reply.text() != text:
        faults.append(f"the reply has the text {reply.text()[:60]!r}, not {text[:60]!r}")
    received = [(call.name, call.arguments) for call in reply.tool_calls()]
    if received != [(call["name"], call["arguments"]) for call in calls]:
        faults.append(f"the reply has {len(received)} calls that are not the {len(calls)} that were made")
    ended = StopReason.LENGTH if step.get("too-long") else StopReason.TOOL_USE if calls else StopReason.STOP
    if reply.stop_reason != ended:
        faults.append(f"the reply ends with {reply.stop_reason.value}, not {ended.value}")
    if pieces is not None and "".join(pieces) != text:
        faults.append("the pieces of the stream are not the whole text")
    if pieces is not None and len(pieces) == 1 and text.count(" ") >= _SEVERAL_WORDS:
        faults.append("the stream arrived as one piece")
    return faults
