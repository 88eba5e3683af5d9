"""Rows of rules: one thing that a target refuses, or has in its own form, with the evidence for it.

A field of `Rules` describes a capability that many targets have or lack. What only some targets refuse is a row: the
place names what it is about, the row what is refused there, who says so and when. Projection, `check` and the emulator
read the same row. The protocol, the provider, the family of models, the model and the caller give rows in the same
mapping as fields of `Rules`; a later row replaces an earlier one of the same place, and None removes it:

    rules={"temperature": Rule("Moonshot documentation: chat", "2026-11-15", most=1.0), "blank_stop": None}
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, final, get_args

import msgspec

from segue.models.evidence import Grade


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Who says so, and when it was read; a row of a family has the evidence of the family if it has none itself."""

    source: str = ""
    read: str = ""


@final
class Rule(Evidence, frozen=True, kw_only=True):
    """One row. A row without bounds, values and pattern refuses everything that its place names.

    `least` and `most` bound a number, a length or a count; `values` are the ones that the place explains; `pattern` is
    a regular expression. `grade` says whether the source shows a refusal: rows of another grade are followed only by a
    strict `check`.
    """

    least: int | float | None = None
    most: int | float | None = None
    values: frozenset[str] = frozenset()
    pattern: str | None = None
    grade: Grade = "refused"

    def bounds(self) -> str:
        """Describe the bounds and values of the row; `refused` for a row without them."""
        numbers = [
            f"{name} {bound:,}" for name, bound in (("least", self.least), ("most", self.most)) if bound is not None
        ]
        return ", ".join([*numbers, *sorted(self.values), *filter(None, [self.pattern])]) or "refused"


OptionPlace: TypeAlias = Literal[  # noqa: RUF041 - a line for each group
    Literal["temperature", "top_p", "greedy_top_p", "seed", "max_tokens", "stop", "stop_bytes", "blank_stop"],
    Literal["session_id", "user_id", "unstreamed_max_tokens"],
]
"""Values of options.

- `temperature`, `top_p`, `seed`, `max_tokens`: the range; a value outside of it becomes the nearest one.
- `greedy_top_p`: `top_p` below 1 while the temperature is 0, where it has no effect.
- `stop`: the most stop texts of a request.
- `stop_bytes`: the longest stop text, in bytes of UTF-8.
- `blank_stop`: a stop text of white space only. An empty one is never sent.
- `session_id`: the longest session id, in characters; it is cut there.
- `unstreamed_max_tokens`: the largest limit of output of a reply that is not streamed.
- `user_id`: the length in characters, and a pattern of ids that are refused; a hash of the id is sent instead.
"""

MediaPlace: TypeAlias = Literal[  # noqa: RUF041 - a line for each group
    Literal["files", "pages", "request_media", "media_bytes", "image_bytes", "document_bytes", "image_edge"],
    Literal["large_images", "untyped_media", "other_image_type", "files_alone", "error_media"],
]
"""Images and files.

- `files`, `pages`: the most files, and pages of PDFs, of one request.
- `request_media`: the most media of one request, in bytes of base64.
- `media_bytes`: the largest single image or file, in decoded bytes; `image_bytes`, `document_bytes`: that of an image
  or of a document (PDF, text, office), where it is smaller.
- `image_edge`: the longest edge of an image in pixels.
- `large_images`: the most images of one request where one of them has an edge above `least` pixels.
- `untyped_media`: media by URL or file id without a MIME type that names their format.
- `other_image_type`: an image whose MIME type is not the one that its bytes show.
- `files_alone`: a user message with a file and no text.
- `error_media`: media in a tool result that is an error.
"""

CachePlace: TypeAlias = Literal["cache_mark_order", "cache_mark_places", "cache_mark_beside"]
"""Cache marks.

- `cache_mark_order`: a mark with a longer lifetime after one with a shorter one; it gets the shorter one.
- `cache_mark_places`: where a mark is refused: `tool`, `assistant` (content of assistant turns), `result_content` (the
  result itself gets the mark).
- `cache_mark_beside`: fields of a tool next to which a mark is refused, if they are set and not false; MIME types of
  files that cannot have one.
"""

