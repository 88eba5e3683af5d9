"""Where a request goes, and what goes with it besides the key.

Facts this file rests on:
- `{NAME}` in a base URL stands for an environment variable: a resource, an account, a region.      (providers' rows)
- The region of AWS and the location of Google have a second usual name.         (botocore 1.44.0, google-genai 3.1.0)
- Vertex has no host `global-aiplatform`: the global location is the bare host.          (google-genai 3.1.0, 2026-11)
- Whoever sends a request writes its address into the log.                                     (httpx2 2.16.0: INFO)
- A session id in a header keeps a conversation on the server that has it cached.   (pi-ai 1.5.0: session affinity)
"""

from __future__ import annotations

import logging
import re
from base64 import b64encode
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from msgspec.structs import replace

from segue.errors import SettingsError
from segue.models.dialect import Dialect
from segue.models.model import Model

_VARIABLE: Final = re.compile(r"\{([A-Z][A-Z0-9_]*)\}")
_OTHER_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "AWS_REGION": ("AWS_DEFAULT_REGION",),
    "GOOGLE_CLOUD_LOCATION": ("GOOGLE_CLOUD_REGION", "GOOGLE_VERTEX_LOCATION"),
    "GOOGLE_CLOUD_PROJECT": ("GOOGLE_VERTEX_PROJECT",),
}
_BARE_HOSTS: Final[Mapping[str, str]] = {"//global-aiplatform.": "//aiplatform."}
_SECRET_PARAMETER: Final = re.compile(r"key|token|secret|sig|code", re.IGNORECASE)
_SESSION_HEADERS: Final[Mapping[str, tuple[str, ...]]] = {
    "none": (),
    "openai": ("session_id", "x-client-request-id", "x-session-affinity"),
    "openai-nosession": ("x-client-request-id", "x-session-affinity"),
    "openrouter": ("x-session-id",),
}


def at_base_url(model: Model, base_url: str | None) -> Model:
    """Give the model at another address, everything else about it as it was."""
    return model if base_url is None else replace(model, base_url=base_url)


def fill_url(url: str, environment: Mapping[str, str]) -> str:
    """Put variables of the environment into an address.

    Raises:
        SettingsError: one is not set, or the model has no address at all.
    """

    def value(match: re.Match[str]) -> str:
        name = match[1]
        for variable in (name, *_OTHER_NAMES.get(name, ())):
            if found := environment.get(variable, "").strip():
                return found
        shown = split_login(url)[0]
        raise SettingsError(f"the address {shown} needs the variable {name}: set it, or give `base_url`", key=name)

    filled = _VARIABLE.sub(value, url)
    for written, meant in _BARE_HOSTS.items():
        filled = filled.replace(written, meant)
    if not _is_address(filled):
        text = f"there is no address to send to: give `base_url`, with https:// before it (it is {filled!r} now)"
        raise SettingsError(text, key="base_url")
    return filled


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that do not close, a port that is none
        return False


def with_query_last(url: str, base_url: str | None) -> str:
    """Put the query of a base URL, such as Azure's `api-version`, behind the path that was added to it."""
    base, asks, query = (base_url or "").rstrip("/").partition("?")
    if not asks:
        return url
    path = url.removeprefix((base_url or "").rstrip("/"))
    return f"{base.rstrip('/')}{path}{'&' if '?' in path else '?'}{query}"


def query_secrets(url: str) -> dict[str, str]:
    """Give what of an address nobody should be shown: a query may hold a key. The transport's log is told so too."""
    found = {name: value for name, value in parse_qsl(urlsplit(url).query) if _SECRET_PARAMETER.search(name)}
    if found:
        logging.getLogger("httpx2").addFilter(_hide_queries)  # adding the same filter again changes nothing
    return found


def _hide_queries(record: logging.LogRecord) -> bool:
    if isinstance(record.args, tuple):
        record.args = tuple(str(each).partition("?")[0] if "?" in str(each) else each for each in record.args)
    return True


def split_login(url: str) -> tuple[str, dict[str, str]]:
    """Take a name and a password out of an address and put them into a header: addresses are written into logs."""
    parts = urlsplit(url)
    login, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, {}
    sealed = b64encode(unquote(login).encode()).decode()
    return parts._replace(netloc=host).geturl(), {"authorization": f"Basic {sealed}"}


def session_headers(dialect: Dialect, session_id: str | None) -> dict[str, str]:
    """Say which session this is, where the provider wants it in headers."""
    if session_id is None or not session_id.isascii() or not session_id.isprintable():
        return {}
    return dict.fromkeys(_SESSION_HEADERS[dialect.session_header], session_id)
