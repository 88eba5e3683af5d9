"""Ask `check` whether the target accepts what would be written back in the form in which it was received.

Facts:
- A codec writes a decoded body back unchanged, valid or not: `tool_use.input` that is a string, an unknown role, a tool
  without a name. The provider refuses it every time it is sent.       (koda #501; vercel/ai #19274; openclaw #125873)
- `check` is the only place that knows what a provider refuses, so a received form is kept only if `check` accepts it.

A small request is made of the value alone, once as received and once in the default format. If `check` finds
something in the first that it does not find in the second, the received form is refused. What it finds in both, for
example that the request does not end with the user, does not concern the value. A small request answers only what no
conversation can change: what it refuses of the options is asked about again with the conversation that is sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import AnyContent, Extra, SystemContent, TextContent, ToolCall
from segue.conversation.context import Context, Options, Prompt, Tool
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from segue.errors import SegueError
from segue.models.model import Model
from segue.models.origin import new_assistant_message
from segue.protocols.counterevidence import graded
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.codec import Endpoint, Violation
from segue.protocols.kit.json_patch import form_names
from segue.protocols.kit.json_values import Block, is_object, same
from segue.protocols.kit.limits import BESIDE
from segue.protocols.kit.protocol import Protocol
from segue.protocols.kit.verbatim import VERBATIM, data_of, for_new_request, for_same_model

_HI: Final = UserMessage.of("hi")
_TEXT: Final = TextContent(text="x")
_NO_OPTIONS: Final = Options()
_NOT_ENCODED: Final = Violation(CheckCode.BODY_NOT_JSON, (), "the protocol cannot express it; remove it")


class Acceptance:
    """Judges single values for one target."""

    __slots__ = ("_endpoint", "_forms", "_model", "_protocol")

    def __init__(self, protocol: Protocol, endpoint: Endpoint) -> None:
        self._protocol = protocol
        self._endpoint = endpoint
        self._model: Model = endpoint.model
        self._forms = protocol.replay.forms

    def has_form(self, extra: Extra | None) -> bool:
        """Whether an `extra` holds a received form that may be refused."""
        part = extra.get(self._protocol.name) if extra is not None else None
        patch = part.get(VERBATIM) if part is not None else None
        if not isinstance(patch, (dict, Mapping)):
            return False
        return any(name not in self._forms for name in form_names(cast("Mapping[str, object]", patch)))

    def without_form(self, extra: Extra | None) -> Extra | None:
        """Return an `extra` without the received form; its data stay."""
        part = extra.get(self._protocol.name) if extra is not None else None
        if extra is None or part is None or VERBATIM not in part:
            return extra
        rest = {key: value for key, value in part.items() if key != VERBATIM}
        others = {key: value for key, value in extra.items() if key != self._protocol.name}
        return ({**others, self._protocol.name: rest} if rest else others) or None

    # -- messages ------------------------------------------------------------------------------------------------------

    def accepted(self, message: Message) -> Message:
        """Return a message without the received forms that the target refuses; the same object if there are none."""
        positions = [at for at, piece in enumerate(message.content) if self.has_form(piece.extra)]
        is_own = self.has_form(message.extra)
        if not positions and not is_own:
            return message
        plain = self._plain(message, positions, own=is_own)
        if not self._adds(_around(message, self._model), _around(plain, self._model)):
            return message
        for at in positions:
            if self._adds(_around(_with_piece(plain, message, at), self._model), _around(plain, self._model)):
                message = _with_piece(message, plain, at)
        if is_own:
            formed = replace(plain, extra=message.extra)
            if self._adds(_around(formed, self._model), _around(plain, self._model)):
                message = replace(message, extra=plain.extra)
        return message

    def _plain(self, message: Message, positions: list[int], *, own: bool) -> Message:
        content: list[AnyContent] = list(message.content)
        for at in positions:
            content[at] = replace(content[at], extra=self.without_form(content[at].extra))
        extra = self.without_form(message.extra) if own else message.extra
        return replace(message, content=tuple(content), extra=extra)

    def refuses_block(self, message: Message, piece: AnyContent) -> bool:
        """Whether the target refuses a native block of its own protocol in such a message."""
        if message.role == "system" and self._endpoint.rules.system_messages == "none":
            # It becomes part of the system prompt or of a user's turn.
            return self.refuses_prompt(cast("SystemContent", piece)) or self.refuses_block(_HI, piece)
        plain = replace(message, content=(_TEXT,), extra=None)
        return self._adds(_around(replace(plain, content=(_TEXT, piece)), self._model), _around(plain, self._model))

    def refuses_prompt(self, piece: SystemContent, default: SystemContent | None = None) -> bool:
        """Whether the target refuses in the system prompt what it accepts in another form, or (None) left out."""
        plain = Context(system_prompt=(_TEXT,) if default is None else (_TEXT, default), messages=(_HI,))
        return self._adds(replace(plain, system_prompt=(_TEXT, piece)), plain)

    def accepted_prompt(self, piece: SystemContent) -> SystemContent:
        """Return a piece of the system prompt without a received form that the target refuses."""
        if not self.has_form(piece.extra):
            return piece
        plain = replace(piece, extra=self.without_form(piece.extra))
        return plain if self.refuses_prompt(piece, plain) else piece

    # -- tools and options ---------------------------------------------------------------------------------------------

    def refuses_tool(self, tool: Tool, default: Tool | None) -> bool:
        """Whether the target refuses a tool that it accepts in another form, or (None) that may be left out.

        A cache mark does not count: it moves to another tool.
        """
        plain = () if default is None else (default,)
        tool = tool if tool.cache_mark is None else replace(tool, cache_mark=None)
        return self._adds(Context(messages=(_HI,), tools=(tool,)), Context(messages=(_HI,), tools=plain))

    def refused_keys(
        self, options: Options, tools: tuple[Tool, ...], conversation: Callable[[], Context]
    ) -> Mapping[str, str]:
        """Return the keys of the `extra` of options that the target refuses, each with the reason that `check` gives.

        A conversation of one word is asked about first: nearly all options are accepted with it. What is refused there
        may be a matter of the conversation, as JSON mode is that needs the word "json", so it is asked about again with
        the `conversation` itself.
        """
        name = self._protocol.name
        kept = dict((for_new_request(options.extra, name) or {}).get(name, {}))
        if not kept:
            return {}
        suspected = self._refused_among(kept, kept, options, Context(messages=(_HI,), tools=tools))
        return self._refused_among(kept, suspected, options, conversation()) if suspected else suspected

    def unsent_fields(self, options: Options, tools: tuple[Tool, ...]) -> Mapping[str, object]:
        """Return the fields of the `extra` of options that the codec does not write with these options.

        A codec leaves out what belongs to an option that was removed or changed, or to models of another kind.
        """
        name = self._protocol.name
        data = data_of(options.extra, name)
        if not data:
            return {}
        options = replace(options, extra=for_new_request(options.extra, name))
        prompt = Prompt(context=Context(messages=(_HI,), tools=tools), options=options, model=self._model.id)
        try:
            body = self._protocol.encode_request(prompt, self._endpoint)
        except (SegueError, TypeError, ValueError, RecursionError):
            return {}
        return _missing(data, body)

    def received_options(self, options: Options, tools: tuple[Tool, ...]) -> Extra | None:
        """Return the `extra` of options in the form that was received for this model, unless the target refuses it."""
        name, model = self._protocol.name, self._model
        formed = for_same_model(options.extra, name, (model.id, f"{model.provider}/{model.id}"))
        if formed is options.extra:
            return formed
        context = Context(messages=(_HI,), tools=tools)
        found = _counted(self._violations(context, replace(options, extra=formed)))
        if found:
            plain = replace(options, extra=for_new_request(options.extra, name))
            found -= _counted(self._violations(context, plain))
        return options.extra if found else formed

    def _refused_among(
        self, given: Block, suspected: Iterable[str], options: Options, context: Context
    ) -> Mapping[str, str]:
        """Return those of some keys that `check` refuses in a conversation, with its reasons."""
        name, kept = self._protocol.name, given
        found = self._violations(context, replace(options, extra={name: kept}))
        plain = _counted(self._violations(context, replace(options, extra=None))) if found else Counter[str]()
        refused: dict[str, str] = {}
        for key in sorted(suspected):
            if not _counted(found) - plain:
                break
            rest = {other: value for other, value in kept.items() if other != key}
            without = self._violations(context, replace(options, extra={name: rest}))
            if codes := _counted(found) - _counted(without):
                refused[key] = next(violation.message for violation in found if violation.code in codes)
                kept, found = rest, without
        return refused

    def context_extra(self, context: Context, tools: tuple[Tool, ...]) -> Extra | None:
        """Return the `extra` of a context, sent with these tools, without a body form that the target refuses."""
        if not self.has_form(context.extra):
            return context.extra
        plain = self.without_form(context.extra)
        given, default = (
            replace(context, messages=(_HI,), tools=tools, extra=extra) for extra in (context.extra, plain)
        )
        return plain if self._adds(given, default) else context.extra

    # -- asking --------------------------------------------------------------------------------------------------------

    def _adds(self, context: Context, plain: Context) -> bool:
        """Whether `check` finds more in one request than in the other."""
        found = self._codes(context)
        return bool(found) and any(code not in BESIDE for code in found - self._codes(plain))

    def _codes(self, context: Context) -> Counter[str]:
        return _counted(self._violations(context, _NO_OPTIONS))

    def _violations(self, context: Context, options: Options) -> Sequence[Violation]:
        prompt = Prompt(context=context, options=options, model=self._model.id)
        try:
            body = self._protocol.encode_request(prompt, self._endpoint)
        except (SegueError, TypeError, ValueError, RecursionError):
            return (_NOT_ENCODED,)
        return tuple(graded(self._protocol.check(body, self._endpoint), self._endpoint))


def _counted(violations: Iterable[Violation]) -> Counter[str]:
    return Counter(violation.code for violation in violations)


def _missing(data: Block, wire: Block) -> dict[str, object]:
    """Return the fields that a wire object does not have."""
    missing: dict[str, object] = {}
    for key, value in data.items():
        held = wire.get(key)
        if is_object(value) and is_object(held):
            if inner := _missing(value, held):
                missing[key] = inner
        elif value is not None and not same(value, held):
            missing[key] = value
    return missing


def _with_piece(message: Message, source: Message, at: int) -> Message:
    """Return a message with the `extra` of one piece of another message."""
    content: list[AnyContent] = list(message.content)
    content[at] = replace(content[at], extra=source.content[at].extra)
    return replace(message, content=tuple(content))


def _around(message: Message, model: Model) -> Context:
    """Build a short conversation that can contain a message."""
    match message.role:
        case "user":
            return Context(messages=(message,))
        case "assistant":
            return Context(messages=(_HI, message, *map(_answer, message.tool_calls()), _HI))
        case "toolResult":
            return Context(messages=(_HI, _call(message, model), message))
        case "system":
            return Context(messages=(_HI, message, _HI))


def _answer(call: ToolCall) -> ToolResultMessage:
    return ToolResultMessage(tool_call_id=call.id, tool_name=call.name, content=(_TEXT,))


def _call(result: ToolResultMessage, model: Model) -> AssistantMessage:
    call = ToolCall(id=result.tool_call_id, name=result.tool_name or "tool")
    return new_assistant_message(model, content=(_TEXT, call))
