"""The options of a request as a table: one row for each field of `Options` that a protocol has a parameter for.

A row reads its option from a body and writes it in the default format. Where a body wrote the same option in another
format (`"END"` for `["END"]`), the difference is kept as a patch (`kit.verbatim`). It is applied for the model that the
body named and for no other, and only while the default is unchanged. Everything inside a key that a row has read is
format; keys that no row has read are data.

The `model` of a body belongs to the options as well: it may be absent, or not a string.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias, cast

from msgspec.structs import replace

from segue.conversation.context import Options
from segue.errors import EncodeError
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import EMPTY, Block, Wire
from segue.protocols.kit.reading import integer_of, real_of, strings_of, text_of
from segue.protocols.kit.verbatim import keep, restore

Reader: TypeAlias = Callable[[Block, Endpoint], object]
"""Returns the value of an option from a body; None if the body does not set it, or the value has an unknown format."""
Writer: TypeAlias = Callable[[object, Endpoint], Wire]
"""Returns the keys of a body for the value of an option."""

_NOT_WRITTEN: Final = frozenset({"extra", "cache_retention"})
"""Fields that need no row and raise no error: `cache_retention` has no effect on a protocol without cache marks."""


class Setting(NamedTuple):
    """One field of `Options`: the keys of the body that hold it, and how it is read and written."""

    field: str
    keys: tuple[str, ...]
    read: Reader
    write: Writer


class OptionTable(NamedTuple):
    """All rows of one protocol."""

    protocol: str
    rows: tuple[Setting, ...]


class _ReadKeys(frozenset[str]):
    """Keys that a row has read, with everything inside them; `a.b` is a key of an object that also has unread ones."""

    def __contains__(self, key: object, /) -> bool:
        return super().__contains__(str(key).partition(".")[0]) or super().__contains__(key)


def decode_settings(
    table: OptionTable, body: Block, known: Collection[str], endpoint: Endpoint, choices: Block = EMPTY
) -> Options:
    """Read the options of a body; `known` are the keys of the conversation, which other functions read.

    `choices` are choices of the conversation that apply to this request only; they are kept with the options.
    """
    values: Wire = {}
    keys: set[str] = set()
    for setting in table.rows:
        value = setting.read(body, endpoint)
        if value is not None:
            values[setting.field] = value
            keys.update(setting.keys)
    options = Options(**values)  # pyright: ignore[reportArgumentType]  # each row gives its own field's type
    named = body.get("model")
    model = named if isinstance(named, str) else endpoint.model.id
    received = {key: value for key, value in body.items() if key not in known}
    default = {"model": model, **_encode_default(table, options, endpoint)}
    extra = keep(table.protocol, received, default, _ReadKeys(keys), choices, only_for=model)
    return options if extra is None else replace(options, extra=extra)


def encode_settings(table: OptionTable, body: Wire, options: Options, endpoint: Endpoint, model: str | None) -> None:
    """Write the options into a body, and its model: the endpoint's unless another one is given.

    Raises:
        EncodeError: an option is set that the protocol has no parameter for.
    """
    known = {setting.field for setting in table.rows} | _NOT_WRITTEN
    refuse_options(table.protocol, options, [name for name in options.__struct_fields__ if name not in known])
    target = endpoint.model.id if model is None else model
    wire: Wire = {"model": target, **_encode_default(table, options, endpoint)}
    restore(wire, options.extra, table.protocol, model=target)
    if model is not None:
        wire["model"] = model
    body |= wire


def refuse_options(protocol: str, options: Options, names: Iterable[str]) -> None:
    """Check that none of the named options is set.

    Raises:
        EncodeError: one of them is.
    """
    for name in names:
        if getattr(options, name) is not None:
            reason = f"{protocol} does not support `{name}`; remove it or choose another model"
            raise EncodeError(reason, path=("options", name))


def _encode_default(table: OptionTable, options: Options, endpoint: Endpoint) -> Wire:
    wire: Wire = {}
    for setting in table.rows:
        value = cast("object", getattr(options, setting.field))
        if value is not None:
            wire |= setting.write(value, endpoint)
    return wire


# -- rows that most protocols have -------------------------------------------------------------------------------------


def number(key: str, *, whole: bool = False) -> Reader:
    """Make the reader of a number."""

    def read(body: Block, _: Endpoint) -> object:
        return integer_of(body.get(key)) if whole else real_of(body.get(key))

    return read


def flag(key: str) -> Reader:
    """Make the reader of a boolean."""

    def read(body: Block, _: Endpoint) -> object:
        value = body.get(key)
        return value if isinstance(value, bool) else None

    return read


def text(key: str) -> Reader:
    """Make the reader of a string."""

    def read(body: Block, _: Endpoint) -> object:
        return text_of(body.get(key))

    return read


def texts(key: str) -> Reader:
    """Make the reader of a list of strings; a single string is read as a list of one."""

    def read(body: Block, _: Endpoint) -> object:
        value = body.get(key)
        return (value,) if isinstance(value, str) else strings_of(value)

    return read


def plain(key: str) -> Writer:
    """Make the writer of a value that needs no conversion."""

    def write(value: object, _: Endpoint) -> Wire:
        return {key: value}

    return write


def listed(key: str) -> Writer:
    """Make the writer of a list."""

    def write(value: object, _: Endpoint) -> Wire:
        return {key: list(cast("Sequence[object]", value))}

    return write


LONG_TTLS: Final = frozenset({"1h", "12h", "24h"})
"""The long lifetimes of caches: of Anthropic's marks, of OpenAI's breakpoints, and of OpenAI's option."""

KNOWN_TTLS: Final[frozenset[str | None]] = LONG_TTLS | {None, "5m", "30m"}
"""All lifetimes of marks, with the default ones of Anthropic and of OpenAI."""


def wire_ttl(ttl: str | None, short: str, long: str) -> str | None:
    """Return the lifetime of a cache mark on a wire that has these two; another one that is not long is not a value."""
    return long if ttl in LONG_TTLS else ttl if ttl == short else None
