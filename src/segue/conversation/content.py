"""The pieces a message is made of.

Facts this file rests on:
- Which piece may stand in which role is a closed union per role: a wrong one is a type error for the
  type checker and an error with its path when it comes from JSON.                       (ktsoator/or)
- Signatures are opaque: stored, replayed to whoever made them, never read.              (ktsoator/or)
- `kind` repeats the JSON tag as a class constant: `match content.kind` is proved exhaustive and costs
  a fraction of a class pattern on a Struct.                                             (measured)

Values are frozen, and the dicts inside them are not to be changed in place: a projection shares them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeAlias, final

import msgspec

Extra: TypeAlias = Mapping[str, Mapping[str, object]]
"""What a wire said that segue has no word for, keyed by protocol; `stored` holds unknown fields of a stored file."""


class Value(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename="camel",
    omit_defaults=True,
    forbid_unknown_fields=True,
    # The garbage collector need not look for cycles here: a frozen value is made after everything it holds, and what
    # is held is JSON. Loading a long history is a tenth faster for it.                       (measured 2026-11-15)
    gc=False,
):
    """How every stored value is spelt: camelCase, defaults left out, unknown fields an error on the fast path."""


class Content(Value, frozen=True, kw_only=True, tag_field="type"):
    """The parent of all content; its `type` in JSON is `kind` in Python."""


@final
class CacheMark(Value, frozen=True, kw_only=True):
    """Asks the provider to cache the prompt up to and including the marked content; `ttl` is "5m" or "1h" where set."""

    ttl: str | None = None
    extra: Extra | None = None


@final
class TextContent(Content, frozen=True, kw_only=True, tag="text"):
    """A text.

    `text_signature` is opaque provider data, valid only for the model that produced it. `phase` tells a comment on the
    work ("commentary") from the answer ("final_answer"), where the provider makes the difference.
    """

    kind: ClassVar[Literal["text"]] = "text"
    text: str
    text_signature: str | None = None
    phase: str | None = None
    cache_mark: CacheMark | None = None
    extra: Extra | None = None


@final
class ImageContent(Content, frozen=True, kw_only=True, tag="image"):
    """A picture: its bytes as standard base64 in `data`, or where it lies in `url`."""

    kind: ClassVar[Literal["image"]] = "image"
    data: str | None = None
    url: str | None = None
    mime_type: str | None = None
    cache_mark: CacheMark | None = None
    extra: Extra | None = None


@final
class FileContent(Content, frozen=True, kw_only=True, tag="file"):
    """A PDF, audio, video or text file: base64 `data`, a `url`, or a provider's own `file_id`."""

    kind: ClassVar[Literal["file"]] = "file"
    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    mime_type: str | None = None
    name: str | None = None
    cache_mark: CacheMark | None = None
    extra: Extra | None = None


@final
class ThinkingContent(Content, frozen=True, kw_only=True, tag="thinking"):
    """Words the model wrote to itself.

    `thinking_signature` is the provider's seal, valid only for the model that made it. A block with a seal and
    no words is not empty: the words were withheld. `redacted` says that the seal is all there is.
    """

    kind: ClassVar[Literal["thinking"]] = "thinking"
    thinking: str
    thinking_signature: str | None = None
    redacted: bool = False
    extra: Extra | None = None


@final
class ToolCall(Content, frozen=True, kw_only=True, tag="toolCall"):
    """The model asks for a tool to be run.

    `arguments_text` is the provider's own spelling of `arguments`, kept only where it differs from what segue
    writes, or where it could not be parsed. Whoever replaces `arguments` drops it.
    """

    kind: ClassVar[Literal["toolCall"]] = "toolCall"
    id: str
    name: str
    arguments: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])
    arguments_text: str | None = None
    thought_signature: str | None = None
    cache_mark: CacheMark | None = None
    extra: Extra | None = None


FallbackContent: TypeAlias = TextContent | ImageContent | FileContent


@final
class NativeContent(Content, frozen=True, kw_only=True, tag="native"):
    """A block that only one protocol knows, kept verbatim; other targets get `fallback`."""

    kind: ClassVar[Literal["native"]] = "native"
    protocol: str
    block: Mapping[str, Any]
    fallback: tuple[FallbackContent, ...] = ()
    cache_mark: CacheMark | None = None
    extra: Extra | None = None


UserContent: TypeAlias = TextContent | ImageContent | FileContent | NativeContent
AssistantContent: TypeAlias = TextContent | ThinkingContent | ToolCall | NativeContent
ToolResultContent: TypeAlias = TextContent | ImageContent | FileContent | NativeContent
SystemContent: TypeAlias = TextContent | NativeContent
AnyContent: TypeAlias = TextContent | ImageContent | FileContent | ThinkingContent | ToolCall | NativeContent
