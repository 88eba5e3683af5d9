"""Find what installed packages add to segue: their entry points.

Importing `importlib.metadata` takes longer than starting segue. So the `entry_points.txt` files of installed packages
are searched for the name of the group first, and the import is done only if one of them has it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_FOLDERS = (".dist-info", ".egg-info", "EGG-INFO")


def find_entry_points(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group, such as `segue.protocols`; they are searched once for each `sys.path`."""
    return _find(group, tuple(sys.path))


@lru_cache(maxsize=8)
def _find(group: str, paths: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    if not _may_exist(group, paths):
        return ()
    from importlib.metadata import entry_points

    return tuple(entry_points(group=group))


def _may_exist(group: str, paths: tuple[str, ...]) -> bool:
    """Whether a package may declare the group; True also where only `importlib.metadata` can determine it."""
    name = group.encode()
    for finder in sys.meta_path:
        # The finder of folders is `PathFinder`; any other one may know packages that are in no folder.
        if hasattr(finder, "find_distributions") and getattr(finder, "__name__", "") != "PathFinder":
            return True
    for path in paths:
        if os.path.isfile(path):  # an archive
            return True
        for file in _entry_point_files(path or "."):
            try:
                with open(file, "rb") as opened:
                    if name in opened.read():
                        return True
            except OSError:
                continue
    return False


def _entry_point_files(folder: str) -> Iterator[str]:
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        if name.endswith(_FOLDERS):
            yield os.path.join(folder, name, "entry_points.txt")
