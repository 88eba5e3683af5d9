"""What the gateway has learnt about its estimates of input tokens: an offset and a slope for each model.

A conversation corrects its own estimates by the usage of its replies. The gateway sees many conversations with a model,
so that also the first request of a new one is corrected. Of each request only two numbers are taken, what was estimated
and what the provider counted, as sums for each model: nothing of what a tenant wrote, and not who wrote it. The
correction is bounded, so that the traffic of one tenant cannot move the reservations of others far.
"""

from __future__ import annotations

from contextlib import suppress
from math import ceil
from typing import Final, final

import msgspec

_KEPT: Final = 0.99
"""What is kept of the sums with each request: about the last hundred count."""
_LEAST: Final = 4.5
"""Requests from which on a model is corrected."""
_SLOPE: Final = (0.8, 1.5)
_OFFSET: Final = (-200.0, 1000.0)
"""How far a correction goes."""
_PLAUSIBLE: Final = (0.4, 2.5)
_HIDDEN: Final = 1000
"""A count outside of these factors, or by more tokens above the estimate, is of tools that the provider runs."""
_MOST_MODELS: Final = 2000


@final
class ModelCounts(msgspec.Struct):
    """Sums over the requests of one model: their number, estimates, counts, and the products of these."""

    requests: float = 0.0
    estimated: float = 0.0
    counted: float = 0.0
    squares: float = 0.0
    products: float = 0.0

    def note(self, estimated: float, counted: float) -> None:
        """Take in one request."""
        for name, value in (
            ("requests", 1.0),
            ("estimated", estimated),
            ("counted", counted),
            ("squares", estimated * estimated),
            ("products", estimated * counted),
        ):
            setattr(self, name, getattr(self, name) * _KEPT + value)

    def line(self) -> tuple[float, float]:
        """Return the offset and the slope; 0 and 1 as long as too little is known."""
        if self.requests < _LEAST:
            return 0.0, 1.0
        mean, counted = self.estimated / self.requests, self.counted / self.requests
        spread = self.squares / self.requests - mean * mean
        # Requests of one size show an offset alone.
        slope = (self.products / self.requests - mean * counted) / spread if spread > (0.1 * mean) ** 2 else 1.0
        slope = min(max(slope, _SLOPE[0]), _SLOPE[1])
        return min(max(counted - slope * mean, _OFFSET[0]), _OFFSET[1]), slope


_ROWS: Final = msgspec.json.Decoder(dict[str, ModelCounts])


class LearnedCounts:
    """The sums of all models; `data` is what `dump` wrote, in this process or an earlier one."""

    def __init__(self, data: str | None = None) -> None:
        self._models: dict[str, ModelCounts] = {}
        with suppress(msgspec.DecodeError):
            self._models = _ROWS.decode(data or "{}")

    def note(self, model: str, estimated: int, counted: int) -> bool:
        """Take in what a provider counted for a request that was estimated; whether it was plausible."""
        is_near = _PLAUSIBLE[0] * estimated <= counted <= max(_PLAUSIBLE[1] * estimated, estimated + _HIDDEN)
        if estimated <= 0 or counted <= 0 or not is_near:
            return False
        if model not in self._models and len(self._models) >= _MOST_MODELS:
            self._models.pop(next(iter(self._models)))
        self._models.setdefault(model, ModelCounts()).note(estimated, counted)
        return True

    def correct(self, model: str, estimated: int) -> int:
        """Correct an estimate by what was learnt about the model."""
        known = self._models.get(model)
        if known is None:
            return estimated
        offset, slope = known.line()
        return max(1, ceil(offset + slope * estimated))

    def dump(self) -> str:
        """Write the sums as JSON."""
        return msgspec.json.encode(self._models).decode()
