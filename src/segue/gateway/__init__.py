"""The gateway: any client, any model. `create_app(config)` is an ASGI application, `segue serve` runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from segue.gateway.app import create_app as create_app
    from segue.gateway.config import Config as Config
    from segue.gateway.config import load_config as load_config
    from segue.gateway.config import read_config as read_config

_CONFIG = frozenset({"Config", "load_config", "read_config"})


def __getattr__(name: str) -> object:
    """Import what needs a server only when it is used."""
    if name == "create_app":
        from segue.gateway.app import create_app

        return create_app
    if name in _CONFIG:
        from segue.gateway import config

        return getattr(config, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
