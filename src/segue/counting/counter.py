"""Count the tokens of messages, tools and options for one model.

A message has two sizes: what it counts for in every later request, and what it counts for more until the next user
message. Some providers drop the thinking of a finished tool cycle, and then it no longer counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import ceil
from typing import Final, TypeAlias, cast

import msgspec

from segue.conversation.content import AnyContent, FileContent, ImageContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Context, Options, Tool
from segue.conversation.messages import AssistantMessage, Message
from segue.counting.estimates import NOTHING_LEARNT, Calibration, Estimate, counted_input
from segue.counting.families import family_of
from segue.counting.media import count_pages, default_size, image_size
from segue.counting.text_estimates import bound_text, estimate_bytes
from segue.counting.token_family import TokenFamily
from segue.counting.upper_estimates import estimate_upper
from segue.models.model import Model

TextCounter: TypeAlias = Callable[[str], int]
"""A caller's own counter: the tokens of a text. It has to be pure: the same text, the same count."""

_OPAQUE_LENGTH: Final = 256
_TOKENS_PER_OPAQUE_CHARACTER: Final = 0.25
"""Long strings without spaces in native blocks are encrypted pages and the like: less is counted than for text."""
_BYTES_PER_TOKEN_OF_AUDIO: Final = 500
_BYTES_PER_TOKEN_OF_VIDEO: Final = 1000
_LEAST_OF_MEDIA: Final = 100
_ALTERNATIVES: Final = ("anyOf", "oneOf", "allOf")
_ENCODE: Final = msgspec.json.Encoder().encode
_NOT_FORCED: Final = ("auto", "none", None)
_PUNCTUATION: Final = b'{}[]":,'
_TO_SPACES: Final = bytes.maketrans(_PUNCTUATION, b" " * len(_PUNCTUATION))
_ANCHOR: Final = (0.6, 1.6)
_ANCHOR_MORE: Final = 1000
"""A usage outside these factors of the estimate does not count this history, unless it has at most so many tokens more:
these are a prompt of the provider's own."""
_NEAR: Final = (0.5, 1.6)
"""A usage that exceeds the estimate by so many times the tokens of a forced choice includes one."""
_SCHEMA_MORE: Final = 1.25
_STEP: Final = 64
"""GPT-5 rounds its count of reasoning tokens down to multiples of this (recorded usage, 2026-11-18)."""
_ERROR_OF_USAGE: Final = 0.005
_ERROR_LEFT: Final = 0.3
"""How much of the error is left where the usage of many replies has corrected the estimate."""


_PROSE: Final = 0.95
"""How much of the estimate of their texts user and assistant messages count: weights are fitted to code and to texts of
many kinds, and those of conversations have fewer tokens (594 recorded texts, six tokenizers, 2026-11-18)."""


