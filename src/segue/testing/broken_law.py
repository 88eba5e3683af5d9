"""Cases of laws, and what a law raises that does not hold, with the differences that were found."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn, cast, final

from segue.foundation.plurals import counted
from segue.foundation.registry import Named


@final
class BrokenLaw(AssertionError):
    """A law does not hold for a protocol or a format."""


@final
@dataclass(frozen=True)
class Case:
    """One law on one sample, or on several histories; call it to check. `str` gives its name."""

    name: str
    check: Callable[[], None]

    def __call__(self) -> None:
        """Check the law.

        Raises:
            BrokenLaw: it does not hold.
        """
        self.check()

    def __str__(self) -> str:
        return self.name


def check_cases(record: Named, cases: Iterable[Case]) -> None:
    """Check every case.

    Raises:
        BrokenLaw: lists every law that does not hold, with the sample or the seed that reproduces the failure.
    """
    broken: list[str] = []
    for case in cases:
        try:
            case()
        except BrokenLaw as error:
            broken.append(str(error))
    if broken:
        raise BrokenLaw(
            "\n".join((f"{counted(len(broken), 'law does', 'laws do')} not hold for {record.name}:", *broken))
        )


@contextmanager
def naming(record: Named, law: Callable[..., None], where: str) -> Generator[None]:
    """Convert an exception of the record's functions to `BrokenLaw`, with the sample or the seed."""
    try:
        yield
    except BrokenLaw:
        raise
    except Exception as error:
        raise BrokenLaw(f"{record.name}: {title_of(law)} ({where}): raised {type(error).__name__}: {error}") from error


def title_of(law: Callable[..., None]) -> str:
    """Return the name of a law, as words."""
    return cast("str", getattr(law, "__name__", "")).removeprefix("check_").replace("_", " ")


def fail(record: Named, law: str, where: str, detail: str) -> NoReturn:
    """Report a law that does not hold.

    Raises:
        BrokenLaw: always.
    """
    raise BrokenLaw(f"{record.name}: {law} ({where}): {detail}")


def expect_equal(record: Named, law: str, where: str, found: object, wanted: object) -> None:
    """Compare two values.

    Raises:
        BrokenLaw: they differ; the message has each place where they do.
    """
    if found != wanted:
        fail(record, law, where, "; ".join(_differences(found, wanted)) or f"got {found!r}, expected {wanted!r}")


def _differences(found: object, wanted: object, path: str = "") -> Iterator[str]:
    """Describe where two values differ, by path and in a shortened form."""
    one, other = _fields(found), _fields(wanted)
    if one is not None and other is not None:
        for key in dict.fromkeys((*one, *other)):
            if key not in one or key not in other:
                yield f"{path}.{key} is {'missing' if key not in one else 'not expected'}"
            elif one[key] != other[key]:
                yield from _differences(one[key], other[key], f"{path}.{key}")
        return
    ours, theirs = _items(found), _items(wanted)
    if ours is None or theirs is None or not ours or not theirs:
        yield f"{path or 'value'} is {_short(found)}, expected {_short(wanted)}"
        return
    if len(ours) != len(theirs):
        yield f"{path or 'value'} has length {len(ours)}, expected {len(theirs)}"
    for at, (item, expected) in enumerate(zip(ours, theirs, strict=False)):
        if item != expected:
            yield from _differences(item, expected, f"{path}[{at}]")
            if len(ours) != len(theirs):
                return  # what follows is shifted


def _fields(value: object) -> Mapping[str, object] | None:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else None


def _items(value: object) -> list[object] | None:
    return cast("list[object]", value) if isinstance(value, list) else None


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}..."