SchemaPlace: TypeAlias = Literal[  # noqa: RUF041 - a line for each group
    Literal["root_keywords", "schema_keywords", "strict_keywords", "schema_formats", "strict_formats"],
    Literal["schema_faults", "other_enums", "typed_unions", "mistyped_keywords", "unknown_required"],
    Literal["schema_references", "strict_references", "strict_recursion", "untyped_properties", "strict_untyped"],
    Literal["missing_properties", "property_names", "strict_open", "strict_open_objects", "strict_tools"],
    Literal["strict_depth", "strict_properties", "strict_values", "strict_optional", "strict_unions"],
    Literal["lenient_output", "any_output_root"],
]
"""JSON schemas of tools and of the output; `strict` ones: of strict tools, and of a strict output.

- `root_keywords`, `schema_keywords`, `strict_keywords`: keywords that are refused at the root, at any depth, and in a
  strict schema.
- `schema_formats`, `strict_formats`: the formats of texts that a schema may name; others are refused.
- `schema_faults`: what is refused because it is not a valid schema: `invalid` (an unknown type), `items` (a list
  without `items`).
- `other_enums`: an enumeration of anything but texts that are not empty.
- `typed_unions`: a type next to `anyOf`; each of its schemas gets it.
- `mistyped_keywords`: `properties` and `required` in a schema of another type than object, `items` in one that is not a
  list.
- `unknown_required`: a name in `required` that is not a property.
- `schema_references`: a `$ref` that does not name a definition (`#/$defs/`), or that is next to a keyword of it.
- `strict_references`: a `$ref` with any other keyword next to it.
- `strict_recursion`: a schema that refers to itself.
- `untyped_properties`, `strict_untyped`: a property without a type, a choice or a reference, in every schema or in a
  strict one.
- `missing_properties`: a root without `properties`, which may be empty.
- `property_names`: names of the first level that do not match the pattern.
- `strict_open`: an object that is not closed, or a property that is not required.
- `strict_open_objects`: an object that is not closed; properties may be optional.
- `strict_tools`: the most strict tools of a request.
- `strict_depth`, `strict_properties`, `strict_values`: the most levels, properties and values of enumerations of a
  schema; `strict_optional`, `strict_unions`: the most optional properties, and properties of several types.
- `lenient_output`: an output schema that is not strict; every one is sent and checked as strict.
- `any_output_root`: the one place that allows something: an output schema whose root is not an object.
"""

TurnPlace: TypeAlias = Literal[  # noqa: RUF041 - a line for each group
    Literal["alternation", "pending_calls", "final_space", "mixed_results", "resumable_stops", "content_parts"],
    Literal["repeated_call_ids", "system_fields", "text_phases", "tool_changes"],
]
"""Turns and what they hold.

- `alternation`: turns of one role in a row, where `Rules.alternate` only joins them.
- `pending_calls`: a call of a tool that the provider runs, without its result, while nothing but tool results follows.
- `final_space`: a final assistant turn that ends in white space.
- `mixed_results`: other content in a turn with tool results, where a codec could join them.
- `resumable_stops`: raw stop reasons of the target's own turns; such a turn may always be the last one.
- `content_parts`: roles of the wire whose content has to be a string; a list of parts is refused.
- `repeated_call_ids`: an id of a call that an earlier turn has; without a row, ids are unique in their turn.
- `system_fields`: fields of a system message that make sense without content; such a message may be anywhere.
- `text_phases`: the target accepts `TextContent.phase` of its own texts.
- `tool_changes`: the target accepts a system message that adds and removes tools, from its place on.
"""

BodyPlace: TypeAlias = Literal[  # noqa: RUF041 - a line for each group
    Literal["unset_max_tokens", "compaction", "minimal_with_server_tools", "thinking_unstreamed", "thinking_level"],
    Literal["needed_fields", "window_field", "body_protocol"],
]
"""Options together, and the body.

- `unset_max_tokens`: a request without `max_tokens`; a default is sent.
- `compaction`: the smallest number of tokens above which the server can be asked to compact.
- `minimal_with_server_tools`: the provider's own tools with the level `minimal`; it becomes `low`.
- `thinking_unstreamed`: thinking in a reply that is not streamed; projection disables thinking.
- `thinking_level`: levels that this endpoint refuses, although the model has them at another one.
- `needed_fields`: `key=value`: lists that the body has to have, `object.key` for a key of an inner object.
- `window_field`: the field that sets the window of the server, where a request can set it: `object.key`.
- `body_protocol`: the protocol whose fields the body has, where an endpoint answers several.
"""

Place: TypeAlias = Literal[OptionPlace, MediaPlace, CachePlace, SchemaPlace, TurnPlace, BodyPlace]

PLACES: Final[frozenset[str]] = frozenset(get_args(Place))
"""All places that a row can have."""


def is_sure(value: object) -> bool:
    """Whether every check follows a value of the rules: that of a field, or a row whose source shows a refusal."""
    return not isinstance(value, Rule) or value.grade == "refused"