class TokenCounter:
    """Counts for one model, with the caller's own counter of texts if there is one."""

    __slots__ = (
        "_estimate",
        "_last_bound",
        "_last_tools",
        "_narrow",
        "_own",
        "_prose",
        "_weights",
        "_widest",
        "_writer",
        "family",
    )

    def __init__(
        self, model: Model, counter: TextCounter | None = None, *, upper: int | None = None, share: float = 1.0
    ) -> None:
        """`upper`: texts of at least so many bytes are counted by their upper estimate for this share of a window."""
        self._writer = (model.protocol, model.provider, model.id)
        self.family: TokenFamily = family_of(model.id, model.provider, model.protocol)
        self._weights = self.family.weights
        self._widest = self._weights.widest()
        self._narrow = self._weights.widest_ascii()
        self._own = counter
        self._estimate = estimate_bytes if upper is None else partial(estimate_upper, least=upper, share=share)
        self._prose = _PROSE if self.family.prose and upper is None else 1.0
        self._last_tools: tuple[bytes, float] | None = None
        self._last_bound: tuple[bytes, tuple[int, int]] | None = None
        """The tools that were last counted and bounded, as JSON: the rows of a corpus mostly have the same ones."""

    @property
    def widest(self) -> float:
        """The most tokens that one character can have."""
        return self._widest

    @property
    def is_own(self) -> bool:
        """Whether texts are counted by the caller's own counter."""
        return self._own is not None

    def bound_characters(self, characters: int, beyond_ascii: int) -> float:
        """Bound the tokens of texts of so many characters; at most so many of them are not ASCII."""
        return characters * self._narrow + beyond_ascii * (self._widest - self._narrow)

    def text(self, text: str) -> float:
        """Count the tokens of a text."""
        if self._own is not None:
            return self._own(text)
        return self._estimate(text.encode("utf-8", "surrogatepass"), self._weights)

    def message(self, message: Message) -> tuple[float, float]:
        """Count a message: what lasts, and what counts only until the next user message."""
        family = self.family
        # A result does not have its own constant: its call has one for both.
        lasting, passing = (0.0 if message.role == "toolResult" else float(family.message)), 0.0
        texts: list[str] = []
        calls = 0
        for piece in message.content:
            if type(piece) is TextContent:  # cheaper than `piece.kind`
                texts.append(piece.text)
                if piece.text_signature and family.signature:
                    lasting += self._signature(piece.text_signature, message)
            elif type(piece) is ToolCall:
                texts.append(piece.name)
                calls += 1
                lasting += family.call + self._json(piece.arguments_text or piece.arguments)
                if piece.thought_signature and family.signature:
                    lasting += self._signature(piece.thought_signature, message)
            elif type(piece) is ThinkingContent:
                tokens = self.text(piece.thinking) if piece.thinking else 0.0
                if family.signature and (piece.thinking_signature or family.drops_thinking):
                    tokens = max(tokens, self._signature(piece.thinking_signature, message))
                if family.drops_thinking:
                    passing += tokens
                else:
                    lasting += tokens
            else:
                lasting += self.piece(piece)
        if calls > 1:
            lasting += family.parallel
        if texts:
            if self._own is None:
                text = texts[0] if len(texts) == 1 else "".join(texts)
                if message.role != "toolResult":
                    lasting += self.text(text) * self._prose
                else:
                    lasting += self._json(text) if family.bare_json and text[:1] in "{[" else self.text(text)
            else:
                lasting += sum(map(self._own, texts))
        return lasting, passing

    def learn(self, known: Calibration, reply: AssistantMessage, size: float) -> Calibration:
        """Take in the usage of a reply to a request that was estimated at a size, if its model counts alike."""
        if reply.usage is None:
            return known
        if (reply.protocol, reply.provider, reply.model) != self._writer:
            family = family_of(reply.model, reply.provider, reply.protocol)
            if family.tokenizer != self.family.tokenizer or not self.family.pattern:
                return known
        most_hidden = self.family.hidden if self.family.hidden_in_all else 0
        return known.learn(reply, size, self._writer, most_hidden=most_hidden)

    def request(
        self,
        messages: Sequence[Message],
        fixed: float,
        options: Options | None = None,
        tools: Sequence[Tool] | None = None,
    ) -> Estimate:
        """Count a request of projected messages after what comes before them, corrected by the usage of replies.

        The usage of the last reply of the model itself counts what is before it. Where that is not the size of this
        history, because it was cut or edited since, the growth between replies corrects the estimate. Agents force a
        tool, or ask for JSON, in one request and not in the next: what the provider adds for that is not taken over,
        as far as `options` and `tools` of this request are known.
        """
        size, usage, learnt = fixed, 0, NOTHING_LEARNT
        before, cycle, last = 0.0, 0.0, None
        for message in messages:
            if message.role == "user":  # what counted in the tool cycle before it counts no more
                size, cycle = size - cycle, 0.0
            elif message.role == "assistant" and message.usage is not None and _is_alike(message, size, options, tools):
                learnt = self.learn(learnt, message, size)
                if learnt.writer == self._writer and learnt.size == size:
                    usage, before, last = learnt.usage, size, message
            lasting, passing = self.message(message)
            size, cycle = size + lasting + passing, cycle + passing
        if usage and _ANCHOR[0] * before <= usage <= max(_ANCHOR[1] * before, before + _ANCHOR_MORE):
            forced = 0 if options is None or is_forced(options) else self.family.forced
            if (
                forced
                and last is not None
                and last.stop_reason == "toolUse"
                and _NEAR[0] * forced <= usage - before <= _NEAR[1] * forced
            ):
                usage -= forced
            return self.bar(usage + (size - before) * learnt.factor, learnt, counted=usage)
        return self.bar(learnt.correct(size), learnt)

    def bar(self, tokens: float, learnt: Calibration = NOTHING_LEARNT, *, counted: int = 0) -> Estimate:
        """Add the error bar to a count; `counted` of its tokens were counted by the provider itself."""
        family = self.family
        error = family.error * (1 - (1 - _ERROR_LEFT) * learnt.certainty)
        spread = 0 if counted else family.spread
        width = spread + (tokens - counted) * error + counted * _ERROR_OF_USAGE
        hidden = 0 if learnt.usage else family.hidden
        return Estimate(round(tokens), max(0, int(tokens - width)), ceil(tokens + width + hidden))

    def most_within(self, limit: int) -> float:
        """Compute the largest estimate whose upper end is within a limit; constants take at most a twentieth of it."""
        family = self.family
        return (limit - min(family.spread + family.hidden, limit / 20)) / (1 + family.error)

    def bound_messages(self, messages: Iterable[Message]) -> float:
        """Bound what `message` counts for messages together, for a tenth of its cost; not with the caller's counter."""
        family, tokens = self.family, 0.0
        texts: list[str] = []
        for message in messages:
            tokens += family.message + family.parallel
            for piece in message.content:
                match piece.kind:
                    case "text":
                        texts.append(piece.text)
                        signature = piece.text_signature
                    case "thinking":
                        texts.append(piece.thinking)
                        signature = piece.thinking_signature
                    case "toolCall":
                        tokens += family.call
                        texts.append(piece.name)
                        texts.append(piece.arguments_text or encode_value(piece.arguments).decode())
                        signature = piece.thought_signature
                    case _:
                        tokens += self.piece(piece)
                        continue
                if signature and family.signature:
                    tokens += self._signature(signature)
        return tokens + bound_text("".join(texts), self._weights)

    def piece(self, piece: AnyContent) -> float:
        """Count one piece of content."""
        match piece.kind:
            case "text":
                return self.text(piece.text)
            case "thinking":
                return self.text(piece.thinking)
            case "toolCall":
                return self.family.call + self.text(piece.name) + self._json(piece.arguments_text or piece.arguments)
            case "image":
                return self._image(piece)
            case "file":
                return self._file(piece)
            case "native":
                return self._native(piece.block)

    def fixed(self, context: Context, options: Options | None) -> float:
        """Count what comes before the messages: the request itself, the system prompt, tools and the output schema.

        Without options the most that options can add is counted: the count does not depend on them then.
        """
        family, prompt = self.family, context.system_prompt
        tokens = float(family.base)
        if prompt:
            tokens += family.message
            tokens += self.text(prompt) if isinstance(prompt, str) else sum(map(self.piece, prompt))
        if context.tools and (family.unused_tools or options is None or options.tool_choice != "none"):
            tokens += self.tools(context.tools)
            if options is None or options.tool_choice is not None:
                tokens += family.chosen
            if options is None or is_forced(options):
                tokens += family.forced
        if options is None or options.thinking not in (None, "off"):
            tokens += family.thinking
        if options is not None and options.output_schema:
            tokens += self.schema(options.output_schema)
        return tokens

    def most_fixed(self, context: Context, schema: Mapping[str, object] | None) -> float:
        """Bound what `fixed` counts by the number of characters, which costs a tenth of counting them."""
        family, prompt = self.family, context.system_prompt
        length = keys = 0
        if prompt:
            length += len(prompt) if isinstance(prompt, str) else 0
        tokens = float(family.base + family.message + family.thinking)
        if prompt and not isinstance(prompt, str):
            tokens += sum(map(self.piece, prompt))
        if context.tools:
            more, keys = self._measure_tools(context.tools)
            length += more
            tokens += family.tools + family.tool * len(context.tools) + family.chosen + family.forced
        if schema:
            length += len(encode_value(schema))
            tokens += family.schema
        factor = max(1.0, family.tool_factor, family.schema_factor)
        return tokens + length * self.widest * factor + keys * family.tool_key

    def _measure_tools(self, tools: Sequence[Tool]) -> tuple[int, int]:
        """Return the characters of the definitions of tools, at least those of their keys."""
        whole, known = _encode_tools(tools), self._last_bound
        if known is not None and known[0] == whole:
            return known[1]
        length = keys = 0
        for tool in tools:
            if tool.kind == "function":
                length += len(tool.name) + len(tool.description)
                data = encode_value(tool.parameters)
            else:
                data = encode_value(tool.definition)
            length += len(data)
            keys += data.count(b'":')
        if whole is not None:
            self._last_bound = whole, (length, keys)
        return length, keys

    def schema(self, schema: Mapping[str, object]) -> float:
        """Count an output schema."""
        return self.family.schema + self._json(schema) * self.family.schema_factor

    def tools(self, tools: Sequence[Tool]) -> float:
        """Count the definitions of tools."""
        family = self.family
        whole, known = _encode_tools(tools), self._last_tools
        if known is not None and known[0] == whole:
            return known[1]
        texts, keys = 0.0, 0
        for tool in tools:
            if tool.kind == "function":
                texts += self.text(tool.name + tool.description)
                if family.declared_tools:
                    words: list[str] = []
                    keys += _declare(tool.parameters, words)
                    texts += self.text(" ".join(words)) if words else 0.0
                    continue
                data = encode_value(tool.parameters)
            else:
                data = encode_value(tool.definition)
            keys += data.count(b'":')
            texts += self._words(data)
        tokens = family.tools + family.tool * len(tools) + texts * family.tool_factor + keys * family.tool_key
        if whole is not None:
            self._last_tools = whole, tokens
        return tokens

    def _signature(self, signature: str | None, message: Message | None = None) -> float:
        """Count a signature; at most what the provider counted as reasoning when the message was made.

        Reasoning without one is kept by the provider, and counts as much.
        """
        tokens = max(0, len(signature or "") - self.family.signature_overhead) * self.family.signature
        usage = message.usage if message is not None and message.role == "assistant" else None
        if usage is None or not usage.reasoning:
            return tokens
        counted = usage.reasoning + (0 if usage.reasoning % _STEP else _STEP / 2)
        return min(tokens, counted) if signature else counted

    def _json(self, value: object) -> float:
        if isinstance(value, str) and not self.family.bare_json:
            return self.text(value)
        data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else encode_value(value)
        if self.family.bare_json:
            return self._words(data)
        return self._estimate(data, self._weights) if self._own is None else self._own(data.decode())

    def _words(self, data: bytes) -> float:
        """Count the words of a JSON text without its punctuation: providers write schemas in their own formats."""
        if self._own is None:
            return self._estimate(data.translate(None, _PUNCTUATION), self._weights)
        return self._own(data.translate(_TO_SPACES).decode())

    def _image(self, piece: ImageContent) -> float:
        width, height = image_size(piece.data) if piece.data else default_size()
        return self.family.image(width, height)

    def _file(self, piece: FileContent) -> float:
        mime, data = piece.mime_type or "", piece.data or ""
        size = len(data) * 3 // 4
        if mime.startswith("image/"):
            width, height = image_size(data) if data else default_size()
            return self.family.image(width, height)
        if mime.startswith("audio/"):
            return max(_LEAST_OF_MEDIA, size / _BYTES_PER_TOKEN_OF_AUDIO)
        if mime.startswith("video/"):
            return max(_LEAST_OF_MEDIA, size / _BYTES_PER_TOKEN_OF_VIDEO)
        if mime.startswith("text/") or mime in ("application/json", "application/xml"):
            return size * self._weights.lower
        return self.family.page * (count_pages(data) if data else 1)

    def _native(self, block: Mapping[str, object]) -> float:
        texts: list[str] = []
        opaque = sum(_walk(block, texts))
        return self.text(" ".join(texts)) + opaque * _TOKENS_PER_OPAQUE_CHARACTER


