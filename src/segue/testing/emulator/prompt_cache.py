"""The prompt caches of emulated providers: what a request reads from them and writes to them.

Nothing here is shared with the part of segue that places cache marks. A prompt is a list of segments in the order in
which providers render it: tools, instructions, then the blocks of the messages. Tokens of a segment are its share of
the tokens of the whole request.

Facts, read 2026-11-17:
- Claude: at most four marks; a mark reads the longest live entry among the 20 blocks before it, and writes one. Entries
  live 5 minutes or an hour from their last use. Changing `tool_choice` or `thinking` invalidates what is in
  messages. The smallest prefix is 512 to 4,096 tokens, by model; below it nothing is cached and nothing is refused.
  `cache_control` next to `messages` marks the last block.                 (Anthropic documentation: prompt caching)
- The smallest prefix of Haiku 5.5 was not found; that of Haiku 4.5 is taken.
- GPT-5.6 and later: a breakpoint at the end of the request unless `prompt_cache_options.mode` is `explicit`, and up to
  three (four) `prompt_cache_breakpoint`; a prefix is matched exactly at one of the latest 80; 1,024 tokens; 30 minutes
  or 12 hours; writes are billed.                                   (OpenAI documentation: prompt caching; openai SDK)
- GPT-4o to GPT-5.5 and o-series: implicit, from 1,024 tokens in steps of 128, 5 to 10 minutes without use; 24 hours
  with `prompt_cache_retention`. Another `prompt_cache_key` is routed to another machine.                  (the same)
- Gemini from 2.5: implicit, 2,048 tokens (2.5), 1,024 (3 Flash), 4,096 (others). Lifetime and steps are not documented.
                                                            (Google documentation: context caching, 2026-10-23)
- DeepSeek: a prefix is a unit that has to match whole: the end of each request, and a prefix that was seen to be common
  to two. Units live for hours; the emulator takes one.              (DeepSeek documentation: context caching, 2026-11)
  What is read is a multiple of 64 tokens.                                  (usage of 17 recorded replies, 2026-11)
- Nova at Bedrock: marks, 1,000 tokens, 5 minutes.                   (Bedrock documentation: prompt caching)
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from itertools import accumulate
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast, final

from segue.protocols.kit.json_values import list_of, object_of

Body: TypeAlias = Mapping[str, Any]

_MINUTE: Final = 60.0
_HOUR: Final = 3600.0
_LIFETIMES: Final[Mapping[str, float]] = {"5m": 300.0, "30m": 1800.0, "1h": _HOUR, "12h": 12 * _HOUR, "24h": 24 * _HOUR}
_LOOKBACK: Final = 20
_CHUNK: Final = 256
"""Bytes of a unit of implicit caching."""
_BASE64: Final = re.compile(r"[A-Za-z0-9+/=_-]{2000,}")
_MEDIA_SIZE: Final = 6000
"""The size of media in characters of text: their data say nothing about their tokens."""
_MARKS: Final = ("cache_control", "cachePoint", "prompt_cache_breakpoint")


@final
class CacheRule(NamedTuple):
    """How a family of models caches: by `marks`, at `ends` of requests, or at any `step` of tokens (`implicit`)."""

    ids: str
    kind: Literal["marks", "breakpoints", "ends", "implicit"]
    minimum: int
    lifetime: float = 5 * _MINUTE
    step: int = 1


_RULES: Final = (
    CacheRule(r"claude-(opus-5|fable|mythos|sonnet-5[-.]5)", "marks", 512),
    CacheRule(r"claude-opus-4[-.][56]", "marks", 4096),
    CacheRule(r"claude-(opus-4[-.]7|3-haiku|3-5-haiku)", "marks", 2048),
    CacheRule(r"claude-haiku-[45]", "marks", 4096),
    CacheRule(r"claude-", "marks", 1024),
    CacheRule(r"amazon\.nova", "marks", 1000),
    CacheRule(r"gpt-(5\.[6-9]|[6-9])", "breakpoints", 1024, 30 * _MINUTE),
    CacheRule(r"gpt-(4o(?!-2024-05-13)|4\.[1-9]|5)|chatgpt-4o|o[134](-|$)", "implicit", 1024, step=128),
    CacheRule(r"gemini-2\.5", "implicit", 2048),
    CacheRule(r"gemini-3-flash", "implicit", 1024),
    CacheRule(r"gemini-[3-9]", "implicit", 4096),
    CacheRule(r"deepseek-", "ends", 64, _HOUR, step=64),
)
"""The first row whose pattern is found at the start of a part of the model id."""


def find_rule(model_id: str) -> CacheRule | None:
    """Find how a model caches; None if it does not, or its provider does not document how."""
    return next((rule for rule in _RULES if re.search(rf"(?:^|[/.])(?:{rule.ids})", model_id)), None)


@final
class Segment(NamedTuple):
    """A piece of a prompt; `lifetime` is that of its mark, None without one."""

    text: str
    lifetime: float | None


@final
class CacheUse(NamedTuple):
    """Tokens that a request read and wrote; `long` is the part of the written ones that lives longer than usual."""

    read: int = 0
    write: int = 0
    long: int = 0


@final
class _Entry(NamedTuple):
    expires: float
    lifetime: float
    tokens: int


class PromptCache:
    """The prompt caches of all accounts and models."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._entries: dict[str, _Entry] = {}
        self._seen: set[str] = set()

    def use(self, model_id: str, organization: str, body: Body, turns_key: str, total: int) -> CacheUse:
        """Read from the cache and write to it, for a request of `total` tokens."""
        rule = find_rule(model_id)
        segments = list(read_segments(body, turns_key, rule)) if rule is not None else []
        if rule is None or not segments or total < rule.minimum:
            return CacheUse()
        realm = json.dumps((model_id, organization, body.get("prompt_cache_key")))
        if rule.kind == "implicit":
            return self._use_chunks(rule, realm, segments, body, total)
        return self._use_marks(rule, realm, _with_default_marks(rule, segments, body), total)

    # -- entries at marks ----------------------------------------------------------------------------------------------

    def _use_marks(self, rule: CacheRule, realm: str, segments: list[Segment], total: int) -> CacheUse:
        now = self._clock()
        names = [digest.hex() for digest in _digests(realm, [segment.text for segment in segments])]
        sizes = list(accumulate(_size(segment.text) for segment in segments))
        marks = [at for at, segment in enumerate(segments) if segment.lifetime is not None]
        counts = [total * size // sizes[-1] for size in sizes]
        found = self._find(rule, names, marks, now)
        read = min(self._entries[names[found]].tokens, total) if found >= 0 else 0
        for name in names[: found + 1]:
            if self._is_live(name, now):
                self._entries[name] = self._entries[name]._replace(expires=now + self._entries[name].lifetime)
        end = long = read
        for at in marks:
            lifetime, tokens = cast("float", segments[at].lifetime), max(counts[at], read)
            if at <= found or tokens < rule.minimum:
                continue
            self._entries[names[at]] = _Entry(now + lifetime, lifetime, tokens)
            end = tokens
            if lifetime > rule.lifetime:
                long = tokens
        if rule.kind == "ends":
            self._keep_common(rule, names, counts, found, now)
            return CacheUse(read // rule.step * rule.step)
        return CacheUse(read, end - read, long - read)

    def _find(self, rule: CacheRule, names: list[str], marks: list[int], now: float) -> int:
        """Find the longest live prefix that this request may read; -1 if there is none."""
        if rule.kind != "marks":
            places = range(len(names) - 1, -1, -1)
        else:
            reach = {at for mark in marks for at in range(max(0, mark - _LOOKBACK + 1), mark + 1)}
            places = sorted(reach, reverse=True)
        return next((at for at in places if self._is_live(names[at], now)), -1)

    def _is_live(self, name: str, now: float) -> bool:
        return name in self._entries and self._entries[name].expires > now

    def _keep_common(self, rule: CacheRule, names: list[str], counts: list[int], found: int, now: float) -> None:
        """Add an entry for a prefix that this request shares with an earlier one."""
        common = max((at for at, name in enumerate(names) if name in self._seen), default=-1)
        if common > found and counts[common] >= rule.minimum:
            self._entries.setdefault(names[common], _Entry(now + rule.lifetime, rule.lifetime, counts[common]))
        self._seen.update(names)

    # -- implicit ------------------------------------------------------------------------------------------------------

    def _use_chunks(self, rule: CacheRule, realm: str, segments: list[Segment], body: Body, total: int) -> CacheUse:
        now = self._clock()
        data = "\n".join(segment.text for segment in segments).encode("utf-8", "surrogatepass")
        chunks = [data[at : at + _CHUNK] for at in range(0, len(data) - _CHUNK + 1, _CHUNK)]
        names = [digest.hex() for digest in _digests(realm, chunks)]
        lifetime = _LIFETIMES.get(str(body.get("prompt_cache_retention")), rule.lifetime)
        matched = next((at for at, name in enumerate(names) if not self._is_live(name, now)), len(names))
        self._entries.update((name, _Entry(now + lifetime, lifetime, 0)) for name in names)
        read = total * matched * _CHUNK // max(len(data), 1)
        read = min(read, total - 1) // rule.step * rule.step
        return CacheUse(read if read >= rule.minimum else 0)


def _digests(realm: str, pieces: list[str] | list[bytes]) -> Iterator[bytes]:
    """Yield a digest of each prefix."""
    state = blake2b(realm.encode("utf-8", "surrogatepass"), digest_size=16)
    for piece in pieces:
        state.update(piece if isinstance(piece, bytes) else piece.encode("utf-8", "surrogatepass"))
        state.update(b"\x00")
        yield state.copy().digest()


def _size(text: str) -> int:
    return len(text) if len(text) < 2000 else len(_BASE64.sub(lambda _: "x" * _MEDIA_SIZE, text))


def _with_default_marks(rule: CacheRule, segments: list[Segment], body: Body) -> list[Segment]:
    """Add the marks that a provider sets itself, and leave out those that it does not read."""
    options = object_of(body.get("prompt_cache_options"))
    lifetime = _LIFETIMES.get(str(options.get("ttl")), rule.lifetime)
    if rule.kind == "breakpoints":
        is_explicit = options.get("mode") == "explicit"
        marked = [at for at, segment in enumerate(segments) if segment.lifetime is not None]
        kept = marked[-4:] if is_explicit else [*marked[-3:], len(segments) - 1]
        return [segment._replace(lifetime=lifetime if at in kept else None) for at, segment in enumerate(segments)]
    if rule.kind == "marks" and not isinstance(body.get("cache_control"), Mapping):
        return segments
    own = _LIFETIMES.get(str(object_of(body.get("cache_control")).get("ttl")), rule.lifetime)
    return [*segments[:-1], segments[-1]._replace(lifetime=own)]


# -- segments ----------------------------------------------------------------------------------------------------------


def read_segments(body: Body, turns_key: str, rule: CacheRule | None = None) -> Iterator[Segment]:
    """Read the prompt of a body, in the order in which providers render it."""
    config = object_of(body.get("toolConfig"))
    yield from _blocks(body.get("tools") or config.get("tools"), "tool")
    yield from _blocks(body.get("system"), "system")
    for key in ("instructions", "systemInstruction", "system_instruction", "response_format"):
        if body.get(key):
            yield Segment(_dump(body[key]), None)
    if rule is not None and rule.kind == "marks":
        fields = object_of(body.get("additionalModelRequestFields"))
        choices = (body.get("tool_choice"), config.get("toolChoice"), body.get("thinking"), fields.get("thinking"))
        yield Segment(_dump(choices), None)
    turns = body.get(turns_key)
    if isinstance(turns, str):
        yield Segment(turns, None)
        return
    for turn in list_of(turns):
        message = object_of(turn)
        key = next((name for name in ("content", "parts") if message.get(name)), None)
        if key is None:
            yield Segment(_dump({name: value for name, value in message.items() if name not in _MARKS}), None)
            continue
        beside = {name: value for name, value in message.items() if name not in (key, *_MARKS, "id")}
        yield from _blocks(message[key], _dump(beside))


def _blocks(value: object, label: str) -> Iterator[Segment]:
    if isinstance(value, str):
        yield Segment(f"{label}: {value}", None)
    held: Segment | None = None
    for item in list_of(value):
        block = object_of(item)
        if list(block) == ["cachePoint"]:
            held = None if held is None else held._replace(lifetime=_lifetime(block["cachePoint"]))
            continue
        if held is not None:
            yield held
        marks = [_lifetime(mark) for mark in _find_marks(block)]
        is_plain = block.get("type") in ("text", "input_text", "output_text") and isinstance(block.get("text"), str)
        held = Segment(f"{label}: {block['text'] if is_plain else _dump(_unmarked(block))}", max(marks, default=None))
    if held is not None:
        yield held


def _find_marks(block: Body) -> Iterator[object]:
    """Find the marks of a block, and of the blocks in a tool result."""
    yield from (block[name] for name in _MARKS if isinstance(block.get(name), Mapping))
    inner = block.get("content")
    for item in list_of(inner):
        yield from _find_marks(object_of(item))


def _unmarked(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _unmarked(inner) for key, inner in cast("Body", value).items() if key not in _MARKS}
    return [_unmarked(item) for item in cast("list[object]", value)] if isinstance(value, list) else value


def _lifetime(mark: object) -> float:
    return _LIFETIMES.get(str(object_of(mark).get("ttl")), 5 * _MINUTE)


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
