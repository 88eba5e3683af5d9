"""Peers that run in their own environments and measure one round on request."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson
from peers import Environment

_FOLDER: Final = Path(__file__).resolve().parent / "peer_side"
_MODULES: Final[Mapping[str, str]] = {
    "any-llm": "any_llm_side",
    "langchain": "langchain_side",
    "litellm": "litellm_side",
    "llm-rosetta": "llm_rosetta_side",
    "pydantic-ai": "pydantic_ai_side",
    "strands": "strands_side",
}


@dataclass(frozen=True)
class Task:
    """A history, its target, and the request that segue made, which the reference serializes."""

    name: str
    target: Mapping[str, str]
    context: object
    body: object
    source: object = None
    """The request for the model that wrote the history, for peers without a format for stored histories."""
    dumps: str = ""
    """How the peer's result is serialized, if that is timed."""
    reads: bool = False
    """Whether decoding the source is timed too."""


class PeerProcess:
    """A peer that has built its tasks, or the reason why it could not."""

    def __init__(self, name: str, reasons: Mapping[str, str], child: subprocess.Popen[str] | None = None) -> None:
        self.name = name
        self.reasons = reasons
        self._child = child

    def sampler(self, task: str) -> Callable[[], Mapping[str, float]]:
        """Return the function that measures one round of a task in the peer's process."""
        return lambda: self._sample(task)

    def _sample(self, task: str) -> Mapping[str, float]:
        child = self._child
        assert child is not None
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(task + "\n")
        child.stdin.flush()
        sample: dict[str, float] = json.loads(child.stdout.readline())
        return {
            self.name: sample["peer"],
            f"{self.name}: yardstick": sample["yardstick"],
            f"{self.name}: control": sample["control"],
        }


@contextmanager
def start_peer(environment: Environment, tasks: Sequence[Task], sample_ns: int) -> Generator[PeerProcess]:
    """Start a peer with its tasks; a peer that cannot start has a reason for each, which is not an error."""
    name = environment.peer.name
    if environment.python is None:
        yield PeerProcess(name, {task.name: environment.reason for task in tasks})
        return
    with tempfile.TemporaryDirectory() as folder:
        given = Path(folder) / "tasks.json"
        given.write_bytes(orjson.dumps({"sample_ns": sample_ns, "tasks": tasks}))  # orjson supports dataclasses
        child = subprocess.Popen(
            [str(environment.python), str(_FOLDER / "worker.py"), _MODULES[name], str(given)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        )
        with child:
            assert child.stdout is not None
            line = child.stdout.readline()
            if line:
                yield PeerProcess(name, json.loads(line), child)
                assert child.stdin is not None
                child.stdin.close()
            else:
                yield PeerProcess(name, {task.name: f"{name} did not start" for task in tasks})
