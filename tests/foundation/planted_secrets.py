"""Secrets of every kind, made up when the tests run: none of them is a key, and no file has one."""

from __future__ import annotations

import base64
import hashlib
import string

from segue.foundation.secret_patterns import PATTERNS

LETTERS = string.ascii_letters + string.digits
SMALL = string.ascii_lowercase + string.digits
LARGE = string.ascii_uppercase + string.digits
HEX = "0123456789abcdef"


def made(count: int, letters: str = LETTERS, seed: str = "") -> str:
    """Make random letters, always the same ones."""
    digest = b""
    while len(digest) < count:
        digest += hashlib.sha512(f"{count}{letters}{seed}{len(digest)}".encode()).digest()
    return "".join(letters[byte % len(letters)] for byte in digest[:count])


def _jwt() -> str:
    parts = (
        base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in ('{"alg":"HS256"}', '{"sub":"12"}')
    )
    return ".".join((*parts, made(43)))


def _pem(line_end: str = "\n") -> str:
    body = line_end.join(made(64, LETTERS + "+/", seed=str(at)) for at in range(4))
    return f"-----BEGIN RSA PRIVATE KEY-----{line_end}{body}{line_end}-----END RSA PRIVATE KEY-----"


BY_KIND: dict[str, list[str]] = {
    "anthropic-key": ["sk-ant-api03-" + made(93) + "AA"],
    "openai-key": ["sk-" + made(48), "sk-proj-" + made(100, LETTERS + "_-"), "sk-or-v1-" + made(64, HEX)],
    "stripe-key": ["sk_live_" + made(24), "rk_test_" + made(24), "whsec_" + made(32)],
    "github-token": [f"gh{kind}_" + made(36) for kind in "pousr"] + ["github_pat_" + made(22) + "_" + made(59)],
    "gitlab-token": ["glpat-" + made(20), "gldt-" + made(20)],
    "aws-key": ["AKIA" + made(16, LARGE), "ASIA" + made(16, LARGE)],
    "aws-bedrock-key": ["ABSK" + made(100) + "="],
    "google-key": ["AIza" + made(35, LETTERS + "_-"), "GOCSPX-" + made(28)],
    "google-token": ["ya29." + made(60), "1//0" + made(40)],
    "azure-key": ["AccountKey=" + made(86) + "==", made(3) + "8Q~" + made(34)],
    "slack-token": ["xoxb-" + made(12, string.digits) + "-" + made(24), "xapp-1-" + made(40)],
    "slack-webhook": ["hooks.slack.com/services/T" + made(8, LARGE) + "/B" + made(8, LARGE) + "/" + made(24)],
    "discord-webhook": ["discord.com/api/webhooks/" + made(18, string.digits) + "/" + made(68)],
    "discord-token": ["M" + made(23) + "." + made(6) + "." + made(38)],
    "telegram-token": [made(9, "123456789") + ":AA" + made(33)],
    "huggingface-token": ["hf_" + made(34)],
    "model-provider-key": [prefix + made(40) + "7" for prefix in ("gsk_", "xai-", "pplx-", "nvapi-", "r8_", "fw_")],
    "npm-token": ["npm_" + made(36)],
    "pypi-token": ["pypi-" + made(150)],
    "docker-token": ["dckr_pat_" + made(27)],
    "cloud-token": ["dop_v1_" + made(64, HEX), "dapi" + made(32, HEX), "hvs." + made(90), "sbp_" + made(40, HEX)],
    "sendgrid-key": ["SG." + made(22) + "." + made(43)],
    "twilio-key": ["SK" + made(32, HEX)],
    "mail-key": ["key-" + made(32, HEX), made(32, HEX) + "-us12"],
    "shop-token": ["shpat_" + made(32, HEX), "sq0atp-" + made(22)],
    "service-token": [prefix + made(40) + "7" for prefix in ("lin_api_", "ntn_", "figd_", "sntrys_", "PMAK-", "glsa_")],
    "age-key": ["AGE-SECRET-KEY-1" + made(58, LARGE)],
    "jwt": [_jwt()],
    "private-key": [_pem(), _pem("\\n"), _pem().rpartition("\n")[0]],
    "random": [made(40), made(64, LETTERS + "_-"), made(44, LETTERS + "+") + "="],
}
"""What is recognised by itself, without a name before it."""
assert {pattern.kind for pattern in PATTERNS} <= BY_KIND.keys()
IN_TEXT: dict[str, tuple[str, str]] = {
    "the value of a variable": ("export DB_PASSWORD={}", "tr0ub4dor"),
    "a field of JSON": ('{{"client_secret": "{}"}}', made(24)),
    "an escaped field": ('{{\\"apiKey\\": \\"{}\\"}}', made(32, HEX)),
    "a parameter of an address": ("https://x.test/?q=1&access_token={}&b=2", made(24)),
    "a header": ("Authorization: Bearer {}", made(30)),
    "a header of a command": (
        "curl -H 'authorization: basic {}' https://x.test",
        base64.b64encode(b"me:pw1234").decode(),
    ),
    "the password of an address": ("postgres://app:{}@db.test/prod", "s3cretpw"),
    "a line of YAML": ("token: {}", made(40, SMALL)),
    "the login of a command": ("curl -u 'me:{}' https://x.test", "s3cretpw"),
}
"""What is recognised by the text around it."""
