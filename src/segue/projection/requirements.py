"""What the target needs that only the caller can give or allow."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias, final

import msgspec

from segue.errors import Path


@final
class ThinkingOff(msgspec.Struct, frozen=True, kw_only=True, tag="thinkingOff", tag_field="type"):
    """Thinking has to be off for this request.

    The running tool cycle was opened by a turn whose thinking cannot be replayed (another model wrote it, or it had
    none), and the target refuses to go on thinking from there. After the next user turn it can think again. `path` is
    that of the option.
    """

    kind: ClassVar[Literal["thinkingOff"]] = "thinkingOff"
    path: Path = ("options", "thinking")


@final
class MediaNeeded(msgspec.Struct, frozen=True, kw_only=True, tag="mediaNeeded", tag_field="type"):
    """The target cannot fetch this URL or file id: put its bytes under `reference` into `Policy.media`."""

    kind: ClassVar[Literal["mediaNeeded"]] = "mediaNeeded"
    path: Path
    reference: str


Requirement: TypeAlias = ThinkingOff | MediaNeeded
