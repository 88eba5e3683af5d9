"""Writes golden files: what one version of segue stores, for the tests of every later version.

Run it with the code and the tests of the version on the path, into a new folder beside this file:

    PYTHONPATH=CHECKOUT/src:CHECKOUT/tests python tests/golden/make.py tests/golden/NAME

A folder is made once, when a version is released, and never changed. The files hold only made-up data: the
conversation of `samples.EVERYTHING`, and replies of the emulator.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2

import segue
from gateway.running import config_text, make_gateway
from golden.make_served import write_served
from golden.make_sessions import write_sessions
from samples import EVERYTHING
from segue.envelope.envelopes import Envelopes
from segue.envelope.state import finish_state, make_piece
from segue.gateway.app import create_app
from segue.gateway.config import load_config
from segue.testing.emulator import EmulatedCall, Step, emulate, serve_in_thread

PORT = 8765
"""Of the emulator. Files have its address, so it is always the same."""
KEY = b"a key of golden files, 32 bytes!"
TENANT = "tenant"
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}}
CALL = EmulatedCall(name="weather", arguments={"city": "Bergen"}, id="call_bergen")


def main(folder: Path) -> None:
    """Write one folder of golden files."""
    folder.mkdir(parents=True)
    (folder / "conversation.json").write_bytes(segue.dump(EVERYTHING) + b"\n")
    write_session(folder)
    replies = [message for message in EVERYTHING.messages if message.role == "assistant"]
    events = [event for message in replies for event in segue.message_events(message)]
    (folder / "events.jsonl").write_bytes(segue.dump_events(events))
    write_envelopes(folder)
    write_gateway(folder)
    write_corpus(folder)
    write_sessions(folder)
    write_served(folder)


def write_session(folder: Path) -> None:
    """Hold a conversation with a tool and with a model that no catalogue has, then add a summary and a header."""
    path = folder / "session.jsonl"
    steps = (
        Step(thinking="I have a tool for that.", calls=(CALL,)),
        Step(thinking="It rains.", text="Yes: 9 °C and rain in Bergen."),
        Step(text="The same in Oslo."),
    )
    with emulate(*steps, port=PORT, models=("my-model",)) as server, segue.Client(api_key="any") as client:
        claude = segue.Model(
            id="claude-opus-4-8",
            provider="anthropic",
            protocol="anthropic-messages",
            base_url=server.url,
            reasoning=True,
            context_window=200_000,
        )
        own = segue.Model(id="my-model", provider="mine", protocol="openai-chat", base_url=f"{server.url}/v1")
        tool = segue.ToolDefinition(name="weather", description="Look up the weather.", parameters=WEATHER)
        options = segue.Options(thinking="low", max_tokens=2000)
        start = segue.Context(system_prompt="Answer in one sentence.", tools=(tool,))
        with segue.Conversation(claude, client=client, path=path, context=start, options=options) as conversation:
            conversation.ask("Do I need an umbrella in Bergen?")
            conversation.add(
                segue.ToolResultMessage(
                    tool_call_id="call_bergen",
                    tool_name="weather",
                    content=(segue.TextContent(text="9 °C, rain"),),
                    timestamp=1_790_000_000_000,
                )
            )
            conversation.ask()
            conversation.ask("And in Oslo?", model=own, options=segue.Options())
    segue.append_summary(path, segue.Summary(covers=4, text="It rains in Bergen."))
    segue.append_header(path, segue.Context(system_prompt="Answer in two sentences."))
    (folder / "session.read.json").write_bytes(segue.dump(segue.read_session(path)) + b"\n")


def write_envelopes(folder: Path) -> None:
    """Write the states of a reply, short and long, as envelopes."""
    reply = next(message for message in EVERYTHING.messages if message.role == "assistant")
    texts: list[str] = []
    for repeated in (1, 400):
        thinking = segue.ThinkingContent(thinking="because", thinking_signature="c2lnbmF0dXJl" * repeated)
        whole = segue.AssistantMessage(
            content=(thinking, *reply.content[1:]),
            protocol=reply.protocol,
            provider=reply.provider,
            model=reply.model,
            stop_reason=reply.stop_reason,
        )
        pieces = [make_piece(index, piece) for index, piece in enumerate(whole.content)]
        state = finish_state(whole, f"http://127.0.0.1:{PORT}", pieces, whole)
        texts.append(Envelopes([KEY]).write(state, TENANT))
    (folder / "envelopes.json").write_text(
        json.dumps({"key": KEY.decode(), "tenant": TENANT, "texts": texts}, indent=1) + "\n"
    )


def write_gateway(folder: Path) -> None:
    """Serve two clients: one sends its history, the other names the reply before. Keep what both would send next."""
    database = folder / "gateway.db"
    steps = (
        Step(thinking="A tool of chat.", text="Looking.", calls=(CALL,)),
        Step(thinking="A tool of responses.", text="Looking too.", calls=(CALL,)),
    )
    sent: dict[str, object] = {}
    with emulate(*steps, port=PORT) as upstream:
        gateway = make_gateway(load_config(config_text(upstream.url, store=f"sqlite:{database}")))
        with serve_in_thread(create_app(gateway=gateway)) as url:
            function = {"name": "weather", "parameters": WEATHER}
            ask = {"role": "user", "content": "Do I need an umbrella?"}
            body = {
                "model": "m-anthropic",
                "messages": [ask],
                "tools": [{"type": "function", "function": function}],
                "reasoning_effort": "low",
            }
            reply = _post(f"{url}/v1/chat/completions", body)["choices"][0]["message"]
            result = {"role": "tool", "tool_call_id": reply["tool_calls"][0]["id"], "content": "9 °C, rain"}
            sent["chat"] = {**body, "messages": [ask, reply, result]}
            body = {"model": "m-anthropic", "input": "And in Oslo?", "tools": [{"type": "function", **function}]}
            reply = _post(f"{url}/v1/responses", body)
            call = next(item for item in reply["output"] if item["type"] == "function_call")
            result = {"type": "function_call_output", "call_id": call["call_id"], "output": "4 °C, dry"}
            sent["responses"] = {**body, "input": [result], "previous_response_id": reply["id"]}
    connection = sqlite3.connect(database, isolation_level=None)
    connection.execute("pragma wal_checkpoint(truncate)")
    connection.execute("vacuum")
    connection.execute("pragma wal_checkpoint(truncate)")
    connection.close()
    (folder / "gateway.db.gz").write_bytes(gzip.compress(database.read_bytes(), 9, mtime=0))
    for left in folder.glob("gateway.db*"):
        if left.suffix != ".gz":
            left.unlink()
    (folder / "gateway.json").write_text(json.dumps(sent, indent=1, ensure_ascii=False) + "\n")


def _post(url: str, body: object) -> dict[str, Any]:
    reply = httpx2.post(url, json=body, timeout=60)
    reply.raise_for_status()
    return reply.json()


def write_corpus(folder: Path) -> None:
    """Convert two files to a folder, one of them with a bad line, and stop in the middle of a third run."""
    chats = [
        {"messages": [{"role": "user", "content": f"Question {number}"}, {"role": "assistant", "content": "Yes."}]}
        for number in range(3)
    ]
    lines = [json.dumps(chat) for chat in chats]
    source = folder / "corpus" / "in"
    source.mkdir(parents=True)
    (source / "a.jsonl").write_text("\n".join(lines) + "\n")
    (source / "b.jsonl").write_text("\n".join([lines[0], "no JSON"]) + "\n")
    convert = [sys.executable, "-m", "segue", "convert", "in", "--to", "anthropic/claude-sonnet-4-5"]
    subprocess.run([*convert, "-o", "out"], cwd=source.parent, check=False)
    convert[4] = "in/b.jsonl"
    stopped = [*convert, "--bad-lines", "stop", "--resume", "-o", "one/b.jsonl"]
    subprocess.run(stopped, cwd=source.parent, check=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
