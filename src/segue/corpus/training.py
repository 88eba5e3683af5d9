"""Lines of a training set: the conversation as it was, ending with the answer of the assistant, and nothing else.

A request may be repaired: a turn "(continue)" is appended where a provider wants the user's turn last, a placeholder
stands for a signature. In a training set such texts would be learned. So here the last turn stays the assistant's, and
a conversation that would need an inserted text is refused.
"""

from __future__ import annotations

import re
from operator import is_
from typing import Final, final

from msgspec.structs import replace

from segue.conversation.context import Context, Options
from segue.conversation.messages import Message
from segue.errors import ProjectionError, ProjectionRefused, render_path
from segue.foundation.json_text import encode_json
from segue.histories.kit.entries import WEIGHT, find_weight
from segue.histories.opening import OpenedDocument
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.projection.projector import project, prompt_of
from segue.projection.report import SENTENCES, Change, ChangeCode
from segue.protocols.api import resolve_endpoint
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.facts import TrainingForm
from segue.protocols.registry import find_protocol, get_protocol, resolve_rules
from segue.requests.prepare import Request

INVENTED: Final = frozenset(
    {
        ChangeCode.TURN_INSERTED,
        ChangeCode.TURN_FILLED,
        ChangeCode.RESULT_MISSING,
        ChangeCode.RESULT_FILLED,
        ChangeCode.SIGNATURE_PLACEHOLDER,
        ChangeCode.TOOL_ADDED,
    }
)
"""Changes that put something into a conversation which nobody sent."""


_DEFAULT: Final = TrainingForm()
_CONTENT: Final = frozenset({"tools", "toolConfig", "functions"})
"""Keys that cannot be left out without a loss."""


def find_form(model: Model) -> TrainingForm:
    """Find the form of the training lines of a model; protocols without one are written with all their turns."""
    forms = get_protocol(model.protocol).training_forms
    return next((form for form in forms if re.search(form.ids, model.id)), _DEFAULT)


def has_weights(protocol: str) -> bool:
    """Whether the training lines that a protocol writes have weights of messages; such lines look alike."""
    record = find_protocol(protocol)
    return record is not None and any(form.has_weights for form in record.training_forms)


ONLY_REQUESTS: Final = frozenset({CheckCode.MAX_TOKENS_MISSING, CheckCode.MODEL_MISSING, CheckCode.SIGNATURE_MISSING})
"""Codes of what a provider requires of a request and not of a training line."""


def is_training_line(document: OpenedDocument) -> bool:
    """Whether a document is a training line: it ends with an answer, and has no key that such lines do not have."""
    messages, body = document.prompt.context.messages, document.body
    if not isinstance(body, dict) or not messages or messages[-1].role != "assistant":
        return False
    forms = () if document.protocol is None else get_protocol(document.protocol).training_forms
    return body.keys() <= frozenset[str]().union(*(form.keys for form in forms if form.writer is None))


def writing_model(model: Model) -> Model:
    """Give a model with the protocol in which its training lines are written."""
    writer = find_form(model).writer
    return model if writer is None else replace(model, protocol=writer)


@final
class Training:
    """Makes training lines for one model."""

    def __init__(self, model: Model, policy: Policy) -> None:
        self._form = find_form(model)
        self._model = writing_model(model)
        rules = resolve_rules(self._model)
        relaxed = {
            "last_assistant": True,
            "call_signature": "free",
            "final_space": None,
            "portable_extra": rules.portable_extra | {WEIGHT},
            **self._form.rules,
        }
        self._target = replace(self._model, rules={**self._model.rules, **relaxed})
        # Thinking that is sent as text would be learned as part of the answer.
        has_channel = self._model.reasoning and resolve_rules(self._target).reasoning_replay in ("open", "required")
        reasoning = "drop" if policy.reasoning == "auto" and not has_channel else policy.reasoning
        self._policy = replace(
            policy, trailing_calls="open", fit=None, refuse=policy.refuse | INVENTED, reasoning=reasoning
        )
        self._endpoint = resolve_endpoint(self._model)
        self._codec = get_protocol(self._model.protocol)

    def prepare(self, document: OpenedDocument) -> Request:
        """Make the line of a conversation.

        Raises:
            ProjectionError: the conversation does not end with the assistant, or would need something invented.
        """
        prompt = document.prompt
        messages = prompt.context.messages
        if not messages or messages[-1].role != "assistant":
            raise ProjectionError("a training conversation has to end with a turn of the assistant; add the answer")
        context = self._with_weights(prompt.context)
        options = Options(parallel_tool_calls=prompt.options.parallel_tool_calls)
        try:
            projection = project(context, self._target, options=options, policy=self._policy)
        except ProjectionRefused as refused:
            raise _explained(refused) from None
        sent = projection.context.messages
        if not sent or sent[-1].role != "assistant":
            raise ProjectionError("the last turn of the assistant is not finished, and unfinished turns are not sent")
        body = self._codec.encode_request(prompt_of(projection, self._endpoint), self._endpoint)
        lost = [key for key in body if key in _CONTENT and key not in self._form.keys]
        if lost:
            raise ProjectionError(
                f"training lines for {self._model.full_name()} have no {lost[0]!r}; remove the tools, or choose another"
                " target"
            )
        kept = {key: value for key, value in body.items() if key in self._form.keys}
        # Nothing is sent: a line has no field of a transport, such as the version of the API.
        return Request(projection, self._endpoint, self._codec, encode_json(kept), is_opened=False)

    def _with_weights(self, context: Context) -> Context:
        """Move the weights of messages to the protocol that is written.

        Raises:
            ProjectionError: its lines have none, so that a masked turn would be trained.
        """
        has_them = has_weights(self._model.protocol)
        for index, message in enumerate(context.messages):
            weight = None if has_them or message.role != "assistant" else find_weight(message)
            if weight not in (None, 1):
                raise ProjectionError(
                    f"messages[{index}]: training lines for {self._model.full_name()} have no `weight`, so this turn"
                    f" with weight {weight} would be trained; remove the turn, or choose another target"
                )
        protocol = self._model.protocol if has_them else None
        messages = tuple(_with_weight(message, protocol) for message in context.messages)
        return context if all(map(is_, messages, context.messages)) else replace(context, messages=messages)


def _with_weight(message: Message, protocol: str | None) -> Message:
    """Move the weight of a message to the protocol that is written; without one, remove it."""
    weight = find_weight(message)
    if weight is None or message.extra is None:
        return message
    parts = {name: {key: value for key, value in part.items() if key != WEIGHT} for name, part in message.extra.items()}
    if protocol is not None:
        parts[protocol] = {**parts.get(protocol, {}), WEIGHT: weight}
    return replace(message, extra={name: part for name, part in parts.items() if part} or None)


def _explained(refused: ProjectionRefused) -> ProjectionError:
    """Name the first change that would invent something."""
    change = next((change for change in refused.report.changes if change.code in INVENTED), None)
    return refused if change is None else invented_content(change)


def invented_content(change: Change) -> ProjectionError:
    """Explain a change that would invent something."""
    return ProjectionError(
        f"{render_path(change.path)}: a training line must not have invented content: {SENTENCES[change.code]}"
    )
