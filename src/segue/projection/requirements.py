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


@final
class RenameNeeded(msgspec.Struct, frozen=True, kw_only=True, tag="renameNeeded", tag_field="type"):
    """The target refuses the name of a property of a tool. It does not occur any more: such names are replaced.

    Replies are mapped back: see `Projection.tool_names`. `path` is the path of the property.
    """

    kind: ClassVar[Literal["renameNeeded"]] = "renameNeeded"
    path: Path
    tool: str
    property: str


@final
class SummaryWanted(msgspec.Struct, frozen=True, kw_only=True, tag="summaryWanted", tag_field="type"):
    """Messages are left out to fit the window, and no summary covers all of them: add one with `append_summary`.

    Without it a short note is sent in their place. The messages are those from index `first` to `last` of the given
    conversation, `tokens` is their size. A summary covers all messages before `last + 1`; a summary of the messages
    before `first` exists already, or they are sent.
    """

    kind: ClassVar[Literal["summaryWanted"]] = "summaryWanted"
    path: Path = ("messages",)
    first: int
    last: int
    tokens: int


@final
class WindowTooSmall(msgspec.Struct, frozen=True, kw_only=True, tag="windowTooSmall", tag_field="type"):
    """Nothing more can be left out and the request is still too large: choose a model with a larger window.

    `needed` is the estimate and `limit` the most that the input may have, both in tokens; `path` is the largest part of
    what has to be sent. `prepare` raises `DoesNotFit`.
    """

    kind: ClassVar[Literal["windowTooSmall"]] = "windowTooSmall"
    path: Path
    needed: int
    limit: int


Requirement: TypeAlias = ThinkingOff | MediaNeeded | HistoryNeeded | RenameNeeded | SummaryWanted | WindowTooSmall
