"""What an emulated provider answers: steps, one for each request, and a default when there are none left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias, cast, final

import msgspec

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Prompt
from segue.errors import SettingsError


@final
class EmulatedCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool call of a scripted reply. Without an id, it gets one in the style of the provider."""

    name: str
    arguments: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])
    id: str | None = None


@final
class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """The answer to one request.

    - `thinking`, `text`, `thinking_after`, `calls`: the content, in this order. Without a text or calls, the text
      repeats the last text of the user.
    - `searches`: so many runs of the provider's web search, where the protocol has one; each is billed.
    - `too_long`: whether the reply is cut at its limit of tokens. `paused`: whether it ends in the run of a tool of the
      provider (`pause_turn`), where the protocol has that; the next request sends it back, and the reply continues it.
    - `status`, `retry_after`, `message`: an error in place of a reply, such as 429 or 529.
    - `first_byte`: seconds before the first byte; `pause`: seconds between two frames.
    - `cut_after`: the connection is closed after so many frames. `fail_after`: the stream ends with an error frame.
    - `model`: the step is only for requests to this model.
    """

    thinking: str | None = None
    text: str | None = None
    thinking_after: str | None = None
    calls: tuple[EmulatedCall, ...] = ()
    searches: int = 0
    too_long: bool = False
    paused: bool = False
    status: int | None = None
    retry_after: float | None = None
    message: str | None = None
    first_byte: float = 0.0
    pause: float = 0.0
    cut_after: int | None = None
    fail_after: int | None = None
    model: str | None = None


StepInput: TypeAlias = Step | Mapping[str, Any]
"""A step, or a dict with its fields."""
_FIELDS: Final = ", ".join(Step.__struct_fields__)

UNSCRIPTED: Final = Step(thinking="The user expects an answer.")
"""The answer without a script; thinking is in it where a request asks for it."""


def load_steps(data: bytes) -> tuple[Step, ...]:
    """Read a list of steps from JSON.

    Raises:
        SettingsError: it is not a list of steps.
    """
    try:
        given: object = msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise SettingsError(f"the script cannot be read: {error}; it is a JSON list of steps", key="script") from error
    if not isinstance(given, list):
        raise SettingsError("the script is not a list; pass a JSON list of steps", key="script")
    return read_steps(cast("list[StepInput]", given))


def read_steps(steps: Iterable[StepInput]) -> tuple[Step, ...]:
    """Check steps; a dict with the fields of a step, with hyphens or underscores, is one.

    Raises:
        SettingsError: one is not a step, or has a field or value that steps do not have.
    """
    return tuple(_read_step(number, step) for number, step in enumerate(steps, 1))


def _read_step(number: int, step: object) -> Step:
    given: object = msgspec.to_builtins(step) if isinstance(step, Step) else step
    if not isinstance(given, Mapping):
        kind = type(step).__name__
        raise SettingsError(f"step {number} is of type {kind}; pass a Step, or a dict with its fields", key="steps")
    fields = {str(key).replace("_", "-"): value for key, value in cast("Mapping[object, object]", given).items()}
    try:
        return msgspec.convert(fields, Step)
    except msgspec.ValidationError as error:
        raise SettingsError(f"step {number}: {error}; the fields of a step are {_FIELDS}", key="steps") from error


class Script:
    """The steps that are left. A step is taken by the first request that it fits."""

    def __init__(self, steps: Iterable[StepInput] = ()) -> None:
        self._steps: list[Step] = list(read_steps(steps))

    def add(self, *steps: StepInput) -> None:
        """Add steps at the end.

        Raises:
            SettingsError: one is not a step.
        """
        self._steps.extend(read_steps(steps))

    def add_first(self, step: StepInput) -> None:
        """Add a step before all others, like `add`."""
        self._steps[:0] = read_steps((step,))

    def replace(self, *steps: StepInput) -> None:
        """Set the steps that are left, like `add`."""
        self._steps[:] = read_steps(steps)

    def names(self, model: str) -> bool:
        """Whether a step is for this model, so that it is served."""
        return any(step.model == model for step in self._steps)

    def take(self, model: str) -> Step:
        """Take the next step for a model; the default one if none is left."""
        for at, step in enumerate(self._steps):
            if step.model is None or step.model == model:
                return self._steps.pop(at)
        return UNSCRIPTED


def content_of(step: Step, prompt: Prompt, call_ids: list[str]) -> list[AssistantContent]:
    """Return the content of a step, unsigned."""
    content: list[AssistantContent] = []
    if step.thinking is not None and prompt.options.thinking != "off":
        content.append(ThinkingContent(thinking=step.thinking))
    text = step.text
    if text is None and not step.calls:
        text = f"You wrote: {_last_text(prompt)}"
    if text is not None:
        content.append(TextContent(text=text))
    if step.thinking_after is not None and prompt.options.thinking != "off":
        content.append(ThinkingContent(thinking=step.thinking_after))
    content += [
        ToolCall(id=call.id or call_ids.pop(0), name=call.name, arguments=call.arguments) for call in step.calls
    ]
    return content


def _last_text(prompt: Prompt) -> str:
    for message in reversed(prompt.context.messages):
        if message.role in ("user", "toolResult"):
            return " ".join(piece.text for piece in message.content if piece.kind == "text")
    return ""
