"""Other libraries, each in its own virtual environment, with pinned versions.

They cannot share one: litellm needs an older openai package than the others.     (litellm 1.106.2, tried 2026-11)
If an environment cannot be made, its rows have the reason; that is not an error, because the other rows are useful.
"""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_ADDRESS: Final = re.compile(r"\S*://\S*")


@dataclass(frozen=True)
class Peer:
    """A library, the statement that imports its message types, and what is installed with it."""

    name: str
    package: str
    version: str
    statement: str
    extras: str = ""
    beside: tuple[str, ...] = ()

    @property
    def requirements(self) -> tuple[str, ...]:
        """The requirements for pip."""
        return (f"{self.package}{self.extras}=={self.version}", *self.beside)


_YARDSTICK: Final = f"orjson=={importlib.metadata.version('orjson')}"
"""The reference of comparisons between two environments, so its version is the same in both."""

_BEDROCK: Final = "boto3==1.44.0"

PEERS: Final = (
    Peer(
        "pydantic-ai",
        "pydantic-ai-slim",
        "2.66.0",
        "import pydantic_ai.messages",
        extras="[openai,anthropic,google,bedrock]",
        beside=("openai==3.49.0", "anthropic==2.8.0", "google-genai==3.1.0", _BEDROCK, _YARDSTICK),
    ),
    Peer("litellm", "litellm", "1.106.2", "import litellm", beside=(_BEDROCK, _YARDSTICK)),
    Peer("llm-rosetta", "llm-rosetta", "0.13.0", "import llm_rosetta", beside=(_YARDSTICK,)),
    Peer(
        "strands",
        "strands-agents",
        "1.62.0",
        "import strands.types.content",
        extras="[anthropic,gemini,openai]",
        beside=("anthropic==0.125.0", "google-genai==2.34.0", "openai==2.54.0", _BEDROCK, _YARDSTICK),
    ),
    Peer(
        "any-llm",
        "any-llm-sdk",
        "1.40.2",
        "import any_llm",
        extras="[anthropic,bedrock,gemini]",
        beside=("anthropic==0.125.0", "google-genai==3.1.0", _BEDROCK, _YARDSTICK),
    ),
    Peer(
        "langchain",
        "langchain-core",
        "1.7.2",
        "import langchain_core.messages",
        beside=(
            "langchain-anthropic==1.7.7",
            "langchain-aws==1.9.1",
            "langchain-google-genai==4.4.2",
            "langchain-openai==1.7.3",
            _YARDSTICK,
        ),
    ),
)


def get_peer(name: str) -> Peer:
    """Find a peer by its name."""
    return next(peer for peer in PEERS if peer.name == name)


@dataclass(frozen=True)
class Environment:
    """The interpreter of a peer, or the reason why there is none."""

    peer: Peer
    python: Path | None
    reason: str = ""


def make_environment(peer: Peer, folder: Path) -> Environment:
    """Make the environment of a peer in `folder`, unless it exists with the same version."""
    folder_of_peer = folder / peer.name
    python = folder_of_peer / "bin" / "python"
    stamp, wanted = folder_of_peer / ".installed", " ".join(peer.requirements)
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted and python.exists():
        return Environment(peer, python)
    steps = (
        [sys.executable, "-m", "venv", "--clear", str(folder_of_peer)],
        [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *peer.requirements],
        [str(python), "-c", peer.statement],
    )
    for step in steps:
        if reason := _failure(step):
            return Environment(peer, None, reason)
    stamp.write_text(wanted, encoding="utf-8")
    (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    return Environment(peer, python)


def _failure(command: list[str]) -> str:
    """Run a command; return one line with the reason if it failed, otherwise an empty string."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1200)
    except (OSError, subprocess.TimeoutExpired) as error:
        return type(error).__name__
    if done.returncode == 0:
        return ""
    lines = [line for line in done.stderr.splitlines() if line.strip()] or ["no message"]
    errors = [line for line in lines if line.startswith("ERROR")] or lines[-1:]
    return _ADDRESS.sub("(address)", errors[-1])[:200]
