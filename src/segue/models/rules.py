"""Rules: what a target accepts.

A rule changes the meaning of a request, so projection follows it and `check` reports violations. Differences in format
alone belong to the dialect. The defaults below accept everything; the `rules` file of each protocol restricts them,
with source and date, and providers, families and models override single fields.

Resolution (in the protocols' registry): protocol < provider < family of models < model < caller. An unknown key is an
error.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, final

import msgspec

from segue.models.model import Modality

ReasoningReplay: TypeAlias = Literal["none", "signed", "open", "required"]
MediaSource: TypeAlias = Literal["data", "url", "file_id"]


@final
class Rules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that projection and `check` need to know about a target. Every field has a value.

    Patterns of media are MIME types, with `*` allowed after the slash. An alphabet is the inside of a character class
    of a regular expression; None allows every character. A limit of 0 means no limit.
    """

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
    call_id_scope: Literal["batch", "conversation"] = "batch"
    """Where ids of calls have to be unique: within one assistant turn, or in the whole request."""
    tool_name_alphabet: str | None = None
    """The characters that the name of a tool may have; None: all."""
    tool_name_first: str | None = None
    """The alphabet of the first character of a tool name, if it is smaller."""
    tool_name_max: int = 0
    """The most characters of the name of a tool."""
    max_tools: int = 0
    """The most tools of a request."""
    tool_choices: frozenset[str] = frozenset({"auto", "none", "required", "name"})
    """Supported values of `tool_choice`; `name` stands for one tool by name. If `auto` is not listed, it has no value
    on the wire: it is the default when no choice is sent."""
    forced_choice_with_thinking: bool = True
    """Whether a tool may be forced (`required` or by name) while thinking is on."""
    thinks_unasked: bool = False
    """Whether thinking is on where the request says nothing about it. Projection disables it for a forced tool."""
    thinking_unstreamed: bool = True
    """Whether a reply that is not streamed may think; otherwise projection disables thinking."""
    unstreamed: bool = True
    """Whether a reply may come whole; otherwise projection sets `stream`."""
    functions_with_thinking: Literal["allowed", "unset", "off"] = "allowed"
    """Whether functions may be sent while the model thinks: always; only if the request sets no level; only if it
    disables thinking explicitly. Projection disables thinking then, so that the tools are kept."""
    minimal_with_server_tools: bool = True
    """Whether the provider's own tools may be sent with the level `minimal`; otherwise it becomes `low`."""
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
    """Whether server tools and functions may stand in one request; `flag`: only with a field that the row of the tool
    names."""
    refused_tool_types: frozenset[str] = frozenset()
    """Types of tools that the protocol has and this model refuses."""
    tool_namespaces: bool = False
    """Whether functions may be grouped in a namespace; otherwise they are sent one by one."""
    pending_calls: bool = True
    """Whether a call of a tool that the provider runs may be without its result while nothing but tool results follows
    it; the provider then finishes it in its next reply."""
    calls_last: bool = False
    """Whether nothing may follow the calls of an assistant turn."""
    tool_error: Literal["flag", "text"] = "flag"
    """Whether a result has an error flag, or the error is marked in its text."""
    call_signature: Literal["free", "required", "thought"] = "free"
    """Whether the first call of every step needs a signature; `thought`: signed thinking has to stand before it."""
    schema_root_object: bool = False
    """Whether the root of a tool's schema needs `"type": "object"`."""
    schema_properties: bool = False
    """Whether the root of a tool's schema needs `properties`, which may be empty."""
    schema_needed: bool = True
    """Whether a tool needs a schema even without parameters; otherwise an empty one is not sent."""
    schema_refused: frozenset[str] = frozenset()
    """Keywords that a tool's schema may not contain, at any depth."""
    schema_root_refused: frozenset[str] = frozenset()
    """Keywords that are allowed inside a tool's schema, but not at its root."""
    schema_valid: Literal["unknown", "valid", "items", "with_items"] = "unknown"
    """Whether the endpoint refuses what is no JSON schema (an unknown type), a list without `items`, or both."""
    schema_formats: frozenset[str] | None = None
    """The formats of texts that a tool's schema may name; None: all."""
    schema_text_enums: bool = False
    """Whether only texts may be limited to an enumeration."""
    schema_typed_unions: bool = True
    """Whether a type may stand beside `anyOf`; otherwise each of its schemas has one."""
    schema_definitions_only: bool = False
    """Whether `$ref` may name only a definition (`#/$defs/`), and stand beside no keyword that the definition has."""
    schema_keywords_typed: bool = False
    """Whether `properties` and `required` may stand only in a schema of the type object, `items` in that of a list."""
    schema_required_known: bool = False
    """Whether `required` may name only properties that the schema has."""
    property_names: str | None = None
    """A regular expression for the names of a tool's properties, of the first level; None: any name."""
    strict_closed: bool = False
    """Whether a tool can be strict only if every object of its schema is closed and every property required."""
    strict_objects: bool = False
    """Whether a tool can be strict only if every object of its schema is closed; properties may be optional."""
    strict_refused: frozenset[str] = frozenset()
    """Keywords that the schema of a strict tool or of a strict output may not contain, at any depth."""
    strict_formats: frozenset[str] | None = None
    """The formats of texts that a strict schema may name; None: all."""
    strict_references_alone: bool = False
    """Whether `$ref` in a strict schema may have no other keyword beside it."""
    schema_typed: Literal["no", "strict", "always"] = "no"
    """Whether every property of a schema, or of a strict one, needs a type, a choice or a reference."""
    max_strict_depth: int = 0
    """The most levels of objects in one strict schema."""
    max_strict_properties: int = 0
    """The most properties in one strict schema."""
    max_strict_values: int = 0
    """The most values of enumerations in one strict schema."""
    strict_recursion: bool = True
    """Whether a strict schema may refer to itself."""
    max_strict_tools: int = 0
    """The most strict tools of a request."""
    max_optional: int = 0
    """The most optional properties of a strict schema."""
    max_unions: int = 0
    """The most properties of a strict schema that have several types, or a choice of schemas."""
    output_strict: bool = False
    """Whether an output schema is always strict; otherwise it is if the request says so."""

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
    error_result_media: bool = True
    """Whether a result that is an error may have media."""
    image_sources: frozenset[MediaSource] = frozenset({"data", "url"})
    """How images can be given."""
    file_sources: frozenset[MediaSource] = frozenset({"data", "url", "file_id"})
    """How all other files can be given."""
    url_media: tuple[str, ...] = ("*",)
    """MIME types that the target fetches from a URL, where its sources have `url`."""
    url_schemes: frozenset[str] = frozenset()
    """Schemes of the URLs that the target reads; empty where they are not known."""
    exact_image_types: bool = False
    """Whether the MIME type of an image has to be the one that its bytes show."""
    media_type_required: bool = False
    """Whether media by URL or file id need a MIME type that names their format."""
    file_id_pattern: str | None = None
    """A regular expression for this provider's file ids; other ids belong to other providers."""
    max_images: int = 0
    """The most images of one request."""
    max_files: int = 0
    """The most files of one request."""
    max_pages: int = 0
    """The most pages of PDFs of one request."""
    max_request_media: int = 0
    """The most media of one request, in bytes of base64."""
    max_media_bytes: int = 0
    """The largest single image or file, counted in decoded bytes."""
    max_image_edge: int = 0
    """The longest edge of an image in pixels."""
    max_large_images: int = 0
    """The most images of one request where one of them has an edge above `max_image_edge_of_many`."""
    max_image_edge_of_many: int = 0
    """The longest edge of an image among more than `max_large_images`."""
    max_image_bytes: int = 0
    """The largest single image, if its limit is smaller."""
    max_document_bytes: int = 0
    """The largest single document (PDF, text, office), if its limit is smaller."""
    file_context: bool = False
    """Whether a document can have a context (`FileContent.context`); otherwise it is sent as text before the file."""
    text_beside_files: bool = False
    """Whether a user message with a file needs a text too."""

    # -- turns ---------------------------------------------------------------------------------------------------------
    alternate: bool = False
    """Whether user and assistant turns have to alternate; tool results count as user turns. The codec decides whether
    results and the user turn after them become one turn on the wire."""
    alternate_refused: bool = True
    """Whether `check` reports turns that do not alternate: some models accept them. Projection joins them for all."""
    first_user: bool = False
    """Whether the first turn has to be a user turn."""
    last_assistant: bool = True
    """Whether the last turn may be an assistant turn."""
    assistant_prefix: bool = False
    """Whether `AssistantMessage.prefix` can be sent: such a message may be the last one even where others may not."""
    resumable_stops: frozenset[str] = frozenset()
    """Raw stop reasons of the target's own turns that it continues: such a turn may always be the last one."""
    user_after_result: bool = True
    """Whether a user turn may follow tool results; otherwise a short assistant turn is put between them."""
    system_prompt: bool = True
    """Whether the request has a system prompt; otherwise it becomes the first user turn."""
    system_messages: Literal["anywhere", "before_assistant", "none"] = "anywhere"
    """Where system messages are allowed: anywhere after the first turn; only after a user turn and before an assistant
    turn (or last); nowhere."""
    system_fields: frozenset[str] = frozenset()
    """Fields of a system message on the wire that make sense without content; such a message may stand anywhere."""
    tool_changes: bool = False
    """Whether a system message can add and remove tools, from its place on."""
    instructions_alone: bool = True
    """Whether a request may have instructions and no other turn; otherwise a short user turn is added. A target that
    requires a user turn first or last requires one here too."""
    refused_text: Literal["none", "empty", "blank"] = "none"
    """Which texts are refused: none, empty ones, or also those of white space. Projection removes them."""
    blank_beside: frozenset[str] = frozenset({"signed"})
    """Content of a turn beside which a refused text is accepted: kinds, `signed` for thinking with a signature, `text`
    for a text that is not blank. Where texts of white space are refused, an empty one is refused beside all of them."""
    text_phases: bool = False
    """Whether `TextContent.phase` can be sent to the model that wrote the text."""
    text_signatures: bool = False
    """Whether a text can have a signature; a blank text with a signature is not removed."""
    refused_final_space: bool = False
    """Whether a final assistant turn may not end in white space."""
    results_alone: bool = False
    """Whether `check` reports other content beside tool results in one turn of the wire, where a codec could join them.
    Projection keeps them apart for every target."""
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
    """Whether signed reasoning is accepted only behind exactly the instructions, tools and messages that it was made
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

    refused_levels: frozenset[str] = frozenset()
    """Levels that this endpoint refuses, although the model has them at another one."""

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
    body_protocol: str = ""
    """The protocol whose fields those are, where an endpoint answers several; empty: that of the model."""
    refused_fields: frozenset[str] = frozenset()
    """Keys that the SDK has and an endpoint refuses: `Object.key`."""
    added_fields: frozenset[str] = frozenset()
    """Keys that an endpoint takes besides those of the SDK: `key` of the body, or `Object.key`, with `=value` for one
    value of a key that the SDK has; overrides add to the set as for `refused_options`."""

    # -- settings ------------------------------------------------------------------------------------------------------
    refused_options: frozenset[str] = frozenset()
    """Fields of `Options` that this target does not support or refuses. Overrides add to the set; a name with a minus
    removes it from the set: `{"refused_options": ["temperature", "-seed"]}`."""
    refused_with_thinking: frozenset[str] = frozenset()
    """Fields of `Options` that are refused while thinking is on."""
    refused_unless_off: frozenset[str] = frozenset()
    """Fields of `Options` that are refused unless thinking is explicitly off."""
    exclusive_options: frozenset[str] = frozenset()
    """Fields of `Options` of which a request may have only one; the first one in the order of `Options` is kept."""
    refused_extra: frozenset[str] = frozenset()
    """Keys of the request body that this target refuses, `object.key` for keys of an inner object, `key=value` for one
    value; overrides add to the set as for `refused_options`."""
    needed_extra: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Lists that the request body has to have: (key, values), `object.key` for a key of an inner object. Projection
    adds them where the request has none."""
    extra_like: tuple[tuple[str, str], ...] = ()
    """Keys of the request body that are refused whenever a field of `Options` is: (key, field)."""
    output_any_root: bool = False
    """Whether an output schema may have another root than an object, such as a list."""
    schema_with_tools: bool = True
    """Whether an output schema may be sent together with tools."""
    schema_with_forced_choice: bool = True
    """Whether an output schema may be sent together with a forced tool choice (`required` or by name)."""
    max_temperature: float = 0.0
    """The highest temperature."""
    min_top_p: float = 0.0
    """The smallest `top_p`."""
    max_top_p: float = 1.0
    """The largest `top_p`."""
    greedy_top_p: bool = True
    """Whether `top_p` may be below 1 while the temperature is 0, where it has no effect."""
    min_seed: int | None = None
    """The smallest seed; None: no limit."""
    max_seed: int | None = None
    """The largest seed; None: no limit."""
    window_option: tuple[str, ...] = ()
    """The path of the field that sets the window of the server, where a request can set it."""
    server_edits: frozenset[str] = frozenset()
    """What the server can do itself about a long conversation: `clear` old tool results, `compact` the beginning."""
    min_compaction: int = 0
    """The smallest number of tokens above which the server can be asked to compact."""
    max_tokens_needed: bool = False
    """Whether a request without `max_tokens` is refused, so that a default is sent."""
    min_max_tokens: int = 1
    """The smallest accepted `max_tokens`."""
    max_tokens_refused: bool = False
    """Whether a limit above that of the model is refused, not lowered."""
    json_word: bool = False
    """Whether JSON mode needs the word JSON in a message."""
    refused_roles: frozenset[str] = frozenset()
    """Roles of the wire that this endpoint does not have."""
    string_content: frozenset[str] = frozenset()
    """Roles of the wire whose content has to be a string, not a list of parts."""
    max_session_id: int = 0
    """The longest accepted session id, in characters."""
    min_user_id: int = 0
    """The shortest accepted user id, in characters."""
    max_user_id: int = 0
    """The longest accepted user id, in characters."""
    refused_user_id: str | None = None
    """A regular expression of user ids that are refused, such as those that show who the user is."""
    user_id_keys: frozenset[str] = frozenset()
    """Keys of the request body that hold a user id, `object.key` for a key of an inner object."""
    max_stop: int = 0
    """The most stop sequences of a request."""
    max_stop_bytes: int = 0
    """The longest stop sequence, in bytes of UTF-8."""
    blank_stop: bool = True
    """Whether a stop sequence may be white space only. An empty one is never sent."""
    cache_marks: int = 0
    """How many cache marks a request may have; here 0 means that marks are not supported."""
    cache_marks_longest_first: bool = False
    """Whether a mark with a longer lifetime may not follow one with a shorter one; it gets the shorter one then."""
    cache_mark_key: str | None = None
    """The field of the wire that holds a cache mark."""
    result_cache_marks: bool = True
    """Whether content of a tool result may have a cache mark; otherwise the result itself gets it."""
    tool_cache_marks: bool = True
    """Whether a tool may have a cache mark."""
    input_cache_marks: bool = False
    """Whether only input may have cache marks: the system prompt, user messages and content of tool results."""
    cache_mark_refused_beside: frozenset[str] = frozenset()
    """Fields of a tool beside which a cache mark is refused, if they are set and not false; MIME types of files that
    cannot have one."""
    portable_extra: frozenset[str] = frozenset()
    """Keys of `extra` that every provider of the protocol accepts, whichever provider they were written for; `a.b` is a
    key of an object."""
