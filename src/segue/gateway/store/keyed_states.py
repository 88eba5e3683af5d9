"""How states are found by their keys: two integers for each key, the key's own and that of its state.

Rows of integers keep the tree of keys small, so that a commit changes few of its pages. An integer is too short to
identify a key: two keys may have the same one, by their kinds, by chance, or because somebody looked for them. So it
only says where to look. Each state has its tenant and its keys in full in its own row, and is found by a key only if
the tenant is the one that asks and the key is among them. A collision costs a row that is read in vain, and nothing
else.

The integer of a state begins with the time at which it was made: states are added at the end of their tables and lie in
the order in which they were made. Its other bits come from its keys. Where two states have the same integer, the
second one gets the next that is free. A state that is written again with the same time has the same integer, so that it
is found and not added.
"""

from __future__ import annotations

import struct
from binascii import unhexlify
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import chain
from operator import itemgetter
from typing import Final, TypeAlias
from zlib import crc32

from segue.envelope.canonical import text_bytes
from segue.gateway.store.database import Row, Transaction, Value, clean_values

StateRow: TypeAlias = tuple[int, str, int, int, str, str, bytes]
"""Integer, tenant, time of the last use, size, conversation, keys, data."""
_DIGITS: Final = 15
"""Hexadecimal digits of the digest of a key that its integer has: 60 bits."""
_LAST_DIGITS: Final = itemgetter(slice(-_DIGITS, None))
_LOW_BITS: Final = 21
"""Bits of the integer of a state after its time: those of two states of one millisecond are seldom the same."""
_LOW: Final = (1 << _LOW_BITS) - 1
_LATEST: Final = (1 << 42) - 1
"""Milliseconds: a day in the year 2109."""
_BREAK: Final = "\n"
_CHUNK: Final = 10_000
"""States that are deleted at once: a database may visit those that are deleted already again for the next ones."""
_MOVED: Final = 500
"""States that are moved at once."""
_PUT: Final = (
    "insert into states (id, tenant, seen, size, conversation, keys, data) values (?, ?, ?, ?, ?, ?, ?)"
    " on conflict do nothing"
)
_READ: Final = "select tenant, keys, data from states where id = ?"
_PUT_KEY: Final = "insert into state_keys (key, state) values (?, ?) on conflict do nothing"
_AT_ONCE: Final = 8
_PUT_KEYS: Final = _PUT_KEY.replace("(?, ?)", ", ".join(["(?, ?)"] * _AT_ONCE))


def numbers_of(keys: Sequence[str]) -> tuple[int, ...]:
    """Return the integers of keys: the last digits of their digests."""
    try:  # all of them at once, which takes a fifth of the time
        return _integers(len(keys)).unpack(unhexlify("0" + "0".join(map(_LAST_DIGITS, keys))))
    except (ValueError, struct.error):
        return tuple(map(_number_of, keys))


@lru_cache(maxsize=64)
def _integers(count: int) -> struct.Struct:
    return struct.Struct(f">{count}q")


def _number_of(key: str) -> int:
    digits = key[-_DIGITS:]
    try:
        return int.from_bytes(bytes.fromhex(digits.zfill(_DIGITS + 1)))
    except ValueError:  # not a digest
        return int.from_bytes(sha256(text_bytes(key)).digest()[:8]) >> 4


def id_of(time: int, keys: str) -> int:
    """Return the integer of a state that was made at a time; `keys` is the text of its row."""
    made = time if 0 <= time <= _LATEST else max(0, min(time, _LATEST))
    return made << _LOW_BITS | crc32(text_bytes(keys)) & _LOW


def join_keys(keys: Iterable[str]) -> str:
    """Write the keys of a state as the text of its row; no key has a line break."""
    return _BREAK.join(keys)


def split_keys(text: object) -> list[str]:
    """Read the keys of a state from its row."""
    return str(text).split(_BREAK) if text else []


