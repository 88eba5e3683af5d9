"""Writes the conversations of a golden folder, held with the emulator, and what they become for each target.

Called by `make.py`, with the code of the version whose files are written.
"""

# pyright: reportArgumentType=false

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

import segue
from bound_state.machine import transport
from golden.requests import OTHERS, TARGETS, Stored, project_all, write_rows
from samples import EVERYTHING
from segue.protocols.registry import get_protocol, protocol_names
from segue.testing.emulator import EmulatedCall, Emulator, Step

TIME: Final = 1_790_000_000_000
OPUS: Final = "anthropic/claude-opus-5-5"
BEDROCK: Final = "amazon-bedrock/anthropic.claude-opus-5-5"
GPT: Final = "openai/gpt-5.4"
GEMINI: Final = "google/gemini-3.1-pro-preview"
DEEPSEEK: Final = "openrouter/deepseek/deepseek-v4-pro"
THINKING: Final = segue.Options(thinking="medium", max_tokens=1000)
LOOK: Final = segue.ToolDefinition(
    name="look", description="Looks.", parameters={"type": "object", "properties": {"n": {"type": "integer"}}}
)
THINK: Final = Step(thinking="Hm.", text="Yes.")
CALL: Final = Step(thinking="Look.", calls=(EmulatedCall(name="look", arguments={"n": 1}, id="toolu_look"),))


class Talk:
    """A conversation with emulated providers."""

    def __init__(self, *, system: Any = "Be brief.", tools: tuple[Any, ...] = (), policy: Any = None) -> None:
        self.emulator = Emulator(organizations={"key": "org"}, strict=False)
        self.client = segue.Client(
            api_key=dict.fromkeys(("anthropic", "amazon-bedrock", "openai", "google", "openrouter"), "key"),
            transport=transport(lambda: self.emulator),
            environment={},
        )
        self.policy = policy
        self.context = segue.Context(system_prompt=system, tools=tools)

    def ask(
        self,
        step: Step = THINK,
        *,
        model: str = OPUS,
        options: segue.Options = THINKING,
        content: tuple[Any, ...] = ("Go on.",),
    ) -> Talk:
        """Ask, keep the reply, and answer its calls."""
        self.emulator.script.add(step)
        if content and self.context.messages[-1:] and self.context.messages[-1].role == "toolResult":
            content = ()
        if content:
            self.context = self.context.add(segue.UserMessage.of(*content, timestamp=TIME))
        reply = self.client.complete(self.context, model, options=options, policy=self.policy)
        self.context = self.context.add(replace(reply, timestamp=TIME))
        for call in reply.tool_calls():
            seen = (segue.TextContent(text="seen"),)
            result = segue.ToolResultMessage(tool_call_id=call.id, tool_name=call.name, content=seen, timestamp=TIME)
            self.context = self.context.add(result)
        return self

    def end(self) -> segue.Context:
        """Give the conversation with one more question."""
        self.client.close()
        if self.context.messages[-1].role == "assistant":
            return self.context.add(segue.UserMessage.of("And now?", timestamp=TIME))
        return self.context


