"""A tool with which a model looks up what was left out of its request: `recall`, answered from the stored history.

It is offered from the request on in which the history was first cut for a model: with the cut, the cached prefix and
the reasoning that is bound to it are lost anyway, so a new tool costs no more. The cut stays, and so does the tool.

Facts:
- Which of the omitted texts the next step needs cannot be known when they are cut: at a window of 16,000 tokens, 66 %
  of the rare words that the next turn used were in the request.                      (11 recorded sessions, 2026-11-17)
- Passages are ranked by BM25, with k1 = 1.2 and b = 0.75.        (Robertson and Zaragoza: The Probabilistic Relevance
                                                                   Framework, 2009; the defaults of Lucene)
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast, final

from msgspec.structs import replace

from segue.conversation.content import ToolCall
from segue.conversation.context import Context, Options, Tool, ToolDefinition
from segue.conversation.messages import AssistantMessage, Message
from segue.counting.counter import TokenCounter
from segue.models.model import Model
from segue.projection.fitting.facts import quoted_texts
from segue.projection.policy import Policy
from segue.requests.prepare import Request

RECALL: Final = ToolDefinition(
    name="recall",
    description=(
        "Searches the beginning of this conversation, which is no longer in your context, and returns the passages that"
        " match best, word for word. Use it before you ask the user again, guess a name or repeat work: for files that"
        " were read, outputs of commands, decisions and what the user wrote. Call it alone, before other tools."
    ),
    parameters={
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "Words that the passages contain: names, paths, error messages, key words.",
            }
        },
        "required": ["query"],
        "additionalProperties": False,
    },
)
_SHARE: Final = 1 / 16
_LARGEST: Final = 2_000
_SMALLEST: Final = 200
"""An answer may have a sixteenth of the input limit, and from 200 to 2,000 tokens."""
_PASSAGE: Final = 700
"""Characters of a passage, which ends with a line where it can."""
_TERMS: Final = 48
"""How many terms of a query count."""
_QUERY: Final = 4_000
"""How many characters of a query count."""
_COMPARED: Final = 300
"""How many passages are looked for in what is shown: each time all of that is read."""
_K1, _B = 1.2, 0.75
_WORD: Final = re.compile(r"[^\W_]+")
_IDEOGRAPHS: Final = "\u2e80"
"""From here on, scripts are written without blanks: their words are looked for as pairs of characters."""
_ANY: Final = Model("unknown", "unknown", "unknown")
_ROLES: Final = {"user": "the user", "assistant": "the assistant", "system": "the instructions"}
_NO_QUERY: Final = "The query is empty. Name words that the passages contain."
_NOTHING: Final = "Nothing of the omitted {count} messages matches. Try other words."
_FOUND: Final = "Passages of the {count} omitted messages, in their order:"


class _Passage(NamedTuple):
    at: int
    """The index of its message."""
    place: int
    """Its place in the message."""
    source: str
    text: str


# -- the search --------------------------------------------------------------------------------------------------------


def search(
    messages: Sequence[Message], query: str, room: float, counter: TokenCounter, shown: Sequence[Message] = ()
) -> str:
    """Return the passages of messages that match a query best, in their order, in so many tokens.

    What the messages `shown` have anyway is not repeated. The same messages and query give the same text.
    """
    terms = _terms(query[:_QUERY])
    if not terms:
        return _NO_QUERY
    head = _FOUND.format(count=len(messages))
    left, chosen = room - counter.text(head), list[_Passage]()
    known = set[str]()
    whole = "\n".join(text for message in shown for text in quoted_texts(message))
    for at, found in enumerate(_rank(messages, terms)):
        if found.text in known or (at < _COMPARED and found.text in whole):
            continue
        passage = found
        size = counter.text(passage.text) + counter.text(passage.source) + 6
        if size > left:
            if chosen:
                break
            passage = passage._replace(text=_shorten(passage.text, terms, left / size))
            size = left
        known.add(passage.text)
        left -= size
        chosen.append(passage)
    if not chosen:
        return _NOTHING.format(count=len(messages))
    return "\n\n".join((head, *_written(sorted(chosen))))


def recall_room(limit: int) -> float:
    """Return how many tokens an answer may have where a request may have `limit`."""
    return max(_SMALLEST, min(_LARGEST, limit * _SHARE))


def _written(chosen: Sequence[_Passage]) -> Iterator[str]:
    """Write passages; neighbours are joined."""
    at, parts = 0, list[str]()
    while at < len(chosen):
        first, parts = chosen[at], [chosen[at].text]
        while at + 1 < len(chosen) and chosen[at + 1][:2] == (first.at, chosen[at].place + 1):
            at += 1
            parts.append(chosen[at].text)
        at += 1
        yield f"[message {first.at}, {first.source}]\n" + "\n".join(parts)


def _shorten(text: str, terms: Sequence[str], share: float) -> str:
    """Return the part of a text around the first word that it was found by."""
    length, low = max(1, int(len(text) * share * 0.9)), text.casefold()
    first = min((at for term in terms if (at := low.find(term)) >= 0), default=0)
    begin = max(0, min(first - length // 3, len(text) - length))
    return text[begin : begin + length]


def _terms(query: str) -> list[str]:
    """Return the words of a query, without repetitions."""
    words = dict.fromkeys(term for word in _WORD.findall(query.casefold()) for term in _split(word))
    return list(words)[:_TERMS]


def _split(word: str) -> Iterator[str]:
    if word[0] < _IDEOGRAPHS:
        if len(word) > 1 or word.isdigit():
            yield word
    else:
        yield from (word[at : at + 2] for at in range(max(1, len(word) - 1)))


def _rank(messages: Sequence[Message], terms: Sequence[str]) -> list[_Passage]:
    """Return the passages that contain a term, the best first."""
    words = frozenset(term for term in terms if term[0] < _IDEOGRAPHS)
    pairs = [term for term in terms if term not in words]
    passages: list[tuple[_Passage, dict[str, int]]] = []
    holding = dict.fromkeys(terms, 0)
    count = size = 0
    for at, given in enumerate(messages):
        if given.role == "toolResult" and given.tool_name == RECALL.name:
            continue  # what was found before is in its own place
        message = _without_look_ups(given) if given.role == "assistant" else given
        source = _source(message)
        for place, text in enumerate(_passages(message)):
            count += 1
            size += len(text)
            low = text.casefold()
            counts = Counter(filter(words.__contains__, _WORD.findall(low))) if words else Counter[str]()
            counts.update({pair: found for pair in pairs if (found := low.count(pair))})
            if counts:
                passages.append((_Passage(at, place, source, text), counts))
                for term in counts:
                    holding[term] += 1
    mean = size / max(1, count)
    weights = {term: math.log(1 + (count - n + 0.5) / (n + 0.5)) for term, n in holding.items()}

    def score(entry: tuple[_Passage, dict[str, int]]) -> tuple[float, int, int]:
        passage, counts = entry
        norm = _K1 * (1 - _B + _B * len(passage.text) / mean)
        worth = sum(weights[term] * n * (_K1 + 1) / (n + norm) for term, n in counts.items())
        return -worth, -passage.at, passage.place  # of equal ones, the newest message

    return [passage for passage, _ in sorted(passages, key=score)]


def _without_look_ups(message: AssistantMessage) -> AssistantMessage:
    kept = tuple(piece for piece in message.content if piece.kind != "toolCall" or piece.name != RECALL.name)
    return message if len(kept) == len(message.content) else replace(message, content=kept)


def _source(message: Message) -> str:
    return f"result of {message.tool_name or 'a tool'}" if message.role == "toolResult" else _ROLES[message.role]


def _passages(message: Message) -> Iterator[str]:
    """Split the texts and calls of a message into passages that end with a line where they can."""
    for text in quoted_texts(message):
        at = 0
        while at < len(text):
            end = len(text)
            if end - at > _PASSAGE:
                line = text.rfind("\n", at + _PASSAGE // 3, at + _PASSAGE)
                end = at + _PASSAGE if line < 0 else line + 1
            if passage := text[at:end].strip("\n"):
                yield passage
            at = end


# -- the tool ----------------------------------------------------------------------------------------------------------


@final
class Recall:
    """Offers the tool where a request leaves messages out, and answers its calls. One for each loop."""

    def __init__(self) -> None:
        self._offered: set[str] = set()
        """The models whose last request had the tool."""
        self._omitted: Sequence[Message] = ()
        self._shown: Sequence[Message] = ()
        self._room: float = _LARGEST / 2
        self._counter: TokenCounter | None = None

    def prepare(
        self,
        make: Callable[..., Request],
        context: Context,
        model: Model,
        *,
        options: Options | None = None,
        policy: Policy | None = None,
        **given: Any,  # noqa: ANN401 - what else `make` takes
    ) -> Request:
        """Make a request with `make`, and again with the tool if it leaves messages out."""
        name, self._omitted = model.full_name(), ()
        if _has(context) or (options is not None and options.tool_choice == "none"):
            self._offered.discard(name)
            return make(context, model, options=options, policy=policy, **given)
        offering = replace(context, tools=(*context.tools, RECALL))
        is_offered = name in self._offered
        request = make(offering if is_offered else context, model, options=options, policy=policy, **given)
        if (_count_omitted(request) > 0) is not is_offered:
            is_offered = not is_offered
            request = make(offering if is_offered else context, model, options=options, policy=policy, **given)
        if is_offered and _has(request.projection.context):
            self._offered.add(name)
            self._omitted = context.messages[: _count_omitted(request)]
            self._shown = request.projection.context.messages
            window = request.projection.window
            self._room = recall_room(0 if window is None else window.limit)
            self._counter = TokenCounter(model, None if policy is None else policy.counter)
        else:
            self._offered.discard(name)
        return request

    @property
    def is_offered(self) -> bool:
        """Whether the last request had the tool."""
        return bool(self._omitted)

    @property
    def searched(self) -> tuple[int, int]:
        """In how many of the first messages calls are answered from, and the tokens of an answer (`answer_later`)."""
        return len(self._omitted), int(self._room)

    def answer(self, call: ToolCall, context: Context) -> str:
        """Return the text of the result of a call in a conversation.

        A program that continues a conversation may answer a call before its first request: then all of it is searched.
        """
        query = call.arguments.get("query")
        counter = self._counter or TokenCounter(_ANY)
        omitted = self._omitted or context.messages
        return search(omitted, query if isinstance(query, str) else "", self._room, counter, self._shown)


def answer_later(call: ToolCall, messages: Sequence[Message], count: int, room: int) -> str:
    """Return the text of the result of a call in the history before its turn, whatever model reads it now.

    `count` and `room` are what `Recall.searched` was when it was made. The same history gives the same text.
    """
    query = call.arguments.get("query")
    given = query if isinstance(query, str) else ""
    return search(messages[:count], given, room, TokenCounter(_ANY), messages[count:])


def _has(context: Context) -> bool:
    return any(RECALL.name in _names_of(tool) for tool in context.tools)


def _names_of(tool: Tool) -> Iterator[object]:
    """Yield the names that calls of a tool may have; a namespace has several."""
    if tool.kind == "function":
        yield tool.name
        return
    yield tool.definition.get("name")
    below = tool.definition.get("tools")
    for each in cast("Sequence[object]", below) if isinstance(below, Sequence) else ():
        if isinstance(each, Mapping):
            yield cast("Mapping[str, object]", each).get("name")


def _count_omitted(request: Request) -> int:
    """Return how many of the first messages are shortened or left out."""
    window = request.projection.window
    return 0 if window is None else max(window.lean, window.gone)
