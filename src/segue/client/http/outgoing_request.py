"""The HTTP request of one attempt: URL, headers, key and body."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from segue.client.flow.steps import Broken
from segue.client.http.accounts import Accounts
from segue.client.http.addressing import (
    at_base_url,
    fill_url,
    query_secrets,
    session_headers,
    split_login,
    with_query_last,
)
from segue.client.http.keys import (
    Auth,
    Token,
    ask_auth,
    choose_for,
    choose_key,
    conceal,
    explain_missing,
    key_headers,
    secrets_in,
    token_headers,
)
from segue.client.http.settings import Body, Setup
from segue.client.http.signing import AwsSigner
from segue.errors import SettingsError
from segue.failures.failure import FailureKind
from segue.foundation.json_text import encode_json
from segue.foundation.plurals import counted
from segue.foundation.quoting import check_headers, join_headers
from segue.foundation.version import __version__
from segue.models.catalogue import get_model, installed_catalogue
from segue.models.dialect import Dialect
from segue.models.model import Model
from segue.models.provider import Provider
from segue.models.providers import find_row
from segue.protocols.api import resolve_endpoint
from segue.protocols.registry import resolve_dialect
from segue.requests.prepare import Request

_SECRET_HEADERS: Final = frozenset(
    {"api-key", "authorization", "cookie", "proxy-authorization", "x-api-key", "x-goog-api-key"}
)
"""A request with one of these headers needs no other key."""
_SECRET_NAME: Final = re.compile(r"key|auth|token|secret|cookie|password|credential")
"""Names of other headers with secrets: gateways define their own."""


_MOST_KNOWN: Final = 64
"""Requests without a body, and models, that a builder remembers."""


class OutgoingRequest:
    """One HTTP request. Its repr contains no key."""

    __slots__ = ("content", "headers", "is_signed", "method", "secrets", "service", "url")

    def __init__(
        self, url: str, headers: dict[str, str], content: bytes, secrets: tuple[str, ...], *, is_signed: bool = True
    ) -> None:
        self.url: str = url
        self.headers: dict[str, str] = headers
        self.content: bytes = content
        self.secrets: tuple[str, ...] = secrets
        self.is_signed: bool = is_signed
        self.method: str = "POST"
        self.service: str = "bedrock"

    def with_content(self, content: bytes) -> OutgoingRequest:
        """Return the same request with a body; its headers may be changed."""
        made = OutgoingRequest(self.url, self.headers.copy(), content, self.secrets, is_signed=self.is_signed)
        made.service = self.service
        return made

    def __repr__(self) -> str:
        return f"OutgoingRequest({conceal(self.url, self.secrets)}, {counted(len(self.content), 'byte')})"


class RequestBuilder:
    """Builds the HTTP requests of one client. `first` is the provider of the first model: see `keys`."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.signer: AwsSigner = AwsSigner()
        self.accounts: Accounts = Accounts(self._key_of)
        self._heads: dict[tuple[object, ...], tuple[Dialect, OutgoingRequest]] = {}
        self._plain: dict[int, Model] = {}

    def _key_of(self, model: Model) -> str | None:
        """Find the key for a model; None if a function supplies tokens, which change."""
        setup = self.setup
        if self.find_auth(model, model.provider) is not None:
            return None
        return choose_key(setup.api_key, model, model.provider) or setup.find_key(self._find_row(model))

    def __repr__(self) -> str:
        return "RequestBuilder()"

    def find_candidates(self, model: Model | str, fallback_models: Sequence[Model | str]) -> tuple[Model, ...]:
        """Look up the model and its fallbacks, each with the base URL that the settings give for it."""
        if isinstance(fallback_models, (str, Model)):
            raise SettingsError(
                "fallback_models= takes a list of models, not one model; write fallback_models=[model]",
                key="fallback_models",
            )
        found = [get_model(name, catalogue=self.setup.catalogue) for name in (model, *fallback_models)]
        first = found[0].provider
        return tuple(at_base_url(each, self.setup.find_url(each, first)) for each in found)

    def sends_plainly(self, model: Model) -> bool:
        """Whether a request to a model is neither signed nor has a token, and the settings change nothing of it."""
        setup = self.setup
        if self._plain.get(id(model)) is not model:
            is_plain = resolve_endpoint(model).dialect.auth != "aws" and self.find_auth(model, model.provider) is None
            if not is_plain or get_model(model, catalogue=setup.catalogue) != model:
                return False
            if len(self._plain) >= _MOST_KNOWN:
                self._plain.clear()
            self._plain[id(model)] = model
        return setup.find_url(model, model.provider) in (None, model.base_url)

    def _find_row(self, model: Model) -> Provider | None:
        """Find the row of a model's provider: the user's own, segue's, or that of an installed package."""
        own = self.setup.catalogue
        row = None if own is None else own.find_row(model.provider)
        return row or find_row(model.provider, model.base_url) or installed_catalogue().find_row(model.provider)

    def find_auth(self, model: Model, first: str) -> Auth | None:
        """Find the `auth` function for a model."""
        return choose_for(self.setup.auth, model.provider, first)

    def ask_auth(self, model: Model, first: str) -> Token | Awaitable[Token] | None:
        """Ask the `auth` function for a model, if there is one."""
        auth = self.find_auth(model, first)
        return None if auth is None else ask_auth(auth, model)

    def has_key(self, model: Model) -> bool:
        """Whether a request to a model would carry a key, a token or a signature."""
        setup = self.setup
        return (
            self.find_auth(model, model.provider) is not None
            or bool(choose_key(setup.api_key, model, model.provider))
            or setup.find_key(self._find_row(model)) is not None
            or resolve_dialect(model).auth == "aws"
            or any(_SECRET_NAME.search(name) for name in setup.headers)
        )

    def find_missing(self, model: Model) -> str | None:
        """Describe what every request to a model would fail for: no key, or no variable of its URL. None if nothing."""
        setup, row = self.setup, self._find_row(model)
        try:
            url = setup.find_url(model, model.provider) or model.base_url or (None if row is None else row.base_url)
            if url is None:
                return None
            url = fill_url(url, setup.environment)
        except SettingsError as error:
            return str(error)
        has_key = self.has_key(model) or "@" in urlsplit(url).netloc or any(map(_SECRET_NAME.search, model.headers))
        return None if has_key else explain_missing(row, resolve_dialect(model), url)

    def write(
        self, request: Request, body: Body | None, token: Token | None, first: str, *, url: str | None = None
    ) -> OutgoingRequest | Broken:
        """Build the HTTP request; `Broken` if the key is missing. `url` replaces that of the request.

        Raises:
            SettingsError: there is no URL, or the key or another header cannot be sent.
        """
        setup, model, options = self.setup, request.model, request.projection.options
        dialect = resolve_endpoint(model).dialect
        url = fill_url(with_query_last(url or request.url, model.base_url), setup.environment)
        given, needed = request.headers, request.needed_headers
        key = choose_key(setup.api_key, model, first) or setup.find_key(self._find_row(model))
        asked = (url, key, bool(options.stream), options.session_id, *given.items(), None, *needed.items())
        known = self._heads.get(asked)
        if known is None or known[0] is not dialect or token is not None:
            head = self._make_head(request, token, key, url=url, given=given, needed=needed)
            if isinstance(head, Broken):
                return head
            known = dialect, head
            if key and token is None:
                if len(self._heads) >= _MOST_KNOWN:
                    self._heads.clear()
                self._heads[asked] = known
        content = request.content if body is None else encode_json(body)
        return known[1].with_content(content)

    def _make_head(
        self,
        request: Request,
        token: Token | None,
        key: str | None,
        *,
        url: str,
        given: Mapping[str, str],
        needed: Mapping[str, str],
    ) -> OutgoingRequest | Broken:
        """Build the HTTP request without its body."""
        dialect = resolve_dialect(request.model)
        options = request.projection.options
        url, login = split_login(url)
        headers = {
            "user-agent": f"segue/{__version__}",
            "accept": "text/event-stream, application/json" if options.stream else "application/json",
            **{name.lower(): value for name, value in given.items()},
            **session_headers(dialect, options.session_id),
            **self.setup.headers,
            **login,
        }
        headers = join_headers(headers, needed)
        check_headers(headers)
        if options.stream:
            headers["accept-encoding"] = "identity"  # compression would delay events
        is_signed = True
        if token is not None:
            secret = token_headers(token)
        elif key:
            secret = key_headers(key, dialect)
        elif dialect.auth == "aws":
            secret, is_signed = {}, False
        elif not _SECRET_HEADERS.isdisjoint(headers):
            secret = {}
        elif missing := explain_missing(self._find_row(request.model), dialect, url):
            return Broken(missing, FailureKind.AUTH)
        else:
            secret = {}
        headers |= secret | login
        hidden = secret | {name: value for name, value in headers.items() if _SECRET_NAME.search(name)}
        head = OutgoingRequest(url, headers, b"", secrets_in(hidden | query_secrets(url)), is_signed=is_signed)
        head.service = dialect.aws_service
        return head

    def explain(self, error: SettingsError) -> Broken:
        """Turn an error in the settings for one model into its failure: a fallback model may be set up correctly."""
        kind = FailureKind.AUTH if error.key in ("api_key", "auth") else FailureKind.INVALID_REQUEST
        return Broken(str(error), kind)

    def sign(self, outgoing: OutgoingRequest) -> None:
        """Sign an HTTP request to AWS. Blocks while credentials are fetched."""
        signed = self.signer.sign(
            outgoing.url,
            outgoing.content,
            outgoing.headers,
            self.setup.environment,
            method=outgoing.method,
            service=outgoing.service,
        )
        outgoing.headers |= signed
        outgoing.secrets = (*outgoing.secrets, *secrets_in(signed))
        outgoing.is_signed = True
