"""The sample conversation, in parts that a table of one framework puts together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from segue.histories.kit.format import FormatSample
from segue.histories.kit.sample_turns import WIRE, sent_turns
from segue.histories.kit.source import Source
from segue.histories.kit.writing import json_line


def one_sample(document: object, **holds: bool) -> Callable[[], tuple[FormatSample, ...]]:
    """Give one sample; `holds` says what the format cannot hold, see `sent_turns`."""

    def samples() -> tuple[FormatSample, ...]:
        options: dict[str, Any] = dict(holds)
        return (FormatSample("messages", Source(data=json_line(document)), sent_turns(**options), wire=WIRE),)

    return samples
