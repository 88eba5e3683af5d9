"""One conversation, every protocol: makes a request from the example session for a model of each, and checks it.

`make demo` runs this first. The stored conversation is never changed; a report lists every change in
a request. No key is needed, and nothing is sent.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from os.path import relpath
from pathlib import Path

from segue import Loss, check, get_model, prepare, read_session
from segue.protocols import all_protocols

SESSION = Path(__file__).with_name("session.jsonl")

TARGETS = [record.example for record in all_protocols()]

context = read_session(SESSION)
writers = dict.fromkeys(message.model for message in context.messages if message.role == "assistant")
print(f"One conversation of {len(context.messages)} messages. {len(writers)} models wrote it: {', '.join(writers)}.")
print("It is stored once. Here it is as a request for a model of each protocol, which its provider accepts:\n")
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
model = get_model("openai/gpt-5.4")
print(f"\nThe report for {model.full_name()}:\n{prepare(context, model).report.summary()}")

python, root = relpath(sys.executable), relpath(SESSION.parent.parent)
print("\nTo compare stored and sent messages side by side, on a local web page:")
if find_spec("uvicorn") is None:
    print(f"  {python} -m pip install --editable '{root}[ui]'")
print(f"  {python} -m segue ui {relpath(SESSION)}")
