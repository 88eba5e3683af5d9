"""Which client sent a request and which conversation it belongs to, by what clients send, as data.

Facts (clients of 2026-11; each was run):
- Claude Code sends its session in a header; sub-agents share it and have their own id.
- codex sends its thread in a header and in `prompt_cache_key`; opencode and pi send a session in headers.
- pi's user agent is `pi (linux 6.18; arm64)`, on every wire and without a version (pi 0.87.1, run 2026-11-17).
- gemini-cli, qwen-code and cline send nothing: there the first message of the user names the conversation, and others
  that begin alike have the same name.
- codex ends its turn at `response.completed` alone, whatever the status in it: `response.incomplete` fails the turn
  (0.166), or sends the request again five times (0.159).
- After a 401 Claude Code sends a request for a minute or more, after a 403 it asks for a new login. By its
  documentation it shows a 502 with `x-should-retry: false` at once, as the SDKs of Anthropic and OpenAI do; it was not
  run. codex, gemini-cli, qwen-code, opencode and pi repeat a request after a 502, but not after a 400.
          (codex run 2026-11-16; Claude Code documentation: gateways; anthropic 2.8.0, openai 3.49.0: retries)
- A spent budget: codex stops after a 429 with `insufficient_quota` and repeats a 402 five times. opencode (chat), pi
  and gemini-cli repeat a 429 (gemini-cli and pi over Gemini's protocol, opencode whatever its headers and code say) and
  stop after a 402; so does Claude Code.
          (codex 0.166.0, gemini-cli 0.61.0, opencode 1.18, pi 0.87.1, claude-code 2.1.325 against a probe, 2026-11-18)
- The title request of opencode has the session of the conversation, so the hint alone is not a key for states.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from itertools import chain
from operator import itemgetter
from typing import Final, cast, final

import msgspec

from segue.conversation.context import Prompt
from segue.conversation.messages import Message
from segue.envelope.keys import digest_message
from segue.foundation.json_text import encode_valid_json
from segue.protocols.kit.json_values import object_of

_HEADERS: Final = (
    "x-claude-code-session-id",
    "thread-id",
    "session-id",
    "session_id",
    "x-session-id",
    "x-session-affinity",
    "x-client-request-id",
)
_NAMES: Final = frozenset(_HEADERS)
_METADATA: Final = ("client_metadata", "metadata", "labels")
"""Fields of a body with what a client notes of a request: codex has `client_metadata.thread_id`."""
_MOST_NOTES: Final = 64
"""Keys of such a field that are looked at; OpenAI's metadata has 16 at most (openai 3.49.0: Metadata)."""
_SESSION_KEYS: Final = re.compile(r"(?:session|conversation|thread|chat|run)(?:_?id)?", re.IGNORECASE)
"""Keys in them that name a session."""
_SCOPE_KEYS: Final = re.compile(
    r"(?:user|customer|account|team|project|workspace|tenant|app)(?:_?(?:id|name))?", re.IGNORECASE
)
"""Keys in them that say whose a request is. Others, such as the number of a turn, may differ in each request."""
_SCOPES: Final = ("user", "safety_identifier")
"""Fields of a body that say whose a request is: within one of these, the first message names the conversation."""
_UNIQUE: Final = re.compile(r"(?:[a-z]{1,12}[_-])?[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")
"""A `prompt_cache_key` that is a UUID names one conversation; another one may be that of many similar requests."""
_AGENT_HEADER: Final = "x-claude-code-agent-id"
_AGENTS: Final[tuple[tuple[str, str], ...]] = (
    ("claude-cli", "claude-code"),
    ("claude-code", "claude-code"),
    ("codex", "codex"),
    ("geminicli", "gemini-cli"),
    ("opencode", "opencode"),
    (" pi/", "pi"),
    (" pi (", "pi"),
    ("qwencode", "qwen-code"),
    ("cline", "cline"),
    ("anthropic/", "anthropic-sdk"),
    ("openai/", "openai-sdk"),
    ("google-genai", "google-genai"),
    ("ollama", "ollama"),
)
"""A part of a user agent, in lower case and with a blank before it, and the name of the client."""
_LONGEST_AGENT: Final = 1_000
"""Characters of a user agent whose client is remembered."""

_ENDS: Final[Mapping[str, Mapping[str, str]]] = {"codex": {"response.incomplete": "response.completed"}}
"""The last event of a reply that was cut at its length, for clients that cannot read the protocol's own."""

_STOP_AT_QUOTA: Final = frozenset({"codex", "openai-sdk"})
"""Clients that stop after a 429 with the code `insufficient_quota`, and know no other form of it."""
_SHOWN_AT_ONCE: Final = frozenset({"codex", "gemini-cli", "qwen-code", "opencode", "pi"})


