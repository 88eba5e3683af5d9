"""The URL of a request, and its headers except the key.

Facts:
- `{NAME}` in a base URL is an environment variable: a resource, an account, a region.              (provider table)
- The AWS region and the Google location have a second common variable name.     (botocore 1.44.0, google-genai 3.1.0)
- Vertex has no host `global-aiplatform`: the global location is the host without a prefix. The locations `us` and `eu`
  have hosts of another form.                                          (google-genai 3.1.0, anthropic 2.8.0; 2026-11)
- The transport logs the URL of every request.                                                 (httpx2 2.16.0: INFO)
- A session id in a header keeps a conversation on the server that has it cached.   (pi-ai 1.5.0: session affinity)
"""

from __future__ import annotations

import logging
import re
from base64 import b64encode
from collections.abc import Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from msgspec.structs import replace

from segue.errors import SettingsError
from segue.foundation.quoting import quote_variable
from segue.models.dialect import Dialect
from segue.models.model import Model

_VARIABLE: Final = re.compile(r"\{([A-Z][A-Z0-9_]*)\}")
_OTHER_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "AWS_REGION": ("AWS_DEFAULT_REGION",),
    "GOOGLE_CLOUD_LOCATION": ("GOOGLE_CLOUD_REGION", "GOOGLE_VERTEX_LOCATION"),
    "GOOGLE_CLOUD_PROJECT": ("GOOGLE_VERTEX_PROJECT",),
}
_GLOBAL_HOST_NAMES: Final[Mapping[str, str]] = {
    "//global-aiplatform.": "//aiplatform.",
    "//us-aiplatform.": "//aiplatform.us.rep.",
    "//eu-aiplatform.": "//aiplatform.eu.rep.",
}
_SECRET_PARAMETER: Final = re.compile(r"key|token|secret|sig|code", re.IGNORECASE)
_SESSION_HEADERS: Final[Mapping[str, tuple[str, ...]]] = {
    "none": (),
    "openai": ("session_id", "x-client-request-id", "x-session-affinity"),
    "openai-nosession": ("x-client-request-id", "x-session-affinity"),
    "openrouter": ("x-session-id",),
}


def at_base_url(model: Model, base_url: str | None) -> Model:
    """Return the model with another base URL."""
    return model if base_url is None else replace(model, base_url=base_url)


def fill_url(url: str, environment: Mapping[str, str]) -> str:
    """Replace the variables in a URL by their values.

    Raises:
        SettingsError: a variable is not set or cannot be part of a URL, or the result is not an HTTP URL.
    """

    def value(match: re.Match[str]) -> str:
        name, end_of_host = match[1], len(url) - len(url.partition("://")[2].partition("/")[2])
        for variable in (name, *_OTHER_NAMES.get(name, ())):
            if found := environment.get(variable, "").strip():
                return quote_variable(found, name=name, in_host=match.start() < end_of_host)
        shown = split_login(url)[0]
        raise SettingsError(
            f"the URL {shown} needs the environment variable {name}; set it, or pass base_url=...", key=name
        )

    return _at_host(_VARIABLE.sub(value, url) if "{" in url else url)


@lru_cache(maxsize=256)  # asked for each request
def _at_host(url: str) -> str:
    for old, new in _GLOBAL_HOST_NAMES.items():
        url = url.replace(old, new)
    if not _is_address(url):
        text = f"{url!r} is not an HTTP URL; pass base_url=... with a URL that begins with https:// or http://"
        raise SettingsError(text, key="base_url")
    return url


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an unclosed bracket or an invalid port
        return False


def with_query_last(url: str, base_url: str | None) -> str:
    """Move the query of a base URL, such as Azure's `api-version`, after the path that was added to it."""
    base, has_query, query = (base_url or "").rstrip("/").partition("?")
    if not has_query:
        return url
    path = url.removeprefix((base_url or "").rstrip("/"))
    return f"{base.rstrip('/')}{path}{'&' if '?' in path else '?'}{query}"


def query_secrets(url: str) -> dict[str, str]:
    """Return the secrets in the query of a URL, and keep them out of the log of the transport."""
    if "?" not in url:
        return {}
    found = {name: value for name, value in parse_qsl(urlsplit(url).query) if _SECRET_PARAMETER.search(name)}
    if found:
        logging.getLogger("httpx2").addFilter(_hide_queries)  # adding the same filter again changes nothing
    return found


def without_query_secrets(url: str) -> str:
    """Remove the parameters with secrets from the query of a URL."""
    parts = urlsplit(url)
    kept = [each for each in parts.query.split("&") if not _SECRET_PARAMETER.search(each.partition("=")[0])]
    return parts._replace(query="&".join(kept)).geturl() if parts.query else url


def _hide_queries(record: logging.LogRecord) -> bool:
    if isinstance(record.args, tuple):
        record.args = tuple(str(each).partition("?")[0] if "?" in str(each) else each for each in record.args)
    return True


def split_login(url: str) -> tuple[str, dict[str, str]]:
    """Move a user name and password from a URL to a header, because URLs are logged."""
    if "@" not in url:
        return url, {}
    parts = urlsplit(url)
    login, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, {}
    encoded = b64encode(unquote(login).encode()).decode()
    return parts._replace(netloc=host).geturl(), {"authorization": f"Basic {encoded}"}


def session_headers(dialect: Dialect, session_id: str | None) -> dict[str, str]:
    """Return the headers with the session id, for providers that expect them."""
    if session_id is None or not session_id.isascii() or not session_id.isprintable():
        return {}
    return dict.fromkeys(_SESSION_HEADERS[dialect.session_header], session_id)
