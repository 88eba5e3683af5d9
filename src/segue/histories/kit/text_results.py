"""Results of tools that a program stores as texts of the user, as Cline does: paired with the calls that they answer.

Facts (Cline of April 2026, a file of 231 calls, read 2026-11-18):
- The answer to a call is a text `[NAME for 'ARGUMENT'] Result:` or `[NAME] Result:`, then the output. There is one
  block for each call, in the order of the calls of the reply before, and no `tool_result`. The name may be a short
  form: the call `use_subagents` has the text `[subagents]`. The argument may hold quotes and brackets.
- Words of the user are in `<task>`, `<feedback>` and `<user_message>`; the last can follow the mark of a result.
  `<environment_details>` and reminders of `task_progress` are texts of the program.
- Before native calls, to about autumn 2025, the calls were XML in the texts of the model: those stay texts.
- There is no error flag: an error is only visible in the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from segue.conversation.content import TextContent, ToolCall, UserContent
from segue.conversation.messages import Message, ToolResultMessage, UserMessage
from segue.histories.kit.envelope import AGENT

_RESULT: Final = re.compile(r"\A\[(\w[\w.-]*)(?: for [^\n]*?)?\] Result:[ \t]*\n?", re.DOTALL)
_WORDS: Final = re.compile(r"\A\s*<(task|feedback|user_message|answer)>\n?(.*?)\n?</\1>\s*\Z", re.DOTALL)
_PROGRAM: Final = re.compile(r"\A\s*(?:<environment_details>|# (?:task_progress|TODO) |\[TASK RESUMPTION\])")


def pair_text_results(messages: Sequence[Message]) -> list[Message]:
    """Make results of the texts that answer calls; calls without such a text stay open.

    The words of the user lose the tag around them, and what the program added is marked, whatever the calls are.
    """
    paired: list[Message] = []
    waiting: list[ToolCall] = []
    for message in messages:
        if message.role == "assistant":
            waiting = list(message.tool_calls())
            paired.append(message)
        elif message.role == "user":
            paired += _split(message, waiting)
            waiting = []
        else:
            if message.role == "toolResult":
                waiting = [call for call in waiting if call.id != message.tool_call_id]
            paired.append(message)
    return paired


def _split(message: UserMessage, waiting: list[ToolCall]) -> list[Message]:
    """Split a message of the user: the results in it, then the words of the user, then those of the program."""
    results: list[Message] = []
    words: list[UserContent] = []
    own: list[UserContent] = []
    for piece in message.content:
        if piece.kind != "text":
            words.append(piece)
            continue
        text = piece.text
        marked = _RESULT.match(text)
        call = None if marked is None else _take(waiting, marked[1])
        if marked is not None and call is not None:
            rest = text[marked.end() :]
            if (tagged := _WORDS.match(rest)) is not None and tagged[1] == "user_message":
                words.append(TextContent(text=tagged[2]))
            content = (TextContent(text=rest),) if rest else ()
            made = ToolResultMessage(tool_call_id=call.id, tool_name=call.name, content=content)
            results.append(replace(made, timestamp=message.timestamp, extra=message.extra))
        elif (tagged := _WORDS.match(text)) is not None:
            words.append(replace(piece, text=tagged[2]))
        else:
            (own if _PROGRAM.match(text) else words).append(piece)
    made_messages = list(results)
    if words:
        made_messages.append(replace(message, content=tuple(words)))
    if own:
        marks: dict[str, Any] = {**(message.extra or {}), AGENT: {"own": True}}
        made_messages.append(replace(message, content=tuple(own), extra=marks))
    return made_messages


def _take(waiting: list[ToolCall], name: str) -> ToolCall | None:
    """Take the next open call with this name, or the next one at all if its name is another form of it."""
    for at, call in enumerate(waiting):
        if call.name == name or call.name.endswith(name) or name.endswith(call.name):
            return waiting.pop(at)
    return waiting.pop(0) if waiting else None
