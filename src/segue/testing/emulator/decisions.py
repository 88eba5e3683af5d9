"""The endpoint of OpenAI that answers closed questions with probabilities.

Facts (openai 3.49.0: types/decision_create_params.py, types/decision.py):
- Only `gpt-6-luna` is supported. 1 to 400 questions: predicates, choices (2 to 255, each once) and scores.
- The input is a text, or messages, calls and their outputs; each output names a call of the input.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, cast

import msgspec

from segue.calls.replies import encode_error
from segue.failures.failure import Failure, FailureKind
from segue.protocols.kit.json_values import Wire, list_of, object_of
from segue.testing.emulator.answering import EmulatedAnswer
from segue.testing.emulator.script import Script, Step

PATH: Final = "/v1/decisions"
_MODEL: Final = "gpt-6-luna"
_PROTOCOL: Final = "openai-responses"
_SURE: Final = 0.9
_BYTES: Final = 4
"""The bytes of a token, in what is counted."""


class _Kind(msgspec.Struct, tag_field="type", forbid_unknown_fields=True, kw_only=True):
    instructions: str | list[Wire]
    name: str | None = None


class _Predicate(_Kind, tag="predicate"):
    pass


class _Option(msgspec.Struct, forbid_unknown_fields=True):
    value: str | bool
    description: str | None = None


class _Choice(_Kind, tag="choice"):
    choices: Annotated[list[_Option], msgspec.Meta(min_length=2, max_length=255)]


class _Level(msgspec.Struct, forbid_unknown_fields=True):
    label: str
    description: str | None = None


class _Score(_Kind, tag="score"):
    levels: Annotated[list[_Level], msgspec.Meta(min_length=2)]


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    model: str
    input: str | list[Wire]
    questions: Annotated[list[_Predicate | _Choice | _Score], msgspec.Meta(min_length=1, max_length=400)]
    prompt_cache_key: str | None = None
    prompt_cache_options: Wire | None = None
    safety_identifier: str | None = None


_PARTS: Final = {
    "user": {"input_text", "input_image", "input_json"},
    "assistant": {"output_text", "refusal"},
    "developer": {"input_text"},
    "system": {"input_text"},
}
"""Roles -> the types of the parts that their messages may have."""
_KEYS: Final = {
    "input_text": {"text", "prompt_cache_breakpoint"},
    "input_image": {"image_url", "detail", "prompt_cache_breakpoint"},
    "input_json": {"data"},
    "output_text": {"text"},
    "refusal": {"refusal"},
}
_CALLS: Final = {"function_call": "arguments", "custom_tool_call": "input"}


def answer_decision(body: bytes, script: Script) -> tuple[EmulatedAnswer, Wire | None]:
    """Answer a request: the text of the step is the choice, else it is the first one. Returns the request, too."""
    try:
        return _answer_body(msgspec.json.decode(body, type=_Body), len(body), script), msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        return _refuse(str(error), "type_wrong"), None


def _answer_body(asked: _Body, size: int, script: Script) -> EmulatedAnswer:
    fault = next(_faults(asked), None)
    if asked.model != _MODEL:
        text = f"The model '{asked.model}' is not supported by this endpoint."
        return _refuse(text, "model")
    if fault is not None:
        return _refuse(fault, "value_unknown")
    step = script.take(asked.model)
    if step.status is not None:
        failure = Failure(kind=FailureKind.SERVER, status=step.status, message=step.message or "scripted")
        error = encode_error(failure, protocol=_PROTOCOL)
        return EmulatedAnswer(status=step.status, headers=error.headers, body=error.body, step=step)
    count = -(-size // _BYTES)
    answered: Wire = {
        "answers": [_answer(question, step) for question in asked.questions],
        "model": asked.model,
        "usage": {
            "input_tokens": count,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": count + 1,
        },
    }
    return EmulatedAnswer(status=200, headers={}, body=answered, step=step)


def _answer(question: _Predicate | _Choice | _Score, step: Step) -> Wire:
    text = step.text or ""
    if text == "refusal":
        return {"type": "refusal", "name": question.name}
    if isinstance(question, _Predicate):
        share = 1 - _SURE if text == "false" else _SURE
        return {"type": "predicate", "name": question.name, "probability": share}
    if isinstance(question, _Choice):
        values = [one.value for one in question.choices]
        shares = _shares([str(value) for value in values], text)
        listed: list[Wire] = [
            {"value": value, "probability": share} for value, share in zip(values, shares, strict=True)
        ]
        chosen = values[shares.index(max(shares))]
        common: Wire = {"type": "choice", "name": question.name, "confidence": max(shares), "probabilities": listed}
        return {**common, "choice": chosen}
    labels = [one.label for one in question.levels]
    shares = _shares(labels, text)
    listed = [
        {"label": label, "probability": share, "value": place}
        for place, (label, share) in enumerate(zip(labels, shares, strict=True))
    ]
    score = sum(place * share for place, share in enumerate(shares))
    return {"type": "score", "name": question.name, "confidence": max(shares), "probabilities": listed, "score": score}


def _shares(choices: list[str], text: str) -> list[float]:
    chosen = choices.index(text) if text in choices else 0
    rest = (1 - _SURE) / (len(choices) - 1)
    return [_SURE if place == chosen else rest for place in range(len(choices))]


def _faults(asked: _Body) -> Iterator[str]:
    """Yield what the endpoint would refuse in addition to unknown fields."""
    for number, question in enumerate(asked.questions):
        if isinstance(question, _Choice):
            values = [(type(one.value), one.value) for one in question.choices]
            if len(set(values)) < len(values):
                yield f"questions[{number}].choices: each choice must be unique"
    calls: set[object] = set()
    for number, item in enumerate(list_of(asked.input)):
        held, place = object_of(item), f"input[{number}]"
        kind = held.get("type", "message")
        if kind == "message":
            known = _PARTS.get(str(held.get("role")))
            if known is None or held.keys() - {"type", "role", "content", "phase"}:
                yield f"{place}: unknown field or role"
            for part in map(object_of, list_of(held.get("content"))):
                type_ = cast("str", part.get("type"))
                if type_ not in (known or ()) or part.keys() - {"type"} - _KEYS.get(type_, set()):
                    yield f"{place}.content: unknown part {type_!r}"
        elif kind in _CALLS:
            calls.add(held.get("call_id"))
            if not isinstance(held.get(_CALLS[str(kind)]), str):
                yield f"{place}.{_CALLS[str(kind)]}: expected a string"
        elif str(kind).removesuffix("_output") in _CALLS and "output" in held:
            if held.get("call_id") not in calls:
                yield f"{place}: No tool call found for the output with call_id {held.get('call_id')}."
        else:
            yield f"{place}.type: unknown item {kind!r}"


def _refuse(text: str, refusal: str) -> EmulatedAnswer:
    error = encode_error(Failure(kind=FailureKind.INVALID_REQUEST, status=400, message=text), protocol=_PROTOCOL)
    return EmulatedAnswer(status=error.status, headers=error.headers, body=error.body, refusal=refusal)
