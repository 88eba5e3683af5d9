"""Rows of data sets that are not requests: questions with answers, turns in other columns, other names of roles.

Facts (data cards and loaders, read 2026-11-16):
- Alpaca rows have `instruction`, `input` (often empty) and `output`; LLaMA-Factory adds `system` and `history`, a list
  of pairs of a question and its answer. In a request of OpenAI's Responses `input` is the list of turns.
- Dolly has `instruction`, `context` and `response`; other sets have `prompt` with `response`, `question` with `answer`.
- TRL: `prompt` with `completion`, `prompt` alone, and preference rows whose `chosen` and `rejected` are whole
  conversations, or only answers to `prompt`.                                                 (TRL, dataset formats)
- LMSYS-Chat-1M and WildChat have messages in `conversation`; others have `conversations` with `role` and `content`.
- Arrow fills a missing field of a struct with null: `"tool_calls": null, "name": null` in every message. Taken for
  something that a client sent, 800 agent traces had 39,983 reported losses in place of 1,776. `content: null` is what
  clients send with calls, so it stays.                                                  (measured 2026-11-15)
- Inside the arguments of a call a null that was sent looks like one that was filled in: Spark, DuckDB and older
  `datasets` give `{x: 1, y: null}` for `{x: 1}`. Nothing is removed there; the rows are counted.     (the same)
- `tools` is often a JSON text next to `messages`, and `datasets` 4.8 and later keep a message as a JSON text.
                                                                     (TRL pull request 5307; datasets 5.2.0)
- LLaMA-Factory writes a tool as a bare function: name, description, parameters. (README of its data, 2026-11-15)
- TRL's prompt-completion rows have `prompt` and `completion`; preference rows `chosen` and `rejected`. (TRL, formats)
- Pictures are in a separate column, `images` or `image`: a URL, base64, or `{bytes, path}` as `datasets` keeps
  them. In the messages, `{"type": "image"}` marks the place of the next one.     (TRL, vision data sets, 2026-11-17)
- Roles are also written `human` and `gpt`, or with capital letters. A codec keeps a message of an unknown role as user
  content, so an answer would become a question.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias, cast, final

import msgspec

from segue.errors import DecodeError
from segue.histories.kit.pictures import PICTURES, picture_addresses

Fields: TypeAlias = dict[str, object]

TURN_COLUMNS: Final = ("conversations", "conversation", "dialogue", "dialog", "chat")
"""Columns with a list of messages, in addition to `messages`."""
ANSWERS: Final = ("chosen", "rejected")
"""Columns of a preference row."""
_HISTORY: Final = "history"
_SYSTEM: Final = "system"
_PROMPT: Final = "system_prompt"
"""The column of instructions next to `messages`; no protocol has a field of that name."""


@final
class ColumnPair(NamedTuple):
    """The columns of a question and its answer, and the column whose text belongs to the question."""

    question: str
    answer: str
    beside: str | None = None


PAIRS: Final = (
    ColumnPair("prompt", "completion"),
    ColumnPair("prompt", "response"),
    ColumnPair("instruction", "output", "input"),
    ColumnPair("instruction", "response", "context"),
    ColumnPair("question", "answer"),
)
"""In this order a row is recognised."""
QUESTIONS: Final = frozenset(pair.question for pair in PAIRS)
TURNS: Final = ("messages", "contents", "input")
"""Keys of the list of turns, of all protocols."""
TOOLS: Final = ("tools", "functions")
_FREE: Final = frozenset({"arguments", "args", "input", "default", "const", "enum", "examples"})
"""Keys below which a null may have been sent."""
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
    if not row.keys().isdisjoint(PICTURES):
        return True
    if "messages" in row:
        return isinstance(row.get(_PROMPT), str) or has_other_roles(row["messages"])
    return not _KEYS.isdisjoint(row)


def has_other_roles(turns: object) -> bool:
    """Whether the first message, or the one after it, has a role with another name."""
    if not isinstance(turns, list):
        return False
    for turn in cast("list[object]", turns)[:2]:
        role = cast("Fields", turn).get("role") if isinstance(turn, dict) else None
        if isinstance(role, str) and role not in _KNOWN:
            return True
    return False


def as_body(row: Fields) -> Fields:
    """Return the body of a request with the conversation of a row.

    Raises:
        DecodeError: the row has two conversations, or a column that cannot be read.
    """
    body = as_messages(parse_columns(row))
    return drop_nulls(body)[0] if has_filled_nulls(body) else body


def as_messages(row: Fields) -> Fields:
    """Return a row with its turns in `messages`; the same row if it has none of these forms.

    Raises:
        DecodeError: the row has two conversations, or a question that is neither a text nor a list of messages.
    """
    if "messages" not in row:
        row = _with_messages(row)
    turns = row.get("messages")
    if has_other_roles(turns):
        row = {**row, "messages": _rename_roles(cast("list[object]", turns))}
    prompt, turns = row.get(_PROMPT), row.get("messages")
    if isinstance(prompt, str) and prompt and isinstance(turns, list):
        system = {"role": "system", "content": prompt}
        row = {**_without(row, _PROMPT), "messages": [system, *cast("list[object]", turns)]}
    return row if row.keys().isdisjoint(PICTURES) else _with_pictures(row)


def _with_pictures(row: Fields) -> Fields:
    """Put the pictures of a row in place of their marks; the same row if it has no mark.

    Raises:
        DecodeError: the row has fewer or more pictures than marks, or one that cannot be read.
    """
    turns = row.get("messages")
    messages = cast("list[object]", turns) if isinstance(turns, list) else []
    marks = sum(map(_is_mark, (block for message in messages for block in _blocks_of(message))))
    if not marks:
        return row
    column = next(name for name in PICTURES if name in row)
    given = row[column]
    addresses = iter(picture_addresses(given, column))
    found = len(cast("list[object]", given)) if isinstance(given, list) else 1
    if found != marks:
        raise DecodeError(f"the messages have {marks} places for pictures, and this column has {found}", path=(column,))
    filled: list[object] = []
    for message in messages:
        blocks = _blocks_of(message)
        if any(map(_is_mark, blocks)):
            content = [_picture(next(addresses)) if _is_mark(block) else block for block in blocks]
            filled.append({**cast("Fields", message), "content": content})
        else:
            filled.append(message)
    return {**_without(row, column), "messages": filled}


def _blocks_of(message: object) -> list[object]:
    content = cast("Fields", message).get("content") if isinstance(message, dict) else None
    return cast("list[object]", content) if isinstance(content, list) else []


def _is_mark(block: object) -> bool:
    """Whether a block marks the place of a picture: it has the type, and nothing of the picture."""
    fields = cast("Fields", block) if isinstance(block, dict) else {}
    return fields.get("type") == "image" and all(
        value is None for key, value in fields.items() if key not in ("type", "index")
    )


def _picture(address: str) -> Fields:
    return {"type": "image_url", "image_url": {"url": address}}


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


def _is_question(row: Fields, pair: ColumnPair) -> bool:
    """Whether the text next to a question is one: a request has a list of turns there."""
    return pair.beside is None or not isinstance(row.get(pair.beside), list)


def _join(row: Fields, pair: ColumnPair) -> Fields:
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
    """Append the answer of a preference row to its prompt; a conversation that has the prompt already stays."""
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
    """Return messages with the names that protocols have; an unknown one is left to the codec."""
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


# -- JSON texts in columns, and nulls of missing fields ----------------------------------------------------------------


def is_bare(tool: object) -> bool:
    """Whether a tool is a function as data sets write it, without the object around it; no protocol has that form."""
    if not isinstance(tool, dict):
        return False
    fields = cast("Fields", tool)
    return "name" in fields and "parameters" in fields and "type" not in fields and "function" not in fields


def is_as_sent(row: Fields) -> bool:
    """Whether a row is an unchanged request, by the keys that would have to be read in another way."""
    tools = row.get("tools")
    tool: object = cast("list[object]", tools)[0] if type(tools) is list and tools else None
    if (
        isinstance(tools, str)
        or isinstance(tool, str)
        or is_bare(tool)
        or isinstance(row.get("functions"), str)
        or has_other_form(row)
    ):
        return False
    turns = row.get("messages")
    if type(turns) is not list or not turns:
        return "messages" not in row
    first = cast("list[object]", turns)[0]
    return type(first) is dict and not has_nulls(cast("Fields", first))


def is_sharegpt(row: Mapping[str, object]) -> bool:
    """Whether a row has turns of `from` and `value`, which the format of that name reads."""
    turns = row.get("conversations")
    first = cast("list[object]", turns)[0] if isinstance(turns, list) and turns else None
    return isinstance(first, Mapping) and "from" in first and "value" in first


def has_filled_nulls(body: Fields) -> bool:
    """Whether the missing fields of messages were filled with nulls: the first message has one."""
    for key in TURNS:
        turns = body.get(key)
        if isinstance(turns, list) and turns and isinstance(first := cast("list[object]", turns)[0], dict):
            return has_nulls(cast("Fields", first))
    return False


def has_nulls(message: Fields) -> bool:
    """Whether a field of a message other than its content is null."""
    return None in message.values() and any(value is None and key != "content" for key, value in message.items())


def drop_nulls(body: Fields) -> tuple[Fields, bool]:
    """Remove the nulls that represent missing fields; also return whether arguments hold nulls, which stay."""
    found = _Found()
    out: Fields = {}
    for key, value in body.items():
        if value is None:
            continue
        if key in TURNS and isinstance(value, list):
            out[key] = [_without_nulls(item, found, keep="content") for item in cast("list[object]", value)]
        else:
            out[key] = _without_nulls(value, found)
    return out, found.nulls


@final
class _Found:
    """Whether a null was found where one may have been sent."""

    __slots__ = ("nulls",)

    def __init__(self) -> None:
        self.nulls: bool = False


def _without_nulls(value: object, found: _Found, keep: str = "") -> object:
    if type(value) is dict:
        out: Fields = {}
        for key, item in cast("Fields", value).items():
            if item is None:
                if key == keep:
                    out[key] = None
            elif key in _FREE:
                found.nulls = found.nulls or _holds_null(item)
                out[key] = item
            else:
                out[key] = _without_nulls(item, found) if type(item) in (dict, list) else item
        return out
    if type(value) is list:
        return [_without_nulls(item, found) for item in cast("list[object]", value)]
    return value


def _holds_null(value: object) -> bool:
    if type(value) is dict:
        return any(item is None or _holds_null(item) for item in cast("Fields", value).values())
    if type(value) is list:
        return any(item is None or _holds_null(item) for item in cast("list[object]", value))
    return False


def parse_columns(row: Fields) -> Fields:
    """Parse the JSON texts in the columns of turns and tools; the same row if there are none."""
    changed: Fields = {}
    for key in TOOLS:
        tools = row.get(key)
        if isinstance(tools, str):
            changed[key] = parse_text(tools, key) if tools.strip() else None
        elif isinstance(tools, list) and any(isinstance(tool, str) for tool in cast("list[object]", tools)):
            changed[key] = _parse_items(cast("list[object]", tools), key)
    given = changed["tools"] if "tools" in changed else row.get("tools")
    items = cast("list[object]", given) if isinstance(given, list) else []
    if any(map(is_bare, items)):
        changed["tools"] = [{"type": "function", "function": tool} if is_bare(tool) else tool for tool in items]
    for key in (*TURNS, *TURN_COLUMNS):
        turns = row.get(key)
        if isinstance(turns, list) and turns and isinstance(cast("list[object]", turns)[0], str):
            changed[key] = _parse_items(cast("list[object]", turns), key)
        elif isinstance(turns, str) and key not in ("input", "contents") and turns.lstrip()[:1] == "[":
            changed[key] = parse_text(turns, key)
    if not changed:
        return row
    joined = {**row, **changed}
    return {key: value for key, value in joined.items() if value is not None or key not in changed}


def parse_text(text: str | bytes, key: str) -> object:
    """Parse the JSON text of a column.

    Raises:
        DecodeError: it is not valid JSON.
    """
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise DecodeError(f"not valid JSON: {error}", path=(key,)) from None


def _parse_items(items: list[object], key: str) -> list[object]:
    """Parse the items that are JSON texts of objects."""
    out: list[object] = []
    for index, item in enumerate(items):
        if not isinstance(item, str):
            out.append(item)
            continue
        try:
            out.append(msgspec.json.decode(item))
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise DecodeError(f"not valid JSON: {error}", path=(key, index)) from None
    return out
