"""What keys, tokens and passwords look like: one row for each issuer, and how a value is judged without one.

Facts:
- Issuers give their keys a prefix so that scanners find them.       (pages of the issuers; 2026-11-18)
- A key without a prefix is recognised by the name in front of it, or by its letters: random text of 32 characters has
  more than 4 bits in each.                                          (measured on sessions of agents, 2026-11-18)
- Ids of calls, digests and data of files are random too, but are not secrets: they have their own form or prefix.
"""

from __future__ import annotations

import re
from collections import Counter
from math import log2
from typing import Final, NamedTuple, final


@final
class SecretPattern(NamedTuple):
    """The keys of one issuer: its name, texts one of which is in every key, and the form of a key."""

    kind: str
    hints: tuple[str, ...]
    form: re.Pattern[str]


def _row(kind: str, hints: str, form: str) -> SecretPattern:
    # A key begins where no letter, digit or hyphen is before it, so that it is not part of a longer name. The full stop
    # of a sentence is not part of it.
    return SecretPattern(kind, tuple(hints.split()), re.compile(rf"(?<![A-Za-z0-9-]){form}(?<!\.)"))


PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:[\sA-Za-z0-9+/=\\:,.()-]{16,20000}?-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
    r"|(?:(?:\\+[nr]|\s)+[A-Za-z0-9+/=]{16,100})+)"
)
"""A key in PEM, also with its line ends escaped, and one that is cut off."""

