"""The check of Claude thinking that comes back: account, model, conversation, and the chain of blocks.

Facts:
- The order of the checks is account, model, conversation. What fails the first two is dropped; a mismatch of the
  conversation is refused, dropped or let through. A damaged signature is always refused.    (anthropic 2.8.0; probed)
- Each block remembers the one before it: kept blocks have to be one unbroken run. Blocks may be left out from the start
  or from the end, not from the middle, and a block that is put back invalidates those that were made without it.
                                                                (Anthropic documentation: preserved thinking, 2026-09)
- With `drop_block`, every block after the first one that fails is dropped too.                           (the same)
- A block that the model check drops does not break the chain: the advice is to send all of them.          (the same)
- Not documented: whether a model that checks does so for a block of a model that does not. Here it does.
- The refusal names the first block that fails, the header if the request did not send it, and what differs.
                                           (recorded on Fable 5.1, Opus 5.5 and at Bedrock, 2026-09 to 2026-11)

The emulator remembers what each of its replies was made after, as values. It uses none of the digests and tables with
which segue decides what to send.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias, final

from segue.protocols.kit.facts import ClaudeWire
from segue.testing.emulator.bodies import AskedBody, Block, Prefix, first_difference
from segue.testing.emulator.claude import Claude, binds, enforces, is_account_bound, reads
from segue.testing.emulator.items import ItemLedger

Behavior: TypeAlias = Literal["error", "drop_block"]
Transformation: TypeAlias = Mapping[str, str]

BINDING_BETA: Final = "thinking-binding-controls-2026-08-01"
DAMAGED: Final = "{path}: Invalid `signature` in `thinking` block"
_MISMATCH: Final = (
    "{path}: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block,"
    ' or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)
_NEEDS_HEADER: Final = f" That setting requires the `{BINDING_BETA}` value in the `anthropic-beta` header."
_SYSTEM: Final = " The `system` prompt differs from the one this block was created with."
_TOOLS: Final = " The `tools` list differs from the one this block was created with."
_CONTENT: Final = " Content before this block differs from when it was created, first at `{path}`."
_CHAIN: Final = " The `thinking` block that preceded this one when it was created is missing from this request."


@final
class Issued(NamedTuple):
    """A block that the emulator made: by which model, for which account, after which messages and which block."""

    model: Claude
    organization: str
    prefix: Prefix
    before: str | None
    order: int
    """Its place among the reasoning of its reply."""


@final
class Caller(NamedTuple):
    """Who sends a request: an account, what it knows, and which of a provider's endpoints it uses."""

    organization: str
    betas: frozenset[str] = frozenset()
    old_account: bool = False
    surface: str = ""

    def with_betas(self, betas: Collection[str]) -> Caller:
        """Add features that a body asks for itself."""
        return self._replace(betas=self.betas | frozenset(betas))


@final
class Recipient(NamedTuple):
    """The model that a request is for, how the request is written, and who asks it."""

    wire: ClaudeWire
    model: Claude
    caller: Caller


@final
class Verdict(NamedTuple):
    """What the check found: a refusal, or what was dropped and let through; `last` is the block to chain to."""

    refusal: str | None
    transformations: tuple[Transformation, ...]
    last: str | None


