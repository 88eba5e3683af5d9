"""How much is known about a rule: its grade.

A rule that is wrong does harm in two ways: `check` reports a request that the provider would have answered, and
projection removes what the model would have read. So each row has a grade, and only *refused* changes a request:

| grade | what is known | `check` | projection |
| --- | --- | --- | --- |
| `refused` | a refusal was seen, or the provider's own text states it | reports it | follows it |
| `ignored` | it is accepted and has no effect | reports it if asked to (`strict`) | sends it |
| `unsure` | a flag of somebody's catalogue, an analogy, another host | reports it if asked to (`strict`) | sends it |
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

Grade: TypeAlias = Literal["refused", "ignored", "unsure"]

GRADES: Final[tuple[Grade, ...]] = get_args(Grade)
"""All grades, the surest first."""
