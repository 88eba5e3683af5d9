"""The codes of `check`: one for each kind of fault, the same on every protocol.

A code says what is wrong, the path of a violation where, and its message the values and what to do. `ADVICE` has one
sentence for each code. A new check uses a code that is there; a code is added only for a fault that needs other advice.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class CheckCode(StrEnum):
    """Every kind of fault that `check` finds. `ADVICE` explains each of them."""

    # the body
    BODY_NOT_JSON = "body_not_json"
    PROTOCOL_WRONG = "protocol_wrong"
    API_VERSION_MISMATCH = "api_version_mismatch"
    WINDOW_EXCEEDED = "window_exceeded"
    PREFIX_CHANGED = "prefix_changed"
    # fields and values
    FIELD_MISSING = "field_missing"
    FIELD_UNKNOWN = "field_unknown"
    FIELDS_EXCLUSIVE = "fields_exclusive"
    TYPE_WRONG = "type_wrong"
    VALUE_UNKNOWN = "value_unknown"
    VALUE_OUT_OF_RANGE = "value_out_of_range"
    VALUE_MALFORMED = "value_malformed"
    VALUE_DUPLICATE = "value_duplicate"
    REFERENCE_UNKNOWN = "reference_unknown"
    # options
    MODEL_MISSING = "model_missing"
    MAX_TOKENS_MISSING = "max_tokens_missing"
    MAX_TOKENS_TOO_LARGE = "max_tokens_too_large"
    OPTION_RENAMED = "option_renamed"
    OPTION_UNSUPPORTED = "option_unsupported"
    OPTION_NEEDS_OTHER = "option_needs_other"
    OPTIONS_CONFLICT = "options_conflict"
    OPTION_WITH_THINKING = "option_with_thinking"
    STOP_INVALID = "stop_invalid"
    STREAM_REQUIRED = "stream_required"
    USER_ID_INVALID = "user_id_invalid"
    JSON_WORD_MISSING = "json_word_missing"
    JSON_WITH_TOOLS = "json_with_tools"
    OUTPUT_TYPE_MISSING = "output_type_missing"
    EDIT_MISPLACED = "edit_misplaced"
    # thinking
    EFFORT_UNSUPPORTED = "effort_unsupported"
    THINKING_MODE_UNSUPPORTED = "thinking_mode_unsupported"
    THINKING_BUDGET_INVALID = "thinking_budget_invalid"
    THINKING_WHILE_OFF = "thinking_while_off"
    THINKING_MISSING = "thinking_missing"
    THINKING_LAST = "thinking_last"
    THINKING_UNSIGNED = "thinking_unsigned"
    THINKING_TEXT_MISSING = "thinking_text_missing"
    SIGNATURE_MISSING = "signature_missing"
    SIGNATURE_UNSUPPORTED = "signature_unsupported"
    REASONING_MISSING = "reasoning_missing"
    REASONING_ALONE = "reasoning_alone"
    REASONING_INVALID = "reasoning_invalid"
    ITEM_NOT_STORED = "item_not_stored"
    ITEM_ID_INVALID = "item_id_invalid"
    # turns
    MESSAGES_MISSING = "messages_missing"
    ROLE_UNKNOWN = "role_unknown"
    TURNS_NOT_ALTERNATING = "turns_not_alternating"
    FIRST_TURN_WRONG = "first_turn_wrong"
    LAST_TURN_WRONG = "last_turn_wrong"
    USER_AFTER_RESULT = "user_after_result"
    PREFIX_MISPLACED = "prefix_misplaced"
    SYSTEM_UNSUPPORTED = "system_unsupported"
    SYSTEM_MISPLACED = "system_misplaced"
    ITEM_MISPLACED = "item_misplaced"
    CONTENT_MISSING = "content_missing"
    TEXT_BLANK = "text_blank"
    FINAL_SPACE = "final_space"
    BLOCK_TYPE_UNKNOWN = "block_type_unknown"
    BLOCK_MISPLACED = "block_misplaced"
    # calls and results
    CALL_ID_MISSING = "call_id_missing"
    CALL_ID_INVALID = "call_id_invalid"
    CALL_ID_TOO_LONG = "call_id_too_long"
    CALL_ID_DUPLICATE = "call_id_duplicate"
    ARGUMENTS_INVALID = "arguments_invalid"
    CALLER_UNKNOWN = "caller_unknown"
    TEXT_AFTER_CALL = "text_after_call"
    TEXT_WITH_CALLS = "text_with_calls"
    RESULT_MISSING = "result_missing"
    RESULT_ORPHANED = "result_orphaned"
    RESULT_DUPLICATE = "result_duplicate"
    RESULT_COUNT_WRONG = "result_count_wrong"
    RESULT_NAME_WRONG = "result_name_wrong"
    RESULT_MISPLACED = "result_misplaced"
    RESULT_EMPTY = "result_empty"
    RESULT_MEDIA_UNSUPPORTED = "result_media_unsupported"
    # tools
    TOOL_NAME_INVALID = "tool_name_invalid"
    TOOL_DESCRIPTION_MISSING = "tool_description_missing"
    TOOL_TYPE_UNSUPPORTED = "tool_type_unsupported"
    TOOL_CHOICE_INVALID = "tool_choice_invalid"
    TOOL_CHOICE_WITHOUT_TOOLS = "tool_choice_without_tools"
    TOOL_CHOICE_WITH_THINKING = "tool_choice_with_thinking"
    TOOLS_UNSUPPORTED = "tools_unsupported"
    TOOLS_MISSING = "tools_missing"
    TOOL_LIST_EMPTY = "tool_list_empty"
    TOOLS_TOO_MANY = "tools_too_many"
    TOOLS_DEFERRED = "tools_deferred"
    TOOLS_NOT_COMBINABLE = "tools_not_combinable"
    NAMESPACE_MISSING = "namespace_missing"
    # schemas
    SCHEMA_ROOT_INVALID = "schema_root_invalid"
    SCHEMA_INVALID = "schema_invalid"
    SCHEMA_KEYWORD_UNSUPPORTED = "schema_keyword_unsupported"
    SCHEMA_FORMAT_UNSUPPORTED = "schema_format_unsupported"
    SCHEMA_ENUM_INVALID = "schema_enum_invalid"
    SCHEMA_REFERENCE_INVALID = "schema_reference_invalid"
    SCHEMA_RECURSIVE = "schema_recursive"
    SCHEMA_NOT_STRICT = "schema_not_strict"
    SCHEMA_PROPERTY_INVALID = "schema_property_invalid"
    SCHEMA_TOO_LARGE = "schema_too_large"
    # media
    MEDIA_UNSUPPORTED = "media_unsupported"
    MEDIA_TYPE_UNSUPPORTED = "media_type_unsupported"
    MEDIA_SOURCE_UNSUPPORTED = "media_source_unsupported"
    MEDIA_BASE64_INVALID = "media_base64_invalid"
    MEDIA_BYTES_INVALID = "media_bytes_invalid"
    MEDIA_TOO_LARGE = "media_too_large"
    MEDIA_TOO_MANY = "media_too_many"
    DOCUMENT_ALONE = "document_alone"
    DOCUMENT_NAME_INVALID = "document_name_invalid"
    CITATIONS_MIXED = "citations_mixed"
    # cache marks
    CACHE_MARKS_TOO_MANY = "cache_marks_too_many"
    CACHE_MARK_MISPLACED = "cache_mark_misplaced"
    CACHE_MARK_ORDER = "cache_mark_order"


ADVICE: Final[dict[CheckCode, str]] = {
    CheckCode.BODY_NOT_JSON: "The body is not valid JSON; send JSON.",
    CheckCode.PROTOCOL_WRONG: "The body is that of another protocol or an older version; convert it.",
    CheckCode.API_VERSION_MISMATCH: (
        "The version of the API that the request names refuses this; remove it, or name another version."
    ),
    CheckCode.WINDOW_EXCEEDED: "The request is longer than the context window; shorten it.",
    CheckCode.PREFIX_CHANGED: (
        "The beginning differs from the request before, so that nothing of it is cached; append instead."
    ),
    CheckCode.FIELD_MISSING: "A required field is missing; set it.",
    CheckCode.FIELD_UNKNOWN: "There is no such field here; remove it.",
    CheckCode.FIELDS_EXCLUSIVE: "Exactly one of several fields has to be set; set one, or split the object.",
    CheckCode.TYPE_WRONG: "The value is of another type than the field; convert it.",
    CheckCode.VALUE_UNKNOWN: "The value is none of those that the field can have; use one of them.",
    CheckCode.VALUE_OUT_OF_RANGE: "A number, or the length of a text or list, is too small or too large; change it.",
    CheckCode.VALUE_MALFORMED: "The text does not have the form that the field needs; rewrite it.",
    CheckCode.VALUE_DUPLICATE: "A value that has to be unique is there twice; rename or remove one.",
    CheckCode.REFERENCE_UNKNOWN: (
        "The value refers to something that the request does not have; add it, or remove the reference."
    ),
    CheckCode.MODEL_MISSING: "The request names no model; set it.",
    CheckCode.MAX_TOKENS_MISSING: "The limit of output tokens is required; set it.",
    CheckCode.MAX_TOKENS_TOO_LARGE: "The limit of output tokens is above that of the model; lower it.",
    CheckCode.OPTION_RENAMED: "The option has another name for this model or protocol; use that one.",
    CheckCode.OPTION_UNSUPPORTED: "The model or the endpoint does not support this option; remove it.",
    CheckCode.OPTION_NEEDS_OTHER: "The option works only together with another one; set that too, or remove this one.",
    CheckCode.OPTIONS_CONFLICT: "Two settings cannot be combined; remove one of them.",
    CheckCode.OPTION_WITH_THINKING: (
        "The model refuses this option, or functions, while it thinks; remove it, or turn thinking off."
    ),
    CheckCode.STOP_INVALID: "A stop text is empty or too long, or there are too many; change or remove it.",
    CheckCode.STREAM_REQUIRED: "The model answers this request only in a stream; set `stream`.",
    CheckCode.USER_ID_INVALID: "The id of the user is too short, too long or not opaque; send a hash of it.",
    CheckCode.JSON_WORD_MISSING: "JSON mode needs the word JSON in a message; add it.",
    CheckCode.JSON_WITH_TOOLS: "The model does not answer in JSON while it has tools; remove one of both.",
    CheckCode.OUTPUT_TYPE_MISSING: "A schema of the answer needs the type of the answer next to it; set it.",
    CheckCode.EDIT_MISPLACED: "An edit of the context has to come first; move it.",
    CheckCode.EFFORT_UNSUPPORTED: "The model does not have this effort of thinking; choose another one.",
    CheckCode.THINKING_MODE_UNSUPPORTED: (
        "The model does not have this mode of thinking, or cannot turn it off; use another one."
    ),
    CheckCode.THINKING_BUDGET_INVALID: (
        "The budget of thinking is out of its range, or not below the limit of output; change it."
    ),
    CheckCode.THINKING_WHILE_OFF: "The history has thinking although thinking is off; remove it, or turn thinking on.",
    CheckCode.THINKING_MISSING: (
        "While thinking is on, the turn has to begin with thinking; add it, or turn thinking off."
    ),
    CheckCode.THINKING_LAST: "A turn cannot end in thinking; add a text after it, or remove it.",
    CheckCode.THINKING_UNSIGNED: "Thinking is sent back without its signature; remove the block.",
    CheckCode.THINKING_TEXT_MISSING: "A block of thinking has no text; add it, or remove the block.",
    CheckCode.SIGNATURE_MISSING: "A call of this model needs the signature that came with it; send it back.",
    CheckCode.SIGNATURE_UNSUPPORTED: "The model does not accept signatures; remove it.",
    CheckCode.REASONING_MISSING: "The reasoning that led to a call has to be sent back with it; add it.",
    CheckCode.REASONING_ALONE: "Reasoning is sent back without the item that it led to; remove it, or add that item.",
    CheckCode.REASONING_INVALID: (
        "Signed reasoning was made after something else than what is before it now; append instead."
    ),
    CheckCode.ITEM_NOT_STORED: "An item refers to data that the provider did not keep; remove it.",
    CheckCode.ITEM_ID_INVALID: "The id of an item has the wrong beginning or length; remove it.",
    CheckCode.MESSAGES_MISSING: "The request has no messages; add one.",
    CheckCode.ROLE_UNKNOWN: "The endpoint does not have this role; use one that it has.",
    CheckCode.TURNS_NOT_ALTERNATING: (
        "The roles of the turns do not alternate as the model requires; merge turns, or add one."
    ),
    CheckCode.FIRST_TURN_WRONG: "The first turn has to be the user's; add one.",
    CheckCode.LAST_TURN_WRONG: "The last turn may not be the assistant's; add a user turn.",
    CheckCode.USER_AFTER_RESULT: "A user turn may not follow a tool result; add an assistant turn between them.",
    CheckCode.PREFIX_MISPLACED: "Only the last message may be one to continue; remove the flag.",
    CheckCode.SYSTEM_UNSUPPORTED: "The model does not accept instructions, or not as a message; move them.",
    CheckCode.SYSTEM_MISPLACED: "Instructions are not accepted in this place; move them.",
    CheckCode.ITEM_MISPLACED: "The item has to be the last one; move it.",
    CheckCode.CONTENT_MISSING: "A turn or a part has no content; add some, or remove it.",
    CheckCode.TEXT_BLANK: "A text is blank; remove it, or write one.",
    CheckCode.FINAL_SPACE: "The last turn ends in white space; strip it.",
    CheckCode.BLOCK_TYPE_UNKNOWN: "There is no such type of content here; use one of this protocol.",
    CheckCode.BLOCK_MISPLACED: "Content of this type is not accepted in this role; move it.",
    CheckCode.CALL_ID_MISSING: "A call has no id; set it.",
    CheckCode.CALL_ID_INVALID: "The id of a call is too short or has other characters; change it in call and result.",
    CheckCode.CALL_ID_TOO_LONG: "The id of a call is too long; shorten it in call and result.",
    CheckCode.CALL_ID_DUPLICATE: "Two calls have the same id; change one.",
    CheckCode.ARGUMENTS_INVALID: "The arguments of a call are not of the form that the protocol has; convert them.",
    CheckCode.CALLER_UNKNOWN: "The call names a caller that the history does not have; remove it.",
    CheckCode.TEXT_AFTER_CALL: "Text follows a call in its turn; move it before the calls.",
    CheckCode.TEXT_WITH_CALLS: "A turn with calls cannot have text; remove it.",
    CheckCode.RESULT_MISSING: "A call has no result; add one.",
    CheckCode.RESULT_ORPHANED: "A result has no call; remove it.",
    CheckCode.RESULT_DUPLICATE: "A call has two results; keep one.",
    CheckCode.RESULT_COUNT_WRONG: "There are more or fewer results than calls; send one for each.",
    CheckCode.RESULT_NAME_WRONG: "The result has no tool name, or another one than its call; set it.",
    CheckCode.RESULT_MISPLACED: "Results have to come first, or in a turn of their own; move them.",
    CheckCode.RESULT_EMPTY: "A tool result has no content; add a text.",
    CheckCode.RESULT_MEDIA_UNSUPPORTED: "A result cannot have this media; send text, or move it into the turn.",
    CheckCode.TOOL_NAME_INVALID: "The name of a tool is missing, too long or has other characters; rename it.",
    CheckCode.TOOL_DESCRIPTION_MISSING: "The description of a tool is empty; write one.",
    CheckCode.TOOL_TYPE_UNSUPPORTED: "The endpoint or the model does not have this type of tool; remove it.",
    CheckCode.TOOL_CHOICE_INVALID: (
        "The endpoint does not have this choice of tools, or no tool of that name; change it."
    ),
    CheckCode.TOOL_CHOICE_WITHOUT_TOOLS: "A choice of tools is set without tools; add tools, or remove it.",
    CheckCode.TOOL_CHOICE_WITH_THINKING: (
        "A call cannot be forced while the model thinks; use auto, or turn thinking off."
    ),
    CheckCode.TOOLS_UNSUPPORTED: "The model does not support tools; remove them.",
    CheckCode.TOOLS_MISSING: "The history has calls, and the request declares no tools; declare them.",
    CheckCode.TOOL_LIST_EMPTY: "A list of tools or calls is empty; remove it, or add one.",
    CheckCode.TOOLS_TOO_MANY: "There are more tools, or more strict ones, than the target accepts; remove some.",
    CheckCode.TOOLS_DEFERRED: "Every tool is deferred; load at least one.",
    CheckCode.TOOLS_NOT_COMBINABLE: (
        "The model cannot have tools of the provider and functions in one request; remove one kind."
    ),
    CheckCode.NAMESPACE_MISSING: "The call does not name the namespace of its function; set it.",
    CheckCode.SCHEMA_ROOT_INVALID: "A tool has no schema, or the root of a schema is not an object; wrap it in one.",
    CheckCode.SCHEMA_INVALID: "The schema is not a valid JSON schema for this target; correct it.",
    CheckCode.SCHEMA_KEYWORD_UNSUPPORTED: (
        "The target does not support this keyword of JSON schema; move it to the description."
    ),
    CheckCode.SCHEMA_FORMAT_UNSUPPORTED: "The target does not support this format of a text; remove it.",
    CheckCode.SCHEMA_ENUM_INVALID: "The target does not support this enumeration; change it.",
    CheckCode.SCHEMA_REFERENCE_INVALID: "The target does not follow this reference; write the schema out.",
    CheckCode.SCHEMA_RECURSIVE: "The schema refers to itself; write out the levels.",
    CheckCode.SCHEMA_NOT_STRICT: "A strict schema has to be closed, with every property required; close it.",
    CheckCode.SCHEMA_PROPERTY_INVALID: (
        "The name of a property has characters or a length that the target refuses; rename it."
    ),
    CheckCode.SCHEMA_TOO_LARGE: "The schema has more properties, unions or levels than the target accepts; cut it.",
    CheckCode.MEDIA_UNSUPPORTED: "The model does not read this kind of media; remove it, or choose another model.",
    CheckCode.MEDIA_TYPE_UNSUPPORTED: "The target does not read media of this type; convert it.",
    CheckCode.MEDIA_SOURCE_UNSUPPORTED: "The target cannot read media from there; send the data.",
    CheckCode.MEDIA_BASE64_INVALID: "The data is not base64; encode it so.",
    CheckCode.MEDIA_BYTES_INVALID: (
        "The data is empty, damaged or of another type than it says; send the original bytes."
    ),
    CheckCode.MEDIA_TOO_LARGE: "The media has more bytes or a longer edge than the target accepts; make it smaller.",
    CheckCode.MEDIA_TOO_MANY: "There are more images or documents than the target accepts; remove some.",
    CheckCode.DOCUMENT_ALONE: "A document needs a text in its turn; add one.",
    CheckCode.DOCUMENT_NAME_INVALID: "The name of a document has characters that the target refuses; rename it.",
    CheckCode.CITATIONS_MIXED: "Citations have to be enabled on all documents or on none; change it.",
    CheckCode.CACHE_MARKS_TOO_MANY: (
        "There are more cache marks than the target accepts, which may be none; remove some."
    ),
    CheckCode.CACHE_MARK_MISPLACED: "A cache mark is not accepted in this place; move it.",
    CheckCode.CACHE_MARK_ORDER: "A mark with a longer lifetime follows a shorter one; use one lifetime.",
}
"""Codes -> what is wrong, and what to do."""
