"""Rules: what a protocol or a model can carry.

A rule changes what a request *means*, so projection obeys it and `check` judges by it. How a provider merely spells
things is its dialect. The defaults below promise everything; each protocol's `rules` file takes away what its wire
refuses, with source and date, and providers and models override single fields.

Resolution (in the protocols' registry): protocol < provider < family of models < model < caller. A misspelt key is
refused.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, final

import msgspec

ReasoningReplay: TypeAlias = Literal["none", "signed", "open", "required"]
MediaSource: TypeAlias = Literal["data", "url", "file_id"]


@final
class Rules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything projection and `check` need to know about a target; frozen and total.

    Patterns of media are MIME types, `*` allowed after the slash. An alphabet is the inside of a regular
    expression's character class; None allows everything. 0 means: no limit.
    """

    # -- tools ---------------------------------------------------------------------------------------------------------
    tools: bool = True
    """Whether the wire has tool calls at all; without, calls and results become text."""
    tools_with_history: bool = False
    """Whether a history with calls needs tool definitions in the request."""
    call_id_alphabet: str | None = None
    call_id_min: int = 1
    call_id_max: int = 0
    call_id_scope: Literal["batch", "conversation"] = "batch"
    """Where two calls may not share an id: within one assistant turn, or in the whole request."""
    tool_name_alphabet: str | None = None
    tool_name_first: str | None = None
    """The alphabet of a tool name's first character, where it is narrower."""
    tool_name_max: int = 0
    max_tools: int = 0
    tool_choices: frozenset[str] = frozenset({"auto", "none", "required", "name"})
    """Which kinds of tool choice can be asked for; `name` stands for one tool by name. Where `auto` is not listed there
    is no word for it: it is what happens when nothing is asked."""
    forced_choice_with_thinking: bool = True
    """Whether a tool may be demanded (`required` or by name) while the model thinks."""
    choice_of_functions: bool = False
    """Whether a choice of tools is refused where all of them are the provider's own."""
    calls_last: bool = False
    """Whether nothing may follow the calls of an assistant turn."""
    tool_error: Literal["flag", "text"] = "flag"
    """Whether a result can be marked as an error, or its text has to say so."""
    call_signature: Literal["free", "required"] = "free"
    """Whether the first call of every step has to carry a signature."""
    schema_root_object: bool = False
    """Whether a tool's schema has to say `"type": "object"` at its root."""
    schema_needed: bool = True
    """Whether a tool has to have a schema, even if it takes nothing; where it has not, an empty one is not written."""
    schema_refused: frozenset[str] = frozenset()
    """Keywords that a tool's schema may not contain, at any depth."""
    schema_root_refused: frozenset[str] = frozenset()
    """Keywords that may stand inside a tool's schema, but not at its root."""
    strict_closed: bool = False
    """Whether a tool can be strict only if every object of its schema is closed and every property required."""

    # -- media ---------------------------------------------------------------------------------------------------------
    user_media: tuple[str, ...] = ("*",)
    result_media: tuple[str, ...] = ("*",)
    """What a user message and a tool result can carry, besides what the model can read."""
    error_result_media: bool = True
    """Whether a result that is an error may carry media."""
    image_sources: frozenset[MediaSource] = frozenset({"data", "url"})
    file_sources: frozenset[MediaSource] = frozenset({"data", "url", "file_id"})
    file_id_pattern: str | None = None
    """What this provider's own file ids look like; others name files it does not have."""
    max_images: int = 0
    max_files: int = 0
    max_media_bytes: int = 0
    """The largest single image or file, counted in decoded bytes."""
    max_image_bytes: int = 0
    max_document_bytes: int = 0
    """The largest single image and the largest single document (PDF, text, office) where theirs is a narrower limit."""
    text_beside_files: bool = False
    """Whether a user message with a file needs a text as well."""

    # -- turns ---------------------------------------------------------------------------------------------------------
    alternate: bool = False
    """Whether user and assistant turns have to alternate; tool results count as the user's. Whether the results and the
    user's words after them share one wire turn is the codec's business."""
    first_user: bool = False
    last_assistant: bool = True
    """Whether the first turn has to be the user's; whether the last may be the assistant's."""
    assistant_prefix: bool = False
    """Whether `AssistantMessage.prefix` can be sent: such a message may be the last one even where others may not."""
    resumable_stops: frozenset[str] = frozenset()
    """Raw stop reasons of the target's own turns that may stand last all the same, to be gone on with."""
    user_after_result: bool = True
    system_prompt: bool = True
    """Whether there is a place for the system prompt; without, it opens the first user turn."""
    system_messages: Literal["anywhere", "before_assistant", "none"] = "anywhere"
    """Where instructions in mid-conversation may stand: anywhere after the first turn; after a user turn and before an
    assistant's (or last); nowhere."""
    refused_text: Literal["none", "empty", "blank"] = "none"
    """Which text blocks are refused: none, those of no characters, those of white space only. Projection removes every
    blank one; providers only mind a turn that has no other words, so that is what `check` looks for."""
    text_phases: bool = False
    """Whether `TextContent.phase` can be sent, to the model that wrote the text."""
    text_signatures: bool = False
    """Whether a text can carry a seal; then a blank one that does is not empty."""
    refused_final_space: bool = False
    """Whether a final assistant turn may not end in white space."""
    empty_result: bool = True
    """Whether a tool result may have no content."""

    # -- reasoning -----------------------------------------------------------------------------------------------------
    reasoning_replay: ReasoningReplay = "none"
    """How thinking can be sent back: not at all; signed by its own model only; as any readable text; or it must stand
    on every assistant turn, empty if need be."""
    thinking_before_calls: bool = False
    """Whether, with thinking on, the turn that opened the running tool cycle has to begin with thinking."""

    final_thinking: Literal["allowed", "text", "drop"] = "allowed"
    """Whether an assistant turn may end in thinking; if not, a short text follows it, or it goes."""

    thinking_levels: frozenset[str] = frozenset({"off", "minimal", "low", "medium", "high"})
    """The levels that a model which thinks has, where its own entry does not say. One it lacks becomes the next one up,
    else the next one down; so a model that cannot stop thinking is asked to think least."""

    min_thinking_budget: int = 0
    max_thinking_budget: int = 0
    """The least and the most that a budget for thinking may be."""
    budget_in_max_tokens: bool = False
    """Whether a budget is taken out of `max_tokens`, and so has to leave room for the answer."""

    # -- settings ------------------------------------------------------------------------------------------------------
    refused_options: frozenset[str] = frozenset()
    """Fields of `Options` that this target has no word for or answers with an error. What overrides name here adds up;
    a name with a minus before it is taken back: `{"refused_options": ["temperature", "-seed"]}`."""
    refused_with_thinking: frozenset[str] = frozenset()
    """Fields of `Options` that are refused while the model is asked to think."""
    refused_unless_off: frozenset[str] = frozenset()
    """Fields of `Options` that are refused unless the model is asked not to think: left alone it does."""
    exclusive_options: frozenset[str] = frozenset()
    """Fields of `Options` of which one request may carry only one; the one that `Options` names first stays."""
    refused_extra: frozenset[str] = frozenset()
    """Keys of a body that this target answers with an error, `object.key` for those of an object in it; overrides add
    up as those of `refused_options` do."""
    extra_like: tuple[tuple[str, str], ...] = ()
    """Such keys that are refused wherever a field of `Options` is: (key, field)."""
    schema_with_tools: bool = True
    """Whether an output schema may be asked for beside tools."""
    schema_with_forced_choice: bool = True
    """Whether it may be where a tool is demanded (`required` or by name)."""
    max_temperature: float = 0.0
    min_top_p: float = 0.0
    max_top_p: float = 1.0
    min_max_tokens: int = 1
    """The smallest limit on the answer's length that is taken."""
    max_session_id: int = 0
    """How long a session's id may be."""
    max_stop: int = 0
    blank_stop: bool = True
    """Whether a text to stop at may be of white space only; an empty one stops nothing anywhere."""
    cache_marks: int = 0
    """How many cache marks a request may carry; 0: none are understood."""
    cache_mark_key: str | None = None
    """The field of the wire that holds a cache mark."""
    portable_extra: frozenset[str] = frozenset()
    """Keys of `extra` that another provider of the same protocol understands as well."""
