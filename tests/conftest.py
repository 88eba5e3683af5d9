"""What holds for every test: no network beyond this machine, and property tests that fail the same way twice.

Hypothesis profiles: `default` looks at new examples on every run; `ci` (chosen where the variable `CI` is set) looks at
the same ones, so that a commit has one verdict. Neither has a deadline: a slow machine is no failure.
"""

from __future__ import annotations

import ipaddress
import os
import signal
import socket
from collections.abc import Callable, Iterator

import pytest
from hypothesis import settings

settings.register_profile("default", deadline=None, max_examples=100)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what runs in its background deaf to Ctrl-C, and programs that tests start would be deaf as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)


class NetworkRefused(AssertionError):
    """A test tried to leave this machine. An `AssertionError`, so that code which expects `OSError` cannot hide it."""


def is_local(address: object) -> bool:
    """Say whether an address stays on this machine: loopback by number or by name, or a Unix socket's path."""
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

    getaddrinfo: Callable[..., object] = socket.getaddrinfo
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded(socket.socket.connect, 1))
        patch.setattr(socket.socket, "connect_ex", guarded(socket.socket.connect_ex, 1))
        patch.setattr(socket.socket, "sendto", guarded(socket.socket.sendto, -1))
        patch.setattr(socket, "getaddrinfo", look_up)
        yield
