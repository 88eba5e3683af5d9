"""Rules of the project: tests use no network, no module imports the package root, source files are short."""

from __future__ import annotations

import ast
import re
import socket
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src" / "segue").rglob("*.py"))
NAMES_THE_ROOT = re.compile(r"import\s.*\bsegue\b(?!\.)|from\s+segue\s+import")
"""Found in each module that imports the root, and in few others: parsing all modules takes seconds."""

# Documentation addresses (RFC 5737, RFC 3849, RFC 2606): no server has them, so a broken guard reaches no one.
OUTSIDE = {
    "an IPv4 address": (socket.AF_INET, ("192.0.2.1", 9)),
    "an IPv6 address": (socket.AF_INET6, ("2001:db8::1", 9)),
    "a name": (socket.AF_INET, ("example.invalid", 9)),
}


@pytest.mark.parametrize(("family", "address"), OUTSIDE.values(), ids=OUTSIDE.keys())
@pytest.mark.parametrize("method", ["connect", "connect_ex"])
def test_no_test_can_connect_beyond_this_machine(family, address, method):
    with socket.socket(family) as one, pytest.raises(AssertionError, match="stay on this machine"):
        getattr(one, method)(address)


def test_no_test_can_send_a_datagram_beyond_this_machine():
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one,
        pytest.raises(AssertionError, match="stay on this machine"),
    ):
        one.sendto(b"hello", ("192.0.2.1", 9))


def test_no_test_can_look_up_a_name_beyond_this_machine():
    with pytest.raises(AssertionError, match="stay on this machine"):
        socket.getaddrinfo("example.invalid", 80)


def test_a_test_may_talk_to_a_server_on_this_machine():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as one:
        other, _ = server.accept()
        with other:
            one.sendall(b"hello")
            assert other.recv(5) == b"hello"


def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


def test_no_module_imports_the_package_root():
    """The import-linter contract cannot express this: the package root is the parent of every layer.

    Errors carry values of layers above them, and name their types by the public face; nothing is imported for that.
    """
    named = [path for path in SOURCES if NAMES_THE_ROOT.search(path.read_text(encoding="utf-8"))]
    importing = [str(path.relative_to(ROOT)) for path in named if "segue" in _imports(path)]
    assert importing == ["src/segue/errors.py"]
    import_line = r"^( *)import segue\b"
    assert re.findall(import_line, (ROOT / importing[0]).read_text(encoding="utf-8"), re.MULTILINE) == ["    "]


def test_source_files_are_short():
    lengths = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    assert {path: length for path, length in lengths.items() if length > 800} == {}