class AccountLedger:
    """What the emulated accounts have been given. Emulators that share one remember each other's replies."""

    def __init__(self) -> None:
        self._issued: dict[str, Issued] = {}
        self.replies: int = 0
        """The number of replies so far: their ids and signatures contain it."""
        self.items: ItemLedger = ItemLedger()
        """What other models than Claude have signed."""
        self.stored: set[tuple[str, str]] = set()
        """The replies that a request may refer to: organization and id."""

    def next_reply(self) -> int:
        """Count a reply; no two replies of emulators that share this have the same number."""
        self.replies += 1
        return self.replies

    def record(
        self, tokens: Sequence[str], model: Claude, organization: str, prefix: Prefix, before: str | None
    ) -> None:
        """Remember the blocks of a reply."""
        for order, token in enumerate(tokens):
            self._issued[token] = Issued(model, organization, prefix, before, order)
            before = token

    def bound(self) -> tuple[str, ...]:
        """Return the signatures of all blocks so far whose models check the conversation, the oldest first."""
        return tuple(token for token, issued in self._issued.items() if binds(issued.model))

    def unbound(self) -> tuple[str, ...]:
        """Return the signatures of all other blocks, the oldest first."""
        return tuple(token for token, issued in self._issued.items() if not binds(issued.model))

    def judge(
        self,
        asked: AskedBody,
        producers: Mapping[str, Claude],
        reader: Recipient,
        behavior: Behavior | None,
    ) -> Verdict:
        """Check the reasoning of a request whose signatures are whole; `producers` names the models that made it."""
        found: list[Transformation] = []
        last: str | None = None
        failed = False
        for block in asked.blocks:
            issued = self._issued.get(block.token)
            reason = _unusable(issued, producers[block.token], reader)
            if reason is not None:
                found.append(_report("thinking_dropped", block, reason))
                last = block.token
                continue
            what = self._mismatch(issued, asked, block, last) if binds(reader.model) else None
            if what is None and not failed:
                last = block.token
            elif behavior == "drop_block":
                failed = True
                found.append(_report("thinking_dropped", block, "prefix_binding_mismatch"))
            elif behavior == "error" or enforces(reader.model, old_account=reader.caller.old_account):
                return Verdict(_refusal(block, what or "", reader), (), None)
            else:
                found.append(_report("thinking_mismatch_allowed", block, "prefix_binding_mismatch"))
                last = block.token
        return Verdict(None, tuple(found), last)

    def _mismatch(self, issued: Issued | None, asked: AskedBody, block: Block, last: str | None) -> str | None:
        """Say what differs from when a block was made; empty if that is not known, None if nothing differs."""
        if issued is None:
            return ""
        return mismatch(issued, asked.before(block.message), last)

    def withheld(self, asked: AskedBody, known: Collection[str], reader: Recipient) -> tuple[str, ...]:
        """Return the known blocks that a request does not send although they would be accepted at their places.

        Of all runs that would be accepted, the one that is worth most counts, by the length of its signatures: these
        are its blocks, if it is worth more than what is sent. A request that is itself refused withholds nothing.
        """
        sent = {block.token for block in asked.blocks}
        if not self._accepts(asked, asked.blocks, reader):
            return ()
        possible = {block.token: block for block in asked.blocks}
        for token in known:
            issued = self._issued.get(token)
            block = None if issued is None else Block(asked.start + len(issued.prefix.messages), 0, token, "")
            if block is not None and token not in sent and asked.is_reply(block.message):
                possible[token] = block
        best: Sequence[Block] = asked.blocks
        for block in possible.values():
            run = self._run_before(block, possible, asked, reader)
            if self._worth(run) > self._worth(best):
                best = run
        return tuple(block.token for block in sorted(best, key=self._place) if block.token not in sent)

    def _worth(self, blocks: Sequence[Block]) -> tuple[int, tuple[int, int]]:
        """Compare runs: by the length of their signatures, then by how new they are."""
        return sum(len(block.token) for block in blocks), max(map(self._place, blocks), default=(-1, -1))

    def _run_before(
        self, block: Block, possible: Mapping[str, Block], asked: AskedBody, reader: Recipient
    ) -> list[Block]:
        """Return the longest run of accepted blocks that ends with a block; empty if there is none."""
        run: list[Block] = []
        found: Block | None = block
        while found is not None and (issued := self._issued.get(found.token)) is not None:
            if _unusable(issued, issued.model, reader) is not None or found in run:
                break
            run.append(found)
            found = None if issued.before is None else possible.get(issued.before)
        run.reverse()
        return run if self._accepts(asked, run, reader) else []

    def _place(self, block: Block) -> tuple[int, int]:
        issued = self._issued.get(block.token)
        return block.message, block.piece if issued is None else issued.order

    def _accepts(self, asked: AskedBody, blocks: Sequence[Block], reader: Recipient) -> bool:
        if any(block.token not in self._issued for block in blocks):
            return False
        producers = {block.token: self._issued[block.token].model for block in blocks}
        changed = asked._replace(blocks=tuple(blocks))
        verdict = self.judge(changed, producers, reader, "error")
        return verdict.refusal is None and not verdict.transformations


def mismatch(issued: Issued, prefix: Prefix, last: str | None) -> str | None:
    """Say what differs from when a block was made; None if nothing does."""
    if differs_in_system(issued.prefix, prefix):
        return _SYSTEM
    if differs_in_tools(issued.prefix, prefix):
        return _TOOLS
    if differs_in_messages(issued.prefix, prefix):
        return _CONTENT.format(path=first_difference(issued.prefix, prefix))
    return _CHAIN if is_chain_broken(issued, last) else None


def differs_in_system(made: Prefix, sent: Prefix) -> bool:
    """Whether the system prompt differs."""
    return made.system != sent.system


def differs_in_tools(made: Prefix, sent: Prefix) -> bool:
    """Whether the tools differ."""
    return made.tools != sent.tools


def differs_in_messages(made: Prefix, sent: Prefix) -> bool:
    """Whether the messages before the block differ."""
    return made.messages != sent.messages


def is_chain_broken(issued: Issued, last: str | None) -> bool:
    """Whether the block before this one is another than the one it was made after; having none is fine."""
    return last is not None and last != issued.before


def is_foreign(issued: Issued | None, producer: Claude, caller: Caller) -> bool:
    """Whether a block works only in another account."""
    return issued is not None and is_account_bound(producer) and issued.organization != caller.organization


def _unusable(issued: Issued | None, producer: Claude, reader: Recipient) -> str | None:
    if is_foreign(issued, producer, reader.caller):
        return "organization_binding_mismatch"
    return None if reads(reader.wire, reader.model, producer) else "model_binding_mismatch"


def _report(kind: str, block: Block, reason: str) -> Transformation:
    return {"type": kind, "path": block.path, "reason": reason}


def _refusal(block: Block, what: str, reader: Recipient) -> str:
    needs_header = reader.wire == "messages" and BINDING_BETA not in reader.caller.betas
    return _MISMATCH.format(path=block.path) + (_NEEDS_HEADER if needs_header else "") + what
