"""Draw the pictures of the page about windows from a run, or with `--check` list those that differ.

An agent works on one task: 400 steps with results of all lengths, made from a fixed seed, and now and then a word of
the user. Every request goes through one `Projector`. `window-cuts.svg` shows what is sent as the session grows,
`window-reuse.svg` how much of each request is a repetition of the one before, by the size of the window.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from segue import (
    AssistantMessage,
    Context,
    Fit,
    Message,
    Model,
    Policy,
    Projector,
    StopReason,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from segue.counting.counter import TokenCounter

PICTURES: Final = Path(__file__).parent.parent / "docs" / "pictures"
STEPS: Final = 400
SHOWN: Final = 64_000
WINDOWS: Final = (16_000, 32_000, 64_000, 128_000, 200_000)
WORDS: Final = ("the", "importer", "reads", "row[3]", "and", "raises", "ValueError(line)", "of", "parts.", "# 42", "if")
ONE_MARK: Final = Policy(fit=Fit(high=0.9, low=0.89, keep=0.25))
"""Cuts only as much as needed, at every request: what a single limit does."""

_WIDTH, _HEIGHT, _LEFT, _TOP = 760, 260, 70, 50
_STYLE: Final = """
  .ground { fill: #ffffff } .ink { fill: #1f2328 } .quiet { fill: #59636e } .line { stroke: #59636e; fill: none }
  .whole { fill: #1f2328 } .short { fill: #8c959f } .gone { fill: #eaeef2 } .bar { fill: #d1d9e0; stroke: #59636e }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117 } .ink { fill: #f0f6fc } .quiet { fill: #9198a1 } .line { stroke: #9198a1 }
    .whole { fill: #f0f6fc } .short { fill: #6e7681 } .gone { fill: #21262d } .bar { fill: #30363d; stroke: #9198a1 }
  }
"""


class Sent(NamedTuple):
    """The tokens of one request: all of the history, what is sent whole, and what is sent shortened."""

    history: float
    whole: float
    short: float
    reused: float


def make_session() -> tuple[Message, ...]:
    """Make the history of the agent."""
    chance = random.Random(7)  # noqa: S311 - a fixed seed: the same picture every time

    def text(most: int) -> str:
        return " ".join(chance.choice(WORDS) for _ in range(most))

    model = target(0)
    messages: list[Message] = [UserMessage.of("Repair the importer, and keep the tests green.")]
    for step in range(STEPS):
        call = ToolCall(id=f"call_{step}", name="read", arguments={"path": f"src/part_{step}.py"})
        turn = AssistantMessage(
            content=(TextContent(text=text(chance.randint(5, 60))), call),
            protocol=model.protocol,
            provider=model.provider,
            model=model.id,
            stop_reason=StopReason.TOOL_USE,
        )
        size = int(min(6000, 40 * chance.paretovariate(0.8)))
        result = ToolResultMessage(tool_call_id=call.id, tool_name="read", content=(TextContent(text=text(size)),))
        messages += [turn, result]
    return tuple(messages)


def target(window: int) -> Model:
    """Give a model with a window of this size."""
    return Model("claude-sonnet-4-5", "anthropic", "anthropic-messages", context_window=window)


def play(messages: Sequence[Message], window: int, policy: Policy | None = None) -> Iterator[Sent]:
    """Send the request of every step through one projector."""
    model = target(window)
    projector, counter = Projector(model, policy), TokenCounter(model)
    sizes = {id(message): sum(counter.message(message)) for message in messages}
    short: dict[int, tuple[Message, float]] = {}
    before: tuple[Message, ...] = ()

    def size(message: Message) -> float:
        if id(message) in sizes:
            return sizes[id(message)]
        known = short.get(id(message))
        if known is None or known[0] is not message:
            known = short[id(message)] = (message, sum(counter.message(message)))
        return known[1]

    for end in range(1, len(messages) + 1, 2):
        sent = projector.project(Context(messages=tuple(messages[:end]))).context.messages
        same = next(
            (at for at, (old, new) in enumerate(zip(before, sent, strict=False)) if old is not new), len(before)
        )
        yield Sent(
            history=sum(sizes[id(message)] for message in messages[:end]),
            whole=sum(sizes[id(message)] for message in sent if id(message) in sizes),
            short=sum(size(message) for message in sent if id(message) not in sizes),
            reused=sum(map(size, sent[:same])),
        )
        before = sent


def draw_cuts(requests: Sequence[Sent]) -> str:
    """Draw what is sent, request by request, as columns."""
    most, column = 3.0 * SHOWN, (_WIDTH - _LEFT - 20) / len(requests)
    parts = [
        _text(_LEFT, 22, f"What is sent as a session grows, window of {SHOWN:,} tokens", "ink"),
        _text(
            _LEFT,
            40,
            "black: whole; grey: shortened; light: left out; line: input limit. A column is a request.",
            "quiet",
        ),
    ]
    for at, sent in enumerate(requests):
        x, total = _LEFT + at * column, min(sent.history, most)
        for kind, amount in (("gone", total), ("short", sent.whole + sent.short), ("whole", sent.whole)):
            height = _HEIGHT * min(amount, most) / most
            parts.append(
                f'<rect class="{kind}" x="{x:.1f}" y="{_TOP + _HEIGHT - height:.1f}"'
                f' width="{column + 0.1:.2f}" height="{height:.1f}"/>'
            )
    for tokens in range(0, round(most) + 1, SHOWN):
        y = _TOP + _HEIGHT - _HEIGHT * tokens / most
        parts.append(_text(_LEFT - 8, y + 4, f"{tokens:,}", "quiet", "end"))
    y = _TOP + _HEIGHT - _HEIGHT * (SHOWN * 7 / 8) / most
    parts.append(f'<path class="line" stroke-dasharray="5 4" d="M{_LEFT} {y:.1f}H{_WIDTH - 20}"/>')
    parts.append(_text(_LEFT, _TOP + _HEIGHT + 18, "request 1", "quiet"))
    parts.append(_text(_WIDTH - 20, _TOP + _HEIGHT + 18, f"request {len(requests)}", "quiet", "end"))
    return _svg(parts, _TOP + _HEIGHT + 34, "What is sent as a session grows")


def draw_reuse(shares: Sequence[tuple[int, float, float]]) -> str:
    """Draw bars: for each window, the part of the tokens that repeats the request before, by kind of cut."""
    parts = [
        _text(_LEFT, 22, "Tokens that repeat the request before, so that a prompt cache has them", "ink"),
        _text(_LEFT, 40, "solid: cuts from 0.9 to 0.43 (the default); outlined: as little as needed", "quiet"),
    ]
    y, longest = _TOP + 10.0, _WIDTH - _LEFT - 90
    for window, two, one in shares:
        parts.append(_text(_LEFT - 8, y + 18, f"{window:,}", "ink", "end"))
        for kind, share in (("whole", two), ("bar", one)):
            parts.append(
                f'<rect class="{kind}" x="{_LEFT}" y="{y:.1f}" width="{longest * share:.1f}" height="12"/>'
                + _text(_LEFT + longest * share + 6, y + 10, f"{share:.1%}", "ink")
            )
            y += 15
        y += 12
    return _svg(parts, round(y) + 6, "Reused tokens by window")


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'


def _svg(parts: Sequence[str], height: int, title: str) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
        f' font-family="sans-serif" font-size="12" role="img" aria-label="{title}">\n<style>{_STYLE}</style>\n'
        f'<rect class="ground" width="{_WIDTH}" height="{height}"/>\n'
    )
    return head + "\n".join(parts) + "\n</svg>\n"


def draw() -> dict[str, str]:
    """Play the session and draw the pictures."""
    session = make_session()

    def share(window: int, policy: Policy | None) -> float:
        requests = list(play(session, window, policy))
        return sum(sent.reused for sent in requests) / sum(sent.whole + sent.short for sent in requests)

    return {
        "window-cuts.svg": draw_cuts(list(play(session, SHOWN))),
        "window-reuse.svg": draw_reuse([(size, share(size, None), share(size, ONE_MARK)) for size in WINDOWS]),
    }


def main() -> None:
    """Write the pictures, or with `--check` fail if one differs."""
    check, stale = "--check" in sys.argv[1:], list[str]()
    for name, picture in draw().items():
        path = PICTURES / name
        if not path.exists() or path.read_text(encoding="utf-8") != picture:
            stale.append(f"docs/pictures/{name}")
            if not check:
                path.write_text(picture, encoding="utf-8")
    if stale:
        print(f"{'out of date' if check else 'written'}: {' '.join(stale)}")
    raise SystemExit(1 if check and stale else 0)


if __name__ == "__main__":
    main()
