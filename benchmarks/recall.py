"""What a cut request still holds of what the next turn needs.

A session is played to a model with a small window, request by request. Wherever its whole history is above 0.85 of the
limit, the request is compared with the recorded next turn:

- names: paths, identifiers, hashes and numbers that the turn uses and that stood before: the share still there;
- rare words: words of five characters and more that stood in at most three messages before. No pattern of names;
- verbatim: runs of four words in the arguments of its calls that stood before, as an edit has to quote them;
- planted: the facts that the generated sessions plant, see `recall_sessions`;
- asked and task: whether the newest and the first message of the user are there, by their first 200 characters;
- prefix: the tokens that repeat the request before, of all tokens; tokens: the mean of a request.

With the look-up tool, each of these requests is followed by one look-up, whose answer counts as a part of the request.
Its query is made from what the request shows alone: the names in its newest messages, the rarest first.

The measure says what the model can see, not how well it answers. `python benchmarks/recall.py FOLDER` measures the
sessions of a folder.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, cast

from figures import Figure
from msgspec.structs import replace
from recall_sessions import WRITER, Session, make_sessions, read_sessions

from segue import AssistantMessage, Message, Model, Projector, UserMessage
from segue.client.flow.recall import recall_room, search
from segue.counting.counter import TokenCounter

WINDOWS: Final = (16_000, 32_000, 64_000)
_NAME: Final = re.compile(
    r"[\w.+-]*(?:/[\w.+-]+)+"  # paths
    r"|[A-Za-z]\w*(?:[_.-]\w+)+"  # identifiers, by their joints
    r"|[A-Za-z]*[a-z]+[A-Z]\w*"
    r"|\b[0-9a-f]{7,40}\b|\b\d{3,}\b"
)
_WORD: Final = re.compile(r"[^\W_]{5,}")
_RARE: Final = 3
_RUN: Final = 4
_MOST_RUNS: Final = 400
"""Of the runs of one turn: a whole file that is written would outweigh everything else."""
_BEGINNING: Final = 200
_NEWEST: Final = 6
_LOOKED_AT: Final = 3_000
_QUERY_WORDS: Final = 24
"""A query is so many names of the newest six messages, of so many characters of each."""
_MEASURES: Final = ("names", "rare", "verbatim", "planted", "asked", "task")


class Texts:
    """The text of each message and what is looked up in it, made once for each object."""

    def __init__(self, count: Callable[[str], float]) -> None:
        self._count = count
        self._known: dict[int, tuple[Message, str]] = {}
        self._words: dict[int, frozenset[str]] = {}
        self._runs: dict[int, frozenset[str]] = {}
        self._tokens: dict[int, float] = {}

    def text(self, message: Message) -> str:
        """Give everything that a model reads of a message."""
        known = self._known.get(id(message))
        if known is None:
            known = self._known[id(message)] = (message, "\n".join(_texts(message)))
        return known[1]

    def words(self, message: Message) -> frozenset[str]:
        """Give the words of a message."""
        if id(message) not in self._words:
            self._words[id(message)] = frozenset(_WORD.findall(self.text(message)))
        return self._words[id(message)]

    def runs(self, message: Message) -> frozenset[str]:
        """Give the runs of words of a message."""
        if id(message) not in self._runs:
            self._runs[id(message)] = frozenset(_runs(self.text(message)))
        return self._runs[id(message)]

    def tokens(self, message: Message) -> float:
        """Give the tokens of a message."""
        if id(message) not in self._tokens:
            self._tokens[id(message)] = self._count(self.text(message))
        return self._tokens[id(message)]

    def shared(self, before: Sequence[Message], now: Sequence[Message]) -> float:
        """Give the tokens at the beginning of a request that repeat the one before."""
        tokens = 0.0
        for first, second in zip(before, now, strict=False):
            if first is second or first == second:
                tokens += self.tokens(second)
                continue
            old, new = self.text(first), self.text(second)
            same = next((at for at, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), len(old))
            return tokens + self.tokens(second) * min(same, len(new)) / max(1, len(new))
        return tokens


class Tally:
    """Sums over request points."""

    def __init__(self) -> None:
        self.found: defaultdict[str, float] = defaultdict(float)
        self.wanted: defaultdict[str, float] = defaultdict(float)
        self.requests = self.look_ups = 0
        self.tokens = self.all_tokens = self.reused = 0.0

    def add(self, measure: str, found: float, wanted: float) -> None:
        """Count what was found of what was wanted."""
        self.found[measure] += found
        self.wanted[measure] += wanted

    def share(self, measure: str) -> float | None:
        """Give the share that was found, in per cent; None if nothing was wanted."""
        return 100 * self.found[measure] / self.wanted[measure] if self.wanted[measure] else None


def play(session: Session, model: Model, tally: Tally, texts: Texts, *, looks_up: bool = False) -> None:
    """Send every request of a session, and compare those that are cut, or nearly, with the turn that followed."""
    projector, messages = Projector(model), session.context.messages
    counter = TokenCounter(model)
    names: set[str] = set()
    runs: set[str] = set()
    seen: dict[str, list[int]] = defaultdict(list)
    added, before, high, size = 0, None, 0.0, 0.0
    first = next((message for message in messages if message.role == "user"), None)
    newest: Message | None = None
    for index, turn in enumerate(messages):
        if turn.role != "assistant" or not index or messages[index - 1].role == "assistant":
            continue
        for at in range(added, index):
            message = messages[at]
            names.update(_NAME.findall(texts.text(message)))
            runs.update(texts.runs(message))
            for word in texts.words(message):
                seen[word].append(at)
            newest = message if message.role == "user" else newest
            size += texts.tokens(message)
        added = index
        projection = projector.project(replace(session.context, messages=messages[:index]))
        window = projection.window
        if window is None or any(it.kind == "windowTooSmall" for it in projection.requirements):
            before = None
            continue
        sent = projection.context.messages
        tokens = sum(map(texts.tokens, sent))
        tally.all_tokens += tokens
        if before is not None:
            tally.reused += texts.shared(before, sent)
        before, high = sent, 0.85 * window.limit
        if size <= high:
            continue
        tally.requests += 1
        tally.tokens += tokens
        if looks_up and (omitted := max(window.lean, window.gone)):
            query = make_query(sent, texts)
            room = recall_room(window.limit)
            answer = search(messages[:omitted], query, room, counter, sent)
            looked_up = UserMessage.of(f"{query}\n{answer}")
            tally.look_ups += 1
            tally.tokens += texts.tokens(looked_up)
            sent = (*sent, looked_up)
        _compare(turn, sent, tally, texts, names=names, runs=runs, seen=seen)
        whole = "\n".join(map(texts.text, sent))
        for measure, message in (("asked", newest), ("task", first)):
            if message is not None:
                tally.add(measure, texts.text(message)[:_BEGINNING].strip() in whole, 1)
        for fact in session.planted.get(index, ()):
            tally.add("planted", fact in whole, 1)


def make_query(sent: Sequence[Message], texts: Texts) -> str:
    """Make a query as a model could: of the names in the newest messages of a request, the rarest first.

    The turn that follows is never looked at.
    """
    whole = "\n".join(map(texts.text, sent))
    newest = "\n".join(texts.text(message)[:_LOOKED_AT] for message in sent[-_NEWEST:])
    return " ".join(sorted(dict.fromkeys(_NAME.findall(newest)), key=whole.count)[:_QUERY_WORDS])


def _compare(
    turn: AssistantMessage,
    sent: Sequence[Message],
    tally: Tally,
    texts: Texts,
    *,
    names: set[str],
    runs: set[str],
    seen: dict[str, list[int]],
) -> None:
    text = texts.text(turn)
    whole = "\n".join(map(texts.text, sent))
    used = {name for name in _NAME.findall(text) if name in names}
    tally.add("names", sum(name in whole for name in used), len(used))
    rare = {word for word in texts.words(turn) if 0 < len(seen.get(word, ())) <= _RARE}
    tally.add("rare", sum(any(word in texts.words(message) for message in sent) for word in rare), len(rare))
    asked = [run for call in turn.content if call.kind == "toolCall" for run in _runs(_arguments(call.arguments))]
    quoted = [run for run in dict.fromkeys(asked) if run in runs][:_MOST_RUNS]
    if quoted:
        kept = sum(any(run in texts.runs(message) for message in sent) for run in quoted)
        tally.add("verbatim", kept / len(quoted), 1)


def _texts(message: Message) -> Iterable[str]:
    for piece in message.content:
        if piece.kind == "text":
            yield piece.text
        elif piece.kind == "thinking":
            yield piece.thinking
        elif piece.kind == "toolCall":
            yield f"{piece.name} {_arguments(piece.arguments)}"


def _arguments(value: object) -> str:
    """Write the texts of arguments as they are: an edit quotes lines, and JSON would escape them."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "\n".join(f"{key}: {_arguments(item)}" for key, item in cast("dict[str, object]", value).items())
    return json.dumps(value, ensure_ascii=False)


