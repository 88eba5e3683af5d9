"""Run the conformance suite against gateways and servers on this machine: `python scripts/scoreboard.py FOLDER`.

FOLDER holds what the index has of others, each in an environment of its own; `--install` makes it. A gateway gets the
configuration below and sends to a scripted provider on 127.0.0.1; nothing leaves the machine. The results go to
docs/scoreboard.json, and `make docs` writes them into docs/scoreboard.md. `--only NAME` replaces the rows of one.

A lane is the wire of the client and the wire of the provider. A server has one wire and no provider after it, so only
what it accepts and streams is counted.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple
from urllib.error import HTTPError
from urllib.request import urlopen

from segue.testing.conformance.cases import VERSION, load_wire, wire_names

ROOT: Final = Path(__file__).parent.parent
RESULTS: Final = ROOT / "docs" / "scoreboard.json"
CHAT, RESPONSES, ANTHROPIC, GOOGLE = "openai-chat", "openai-responses", "anthropic-messages", "google-genai"
_KEY: Final = "sk-" + "0123456789abcdef" * 2
_LONGEST: Final = 1500
_LLAMA: Final = """
import sys, time
from pathlib import Path
import xllamacpp as llama
from servers import tiny_model

tiny_model.WINDOW = 16384
tiny_model.write_tiny_model(Path("tiny.gguf"))
given = llama.CommonParams()
given.model.path, given.hostnames, given.port = "tiny.gguf", ["127.0.0.1"], int(sys.argv[1])
given.n_ctx, given.n_predict, given.n_parallel = 16384, 48, 1
given.cpuparams.n_threads = given.cpuparams_batch.n_threads = 1
server = llama.Server(given)
while True:
    time.sleep(1)
