"""Small records of facts about a protocol that the parts around the codecs read: passes, gateway, emulator."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Literal, TypeAlias, final

import msgspec

from segue.conversation.content import AssistantContent, ToolCall
from segue.conversation.context import NativeTool, Tool, ToolDefinition
from segue.protocols.kit.json_values import Block, Wire


@final
class StateSlots(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a reply in which clients return what they do not understand, so that they can hold an envelope.

    - `thinking`: how an envelope is written as the signature of thinking: as it is, or as an entry of details.
    - `call`, `text`: whether the signature of a call or a text may be an envelope.
    - `insert`: the content that is added where none of the reply's own has a field for it.
    - `is_ordered`: whether inserted content may come before other content; otherwise it is at the end.
    - `is_redacted`: whether inserted thinking is marked as redacted.
    - `prefix`: the first characters of the ids of calls.
    - `long_ids`: without a store, the id of a call is an envelope. Ids of 65,000 characters survive in 15 of 16 clients
      (run 2026-11).

    The default has no such field: only the store of a gateway has the state of a reply.
    """

    thinking: Literal["plain", "details"] | None = None
    call: bool = False
    text: bool = False
    insert: Literal["thinking", "text"] | None = None
    is_ordered: bool = False
    is_redacted: bool = False
    prefix: str = "call_"
    long_ids: bool = False


ClaudeWire: TypeAlias = Literal["messages", "converse"]
"""How a request to a Claude model is written: as Anthropic has it, or as Bedrock's Converse has it."""


@final
class SignatureForm(msgspec.Struct, frozen=True, kw_only=True):
    """How providers sign the reasoning of their replies, for the emulator. The default signs nothing.

    - `holder`: what is signed: the thinking itself, a reasoning item, an entry of `reasoning_details`, or the first
      call or last text of a reply; `thought`: the thinking, which every reply with calls has.
    - `refusal`: how a signature is refused that is not valid; `{message}` and `{piece}` are its place.
    - `valid_in`: what a signature is bound to: the caller's organization, or one of the provider's endpoints.
    - `other_realm`: how a valid signature of another organization or endpoint is refused, if in other words.
    - `claude`: how requests to Claude models are written; None: providers of this protocol do not check their prefix.
    - `asks_for_thinking(body)`: whether a request asks to see thinking; None: a reply has what there is.
    """

    holder: Literal["thinking", "item", "details", "part", "thought"] | None = None
    refusal: str = ""
    valid_in: Literal["organization", "endpoint"] | None = None
    other_realm: str | None = None
    claude: ClaudeWire | None = None
    asks_for_thinking: Callable[[Mapping[str, object]], bool] | None = None


@final
class SearchForm(msgspec.Struct, frozen=True, kw_only=True):
    """What searches of the provider leave in a reply, for the emulator.

    - `blocks`: the blocks of one search; `{}` in a value is its number.
    - `count(fields, searches)`: says how many there were in a body, or in the frame of a stream with a place for it.
    """

    blocks: tuple[Mapping[str, object], ...] = ()
    count: Callable[[dict[str, object], int], None] | None = None


