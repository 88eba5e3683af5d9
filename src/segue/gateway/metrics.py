"""Counters for Prometheus, from the rows of requests: no content, names of keys only, a bounded number of labels.

Facts:
- The text format: one HELP and TYPE line for a metric, `le` buckets that add up, escapes in labels.
                                              (Prometheus documentation: exposition formats, version 0.0.4, 2026-11-17)
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias, final

from segue.gateway.records import RequestRow

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_MOST_MODELS: Final = 200
_OTHER: Final = "other"
"""The label of models after the first ones: a client may ask for any name."""

_Labels: TypeAlias = tuple[tuple[str, str], ...]


@final
class _Histogram:
    def __init__(self) -> None:
        self.counts = [0] * (len(_BUCKETS) + 1)
        self.sum = 0.0

    def add(self, milliseconds: int) -> None:
        seconds = milliseconds / 1000
        self.counts[bisect_left(_BUCKETS, seconds)] += 1
        self.sum += seconds

    def join(self, counts: Iterable[int], seconds: float) -> None:
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, counts, strict=True)]
        self.sum += seconds


@final
class _ModelCounts:
    """What requests of a model add up to until it is joined with the rest: attributes cost less than labels."""

    def __init__(self) -> None:
        self.changes = self.drift = self.input = self.output = self.cache_read = self.cache_write = 0
        self.cost_dollars = self.cache_saved_dollars = 0.0
        self.times = {name: _Histogram() for name in _HISTOGRAMS}


@final
class _KeyCounts:
    """The same for a key of a client."""

    def __init__(self) -> None:
        self.tokens = self.unpriced = 0
        self.cost_dollars = self.estimated_dollars = 0.0


@final
class Dump(NamedTuple):
    """Counters and histograms as data: labels with a value, or with the counts of buckets and the sum."""

    counters: dict[str, list[tuple[_Labels, float]]]
    histograms: dict[str, list[tuple[_Labels, list[int], float]]]


@final
class Metrics:
    """What happened since the start of this process."""

    def __init__(self) -> None:
        self._counters = {name: defaultdict[_Labels, float](int) for name in _COUNTERS}
        self._histograms = {name: defaultdict[_Labels, _Histogram](_Histogram) for name in _HISTOGRAMS}
        self._models: set[str] = set()
        self._requests: dict[tuple[str, str, int, str], int] = {}
        self._by_model: dict[str, _ModelCounts] = {}
        self._by_key: dict[str, _KeyCounts] = {}

    def add(self, row: RequestRow) -> None:
        """Count a request."""
        name = self.label(row.model)
        counts = self._by_model.get(name)
        if counts is None:
            counts = self._by_model[name] = _ModelCounts()
        request = (row.protocol, name, row.status, row.outcome)
        self._requests[request] = self._requests.get(request, 0) + 1
        for attempt in row.attempts:
            if attempt.kind is not None:
                self._count("failed_attempts", 1, ("model", self.label(attempt.model)), ("kind", attempt.kind))
        if row.changes:
            counts.changes += sum([change.loss != "none" for change in row.changes])
        self._count("unstored", row.unstored)
        counts.drift += len(row.drift)
        usage = row.usage
        if row.key and (billed := row.spent or usage) is not None:
            key = self._by_key.get(row.key)  # a name that the operator gave: there are as many as keys
            if key is None:
                key = self._by_key[row.key] = _KeyCounts()
            key.tokens += billed.input + billed.output + billed.cache_read + billed.cache_write
            if billed.cost is None:
                key.unpriced += 1
            else:
                key.cost_dollars += billed.cost.total
                if row.figures == "estimated":
                    key.estimated_dollars += billed.cost.total
        if usage is not None:
            counts.input += usage.input
            counts.output += usage.output
            counts.cache_read += usage.cache_read
            counts.cache_write += usage.cache_write
            if usage.cost is not None:
                counts.cost_dollars += usage.cost.total
            counts.cache_saved_dollars += max(0.0, row.saved or 0.0)
        counts.times["request_seconds"].add(row.duration_ms)
        if row.first_byte_ms is not None:
            counts.times["first_byte_seconds"].add(row.first_byte_ms)

    def _join(self) -> None:
        """Join what was added since the last time with the rest, under labels."""
        for (protocol, model, status, outcome), count in self._requests.items():
            labels = ("protocol", protocol), ("model", model), ("status", str(status)), ("outcome", outcome)
            self._count("requests", count, *labels)
        for name, counts in self._by_model.items():
            model = ("model", name)
            for each in ("input", "output", "cache_read", "cache_write"):
                self._count("tokens", getattr(counts, each), model, ("type", each))
            for each in ("changes", "drift", "cost_dollars", "cache_saved_dollars"):
                self._count(each, getattr(counts, each), model)
            for each, times in counts.times.items():
                if any(times.counts):
                    self._histograms[each][(model,)].join(times.counts, times.sum)
        for name, counts in self._by_key.items():
            for each in ("tokens", "cost_dollars", "estimated_dollars", "unpriced"):
                self._count(f"key_{each}", getattr(counts, each), ("key", name))
        self._requests.clear()
        self._by_model.clear()
        self._by_key.clear()

    def dump(self) -> Dump:
        """Return all of it as data, for another process."""
        self._join()
        counters: dict[str, list[tuple[_Labels, float]]] = {
            name: [*counter.items()] for name, counter in self._counters.items()
        }
        times = {
            name: [(labels, each.counts, each.sum) for labels, each in found.items()]
            for name, found in self._histograms.items()
        }
        return Dump(counters, times)

    def add_dump(self, dump: Dump) -> None:
        """Add what another process counted."""
        for name, items in dump.counters.items():
            for labels, value in items:
                self._counters[name][labels] += value
        for name, found in dump.histograms.items():
            for labels, counts, seconds in found:
                self._histograms[name][labels].join(counts, seconds)

    def render(self, gauges: Mapping[str, float]) -> str:
        """Write all of it; `gauges` are what holds at this moment."""
        return "\n".join((*self._lines(gauges), ""))

    def _lines(self, gauges: Mapping[str, float]) -> Iterator[str]:
        self._join()
        for name, counter in self._counters.items():
            yield from _head(f"{name}_total", "counter", _COUNTERS[name])
            for labels, value in sorted(counter.items()):
                yield f"segue_{name}_total{_render(labels)} {value:g}"
        for name, found in self._histograms.items():
            yield from _head(name, "histogram", _HISTOGRAMS[name])
            for labels, histogram in sorted(found.items(), key=lambda item: item[0]):
                so_far = 0
                for edge, count in zip((*map(str, _BUCKETS), "+Inf"), histogram.counts, strict=True):
                    so_far += count
                    yield f"segue_{name}_bucket{_render((*labels, ('le', edge)))} {so_far}"
                yield f"segue_{name}_sum{_render(labels)} {histogram.sum:g}"
                yield f"segue_{name}_count{_render(labels)} {so_far}"
        for name, value in gauges.items():
            yield from _head(name, "gauge", _GAUGES[name])
            yield f"segue_{name} {value:g}"

    def _count(self, name: str, value: float, *labels: tuple[str, str]) -> None:
        if value:
            self._counters[name][labels] += value

    def label(self, model: str | None) -> str:
        """Return the label of a model: its name, as long as there are few of them."""
        if model is None:
            return ""
        if model not in self._models:
            if len(self._models) >= _MOST_MODELS:
                return _OTHER
            self._models.add(model)
        return model


_COUNTERS: Final[Mapping[str, str]] = {
    "requests": "Requests of clients, by how they ended.",
    "failed_attempts": "Requests to providers that failed, also those after which another one answered.",
    "tokens": "Tokens as the providers count them.",
    "cost_dollars": "What the replies cost by the prices of the catalogue, in US dollars.",
    "key_tokens": "Tokens of all attempts, by the name of the client's key.",
    "key_cost_dollars": "What all attempts cost, by the name of the client's key, in US dollars.",
    "key_estimated_dollars": "The part of key_cost_dollars for which no provider gave a figure.",
    "key_unpriced": "Requests without a known price, by the name of the client's key.",
    "cache_saved_dollars": "What prompt caches of providers saved, in US dollars.",
    "changes": "Changes of projection that lose something.",
    "unstored": "Replies whose state could not be stored.",
    "drift": "Names in replies that the SDK of the provider does not know.",
}
_HISTOGRAMS: Final[Mapping[str, str]] = {
    "request_seconds": "How long requests of clients took.",
    "first_byte_seconds": "How long clients waited for the first byte.",
}
_GAUGES: Final[Mapping[str, str]] = {
    "requests_running": "Requests of clients that are being answered.",
    "store_available": "1 if the database answers or there is none, 0 if it is away.",
}


def _head(name: str, kind: str, text: str) -> tuple[str, str]:
    return f"# HELP segue_{name} {text}", f"# TYPE segue_{name} {kind}"


def _render(labels: _Labels) -> str:
    if not labels:
        return ""
    parts = (f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels)
    return f"{{{','.join(parts)}}}"


_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
