"""With SEGUE_SERVER=fallback, the gateway's tests run as if httptools and uvloop were not installed."""

from __future__ import annotations

import os
import sys

if os.environ.get("SEGUE_SERVER") == "fallback":
    sys.modules["httptools"] = sys.modules["uvloop"] = None  # pyright: ignore[reportArgumentType]
