"""Answers to what the page asks: the server sends them over HTTP, the playground of the documentation in the browser.

A question is a path, its parameters, and a body; an error is one sentence.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple, TypeVar, final

import msgspec

from segue.errors import DecodeError, LoadError, SegueError
from segue.failures.classify import classify
from segue.failures.failure import FailureKind
from segue.foundation.json_text import encode_valid_json
from segue.histories.opening import find_listed, parse_session_name
from segue.histories.places import Watched
from segue.inspector.inspection import describe_given, find_target, open_conversation, wire_json
from segue.inspector.library import SHORT, Growing, Library, OpenConversation
from segue.inspector.local_sessions import list_sessions
from segue.inspector.pieces import find_image
from segue.inspector.side_by_side import SideBySide
from segue.models.catalogue import Catalogue
from segue.planning.plan import plan
from segue.planning.shown import plan_json
from segue.projection.policy import Policy, ReasoningPolicy
from segue.protocols.registry import PROTOCOLS

_MOST_ROWS: Final = 200
_LONGEST: Final = 2_000_000
"""How many rows, and how many characters of each text, one answer may have."""
_MOST_PLANNED: Final = 12
_PLANNED_TURNS: Final = 10
"""How many models one plan compares, and for how many requests."""
_LONGEST_ERROR: Final = 100_000
"""Characters of a pasted text that is read as an error of a provider if it is not a conversation."""


@final
class PageAnswer(NamedTuple):
    """An answer, with the status and the MIME type that it has over HTTP."""

    data: bytes
    status: int = 200
    kind: str = "application/json"


@final
class _Query(msgspec.Struct, frozen=True, kw_only=True):
    document: str
    target: str = ""
    reasoning: ReasoningPolicy = "auto"
    rows: tuple[int, ...] = ()
    length: int = SHORT
    beside: str = ""
    """Another target, whose request is shown in place of the stored conversation."""
    text: str = ""
    """What to find."""
    other: str = ""
    """The key of another open conversation: the one to show next to this one, both as stored, or the request before."""
    targets: tuple[str, ...] = ()
    """The models that a plan compares."""


@final
class _SessionQuery(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    title: str = ""


class _Closed(SegueError):
    """The page asks for a conversation that is no longer kept."""


class _Forbidden(SegueError):
    """The page asks for what this server does not show."""


@final
class Answers:
    """Answers the questions of a page about the conversations of a library. Several threads may ask.

    `shows_sessions` lets the page list and read the sessions of agents on this machine. `example` is a session that the
    page offers to open.
    """

    def __init__(
        self, library: Library, catalogue: Catalogue, *, shows_sessions: bool = False, example: Path | None = None
    ) -> None:
        self._library = library
        self._catalogue = catalogue
        self._shows_sessions = shows_sessions
        self._example = example
        self._of_all: Final[Mapping[str, Callable[[], object]]] = {
            "start": self._start,
            "models": lambda: [[model.full_name(), model.protocol] for model in catalogue.models],
            "sessions": lambda: list_sessions(redacts=library.redacts) if shows_sessions else [],
        }
        self._of_one: Final[Mapping[str, Callable[[_Query, OpenConversation], object]]] = {
            "inspect": self._summary,
            "follow": self._follow,
            "given": lambda _, found: describe_given(found.document),
            "facts": lambda query, found: found.inspect(query.target, query.reasoning).facts,
            "rows": self._rows,
            "plan": self._plan,
            "find": lambda query, found: self._side(query, found).find(query.text),
            "before": lambda query, found: found.inspect(query.target, query.reasoning).compare_with(
                self._find(query.other).document
            ),
        }

    def answer(self, path: str, given: Mapping[str, str], body: bytes = b"") -> PageAnswer:
        """Answer a question; `given` are the parameters of its URL."""
        try:
            if path in self._of_all:
                return PageAnswer(encode_valid_json(self._of_all[path]()))
            if path == "open":
                return self._open(given, body)
            if path == "session":
                return self._open_session(_read_question(body, _SessionQuery))
            if path.startswith("images/"):
                return self._image(path)
            if path in self._of_one or path == "wire":
                query = _read_question(body, _Query)
                found = self._find(query.document)
                if path == "wire":
                    return self._wire(query, found)
                return PageAnswer(encode_valid_json(self._of_one[path](query, found)))
        except msgspec.DecodeError as error:
            return failed(f"the page sent an invalid request: {error}; reload the page", 400)
        except _Closed as error:
            return failed(str(error), 410)
        except _Forbidden as error:
            return failed(str(error), 403)
        except SegueError as error:
            return failed(str(error), 422)
        return failed("there is no such question", 404)

    def _find(self, key: str) -> OpenConversation:
        found = self._library.find(key)
        if found is None:
            raise _Closed("this conversation is no longer open; open it again")
        return found

    def _start(self) -> object:
        first = self._library.first
        opened = None if first is None else {**first.describe(), "first": first.first_screen()}
        beside = None if self._library.beside is None else self._library.beside.describe()
        return {
            "protocols": list(PROTOCOLS),
            "opened": opened,
            "beside": beside,
            "example": self._example is not None,
        }

    def _open(self, given: Mapping[str, str], body: bytes) -> PageAnswer:
        protocol = given.get("source") or None
        if (key := given.get("document")) is not None:
            other = self._find(key)
            if not given.get("nth", "").isdecimal():
                return PageAnswer(encode_valid_json(other.describe()))
            name, found = other.name, other.opened.open_nth(int(given["nth"]), protocol)
        elif "example" in given and self._example is not None:
            name, found = self._example.name, open_conversation(self._example.read_bytes(), self._example.name, None)
        else:
            name = given.get("name", "")
            try:
                found = open_conversation(body, name or "the pasted text", protocol)
            except (LoadError, DecodeError) as error:
                return _unread(body, f"{name}: {error}" if name else str(error))
        return PageAnswer(encode_valid_json(self._library.add(name, found).describe()))

    def _open_session(self, query: _SessionQuery) -> PageAnswer:
        if not self._shows_sessions:
            raise _Forbidden("sessions are shown only to this machine; run `segue ui` without --host and --allow-host")
        name = parse_session_name(query.source)  # the page names sessions, never files
        if name is None:
            raise LoadError(f"{query.source!r} is not AGENT:ID of a session; choose one of the list")
        session = find_listed(name)
        growing = Growing(Watched(session.path), lambda: open_conversation(session, query.source, None))
        added = self._library.add(query.title or query.source, growing.open(), growing)
        return PageAnswer(encode_valid_json(added.describe()))

    def _side(self, query: _Query, found: OpenConversation) -> SideBySide:
        if query.other:
            return found.compare(self._find(query.other))
        return found.inspect(query.target, query.reasoning, query.beside).side

    def _summary(self, query: _Query, found: OpenConversation) -> object:
        if query.other:
            return found.compare(self._find(query.other)).summary()
        return found.inspect(query.target, query.reasoning, query.beside).summary()

    def _rows(self, query: _Query, found: OpenConversation) -> object:
        length = min(max(query.length, 1), _LONGEST)
        return self._side(query, found).rows(query.rows[:_MOST_ROWS], length, found.keep_image)

    def _follow(self, _: _Query, found: OpenConversation) -> object:
        """Describe the conversation again if its file has grown."""
        grown = self._library.follow(found)
        return {"grown": False} if grown is None else {"grown": True, **grown.describe()}

    def _plan(self, query: _Query, found: OpenConversation) -> object:
        """Compare what the next requests would cost at the targets; a protocol has no price, and is left out."""
        names = [name for name in query.targets if name not in PROTOCOLS][:_MOST_PLANNED]
        models = [find_target(name, found.document, self._catalogue) for name in names]
        prompt, now = found.document.prompt, time.time_ns() // 1_000_000
        policy = Policy(reasoning=query.reasoning)
        made = plan(
            prompt.context,
            models,
            turns=_PLANNED_TURNS,
            now=now,
            options=prompt.options,
            policy=policy,
            catalogue=self._catalogue,
        )
        return plan_json(made, _PLANNED_TURNS)

    def _wire(self, query: _Query, found: OpenConversation) -> PageAnswer:
        found.inspect(query.target, query.reasoning)
        model = find_target(query.target, found.document, self._catalogue)
        return PageAnswer(wire_json(found.document, model, Policy(reasoning=query.reasoning)))

    def _image(self, path: str) -> PageAnswer:
        _, document, image = path.split("/", 2)
        found = self._library.find(document)
        data = None if found is None else found.find_image(image)
        shown = None if data is None else find_image(data)
        return failed("there is no such image", 404) if shown is None else PageAnswer(shown[0], kind=shown[1])


_Question = TypeVar("_Question", _Query, _SessionQuery)


def _read_question(body: bytes, kind: type[_Question]) -> _Question:
    """Read a question of the page.

    Raises:
        msgspec.DecodeError: it is invalid.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except (UnicodeDecodeError, RecursionError) as error:
        raise msgspec.DecodeError(str(error)) from error


def failed(sentence: str, status: int) -> PageAnswer:
    """Make an answer that says what is wrong."""
    return PageAnswer(encode_valid_json({"error": sentence}), status)


def _unread(body: bytes, problem: str) -> PageAnswer:
    """Say why a pasted text is not a conversation; if it is an error of a provider, say what kind of error."""
    failure = classify(body[:_LONGEST_ERROR].decode("utf-8", "replace"))
    if failure.kind == FailureKind.UNKNOWN:
        return failed(problem, 422)
    return PageAnswer(encode_valid_json({"error": problem, "failure": msgspec.to_builtins(failure)}), 422)