def _is_alike(reply: AssistantMessage, size: float, options: Options | None, tools: Sequence[Tool] | None) -> bool:
    """Whether a reply was asked for with the tools and the schema of a request, as far as it shows.

    It calls tools of the request. If it is JSON, and its request counted more than is here, there was a schema.
    """
    first = reply.content[0] if reply.content else None
    if first is not None and first.kind == "text" and first.text[:1] == "{" and first.text[-1:] == "}":
        has_schema = options is None or options.output_schema is not None
        return has_schema or counted_input(reply) <= _SCHEMA_MORE * size
    names = {tool.name for tool in tools or () if tool.kind == "function"}
    if tools is None or len(names) < len(tools):  # the provider runs others
        return True
    return {piece.name for piece in reply.content if piece.kind == "toolCall"} <= names


def is_forced(options: Options) -> bool:
    """Whether a request forces a tool call."""
    return options.tool_choice not in _NOT_FORCED


def _walk(value: object, texts: list[str]) -> Iterable[int]:
    """Collect the short strings of a block in `texts`, and yield the lengths of the opaque ones."""
    if isinstance(value, str):
        if len(value) > _OPAQUE_LENGTH and " " not in value[:_OPAQUE_LENGTH]:
            yield len(value)
        else:
            texts.append(value)
    elif isinstance(value, Mapping):
        for item in cast("Mapping[str, object]", value).values():
            yield from _walk(item, texts)
    elif isinstance(value, list | tuple):
        for item in cast("Sequence[object]", value):
            yield from _walk(item, texts)