@final
class TrainingForm(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a training file: the keys that it has, and whether its messages have weights.

    `writer` is the protocol that writes the line, if it is another one; `ids` is a pattern of the ids of the models
    that have this form; `rules` are those of its turns that requests of the writing protocol do not have.
    """

    keys: frozenset[str] = frozenset({"system", "messages", "tools"})
    writer: str | None = None
    ids: str = ""
    has_weights: bool = False
    rules: Mapping[str, object] = {}


@final
class ItemIds(msgspec.Struct, frozen=True, kw_only=True):
    """How a protocol keeps the ids of items, each of which a request may hold once, in the content that was read.

    - `find(content)`: the id of the item; None if it has none, or the content is a native block.
    - `remove(content)`: the same content without the id.
    - `start`: how the signature of nearly every item begins: with its id, up to the next quotation mark.
    - `references`: the types of native blocks whose id is that of another item.
    """

    find: Callable[[AssistantContent], str | None]
    remove: Callable[[AssistantContent], AssistantContent]
    start: str
    references: frozenset[str] = frozenset()


FunctionName: TypeAlias = tuple[str | None, str]
"""The namespace of a function, None without one, and its name."""


@final
class Namespace(msgspec.Struct, frozen=True, kw_only=True):
    """A group of functions in the list of tools, as functions that one protocol lets a caller define."""

    name: str
    description: str = ""
    functions: tuple[ToolDefinition, ...] = ()


@final
class Namespaces(msgspec.Struct, frozen=True, kw_only=True):
    """How a protocol writes namespaces.

    - `read(tool)`: a tool that is a namespace; None for any other.
    - `find(call)`: the namespace of a call, as the provider wrote it; None without one. It is in the `extra` of the
      call, or in its signature, which then contains the text `key`.
    - `add(call, namespace)`: the same call with a namespace.
    - `is_deferred(tool)`: whether the definition of a function is loaded only when it is searched for.
    - `load(tool, names)`: the same tool with these functions not deferred.
    """

    read: Callable[[NativeTool], Namespace | None]
    find: Callable[[ToolCall], str | None]
    key: str
    add: Callable[[ToolCall, str], ToolCall]
    is_deferred: Callable[[ToolDefinition], bool]
    load: Callable[[Tool, Collection[str]], Tool]


ServerEdit: TypeAlias = Literal["clear", "compact"]
"""What a server does with the beginning of a long conversation: it clears old tool results, or it summarises."""


@final
class ServerEdits(msgspec.Struct, frozen=True, kw_only=True):
    """How a server is asked to shorten a conversation itself, and how its replies say that it did.

    - `form`: whether `context_management` is an object with `edits`, or a list.
    - `ask(fields, edit, above)`: the fields of a request with an edit for conversations of more than so many tokens
      (None: the server's own number); the given object if they have it already, or if it cannot be next to them.
    - `needed(block)`: the edit without which a request with this block is refused; None if there is none.
    - `covers(block)`: whether the server reads this block in place of everything before it.
    - `applied(reply)`: what the server did, a sentence for each edit.
    - `count(fields, compactions)`: says in a body, or in the frame of a stream that has a place for it, how many tokens
      the compactions before the reply read and wrote; None: they are not counted apart.
    """

    form: Literal["edits", "list"]
    ask: Callable[[Block, ServerEdit, int | None], Block]
    covers: Callable[[Block], bool]
    applied: Callable[[Mapping[str, object]], list[str]]
    needed: Callable[[Block], ServerEdit | None]
    count: Callable[[dict[str, object], Sequence[tuple[int, int]]], None] | None = None


@final
class PrefixForm(msgspec.Struct, frozen=True, kw_only=True):
    """How a protocol holds what reasoning is bound to: instructions, tools, turns, and the blocks of reasoning in them.

    A provider that binds reasoning to its prefix compares values, so key order does not count; cache marks and the
    blocks of reasoning themselves are not compared.
                                               (Anthropic documentation: preserved thinking, 2026-09; probed 2026-09-26)

    - `system(body)`, `tools(body)`: the values that are compared, without cache marks; None if there are none.
    - `turn(turn)`: a turn without reasoning and cache marks; of two forms with the same meaning, always the same one.
    - `starts(turn)`: whether the compared prefix starts with this turn, whatever comes before it.
    - `signature(block)`: the signature of a block of reasoning; None for every other block.
    - `asks(body)`: whether the body asks the server to drop reasoning that is not valid after its prefix.
    - `ask(body)`: makes it ask, in place; False if this request cannot.
    - `headers`: the headers that a body which asks needs.
    - `system_block(text)`: a system prompt of one text in its other form, which counts as another one; None if there is
      one form.
    """

    system: Callable[[Block], object]
    tools: Callable[[Block], object]
    turn: Callable[[Block], Block]
    starts: Callable[[Block], bool]
    signature: Callable[[Block], str | None]
    asks: Callable[[Block], bool]
    ask: Callable[[Wire], bool]
    system_block: Callable[[str], object] | None = None
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])


NO_SLOTS: Final = StateSlots()
NO_SIGNATURES: Final = SignatureForm()