def status_of_refused_key(client: str) -> int:
    """Return the status that tells a client that a provider refused the gateway's own key, and that it shows at once.

    Not 401 or 403: these are about the key of the client itself.
    """
    return 400 if client in _SHOWN_AT_ONCE else 502


def status_of_spent_budget(client: str) -> int:
    """Return the status after which a client does not send a request again whose budget is spent."""
    return 429 if client in _STOP_AT_QUOTA else 402


@final
class Identity(msgspec.Struct, frozen=True):
    """The name of a conversation: a digest, so that it can be shown and stored.

    `is_sure`: the client gave something that names it. Else it is known by its first message alone, and conversations
    that begin alike have one name.
    """

    name: str
    is_sure: bool
    digested: tuple[Message, bytes] | None = None
    """The first message with its digest, if the name was made with it."""


def find_conversation(
    headers: Mapping[str, str], prompt: Prompt, tenant: str, body: Mapping[str, object] | None = None
) -> Identity:
    """Return the name of a conversation: by its session, else by its first message within what the client gives."""
    options, fields = prompt.options, body or {}
    session = None
    if not _NAMES.isdisjoint(headers):
        session = next((value for name in _HEADERS if (value := headers.get(name))), None)
    notes = [] if session is not None else [_notes_in(fields[name]) for name in _METADATA if name in fields]
    session = session or _find_session(notes)
    if session is None and options.session_id is not None and _UNIQUE.fullmatch(options.session_id):
        session = options.session_id
    if session is not None:
        return Identity(_digest(tenant, session, headers.get(_AGENT_HEADER, "")), is_sure=True)
    digested: tuple[Message, bytes] | None = None
    for message in prompt.context.messages:
        if message.role == "user":
            digested = message, digest_message(message)
            break
    known = "" if digested is None else digested[1].hex()
    given = [options.session_id, options.user_id, *map(_text_of, map(fields.get, _SCOPES))]
    for key, value in chain.from_iterable(notes):
        if _SCOPE_KEYS.fullmatch(key) and value:
            given.append(f"{key}={_text_of(value)}")
    if any(given):
        return Identity(_digest(tenant, *(each or "" for each in given), known), is_sure=True, digested=digested)
    return Identity(_digest(tenant, known), is_sure=False, digested=digested)


def _find_session(notes: Iterable[list[tuple[str, object]]]) -> str | None:
    """Find the session in the notes of a client; Claude Code has it as JSON in the id of the user."""
    for each in notes:
        for key, value in each:
            if isinstance(value, str) and value and _SESSION_KEYS.fullmatch(key):
                return value
        user = dict(each).get("user_id")
        if isinstance(user, str) and user.startswith("{"):
            with suppress(msgspec.DecodeError):
                value = object_of(msgspec.json.decode(user)).get("session_id")
                if isinstance(value, str) and value:
                    return value
    return None


def _notes_in(field: object) -> list[tuple[str, object]]:
    """Return what a client notes in a field, by keys in order; nothing of a field with very many of them."""
    notes = object_of(field)
    return sorted(notes.items(), key=itemgetter(0)) if 0 < len(notes) <= _MOST_NOTES else []


def _text_of(value: object) -> str:
    if value is None or value == "":
        return ""
    return value if isinstance(value, str) else encode_valid_json(value).decode("utf-8", "replace")


def _digest(*parts: str) -> str:
    return sha256("\x00".join(parts).encode("utf-8", "replace")).hexdigest()[:16]


def find_client(headers: Mapping[str, str]) -> str:
    """Return the name of the client by its user agent."""
    agent = headers.get("user-agent", "")
    return _name_agent(agent) if len(agent) <= _LONGEST_AGENT else _name_agent.__wrapped__(agent)


@lru_cache(maxsize=256)
def _name_agent(agent: str) -> str:
    agent = agent.lower()
    found = next((name for part, name in _AGENTS if part in f" {agent}"), None)
    return found or agent.partition("/")[0][:40] or "unknown"


def fit_last_frame(client: str, frame: dict[str, object]) -> None:
    """Add to the last frame of a reply without calls the event on which this client ends its turn.

    The reply in it is unchanged: it has the status `incomplete` and the reason. A call that was cut keeps the event of
    the protocol, so that no client runs it.
    """
    event = _ENDS.get(client, {}).get(str(frame.get("type")))
    reply = frame.get("response")
    if event is None or not isinstance(reply, dict):
        return
    whole = cast("dict[str, object]", reply)
    details, output = whole.get("incomplete_details"), whole.get("output")
    if not isinstance(details, dict) or cast("dict[str, object]", details).get("reason") != "max_output_tokens":
        return
    items = cast("list[dict[str, object]]", output) if isinstance(output, list) else []
    if not any(str(item.get("type")).endswith("_call") for item in items):
        frame["type"] = event