LONG_WORD: Final = re.compile(r"[\w+/=.~:-]{16,}")
"""Every key of an issuer is as long."""
PATTERNS: Final = (
    _row("anthropic-key", "sk-ant-", r"sk-ant-[\w-]{16,}"),
    _row("openai-key", "sk-", r"sk-(?=[\w-]*\d)(?:[A-Za-z0-9]+-){0,3}[\w-]{20,}"),
    _row("stripe-key", "_live_ _test_ whsec_", r"(?:[prs]k_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/=]{20,})"),
    _row("github-token", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", r"(?:gh[opusr]_[A-Za-z0-9]{30,}|github_pat_\w{22,})"),
    _row("gitlab-token", "glpat- gldt- glrt- glcbt- glptt- glsoat-", r"gl(?:pat|dt|rt|cbt|ptt|soat)-[\w.-]{20,}"),
    _row("aws-key", "AKIA ASIA ABIA ACCA", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _row("aws-bedrock-key", "ABSK bedrock-api-key-", r"(?:ABSK|bedrock-api-key-)[A-Za-z0-9+/=]{24,}"),
    _row("google-key", "AIza GOCSPX-", r"(?:AIza[\w-]{30,}|GOCSPX-[\w-]{20,})"),
    _row("google-token", "ya29. 1//0", r"(?:ya29\.[\w.-]{20,}|1//0[\w-]{30,})"),
    _row("azure-key", "AccountKey=", r"AccountKey=[A-Za-z0-9+/]{40,}={0,2}"),
    _row("azure-key", "AzSe 8Q~ 7Q~", r"(?:[\w+/]{33,}AzSe[\w+/]{6,}={0,2}|\w{3}[78]Q~[\w.~-]{31,34})"),
    _row("slack-token", "xox xapp-", r"(?:xox[abeoprs]-[\w-]{10,}|xapp-\d-[\w-]{20,})"),
    _row("slack-webhook", "hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows|triggers)/[\w/]{20,}"),
    _row("discord-webhook", "/api/webhooks/", r"discord(?:app)?\.com/api/webhooks/\d+/[\w-]{20,}"),
    _row("discord-token", "M N O", r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}"),
    _row("telegram-token", ":AA", r"\d{8,10}:AA[\w-]{32,}"),
    _row("huggingface-token", "hf_ api_org_", r"(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    _row(
        "model-provider-key",
        "gsk_ xai- pplx- nvapi- r8_ fw_ tgp_ csk- tvly- fal_",
        r"(?:gsk_|xai-|pplx-|nvapi-|r8_|fw_|tgp_v1_|csk-|tvly-)(?=[\w-]*\d)[\w-]{20,}",
    ),
    _row("npm-token", "npm_", r"npm_[A-Za-z0-9]{36,}"),
    _row("pypi-token", "pypi-", r"pypi-[\w-]{50,}"),
    _row("docker-token", "dckr_", r"dckr_(?:pat|oat)_[\w-]{20,}"),
    _row(
        "cloud-token",
        "doo_v1_ dop_v1_ dor_v1_ dapi hvs. hvb. sbp_ dp. pul-",
        r"(?:do[opr]_v1_[a-f0-9]{64}|dapi[a-f0-9]{32}(?:-\d)?|hv[bs]\.[\w-]{24,}|sbp_[a-f0-9]{40}"
        r"|dp\.(?:pt|st|ct|sa)\.[\w.-]{40,}|pul-[a-f0-9]{40})",
    ),
    _row("sendgrid-key", "SG.", r"SG\.[\w-]{16,}\.[\w-]{16,}"),
    _row("twilio-key", "SK", r"SK[0-9a-f]{32}(?![0-9a-f])"),
    _row("mail-key", "key- -us", r"(?:key-[0-9a-f]{32}|[0-9a-f]{32}-us\d{1,2})(?![0-9a-z])"),
    _row("shop-token", "shp sq0", r"(?:shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}|sq0(?:atp|csp)-[\w-]{22,})"),
    _row(
        "service-token",
        "lin_api_ ntn_ secret_ figd_ sntry ATATT3 PMAK- NRAK- glsa_ glc_ rubygems_ HRKU- dvc_ phc_ phx_",
        r"(?:lin_api_|ntn_|secret_|figd_|sntry[su]_|ATATT3|PMAK-|NRAK-|glsa_|glc_|rubygems_|HRKU-|ph[cx]_)"
        r"(?=[\w=+/-]*\d)[\w=+/-]{24,}",
    ),
    _row("age-key", "AGE-SECRET-KEY-", r"AGE-SECRET-KEY-1[0-9A-Z]{50,}"),
    _row("jwt", "eyJ", r"eyJ[\w-]{8,}\.eyJ[\w-]{8,}(?:\.[\w-]*)?"),
)

URL_PASSWORD: Final = re.compile(
    r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@'\"<>`\\]{0,80}:(?P<value>[^\s/:@'\"<>`\\]{3,200})@", re.IGNORECASE
)
LOGIN: Final = re.compile(r"(?<![\w-])(?:-u|--user)[ =][\"']?[^\s:\"'`@/]{1,80}:(?P<value>[^\s\"'`\\]{6,200})")
"""The user and the password of curl."""
AUTHORIZATION: Final = re.compile(
    r"\b(?:bearer|basic|authorization[\"'`\\]{0,4}\s{0,4}[:=]\s{0,4}[\"'`\\]{0,4}(?:bearer|basic|token|bot)?)"
    r"(?:\s+|(?<=[:=\"'\\]))(?P<value>[A-Za-z0-9._~+/=-]{12,})",
    re.IGNORECASE,
)
SECRET_NAME: Final = re.compile(
    r"(?:api|app|access|auth|client|account|private|secret|signing|encryption|master|admin|subscription)[-_ ]?key"
    r"|secret|passw(?:or)?d|passphrase|passwd|pwd|token|credential|(?:^|[_-])(?:auth|pass|sig)$",
    re.IGNORECASE,
)
"""What the name of a secret has in it; a name of a field, a variable or a parameter."""
NAMED: Final = re.compile(
    r"(?P<name>(?:[Kk]ey|KEY|[Ss]ecret|SECRET|[Pp]ass(?:w(?:or)?d|phrase|wd)?|PASS(?:W(?:OR)?D|PHRASE|WD)?|[Pp]wd|PWD|[Tt]oken|TOKEN"
    r"|[Cc]redentials?|CREDENTIALS?|[Aa]uth|AUTH|[Ss]ig(?:nature)?|SIG(?:NATURE)?)[A-Za-z0-9_]{0,12})"
    r"[\"'`\\]{0,4}\s{0,4}(?::=|=>|[:=])\s{0,4}[\"'`\\]{0,4}"
    r"(?P<value>[^\s\"'`\\,;&<>(){}\[\]|$]{6,400})"
)
"""A name and a value; of the name, what is from the word on by which it is one of a secret."""
NAME_BEFORE: Final = re.compile(r"[A-Za-z0-9_.-]{0,40}\Z")
NAME_HINTS: Final = ("key", "secret", "passw", "passphrase", "pwd", "token", "credential", "auth", "pass", "sig")

RANDOM: Final = re.compile(r"(?<![\w+/.@%-])[A-Za-z0-9_+/-]{32,120}={0,2}(?![\w+/=(%-]|\.\w)")
"""A word that may be a key without a name: as long as one, and not a part of a path, an address or a digest."""
_NO_SECRET: Final = re.compile(
    r"(?:toolu|srvtoolu|call|msg|resp|rs|fc|req|chatcmpl|run|thread|asst|file|batch|ses|prt|item|ws|cmp|evt|chk|gen|user"
    r"|org|account|sha\d+|md5|h1|rollout|session|conv)[-_:]"
    r"|iVBORw0KGgo|/9j/|R0lGOD|UklGR|JVBERi|UEsDB|H4sI|AAAA",
    re.IGNORECASE,
)
"""Beginnings of ids and digests, and of pictures, documents and archives in base64."""
_HEX: Final = re.compile(r"[0-9a-fA-F-]+={0,2}")
_PLACEHOLDER: Final = re.compile(
    r"x{4,}|\*{3,}|\.{3}|your|example|sample|dummy|placeholder|changeme|redacted|process\.env|os\.environ|getenv|none|null|undefined"
    r"|true|false|<|string|https?:|localhost",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[A-Za-z][a-z]{3,}")
_LEAST_BITS: Final = 4.4
"""Of each character of a word without a name, counted in that word."""
_LEAST_NAMED_BITS: Final = 2.8
_LONG: Final = 16


def is_random(text: str) -> bool:
    """Whether a word without a name before it is taken for a key."""
    if _HEX.fullmatch(text) or _NO_SECRET.match(text) or text.count("/") > 2 + len(text) // 24:
        return False
    digits = sum(map(str.isdigit, text))
    upper = sum(map(str.isupper, text))
    lower = sum(map(str.islower, text))
    if min(digits, upper, lower) < 3 or digits > len(text) * 3 // 5:
        return False
    # Names and paths are made of words; in a random text four lower-case letters in a row are rare.
    in_words = sum(map(len, _WORD.findall(text)))
    return in_words * 3 < len(text) and bits_of(text) >= _LEAST_BITS


def is_named_secret(name: str, value: str) -> bool:
    """Whether the value of a field or a variable of this name is a key or a password, not a word or an expression."""
    if len(value) < 6 or not SECRET_NAME.search(name) or _PLACEHOLDER.search(value):
        return False
    has_digit = any(map(str.isdigit, value))
    has_alpha = any(map(str.isalpha, value))
    if "pass" in name.lower() or "pwd" in name.lower():
        return (has_digit and has_alpha) or any(not each.isalnum() and each not in "._-/" for each in value)
    if not has_digit or not has_alpha or len(value) < _LONG or value.count(".") > 2 or value.count("/") > 2:
        return False
    return bits_of(value) >= _LEAST_NAMED_BITS and sum(map(len, _WORD.findall(value))) * 2 < len(value)


def bits_of(text: str) -> float:
    """Return the entropy of the characters of a text, in bits for each character."""
    size = len(text)
    return -sum(count / size * log2(count / size) for count in Counter(text).values())