def _declare(schema: object, words: list[str]) -> int:
    """Collect what TypeScript has of a schema: names, descriptions and allowed values; return the number of names."""
    if not isinstance(schema, Mapping):
        return 0
    found, keys = cast("Mapping[str, object]", schema), 0
    for name in _ALTERNATIVES:
        options = found.get(name)
        if isinstance(options, list | tuple):
            keys += sum(_declare(option, words) for option in cast("Sequence[object]", options))
    values = found.get("enum")
    if isinstance(values, list | tuple):
        words += map(str, cast("Sequence[object]", values))
    keys += _declare(found.get("items"), words)
    description = found.get("description")
    if isinstance(description, str):
        words.append(description)
    properties = found.get("properties")
    if isinstance(properties, Mapping):
        for name, inner in cast("Mapping[str, object]", properties).items():
            words.append(name)
            keys += 1 + _declare(inner, words)
    return keys


def _encode_tools(tools: Sequence[Tool]) -> bytes | None:
    """Write the definitions of tools as JSON, to compare them; None if that is not possible."""
    try:
        return _ENCODE(tools)
    except (UnicodeEncodeError, TypeError, ValueError, RecursionError):
        return None


def encode_value(value: object) -> bytes:
    """Write a value as JSON, to be counted."""
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, TypeError, ValueError):  # half a surrogate pair: projection replaces it before sending
        return repr(value).encode("utf-8", "replace")
