"""Rules: what a target accepts.

A rule changes the meaning of a request, so projection follows it and `check` reports violations. Differences in format
alone belong to the dialect. The defaults below accept everything; the `rules` file of each protocol restricts them,
with source and date, and providers, families and models override single fields.

Resolution (in the protocols' registry): protocol < provider < family of models < model < caller. An unknown key is an
error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, final

import msgspec

from segue.models.model import Modality
from segue.models.rule import Place, Rule

ReasoningReplay: TypeAlias = Literal["none", "signed", "open", "required"]
MediaSource: TypeAlias = Literal["data", "url", "file_id"]
_NONE: Final = frozenset[str]()


@final
class Rules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that projection and `check` need to know about a target. Every field has a value.

    Patterns of media are MIME types, with `*` allowed after the slash. An alphabet is the inside of a character class
    of a regular expression; None allows every character. A limit of 0 means no limit.
    """

    rows: Mapping[str, Rule] = msgspec.field(default_factory=dict[str, Rule])
    """What only some targets refuse, by its place (`Rule`)."""

    def has(self, place: Place) -> bool:
        """Whether there is a row of a place."""
        return place in self.rows

    def least(self, place: Place) -> int:
        """Return the lower limit of a place; 0 without one."""
        row = self.rows.get(place)
        return 0 if row is None or row.least is None else int(row.least)

    def most(self, place: Place) -> int:
        """Return the upper limit of a place; 0 without one."""
        row = self.rows.get(place)
        return 0 if row is None or row.most is None else int(row.most)

    def values(self, place: Place) -> frozenset[str]:
        """Return the values of a place; none without a row."""
        row = self.rows.get(place)
        return _NONE if row is None else row.values

    # -- tools ---------------------------------------------------------------------------------------------------------
    tools: bool = True
    """Whether tools are supported; otherwise calls and results become text."""
    tools_with_history: bool = False
    """Whether a history with calls needs tool definitions in the request."""
    call_id_alphabet: str | None = None
    """The characters that the id of a call may have, as in a class of a regular expression; None: all."""
    call_id_min: int = 1
    """The fewest characters of the id of a call."""
    call_id_max: int = 0
    """The most characters of the id of a call."""
    tool_name_alphabet: str | None = None
    """The characters that the name of a tool may have; None: all."""
    tool_name_first: str | None = None
    """The alphabet of the first character of a tool name, if it is smaller."""
    tool_name_max: int = 0
    """The most characters of the name of a tool."""
    max_tools: int = 0
    """The most tools of a request."""
    tool_choices: frozenset[str] = frozenset({"auto", "none", "required", "name"})
    """Supported values of `tool_choice`; `name` represents one tool by name. If `auto` is not listed, it has no value
    on the wire: it is the default when no choice is sent."""
    forced_choice_with_thinking: bool = True
    """Whether a tool may be forced (`required` or by name) while thinking is on."""
    thinks_unasked: bool = False
    """Whether thinking is on where the request says nothing about it. Projection disables it for a forced tool."""
    unstreamed: bool = True
    """Whether a reply may come whole; otherwise projection sets `stream`."""
    functions_with_thinking: Literal["allowed", "unset", "off"] = "allowed"
    """Whether functions may be sent while the model thinks: always; only if the request sets no level; only if it
    disables thinking explicitly. Projection disables thinking then, so that the tools are kept."""
    choice_of_functions: bool = False
    """Whether a tool choice is refused if all tools are the provider's own."""
    paired_calls: bool = True
    """Whether `check` reports a call without a result and a result without a call: some servers accept both. Projection
    pairs them for every target."""
    tool_types: frozenset[str] | None = None
    """The types of tools that the endpoint has, where its wire shares them with others; None: unknown."""
    server_tools: frozenset[str] | None = None
    """The tools that the provider runs itself, by the names in the `server_tools` of the protocol. A tool of another
    provider is replaced by the one of the same kind. None: unknown, so none is added, and a tool of the same protocol
    is sent unchanged."""
    server_tools_with_functions: Literal["allowed", "flag", "refused"] = "allowed"
    """Whether server tools and functions may be in one request; `flag`: only with a field that the row of the tool
    names."""
    refused_tool_types: frozenset[str] = frozenset()
    """Types of tools that the protocol has and this model refuses."""
    tool_namespaces: bool = False
    """Whether functions may be grouped in a namespace; otherwise they are sent one by one."""
    calls_last: bool = False
    """Whether nothing may follow the calls of an assistant turn."""
    tool_error: Literal["flag", "text"] = "flag"
    """Whether a result has an error flag, or the error is marked in its text."""
    call_signature: Literal["free", "required", "thought"] = "free"
    """Whether the first call of every step needs a signature; `thought`: signed thinking has to come before it."""
    schema_root_object: bool = False
    """Whether the root of a tool's schema needs `"type": "object"`."""
    schema_needed: bool = True
    """Whether a tool needs a schema even without parameters; otherwise an empty one is not sent."""

    # -- media ---------------------------------------------------------------------------------------------------------
    refused_input: frozenset[Modality] = frozenset()
    """Kinds of media that the model is known to refuse. One of a user's own refuses what its `input` does not list."""
    user_media: tuple[str, ...] = ("*",)
    """MIME types that the protocol allows in a user message. The model has to support them too."""
    result_media: tuple[str, ...] = ("*",)
    """MIME types that the protocol allows in a tool result. The model has to support them too."""
    result_text_only: bool = False
    """Whether media in a tool result are known to be refused. Where a model may only overlook them, `result_media` is
    empty, and `check` does not report them."""
    image_sources: frozenset[MediaSource] = frozenset({"data", "url"})
    """How images can be given."""
    file_sources: frozenset[MediaSource] = frozenset({"data", "url", "file_id"})
    """How all other files can be given."""
    url_media: tuple[str, ...] = ("*",)
    """MIME types that the target fetches from a URL, where its sources have `url`."""
    url_schemes: frozenset[str] = frozenset()
    """Schemes of the URLs that the target reads; empty where they are not known."""
    file_id_pattern: str | None = None
    """A regular expression for this provider's file ids; other ids belong to other providers."""
    max_images: int = 0
    """The most images of one request."""
    file_context: bool = False
    """Whether a document can have a context (`FileContent.context`); otherwise it is sent as text before the file."""

    # -- turns ---------------------------------------------------------------------------------------------------------
    alternate: bool = False
    """Whether user and assistant turns have to alternate; tool results count as user turns. The codec decides whether
    results and the user turn after them become one turn on the wire."""
    first_user: bool = False
    """Whether the first turn has to be a user turn."""
    last_assistant: bool = True
    """Whether the last turn may be an assistant turn."""
    assistant_prefix: bool = False
    """Whether `AssistantMessage.prefix` can be sent: such a message may be the last one even where others may not."""
    user_after_result: bool = True
    """Whether a user turn may follow tool results; otherwise a short assistant turn is put between them."""
    system_prompt: bool = True
    """Whether the request has a system prompt; otherwise it becomes the first user turn."""
    system_messages: Literal["anywhere", "before_assistant", "none"] = "anywhere"
    """Where system messages are allowed: anywhere after the first turn; only after a user turn and before an assistant
    turn (or last); nowhere."""
    instructions_alone: bool = True
    """Whether a request may have instructions and no other turn; otherwise a short user turn is added. A target that
    requires a user turn first or last requires one here too."""
    refused_text: Literal["none", "empty", "blank"] = "none"
    """Which texts are refused: none, empty ones, or also those of white space. Projection removes them."""
    blank_beside: frozenset[str] = frozenset({"signed"})
    """Content of a turn next to which a refused text is accepted: kinds, `signed` for thinking with a signature, `text`
    for a text that is not blank. Where texts of white space are refused, an empty one is refused with all of them."""
    text_signatures: bool = False
    """Whether a text can have a signature; a blank text with a signature is not removed."""
    empty_result: bool = True
    """Whether a tool result may have no content."""
    unique_items: bool = False
    """Whether no two items of a request may have the same id, where the wire gives ids to items."""

    # -- reasoning -----------------------------------------------------------------------------------------------------
    reasoning_replay: ReasoningReplay = "none"
    """How thinking can be replayed: not at all; only if the target signed it; any readable thinking; or every assistant
    turn needs thinking, which may be empty."""
    thinking_before_calls: bool = False
    """Whether a tool cycle has to run in one mode: with thinking on, its first turn and a last assistant turn have to
    begin with thinking; with thinking off, its turns may not contain thinking."""

    final_thinking: Literal["allowed", "text", "drop"] = "allowed"
    """Whether an assistant turn may end in thinking; otherwise a short text is added, or the thinking is removed."""

    bound_prefix: bool = False
    """Whether signed reasoning is accepted only after exactly the instructions, tools and messages that it was made
    after, and only as one unbroken run; otherwise the request is refused."""
    drops_unbound: bool = False
    """Whether a request can ask the server to drop reasoning whose prefix differs, instead of refusing the request."""
    bound_account: Literal["no", "read", "dropped", "refused"] = "no"
    """Whether reasoning is accepted only in the account that it was made in, and what happens to that of another one:
    the server drops it, or refuses the request. With "read" the model's own reasoning is accepted everywhere, but it
    reads that of models whose reasoning is not, and the server drops it."""

    thinking_levels: frozenset[str] = frozenset({"off", "minimal", "low", "medium", "high"})
    """The levels of a reasoning model whose entry does not list them. A level that it does not have is replaced by the
    next higher one, else by the next lower one; so `off` becomes the lowest level of a model that always thinks."""

    thinking_types: frozenset[str] | None = None
    """The types of thinking that a request may name, where the protocol has such types; None: unknown."""
    efforts_without_thinking: frozenset[str] | None = None
    """The efforts that are accepted while thinking is disabled; None: all that the model has."""

    min_thinking_budget: int = 0
    """The smallest thinking budget."""
    max_thinking_budget: int = 0
    """The largest thinking budget."""
    budget_in_max_tokens: bool = False
    """Whether the budget is part of `max_tokens`, so that it has to leave room for the answer."""

    # -- the body ------------------------------------------------------------------------------------------------------
    body_fields: Literal["unknown", "keys", "typed", "closed"] = "unknown"
    """Whether an endpoint compares a body with the fields of the official SDK (`request_fields.json` of the protocol):
    `keys` refuses unknown keys of the body itself, `typed` wrong types, unknown values and missing keys, `closed` all
    of these, and unknown keys at every depth."""
    refused_fields: frozenset[str] = frozenset()
    """Keys that the SDK has and an endpoint refuses: `Object.key`."""
    added_fields: frozenset[str] = frozenset()
    """Keys that an endpoint takes in addition to those of the SDK: `key` of the body, or `Object.key`, with `=value`
    for one value of a key that the SDK has; overrides add to the set as for `refused_options`."""

    # -- settings ------------------------------------------------------------------------------------------------------
    refused_options: frozenset[str] = frozenset()
    """Fields of `Options` that this target does not support or refuses. Overrides add to the set; a name with a minus
    removes it from the set: `{"refused_options": ["temperature", "-seed"]}`."""
    refused_with_thinking: frozenset[str] = frozenset()
    """Fields of `Options` that are refused while thinking is on."""
    refused_unless_off: frozenset[str] = frozenset()
    """Fields of `Options` that are refused unless thinking is explicitly off."""
    exclusive_options: frozenset[str] = frozenset()
    """Fields of `Options`; a request may have only one of them; the first one in the order of `Options` is kept."""
    refused_extra: frozenset[str] = frozenset()
    """Keys of the request body that this target refuses, `object.key` for keys of an inner object, `key=value` for one
    value; overrides add to the set as for `refused_options`."""
    extra_like: tuple[tuple[str, str], ...] = ()
    """Keys of the request body that are refused whenever a field of `Options` is: (key, field)."""
    schema_with_tools: bool = True
    """Whether an output schema may be sent together with tools."""
    schema_with_forced_choice: bool = True
    """Whether an output schema may be sent together with a forced tool choice (`required` or by name)."""
    server_edits: frozenset[str] = frozenset()
    """What the server can do itself about a long conversation: `clear` old tool results, `compact` the beginning."""
    max_tokens_refused: bool = False
    """Whether a limit above that of the model is refused, not lowered."""
    json_word: bool = False
    """Whether JSON mode needs the word JSON in a message."""
    refused_roles: frozenset[str] = frozenset()
    """Roles of the wire that this endpoint does not have."""
    user_id_keys: frozenset[str] = frozenset()
    """Keys of the request body that hold a user id, `object.key` for a key of an inner object."""
    cache_marks: int = 0
    """How many cache marks a request may have; here 0 means that marks are not supported."""
    cache_mark_key: str | None = None
    """The field of the wire that holds a cache mark."""
    portable_extra: frozenset[str] = frozenset()
    """Keys of `extra` that every provider of the protocol accepts, whichever provider they were written for; `a.b` is a
    key of an object."""
