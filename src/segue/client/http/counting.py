"""Count the tokens of a request at the provider, where it has an endpoint for that; otherwise estimate them.

Facts:
- Anthropic, OpenAI (Responses), Google, Bedrock and llama.cpp count a request without running the model.
                                                                (recorded, 2026-11; the SDKs; a llama.cpp server, tried)
- An endpoint may refuse what the model accepts: Bedrock counts for a few models only. An estimate answers then.
"""

from __future__ import annotations

from collections.abc import Awaitable

from msgspec.structs import replace

from segue.client.flow.reading import parse_body
from segue.client.flow.steps import Broken, Head
from segue.client.http.keys import Token
from segue.client.http.outgoing_request import OutgoingRequest, RequestBuilder
from segue.conversation.context import Context, Options, Prompt
from segue.errors import EmptyConversation, EncodeError, SettingsError
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.requests.prepare import Request, prepare
from segue.requests.tokens import estimate_tokens


class Counting:
    """One count: what is asked, and what the answer means. `estimate` answers where the provider does not."""

    def __init__(
        self, builder: RequestBuilder, context: Context, model: Model, options: Options | None, policy: Policy | None
    ) -> None:
        self._builder = builder
        self._prompt = Prompt(context=context, options=options or Options())
        self._policy = policy
        self.model: Model = model
        self.request: Request | None = self._prepare()

    def _prepare(self) -> Request | None:
        # As `estimate_tokens` counts: with nothing left out, and nothing refused.
        policy = replace(self._policy or Policy(), fit=None, refuse=frozenset())
        try:
            account = self._builder.accounts.find(self.model)
            prompt = self._prompt
            request = prepare(prompt.context, self.model, options=prompt.options, policy=policy, account=account)
        except (EmptyConversation, EncodeError):
            return None
        return None if request.count_body is None else request

    def ask_auth(self) -> Token | Awaitable[Token] | None:
        """Ask the `auth` function for the model, if there is something to send."""
        return None if self.request is None else self._builder.ask_auth(self.model, self.model.provider)

    def write(self, token: Token | None) -> OutgoingRequest | None:
        """Build the HTTP request; None if there is none to send."""
        if self.request is None:
            return None
        try:
            url = self.request.count_url
            outgoing = self._builder.write(self.request, self.request.count_body, token, self.model.provider, url=url)
        except SettingsError:
            return None
        return None if isinstance(outgoing, Broken) else outgoing

    def read(self, head: Head | Broken, body: bytes) -> int | None:
        """Read the number in an answer; None if it has none."""
        if isinstance(head, Broken) or head.status != 200 or self.request is None:
            return None
        return self.request.read_count(parse_body(body))

    def estimate(self) -> int:
        """Estimate the tokens."""
        return estimate_tokens(self._prompt, self.model, policy=self._policy)
