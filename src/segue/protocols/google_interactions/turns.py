"""Steps of the model's turn: thoughts, outputs, calls, and steps that only this protocol has.

Facts:
- A reply is a list of steps; adjacent steps of the model form one turn.    (google-genai 3.1.0, read 2026-11-17)
- A `thought` has a `signature` and a `summary` of texts or images, both optional; a signature covers the calls after
  it, which have none themselves.                                                                      (the same)
- A `model_output` has a list of contents, and an `error` if it failed.                                  (the same)
- `arguments` of a call is an object.                                                                    (the same)

Choices kept in `extra` (see `kit.verbatim`); the steps of a reply are steps of the next request, so they have them too:
`turn`, "same" for a content in the `model_output` of the content before it. Default "new". The first content of a step
keeps the other keys of the step, under `step`. `place`, "model_output" or "step", where native content of that type
is in the other one by default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.arguments import read_arguments
from segue.conversation.content import AssistantContent, Extra, NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.messages import Diagnostic
from segue.errors import EncodeError
from segue.protocols.google_interactions.content import CONTENTS, native_step
from segue.protocols.google_interactions.rules import PROTOCOL
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import EMPTY, Block, Wire, detached, is_object, kind_of, list_of, object_of
from segue.protocols.kit.reading import native_block, text_of
from segue.protocols.kit.sources import objects_in
from segue.protocols.kit.verbatim import choose, chosen, keep, restore

OUTPUT: Final = "model_output"
_STEP: Final = "step"
_PLACE: Final = "place"
_DEFAULT_STEP: Final[Block] = {"type": OUTPUT}
_THOUGHT_KEYS: Final = frozenset({"signature", "summary"})
_NO_NAMES: Final[Mapping[str, str]] = {}


# -- reading -----------------------------------------------------------------------------------------------------------


class TurnReader:
    """Reads the steps of turns in order."""

    __slots__ = ("diagnostics", "is_reply", "tool_names")

    def __init__(self, tool_names: Mapping[str, str] = _NO_NAMES, *, is_reply: bool = False) -> None:
        self.diagnostics: list[Diagnostic] = []
        self.is_reply: bool = is_reply
        self.tool_names: Mapping[str, str] = tool_names

    def read_all(self, steps: Iterable[Block]) -> tuple[AssistantContent, ...]:
        """Read a list of steps."""
        return tuple([piece for step in steps for piece in self.read(step)])

    def read(self, step: Block) -> Sequence[AssistantContent]:
        """Read one step; an output may hold several contents."""
        match kind_of(step):
            case "model_output":
                return _read_output(step)
            case "thought":
                return (_read_thought(step),)
            case "function_call":
                return (self._read_call(step),)
            case kind if kind in CONTENTS:  # a content that is where a step belongs goes back there
                extra = keep(PROTOCOL, EMPTY, EMPTY, choices=choose(_PLACE, OUTPUT, _STEP))
                return (replace(native_step(step), extra=extra),)
            case _:
                return (native_step(step),)

    def _read_call(self, step: Block) -> AssistantContent:
        call_id, name = step.get("id", ""), step.get("name")
        if not isinstance(call_id, str) or not (call_id or self.is_reply) or not isinstance(name, str):
            return native_step(step)  # a call of a reply may lack its id
        parsed = read_arguments(step.get("arguments"))
        if parsed.diagnostic is not None:
            self.diagnostics.append(parsed.diagnostic)
        call = ToolCall(
            id=call_id,
            name=self.tool_names.get(name, name),
            arguments=parsed.arguments,
            arguments_text=parsed.text,
        )
        if len(step) == 4 and isinstance(step.get("arguments"), dict):
            return call
        default: Wire = {"type": "function_call", "id": call_id, "name": name, "arguments": parsed.arguments}
        extra = keep(PROTOCOL, step, default, ("arguments", "id"))
        return call if extra is None else replace(call, extra=extra)


def _read_thought(step: Block) -> ThinkingContent:
    signature, given = text_of(step.get("signature")) or None, step.get("summary")
    texts = [text for part in objects_in(given) if (text := text_of(part.get("text"))) and part.get("type") == "text"]
    piece = ThinkingContent(thinking="\n\n".join(texts), thinking_signature=signature)
    extra = keep(PROTOCOL, step, _encode_thought(piece), _THOUGHT_KEYS)
    return piece if extra is None else replace(piece, extra=extra)


def _read_output(step: Block) -> Sequence[AssistantContent]:
    given = step.get("content")
    contents = list_of(given)
    if not contents or not all(is_object(content) for content in contents):
        return (native_step(step),)
    around: Wire = {key: value for key, value in step.items() if key != "content"}
    pieces: list[AssistantContent] = []
    choices: Block = EMPTY
    for content in cast("list[Block]", contents):
        received, default = Wire(), Wire()
        if not pieces and len(around) > 1:
            received[_STEP], default[_STEP] = around, _DEFAULT_STEP
        text = content.get("text")
        if content.get("type") == "text" and isinstance(text, str) and _STEP not in content:
            extra: Extra | None = None
            if len(content) > 2 or choices or received:
                received |= content
                default |= {"type": "text", "text": text}
                extra = keep(PROTOCOL, received, default, choices=choices)
            pieces.append(TextContent(text=text, extra=extra))
        else:
            native = native_step(content)
            choices = {**choices, **choose(_PLACE, _default_place(native), OUTPUT)}
            extra = keep(PROTOCOL, received, default, choices=choices)
            pieces.append(native if extra is None else replace(native, extra=extra))
        choices = choose("turn", "new", "same")
    return pieces


def _default_place(piece: NativeContent) -> str:
    """Return where native content is by default: an unknown type may be a step."""
    return OUTPUT if kind_of(piece.block) in CONTENTS else _STEP


# -- writing -----------------------------------------------------------------------------------------------------------


def write_turn(steps: list[Wire], content: Sequence[AssistantContent], endpoint: Endpoint) -> None:
    """Add the steps of a turn, in order.

    Raises:
        EncodeError: another protocol's block; its path begins with the index in the content.
    """
    contents: list[Wire] | None = None  # of the last step, if it is an output
    index = 0
    try:
        for index, piece in enumerate(content):  # noqa: B007 - the place of a failure
            if piece.kind == "text" or (piece.kind == "native" and is_in_output(piece)):
                contents = _write_content(piece, steps, contents)
                continue
            contents = None
            if piece.kind == "toolCall":
                steps.append(_encode_call(piece, endpoint))
            elif piece.kind == "thinking":
                steps.append(restore(_encode_thought(piece), piece.extra, PROTOCOL))
            else:
                steps.append(dict(native_block(PROTOCOL, piece)))
    except EncodeError as error:
        raise EncodeError(error.reason, path=(index, *error.path)) from error


def is_in_output(piece: NativeContent) -> bool:
    """Whether native content is written into an output, and not as a step."""
    return chosen(piece.extra, PROTOCOL, _PLACE, _default_place(piece)) == OUTPUT


def _write_content(piece: TextContent | NativeContent, steps: list[Wire], contents: list[Wire] | None) -> list[Wire]:
    """Write a content as an output, or into the output before it; gives the contents that the next one may join."""
    extra = piece.extra
    wire: Wire = {"type": "text", "text": piece.text} if piece.kind == "text" else {}
    joins = contents is not None and extra is not None and chosen(extra, PROTOCOL, "turn", "new") == "same"
    step: Wire = {"type": OUTPUT}
    if extra is not None:
        if not joins:
            wire[_STEP] = step
        restore(wire, extra, PROTOCOL)
        step = dict(object_of(wire.pop(_STEP, step)))
    if piece.kind == "native":
        wire = dict(native_block(PROTOCOL, piece))
    if contents is not None and joins:
        contents.append(wire)
        return contents
    contents = [wire]
    step["content"] = contents
    steps.append(step)
    return contents


def _encode_thought(piece: ThinkingContent) -> Wire:
    wire: Wire = {"type": "thought"}
    if piece.thinking_signature:
        wire["signature"] = piece.thinking_signature
    if piece.thinking:
        wire["summary"] = [{"type": "text", "text": piece.thinking}]
    return wire


def _encode_call(call: ToolCall, endpoint: Endpoint) -> Wire:
    arguments = call.arguments if isinstance(call.arguments, dict) else dict(call.arguments)
    if endpoint.owned:
        arguments = detached(arguments)
    wire: Wire = {"type": "function_call", "id": call.id, "name": call.name, "arguments": arguments}
    return wire if call.extra is None else restore(wire, call.extra, PROTOCOL)
