"""Closed questions about a conversation: which of some choices holds, yes or no, or which level of a scale.

OpenAI has an endpoint for decisions, which answers with probabilities. Other models are asked by schema.

Facts:
- `POST /decisions` takes `input`, a part of the items of Responses: no reasoning, no files, no calls of hosted tools.
  `questions` are predicates, choices (2 to 255, each once) and scores; answers come in the same order, and each may be
  a refusal. Only `gpt-6-luna` has it.                  (openai 3.49.0: resources/decisions.py, types/decision*.py)
- google-genai 3.3.0 has `/decisions`, too; its types do not say for which models, so they are asked by schema.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, cast, final

import msgspec
from msgspec.structs import replace

from segue.client.flow.typed_answers import Answer, explain_problem
from segue.client.output.replies import Problem
from segue.conversation.context import Context, Options
from segue.conversation.messages import AssistantMessage, Usage, UserMessage
from segue.errors import SettingsError
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.projection.projector import refuse_changes
from segue.projection.report import Change, ChangeCode, Loss, Report
from segue.protocols.kit.json_values import Block, Wire, is_object, list_of, object_of
from segue.requests.prepare import Request

C = TypeVar("C", bound=str | bool)
Choices: TypeAlias = type[C] | Collection[C]
"""What may be answered: `bool` for yes or no, texts, or a mapping of texts to what each means."""

_NATIVE: Final = frozenset({("openai", "gpt-6-luna")})
"""Providers and models with an endpoint for decisions."""
_PROTOCOL: Final = "openai-responses"
_PATH: Final = "/decisions"
_ASKED: Final = "native decision"
_MOST: Final = 255
_COPIED: Final = ("prompt_cache_key", "prompt_cache_options", "safety_identifier")
_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "input_text": ("text", "prompt_cache_breakpoint"),
    "input_image": ("image_url", "detail", "prompt_cache_breakpoint"),
    "output_text": ("text",),
    "refusal": ("refusal",),
}
"""Types of parts that a decision takes -> their keys; `input_image` needs a URL."""
_CALL: Final = ("call_id", "name", "id", "namespace", "status")
_ITEMS: Final[Mapping[str, tuple[str, ...]]] = {
    "message": ("role", "content", "phase"),
    "function_call": (*_CALL, "arguments"),
    "function_call_output": ("call_id", "output", "id", "status"),
    "custom_tool_call": (*_CALL, "input"),
    "custom_tool_call_output": ("call_id", "output", "id", "status"),
}
"""Types of items that a decision takes -> their keys."""


@final
class Decision(msgspec.Struct, Generic[C], frozen=True, kw_only=True):
    """The answer to a closed question: `value` is one of the choices.

    `probabilities` has each choice with its probability, and is empty if the model was asked by schema, because a text
    has none. `asked` is how the model was asked, such as "native decision". `message` is the reply to a question by
    schema.
    """

    value: C
    choices: tuple[C, ...]
    probabilities: Mapping[C, float] = msgspec.field(default_factory=dict[Any, float])
    asked: str = ""
    usage: Usage | None = None
    message: AssistantMessage | None = None
    report: Report = Report(())

    @property
    def confidence(self) -> float | None:
        """The probability of the value; None if the model gave none."""
        return self.probabilities.get(self.value)

    @property
    def score(self) -> float:
        """The place of the answer among the choices, from 1 on: the mean of what is probable, where that is known."""
        places = {choice: place for place, choice in enumerate(self.choices, 1)}
        total = sum(self.probabilities.values())
        if not total:
            return float(places[self.value])
        return sum(places[choice] * share for choice, share in self.probabilities.items()) / total


@final
class Question(Generic[C]):
    """A question with its choices, each with what it means; `ordered` choices are levels of a scale, lowest first.

    Raises:
        SettingsError: there are fewer than two choices, more than 255, or one of them twice.
    """

    def __init__(self, question: str, choices: Choices[C], *, ordered: bool = False) -> None:
        given: Any = choices
        if isinstance(given, (str, bytes)) or not (given is bool or isinstance(given, Collection)):
            raise SettingsError(f"choices={given!r}; pass bool, a list of texts, or a dict of texts", key="choices")
        listed: list[object] = [True, False] if given is bool else list(cast("Collection[object]", given))
        if not 2 <= len(listed) <= _MOST or len(set(map(_typed, listed))) < len(listed):
            raise SettingsError(f"choices has {len(listed)} values; pass 2 to {_MOST}, each once", key="choices")
        kinds = {type(one) for one in listed}
        if not kinds <= {str, bool} or (ordered and bool in kinds):
            raise SettingsError("choices are texts, or bool; the levels of a scale are texts", key="choices")
        meanings: dict[C, str] = dict(given) if isinstance(given, dict) else {}  # pyright: ignore[reportUnknownArgumentType]
        self.question = question
        self.choices: tuple[C, ...] = tuple(cast("list[C]", listed))
        self.meanings = meanings
        self.ordered = ordered
        self.is_predicate: bool = given is bool

    @property
    def output(self) -> Any:  # noqa: ANN401 - a type form
        """The type of the value."""
        literal: Any = Literal
        return bool if self.is_predicate else literal[self.choices]

    def ask_in_words(self, context: Context) -> Context:
        """Add the question to a conversation, as a message of the user."""
        lines = [self.question]
        if self.ordered:
            lines += ["", f"The levels, from the lowest to the highest: {', '.join(map(str, self.choices))}."]
        if self.meanings:
            lines += ["", *(f"- {choice}: {meaning}" for choice, meaning in self.meanings.items())]
        return context.add(UserMessage.of("\n".join(lines)))

    def write(self) -> Wire:
        """Write the question as the endpoint for decisions has it."""
        if self.is_predicate:
            return {"type": "predicate", "instructions": self.question}
        key, kind, name = ("levels", "score", "label") if self.ordered else ("choices", "choice", "value")
        listed = [
            {name: choice, **({"description": self.meanings[choice]} if self.meanings.get(choice) else {})}
            for choice in self.choices
        ]
        return {"type": kind, "instructions": self.question, key: listed}

    def read(self, answer: Block) -> Mapping[C, float] | None:
        """Read the probabilities in an answer of the endpoint; None if it has another form."""
        if self.is_predicate:
            share = answer.get("probability")
            found: Any = {True: share, False: 1 - share} if isinstance(share, (int, float)) else {}
        else:
            name = "label" if self.ordered else "value"
            listed = [object_of(one) for one in list_of(answer.get("probabilities"))]
            found = {one.get(name): one.get("probability") for one in listed}
        is_whole = {_typed(one) for one in found} == set(map(_typed, self.choices))
        return found if is_whole and all(isinstance(one, (int, float)) for one in found.values()) else None


class Deciding(Generic[C]):
    """One decision: what is sent to the endpoint for decisions, what its answer means, and the words without it."""

    def __init__(self, question: Question[C], context: Context, model: Model, policy: Policy | None) -> None:
        self.question = question
        self.context = context
        self.policy = policy
        is_native = (model.provider, model.id) in _NATIVE
        self.model: Model = replace(model, protocol=_PROTOCOL) if is_native and model.protocol != _PROTOCOL else model
        self.is_native = is_native
        self._report = Report(())

    def write(self, request: Request, options: Options | None) -> Wire | None:
        """Return the body for the endpoint; None if the conversation has something that the endpoint does not take.

        Raises:
            ProjectionRefused: the policy refuses what is left out.
        """
        body, changes = request.body, list(request.report.changes)
        items: list[Wire] = []
        if isinstance(instructions := body.get("instructions"), str):
            items.append({"role": "developer", "content": instructions})
        for item in map(object_of, list_of(body.get("input"))):
            if item.get("type") == "reasoning":
                continue
            written = _fit_item(item)
            if written is None:
                return None
            items.append(written)
        if len(items) < len(list_of(body.get("input"))) + ("instructions" in body):
            text = "a decision does not take reasoning"
            changes.append(Change(code=ChangeCode.THINKING_DROPPED, path=("messages",), loss=Loss.OPAQUE, detail=text))
        for name in (options or Options()).__struct_fields__:
            value = getattr(options, name, None)
            if value is not None and name not in ("session_id", "user_id", "cache_retention", "stream"):
                text = f"{name}: a decision does not have it"
                change = Change(code=ChangeCode.OPTION_REMOVED, path=("options", name), loss=Loss.NONE, detail=text)
                changes.append(change)
        self._report = Report(tuple(changes))
        refuse_changes(self._report, self.policy or Policy(), self.model.full_name())
        copied = {key: body[key] for key in _COPIED if body.get(key) is not None}
        return {"model": self.model.id, "input": items, "questions": [self.question.write()], **copied}

    @staticmethod
    def url(request: Request) -> str:
        """Return the URL of the endpoint, which is next to that of replies."""
        return request.url.rpartition("/")[0] + _PATH

    def read(self, body: object, request: Request) -> Decision[C] | None:
        """Read an answer of the endpoint to a request; None if it has none.

        Raises:
            OutputRefused: the model declined to answer.
        """
        answer = object_of(next(iter(list_of(object_of(body).get("answers"))), None))
        model = self.model
        if answer.get("type") == "refusal":
            reply = AssistantMessage(content=(), protocol=model.protocol, provider=model.provider, model=model.id)
            raise explain_problem(Problem("refused", "it declined this question"), reply, ())
        shares = self.question.read(answer)
        if shares is None:
            return None
        given = answer.get("choice")
        best = max(shares, key=lambda choice: shares[choice])
        value = next((one for one in shares if _typed(one) == _typed(given)), best)
        counted: Wire = {"status": "completed", "output": [], "model": model.id, "usage": object_of(body).get("usage")}
        return Decision(
            value=value,
            choices=self.question.choices,
            probabilities=shares,
            asked=_ASKED,
            usage=request.decode(counted).usage,
            report=self._report,
        )

    def of(self, answer: Answer[Any]) -> Decision[C]:
        """Return the decision in the answer to a question by schema."""
        return Decision(
            value=answer.value,
            choices=self.question.choices,
            asked=answer.asked,
            usage=answer.usage,
            message=answer.message,
            report=answer.report,
        )


def _typed(choice: object) -> tuple[type, object]:
    """Tell a text from a boolean that is equal to a number."""
    return type(choice), choice


def _fit_item(item: Block) -> Wire | None:
    """Return an item with what a decision takes of it; None if it is, or holds, something that it does not take."""
    kind = str(item.get("type", "message"))
    keys = _ITEMS.get(kind)
    if keys is None:
        return None
    fitted: Wire = {key: item[key] for key in keys if item.get(key) is not None}
    place = "content" if kind == "message" else "output"
    parts: list[Wire] = []
    for part in map(object_of, list_of(fitted.get(place))):
        known = _PARTS.get(str(part.get("type")))
        if known is None or known[0] not in part:
            return None
        parts.append({"type": part["type"], **{key: part[key] for key in known if part.get(key) is not None}})
    if is_object(fitted.get(place)) or (isinstance(fitted.get(place), list) and not parts):
        return None
    return {"type": kind, **fitted, **({place: parts} if parts else {})}