def put_states(transaction: Transaction, rows: list[StateRow], *, lock: str) -> None:
    """Add rows of states and what finds them. A row that is there already is left as it is."""
    rows.sort()
    if transaction.run_many(_PUT, rows) < len(rows):  # a repeated write, or integers that are the same by chance
        rows = [_place(transaction, row, lock) for row in rows]
    _put_keys(transaction, [(row[0], split_keys(row[5])) for row in rows])


def _pairs_of(states: Sequence[tuple[int, list[str]]]) -> Sequence[tuple[int, int]]:
    """Return the integers of all keys of states with those of the states, in the order of these."""
    numbers = numbers_of([key for _, keys in states for key in keys])
    return [*zip(numbers, [state for state, keys in states for _ in keys], strict=True)]


def _put_keys(transaction: Transaction, states: Sequence[tuple[int, list[str]]]) -> None:
    """Add what finds states: several rows with each statement as far as possible, which takes half of the time."""
    pairs = _pairs_of(states)
    end = len(pairs) - len(pairs) % _AT_ONCE
    if end:
        flat = [*chain.from_iterable(pairs[:end])]
        transaction.run_numbers(_PUT_KEYS, [flat[at : at + 2 * _AT_ONCE] for at in range(0, 2 * end, 2 * _AT_ONCE)])
    if end < len(pairs):
        transaction.run_numbers(_PUT_KEY, pairs[end:])


def _place(transaction: Transaction, row: StateRow, lock: str) -> StateRow:
    """Add a row where its integer is free, or find it; return it with its integer. It stays until the commit."""
    number, given = row[0], row[1:]
    tenant, keys = clean_values((row[1], row[5]))
    while not transaction.run(_PUT, (number, *given)):
        found = transaction.read(_READ + lock, (number,))
        if found and found[0][:2] == (tenant, keys) and bytes_of(found[0][2]) == row[6]:
            break
        number += bool(found)  # else it was deleted meanwhile
    return (number, *given)


def delete_states(transaction: Transaction, where: str, values: Sequence[Value]) -> int:
    """Delete states and what finds them; return how many states that were.

    The states go first: who repeats a write of one waits for that, and writes all of it again.
    """
    count = 0
    while rows := transaction.read(f"select id, keys from states where {where} limit {_CHUNK}", values):  # noqa: S608
        states = sorted((int(str(number)), split_keys(keys)) for number, keys in rows)
        count += transaction.run_many("delete from states where id = ?", [(number,) for number, _ in states])
        transaction.run_many("delete from state_keys where key = ? and state = ?", _pairs_of(states))
    return count


def bytes_of(data: object) -> bytes:
    """Return the bytes of a column; the driver may give a view of them."""
    return bytes(data) if isinstance(data, (bytes, memoryview)) else b""  # pyright: ignore[reportUnknownArgumentType]


def move_states(transaction: Transaction) -> None:
    """Copy the states of `old_states` to `states`, and what finds them to `moved_keys`; a part at a time.

    They keep their order: by the time at which they were made.
    """
    made: Value = -1
    name: Value = ""
    number = -1
    while rows := transaction.read(
        "select made, id, tenant, seen, size, conversation, data from old_states where (made, id) > (?, ?)"
        " order by made, id limit ?",
        (made, name, _MOVED),
    ):
        marks = ", ".join("?" * len(rows))
        keys: dict[Value, list[str]] = {}
        for state, key in transaction.read(
            f"select state, key from old_state_keys where state in ({marks}) order by made, key",  # noqa: S608
            [row[1] for row in rows],
        ):
            keys.setdefault(state, []).append(str(key))
        moved: list[Row] = []
        found: list[tuple[int, list[str]]] = []
        for made, name, tenant, seen, size, conversation, data in rows:
            own = keys.get(name, [])
            number = max(number + 1, min(int(str(made)), _LATEST) << _LOW_BITS)
            moved.append((number, tenant, seen, size, conversation, join_keys(own), data))
            found.append((number, own))
        transaction.run_many(_PUT, moved)
        transaction.run_many("insert into moved_keys (key, state) values (?, ?)", _pairs_of(found))
