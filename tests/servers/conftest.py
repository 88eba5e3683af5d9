"""What the tests of the servers share."""

from __future__ import annotations

from servers.llama import llama_server

__all__ = ["llama_server"]
