"""One conversation, many models: the example session made ready for a target of every protocol.

`make demo` runs this after `first_minute.py`. The stored conversation is never changed; what each target is told, and
what it costs to tell it, is a projection with a report.
"""

from __future__ import annotations

from pathlib import Path

from segue import Loss, Model, Policy, get_model, project, read_session

SESSION = Path(__file__).with_name("session.jsonl")

TARGETS = (
    get_model("anthropic/claude-opus-4-8"),
    get_model("openai/gpt-5.4"),
    get_model("deepseek/deepseek-v4-pro"),
    get_model("google/gemini-3.5-flash"),
    get_model("amazon-bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
    get_model("mistral/mistral-large-4"),
    Model("qwen3", "ollama", "ollama-chat", input=("text",)),
    Model("command-a", "cohere", "cohere-chat"),
    Model("copilot", "vscode", "vscode-lm"),
    Model("any", "any", "plain-text"),
)

context = read_session(SESSION)
print(f"{'target':<62} {'sent':>4}  {'same':>4}  {'opaque':>6}  {'content':>7}   the first loss a model would notice")
for model in TARGETS:
    projection = project(context, model)
    kept = sum(any(message is given for given in context.messages) for message in projection.context.messages)
    counts = {loss: sum(change.loss == loss for change in projection.report.changes) for loss in Loss}
    lost = [change.code.value for change in projection.report.changes if change.loss == Loss.CONTENT]
    print(
        f"{model.full_name():<62} {len(projection.context.messages):>4}  {kept:>4}  "
        f"{counts[Loss.OPAQUE]:>6}  {counts[Loss.CONTENT]:>7}   {lost[0] if lost else '-'}"
    )

target = TARGETS[1]
print(f"\nIn words, for {target.full_name()}:\n{project(context, target).report.summary()}")
quiet = project(context, target, policy=Policy(reasoning="drop"))
print(f"\nAnd without other models' thinking:\n{quiet.report.summary()}")
assert read_session(SESSION) == context