"""


class Lane(NamedTuple):
    """What the client sends, and what the provider gets."""

    wire: str
    provider: str | None
    model: str | None = None
    headers: tuple[str, ...] = ()


class Setting(NamedTuple):
    """What a program is started with."""

    folder: Path
    home: Path
    port: int
    upstream: int

    @property
    def url(self) -> str:
        """The address of the scripted provider."""
        return f"http://127.0.0.1:{self.upstream}"


class Contender(NamedTuple):
    """A program: what installs it, what starts it, and its lanes."""

    name: str
    package: str
    install: str
    lanes: tuple[Lane, ...]
    start: Callable[[Setting, Lane], Sequence[str]] | None = None
    note: str = ""


def _write(path: Path, value: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value, indent=1), "utf-8")
    return path


def _node(folder: Path) -> str:
    """Return the Node of the index: with an older one, a gateway fails at every request."""
    found = folder / "node_modules" / "node" / "bin" / "node"
    return str(found) if found.exists() else "node"


def _models(wire: str) -> list[str]:
    rows = load_wire(wire)
    return [*dict.fromkeys((rows.model, *(case.model for case in rows.cases if case.model)))]


def _litellm(given: Setting, _: Lane) -> Sequence[str]:
    places = {
        CHAT: ("openai", "/v1"),
        RESPONSES: ("openai", "/v1"),
        ANTHROPIC: ("anthropic", ""),
        GOOGLE: ("gemini", "/v1beta"),
    }
    models = [
        {
            "model_name": name,
            "litellm_params": {"model": f"{provider}/{name}", "api_base": given.url + path, "api_key": "any"},
        }
        for wire, (provider, path) in places.items()
        for name in _models(wire)
    ]
    config = {"model_list": models, "general_settings": {"master_key": _KEY}}
    file = _write(given.home / "litellm.yaml", config)
    program = given.folder / "litellm" / "bin" / "litellm"
    return [str(program), "--config", str(file), "--host", "127.0.0.1", "--port", str(given.port)]


def _rosetta(given: Setting, _: Lane) -> Sequence[str]:
    paths = {CHAT: "/v1", RESPONSES: "/v1", ANTHROPIC: "", GOOGLE: ""}
    types = {CHAT: "openai_chat", RESPONSES: "openai_responses", ANTHROPIC: "anthropic", GOOGLE: "google"}
    config = {
        "providers": {
            wire: {"type": types[wire], "api_key": "any", "base_url": given.url + path} for wire, path in paths.items()
        },
        "models": {
            name: {"provider": wire, "capabilities": ["text", "vision", "tools"]}
            for wire in paths
            for name in _models(wire)
        },
        "server": {"host": "127.0.0.1", "port": given.port, "open_on_no_keys": True},
    }
    file = _write(given.home / "config.jsonc", config)
    program = given.folder / "llm-rosetta" / "bin" / "llm-rosetta-gateway"
    return [str(program), "--config", str(file), "--no-banner", "--data-dir", str(given.home / "data")]


def _router(given: Setting, lane: Lane) -> Sequence[str]:
    path, used = ("messages", ["Anthropic"]) if lane.provider == ANTHROPIC else ("chat/completions", [])
    names = _models(lane.provider or CHAT)
    provider = {
        "name": "scripted",
        "api_base_url": f"{given.url}/v1/{path}",
        "api_key": "any",
        "models": names,
        **({"transformer": {"use": used}} if used else {}),
    }
    config = {
        "HOST": "127.0.0.1",
        "PORT": given.port,
        "LOG": False,
        "NON_INTERACTIVE_MODE": True,
        "Providers": [provider],
        "Router": {"default": f"scripted,{names[0]}"},
    }
    _write(given.home / ".claude-code-router" / "config.json", config)
    package = given.folder / "node_modules" / "@musistudio" / "claude-code-router"
    return [_node(given.folder), str(package / "dist" / "cli.js"), "start"]


def _portkey(given: Setting, _: Lane) -> Sequence[str]:
    package = given.folder / "node_modules" / "@portkey-ai" / "gateway"
    return [_node(given.folder), str(package / "build" / "start-server.js"), f"--port={given.port}", "--headless"]


def _emulator(given: Setting, _: Lane) -> Sequence[str]:
    return [sys.executable, "-m", "segue", "emulate", "--port", str(given.port)]


def _llama(given: Setting, _: Lane) -> Sequence[str]:
    program = f"import sys; sys.path.insert(0, {str(ROOT / 'tests')!r})\n{_LLAMA}"
    python = given.folder / "llama" / "bin" / "python"
    return [str(python), str(_write(given.home / "server.py", program)), str(given.port)]


def _portkey_lane(wire: str, provider: str, path: str) -> Lane:
    headers = (f"x-portkey-provider={provider}", "x-portkey-custom-host={upstream}" + path)
    return Lane(wire, wire, None, headers)


_OWN: Final = tuple(Lane(wire, wire) for wire in (CHAT, RESPONSES, ANTHROPIC, GOOGLE))
_ACROSS: Final = (Lane(CHAT, ANTHROPIC, "claude-opus-4-8"), Lane(ANTHROPIC, RESPONSES, "gpt-5.4"))
CONTENDERS: Final = (
    Contender(
        "segue",
        "segue-llm",
        "pip install 'segue-llm[gateway,cli]'",
        (
            *_OWN,
            Lane(CHAT, ANTHROPIC, "anthropic/claude-opus-4-8"),
            Lane(ANTHROPIC, RESPONSES, "openai/gpt-5.4"),
        ),
        note="The suite, the scripted provider and this gateway are one project and share their decoders.",
    ),
    Contender("LiteLLM proxy", "litellm", "pip install 'litellm[proxy]'", (*_OWN, *_ACROSS), _litellm),
    Contender("llm-rosetta gateway", "llm-rosetta", "pip install 'llm-rosetta[gateway]'", (*_OWN, *_ACROSS), _rosetta),
    Contender(
        "claude-code-router",
        "@musistudio/claude-code-router",
        "npm install @musistudio/claude-code-router@2.0.0",
        (Lane(ANTHROPIC, ANTHROPIC), Lane(ANTHROPIC, CHAT)),
        _router,
        note="3.1.1 lacks a dependency. It serves one wire.",
    ),
    Contender(
        "Portkey gateway",
        "@portkey-ai/gateway",
        "npm install @portkey-ai/gateway@1.15.2 hono@4.9.7 @hono/node-server@1.13.7",
        (
            _portkey_lane(CHAT, "openai", "/v1"),
            _portkey_lane(RESPONSES, "openai", "/v1"),
            _portkey_lane(ANTHROPIC, "anthropic", "/v1"),
            _portkey_lane(CHAT, "anthropic", "/v1")._replace(provider=ANTHROPIC, model="claude-opus-4-8"),
        ),
        _portkey,
        note=(
            "The provider is chosen by headers of each request. With the newest versions of the packages that it is"
            " built on, it answers every streamed request with status 500, so older ones are installed. Where a client"
            " of Chat sets no `max_tokens`, Claude refuses what it sends: all but five cases of the last lane."
        ),
    ),
    Contender(
        "llama.cpp server",
        "xllamacpp",
        "pip install xllamacpp",
        tuple(Lane(wire, None, "tiny") for wire in (CHAT, RESPONSES, ANTHROPIC)),
        _llama,
        note=(
            "With a model of 300 KB that calls tools and knows nothing (`tests/servers/tiny_model.py`), and a window of"
            " 16,384 tokens: what the server accepts and streams. With SmolLM2 of 135 million parameters, two busy"
            " processors read some 20 tokens a second, and requests of the suite take longer than its minute."
        ),
    ),
    Contender(
        "the emulator of segue",
        "segue-llm",
        "pip install 'segue-llm[cli,serve]'",
        tuple(Lane(wire, None) for wire in (CHAT, RESPONSES, ANTHROPIC, GOOGLE)),
        _emulator,
    ),
)
NOT_RUN: Final = {
    "Bifrost": "the package of the index (`@maximhq/bifrost`) downloads the program from another host",
}


def _install(folder: Path) -> None:
    for name, wanted in (
        ("litellm", "litellm[proxy]"),
        ("llm-rosetta", "llm-rosetta[gateway]"),
        ("llama", "xllamacpp"),
    ):
        subprocess.run([sys.executable, "-m", "venv", folder / name], check=True)
        subprocess.run([folder / name / "bin" / "pip", "install", "-q", wanted], check=True)
    subprocess.run([folder / "llama" / "bin" / "pip", "install", "-q", "gguf"], check=True)
    portkey = ["@portkey-ai/gateway@1.15.2", "hono@4.9.7", "@hono/node-server@1.13.7"]
    packages = ["node@24", *portkey, "@musistudio/claude-code-router@2.0.0"]
    subprocess.run([shutil.which("npm") or "npm", "install", "--prefix", str(folder), *packages], check=True)


def _version(folder: Path, package: str) -> str:
    if package == "segue-llm":
        from segue import __version__

        return __version__
    if package.startswith("@"):
        return json.loads((folder / "node_modules" / package / "package.json").read_text("utf-8"))["version"]
    wanted = package.replace("-", "_")
    found = next(folder.glob(f"*/lib/python*/site-packages/{wanted}-*.dist-info"))
    return found.name.removeprefix(f"{wanted}-").removesuffix(".dist-info")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@contextmanager
def _running(contender: Contender, folder: Path, lane: Lane, upstream: int) -> Generator[str]:
    """Run a program with a new home folder until it listens; gives its URL."""
    start = contender.start
    if start is None:
        yield "gateway"
        return
    with TemporaryDirectory() as home:
        given = Setting(folder.resolve(), Path(home), _free_port(), upstream)
        log = given.home / "log"
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": home,
            "CONFORMANCE_KEY": _KEY,
            "TRUSTED_CUSTOM_HOSTS": "127.0.0.1,localhost",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }
        with (
            log.open("wb") as output,
            subprocess.Popen(start(given, lane), cwd=home, env=environment, stdout=output, stderr=output) as started,
        ):
            try:
                _wait_for(given.port, started, log)
                yield f"http://127.0.0.1:{given.port}"
            finally:
                started.kill()


def _wait_for(port: int, started: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(1200):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if started.poll() is not None:
                break
            time.sleep(0.1)
            continue
        if _is_ready(port):
            time.sleep(1)
            return
        time.sleep(0.5)
    raise RuntimeError(f"it does not listen: {log.read_text('utf-8', 'replace')[-2000:]}")


def _is_ready(port: int) -> bool:
    """Whether a server that listens has loaded its model."""
    try:
        urlopen(f"http://127.0.0.1:{port}/health", timeout=10).close()
    except HTTPError as error:
        return error.code != 503
    except OSError:
        return False
    return True


def _measure(contender: Contender, folder: Path, lane: Lane) -> dict[str, Any]:
    upstream = _free_port()
    with _running(contender, folder, lane, upstream) as url:
        arguments = [url, "--wire", lane.wire, "--json"]
        if lane.provider is not None and contender.start is not None:
            arguments += ["--upstream", str(upstream), "--key-variable", "CONFORMANCE_KEY"]
        if lane.model is not None:
            arguments += ["--model", lane.model]
        for header in lane.headers:
            arguments += ["--header", header.format(upstream=f"http://127.0.0.1:{upstream}")]
        done = subprocess.run(
            [sys.executable, "-m", "segue", "conformance", *arguments],
            env={**os.environ, "CONFORMANCE_KEY": _KEY},
            capture_output=True,
            text=True,
            timeout=_LONGEST,
            check=False,
        )
    if not done.stdout.startswith("{"):
        raise RuntimeError(f"{contender.name}: {done.stderr[-2000:]}")
    return summarise(json.loads(done.stdout), lane, arguments[1:])


def summarise(card: Mapping[str, Any], lane: Lane, arguments: Sequence[str]) -> dict[str, Any]:
    """Count what a card says, and keep why each case failed."""
    cases = card["cases"]
    counts = {
        name: [sum(values), len(values)]
        if (values := [each[name] for each in cases if each[name] is not None])
        else None
        for name in ("accepted", "kept", "reported", "streamed")
    }
    shown = re.sub(r"(127\.0\.0\.1:|--upstream )\d+", r"\g<1>PORT", " ".join(arguments))
    return {
        "wire": lane.wire,
        "provider": lane.provider,
        "model": lane.model,
        "command": f"segue conformance {'gateway' if lane.provider and 'PORT' not in shown else 'URL'} {shown}",
        "cases": len(cases),
        "passed": sum(each["verdict"] == "passed" for each in cases),
        **counts,
        "failed": {
            each["case"]: {"verdict": each["verdict"], "fault": _short(each["faults"])}
            for each in cases
            if each["verdict"] != "passed"
        },
    }


def _short(faults: Sequence[str]) -> str:
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1", faults[0] if faults else "")
    return re.sub(r"\b(?=[0-9a-f-]*\d)[0-9a-f][0-9a-f-]{15,}\b", "ID", text)[:160]


def _known() -> dict[str, Any]:
    """Read the results that are kept, by name."""
    found: list[dict[str, Any]] = json.loads(RESULTS.read_text("utf-8"))["programs"] if RESULTS.exists() else []
    return {each["name"]: each for each in found}


def main() -> None:
    """Run everything, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--install", action="store_true", help="install the others first")
    parser.add_argument("--only", action="append", help="run this one only; repeatable", metavar="NAME")
    given = parser.parse_args()
    assert set(wire_names()) == {CHAT, RESPONSES, ANTHROPIC, GOOGLE}
    if given.install:
        _install(given.folder)
    for contender in CONTENDERS:
        if given.only and contender.name not in given.only:
            continue
        lanes = [_measure(contender, given.folder, lane) for lane in contender.lanes]
        known = _known()
        known[contender.name] = {
            "name": contender.name,
            "version": _version(given.folder, contender.package),
            "install": contender.install,
            "note": contender.note,
            "date": datetime.now(UTC).date().isoformat(),
            "lanes": lanes,
        }
        for lane in lanes:
            print(contender.name, lane["wire"], lane["provider"], f"{lane['passed']}/{lane['cases']}", flush=True)
        programs = [known[each.name] for each in CONTENDERS if each.name in known]
        _write(
            RESULTS,
            json.dumps(
                {
                    "suite": VERSION,
                    "programs": programs,
                    "notRun": {name: why for name, why in NOT_RUN.items() if name not in known},
                },
                indent=1,
            )
            + "\n",
        )


if __name__ == "__main__":
    main()
