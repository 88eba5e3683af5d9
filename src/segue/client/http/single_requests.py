"""The functions `complete`, `stream` and `decide`: a client for one request. For several requests, make one client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack, cast, overload

from segue.client.flow.attempts import Attempt
from segue.client.flow.deciding import C, Choices, Decision
from segue.client.flow.typed_answers import Answer, T, make_output
from segue.client.http.clients import Client
from segue.client.http.settings import ClientSettings
from segue.client.http.streams import Stream, TypedStream
from segue.conversation.context import Options
from segue.conversation.messages import AssistantMessage
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.protocols.context_input import ContextInput


@overload
def complete(
    context: ContextInput,
    model: Model | str,
    *,
    output: None = None,
    options: Options | None = None,
    policy: Policy | None = None,
    fallback_models: Sequence[Model | str] = (),
    **settings: Unpack[ClientSettings],
) -> AssistantMessage: ...
@overload
def complete(
    context: ContextInput,
    model: Model | str,
    *,
    output: type[T],
    output_retries: int = 1,
    options: Options | None = None,
    policy: Policy | None = None,
    fallback_models: Sequence[Model | str] = (),
    **settings: Unpack[ClientSettings],
) -> Answer[T]: ...
@overload
def complete(
    context: ContextInput,
    model: Model | str,
    *,
    output: object,
    output_retries: int = 1,
    options: Options | None = None,
    policy: Policy | None = None,
    fallback_models: Sequence[Model | str] = (),
    **settings: Unpack[ClientSettings],
) -> Answer[Any]: ...
def complete(
    context: ContextInput,
    model: Model | str,
    *,
    output: Any = None,
    output_retries: int = 1,
    options: Options | None = None,
    policy: Policy | None = None,
    fallback_models: Sequence[Model | str] = (),
    **settings: Unpack[ClientSettings],
) -> AssistantMessage | Answer[Any]:
    """Send a conversation and return the whole reply: `Client.complete` with a client for this request only.

    `context` may also be the text of one user message, or a list of messages in the form of OpenAI chat. With
    `output`, a type, the result is an `Answer` whose `value` is of that type.

    Raises:
        RequestFailed: neither the model nor any of the `fallback_models` gave a complete answer.
        OutputError: the reply has no value of the type `output`.
    """
    asked = make_output(output, output_retries, options)
    with (
        Client(**settings) as client,
        client.begin(
            context,
            model,
            options=options,
            policy=policy,
            fallback_models=fallback_models,
            emits=False,
            output=asked,
        ) as reply,
    ):
        return cast("TypedStream[Any]", reply).answer() if output is not None else reply.result()


@overload
def stream(
    context: ContextInput,
    model: Model | str,
    *,
    output: None = None,
    options: Options | None = None,
    policy: Policy | None = None,
    fallback_models: Sequence[Model | str] = (),
    **settings: Unpack[ClientSettings],
) -> Stream: ...
@overload
def stream(
    context: ContextInput,
    model: Model | str,
    *,
    output: type[T],
    output_retries: int = 1,
    options: Options | None = None,
    policy: Policy | None = None,
    fallback_models: Sequence[Model | str] = (),
    **settings: Unpack[ClientSettings],
) -> TypedStream[T]: ...
@overload
def stream(
    context: ContextInput,
    model: Model | str,
    *,
    output: object,
    output_retries: int = 1,
    options: Options | None = None,
    policy: Policy | None = None,
    fallback_models: Sequence[Model | str] = (),
    **settings: Unpack[ClientSettings],
) -> TypedStream[Any]: ...
def stream(
    context: ContextInput,
    model: Model | str,
    *,
    output: Any = None,
    output_retries: int = 1,
    options: Options | None = None,
    policy: Policy | None = None,
    fallback_models: Sequence[Model | str] = (),
    **settings: Unpack[ClientSettings],
) -> Stream:
    """Send a conversation and return the events of the reply: `Client.stream` with a client for this request only.

    The client is closed when the reply ends.
    """
    asked = make_output(output, output_retries, options)
    client = Client(**settings)

    def close(_message: AssistantMessage, _attempts: tuple[Attempt, ...]) -> None:
        client.close()

    try:
        return client.begin(
            context,
            model,
            options=options,
            policy=policy,
            fallback_models=fallback_models,
            on_end=close,
            output=asked,
        )
    except BaseException:
        client.close()
        raise


def decide(
    context: ContextInput,
    question: str,
    choices: Choices[C],
    model: Model | str,
    *,
    ordered: bool = False,
    options: Options | None = None,
    policy: Policy | None = None,
    **settings: Unpack[ClientSettings],
) -> Decision[C]:
    """Let a model answer a closed question about a conversation: `Client.decide` with a client for this request only.

    Raises:
        RequestFailed: the model gave no complete answer.
        OutputError: the reply has no answer.
    """
    with Client(**settings) as client:
        return client.decide(context, question, choices, model, ordered=ordered, options=options, policy=policy)
