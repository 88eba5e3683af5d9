"""Text for a terminal: control characters of a conversation, a file name or a reply are shown, not executed.

- Everything that is written as text is a message of the program: control characters in it are escaped, in a pipe too,
  because `less -R` and `cat` pass them on. The standard streams do that themselves (`guard_streams`), so no call has to
  remember it.
- Everything that is written as bytes is data, such as a converted request. In a pipe it is verbatim, in a terminal
  escaped.
- Colours and movements of the cursor go through `echo_styled`, `draw` and `open_console`, which escape what they are
  given as text. No other module of the program makes them; a test looks for that.

Facts:
- `click.echo` writes text with `write` of the stream, and bytes with that of its `buffer`.  (click 8.5; 2026-11-18)
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable
from io import BufferedWriter, TextIOWrapper
from typing import TYPE_CHECKING, Any, Final, cast, final

from segue.foundation.safe_text import UNSAFE, in_one_line, printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

_ASCII: Final = frozenset({"ascii", "us-ascii", "ansi_x3.4-1968", "646"})


def quote_word(word: str) -> str:
    """Quote a word for a shell; one with control characters as `$'...'`, so that the line can be shown and pasted."""
    if in_one_line(word) == word and "\t" not in word:
        return shlex.quote(word)
    text = word.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t")
    return f"$'{UNSAFE.sub(_escape_in_shell, text)}'"


def _escape_in_shell(found: re.Match[str]) -> str:
    code = ord(found[0])
    if 0xDC80 <= code <= 0xDCFF:  # a byte of a file name that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 128 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"


# -- the standard streams ----------------------------------------------------------------------------------------------


@final
class GuardedStream(TextIOWrapper):
    """A standard stream that escapes text, and bytes if it is a terminal. `write_verbatim` is for this module alone."""

    def __init__(self, stream: TextIOWrapper) -> None:
        # A stream of ASCII is read as a wrong setting by click, which then would write to the bytes below it.
        encoding = "utf-8" if stream.encoding.lower() in _ASCII else stream.encoding
        super().__init__(
            cast("BufferedWriter", stream.buffer),
            encoding,
            stream.errors,
            line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )
        self._stream = stream  # it would close the file when it is dropped
        self._data = _Data(self, stream.buffer)

    @property
    def buffer(self) -> Any:  # noqa: ANN401 - a binary stream
        """The stream for data."""
        return self._data

    def write(self, text: str, /) -> int:
        """Write a message."""
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] - click tries it with bytes
            raise TypeError("a text is needed")
        super().write(printable(text))
        return len(text)

    def write_verbatim(self, text: str) -> None:
        """Write a text whose parts were escaped."""
        super().write(text)

    def write_data(self, data: bytes) -> None:
        """Write data."""
        self.flush()
        if self.isatty():
            data = printable(data.decode("utf-8", "backslashreplace")).encode("utf-8", "replace")
        self._stream.buffer.write(data)


class _Data:
    """The bytes below a guarded stream."""

    def __init__(self, stream: GuardedStream, below: object) -> None:
        self._stream = stream
        self._below = below

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - everything else is the file's own
        return getattr(self._below, name)

    def write(self, data: bytes) -> int:
        if data:
            self._stream.write_data(bytes(data))
        return len(data)


class _Verbatim:
    """A standard stream without its guard, for click and rich."""

    def __init__(self, stream: Any) -> None:  # noqa: ANN401 - guarded, or that of a test
        self._stream = stream

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - everything else is the stream's own
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        if isinstance(self._stream, GuardedStream):
            self._stream.write_verbatim(text)
        else:
            self._stream.write(text)
        return len(text)


def guard_streams() -> None:
    """Replace the standard streams by guarded ones, once."""
    for name in ("stdout", "stderr"):
        stream: object = getattr(sys, name)
        if isinstance(stream, TextIOWrapper) and not isinstance(stream, GuardedStream):
            stream.flush()
            setattr(sys, name, GuardedStream(cast("TextIOWrapper", stream)))


# -- output with control sequences -------------------------------------------------------------------------------------


@final
class Control(str):
    """A control sequence of the program itself: a literal, in which only numbers are inserted."""

    __slots__ = ()


def echo_styled(text: str, *, nl: bool = True, err: bool = False, after: str = "", **style: Any) -> None:  # noqa: ANN401 - of click.style
    """Write a message with a colour or a weight, and `after` it one without."""
    import click

    shown = click.style(printable(text), **style) + printable(after)
    click.echo(shown, file=cast("Any", _Verbatim(sys.stderr if err else sys.stdout)), nl=nl)


def echo_data(text: str, *, nl: bool = True) -> None:
    """Write a text that is data, such as a document: verbatim in a pipe, escaped in a terminal."""
    stream = sys.stdout
    data = (text + "\n" * nl).encode(stream.encoding or "utf-8", "replace")
    stream.flush()
    stream.buffer.write(data)
    stream.flush()


def write_lines(data: bytes) -> None:
    """Write messages that are bytes to standard error, without flushing them: there may be many."""
    sys.stderr.buffer.write(printable(data.decode("utf-8", "replace")).encode("utf-8", "replace"))


def draw(pieces: Iterable[str], *, err: bool = True) -> None:
    """Write pieces of text and control sequences (`Control`); of the text, everything else is escaped."""
    stream = _Verbatim(sys.stderr if err else sys.stdout)
    stream.write("".join(piece if isinstance(piece, Control) else printable(piece) for piece in pieces))
    stream.flush()


def selected(text: str) -> tuple[Control, str, Control]:
    """Show a line as the one that is selected, for `draw`."""
    return Control("\x1b[7m"), text, Control("\x1b[0m")


def open_console(*, stderr: bool = False) -> Console:
    """Return a console: no colour with NO_COLOR, no control codes in a pipe, and none of what is printed."""
    from rich.console import Console
    from rich.segment import Segment

    class SafeConsole(Console):
        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                if segment.control or UNSAFE.search(segment.text) is None:
                    yield segment
                else:
                    yield Segment(printable(segment.text), segment.style)

    return SafeConsole(file=cast("Any", _Verbatim(sys.stderr if stderr else sys.stdout)), highlight=False)
