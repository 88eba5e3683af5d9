"""What a conversion of many conversations did: counts, samples, tokens and costs. Summaries are merged by adding.

A sample of each kind of change is kept: the rows with the smallest SHA-256 of file and position. Merging keeps the
smallest again, so the result does not depend on how the rows were divided or in which order summaries are merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final, TypeVar, final

import msgspec

from segue.conversation.messages import Usage
from segue.projection.report import ChangeCode, Loss

_Item = TypeVar("_Item")

SAMPLES: Final = 3
"""How many samples are kept for each kind of change."""


@final
class ChangeSample(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change of one row: where it is, and the content before and after it, cut to 200 characters."""

    key: str
    file: str
    line: int
    offset: int
    path: str
    before: str = ""
    after: str = ""
    detail: str = ""


@final
class ChangeCount(msgspec.Struct):
    """How often one kind of change was made, in how many conversations, with samples."""

    code: ChangeCode
    loss: Loss
    times: int = 0
    conversations: int = 0
    samples: list[ChangeSample] = msgspec.field(default_factory=list[ChangeSample])

    def add(self, other: ChangeCount) -> None:
        """Add the counts of another summary, and keep the samples with the smallest keys."""
        self.times += other.times
        self.conversations += other.conversations
        self.samples = smallest([*self.samples, *other.samples])

    def wants(self, key: str) -> bool:
        """Whether a sample with this key would be kept."""
        return len(self.samples) < SAMPLES or key < self.samples[-1].key


@final
class ModelUsage(msgspec.Struct):
    """The tokens that stored replies of one model report, and their stored cost."""

    replies: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost: float = 0.0

    def add(self, other: ModelUsage) -> None:
        """Add the tokens of another summary."""
        self.replies += other.replies
        self.input += other.input
        self.output += other.output
        self.cache_read += other.cache_read
        self.cache_write += other.cache_write
        self.cost += other.cost

    def add_reply(self, usage: Usage) -> None:
        """Add the usage of one reply."""
        self.replies += 1
        self.input += usage.input
        self.output += usage.output
        self.cache_read += usage.cache_read
        self.cache_write += usage.cache_write
        self.cost += usage.cost.total if usage.cost is not None else 0.0


@final
class Summary(msgspec.Struct):
    """The counts of a shard, or of all shards together.

    `lines` are the lines or rows that were read: `conversations` that were converted, `bad` and `blank` ones. `tokens`
    is the estimated input for the target, `cost` its price at list rates and `batch_cost` at batch rates, None where no
    price is known. `usage` holds what stored replies report. `filled_nulls` counts rows whose tool arguments hold nulls
    that Arrow may have filled in.
    """

    lines: int = 0
    blank: int = 0
    conversations: int = 0
    bad: int = 0
    messages: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    tokens: int = 0
    cost: float | None = None
    batch_cost: float | None = None
    filled_nulls: int = 0
    changes: dict[str, ChangeCount] = msgspec.field(default_factory=dict[str, ChangeCount])
    """By loss and code, such as `content media_omitted`."""
    errors: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    """Bad rows by the class of the error."""
    usage: dict[str, ModelUsage] = msgspec.field(default_factory=dict[str, ModelUsage])
    """By the full name of the model."""
    drift: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    """What stored replies have that the provider's SDK does not know, by name, with the number of replies."""

    def add(self, other: Summary) -> None:
        """Add another summary to this one."""
        self.lines += other.lines
        self.blank += other.blank
        self.conversations += other.conversations
        self.bad += other.bad
        self.messages += other.messages
        self.bytes_read += other.bytes_read
        self.bytes_written += other.bytes_written
        self.tokens += other.tokens
        self.cost = _sum(self.cost, other.cost)
        self.batch_cost = _sum(self.batch_cost, other.batch_cost)
        self.filled_nulls += other.filled_nulls
        for key, count in other.changes.items():
            self.count_of(count.code, count.loss, key).add(count)
        for name, times in other.errors.items():
            self.errors[name] = self.errors.get(name, 0) + times
        for name, usage in other.usage.items():
            self.usage_of(name).add(usage)
        for name, times in other.drift.items():
            self.drift[name] = self.drift.get(name, 0) + times

    def count_of(self, code: ChangeCode, loss: Loss, key: str | None = None) -> ChangeCount:
        """Return the count of one kind of change."""
        key = key or f"{loss.value} {code.value}"
        count = self.changes.get(key)
        if count is None:
            count = self.changes[key] = ChangeCount(code, loss)
        return count

    def usage_of(self, name: str) -> ModelUsage:
        """Return the usage of one model."""
        usage = self.usage.get(name)
        if usage is None:
            usage = self.usage[name] = ModelUsage()
        return usage

    def numbered(self, lines: int) -> Summary:
        """Add lines that come before this part to the line numbers of its samples."""
        if lines:
            for count in self.changes.values():
                count.samples = [msgspec.structs.replace(each, line=each.line + lines) for each in count.samples]
        return self

    def is_complete(self) -> bool:
        """Whether every line is accounted for."""
        return self.lines == self.conversations + self.bad + self.blank


def sample_key(file: str, offset: int) -> str:
    """Return the key of a row: rows are sampled by the smallest keys."""
    return sha256(b"%b\0%d" % (file.encode("utf-8", "surrogateescape"), offset)).hexdigest()[:16]


def smallest(samples: Iterable[ChangeSample]) -> list[ChangeSample]:
    """Return the samples with the smallest keys, in order."""
    return sorted(samples, key=lambda sample: (sample.key, sample.path))[:SAMPLES]


def merge(summaries: Iterable[Summary]) -> Summary:
    """Add summaries; their order changes only the last digits of costs, which are rounded."""
    total = Summary()
    for summary in summaries:
        total.add(summary)
    return rounded(total)


def rounded(summary: Summary) -> Summary:
    """Round costs to a millionth of a dollar and sort by names, so that the same rows give the same bytes."""
    summary.cost = None if summary.cost is None else round(summary.cost, 6)
    summary.batch_cost = None if summary.batch_cost is None else round(summary.batch_cost, 6)
    summary.changes = _sorted(summary.changes)
    summary.errors = _sorted(summary.errors)
    summary.usage = _sorted(summary.usage)
    summary.drift = _sorted(summary.drift)
    for usage in summary.usage.values():
        usage.cost = round(usage.cost, 6)
    return summary


def _sorted(table: Mapping[str, _Item]) -> dict[str, _Item]:
    return {key: table[key] for key in sorted(table)}


def _sum(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return one if other is None else other
    return one + other
