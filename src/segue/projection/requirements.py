"""Requirements: what a target needs for this conversation and only the caller can provide."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias, final

import msgspec

from segue.errors import Path


@final
class ThinkingOff(msgspec.Struct, frozen=True, kw_only=True, tag="thinkingOff", tag_field="type"):
    """Thinking has to be disabled for this request: send it with `Options(thinking="off")`.

    The current tool cycle began with an assistant turn without thinking that can be replayed: another model wrote it,
    or it had none. Or the conversation ends with such a turn, which the target is to continue. The target refuses both
    while thinking is enabled. Thinking can be enabled again after the next user turn. `path` is the path of the option.
    """

    kind: ClassVar[Literal["thinkingOff"]] = "thinkingOff"
    path: Path = ("options", "thinking")


@final
class MediaNeeded(msgspec.Struct, frozen=True, kw_only=True, tag="mediaNeeded", tag_field="type"):
    """The target cannot fetch this URL or file id: supply the bytes with `Policy(media={reference: content})`.

    Without them a placeholder text is sent. `path` is the path of the image or file.
    """

    kind: ClassVar[Literal["mediaNeeded"]] = "mediaNeeded"
    path: Path
    reference: str


@final
class HistoryNeeded(msgspec.Struct, frozen=True, kw_only=True, tag="historyNeeded", tag_field="type"):
    """The request refers to content that only another provider holds: add that content to the conversation.

    `field` is the key or block of the reference (`previous_response_id`, `cachedContent`, `item_reference`),
    `reference` its id, `what` the content it stands for. Read it from that provider and put it before the given
    messages; without it the target does not see it. `path` is the path of the reference.
    """

    kind: ClassVar[Literal["historyNeeded"]] = "historyNeeded"
    path: Path
    field: str
    reference: str
    what: str = ""


Requirement: TypeAlias = ThinkingOff | MediaNeeded | HistoryNeeded
