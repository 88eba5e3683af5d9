"""Files that only their owner may read: the database with its secret key and its states, and the key file.

They are created with these permissions, so that there is no moment in which others could open them. A file of an
earlier version that others may read is narrowed, and the log says so. Windows has no such permissions; there the
folder of the user protects them.
"""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from segue.gateway.logs import find_logger

_LOG: Final = find_logger()
_FILE_MODE: Final = 0o600
_FOLDER_MODE: Final = 0o700
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def make_private_folder(folder: Path) -> None:
    """Create a folder and its missing parents for the owner alone; an existing folder stays as it is.

    Raises:
        OSError: it cannot be created.
    """
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=_FOLDER_MODE, exist_ok=True)
    if not folder.is_dir():
        folder.mkdir()  # raises, and says why


def make_private_file(path: Path) -> None:
    """Create an empty file for the owner alone, or narrow an existing one.

    Raises:
        OSError: it cannot be created.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _FILE_MODE))
    narrow(path)


def narrow(path: Path) -> None:
    """Take away what others may do with a file, if it exists."""
    if os.name == "nt":
        return
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & _OTHERS:
            path.chmod(mode & ~_OTHERS)
            _LOG.warning("%s had the permissions %03o; now only its owner may read it", path, mode)
    except FileNotFoundError:
        return
    except OSError as error:
        _LOG.warning("others may read %s, and its permissions cannot be changed: %s", path, error.strerror)


def read_or_make_secret(path: Path) -> str:
    """Return the secret of a file; it is made once, also if several programs start at the same time.

    Raises:
        OSError: the file can be neither read nor created.
    """
    make_private_folder(path.parent)
    if not path.exists():
        # Others see the file only when it is complete.
        part = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        try:
            with os.fdopen(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _FILE_MODE), "w") as file:
                file.write(secrets.token_hex(32))
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):
                os.link(part, path)
        finally:
            part.unlink(missing_ok=True)
    narrow(path)
    return path.read_text()
