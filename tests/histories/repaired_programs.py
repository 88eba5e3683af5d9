"""Real sessions of real programs with a fault in them: what the program and a strict provider make of it.

The provider is the emulator: it refuses what the providers refuse, and knows the signatures that it made.
"""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

from gateway.agent_runs import SHELLS, Agent, Answering
from histories.test_repairs import BROKEN_PICTURE, nodes
from segue.histories.kit.anatomy import Anatomy
from segue.histories.registry import FORMATS
from segue.testing.emulator import EmulatedCall, Step

PROGRAMS = {
    "claude-code": ("messages", "claude-opus-5-5", ".claude/projects/*/*.jsonl"),
    "codex": ("responses", "gpt-5.4", "codex/sessions/*/*/*/*.jsonl"),
    "gemini-cli": ("gemini", "gemini-3.1-pro-preview", ".gemini/tmp/*/chats/*.jsonl"),
    "pi": ("messages", "claude-opus-5-5", "pi/sessions/*/*.jsonl"),
    "opencode": ("messages", "claude-opus-5-5", "data/opencode/opencode.db"),
    "qwen-code": ("chat", "gpt-4.1", ".qwen/projects/*/chats/*.jsonl"),
    "copilot-cli": ("messages", "claude-sonnet-4-5", ".copilot/session-state/*/events.jsonl"),
}
"""The wire of each program, the model, and where it stores its session."""
CALLS = {"gemini-cli": 0}
"""Gemini CLI sends results twice when it continues a session, which a strict provider refuses without any fault."""
WRONG = base64.b64encode(b"a signature that nobody made, as long as one that somebody made").decode()


class Address(NamedTuple):
    """Where the provider is."""

    url: str


class Provider(Answering):
    """A strict provider, whose first replies call the shell of any program."""

    def _plan(self, path: str, body: bytes) -> None:
        if self.left and "enerateContent" in path and b"run_shell_command" in body:
            self.left -= 1
            self.number += 1
            call = EmulatedCall(name="run_shell_command", arguments=SHELLS["run_shell_command"](self.number))
            self.emulator.script.add(Step(thinking=f"Thought {self.number}.", calls=(call,)))
            return
        if self.left and path.endswith("/chat/completions") and (tool := _find_chat_shell(body)) is not None:
            self.left -= 1
            self.number += 1
            call = EmulatedCall(name=tool, arguments=SHELLS[tool](self.number))
            self.emulator.script.add(Step(calls=(call,)))
            return
        super()._plan(path, body)


def _find_chat_shell(body: bytes) -> str | None:
    tools = (json.loads(body) or {}).get("tools") or ()
    names = {str((tool.get("function") or {}).get("name")) for tool in tools}
    return next((name for name in SHELLS if name in names), None)


class Session:
    """A session of a program, with two calls of its shell."""

    def __init__(self, name: str, folder: Path, provider: Provider, url: str) -> None:
        self.name, self.provider = name, provider
        wire, self.model, pattern = PROGRAMS[name]
        self.agent = Agent(name, wire, folder / "home", Address(url))
        provider.left = CALLS.get(name, 2)
        done = self.agent.ask("Do the first step of two.", self.model)
        assert done.code == 0, done.said[-1000:]
        done = self.agent.ask("Say a word that is easy to find: cormorant.", self.model)
        assert done.code == 0, done.said[-1000:]
        # Gemini CLI begins a new file of the same session when it is started in another minute.
        *older, self.path = sorted((folder / "home").glob(pattern), key=lambda path: path.stat().st_mtime_ns)
        for path in older:
            path.unlink()
        self.lines = list(self._read())
        anatomy = FORMATS[name].anatomy
        assert anatomy is not None
        self.anatomy: Anatomy = anatomy

    def go_on(self) -> tuple[int, list[int], str]:
        """Continue the session: the exit status, those of the provider, and what the program sent."""
        first = len(self.provider.emulator.requests)
        done = self.agent.ask("Go on.", self.model, timeout=90)
        made = self.provider.emulator.requests[first:]
        asked = [each for each in made if each.refusal != "beta" and "ount" not in each.path.rpartition("/")[2]]
        return done.code, [each.status for each in asked], str([each.body for each in asked[-1:]])

    def plant(self, fault: str) -> None:
        """Store the session with a fault."""
        make = OWN_FAULTS.get((self.name, fault)) or FAULTS[fault]
        planted = list(make(deepcopy(self.lines), self.anatomy))
        if self.path.suffix != ".db":
            self.path.write_bytes(b"".join(map(_dump, planted)))
            return
        with closing(sqlite3.connect(self.path)) as database, database:
            for table in TABLES:
                database.execute(f"DELETE FROM {table}")
            for row in planted:
                values = [json.dumps(value) if isinstance(value, dict) else value for value in row["row"].values()]
                columns, holes = ", ".join(row["row"]), ", ".join("?" * len(values))
                database.execute(f"INSERT INTO {row['table']} ({columns}) VALUES ({holes})", values)

    def _read(self) -> Iterator[dict[str, Any]]:
        """Give the lines of the file, or the rows of the database."""
        if self.path.suffix != ".db":
            yield from map(json.loads, self.path.read_bytes().splitlines())
            return
        with closing(sqlite3.connect(self.path)) as database:
            database.row_factory = sqlite3.Row
            for table in TABLES:
                for row in database.execute(f"SELECT * FROM {table} ORDER BY id"):
                    yield {"table": table, "row": {**dict(row), "data": json.loads(row["data"])}}


def _dump(line: Any) -> bytes:
    return line if isinstance(line, bytes) else json.dumps(line, separators=(",", ":")).encode() + b"\n"


