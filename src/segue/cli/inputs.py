"""How commands open their input: errors name the file."""

from __future__ import annotations

from typing import BinaryIO, NoReturn

from segue.documents import Source, open_source
from segue.errors import DecodeError, LoadError
from segue.models.model import Model


def open_input(file: BinaryIO, protocol: str | None, model: Model | None = None) -> Source:
    """Open the FILE of a command, see `open_source`.

    Raises:
        LoadError: the file cannot be read as a conversation; the message starts with its name.
        DecodeError: the file is not a request of that protocol, or of no known protocol.
    """
    try:
        return open_source(file, file.name, protocol=protocol, model=model)
    except (LoadError, DecodeError) as error:
        raise_named(error, file.name)


def raise_named(error: LoadError | DecodeError, name: str) -> NoReturn:
    """Raise an error again, with the name of its file, and with advice if the message has none."""
    text = str(error)
    advice = "" if "; " in text else "; correct the file"
    error.args = (f"{name}: {text}{advice}",)
    raise error
