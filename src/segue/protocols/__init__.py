"""Wire protocols: segue's own, one folder each, and what the author of another one needs.

Public names for authors, imported on first use:

- `Protocol`, `Codec`: the record of a protocol, and its functions.
- `Endpoint`, `Violation`, `WireError`, `JsonObject`, `NOT_IN_A_BODY`: what these functions take and return.
- `StreamDecoder`, `StreamReader`, `Frame`, `Assembly`, `Part`: streamed replies; a reader says what a frame means.
- `keep`, `restore`, `choose`, `apply`: write back unchanged what was received.
- `get_protocol`, `PROTOCOLS`: the registry.

The modules of `segue.protocols.kit` hold these and more functions that segue's own protocols share.
"""

from segue._lazy import attach

__getattr__, __dir__ = attach(__name__, __path__[0], __spec__.loader.get_data, globals())
