"""The links of the package, made by the build from the address of the repository in pyproject.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINKS = {
    "Repository": "",
    "Documentation": "/tree/main/docs",
    "Changelog": "/blob/main/CHANGELOG.md",
    "Issues": "/issues",
    "Security": "/security/policy",
}


class Links(MetadataHookInterface):
    """Adds `urls` to the metadata: none as long as the repository has no address."""

    def update(self, metadata: dict[str, object]) -> None:
        """Set the links."""
        settings = tomllib.loads(Path(self.root, "pyproject.toml").read_text(encoding="utf-8"))
        repository = settings["tool"]["segue"]["repository"].rstrip("/")
        metadata["urls"] = {name: f"{repository}{path}" for name, path in LINKS.items()} if repository else {}
