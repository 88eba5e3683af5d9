"""Rows of data sets that are no requests: questions with answers, turns in other columns, other names of roles.

Facts this file rests on (data cards and loaders, read 2026-11-16):
- Alpaca rows have `instruction`, `input` (often empty) and `output`; LLaMA-Factory adds `system` and `history`, a list
  of pairs of a question and its answer. In a request of OpenAI's Responses `input` is the list of turns.
- Dolly has `instruction`, `context` and `response`; other sets have `prompt` with `response`, `question` with `answer`.
- TRL: `prompt` with `completion`, `prompt` alone, and preference rows whose `chosen` and `rejected` are whole
  conversations, or only answers to `prompt`.                                                 (TRL, dataset formats)
- LMSYS-Chat-1M and WildChat have messages in `conversation`; others have `conversations` with `role` and `content`.
- Roles are also written `human` and `gpt`, or with capital letters. A codec keeps a message of an unknown role as user
  content, so an answer would become a question.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias, cast, final

from segue.errors import DecodeError

Fields: TypeAlias = dict[str, object]

TURN_COLUMNS: Final = ("conversations", "conversation", "dialogue", "dialog", "chat")
"""Columns with a list of messages, beside `messages`."""
ANSWERS: Final = ("chosen", "rejected")
"""Columns of a preference row."""
_HISTORY: Final = "history"
_SYSTEM: Final = "system"


@final
class Pair(NamedTuple):
    """The columns of a question and its answer, and the column whose text belongs to the question."""

    question: str
    answer: str
    beside: str | None = None


PAIRS: Final = (
    Pair("prompt", "completion"),
    Pair("prompt", "response"),
    Pair("instruction", "output", "input"),
    Pair("instruction", "response", "context"),
    Pair("question", "answer"),
)
"""In this order a row is recognised."""
QUESTIONS: Final = frozenset(pair.question for pair in PAIRS)
_KEYS: Final = QUESTIONS.union(TURN_COLUMNS, ANSWERS)

_ROLES: Final[Mapping[str, str]] = {
    "human": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bot": "assistant",
    "chatbot": "assistant",
    "ai": "assistant",
}
"""Names of roles in data sets that no protocol has, in small letters."""
_KNOWN: Final = frozenset({"user", "assistant", "system", "developer", "tool", "function", "model", "toolResult"})


def has_other_form(row: Mapping[str, object]) -> bool:
    """Whether a row may have one of these forms, by its keys and the role of its first message."""
    if "messages" in row:
        return has_other_roles(row["messages"])
    return not _KEYS.isdisjoint(row)


def has_other_roles(turns: object) -> bool:
    """Whether the first message, or the one behind it, has a role of another name."""
    if not isinstance(turns, list):
        return False
    for turn in cast("list[object]", turns)[:2]:
        role = cast("Fields", turn).get("role") if isinstance(turn, dict) else None
        if isinstance(role, str) and role not in _KNOWN:
            return True
    return False


def as_messages(row: Fields) -> Fields:
    """Give a row with its turns in `messages`; the same row if it has none of these forms.

    Raises:
        DecodeError: the row has two conversations, or a question that is neither a text nor a list of messages.
    """
    if "messages" not in row:
        row = _with_messages(row)
    turns = row.get("messages")
    return {**row, "messages": _rename_roles(cast("list[object]", turns))} if has_other_roles(turns) else row


def _with_messages(row: Fields) -> Fields:
    for column in TURN_COLUMNS:
        turns = row.get(column)
        if isinstance(turns, list) and all(isinstance(turn, dict) for turn in cast("list[object]", turns)):
            return {"messages": cast("object", turns), **_without(row, column)}
    for pair in PAIRS:
        if row.get(pair.question) is not None and pair.answer in row and _is_question(row, pair):
            return _join(row, pair)
    if "chosen" in row and "rejected" in row:
        raise DecodeError("a preference row has two conversations; name one of them, such as --column chosen")
    prompt = row.get("prompt")
    if isinstance(prompt, (str, list)) and not ("input" in row or "contents" in row):
        return {"messages": _turns(cast("object", prompt), "user", "prompt"), **_without(row, "prompt")}
    return row


def _is_question(row: Fields, pair: Pair) -> bool:
    """Whether the text beside a question is one: a request has a list of turns there."""
    return pair.beside is None or not isinstance(row.get(pair.beside), list)


def _join(row: Fields, pair: Pair) -> Fields:
    used = [pair.question, pair.answer, *([] if pair.beside is None else [pair.beside])]
    turns: list[object] = []
    system, history = row.get(_SYSTEM), row.get(_HISTORY)
    if isinstance(system, str):
        used.append(_SYSTEM)
        turns += [{"role": "system", "content": system}] if system else []
    if isinstance(history, list):
        used.append(_HISTORY)
        turns += _read_history(cast("list[object]", history))
    question, more = row[pair.question], row.get(pair.beside) if pair.beside else None
    if isinstance(question, str) and isinstance(more, str) and more:
        question = f"{question}\n{more}"
    turns += _turns(question, "user", pair.question)
    answer = row[pair.answer]
    turns += [] if answer is None else _turns(answer, "assistant", pair.answer)
    return {**_without(row, *used), "messages": turns}


def _read_history(history: list[object]) -> list[object]:
    """Read pairs of a question and its answer."""
    turns: list[object] = []
    for index, pair in enumerate(history):
        texts = cast("list[object]", pair) if isinstance(pair, list) else []
        if len(texts) != len(("user", "assistant")) or not all(isinstance(text, str) for text in texts):
            raise DecodeError("expected a question and its answer", path=(_HISTORY, index))
        turns += [{"role": role, "content": text} for role, text in zip(("user", "assistant"), texts, strict=True)]
    return turns


def answer_to_prompt(row: Mapping[str, object], column: str, value: object) -> object:
    """Put the answer of a preference row behind its prompt; a conversation that has the prompt already stays."""
    prompt = row.get("prompt")
    if column not in ANSWERS or prompt is None:
        return value
    turns, answer = _turns(prompt, "user", "prompt"), _turns(value, "assistant", column)
    return answer if answer[: len(turns)] == turns else [*turns, *answer]


def _turns(value: object, role: str, key: str) -> list[object]:
    if isinstance(value, str):
        return [{"role": role, "content": value}]
    if isinstance(value, list):
        return cast("list[object]", value)
    raise DecodeError("expected a text or a list of messages", path=(key,))


def _rename_roles(turns: list[object]) -> list[object]:
    """Give messages with the names that protocols have; an unknown one is left to the codec."""
    return [_rename_role(turn) for turn in turns]


def _rename_role(turn: object) -> object:
    if not isinstance(turn, dict):
        return turn
    message = cast("Fields", turn)
    role = message.get("role")
    small = role.lower() if isinstance(role, str) else ""
    name = _ROLES.get(small, small)
    return message if role in _KNOWN or name not in _KNOWN else {**message, "role": name}


def _without(row: Fields, *keys: str) -> Fields:
    return {key: value for key, value in row.items() if key not in keys}
