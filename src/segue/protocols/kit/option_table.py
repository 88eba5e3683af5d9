"""What a request asks besides the conversation, as a table: one row for each option that a wire has a word for.

A row reads its option from a body and writes it the usual way. What was said in another way is kept with what would
have been usual, and said so again only as long as that is still what would be written: who changes an option, or asks
another model, gets the usual words.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple, TypeAlias, cast

from segue.conversation.context import Options
from segue.errors import EncodeError
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import VERBATIM, left_over, verbatim_of
from segue.protocols.kit.retired_format import NOTHING, Block, Wire, object_of

Reader: TypeAlias = Callable[[Block, Endpoint], object]
Writer: TypeAlias = Callable[[object, Endpoint], Wire]

_ORIGINAL: Final = "spelt"
_QUIET: Final = frozenset({"extra", "cache_retention"})
"""What needs no word: a wire without cache marks decides itself what it keeps."""


class Setting(NamedTuple):
    """One field of `Options`: the keys of the body that speak of it, and how it is read and written."""

    field: str
    keys: tuple[str, ...]
    read: Reader
    write: Writer


class Settings(NamedTuple):
    """All rows of one protocol."""

    protocol: str
    rows: tuple[Setting, ...]


def decode_settings(
    table: Settings, body: Block, known: Collection[str], verbatim: Wire, endpoint: Endpoint
) -> Options:
    """Read the options of a body; `known` are the keys that others have read, `verbatim` what they noted."""
    values: Wire = {}
    original: Wire = {}
    read = set(known)
    for setting in table.rows:
        value = setting.read(body, endpoint)
        if value is None:
            continue
        values[setting.field] = value
        read.update(setting.keys)
        given = {key: body[key] for key in setting.keys if key in body}
        default = setting.write(value, endpoint)
        if given != default:
            original[setting.field] = {"usual": default, "said": given}
    if original:
        verbatim = {**verbatim, _ORIGINAL: original}
    left = {key: value for key, value in body.items() if key not in read}
    if verbatim:
        left[VERBATIM] = verbatim
    extra = {table.protocol: left} if left else None
    return Options(**values, extra=extra)  # pyright: ignore[reportArgumentType]  # the table says which is which


def encode_settings(
    table: Settings,
    body: Wire,
    options: Options,
    endpoint: Endpoint,
    distrusted: Collection[str] = (),
) -> None:
    """Write the options into a body; the fields of `distrusted` are written the usual way whatever was said once.

    Raises:
        EncodeError: an option is set that the wire has no word for.
    """
    known = {setting.field for setting in table.rows} | _QUIET
    for name in options.__struct_fields__:
        if name not in known and getattr(options, name) is not None:
            raise EncodeError("this wire has no word for it", path=("options", name))
    original = object_of(verbatim_of(options.extra, table.protocol).get(_ORIGINAL))
    for setting in table.rows:
        value = cast("object", getattr(options, setting.field))
        if value is None:
            continue
        default = setting.write(value, endpoint)
        other = NOTHING if setting.field in distrusted else object_of(original.get(setting.field))
        is_restored = "said" in other and other.get("usual") == default
        body.update(object_of(other["said"]) if is_restored else default)
    for key, value in left_over(options.extra, table.protocol).items():
        body.setdefault(key, value)


# -- rows that most wires have -----------------------------------------------------------------------------------------


def number(key: str, *, whole: bool = False) -> Reader:
    """Make the reader of a number."""

    def read(body: Block, _: Endpoint) -> object:
        value = body.get(key)
        is_number = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
        return value if is_number else None

    return read


def flag(key: str) -> Reader:
    """Make the reader of a switch."""

    def read(body: Block, _: Endpoint) -> object:
        value = body.get(key)
        return value if isinstance(value, bool) else None

    return read


def text(key: str) -> Reader:
    """Make the reader of a text."""

    def read(body: Block, _: Endpoint) -> object:
        value = body.get(key)
        return value if isinstance(value, str) else None

    return read


def texts(key: str) -> Reader:
    """Make the reader of a list of texts; one alone may stand for a list of it."""

    def read(body: Block, _: Endpoint) -> object:
        value = body.get(key)
        if isinstance(value, str):
            return (value,)
        if not isinstance(value, (list, tuple)):
            return None
        items = cast("Sequence[object]", value)
        return tuple(cast("Sequence[str]", items)) if all(isinstance(item, str) for item in items) else None

    return read


def plain(key: str) -> Writer:
    """Make the writer of a value that is said as it is."""

    def write(value: object, _: Endpoint) -> Wire:
        return {key: value}

    return write


def listed(key: str) -> Writer:
    """Make the writer of a list."""

    def write(value: object, _: Endpoint) -> Wire:
        return {key: list(cast("Sequence[object]", value))}

    return write
