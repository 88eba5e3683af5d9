"""`ReplyForm`: what a reply of a protocol can hold of a reply that another protocol gave.

Everything that every protocol has, texts and calls, needs no entry here. The default is a protocol that has thinking
and nothing else: blocks of other protocols become text, and cited pages are listed as text.

Replies also say which state of the request a server withheld from its model, each protocol in its own words. Facts:
- Claude says what it dropped in `input_transformations`, by its path in the request.     (anthropic 2.8.0, 2026-11-16)
- OpenAI says it in a list of the same name, by the id of the reasoning item.              (openai 3.51.0, 2026-11-18)
- OpenAI removes reasoning at the end of a turn as a matter of course: `turn_boundary`.    (the same, by its name)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, final

import msgspec

from segue.conversation.content import NativeContent, TextContent, ToolCall
from segue.conversation.context import ToolDefinition
from segue.conversation.messages import AssistantMessage, Diagnostic
from segue.foundation.plurals import counted
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Block
from segue.protocols.kit.sources import CitedPage


@final
class Search(msgspec.Struct, frozen=True):
    """A search in the web that a provider ran: what was searched for, and the pages it found.

    A protocol may write both as two blocks; then the first has no pages and `is_open`.
    """

    query: str = ""
    pages: tuple[CitedPage, ...] = ()
    is_open: bool = False


CiteInReply: TypeAlias = Callable[[AssistantMessage, Endpoint, Sequence[CitedPage], Sequence[str]], AssistantMessage]


@final
class ReplyForm(msgspec.Struct, frozen=True, kw_only=True):
    """What replies of a protocol have places for, and how it is written there.

    - `thinking`: whether a reply has a place for readable thinking.
    - `id_prefix`: how the ids of replies begin; empty if the protocol has none, or they are of any form.
    - `refusals`: the stop reasons of a reply that was withheld: it ended, and is not a failure of the connection. The
      first is written for the reasons of other protocols.
    - `is_refusal(text)`: whether a text is a refusal that a reply has its own place for, and no answer.
    - `cite_in_text(text, pages)`: the same text with citations of pages.
    - `cite_in_reply(message, endpoint, pages, queries)`: the same reply with citations next to its content, and what
      was searched for, if `searches_in_reply` is set.
    - `read_search(block)`: the search that a native block of this protocol represents; None for any other block.
    - `write_search(search, block)`: a native block of this protocol for a search that another protocol wrote as
      `block`; None: its blocks hold data that only the provider can make, or it has none.
    - `as_declared(call, tool)`: a call of a tool in the format in which the client declared it, and the keys that the
      beginning of a streamed call needs for it.
    - `withheld(reply, body)`: the signatures of a request that the server did not read, by what its reply says, with
      the reasons; None if it says nothing.
    """

    thinking: bool = True
    id_prefix: str = ""
    refusals: tuple[str, ...] = ()
    is_refusal: Callable[[TextContent], bool] | None = None
    cite_in_text: Callable[[TextContent, Sequence[CitedPage]], TextContent] | None = None
    cite_in_reply: CiteInReply | None = None
    searches_in_reply: bool = False
    read_search: Callable[[NativeContent], Search | None] | None = None
    write_search: Callable[[Search, Block], Block] | None = None
    as_declared: Callable[[ToolCall, ToolDefinition], tuple[ToolCall, Block]] | None = None
    withheld: Callable[[Block, Block], Mapping[str, str] | None] | None = None


DEFAULT_FORM = ReplyForm()


# -- state that a server withheld --------------------------------------------------------------------------------------

TRANSFORMATIONS: Final = "input_transformations"
WITHHELD: Final = "reasoning_dropped"
"""The type of the diagnostic."""
NO_FAULT: Final = frozenset({"turn_boundary"})
"""Reasons that say nothing about later requests."""
OF_MODEL: Final = frozenset({"model_mismatch", "model_binding_mismatch"})
"""Reasons that hold for the model that was asked, and for no other."""
OF_ACCOUNT: Final = frozenset({"organization_mismatch"})
"""Reasons that hold for the account that was asked, and for no other.."""


def note_withheld(entries: Sequence[Mapping[str, str]]) -> tuple[Diagnostic, ...]:
    """Say what the provider did not read of a request: where it is, or its id, and why; empty if it read everything."""
    if not entries:
        return ()
    reasons = ", ".join(dict.fromkeys(entry["reason"] for entry in entries))
    message = f"the provider did not read {counted(len(entries), 'block')} of thinking: {reasons}"
    return (Diagnostic(type=WITHHELD, message=message, details={"dropped": [dict(entry) for entry in entries]}),)
