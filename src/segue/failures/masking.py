"""Mask API keys in messages of providers before they are stored or shown.

Facts:
- OpenAI repeats the key of the request, with stars in the middle; gateways and compatible servers repeat all of it.
                                                              (401 bodies; issues of users, read 2026-11)
- Keys of most providers have a known prefix; others are recognised by the text before them. (providers' documentation)
"""

from __future__ import annotations

import re
from typing import Final

MASK: Final = "***"

_KEY: Final = re.compile(
    r"""
    \bsk[-_][\w*.-]{6,}[\w*]
    | \b(?:pk|rk|gsk|csk|xai|hf|pplx|nvapi|fw|tgp|r8|ghp|gho|ghu|ghs|github_pat|glpat|key)
      [-_](?=[\w*.-]*[\d*])[\w*.-]{8,}[\w*]
    | \bAIza[\w-]{10,}
    | \bya29\.[\w-]{8,}
    | \b(?:AKIA|ASIA|ABSK)[A-Za-z0-9+/=]{8,}
    | \beyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*)?
    """,
    re.VERBOSE,
)
_NAMED: Final = re.compile(
    r"""
    (?P<name>
        \bauthorization["'`]?\s*[:=]\s*["'`]?(?:bearer\s+|basic\s+)?
      | \b(?:bearer|basic)\s+
      | \b(?:x-)?(?:goog-)?api[-_ ]?key(?:\s+provided|\s+is)?["'`]?\s*[:=]\s*["'`]?
      | [?&](?:key|api_key|access_token|token)=
      | \b(?:secret|password|access[-_ ]?token)["'`]?\s*[:=]\s*["'`]?
    )
    (?P<value>[^\s"'`,;&<>)}]{6,})
    """,
    re.VERBOSE | re.IGNORECASE,
)
_LONG: Final = 20
"""A value of this length is taken for a key: no word of a message is that long."""
_KEY_HINTS: Final = (
    "sk-", "sk_", "pk-", "pk_", "rk_", "xai-", "hf_", "pplx-", "nvapi-", "fw_", "tgp_", "r8_", "ghp_", "gho_", "ghu_",
    "ghs_", "github_pat", "glpat", "key-", "key_", "AIza", "ya29", "AKIA", "ASIA", "ABSK", "eyJ",
)  # fmt: skip
_NAME_HINTS: Final = ("bearer", "basic ", "key", "authorization", "access", "token=", "secret", "password")


def mask_keys(text: str) -> str:
    """Replace everything that looks like an API key or access token."""
    # Called with every reply: `map` looks for all hints without a call of Python for each.
    if any(map(text.lower().__contains__, _NAME_HINTS)):
        text = _NAMED.sub(_mask_value, text)
    return _KEY.sub(MASK, text) if any(map(text.__contains__, _KEY_HINTS)) else text


def _mask_value(found: re.Match[str]) -> str:
    # A plain word is not a key ("api key: required"); a key has digits, or stars where a provider masked it.
    value = found["value"]
    is_key = len(value) >= _LONG or any(character.isdigit() or character == "*" for character in value)
    return found["name"] + MASK if is_key else found.group()
