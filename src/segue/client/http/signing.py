"""Signing of requests to AWS by botocore, an extra that is imported when the first request is signed.

Facts:
- Bedrock takes a signature (version 4, service `bedrock`) or a bearer key; other endpoints of AWS are services of their
  own names.                                                     (AWS documentation; botocore 1.44.0, anthropic 2.8.0)
- botocore finds credentials in the environment, in profiles and in the instance metadata, and renews them.
- The text to sign contains the session token, and botocore logs that text at DEBUG level.     (botocore 1.44.0: auth)
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from importlib import import_module
from typing import Final, Protocol, cast
from urllib.parse import urlsplit

from segue.errors import MissingExtra, SettingsError

_SERVICE: Final = "bedrock"
_ADDED: Final = ("authorization", "x-amz-date", "x-amz-security-token")
_REGION: Final = re.compile(r"\.([a-z]{2}(?:-[a-z]+)+-\d+)\.")
_IS_SIGNING: Final[ContextVar[bool]] = ContextVar("segue_is_signing", default=False)


class _Credentials(Protocol):
    """The part of botocore's credentials that is used here."""

    def get_frozen_credentials(self) -> object: ...


class _Session(Protocol):
    """The part of botocore's session that is used here."""

    def get_credentials(self) -> _Credentials | None: ...


class _AwsRequest(Protocol):
    """The part of botocore's request that is used here."""

    @property
    def headers(self) -> Mapping[str, str]: ...


class _Signer(Protocol):
    """The part of botocore's signer that is used here."""

    def add_auth(self, request: _AwsRequest) -> None: ...


class AwsSigner:
    """Signs requests with the credentials that botocore finds. They are looked up once; botocore renews them."""

    def __init__(self) -> None:
        self._credentials: _Credentials | None = None

    def __repr__(self) -> str:
        return "AwsSigner()"

    def sign(
        self,
        url: str,
        content: bytes,
        headers: Mapping[str, str],
        environment: Mapping[str, str],
        *,
        method: str = "POST",
        service: str = _SERVICE,
    ) -> dict[str, str]:
        """Return the headers that sign a request to a service. Blocks while credentials are fetched.

        Raises:
            MissingExtra: botocore is not installed.
            SettingsError: there are no credentials, or there is no region.
        """
        new_signer = cast("Callable[[object, str, str], _Signer]", _botocore("auth", "SigV4Auth"))
        new_request = cast("Callable[..., _AwsRequest]", _botocore("awsrequest", "AWSRequest"))
        region = _find_region(url, environment)
        frozen = self._find_credentials().get_frozen_credentials()
        request = new_request(method=method, url=url, data=content, headers=dict(headers))
        _silence_botocore()
        token = _IS_SIGNING.set(True)
        try:
            new_signer(frozen, service, region).add_auth(request)
        finally:
            _IS_SIGNING.reset(token)
        signed = {name.lower(): str(value) for name, value in request.headers.items()}
        return {name: signed[name] for name in _ADDED if name in signed}

    def _find_credentials(self) -> _Credentials:
        if self._credentials is None:
            new_session = cast("Callable[[], _Session]", _botocore("session", "Session"))
            self._credentials = new_session().get_credentials()
        if self._credentials is None:
            raise SettingsError(
                "there are no AWS credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, "
                "or a Bedrock API key in AWS_BEARER_TOKEN_BEDROCK",
                key="auth",
            )
        return self._credentials


def _botocore(module: str, name: str) -> object:
    try:
        return cast("object", getattr(import_module(f"botocore.{module}"), name))
    except ModuleNotFoundError as error:
        raise MissingExtra("signing requests to AWS needs botocore, which is not installed", extra="bedrock") from error


def _find_region(url: str, environment: Mapping[str, str]) -> str:
    """Return the region in the host name; behind a proxy, the one in the environment."""
    found = _REGION.search(urlsplit(url).hostname or "")
    region = found[1] if found else environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    if not region:
        raise SettingsError("a request to AWS needs a region; set AWS_REGION", key="AWS_REGION")
    return region


def _is_not_signing(_: logging.LogRecord) -> bool:
    return not _IS_SIGNING.get()


def _silence_botocore() -> None:
    """Keep the text to sign out of the log. Adding the same filter again has no effect."""
    logging.getLogger("botocore.auth").addFilter(_is_not_signing)
