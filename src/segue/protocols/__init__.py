"""Wire protocols: segue's own, one folder each, and the names that authors of other protocols need.

Public names for authors are importable from here and loaded on first use:

- `Protocol`, `Sample`, `Documentation`, `Clues`: the record and its parts; `read_samples` reads samples from a file,
  `fixed_path` is for a path without a model.
- `Endpoint`, `Violation`, `CheckCode`, `WireError`, `NOT_IN_A_BODY`: what the functions of a record take and return.
- `StreamDecoder`, `StreamReader`, `Assembly`, `Part`: streamed replies; a reader applies each frame to an assembly.
- `keep`, `restore`, `data_of`, `choose`, `chosen`, `difference`, `apply`: write a received body back unchanged.
- `register_protocol`, `get_protocol`, `PROTOCOLS`: the registry.

The modules of `segue.protocols.kit` have these and other functions that segue's own protocols share.
"""

from segue._lazy import attach

__getattr__, __dir__ = attach(__name__, __path__[0], __spec__.loader.get_data, globals())
