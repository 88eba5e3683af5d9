"""The parts of the time of a cold request: scanning the history, projection, encoding.

Two rows for each protocol are lower bounds. A loop over the history that only checks the class of each message and
content is the least that any scan needs. `msgspec.to_builtins` of the finished body makes its dicts and lists again, in
C: the least that any encoder to dicts and lists needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec
import orjson
from cases import CASES, PreparedCase, prepare_case
from figures import Figure
from measure import Effort, compare

from segue import prepare
from segue.conversation.arguments import encode_arguments
from segue.conversation.content import TextContent, ToolCall
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage
from segue.projection.projector import project, prompt_of
from segue.projection.workspace.scan import scan_messages
from segue.protocols.api import resolve_endpoint
from segue.protocols.registry import get_protocol

_ARGUMENTS_AS_TEXT: Final = frozenset({"openai-chat", "openai-responses"})
_SIGNATURE_FIELDS: Final = ("text_signature", "thinking_signature", "thought_signature")
_READ_SIGNATURE: Final = msgspec.json.Decoder(dict[str, object]).decode


def measure_parts(effort: Effort, length: int) -> list[Figure]:
    """Measure the parts of every case."""
    return [figure for case in CASES for figure in _measure_case(prepare_case(case, length), effort)]


def _measure_case(prepared: PreparedCase, effort: Effort) -> Iterator[Figure]:
    case, body = prepared.case, prepared.body
    parts = _parts_of(prepared)
    compared = compare("orjson.dumps", {**parts, "orjson.dumps": lambda: orjson.dumps(body)}, effort)
    for part in parts:
        ratio = compared.ratio(part)
        yield Figure("", f"{case.name}: {part}", "times", ratio.best, ratio.spread())
    control = compared.control()
    what = f"{case.name}: orjson.dumps / itself"
    yield Figure("", what, "times", control.best, control.spread(), note="the same code twice: measurement error")


def _parts_of(prepared: PreparedCase) -> dict[str, Callable[[], object]]:
    context, target, body = prepared.context, prepared.case.target, prepared.body
    messages = context.messages
    endpoint, codec = resolve_endpoint(target), get_protocol(target.protocol)
    prompt = prompt_of(prepare(context, target).projection, endpoint)
    parts: dict[str, Callable[[], object]] = {
        "scan the history": lambda: scan_messages(messages),
        "project it, including the scan": lambda: project(context, target),
        "encode the body": lambda: codec.encode_request(prompt, endpoint),
        "lower bound: a loop that only checks classes": lambda: _check_classes(messages),
        "lower bound: the dicts and lists of the body, made in C": lambda: msgspec.to_builtins(body),
    }
    pieces = [piece for message in prompt.context.messages for piece in message.content]
    calls = [piece for piece in pieces if piece.kind == "toolCall"]
    if target.protocol in _ARGUMENTS_AS_TEXT:
        parts["part of encoding: arguments as JSON"] = lambda: [encode_arguments(call.arguments) for call in calls]
    signatures = [
        str(signature) for piece in pieces for name in _SIGNATURE_FIELDS if (signature := getattr(piece, name, None))
    ]
    signatures = [signature for signature in signatures if signature.startswith("{")]
    if signatures:
        parts["part of encoding: signatures parsed"] = lambda: [_READ_SIGNATURE(signature) for signature in signatures]
    return parts


def _check_classes(messages: Sequence[Message]) -> int:
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
