"""Check that numbers, stop texts and user ids of a request are in the range that the target accepts.

The ranges are rows of the rules (`Rule`), with their sources. Values of a wrong type
pass: other checks find them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, cast

from segue.errors import Path
from segue.models.rule import Rule
from segue.models.rules import Rules
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.codec import Violation
from segue.protocols.kit.json_values import object_of

_DEFAULTS: Final[Mapping[str, Rule]] = {"top_p": Rule(most=1.0), "max_tokens": Rule(least=1)}
"""The ranges of targets without a row; a temperature is only not negative."""
_ANY: Final = Rule()


def range_of(option: str, rules: Rules) -> tuple[float, float]:
    """Return the smallest and the largest value of an option; 0 for no upper limit."""
    row = rules.rows.get(option) or _DEFAULTS.get(option, _ANY)
    return row.least or 0, row.most or 0


def check_greedy(body: Mapping[str, object], rules: Rules) -> Iterator[Violation]:
    """Find a `top_p` next to a temperature of 0, where the target refuses it."""
    if rules.has("greedy_top_p") and body.get("temperature") == 0 and body.get("top_p") not in (None, 1):
        message = "top_p has to be 1 while the temperature is 0; remove it"
        yield Violation(CheckCode.OPTIONS_CONFLICT, ("top_p",), message)


def fits_seed(value: int, rules: Rules) -> bool:
    """Whether the target accepts a seed."""
    return not any(check_seed(value, ("seed",), rules))


def check_seed(value: object, path: Path, rules: Rules) -> Iterator[Violation]:
    """Find a seed that is out of its range."""
    row = rules.rows.get("seed")
    if row is None or not isinstance(value, int):
        return
    is_small = row.least is not None and value < row.least
    if is_small or (row.most is not None and value > row.most):
        bounds = f"at least {row.least}" if is_small else f"at most {row.most}"
        yield Violation(CheckCode.VALUE_OUT_OF_RANGE, path, f"{path[-1]} has to be {bounds}, not {value}; change it")


def check_range(option: str, value: object, path: Path, rules: Rules) -> Iterator[Violation]:
    """Find a number that is out of its range."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return
    least, most = range_of(option, rules)
    if value < least or 0 < most < value:
        bounds = f"between {least:g} and {most:g}" if most else f"at least {least:g}"
        yield Violation(CheckCode.VALUE_OUT_OF_RANGE, path, f"{path[-1]} has to be {bounds}, not {value:g}; change it")


def fits_stop(text: str, rules: Rules) -> bool:
    """Whether the target accepts a stop text of this length."""
    return not 0 < rules.most("stop_bytes") < len(text.encode("utf-8", "surrogatepass"))


def check_stop_sizes(value: object, path: Path, rules: Rules) -> Iterator[Violation]:
    """Find more stop texts, or longer ones, than the target accepts."""
    texts = cast("list[object]", value) if isinstance(value, list) else [value]
    if 0 < (most := rules.most("stop")) < len(texts):
        yield Violation(CheckCode.STOP_INVALID, path, f"there are more than {most} stop sequences; remove some")
    if any(isinstance(text, str) and not fits_stop(text, rules) for text in texts):
        message = f"a stop text has more than {rules.most('stop_bytes')} bytes; shorten it"
        yield Violation(CheckCode.STOP_INVALID, path, message)


def check_stops(value: object, path: Path, rules: Rules) -> Iterator[Violation]:
    """Find stop texts that are empty, or blank where the target refuses blank ones."""
    if not isinstance(value, list | tuple):
        return
    for index, text in enumerate(cast("list[object]", value)):
        if isinstance(text, str) and not (text.strip() if rules.has("blank_stop") else text):
            yield Violation(CheckCode.STOP_INVALID, (*path, index), "a stop text has to have characters; remove it")


def check_user_ids(body: Mapping[str, object], rules: Rules) -> Iterator[Violation]:
    """Find user ids that are shorter or longer than the target accepts, or that it refuses."""
    for key in sorted(rules.user_id_keys):
        path: Path = tuple(key.split("."))
        value: object = body
        for name in path:
            value = object_of(value).get(name)
        if isinstance(value, str) and not fits_user_id(value, rules):
            row = rules.rows["user_id"]
            message = (
                f"{key} has {len(value)} characters; use {row.least or 1} to {row.most or 0}, such as a hash of the id"
            )
            if _fits_length(value, row):
                message = f"{key} shows who the user is; use an opaque id, such as a hash of it"
            yield Violation(CheckCode.USER_ID_INVALID, path, message)


def fits_user_id(value: str, rules: Rules) -> bool:
    """Whether the target accepts a user id."""
    row = rules.rows.get("user_id")
    return row is None or (_fits_length(value, row) and (not row.pattern or re.fullmatch(row.pattern, value) is None))


def _fits_length(value: str, row: Rule) -> bool:
    return len(value) >= (row.least or 0) and not 0 < (row.most or 0) < len(value)