def _runs(text: str) -> list[str]:
    words = text.split()
    return [" ".join(words[at : at + _RUN]) for at in range(len(words) - _RUN + 1)]


def make_count() -> tuple[Callable[[str], float], str]:
    """Give what counts tokens: an exact tokenizer if one is installed, else segue's estimate."""
    if find_spec("splintr") is None:
        return TokenCounter(WRITER).text, "estimated"
    tokenizer: Any = import_module("splintr").Tokenizer.from_pretrained("o200k_base")
    return lambda text: len(tokenizer.encode(text)), "exact"


def measure_recall(
    sessions: Sequence[Session], windows: Sequence[int] = WINDOWS, *, looks_up: bool = False
) -> list[Figure]:
    """Measure the recall of all sessions together, at every window; `looks_up`: with one look-up for each request."""
    figures: list[Figure] = []
    for window in windows:
        tally, (count, counted) = Tally(), make_count()
        for session in sessions:
            model = replace(WRITER, context_window=window, max_input=0)
            play(session, model, tally, Texts(count), looks_up=looks_up)
        where = f"{window // 1000}k" + (" with look-ups" if looks_up else "")
        for measure in _MEASURES:
            value = tally.share(measure)
            if value is not None:
                figures.append(Figure(f"recall.{measure}.{where}", f"{where}: {measure}", "%", value))
        if looks_up:
            figures.append(Figure("", f"{where}: look-ups", "requests", float(tally.look_ups)))
        if tally.requests:
            figures.append(
                Figure("", f"{where}: tokens of a request, {counted}", "tokens", tally.tokens / tally.requests)
            )
            prefix = 100 * tally.reused / tally.all_tokens
            figures.append(Figure(f"recall.prefix.{where}", f"{where}: prefix reused", "%", prefix))
        figures.append(Figure("", f"{where}: requests", "requests", float(tally.requests)))
    return figures


def find_sessions(folder: Path | None, *, quick: bool) -> list[Session]:
    """Give the sessions of a folder; without one, generated sessions."""
    if folder is not None:
        return list(read_sessions(folder))
    return list(make_sessions(1, 150) if quick else make_sessions(6, 420))


def main() -> None:
    """Measure the sessions of a folder, or generated ones, and print a table."""
    parser = argparse.ArgumentParser(description="Measure what cut requests still hold.")
    parser.add_argument("folder", nargs="?", type=Path, help="a folder of sessions; without one they are generated")
    parser.add_argument("--look-ups", action="store_true", help="with one look-up for each request that was cut")
    given = parser.parse_args()
    for figure in measure_recall(find_sessions(given.folder, quick=False), looks_up=given.look_ups):
        print(f"{figure.what:40} {figure.written()}")


if __name__ == "__main__":
    main()
