"""The content types of a message.

Facts:
- The content that a role allows is a closed union per role. Content in the wrong role is an error of the type checker,
  and a `LoadError` with its path when it comes from JSON.                                   (ktsoator/or)
- Signatures are opaque: stored, replayed to the model that produced them, never parsed.     (ktsoator/or)
- `kind` repeats the JSON tag as a class constant: type checkers prove `match content.kind` exhaustive, and it costs a
  fraction of a class pattern on a Struct.                                                   (measured)

Values are frozen. Do not change the dicts inside them in place: projections share them, and a conversation remembers
what its messages contain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, final

import msgspec

if TYPE_CHECKING:
    import os

Extra: TypeAlias = Mapping[str, Mapping[str, object]]
"""Data that segue has no field for, keyed by protocol; the key `stored` holds unknown fields of a stored file."""
_Bytes: TypeAlias = bytes | bytearray | memoryview


class Value(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename="camel",
    omit_defaults=True,
    forbid_unknown_fields=True,
    # Frozen values cannot form cycles: each is made after everything it holds, and it holds JSON. Without garbage
    # collection, loading a long history is a tenth faster.                                   (measured 2026-11-15)
    gc=False,
):
    """The base class of stored values: camelCase in JSON, defaults omitted, unknown fields refused on the fast path."""


class Content(Value, frozen=True, kw_only=True, tag_field="type"):
    """The base class of all content; `type` in JSON is `kind` in Python."""


@final
class CacheMark(Value, frozen=True, kw_only=True):
    """Asks the provider to cache the prompt up to and including the marked content; `ttl` is "5m" or "1h" where set."""

    ttl: str | None = None
    extra: Extra | None = None


class _Text(Content, frozen=True):
    """The one field that may be given without its name: `TextContent("hi")`."""

    text: str


@final
class TextContent(_Text, frozen=True, kw_only=True, tag="text"):
    """A text.

    `text_signature` is opaque provider data, valid only for the model that produced it. `phase` is "commentary" for
    remarks during the work and "final_answer" for the answer, where the provider makes this distinction.
    """

    kind: ClassVar[Literal["text"]] = "text"
    text_signature: str | None = None
    phase: str | None = None
    cache_mark: CacheMark | None = None
    extra: Extra | None = None


@final
class ImageContent(Content, frozen=True, kw_only=True, tag="image"):
    """An image: its bytes as standard base64 in `data`, or its address in `url`.

    `data` may be given as bytes; it is encoded. `from_file` reads a file.
    """

    kind: ClassVar[Literal["image"]] = "image"
    data: str | None = None
    url: str | None = None
    mime_type: str | None = None
    cache_mark: CacheMark | None = None
    extra: Extra | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            data: str | _Bytes | None = None,
            url: str | None = None,
            mime_type: str | None = None,
            cache_mark: CacheMark | None = None,
            extra: Extra | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        if self.data is not None and type(self.data) is not str:
            _encode_data(self)

    @classmethod
    def from_file(
        cls, path: str | os.PathLike[str], *, mime_type: str | None = None, max_bytes: int | None = None
    ) -> ImageContent:
        """Read an image from a file. Its first bytes decide the MIME type, unless you pass one.

        Raises:
            ConversationError: it is not an image, it is empty, or it has more than `max_bytes` (50 MiB by default).
            OSError: the file cannot be read.
        """
        from segue.conversation import media_sources

        limit = media_sources.MAX_BYTES if max_bytes is None else max_bytes
        data, found, _ = media_sources.read_media(path, "ImageContent", mime_type=mime_type, max_bytes=limit)
        media_sources.check_is_image(path, found)
        return cls(data=data, mime_type=found)


@final
class FileContent(Content, frozen=True, kw_only=True, tag="file"):
    """A PDF, audio, video or text file: base64 `data`, a `url`, or the `file_id` of a file stored by the provider.

    `data` may be given as bytes; it is encoded. `from_file` reads a file. `context` is text about a document that the
    model reads with it, such as where it comes from.
    """

    kind: ClassVar[Literal["file"]] = "file"
    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    mime_type: str | None = None
    name: str | None = None
    context: str | None = None
    cache_mark: CacheMark | None = None
    extra: Extra | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            data: str | _Bytes | None = None,
            url: str | None = None,
            file_id: str | None = None,
            mime_type: str | None = None,
            name: str | None = None,
            context: str | None = None,
            cache_mark: CacheMark | None = None,
            extra: Extra | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        if self.data is not None and type(self.data) is not str:
            _encode_data(self)

    @classmethod
    def from_file(
        cls, path: str | os.PathLike[str], *, mime_type: str | None = None, max_bytes: int | None = None
    ) -> FileContent:
        """Read a file, with its name. Its first bytes decide the MIME type, unless you pass one.

        Raises:
            ConversationError: it is empty, or it has more than `max_bytes` (50 MiB by default).
            OSError: the file cannot be read.
        """
        from segue.conversation import media_sources

        limit = media_sources.MAX_BYTES if max_bytes is None else max_bytes
        data, found, name = media_sources.read_media(path, "FileContent", mime_type=mime_type, max_bytes=limit)
        return cls(data=data, mime_type=found, name=name)


def _encode_data(content: ImageContent | FileContent) -> None:
    """Replace bytes by their base64. Every other value stays unchanged."""
    if isinstance(content.data, (bytes, bytearray, memoryview)):
        from segue.conversation.media_sources import encode_bytes

        msgspec.structs.force_setattr(content, "data", encode_bytes(content.data))


@final
class ThinkingContent(Content, frozen=True, kw_only=True, tag="thinking"):
    """Reasoning produced by the model.

    `thinking_signature` is opaque provider data, valid only for the model that produced it. A block with a signature
    and no text is not empty: the provider withheld the text. `redacted` marks a block that has only a signature.
    `cache_mark` is what a request body had here; providers refuse it, so projection moves it to other content.
    """

    kind: ClassVar[Literal["thinking"]] = "thinking"
    thinking: str
    thinking_signature: str | None = None
    redacted: bool = False
    cache_mark: CacheMark | None = None
    extra: Extra | None = None


@final
class ToolCall(Content, frozen=True, kw_only=True, tag="toolCall"):
    """A request of the model to run a tool.

    `arguments_text` is the JSON text that the provider sent for `arguments`. It is kept only where it differs from the
    text that segue writes, or where it could not be parsed. Code that replaces `arguments` must set it to None.
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
    """A block that only one protocol supports, kept verbatim; other targets get `fallback`."""

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
