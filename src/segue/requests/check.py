"""`check` with the request before: what changed in a request that should only have grown, and what that costs.

A provider caches a request from its start, and reads the cache as far as the next request is the same. Models that bind
reasoning to its prefix accept it only there (`Rules.bound_prefix`). So both are lost after the first difference.

The order of comparison is that in which providers read a request: tools, instructions, turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast, final

import msgspec

from segue.errors import DecodeError, Path, render_path
from segue.foundation.plurals import counted
from segue.models.catalogue import Catalogue
from segue.models.model import Model
from segue.protocols.api import check as check_alone
from segue.protocols.api import decode_request, find_endpoint
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.codec import Endpoint, Violation
from segue.protocols.kit.facts import PrefixForm
from segue.protocols.kit.json_values import Block, same
from segue.protocols.kit.protocol import Protocol
from segue.protocols.registry import get_protocol
from segue.requests.tokens import estimate_tokens

_TOOLS: Final = ("tools", "toolConfig")
_INSTRUCTIONS: Final = ("system", "instructions", "systemInstruction", "preamble")
"""Keys of bodies whose protocol does not say how its prefix is compared."""


@final
class PrefixChange(msgspec.Struct, frozen=True, kw_only=True):
    """The first difference between a request and the one before it.

    `path` is its place in the request, or in the one before where something was removed. `reasoning` are the places of
    blocks that are no longer valid, where the model checks that. `tokens` is an estimate of what was cached and is read
    anew, and `cost` what that costs more than reading the cache, in US dollars; None if the price is not known.
    """

    path: Path
    message: str
    reasoning: tuple[Path, ...] = ()
    tokens: int = 0
    cost: float | None = None

    def sentence(self) -> str:
        """Describe the difference and its costs."""
        parts = [f"{self.message}; the request before was not continued"]
        if self.reasoning:
            first = render_path(self.reasoning[0])
            parts.append(f"{counted(len(self.reasoning), 'block')} of reasoning behind it, from {first} on, not valid")
        if self.tokens:
            price = "" if self.cost is None else f", ${self.cost:.4f} more than from the cache"
            parts.append(f"about {self.tokens:,} tokens read anew{price}")
        return ": ".join((parts[0], ", ".join(parts[1:]))) if parts[1:] else parts[0]


def compare_requests(
    body: Mapping[str, object],
    after: Mapping[str, object],
    *,
    protocol: str,
    model: Model | str | None = None,
    catalogue: Catalogue | None = None,
) -> PrefixChange | None:
    """Find the first place where a request does not continue the one before it; None if it only adds to it.

    Cache marks do not count, nor do options. Reasoning may be left out from the start or from the end.
    """
    named = body.get("model")
    endpoint = find_endpoint(protocol, model, named if isinstance(named, str) else None, catalogue)
    return _Comparison(body, after, get_protocol(protocol), endpoint).run()


def check(
    body: Mapping[str, object],
    *,
    protocol: str,
    model: Model | str | None = None,
    catalogue: Catalogue | None = None,
    after: Mapping[str, object] | None = None,
    version: str | None = None,
    strict: bool = False,
) -> list[Violation]:
    """List what the provider would refuse in a request body; an empty list if nothing is known.

    Without a model, the body is checked for the provider that serves the model it names. The rules of the protocol's
    own provider do not apply to a model of another maker.

    `after` is the request before it in the same conversation. Then the first difference is a finding too
    (`prefix_changed`), with the cached tokens that it costs, and so is each block of reasoning that the model refuses
    after it (`reasoning_invalid`).

    `version` is the version of the API that the request is sent with, where a header names it (`anthropic-version`).
    Without it, it is the one that the body names, or one that accepts the body.

    `strict` also lists what may be refused, or is accepted without effect; `Violation.grade` says which.

    Raises:
        SettingsError: the protocol has no such version.
    """
    found = check_alone(body, protocol=protocol, model=model, catalogue=catalogue, version=version, strict=strict)
    if after is None:
        return found
    if not isinstance(after, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DecodeError(f"the request before has to be an object, not {type(after).__name__}")
    change = compare_requests(body, after, protocol=protocol, model=model, catalogue=catalogue)
    if change is None:
        return found
    message = "it was made after something else; append to a conversation instead of changing it"
    return [
        *found,
        Violation(CheckCode.PREFIX_CHANGED, change.path, change.sentence()),
        *(Violation(CheckCode.REASONING_INVALID, path, message) for path in change.reasoning),
    ]


class _Comparison:
    """Compares one request with the one before it."""

    def __init__(self, body: Block, after: Block, codec: Protocol, endpoint: Endpoint) -> None:
        self.body = body
        self.after = after
        self.codec = codec
        self.endpoint = endpoint
        self.form: PrefixForm | None = codec.prefix
        self.key = codec.turns_key or ""
        self.turns, self.known = self._turns_of(body), self._turns_of(after)

    def _turns_of(self, body: Block) -> Sequence[Block]:
        turns = body.get(self.key)
        if isinstance(turns, str):  # the short form of one turn of the user
            return ({"role": "user", "content": turns},)
        return cast("list[Block]", turns) if isinstance(turns, list) else ()

    def run(self) -> PrefixChange | None:
        for name, keys in (("tools", _TOOLS), ("instructions", _INSTRUCTIONS)):
            if (path := self._frame_difference(name, keys)) is not None:
                return self._change(path, f"the {name} changed", 0, whole=True)
        for index in range(len(self.known)):
            path = self._turn_difference(index)
            if path is not None:
                return self._change(path, "an earlier turn changed", index)
        gap = self._find_gap()
        if gap is None:
            return None
        places = [place for place, _ in self._blocks(self.turns)]
        reasoning = tuple(places[places.index(gap) :])
        return PrefixChange(path=gap, message="reasoning before it was removed, or put back", reasoning=reasoning)

    # -- the first difference ------------------------------------------------------------------------------------------

    def _frame_difference(self, name: str, keys: tuple[str, ...]) -> Path | None:
        if self.form is not None:
            read = self.form.tools if name == "tools" else self.form.system
            if same(read(self.body), read(self.after)):
                return None
            for key in keys:
                if key in self.body or key in self.after:
                    return self._inside(self.body.get(key), self.after.get(key), (key,))
        for key in keys:
            if not same(self.body.get(key), self.after.get(key)):
                return self._inside(self.body.get(key), self.after.get(key), (key,))
        return None

    def _inside(self, new: object, old: object, path: Path) -> Path:
        """Find the first item of two lists that differs."""
        if not isinstance(new, list) or not isinstance(old, list):
            return path
        ours, theirs = cast("list[object]", new), cast("list[object]", old)
        for index, (one, other) in enumerate(zip(ours, theirs, strict=False)):
            if not same(one, other):
                return (*path, index)
        return (*path, min(len(ours), len(theirs)))

    def _turn_difference(self, index: int) -> Path | None:
        if isinstance(self.body.get(self.key), str):
            return None if same(self.turns[0], self.known[index]) else (self.key,)
        path: Path = (self.key, index)
        if index >= len(self.turns):
            return path
        new, old = self.turns[index], self.known[index]
        if self.form is not None:
            new, old = self.form.turn(new), self.form.turn(old)
        if same(new, old):
            return None
        key = next((key for key in ("content", "parts") if key in new), None)
        is_other = key is None or new.get("role") != old.get("role")
        return path if is_other or key is None else self._inside(new.get(key), old.get(key), (*path, key))

    # -- reasoning -----------------------------------------------------------------------------------------------------

    def _blocks(self, turns: Sequence[Block]) -> Iterator[tuple[Path, str]]:
        if self.form is None:
            return
        for index, turn in enumerate(turns):
            content = turn.get("content")
            if turn.get("role") == "assistant" and isinstance(content, list):
                for at, block in enumerate(cast("list[Block]", content)):
                    if (signature := self.form.signature(block)) is not None:
                        yield (self.key, index, "content", at), signature

    def _find_gap(self) -> Path | None:
        """Find the first block that does not follow the one before it as in the earlier request."""
        if not self.endpoint.rules.bound_prefix:
            return None
        known = [signature for _, signature in self._blocks(self.known)]
        places = {signature: index for index, signature in enumerate(known)}
        previous: int | None = None
        for path, signature in self._blocks(self.turns):
            place = places.get(signature, len(known))  # what was made later comes after all of them
            if previous is not None and place != previous + 1 and not place == previous == len(known):
                return path
            previous = place
        return None

    def _change(self, path: Path, message: str, turn: int, *, whole: bool = False) -> PrefixChange:
        """Describe a difference: of the frame (`whole`), or in a turn."""
        reasoning: tuple[Path, ...] = ()
        if self.endpoint.rules.bound_prefix:
            blocks = (place for place, _ in self._blocks(self.turns))
            reasoning = tuple(place for place in blocks if whole or cast("int", place[1]) > turn)
        tokens, price = self._count(turn, whole=whole), self.endpoint.model.cost
        cost = tokens * (price.input - price.cache_read) / 1_000_000 if price.input else None
        return PrefixChange(path=path, message=message, reasoning=reasoning, tokens=tokens, cost=cost)

    def _count(self, turn: int, *, whole: bool) -> int:
        """Estimate the tokens of the request before that come after the difference."""
        model, name = self.endpoint.model, self.codec.name
        everything = estimate_tokens(decode_request(self.after, protocol=name, model=model), model)
        if whole:
            return everything
        start = {**self.after, self.key: [*self.known[:turn]]}
        return max(0, everything - estimate_tokens(decode_request(start, protocol=name, model=model), model))
