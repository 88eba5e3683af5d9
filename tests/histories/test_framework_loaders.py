"""The frameworks' own loaders accept what segue writes, and their second save equals the first."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from histories.agent_programs import need_package
from histories.framework_loaders import LOADERS
from histories.framework_programs import run
from histories.test_samples import FILES
from histories.truth import SHARED
from segue import History, read_history, save_history, write_history
from segue.errors import EmptyConversation
from segue.histories.registry import FORMATS

pytestmark = pytest.mark.proof

PACKAGES = {
    "langchain": "langchain_core",
    "pydantic-ai": "pydantic_ai",
    "openai-agents": "agents",
    "litellm": "litellm",
    "hf-messages": "datasets",
    "google-adk": "google.adk",
    "strands": "strands",
    "inspect-ai": "inspect_ai",
    "llama-index": "llama_index",
    "ag-ui": "ag_ui",
    "haystack": "haystack",
    "semantic-kernel": "semantic_kernel",
    "agent-framework": "agent_framework",
    "autogen": "autogen_core",
    "ag2": "ag2",
    "mcp-sampling": "mcp",
    "sharegpt": "datasets",
    "atif": "atif",
}
SCRIPT = Path(__file__).with_name("framework_loaders.py")


def sources() -> dict[str, History]:
    """Give the samples of every format, real sessions of agents if they are there."""
    found: dict[str, History] = {
        f"{name} {sample.name}": read_history(sample.source, format=name)
        for name, record in FORMATS.items()
        for sample in record.samples()
    }
    if SHARED.is_dir():
        found |= {" ".join(key): read_history(SHARED / file) for key, file in FILES.items()}
    return found


def write_all(name: str, folder: Path, *, projected: bool) -> list[Path]:
    """Write every source in one format."""
    paths: list[Path] = []
    for at, (source, history) in enumerate(sources().items()):
        if source.partition(" ")[0] == name:
            continue  # what was read from this format is written as it was, whoever wrote it
        target = FORMATS[name].example if projected else None
        try:
            written = write_history(history, format=name, model=target)
        except EmptyConversation:
            continue
        paths.append(save_history(written, folder / str(at))[0])
    assert len(paths) > 20
    return paths


def expect_same(paths: list[Path], output: str) -> None:
    """Compare what a loader has saved, one document in each line, with what was written."""
    lines = output.splitlines()
    assert len(lines) == len(paths)
    for path, line in zip(paths, lines, strict=True):
        assert json.loads(line) == json.loads(path.read_bytes()), path


@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.parametrize("model", [None, "example"], ids=["as it was written", "projected"])
def test_the_loader_accepts_what_is_written_and_saves_the_same(name, model, tmp_path):
    paths = write_all(name, tmp_path, projected=model is not None)
    expect_same(paths, run(PACKAGES[name], str(SCRIPT), name, *map(str, paths)))


@pytest.mark.parametrize("projected", [False, True], ids=["as it was written", "projected"])
def test_the_vercel_sdk_accepts_what_is_written_and_gives_the_same(projected, tmp_path):
    folder = need_package("ai@6.0.326")
    paths = write_all("vercel-ui", tmp_path, projected=projected)
    script = SCRIPT.with_name("vercel_loader.mjs")
    command = ["node", str(script), str(folder), *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    expect_same(paths, done.stdout)
