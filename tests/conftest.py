"""What holds for every test: no network beyond this machine, the same examples on every run, skips named in a line."""

from __future__ import annotations

import gc
import ipaddress
import os
import signal
import socket
import ssl
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from xdist import plugin

from merging import merge, run_rows
from property_testing import fix_constants
from protocols import traffic
from segue.client.http.base_urls import URL_VARIABLES

os.environ["SEGUE_LOCAL_SERVERS"] = "off"  # a server beside the tests, on a usual port, is none of theirs
_SETTINGS = tempfile.TemporaryDirectory(prefix="segue-tests-")  # removed when the tests end
os.environ["XDG_CONFIG_HOME"] = _SETTINGS.name  # the developer's own settings and keys are none of theirs either
os.environ.setdefault(
    "SEGUE_TEST_DATA", os.environ.get("XDG_DATA_HOME", "")
)  # only tests with a fetched model look there
os.environ["XDG_DATA_HOME"] = _SETTINGS.name
for _variables in URL_VARIABLES.values():
    for _variable in _variables:
        os.environ.pop(_variable.name, None)  # nor do their requests go where the developer's go
settings.load_profile("default")  # regardless of the environment: Hypothesis itself would look for CI
fix_constants()

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what runs in its background deaf to Ctrl-C, and programs that tests start would be deaf as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--merge-cases`."""
    parser.addoption("--merge-cases", action="store_true", help="run the rows of a table as one test, which is faster")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Start two workers for each core (`-n auto`): many tests wait, for a server, a process or a clock.

    `-n logical` starts one for each, for heavy tests.
    """
    if config.option.numprocesses == "logical" or "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None  # as xdist has it
    return 2 * plugin.pytest_xdist_auto_num_workers(config)


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Merge the rows of tables."""
    yield
    if metafunc.config.getoption("--merge-cases"):
        merge(metafunc)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run the rows that were merged."""
    return run_rows(pyfuncitem) or None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that wait most, and skip what needs the recorded exchanges where there are none.

    Workers that are done take over the last tests of others: if the tests of the gateway were last, all would wait.
    """
    items.sort(key=lambda item: GATEWAY not in item.path.parents)
    if not traffic.exchanges():
        for item in items:
            if item.get_closest_marker("traffic") is not None:
                item.add_marker(pytest.mark.skip(reason="on recorded exchanges (no ../shared/traffic)"), append=False)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Exclude the collected tests from garbage collection: they live as long as the session.

    Otherwise each full collection, and each `gc.collect()` of a test, would traverse all of them, which takes a second.
    What tests leave behind is little, and collected less often than by default.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()  # with the little garbage there is: finding it takes as long as the imports of an SDK
        gc.set_threshold(20_000, 20, 20)
        gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name what was skipped and why, one line for each reason.

    A reason reads on from the number: `skipped: 12 tests in a browser (no chromium)`.
    """
    skipped = [report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.getreports("skipped")]
    for reason, count in sorted(Counter(skipped).items()):
        kind = reason if reason.endswith(")") else f"({reason})"
        terminalreporter.write_line(f"skipped: {count} {'test' if count == 1 else 'tests'} {kind}")


GATEWAY = Path(__file__).parent / "gateway"
PUBLIC_AUTHORITIES = 50_000
"""Bytes of a file of certificates that no test made; nothing beyond this machine has to be trusted here."""


class NetworkRefused(AssertionError):
    """A test tried to leave this machine. An `AssertionError`, so that code which expects `OSError` cannot hide it."""


def is_local(address: object) -> bool:
    """Return whether an address stays on this machine: loopback by number or by name, or a Unix socket's path."""
    if not isinstance(address, tuple):
        return True
    host = address[0]
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if host in {None, "", "localhost"}:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@pytest.fixture(scope="session", autouse=True)
def only_loopback() -> Iterator[None]:
    """Refuse every connection, datagram and look-up that would leave this machine."""

    def guarded(original: Callable[..., object], place: int) -> Callable[..., object]:
        def call(*arguments: object, **options: object) -> object:
            if not is_local(arguments[place]):
                raise NetworkRefused(f"tests stay on this machine, and this one asked for {arguments[place]!r}")
            return original(*arguments, **options)

        return call

    def look_up(host: object, *arguments: object, **options: object) -> object:
        if not is_local((host,)):
            raise NetworkRefused(f"tests stay on this machine, and this one looked for {host!r}")
        return getaddrinfo(host, *arguments, **options)

    def load(self: ssl.SSLContext, cafile: str | None = None, capath: str | None = None, cadata: object = None) -> None:
        """Load what a test made, and not the public authorities: that takes 40 ms for each client of a provider."""
        if cadata is not None or (cafile is not None and Path(cafile).stat().st_size < PUBLIC_AUTHORITIES):
            load_verify_locations(self, cafile, capath, cadata)

    getaddrinfo: Callable[..., object] = socket.getaddrinfo
    load_verify_locations: Callable[..., object] = ssl.SSLContext.load_verify_locations
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl.SSLContext, "load_verify_locations", load)
        patch.setattr(ssl.SSLContext, "load_default_certs", lambda *_: None)
        patch.setattr(socket.socket, "connect", guarded(socket.socket.connect, 1))
        patch.setattr(socket.socket, "connect_ex", guarded(socket.socket.connect_ex, 1))
        patch.setattr(socket.socket, "sendto", guarded(socket.socket.sendto, -1))
        patch.setattr(socket, "getaddrinfo", look_up)
        yield
