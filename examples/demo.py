"""One conversation, every protocol: the example session prepared for the example model of each, and checked.

`make demo` runs this after `first_minute.py`. The stored conversation is never changed; what was changed for a target
stands in a report. No key is needed, and nothing is sent.
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
model = get_model("openai/gpt-5.4")
print(f"\nThe report for {model.full_name()}:\n{prepare(context, model).report.summary()}")

python, root = relpath(sys.executable), relpath(SESSION.parent.parent)
print("\nSide by side, on a page of this machine:")
if find_spec("uvicorn") is None:
    print(f"  {python} -m pip install --editable '{root}[ui]'")
print(f"  {python} -m segue ui {relpath(SESSION)}")
