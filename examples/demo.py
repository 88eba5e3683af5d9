"""One conversation, every protocol: makes a request from the example session for a model of each, and checks it.

`make demo` runs this after `first_minute.py`. The stored conversation is never changed; a report lists every change in
a request. No key is needed, and nothing is sent.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from os.path import relpath
from pathlib import Path

from segue import Loss, Model, check, get_model, prepare, read_session

SESSION = Path(__file__).with_name("session.jsonl")

TARGETS = (
    get_model("anthropic/claude-opus-4-8"),
    get_model("deepseek/deepseek-v4-pro"),
    get_model("openai/gpt-5.4"),
    get_model("google/gemini-3.5-flash"),
    get_model("amazon-bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
    get_model("mistral/mistral-large-4"),
    Model("qwen3", "ollama", "ollama-chat", input=("text",), reasoning=True),
    Model("command-a", "cohere", "cohere-chat"),
    Model("copilot", "vscode", "vscode-lm"),
    Model("any", "any", "plain-text"),
)

context = read_session(SESSION)
print(f"{'protocol':<19} {'model':<47} {'sent':>4} {'bytes':>7} {'signat.':>7} {'content':>8}   check")
refused = 0
for model in TARGETS:
    request = prepare(context, model)
    losses = [change.loss for change in request.report.changes]
    violations = check(request.body, protocol=model.protocol, model=model)
    verdict = violations[0].message if violations else "ok"
    refused += len(violations)
    print(
        f"{model.protocol:<19} {model.id:<47} {len(request.projection.context.messages):>4} {len(request.content):>7,} "
        f"{losses.count(Loss.OPAQUE):>7} {losses.count(Loss.CONTENT):>8}   {verdict}"
    )
assert not refused, "the provider accepts every request that segue makes"
assert read_session(SESSION) == context, "the stored conversation is unchanged"

print("\nsignat. and content: how many changes dropped a signature, or content that any model can read.")
print(f"\nThe report for {TARGETS[2].full_name()}:\n{prepare(context, TARGETS[2]).report.summary()}")

python, root = relpath(sys.executable), relpath(SESSION.parent.parent)
print("\nTo compare stored and sent messages side by side, on a local web page:")
if find_spec("uvicorn") is None:
    print(f"  {python} -m pip install --editable '{root}[ui]'")
print(f"  {python} -m segue ui {relpath(SESSION)}")
