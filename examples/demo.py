"""One conversation, every wire: the example session made ready for a target of each protocol, and checked.

`make demo` runs this after `first_minute.py`. The stored conversation is never changed; what each target is told, and
what it costs to tell it, stands in a report. No key is needed, and nothing is sent.
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
print(f"{'protocol':<19} {'model':<47} {'sent':>4} {'bytes':>7} {'opaque':>7} {'content':>8}   check")
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
assert not refused, "a request that segue makes is one that the provider takes"
assert read_session(SESSION) == context, "the stored conversation is what it was"

print("\nopaque and content: how many changes lost something only its maker, or any model, could have read.")
print(f"\nIn words, for {TARGETS[2].full_name()}:\n{prepare(context, TARGETS[2]).report.summary()}")

python, root = relpath(sys.executable), relpath(SESSION.parent.parent)
print("\nSide by side, on a page of this machine:")
if find_spec("uvicorn") is None:
    print(f"  {python} -m pip install --editable '{root}[ui]'")
print(f"  {python} -m segue ui {relpath(SESSION)}")
