"""Check that numbers, stop texts and user ids of a request are in the range that the target accepts.

The ranges are fields of `Rules`; each protocol names the source where it calls these functions. Values of a wrong type
pass: other checks find them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, cast

from segue.errors import Path
from segue.models.rules import Rules
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.codec import Violation
from segue.protocols.kit.json_values import object_of

_RANGES: Final[Mapping[str, tuple[str | None, str | None]]] = {
    "temperature": (None, "max_temperature"),
    "top_p": ("min_top_p", "max_top_p"),
    "max_tokens": ("min_max_tokens", None),
}
"""Options -> the rules with their lower bound (None: 0) and their upper bound (None: no bound)."""


def check_greedy(body: Mapping[str, object], rules: Rules) -> Iterator[Violation]:
    """Find a `top_p` beside a temperature of 0, where the target refuses it."""
    if not rules.greedy_top_p and body.get("temperature") == 0 and body.get("top_p") not in (None, 1):
        yield Violation(
            CheckCode.OPTIONS_CONFLICT, ("top_p",), "top_p has to be 1 while the temperature is 0; remove it"
        )


def fits_seed(value: int, rules: Rules) -> bool:
    """Whether the target accepts a seed."""
    least, most = rules.min_seed, rules.max_seed
    return (least is None or value >= least) and (most is None or value <= most)


def check_seed(value: object, path: Path, rules: Rules) -> Iterator[Violation]:
    """Find a seed that is out of its range."""
    if isinstance(value, int) and not fits_seed(value, rules):
        is_small = rules.min_seed is not None and value < rules.min_seed
        bounds = f"at least {rules.min_seed}" if is_small else f"at most {rules.max_seed}"
        yield Violation(CheckCode.VALUE_OUT_OF_RANGE, path, f"{path[-1]} has to be {bounds}, not {value}; change it")


def check_range(option: str, value: object, path: Path, rules: Rules) -> Iterator[Violation]:
    """Find a number that is out of its range."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return
    below, above = _RANGES[option]
    least = cast("float", getattr(rules, below)) if below else 0
    most = cast("float", getattr(rules, above)) if above else 0
    if value < least or 0 < most < value:
        bounds = f"between {least:g} and {most:g}" if most else f"at least {least:g}"
        yield Violation(CheckCode.VALUE_OUT_OF_RANGE, path, f"{path[-1]} has to be {bounds}, not {value:g}; change it")


def fits_stop(text: str, rules: Rules) -> bool:
    """Whether the target accepts a stop text of this length."""
    return not 0 < rules.max_stop_bytes < len(text.encode("utf-8", "surrogatepass"))


def check_long_stops(value: object, path: Path, rules: Rules) -> Iterator[Violation]:
    """Find stop texts that are longer than the target accepts."""
    texts = cast("list[object]", value) if isinstance(value, list) else [value]
    if any(isinstance(text, str) and not fits_stop(text, rules) for text in texts):
        yield Violation(
            CheckCode.STOP_INVALID, path, f"a stop text has more than {rules.max_stop_bytes} bytes; shorten it"
        )


def check_stops(value: object, path: Path, rules: Rules) -> Iterator[Violation]:
    """Find stop texts that are empty, or blank where the target refuses blank ones."""
    if not isinstance(value, list | tuple):
        return
    for index, text in enumerate(cast("list[object]", value)):
        if isinstance(text, str) and not (text if rules.blank_stop else text.strip()):
            yield Violation(CheckCode.STOP_INVALID, (*path, index), "a stop text has to have characters; remove it")


def check_user_ids(body: Mapping[str, object], rules: Rules) -> Iterator[Violation]:
    """Find user ids that are shorter or longer than the target accepts, or that it refuses."""
    for key in sorted(rules.user_id_keys):
        path: Path = tuple(key.split("."))
        value: object = body
        for name in path:
            value = object_of(value).get(name)
        if isinstance(value, str) and not fits_user_id(value, rules):
            least, most = max(1, rules.min_user_id), rules.max_user_id
            message = f"{key} has {len(value)} characters; use {least} to {most}, such as a hash of the id"
            if _fits_length(value, rules):
                message = f"{key} shows who the user is; use an opaque id, such as a hash of it"
            yield Violation(CheckCode.USER_ID_INVALID, path, message)


def fits_user_id(value: str, rules: Rules) -> bool:
    """Whether the target accepts a user id."""
    refused = rules.refused_user_id
    return _fits_length(value, rules) and (refused is None or re.fullmatch(refused, value) is None)


def _fits_length(value: str, rules: Rules) -> bool:
    return len(value) >= rules.min_user_id and not 0 < rules.max_user_id < len(value)
