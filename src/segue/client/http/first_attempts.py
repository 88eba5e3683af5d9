"""The first attempt of a request without a flow, for programs that pass whole replies on.

Nearly every request succeeds at once: then there is nothing to retry, and no flow has to be made. One that does not is
not sent again: the flow begins with what was received (`AsyncClient.begin(first=...)`), and decides as usual.
"""

from __future__ import annotations

from typing import Final, final

from msgspec.structs import replace

from segue.client.flow.attempts import Attempt
from segue.client.flow.billing import find_usage
from segue.client.flow.misreported_errors import is_empty_reply
from segue.client.flow.reading import is_streamed, read_whole
from segue.client.flow.request_flow import KnownAccounts, find_request_id
from segue.client.flow.steps import Broken, Head, Moment
from segue.client.http.async_sending import AsyncWire
from segue.client.http.outgoing_request import RequestBuilder
from segue.client.http.shell import read_moment
from segue.client.http.telemetry import Observation
from segue.conversation.context import Context
from segue.conversation.messages import AssistantMessage, StopReason
from segue.errors import DecodeError, SettingsError
from segue.failures.classify import is_context_overflow
from segue.models.model import Model
from segue.requests.prepare import Request

_OK: Final = 200
_FAILED: Final = (StopReason.ERROR, StopReason.ABORTED)


@final
class FirstAttempt:
    """One request that was sent, and what was received. `message` is None if only a flow can decide what follows."""

    def __init__(
        self, request: Request, model: Model, context: Context, wire: AsyncWire, builder: RequestBuilder
    ) -> None:
        self.observation: Observation | None = builder.setup.observe()
        """Writes the span of the attempt: at its end, or in the flow that goes on with it."""
        self.request: Request = request
        self.model: Model = model
        self.wire: AsyncWire = wire
        self._context = context
        self._builder = builder
        self.began: Moment = read_moment()
        self.data: bytes = b""
        """The body of the reply, as far as it was read."""
        self.message: AssistantMessage | None = None
        self.attempt: Attempt | None = None
        self._head: Head | Broken | None = None

    async def send(self) -> None:
        """Send the request, read the reply, and decode it."""
        try:
            outgoing = self._builder.write(self.request, None, None, self.model.provider)
        except SettingsError as error:
            outgoing = self._builder.explain(error)
        if self.observation is not None and not isinstance(outgoing, Broken):
            self.observation.begin(self.request, outgoing.headers, outgoing.url)
        head = self._head = outgoing if isinstance(outgoing, Broken) else await self.wire.send(outgoing)
        if isinstance(head, Broken) or head.status != _OK or is_streamed(self.request, head.headers):
            return
        pieces: list[bytes] = []
        while isinstance(chunk := await self.wire.read(), bytes):
            pieces.append(chunk)
        self.data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        message = None if chunk is not None else self._decode(head, self._builder.accounts)
        if message is not None and self._is_answer(message):
            await self.wire.close()
            self._end(head, message)

    def _decode(self, head: Head, accounts: KnownAccounts) -> AssistantMessage | None:
        account = accounts.learn(self.model, self.request.account_in(head.headers))
        try:
            return read_whole(self.data, self.request, account, account and accounts.key_label(self.model))
        except DecodeError:
            return None

    def _is_answer(self, message: AssistantMessage) -> bool:
        """Whether no further attempt follows a reply, and it reports nothing that was dropped."""
        return (
            message.stop_reason not in _FAILED
            and not is_context_overflow(message, self.model.context_window)
            and not is_empty_reply(message, self._context)
            and not self.request.note_dropped(message)
        )

    def _end(self, head: Head, message: AssistantMessage) -> None:
        self.message = replace(message, timestamp=self.began.unix_ms)
        usage = find_usage(message, is_whole=True, request=self.request, model=self.model)
        self.attempt = Attempt(
            model=self.model,
            report=self.request.report,
            started=self.began.unix_ms,
            duration=read_moment().clock - self.began.clock,
            request_id=find_request_id(head.headers),
            usage=usage,
            is_estimated=usage is not message.usage,
        )
        if self.observation is not None:
            self.observation.end(self.attempt, self.message)

    def rewind(self) -> AsyncWire:
        """Return what a flow reads from: what was received, again."""
        self.wire.rewind(self._head, self.data)
        return self.wire