def conversations() -> Iterable[tuple[Stored, segue.Context]]:
    """Hold the conversations, each with its file."""
    own = {"options": THINKING}
    yield (
        Stored(file="claude-text.jsonl", targets=(OPUS,), **own),
        Talk().ask().ask().ask().end(),
    )
    yield (
        Stored(file="claude-tools.jsonl", targets=(OPUS,), **own),
        Talk(tools=(LOOK,)).ask(CALL).ask(CALL).ask().ask(Step(thinking="A.", text="B.", thinking_after="C.")).end(),
    )
    marked = replace(THINKING, cache_retention="short")
    yield (
        Stored(file="claude-marked.jsonl", targets=(OPUS,), options=marked),
        Talk(tools=(LOOK,)).ask(CALL, options=marked).ask(options=marked).ask(options=marked).end(),
    )
    yield (
        Stored(file="claude-marks-begin.jsonl", targets=(OPUS,), options=marked),
        Talk().ask().ask(options=marked).ask(options=marked).end(),
    )
    blocks = (segue.TextContent(text="Be brief."), segue.TextContent(text="Be kind.", cache_mark=segue.CacheMark()))
    yield (
        Stored(file="claude-blocks.jsonl", targets=(OPUS,), **own),
        Talk(system=blocks, tools=(LOOK,)).ask(CALL).ask().end(),
    )
    yield (
        Stored(file="claude-no-system.jsonl", targets=(OPUS,), **own),
        Talk(system=None).ask(content=("One.", "Two.")).ask().end(),
    )
    yield Stored(file="claude-media.jsonl", targets=(OPUS,), **own), _with_media()
    yield (
        Stored(file="bedrock.jsonl", targets=(BEDROCK,), **own),
        Talk(tools=(LOOK,)).ask(CALL, model=BEDROCK).ask(model=BEDROCK).ask(model=BEDROCK).end(),
    )
    for name, model in (("responses", GPT), ("gemini", GEMINI), ("deepseek", DEEPSEEK)):
        yield (
            Stored(file=f"{name}.jsonl", targets=(model,), **own),
            Talk(tools=(LOOK,)).ask(CALL, model=model).ask(model=model).ask(model=model).end(),
        )
    yield Stored(file="switched.jsonl", targets=(OPUS, GPT, GEMINI), **own), _switched()
    appending = Talk(policy=segue.Policy(instructions="append"), tools=(LOOK,)).ask().ask(CALL).ask()
    appending.context = replace(appending.context, system_prompt="Be kind.")
    yield (
        Stored(file="appended.jsonl", targets=(OPUS,), instructions="append", own_alone=True, **own),
        appending.ask().ask().end(),
    )
    edited = Talk(tools=(LOOK,)).ask().ask(CALL).ask()
    edited.context = replace(edited.context, system_prompt="Be kind.")
    yield Stored(file="edited.jsonl", targets=(OPUS,), **own), edited.ask().ask().end()
    yield Stored(file="imported.jsonl", targets=(OPUS, BEDROCK), **own), _imported()
    fresh = Talk(tools=(LOOK,)).ask(CALL).ask().ask()
    fresh.context = _forget(fresh.context)
    yield Stored(file="imported-now.jsonl", targets=(OPUS, BEDROCK), **own), fresh.end()
    yield Stored(file="compacted.jsonl", targets=(OPUS,), **own), _compacted()
    yield Stored(file="window.jsonl", targets=()), _long()
    yield (
        Stored(file="no-user.jsonl", targets=(OPUS,), **own),
        segue.Context(
            system_prompt="Be brief.",
            messages=(segue.AssistantMessage(content=(segue.TextContent(text="Hello."),), timestamp=TIME),),
        ),
    )
    yield Stored(file="instructions.json", targets=()), segue.Context(system_prompt="Greet the world.")
    yield Stored(file="everything.json", targets=()), EVERYTHING
    for protocol in protocol_names():
        yield Stored(file=f"{protocol}.json", targets=()), _sample(protocol)


def _with_media() -> segue.Context:
    image = segue.ImageContent(data=_PNG, mime_type="image/png")
    file = segue.FileContent(data="JVBERi0xLjQK", mime_type="application/pdf", name="a.pdf", context="From a friend.")
    talk = Talk(tools=(LOOK,)).ask(content=("See.", image, file)).ask(CALL)
    *before, result = talk.context.messages
    assert result.role == "toolResult"
    messages = (*before, replace(result, content=(*result.content, image), is_error=False))
    talk.context = replace(talk.context, messages=messages)
    return talk.ask().end()


_PNG: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="


def _switched() -> segue.Context:
    talk = Talk(tools=(LOOK,)).ask(CALL).ask()
    for model in (GPT, GEMINI, DEEPSEEK, OPUS, GPT, OPUS):
        talk.ask(CALL, model=model).ask(model=model)
    return talk.end()


