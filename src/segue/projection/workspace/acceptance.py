"""Ask `check` whether the target accepts what would be written back in the form in which it was received.

Facts this file rests on:
- A codec writes a decoded body back unchanged, valid or not: `tool_use.input` that is a string, an unknown role, a tool
  without a name. The provider refuses it every time it is sent.       (koda #501; vercel/ai #19274; openclaw #125873)
- `check` is the only place that knows what a provider refuses, so a received form is kept only if `check` accepts it.

A small request is made of the value alone, once as it was received and once in the default format. If `check` finds
something in the first that it does not find in the second, the received form is refused. What it finds in both, for
example that the request does not end with the user, is no matter of the value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import AnyContent, Extra, SystemContent, TextContent, ToolCall
from segue.conversation.context import Context, Options, Prompt, Tool
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from segue.errors import SegueError
from segue.models.model import Model
from segue.models.origin import new_assistant_message
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.counterevidence import graded
from segue.protocols.kit.json_patch import form_names
from segue.protocols.kit.limits import BESIDE
from segue.protocols.kit.protocol import Protocol
from segue.protocols.kit.verbatim import VERBATIM, for_new_request

_HI: Final = UserMessage.of("hi")
_JSON: Final = "JSON"
"""A system prompt with the word that JSON mode needs."""
_TEXT: Final = TextContent(text="x")
_NO_OPTIONS: Final = Options()


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
        """Give an `extra` without the received form; its data stay."""
        part = extra.get(self._protocol.name) if extra is not None else None
        if extra is None or part is None or VERBATIM not in part:
            return extra
        rest = {key: value for key, value in part.items() if key != VERBATIM}
        others = {key: value for key, value in extra.items() if key != self._protocol.name}
        return ({**others, self._protocol.name: rest} if rest else others) or None

    # -- messages ------------------------------------------------------------------------------------------------------

    def accepted(self, message: Message) -> Message:
        """Give a message without the received forms that the target refuses; the same object if there are none."""
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
        """Give a piece of the system prompt without a received form that the target refuses."""
        if not self.has_form(piece.extra):
            return piece
        plain = replace(piece, extra=self.without_form(piece.extra))
        return plain if self.refuses_prompt(piece, plain) else piece

    # -- tools and options ---------------------------------------------------------------------------------------------

    def refuses_tool(self, tool: Tool, default: Tool | None) -> bool:
        """Whether the target refuses a tool that it accepts in another form, or (None) that may be left out.

        A cache mark is no reason: it moves to another tool.
        """
        plain = () if default is None else (default,)
        tool = tool if tool.cache_mark is None else replace(tool, cache_mark=None)
        return self._adds(Context(messages=(_HI,), tools=(tool,)), Context(messages=(_HI,), tools=plain))

    def refused_keys(
        self, options: Options, tools: tuple[Tool, ...], prompt: str | tuple[SystemContent, ...] | None = None
    ) -> frozenset[str]:
        """Give the keys of the `extra` of options that the target refuses beside these tools and this system prompt."""
        name = self._protocol.name
        kept = dict((for_new_request(options.extra, name) or {}).get(name, {}))
        has_word = bool(kept) and self._endpoint.rules.json_word and _names_json(prompt)
        context = Context(system_prompt=_JSON if has_word else None, messages=(_HI,), tools=tools)
        found = self._codes(context, replace(options, extra={name: kept})) if kept else Counter[str]()
        plain = self._codes(context, replace(options, extra=None)) if found else found
        for key in sorted(kept):
            if not found - plain:
                break
            rest = {other: value for other, value in kept.items() if other != key}
            without = self._codes(context, replace(options, extra={name: rest}))
            if found - without:
                kept, found = rest, without
        given = (options.extra or {}).get(name, {})
        return frozenset(given.keys() - kept.keys())

    def context_extra(self, context: Context, tools: tuple[Tool, ...]) -> Extra | None:
        """Give the `extra` of a context, sent with these tools, without a form of the body that the target refuses."""
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

    def _codes(self, context: Context, options: Options = _NO_OPTIONS) -> Counter[str]:
        prompt = Prompt(context=context, options=options, model=self._model.id)
        try:
            body = self._protocol.encode_request(prompt, self._endpoint)
        except (SegueError, TypeError, ValueError, RecursionError):
            return Counter({"encode": 1})
        found = graded(self._protocol.check(body, self._endpoint), self._endpoint)
        return Counter(violation.code for violation in found)


def _with_piece(message: Message, source: Message, at: int) -> Message:
    """Give a message with the `extra` of one piece of another message."""
    content: list[AnyContent] = list(message.content)
    content[at] = replace(content[at], extra=source.content[at].extra)
    return replace(message, content=tuple(content))


def _names_json(prompt: str | tuple[SystemContent, ...] | None) -> bool:
    texts = (prompt,) if isinstance(prompt, str) else (each.text for each in prompt or () if each.kind == "text")
    return any("json" in text.lower() for text in texts)


def _around(message: Message, model: Model) -> Context:
    """Give a short conversation in which a message can stand."""
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
