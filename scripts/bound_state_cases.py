"""The conversations of the fixtures of the profile *bound state*, and the faults that are planted into some of them.

Replies of providers are decoded as the client decodes them, so that what they were made after is real. Nothing was
recorded: signatures are made up.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from segue import (
    AssistantContent,
    AssistantMessage,
    Context,
    Extra,
    NativeContent,
    Sent,
    StopReason,
    SystemMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    prepare,
)
from segue.conversation.messages import Message

Fields: TypeAlias = dict[str, Any]
CLAUDE: Final = "anthropic/claude-opus-5-5"
SONNET: Final = "anthropic/claude-sonnet-5-5"
GPT: Final = "openai/gpt-5.4"
GEMINI: Final = "google/gemini-3.5-flash"
BEDROCK: Final = "amazon-bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0"
MISTRAL: Final = "mistral/mistral-large-4"
DEEPSEEK: Final = "deepseek/deepseek-reasoner"
GROK: Final = "xai/grok-4.7"


class Fixture(NamedTuple):
    """One conversation, and what the validator has to find after `plant` has changed the files."""

    name: str
    context: Context
    faults: tuple[str, ...] = ()
    plant: Callable[[list[Fields]], None] | None = None
    words: tuple[str, str] | None = None
    """A text of the files, and the one that replaces it."""


def _sign(text: str) -> str:
    return base64.b64encode(f"signature of {text}".encode()).decode()


def _ask(*texts: str, system: str | None = "Answer in one sentence.") -> Context:
    return Context(system_prompt=system, messages=(UserMessage.of(*texts),))


# -- replies as providers write them -----------------------------------------------------------------------------------


def _claude(*content: Fields, model: str = CLAUDE) -> tuple[str, Fields]:
    used = any(block["type"] == "tool_use" for block in content)
    body = {
        "type": "message",
        "id": f"msg_{len(content)}",
        "role": "assistant",
        "model": model.partition("/")[2],
        "content": list(content),
        "stop_reason": "tool_use" if used else "end_turn",
        "usage": {"input_tokens": 30, "output_tokens": 20},
    }
    return model, body


def _thought(text: str, signature: str | None = None) -> Fields:
    return {"type": "thinking", "thinking": text, "signature": signature or _sign(text)}


def _hidden(text: str) -> Fields:
    return {"type": "redacted_thinking", "data": _sign(text)}


def _text(text: str) -> Fields:
    return {"type": "text", "text": text}


def _use(call_id: str, name: str, **arguments: object) -> Fields:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def _gpt(*output: Fields, model: str = GPT) -> tuple[str, Fields]:
    body = {
        "id": f"resp_{len(output)}",
        "object": "response",
        "created_at": 1763170000,
        "status": "completed",
        "model": model.partition("/")[2],
        "output": list(output),
        "usage": {
            "input_tokens": 30,
            "output_tokens": 20,
            "total_tokens": 50,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 8},
        },
    }
    return model, body


def _reasoning(name: str, *summary: str) -> Fields:
    parts = [{"type": "summary_text", "text": text} for text in summary]
    return {"type": "reasoning", "id": f"rs_{name}", "summary": parts, "encrypted_content": _sign(name)}


def _message(name: str, text: str, **others: object) -> Fields:
    content: list[Fields] = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": f"msg_{name}", "role": "assistant", "status": "completed", "content": content,
            **others}  # fmt: skip


def _function(name: str, call_id: str, arguments: str) -> Fields:
    return {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": name, "arguments": arguments,
            "status": "completed"}  # fmt: skip


def _gemini(*parts: Fields, model: str = GEMINI) -> tuple[str, Fields]:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 30, "candidatesTokenCount": 20, "totalTokenCount": 50}
    return model, {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model.partition("/")[2]}


def _called(name: str, signature: str | None = None, **arguments: object) -> Fields:
    signed = {} if signature is None else {"thoughtSignature": _sign(signature)}
    return {"functionCall": {"name": name, "args": arguments}, **signed}


def _bedrock(*content: Fields) -> tuple[str, Fields]:
    body = {
        "output": {"message": {"role": "assistant", "content": list(content)}},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 30, "outputTokens": 20, "totalTokens": 50},
        "metrics": {"latencyMs": 1},
    }
    return BEDROCK, body


def _chat(model: str, **message: object) -> tuple[str, Fields]:
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1763170000,
        "model": model.partition("/")[2],
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 30, "completion_tokens": 20, "total_tokens": 50},
    }
    return model, body


def _grow(context: Context, reply: tuple[str, Fields], *after: Message | str, account: str | None = None) -> Context:
    """Decode a reply to a conversation, and add it with what follows."""
    model, body = reply
    request = prepare(context, model)
    message = request.decode(body)
    if account is not None:
        message = replace(message, sent=replace(message.sent or Sent(), account=account))
    following = (UserMessage.of(each) if isinstance(each, str) else each for each in after)
    return context.add(message, *following)


def _result(call_id: str, *texts: str, failed: bool = False) -> ToolResultMessage:
    content = tuple(TextContent(text=text) for text in texts)
    return ToolResultMessage(tool_call_id=call_id, content=content, is_error=failed)


def _by_hand(
    context: Context,
    *content: AssistantContent,
    model: str = CLAUDE,
    sent: Sent | None = None,
    stop_reason: StopReason = StopReason.STOP,
    extra: Extra | None = None,
) -> Context:
    provider, _, name = model.partition("/")
    reply = AssistantMessage(
        content=content,
        protocol=prepare(context, model).model.protocol,
        provider=provider,
        model=name,
        sent=sent,
        stop_reason=stop_reason,
        extra=extra,
    )
    return context.add(reply)


# -- conversations -----------------------------------------------------------------------------------------------------

_ONE = _claude(_thought("17 times 23."), _text("391."))
_LOOP = (
    _claude(_thought("I look."), _use("toolu_1", "read", path="a.txt"), _use("toolu_2", "read", path="b.txt")),
    _result("toolu_1", "alpha"),
    _result("toolu_2", "no such file", failed=True),
)


def _two(
    one: tuple[str, Fields], two: tuple[str, Fields], *, first: str | None = None, second: str | None = None
) -> Context:
    context = _grow(_ask("What is 17 * 23?"), one, "And 18 * 23?", account=first)
    return _grow(context, two, "And 19 * 23?", account=second)


def _chain() -> Context:
    second = _claude(_thought("18 times 23."), _text("414."))
    return _grow(_two(_ONE, second), _claude(_hidden("19 times 23."), _text("437.")), "Thanks.")


def _loop() -> Context:
    context = _grow(_ask("What is in a.txt and b.txt?"), *_LOOP)
    return _grow(context, _claude(_thought("One of two."), _text("alpha; b.txt is missing.")))


def _of_models() -> Context:
    context = _two(_ONE, _gpt(_reasoning("a", "18 times 23."), _message("a", "414.")))
    context = _grow(context, _gemini({"text": "437.", "thoughtSignature": _sign("c")}), "And 20 * 23?")
    return _grow(context, _claude(_thought("20 times 23."), _text("460.")), "Thanks.")


def _sent(*, dropped: tuple[str, ...] = (), inserted: str | None = None) -> Sent:
    return Sent(
        system="AAAAAAAAAAAA",
        tools="BBBBBBBBBBBB",
        messages="CCCCCCCCCCCC",
        dropped=dropped,
        inserted=inserted,
        is_appended=inserted is not None,
    )


_PLAIN: Final[Mapping[str, Context]] = {
    "one signed thought": _grow(_ask("What is 17 * 23?"), _ONE, "And 18 * 23?"),
    "a thought that is hidden": _grow(_ask("Hm?"), _claude(_hidden("Hm."), _text("Yes.")), "Why?"),
    "a thought whose words are withheld": _grow(_ask("Hm?"), _claude(_thought("", _sign("x")), _text("Yes.")), "Why?"),
    "thoughts in turn with texts": _grow(
        _ask("Hm?"), _claude(_thought("A"), _text("a"), _thought("B"), _hidden("C"), _text("b")), "Why?"
    ),
    "equal thoughts and texts": _grow(_ask("Hm?"), _claude(*[_thought("A"), _text("a")] * 3), "Why?"),
    "a chain of three replies": _chain(),
    "parallel calls, one failed": _loop(),
    "a thought between calls": _grow(
        _ask("Hm?"),
        _claude(_thought("A"), _use("toolu_1", "read", path="a"), _thought("B"), _use("toolu_2", "read", path="b")),
        _result("toolu_1", "a"),
        _result("toolu_2", "b"),
    ),
    "text after a call": _grow(
        _ask("Hm?"),
        _claude(_use("toolu_1", "read", path="a"), _text("I read."), _thought("B")),
        _result("toolu_1", "a"),
    ),
    "another model of one family": _two(_ONE, _claude(_thought("B"), _text("414."), model=SONNET)),
    "two accounts": _two(_ONE, _claude(_thought("B"), _text("414.")), first="org-one", second="org-two"),
    "an account without a prefix": _grow(
        _ask("Hm?"), _gpt(_reasoning("a", "A"), _message("a", "Yes.")), "Why?", account="org-one"
    ),
    "encrypted reasoning": _two(
        _gpt(_reasoning("a", "17 times 23."), _message("a", "391.")), _gpt(_reasoning("b"), _message("b", "414."))
    ),
    "encrypted reasoning of several parts": _grow(
        _ask("Hm?"), _gpt(_reasoning("a", "A", "B"), _reasoning("b"), _message("a", "Yes.")), "Why?"
    ),
    "encrypted reasoning before calls": _grow(
        _ask("Hm?"),
        _gpt(_reasoning("a", "A"), _function("read", "call_1", '{"path": "a"}'), _function("read", "call_2", "{}")),
        _result("call_1", "a"),
        _result("call_2", "b"),
    ),
    "a commentary before the answer": _grow(
        _ask("Hm?"),
        _gpt(
            _reasoning("a"), _message("a", "I think.", phase="commentary"), _message("b", "Yes.", phase="final_answer")
        ),
        "Why?",
    ),
    "encrypted reasoning of another lab": _grow(
        _ask("Hm?"), _gpt(_reasoning("a", "A"), _message("a", "Yes."), model=GROK), "Why?"
    ),
    "a thought signature on a call": _grow(
        _ask("Hm?"), _gemini(_called("read", "A", path="a"), _called("read", path="b")), "Why?"
    ),
    "a thought signature on a text": _grow(
        _ask("Hm?"), _gemini({"text": "A", "thought": True}, {"text": "Yes.", "thoughtSignature": _sign("A")}), "Why?"
    ),
    "a thought signature on an empty text": _grow(
        _ask("Hm?"), _gemini({"text": "Yes."}, {"text": "", "thoughtSignature": _sign("A")}), "Why?"
    ),
    "reasoning of Bedrock": _grow(
        _ask("Hm?"),
        _bedrock(
            {"reasoningContent": {"reasoningText": {"text": "A", "signature": _sign("A")}}},
            {"reasoningContent": {"redactedContent": _sign("B")}},
            {"text": "Yes."},
        ),
        "Why?",
    ),
    "reasoning of Mistral": _grow(
        _ask("Hm?"),
        _chat(
            MISTRAL,
            content=[
                {"type": "thinking", "thinking": [{"type": "text", "text": "A"}]},
                {"type": "text", "text": "Yes"},
            ],
        ),
        "Why?",
    ),
    "reasoning without a signature": _grow(_ask("Hm?"), _chat(DEEPSEEK, reasoning_content="A", content="Yes."), "Why?"),
    "four models, and back": _of_models(),
    "two texts of the user": _grow(_ask("First.", "Second."), _ONE, UserMessage.of("Third.", "Fourth.")),
    "two texts of a result": _grow(
        _grow(_ask("Hm?"), _claude(_thought("A"), _use("toolu_1", "read", path="a")), _result("toolu_1", "a", "b")),
        _claude(_thought("B"), _text("Both.")),
    ),
    "a system text in the middle": _grow(_ask("Hm?").add(SystemMessage.of("Be brief.", "Be kind.")), _ONE, "Why?"),
    "no system prompt": _grow(_ask("Hm?", system=None), _ONE, "Why?"),
    "line feeds and blanks": _grow(
        _ask("\nHm?\r\n"), _claude(_thought("A\n"), _thought("\n\nB "), _text("\n"), _text("  c\n\n")), "\tWhy? "
    ),
    "characters outside the first plane": _grow(
        _ask("🌊?"), _claude(_thought("🌊e\u0301"), _text("潮位 🙂"), _thought("👩‍👩‍👧"), _text("süß")), "Why?"
    ),
    "arguments in another form": _by_hand(
        _ask("Hm?"),
        ToolCall(id="call_1", name="add", arguments={"a": 1.0, "b": "ü"}, arguments_text='{"a": 1.0, "b":"\\u00fc"}'),
        model=GPT,
    ),
    "a block of a server tool": _by_hand(
        _ask("Hm?"),
        ThinkingContent(thinking="A", thinking_signature=_sign("A")),
        NativeContent(
            protocol="anthropic-messages",
            block={"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"encrypted_content": "RQ=="}]},
        ),
        TextContent(text="Found."),
    ),
    "a block with words in its place": _by_hand(
        _ask("Hm?"),
        TextContent(text="before"),
        NativeContent(
            protocol="openai-responses",
            block={"type": "compaction", "encrypted_content": "RQ=="},
            fallback=(TextContent(text="what was before"),),
        ),
        model=GPT,
    ),
    "blocks that the server dropped": _by_hand(
        _chain(),
        TextContent(text="Welcome."),
        sent=_sent(dropped=("DDDDDDDDDDDD", "EEEEEEEEEEEE@org-one")),
    ),
    "a text that was inserted before the reply": _by_hand(
        _ask("Hm?"), TextContent(text="Yes."), sent=_sent(inserted="Go on.")
    ),
    "a reply that was cut": _by_hand(
        _ask("Hm?"),
        ThinkingContent(thinking="A", thinking_signature=_sign("A")),
        TextContent(text="Ye"),
        stop_reason=StopReason.LENGTH,
        extra={"anthropic-messages": {"stop_details": {"type": "window"}}},
    ),
}


# -- faults ------------------------------------------------------------------------------------------------------------


def _set(at: int, **fields: object) -> Callable[[list[Fields]], None]:
    def plant(states: list[Fields]) -> None:
        states[at].update(fields)

    return plant


def _parts(at: int, change: Callable[[list[Fields]], object]) -> Callable[[list[Fields]], None]:
    def plant(states: list[Fields]) -> None:
        change(states[at]["content"])

    return plant


def _swap(parts: list[Fields]) -> None:
    parts[0]["signature"], parts[2]["signature"] = parts[2]["signature"], parts[0]["signature"]


def _forget(states: list[Fields]) -> None:
    states[0].clear()


def _longer(context: Context) -> Context:
    return _grow(context, _claude(_thought("C"), _text("c")), "Thanks.")


_TURNS: Final = _grow(_ask("Hm?"), _claude(_thought("A"), _text("a"), _thought("B"), _text("b")), "Why?")
_PLANTED: Final[Sequence[Fixture]] = (
    Fixture("a text was edited", _PLAIN["one signed thought"], ("text",), words=("391.", "392.")),
    Fixture("a thought was edited", _PLAIN["one signed thought"], ("thinking",), words=("17 times", "71 times")),
    Fixture(
        "a signature was replaced",
        _PLAIN["one signed thought"],
        ("marks",),
        _parts(0, lambda parts: parts[0].update(signature=_sign("x"))),
    ),
    Fixture("two signatures were exchanged", _TURNS, ("marks",), _parts(0, _swap)),
    Fixture(
        "a signature was dropped",
        _PLAIN["one signed thought"],
        ("marks",),
        _parts(0, lambda parts: parts[0].pop("signature")),
    ),
    Fixture("the first reply of a chain lost its state", _longer(_TURNS), ("schema", "chain"), _forget),
    Fixture("parts in another order", _TURNS, ("text",), _parts(0, lambda parts: parts.reverse())),
    Fixture("a part is missing", _TURNS, ("text",), _parts(0, lambda parts: parts.pop())),
    Fixture("a length is wrong", _TURNS, ("thinking",), _parts(0, lambda parts: parts[0].update(length=7))),
    Fixture(
        "another call",
        _grow(_ask("What is in a.txt and b.txt?"), *_LOOP),
        ("call",),
        _parts(0, lambda parts: parts[1].update(id="toolu_9")),
    ),
    Fixture(
        "arguments were edited",
        _PLAIN["arguments in another form"],
        ("call",),
        _parts(0, lambda parts: parts[0].update(arguments_text='{"a": 2.0}')),
    ),
    Fixture("another model", _PLAIN["one signed thought"], ("model",), _set(0, model="claude-sonnet-5-5")),
    Fixture("another version", _PLAIN["one signed thought"], ("schema",), _set(0, version=2)),
    Fixture(
        "a kind of part that does not exist",
        _PLAIN["one signed thought"],
        ("schema",),
        _parts(0, lambda parts: parts[0].update(kind="idea")),
    ),
)


def fixtures() -> list[Fixture]:
    """Return all fixtures; times are set, so that both formats have the same."""
    whole = [Fixture(name, context) for name, context in _PLAIN.items()]
    return [each._replace(context=_timed(each.context)) for each in (*whole, *_PLANTED)]


def _timed(context: Context) -> Context:
    messages: list[Message] = []
    for at, message in enumerate(context.messages):
        timed = message if message.role == "system" else replace(message, timestamp=1763170000000 + at * 1000)
        if isinstance(timed, AssistantMessage):
            kept = {name: fields for name, fields in (timed.extra or {}).items() if name == timed.protocol}
            timed = replace(timed, usage=None, extra=kept or None, raw_stop_reason=None)
        messages.append(timed)
    return msgspec.structs.replace(context, messages=tuple(messages))
