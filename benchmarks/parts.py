"""Where the cost of a cold request lies: in looking the history over, in the passes, in writing the body.

Two rows of each wire say how low it could go. A loop over the history that asks each message and each piece for nothing
but its class is the least that anything costs which looks at all of it. `msgspec.to_builtins` of the finished body
makes its dicts and lists once more, in C and without a question: the least that plain values cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec
import orjson
from figures import Figure
from measure import Effort, compare
from passages import PASSAGES, Journey, make_journey

from segue.conversation.arguments import encode_arguments
from segue.conversation.content import TextContent, ToolCall
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage
from segue.projection.projector import project
from segue.projection.workspace.ownership import Ownership
from segue.projection.workspace.scan import scan_messages
from segue.protocols.api import resolve_endpoint
from segue.protocols.registry import get_protocol
from segue.request import prepare, prompt_of

_ARGUMENTS_AS_TEXT: Final = frozenset({"openai-chat", "openai-responses"})
_SEALS: Final = ("text_signature", "thinking_signature", "thought_signature")
_READ_SEAL: Final = msgspec.json.Decoder(dict[str, object]).decode


def measure_parts(effort: Effort, length: int) -> list[Figure]:
    """Measure the parts of every passage."""
    return [figure for passage in PASSAGES for figure in _measure_passage(make_journey(passage, length), effort)]


def _measure_passage(journey: Journey, effort: Effort) -> Iterator[Figure]:
    passage, body = journey.passage, journey.body
    parts = _parts_of(journey)
    compared = compare("orjson.dumps", {**parts, "orjson.dumps": lambda: orjson.dumps(body)}, effort)
    for part in parts:
        ratio = compared.ratio(part)
        yield Figure("", f"{passage.name}: {part}", "times", ratio.best, ratio.spread())
    control = compared.control()
    what = f"{passage.name}: orjson.dumps / itself"
    yield Figure("", what, "times", control.best, control.spread(), note="the same thing twice")


def _parts_of(journey: Journey) -> dict[str, Callable[[], object]]:
    context, target, body = journey.context, journey.passage.target, journey.body
    messages = context.messages
    endpoint, codec, home = resolve_endpoint(target), get_protocol(target.protocol), Ownership(target, None)
    prompt = prompt_of(prepare(context, target).projection, endpoint)
    parts: dict[str, Callable[[], object]] = {
        "look the history over": lambda: scan_messages(messages, home),
        "project it, looking included": lambda: project(context, target),
        "write the body": lambda: codec.encode_request(prompt, endpoint),
        "a loop that asks for classes alone": lambda: _ask_for_classes(messages),
        "the body's dicts and lists, made in C": lambda: msgspec.to_builtins(body),
    }
    pieces = [piece for message in prompt.context.messages for piece in message.content]
    calls = [piece for piece in pieces if piece.kind == "toolCall"]
    if target.protocol in _ARGUMENTS_AS_TEXT:
        parts["of writing: arguments as JSON"] = lambda: [encode_arguments(call.arguments) for call in calls]
    seals = [str(seal) for piece in pieces for name in _SEALS if (seal := getattr(piece, name, None))]
    seals = [seal for seal in seals if seal.startswith("{")]
    if seals:
        parts["of writing: seals read"] = lambda: [_READ_SEAL(seal) for seal in seals]
    return parts


def _ask_for_classes(messages: Sequence[Message]) -> int:
    found = 0
    for message in messages:
        if type(message) is ToolResultMessage:
            found += 1
        elif type(message) is AssistantMessage:
            found += 2
        for piece in message.content:
            if type(piece) is TextContent:
                found += 1
            elif type(piece) is ToolCall:
                found += 2
    return found
