"""`ApiVersions`: the versions of a provider's API that a header names, and what each of them refuses.

A request is sent with the newest version that accepts its body, so that nothing has to be removed from it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast, final

import msgspec

from segue.errors import SettingsError
from segue.protocols.kit.codec import JsonObject, Violation


@final
class ApiVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One version: what it refuses in a body, and the words without which a body has nothing of that."""

    name: str
    refused: Callable[[JsonObject], list[Violation]] = lambda _: []
    words: tuple[bytes, ...] = ()
    source: str
    read: str


@final
class ApiVersions(msgspec.Struct, frozen=True, kw_only=True):
    """The versions of an API, the newest first; the last one refuses nothing.

    - `header`: the header that names the version.
    - `body_key`: the key of a body that names it where there is no such header.
    """

    header: str
    body_key: str
    versions: tuple[ApiVersion, ...]

    @property
    def newest(self) -> str:
        """The name of the newest version."""
        return self.versions[0].name

    def has_words(self, content: bytes | bytearray) -> bool:
        """Whether any version may refuse something in these bytes of a body."""
        return any(word in content for version in self.versions for word in version.words)

    def choose(self, content: bytes, part: bytes | None = None) -> str:
        """Return the newest version that accepts a body; it is parsed only if it has one of the words.

        `part`: the bytes in which these words may be, if the rest is known not to have any.
        """
        body: JsonObject | None = None
        searched = content if part is None else part
        for version in self.versions:
            if not any(word in searched for word in version.words):
                return version.name
            if body is None:
                body = cast("JsonObject", msgspec.json.decode(content))
            if not version.refused(body):
                return version.name
        return self.versions[-1].name

    def check(self, body: JsonObject, version: str | None) -> list[Violation]:
        """List what a version refuses in a body.

        Without a version it is the one that the body names; else it is chosen for the body, and nothing is refused.
        """
        named = version or body.get(self.body_key)
        found = next((each for each in self.versions if each.name == named), None)
        return [] if found is None else found.refused(body)

    def get(self, name: str) -> ApiVersion:
        """Return a version.

        Raises:
            SettingsError: there is no such version.
        """
        for version in self.versions:
            if version.name == name:
                return version
        names = ", ".join(each.name for each in self.versions)
        raise SettingsError(f"there is no version {name!r} of this API; use one of {names}", key="version")
