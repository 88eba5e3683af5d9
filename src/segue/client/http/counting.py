"""Ask an endpoint of the provider next to that of replies: for a count of tokens, or for a decision.

Nothing is retried: where the endpoint does not answer, tokens are estimated, and the model is asked by schema.

Facts:
- Anthropic, OpenAI (Responses), Google, Bedrock and llama.cpp count a request without running the model.
                                                                (recorded, 2026-11; the SDKs; a llama.cpp server, tried)
- An endpoint may refuse what the model accepts: Bedrock counts for a few models only. An estimate answers then.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable
from typing import Generic, TypeVar

from msgspec.structs import replace

from segue.client.flow.deciding import C, Deciding, Decision
from segue.client.flow.reading import parse_body
from segue.client.flow.steps import Broken, Head
from segue.client.http.keys import Token
from segue.client.http.outgoing_request import OutgoingRequest, RequestBuilder
from segue.conversation.context import Context, Options, Prompt
from segue.errors import EmptyConversation, EncodeError, SettingsError
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.protocols.kit.json_values import Wire
from segue.requests.prepare import Request, prepare
from segue.requests.tokens import estimate_tokens

_A = TypeVar("_A")


class SingleCall(ABC, Generic[_A]):
    """One request to such an endpoint: what is sent, and what the answer means. `request` is that for a reply."""

    def __init__(self, builder: RequestBuilder, model: Model) -> None:
        self._builder = builder
        self.model: Model = model
        self.request: Request | None = None

    def _prepare(self, context: Context, options: Options, policy: Policy) -> Request | None:
        try:
            account = self._builder.accounts.find(self.model)
            return prepare(context, self.model, options=options, policy=policy, account=account)
        except (EmptyConversation, EncodeError):
            return None

    @abstractmethod
    def _call(self, request: Request) -> tuple[Wire | None, str | None]:
        """Return the body to send, None if there is none, and the URL."""

    @abstractmethod
    def _read(self, body: object, request: Request) -> _A | None:
        """Read the body of an answer; None if it has none."""

    def ask_auth(self) -> Token | Awaitable[Token] | None:
        """Ask the `auth` function for the model, if there is something to send."""
        return None if self.request is None else self._builder.ask_auth(self.model, self.model.provider)

    def write(self, token: Token | None) -> OutgoingRequest | None:
        """Build the HTTP request; None if there is none to send."""
        if self.request is None:
            return None
        try:
            body, url = self._call(self.request)
            if body is None:
                return None
            outgoing = self._builder.write(self.request, body, token, self.model.provider, url=url)
        except SettingsError:
            return None
        return None if isinstance(outgoing, Broken) else outgoing

    def read(self, head: Head | Broken, body: bytes) -> _A | None:
        """Read an answer; None if it has none."""
        if isinstance(head, Broken) or head.status != 200 or self.request is None:
            return None
        return self._read(parse_body(body), self.request)


class Counting(SingleCall[int]):
    """One count. `estimate` answers where the provider does not."""

    def __init__(
        self, builder: RequestBuilder, context: Context, model: Model, options: Options | None, policy: Policy | None
    ) -> None:
        super().__init__(builder, model)
        self._prompt = Prompt(context=context, options=options or Options())
        self._policy = policy
        # As `estimate_tokens` counts: with nothing left out, and nothing refused.
        whole = replace(policy or Policy(), fit=None, refuse=frozenset())
        request = self._prepare(context, self._prompt.options, whole)
        self.request: Request | None = None if request is None or request.count_body is None else request

    def _call(self, request: Request) -> tuple[Wire | None, str | None]:
        return request.count_body, request.count_url

    def _read(self, body: object, request: Request) -> int | None:
        return request.read_count(body)

    def estimate(self) -> int:
        """Estimate the tokens."""
        return estimate_tokens(self._prompt, self.model, policy=self._policy)


class AskedDecision(SingleCall[Decision[C]]):
    """One decision at the endpoint for decisions; there is nothing to send where a model has none."""

    def __init__(self, builder: RequestBuilder, deciding: Deciding[C], options: Options | None) -> None:
        super().__init__(builder, deciding.model)
        self._deciding = deciding
        self._options = options
        if deciding.is_native:
            lenient = replace(deciding.policy or Policy(), refuse=frozenset())
            self.request: Request | None = self._prepare(deciding.context, options or Options(), lenient)

    def _call(self, request: Request) -> tuple[Wire | None, str | None]:
        return self._deciding.write(request, self._options), self._deciding.url(request)

    def _read(self, body: object, request: Request) -> Decision[C] | None:
        return self._deciding.read(body, request)