def _imported() -> segue.Context:
    """Two replies of which nothing is known, one of them asked about, then known ones."""
    talk = Talk().ask().ask()
    talk.context = _forget(talk.context)
    return talk.ask().ask().end()


def _forget(context: segue.Context) -> segue.Context:
    messages = [replace(each, sent=None) if each.role == "assistant" else each for each in context.messages]
    return replace(context, messages=tuple(messages))


def _compacted() -> segue.Context:
    """A reply that begins with the server's summary; its reasoning follows that alone."""
    talk = Talk().ask().ask()
    context = talk.context.add(segue.UserMessage.of("Go on.", timestamp=TIME))
    request = segue.prepare(context, OPUS, options=THINKING)
    summary = {"type": "compaction", "content": "They said hello.", "encrypted_content": "c3VtbWFyeQ=="}
    for number in range(3):
        content: list[dict[str, Any]] = [
            {"type": "thinking", "thinking": "", "signature": f"Y29tcGFjdGVk{number}"},
            {"type": "text", "text": f"Answer {number}."},
        ]
        reply = request.decode(
            {
                "id": f"msg_{number}",
                "type": "message",
                "role": "assistant",
                "model": "claude-opus-5-5",
                "content": content if number else [summary, *content],
                "stop_reason": "end_turn",
                "usage": {"input_tokens": 1, "output_tokens": 1},
            },
            account="org",
        )
        context = context.add(replace(reply, timestamp=TIME), segue.UserMessage.of("Go on.", timestamp=TIME))
        request = segue.prepare(context, OPUS, options=THINKING)
    talk.client.close()
    return context


def _long() -> segue.Context:
    """More than the small window holds, with a pin and two summaries."""
    talk = Talk(tools=(LOOK,)).ask(content=("The password is heron.",))
    for number in range(6):
        talk.ask(CALL, content=(f"Question {number}. " + "A line of ordinary words about nothing much. " * 12,)).ask()
    return replace(
        talk.end().pin(0),
        summaries=(
            segue.Summary(covers=4, text="They looked once.", timestamp=TIME),
            segue.Summary(
                covers=8,
                text="They looked twice.",
                origin=segue.Origin(protocol="openai-chat", provider="openai", model="gpt-5.2"),
            ),
        ),
    )


def _sample(protocol: str) -> segue.Context:
    """Join the sample exchanges of a protocol: their requests and replies, with what only this protocol has."""
    record = get_protocol(protocol)
    messages: list[segue.Message] = []
    first: segue.Context | None = None
    tools: tuple[segue.Tool, ...] = ()
    for sample in record.samples():
        request = segue.decode_request(sample.request, protocol=protocol)
        reply = segue.decode_response(sample.response, protocol=protocol, model=record.example)
        first = first or request.context
        tools = tools or request.context.tools
        messages += [*request.context.messages, reply]
    assert first is not None
    messages = [m if m.role == "system" else replace(m, timestamp=TIME) for m in messages]
    return replace(first, tools=tools, messages=(*messages, segue.UserMessage.of("And now?", timestamp=TIME)))


def write_sessions(folder: Path) -> None:
    """Write the conversations, the targets, and every request."""
    models = [*map(segue.get_model, TARGETS), *OTHERS]
    (folder / "models.json").write_bytes(msgspec.json.format(msgspec.json.encode(models), indent=1) + b"\n")
    named = {model.full_name(): f"{model.full_name()} {model.protocol}" for model in reversed(models)}
    (folder / "sessions").mkdir()
    listed: list[Stored] = []
    for stored, context in conversations():
        path = folder / "sessions" / stored.file
        if path.suffix == ".json":
            path.write_bytes(segue.dump(context) + b"\n")
        else:
            segue.write_session(path, context)
        listed.append(replace(stored, targets=tuple([named[name] for name in stored.targets])))
    (folder / "sessions.json").write_bytes(msgspec.json.format(msgspec.json.encode(listed), indent=1) + b"\n")
    write_rows(folder / "requests.jsonl.gz", project_all(folder))
