"""A first look: reads a conversation with models of four providers, prints it, and stores it again.

`make demo` runs this after `demo.py`. With segue installed, run `python examples/first_minute.py`. No key is needed.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from segue import AssistantMessage, Message, append_header, append_message, compute_cost, get_model, read_session

SESSION = Path(__file__).with_name("session.jsonl")


def describe(message: Message) -> str:
    """Describe a message in one line: its role, its content and its model."""
    parts = " + ".join(content.name if content.kind == "toolCall" else content.kind for content in message.content)
    match message.role:
        case "assistant":
            return f"assistant  {parts:<41} {message.stop_reason:<8} {message.provider}/{message.model}"
        case "toolResult":
            return f"result     {parts:<41} {'error' if message.is_error else '':<8} {message.tool_name}"
        case _:
            return f"{message.role:<9}  {parts}"


def describe_cost(name: str, turns: list[AssistantMessage]) -> str:
    """Add up the tokens of one model, and their cost at the prices of the catalogue."""
    used = [turn.usage for turn in turns if turn.usage is not None]
    read = sum(usage.input + usage.cache_read + usage.cache_write for usage in used)
    written = sum(usage.output for usage in used)
    dollars = sum(compute_cost(get_model(name).cost, usage).total for usage in used)
    return f"{name:<32} {len(used)} turns  {read:>6} input tokens  {written:>5} output tokens  ${dollars:.4f}"


context = read_session(SESSION)
print(f"{SESSION.name}: {len(context.messages)} messages, {len(context.tools)} tools\n")
for number, message in enumerate(context.messages, 1):
    print(f"{number:>3}  {describe(message)}")

print()
turns = [message for message in context.messages if message.role == "assistant"]
for name in dict.fromkeys(f"{turn.provider}/{turn.model}" for turn in turns):
    print(describe_cost(name, [turn for turn in turns if f"{turn.provider}/{turn.model}" == name]))

with tempfile.TemporaryDirectory() as folder:
    copy = Path(folder) / "copy.jsonl"
    append_header(copy, context)
    for message in context.messages:
        append_message(copy, message)
    same = copy.read_bytes() == SESSION.read_bytes() and read_session(copy) == context
print("\nstored and loaded again:", "equal, byte for byte" if same else "DIFFERENT")
