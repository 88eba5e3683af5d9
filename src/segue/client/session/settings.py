"""The settings of a conversation, and the errors for unknown names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Final, TypedDict

from segue.client.http.settings import ClientSettings
from segue.client.session.summarising import Summarise
from segue.conversation.content import SystemContent
from segue.conversation.context import Options, Tool
from segue.errors import SettingsError
from segue.histories.sessions import StrPath
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.protocols.context_input import ContextInput


class ConversationSettings(TypedDict, total=False):
    """Settings of a conversation; all are optional."""

    path: StrPath | None
    """The session file. An existing file is continued. Every message is in the file before the next request is sent."""
    fsync: bool
    """Wait until each message is on the disk."""
    context: ContextInput | None
    """The initial conversation. It may have messages only if the file is new. A text is one user message; a list has
    messages in the form of OpenAI chat."""
    system_prompt: str | tuple[SystemContent, ...] | None
    tools: Iterable[Tool] | None
    options: Options | None
    policy: Policy | None
    fallback_models: Sequence[Model | str]
    """Models to try, in order, when a request to the model fails; a `FallbackPolicy` chooses the order by cost."""
    sticky: bool
    """Keep using a fallback model after it has answered; with a `FallbackPolicy`, until the first one is worth it."""
    summarise: Model | str | Summarise | None
    """Who summarises messages that no longer fit the window: a model, or a function that gets a `SummaryTask` and
    returns a text or a reply. It may be async in an `AsyncConversation`. The summary is stored with the messages. If
    it fails, a short note is sent in its place."""


_OF_OPTIONS: Final = frozenset(Options.__struct_fields__)
_OF_POLICY: Final = frozenset(Policy.__struct_fields__)


def refuse_unknown_settings(name: str, settings: Mapping[str, object]) -> None:
    """Check the names of settings; `name` is the class that was called.

    Raises:
        SettingsError: a setting does not exist. The message names where it belongs.
    """
    known = ConversationSettings.__annotations__
    for key in sorted(set(settings) - set(known)):
        client = "AsyncClient" if name.startswith("Async") else "Client"
        nearest = get_close_matches(key, known, n=1)
        if key in ClientSettings.__annotations__:
            advice = f"pass client={client}({key}=...)"
        elif key in _OF_OPTIONS:
            advice = f"pass options=Options({key}=...)"
        elif key in _OF_POLICY:
            advice = f"pass policy=Policy({key}=...)"
        elif nearest:
            advice = f"did you mean {nearest[0]}=...?"
        else:
            advice = f"the settings are {', '.join(sorted(known))}, client and model"
        raise SettingsError(f"{name}() got an unexpected setting {key!r}; {advice}", key=key, suggestions=nearest)
