"""Wire protocols: segue's own, one folder each, and what the author of another one needs.

Public names for authors are importable from here and loaded on first use:

- `Protocol`, `Sample`, `Documentation`, `Clues`: the record and its parts; `read_samples` reads samples from a file.
- `Endpoint`, `Violation`, `WireError`, `NOT_IN_A_BODY`: what the functions of a record take and return.
- `StreamDecoder`, `StreamReader`, `Assembly`, `Part`: streamed replies; a reader says what a frame means.
- `keep`, `restore`, `data_of`, `choose`, `chosen`, `difference`, `apply`: write back unchanged what was received.
- `register_protocol`, `get_protocol`, `PROTOCOLS`: the registry.

The modules of `segue.protocols.kit` hold these and more functions that segue's own protocols share.
"""

from __future__ import annotations

# Type checkers know this name by itself; the import of `typing` is not needed for it.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from segue.protocols.kit.assembly import Assembly, Part
    from segue.protocols.kit.clues import Clues
    from segue.protocols.kit.codec import NOT_IN_A_BODY, Endpoint, JsonObject, Violation, WireError
    from segue.protocols.kit.json_patch import apply, difference
    from segue.protocols.kit.protocol import Documentation, Framing, Protocol, Sample, read_samples
    from segue.protocols.kit.streaming import Frame, StreamDecoder, StreamReader
    from segue.protocols.kit.verbatim import choose, chosen, data_of, keep, restore
    from segue.protocols.registry import PROTOCOLS, all_protocols, get_protocol, register_protocol

_MODULES = {
    "segue.protocols.kit.assembly": ("Assembly", "Part"),
    "segue.protocols.kit.clues": ("Clues",),
    "segue.protocols.kit.codec": ("NOT_IN_A_BODY", "Endpoint", "JsonObject", "Violation", "WireError"),
    "segue.protocols.kit.protocol": ("Documentation", "Framing", "Protocol", "Sample", "read_samples"),
    "segue.protocols.kit.json_patch": ("apply", "difference"),
    "segue.protocols.kit.streaming": ("Frame", "StreamDecoder", "StreamReader"),
    "segue.protocols.kit.verbatim": ("choose", "chosen", "data_of", "keep", "restore"),
    "segue.protocols.registry": ("PROTOCOLS", "all_protocols", "get_protocol", "register_protocol"),
}
"""Where each name is found, in the order of the imports above."""

__all__ = [
    "NOT_IN_A_BODY",
    "PROTOCOLS",
    "Assembly",
    "Clues",
    "Documentation",
    "Endpoint",
    "Frame",
    "Framing",
    "JsonObject",
    "Part",
    "Protocol",
    "Sample",
    "StreamDecoder",
    "StreamReader",
    "Violation",
    "WireError",
    "all_protocols",
    "apply",
    "choose",
    "chosen",
    "data_of",
    "difference",
    "get_protocol",
    "keep",
    "read_samples",
    "register_protocol",
    "restore",
]

_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import the module that holds `name`."""
        if name not in _MODULE_OF:
            raise AttributeError(f"module 'segue.protocols' has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(_MODULE_OF[name]), name)
        globals()[name] = value
        return value
