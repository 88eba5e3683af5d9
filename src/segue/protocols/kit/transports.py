"""`Transport`: another way to send the requests of a protocol: the content is the same, its envelope differs.

Clouds serve a maker's protocol at their own endpoints. The path names the model and decides about streaming, what
the protocol has in headers is in the body, and a stream may be framed in another way. The dialect of a provider
names the transport (`Dialect.transport`), an endpoint that a server reads does (`Route.transport`), and the record of
the protocol has them all (`Protocol.transports`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast, final

import msgspec

from segue.foundation.quoting import quote_segment
from segue.protocols.kit.codec import ErrorReply, Fault, JsonObject


@final
class Transport(msgspec.Struct, frozen=True, kw_only=True):
    """One transport.

    - `paths`: the path of a request, and that of one whose reply is streamed; `{model}` is the id of the model.
    - `framing`: how a stream is framed, if not as the protocol says.
    - `removed`: the keys of a body that the path replaces.
    - `version_key`, `version_header`: the key that names the version of the API in place of the header.
    - `versions`: the names that versions have in the body, where they differ from those in the header.
    - `lists`: headers whose values are lists, and the keys of a body that may have them here; they are written there if
      `moves_lists` says so.
    - `encode_error`: writes an error as a provider with this transport does; None: as the protocol does.
    """

    paths: tuple[str, str]
    framing: str | None = None
    removed: frozenset[str]
    version_key: str
    version_header: str
    versions: Mapping[str, str]
    lists: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    moves_lists: bool
    encode_error: Callable[[Fault], ErrorReply] | None = None
    source: str
    read: str

    def path(self, model: str, *, stream: bool) -> str:
        """Return the path of a request.

        Raises:
            SettingsError: the id of the model cannot be part of a URL.
        """
        return self.paths[stream].replace("{model}", quote_segment(model))

    def keys(self, version: str, headers: Mapping[str, str]) -> dict[str, object]:
        """Return what the body has in place of headers: the version, and the lists."""
        found: dict[str, object] = {self.version_key: self.versions.get(version, version)}
        for name, key in self.lists.items() if self.moves_lists else ():
            if items := [item.strip() for item in headers.get(name, "").split(",") if item.strip()]:
                found[key] = items
        return found

    def is_moved(self, header: str) -> bool:
        """Whether the body has a header."""
        return header.lower() == self.version_header or (self.moves_lists and header.lower() in self.lists)

    def open(self, body: JsonObject) -> tuple[dict[str, object], dict[str, str]]:
        """Return a body as the protocol itself has it, and the headers that were in it."""
        rest, headers = dict(body), dict[str, str]()
        version = rest.pop(self.version_key, None)
        if isinstance(version, str):
            names = {name: header for header, name in self.versions.items()}
            headers[self.version_header] = names.get(version, version)
        for name, key in self.lists.items():
            items = rest.get(key)
            if isinstance(items, list) and all(isinstance(item, str) for item in cast("list[object]", items)):
                headers[name] = ",".join(cast("list[str]", rest.pop(key)))
        return rest, headers
