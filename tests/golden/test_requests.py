"""What earlier versions stored is sent as they would have sent it: the same bytes, the same report, the same reasoning.

A provider's cache holds what an earlier version sent, and reasoning is valid only after exactly that. So a request for
a stored conversation changes only where a row of `EXEMPTIONS` says why, and what it costs.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, NamedTuple, final

import pytest

from golden.requests import Row, project_all, read_rows, signatures_in
from golden.served import continue_all
from segue.protocols.anthropic_messages import request as anthropic_request

FOLDERS: Final = sorted(path.parent for path in Path(__file__).parent.glob("*/requests.jsonl.gz"))


@final
class Exemption(NamedTuple):
    """Requests that are not what they were. `place` is a pattern of "FOLDER: FILE for TARGET with OPTIONS".

    `fields` are what differs: `body`, `codes`, `headers`, `stamp`, `error`, `status`. `given_up` is how many blocks of
    reasoning each of them loses at most, which the cost has to justify; 0 for none.
    """

    place: str
    fields: frozenset[str]
    reason: str
    cost: str
    given_up: int = 0


_REASONING: Final = frozenset({"body", "codes", "stamp"})
_FORM: Final = (
    "the system prompt keeps the form that it was sent with, a string or a block, when cache marks begin or end"
)
_GAINED: Final = "none: reasoning is sent that was withheld; where marks begin, the system prompt has none of its own"
EXEMPTIONS: Final[tuple[Exemption, ...]] = (
    Exemption("8bc4b52: *.jsonl for anthropic/claude-opus-5-5 * with some", _REASONING, _FORM, _GAINED),
    Exemption("8bc4b52: claude-marked.jsonl for anthropic/claude-opus-5-5 * with none", _REASONING, _FORM, _GAINED),
    Exemption(
        "8bc4b52: claude-marks-begin.jsonl for anthropic/claude-opus-5-5 * with none",
        _REASONING,
        _FORM,
        "the oldest block, in place of which the two newest are sent",
        given_up=1,
    ),
    Exemption(
        "8bc4b52: *.json for ollama/qwen3 ollama-chat *",
        frozenset({"body", "codes"}),
        "the chat template of Qwen refuses a system message that is not the first, at Ollama too",
        "the cached prefix from that message on, once",
    ),
    Exemption(
        "8bc4b52: google-interactions.json for *",
        frozenset({"body", "codes"}),
        "an image keeps the resolution that was asked for, where the target has a field for it",
        "the cached prefix from that image on, once, where the conversation came from another protocol",
    ),
    Exemption(
        "8bc4b52: everything.json for cohere/command-a-03-2025 cohere-chat *",
        frozenset({"body", "codes"}),
        "tools that are all strict are sent with the switch that Cohere has for all of them",
        "slower first requests: Cohere prepares strict tools (cohere 7.3.1: strict_tools)",
    ),
    Exemption(
        "8bc4b52: gateway, * store",
        frozenset({"body"}),
        "the cache key: a conversation is named by what its client gives, and by the first request of a chain",
        "one miss of the provider's cache for a conversation that was stored before",
    ),
)
"""An exemption that nothing needs is an error: remove it."""


REGRADED: Final = {"option_removed opaque": "option_removed content"}
"""What a report says now -> what it said before of the same change. No model reads a user id, a session id or the life
of a cache, so that a target without them loses no content."""


def _graded_as(before: Any, now: Any) -> bool:
    """Whether two lists of changes differ only in what the same changes are said to lose."""
    if before is None or now is None or len(before) != len(now):
        return False
    return all(old == new or REGRADED.get(new) == old for old, new in zip(before, now, strict=True))


class Findings:
    """The requests that differ, and the exemptions that explain some of them."""

    def __init__(self, exemptions: Iterable[Exemption]) -> None:
        self.exemptions = tuple(exemptions)
        self.used: set[int] = set()
        self.unexplained: list[str] = []

    def compare(self, place: str, before: dict[str, Any], now: dict[str, Any]) -> None:
        """Compare one request with what it was."""
        differing = {key for key in before.keys() | now.keys() if before.get(key) != now.get(key)}
        if _graded_as(before.get("codes"), now.get("codes")):
            differing.discard("codes")
        if not differing:
            return
        lost = [each for each in signatures_in(before["body"]) if each not in signatures_in(now["body"])]
        for number, row in enumerate(self.exemptions):
            if fnmatchcase(place, row.place) and differing <= row.fields and len(lost) <= row.given_up:
                self.used.add(number)
                return
        told = f", and {len(lost)} blocks of reasoning are not sent any more" if lost else ""
        shown = [f"  {key}: {before.get(key)}\n  now {key}: {now.get(key)}" for key in sorted(differing)]
        self.unexplained.append("\n".join([f"{place}: {', '.join(sorted(differing))} changed{told}", *shown]))

    def judge(self) -> None:
        """Fail if a change is not explained, or an exemption explains nothing."""
        count = len(self.unexplained)
        assert not count, f"{count} stored conversations are sent otherwise:\n" + "\n".join(self.unexplained[:3])
        idle = [row.place for number, row in enumerate(self.exemptions) if number not in self.used]
        assert not idle, f"these exemptions are not needed any more: {idle}"


def _fields(row: Row) -> dict[str, Any]:
    return {name: getattr(row, name) for name in ("body", "error", "codes", "headers", "stamp")}


def _judge_sessions(folder: Path, exemptions: Iterable[Exemption], *, only: str | None = None) -> None:
    before = [row for row in read_rows(folder / "requests.jsonl.gz") if only is None or row.file == only]
    now = list(project_all(folder, only=only))
    assert [row.name for row in before] == [row.name for row in now]
    found = Findings(exemptions)
    for old, new in zip(before, now, strict=True):
        found.compare(f"{folder.name}: {old.name}", _fields(old), _fields(new))
    found.judge()


def _for(folder: Path, kind: Callable[[Exemption], bool]) -> list[Exemption]:
    return [row for row in EXEMPTIONS if fnmatchcase(folder.name, row.place.partition(":")[0]) and kind(row)]


def _is_served(row: Exemption) -> bool:
    return row.place.partition(": ")[2].startswith("gateway, ")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_a_stored_conversation_is_sent_as_it_was(folder: Path) -> None:
    _judge_sessions(folder, _for(folder, lambda row: not _is_served(row)))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_a_gateway_with_a_stored_database_sends_what_it_sent(folder: Path, tmp_path: Path) -> None:
    lines = gzip.decompress((folder / "served.requests.jsonl.gz").read_bytes()).splitlines()
    found = Findings(_for(folder, _is_served))
    for old, new in zip(map(json.loads, lines), continue_all(folder, tmp_path), strict=True):
        found.compare(f"{folder.name}: gateway, {old['name']}", old, new)
    found.judge()


# -- the law finds what it is for ------------------------------------------------------------------------------------


def test_another_form_of_the_system_prompt_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anthropic_request, "_encode_system", lambda system: [{"type": "text", "text": system}])
    with pytest.raises(AssertionError, match=r"body, .*stamp changed, and 3 blocks of reasoning are not sent any more"):
        _judge_sessions(FOLDERS[-1], (), only="claude-text.jsonl")


def test_an_exemption_covers_what_it_names_and_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Exemption("*: claude-text.jsonl for anthropic/*", _REASONING, "planted", "all reasoning", given_up=3)
    idle = row._replace(place="*: responses.jsonl for anthropic/*")
    with pytest.raises(AssertionError, match="not needed any more"):
        _judge_sessions(FOLDERS[-1], (idle,), only="responses.jsonl")
    monkeypatch.setattr(anthropic_request, "_encode_system", lambda system: [{"type": "text", "text": system}])
    with pytest.raises(AssertionError, match="3 blocks of reasoning are not sent"):
        _judge_sessions(FOLDERS[-1], (row._replace(given_up=2),), only="claude-text.jsonl")
    _judge_sessions(FOLDERS[-1], (row,), only="claude-text.jsonl")