def _ids(lines: list[Any], find: Callable[[Any], str | None]) -> list[str]:
    return list(dict.fromkeys(found for line in lines for node in nodes(line) if (found := find(node))))


def _signatures(lines: list[Any], anatomy: Anatomy) -> Iterator[Any]:
    for line in lines:
        for node in nodes(line):
            for key in anatomy.signatures & node.keys():
                if isinstance(node[key], str) and (key != "data" or node.get("type") == "redacted_thinking"):
                    node[key] = WRONG
        yield line


def _open_call(lines: list[Any], anatomy: Anatomy) -> Iterator[Any]:
    """The program was killed before the last result."""
    last = _ids(lines, anatomy.result_id)[-1]
    for line in lines:
        if any(anatomy.result_id(node) == last for node in nodes(line)):
            if not any(anatomy.call_id(node) == last for node in nodes(line)):
                return
            for node in nodes(line):
                if anatomy.call_id(node) == last and "result" in node:
                    del node["result"]
        yield line


def _lone_result(lines: list[Any], anatomy: Anatomy) -> Iterator[Any]:
    """The line with a call is gone."""
    first = _ids(lines, anatomy.call_id)[0]
    gone: dict[object, object] = {}
    for line in lines:
        parent = line.get(anatomy.parent_key or "")
        if parent in gone:
            line[anatomy.parent_key] = gone[parent]
        has_call = any(anatomy.call_id(node) == first for node in nodes(line))
        if has_call and not any(anatomy.result_id(node) == first for node in nodes(line)):
            gone[line.get(anatomy.id_key or "")] = line.get(anatomy.parent_key or "")
            continue
        yield line


def _long_result(lines: list[Any], anatomy: Anatomy) -> Iterator[Any]:
    first = _ids(lines, anatomy.result_id)[0]

    def longer(value: Any) -> Any:
        if isinstance(value, str) and "step" in value:
            return value + " a long result" * 500_000
        if isinstance(value, list):
            return [longer(each) for each in value]
        return (
            {key: longer(each) if key != "input" else each for key, each in value.items()}
            if isinstance(value, dict)
            else value
        )

    for line in lines:
        for node in nodes(line):
            if anatomy.result_id(node) == first:
                node.update(longer(node))
        yield line


def _running_call(lines: list[Any], anatomy: Anatomy) -> Iterator[Any]:
    """The program was killed while its last tool ran; call and result are one record."""
    last = _ids(lines, anatomy.result_id)[-1]
    for line in lines:
        for node in nodes(line):
            if anatomy.result_id(node) == last:
                node["state"] = {"status": "running", "input": node["state"]["input"], "time": {"start": 1}}
        yield line


def _broken_part(lines: list[Any], _: Anatomy) -> Iterator[Any]:
    """A part after the words of the user, with a picture that is none."""
    url = f"data:image/png;base64,{BROKEN_PICTURE}"
    for line in lines:
        yield line
        if line["row"]["data"].get("type") == "text" and "cormorant" in json.dumps(line):
            data = {"type": "file", "mime": "image/png", "filename": "a.png", "url": url}
            yield {"table": "part", "row": {**line["row"], "id": line["row"]["id"][:-1] + "~", "data": data}}


TABLES = ("message", "part")
PICTURES: dict[str, Any] = {
    "anthropic": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": BROKEN_PICTURE}},
    "pi": {"type": "image", "data": BROKEN_PICTURE, "mimeType": "image/png"},
    "codex": {"type": "input_image", "image_url": f"data:image/png;base64,{BROKEN_PICTURE}"},
    "google": {"inlineData": {"mimeType": "image/png", "data": BROKEN_PICTURE}},
    "copilot": {"type": "blob", "data": BROKEN_PICTURE, "mimeType": "image/png", "displayName": "a.png"},
}


def _broken_picture(lines: list[Any], anatomy: Anatomy) -> Iterator[Any]:
    block = next(each for each in PICTURES.values() if anatomy.picture(each) == BROKEN_PICTURE)
    if anatomy.carrier == "data":  # Copilot CLI has pictures next to the text
        block = PICTURES["copilot"]
    for line in lines:
        for node in nodes(line):
            content = node.get("parts", node.get("content"))
            if "attachments" in node and "cormorant" in str(content):
                node["attachments"].append(block)
                continue
            if node.get("role", node.get("type")) != "user":
                continue
            if isinstance(content, str) and "cormorant" in content and "message" not in node:
                node["content"] = [{"type": "text", "text": content}, block]
            elif isinstance(content, list) and "cormorant" in json.dumps(content):
                content.append(block)
        yield line


def _broken_line(lines: list[Any], anatomy: Anatomy) -> Iterator[Any]:
    """The first reply is cut off, as by a program that was killed and started again."""
    first = _ids(lines, anatomy.call_id)[0]
    is_cut = False
    for line in lines:
        if not is_cut and any(anatomy.call_id(node) == first for node in nodes(line)):
            is_cut = True
            yield _dump(line)[: len(_dump(line)) // 2] + b"\n"
            continue
        yield line


FAULTS: dict[str, Callable[[list[Any], Anatomy], Iterator[Any]]] = {
    "signature": _signatures,
    "call": _open_call,
    "result": _lone_result,
    "size": _long_result,
    "image": _broken_picture,
    "line": _broken_line,
}
OWN_FAULTS: dict[tuple[str, str], Callable[[list[Any], Anatomy], Iterator[Any]]] = {
    ("opencode", "call"): _running_call,
    ("opencode", "image"): _broken_part,
}
