"""The shim in `examples/vscode`: it compiles against the editor's own types, and what goes in comes out.

Needs npm and its packages: run by `make proof`, and skipped with the reason where they cannot be had. The editor itself
is a stand-in: a module with its classes, as its type declarations describe them.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from protocols.exchanges import VSCODE

pytestmark = pytest.mark.proof  # it installs npm packages
SHIM = Path(__file__).parents[3] / "examples" / "vscode"
PATIENCE = 240
QUIETLY = ("--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--prefer-offline", "--fetch-retries=1")

EDITOR_STAND_IN = """
exports.LanguageModelChatMessageRole = { User: 1, Assistant: 2 };
exports.LanguageModelChatToolMode = { Auto: 1, Required: 2 };
exports.LanguageModelTextPart = class LanguageModelTextPart { constructor(value) { this.value = value; } };
exports.LanguageModelDataPart = class LanguageModelDataPart {
  constructor(data, mimeType) { this.data = data; this.mimeType = mimeType; }
};
exports.LanguageModelToolCallPart = class LanguageModelToolCallPart {
  constructor(callId, name, input) { this.callId = callId; this.name = name; this.input = input; }
};
exports.LanguageModelToolResultPart = class LanguageModelToolResultPart {
  constructor(callId, content) { this.callId = callId; this.content = content; }
};
exports.LanguageModelChatMessage = class LanguageModelChatMessage {
  constructor(role, content, name) {
    this.role = role;
    this.content = typeof content === "string" ? [new exports.LanguageModelTextPart(content)] : content;
    this.name = name;
  }
};
exports.LanguageModelError = class LanguageModelError extends Error {
  constructor(message, code, cause) { super(message, { cause }); this.code = code; }
};
"""
"""The classes, their fields and the order of their arguments (@types/vscode 1.140.0, read 2026-11-15)."""

DRIVER = """
const vscode = require("vscode");
const { send } = require("./out/shim.js");
const plain = part => ({ class: part.constructor.name, ...part,
  ...(part.data && { data: Buffer.from(part.data).toString("base64") }),
  ...(part.content && { content: part.content.map(plain) }) });
const made = {
  text: line => new vscode.LanguageModelTextPart(line.value),
  toolCall: line => new vscode.LanguageModelToolCallPart(line.callId, line.name, line.input),
  data: line => new vscode.LanguageModelDataPart(Uint8Array.from(Buffer.from(line.data, "base64")), line.mimeType),
  thinking: line => ({ thought: line.value }),
};
async function* stream(lines) {
  for (const line of lines) {
    if (line.$ === "error") { throw new vscode.LanguageModelError(line.message, line.code, line.cause); }
    yield made[line.$](line);
  }
}
(async () => {
  const out = [];
  for (const { body, lines } of JSON.parse(require("fs").readFileSync(0, "utf8"))) {
    const received = { lines: [] };
    const model = { sendRequest: async (messages, options) => {
      received.messages = messages.map(plain);
      received.options = options;
      return { stream: stream(lines) };
    } };
    await send(model, body, line => received.lines.push(JSON.parse(line)));
    out.push(received);
  }
  process.stdout.write(JSON.stringify(out));
})();
"""
ROLES = {1: "user", 2: "assistant"}


def run(*command: str, place: Path, given: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=place, input=given, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the shim to where its packages may be installed, and install them."""
    if shutil.which("npm") is None or shutil.which("npx") is None:
        pytest.skip("of the VS Code shim (no npm)")
    place = tmp_path_factory.mktemp("shim") / "vscode"
    shutil.copytree(SHIM, place, ignore=shutil.ignore_patterns("node_modules", "out"))
    try:
        done = run("npm", "install", *QUIETLY, place=place)
    except subprocess.TimeoutExpired:
        pytest.skip("of the VS Code shim (npm could not install its packages in time)")
    if done.returncode != 0:
        pytest.skip("of the VS Code shim (npm could not install its packages)")
    return place


def test_the_shim_compiles_against_the_editors_types(installed):
    done = run("npx", "--no-install", "tsc", "--noEmit", place=installed)
    assert (done.returncode, done.stdout) == (0, "")


def test_a_mistake_in_the_shim_would_not_compile(installed):
    """The compiler looks at the shim: a call part that is given a text for its input is refused."""
    wrong = installed / "src" / "wrong.ts"
    part = 'new vscode.LanguageModelToolCallPart("c", "f", "{}")'
    wrong.write_text(f'import * as vscode from "vscode";\nexport const part = {part};\n', "utf-8")
    try:
        done = run("npx", "--no-install", "tsc", "--noEmit", place=installed)
    finally:
        wrong.unlink()
    assert done.returncode != 0
    assert "wrong.ts" in done.stdout


@pytest.fixture(scope="module")
def talks(installed: Path) -> dict[str, Any]:
    """Send every request through the compiled shim to a stand-in, and answer with the stream of its case."""
    if shutil.which("node") is None:
        pytest.skip("of the VS Code shim (no node)")
    done = run("npx", "--no-install", "tsc", place=installed)
    assert done.returncode == 0, done.stdout
    editor = installed / "node_modules" / "vscode"
    editor.mkdir()
    (editor / "index.js").write_text(EDITOR_STAND_IN, "utf-8")
    (installed / "driver.js").write_text(DRIVER, "utf-8")
    requests = [
        {"body": VSCODE.part(case if case in SENT else "text", "request"), "lines": VSCODE.part(case, "stream")}
        for case in VSCODE.names
    ]
    done = run("node", "driver.js", place=installed, given=json.dumps(requests))
    assert done.returncode == 0, done.stderr
    return dict(zip(VSCODE.names, json.loads(done.stdout), strict=True))


SENT = ("text", "calls-and-results")


def back(part: dict[str, Any]) -> dict[str, Any]:
    """Say in our JSON what a class of the editor holds."""
    match part.pop("class"):
        case "LanguageModelTextPart":
            return {"$": "text", **part}
        case "LanguageModelDataPart":
            return {"$": "data", **part}
        case "LanguageModelToolCallPart":
            return {"$": "toolCall", **part}
        case "LanguageModelToolResultPart":
            return {"$": "toolResult", **part, "content": [back(inner) for inner in part["content"]]}
        case other:
            raise AssertionError(other)


@pytest.mark.parametrize("case", SENT)
def test_the_editors_classes_hold_what_our_request_says(talks, case):
    body = VSCODE.part(case, "request")
    messages = []
    for message in talks[case]["messages"]:
        assert message.pop("class") == "LanguageModelChatMessage"
        content = [back(part) for part in message.pop("content")]
        messages.append({**message, "role": ROLES[message["role"]], "content": content})
    assert messages == body["messages"]
    assert talks[case]["options"] == body.get("options", {})


@pytest.mark.parametrize("case", VSCODE.names)
def test_the_lines_that_the_shim_writes_are_the_reply(talks, case):
    lines = talks[case]["lines"]
    known = [line for line in VSCODE.part(case, "stream") if line["$"] != "thinking"]  # the API requires to ignore it
    all_codecs = [{key: value for key, value in line.items() if key != "extra"} for line in known]
    assert lines == all_codecs
    _, message = VSCODE.decoded(lines)
    assert message.text() == VSCODE.expected(case).text()
    assert message.stop_reason == VSCODE.expected(case).stop_reason
