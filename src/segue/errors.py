"""Every error that segue raises, in one hierarchy.

    SegueError
    ├── LoadError            stored JSON cannot be read; `path` and, for session files, `line` locate the problem
    │   └── NewerFormat      the file was written by a later version of segue; nothing of it is read
    ├── ConversationError    a conversation holds a value that cannot be used; `path` locates it
    ├── DumpError            a value cannot be stored as JSON (NaN, more than 200 levels, a key that is not a string)
    ├── ModelError
    │   ├── UnknownModel     the catalogue has no model of that name; `suggestions` are the closest names
    │   └── UnknownProtocol  no wire protocol of that name is registered
    ├── UnknownFormat        no format of stored histories has that name, or the format of a file is not recognised
    ├── HistoryExists        a session file of that name is there already; nothing was written
    ├── SettingsError        an unknown rule, dialect, policy or option, or a value it does not accept
    ├── DecodeError          a wire body does not match its protocol
    ├── CallError            an HTTP request of a client cannot be read; has the status to answer with
    ├── EncodeError          a protocol does not support some content; projection replaces such content first
    ├── ProjectionError
    │   ├── EmptyConversation   nothing visible would be left to send
    │   ├── DoesNotFit          the window is too small for what has to be sent; `path` is the largest part of it
    │   └── ProjectionRefused   the policy refuses a change that the target needs; has the report
    ├── RequestFailed        every attempt failed; has the failure, all attempts, and the partial reply
    ├── OutputError          a reply has no value of the type that was asked for; has the reply
    │   ├── OutputInvalid       it does not fit the type, also after it was sent back; `place` and `reason`
    │   ├── OutputCut           it ended at its limit of tokens
    │   ├── OutputRefused       the model, or a filter, refused to answer
    │   └── OutputPending       it calls tools first; their results have to be added
    ├── RunLimitReached      a tool loop reached a limit; has what ran until then
    ├── CorpusError          a corpus cannot be converted: another job wrote to the folder, no input, a missing note
    ├── SessionLocked        another conversation is writing to this session file
    └── MissingExtra         (also an ImportError) an optional dependency of segue is not installed

    TornLine (a warning)     the last line of a session file was cut off; everything before it was read

Programs branch on the class and read the attributes; the message is for people.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    import segue  # the public face names what errors carry: the modules of these types import this one

Path = tuple[str | int, ...]

DISTRIBUTION = "segue-llm"
"""The name on package indexes, where `segue` is taken; the import and the command are `segue`. Texts of the program
take it from here, and a test compares it with pyproject.toml, the documents and the adapters."""


def install_line(extra: str) -> str:
    """Return the command that installs segue with an extra, from a package index or from a clone."""
    return f"pip install '{DISTRIBUTION}[{extra}]' (in a clone: pip install '.[{extra}]')"


def render_path(path: Path) -> str:
    """Format a path for people: `("messages", 3, "content", 0)` -> `messages[3].content[0]`."""
    out = ""
    for step in path:
        if isinstance(step, int):
            out += f"[{step}]"
        else:
            out += f".{step}" if out else step
    return out


class SegueError(Exception):
    """The base class of every error that segue raises on purpose. All of them can be pickled."""

    def __reduce__(self) -> tuple[Callable[..., SegueError], tuple[object, ...]]:
        return _restore, (type(self), self.args, self.__dict__)


def _restore(kind: type[SegueError], args: tuple[object, ...], attributes: dict[str, object]) -> SegueError:
    """Rebuild an unpickled error from its arguments and attributes, without calling its constructor."""
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(attributes)
    return error


class _PathError(SegueError):
    """An error about one place in a document; the message starts with the path."""

    def __init__(self, message: str, *, path: Path = ()) -> None:
        super().__init__(f"{render_path(path)}: {message}" if path else message)
        self.reason = message
        self.path = path


class LoadError(_PathError):
    """Stored JSON cannot be read as a conversation.

    `path` is the place in the document; `line` is the line of a session file, counted from 1.
    """

    def __init__(self, message: str, *, path: Path = (), line: int | None = None) -> None:
        super().__init__(message, path=path)
        self.line = line
        if line is not None:
            self.args: tuple[Any, ...] = (f"line {line}: {self.args[0]}",)


class NewerFormat(LoadError):
    """The document was written by a later version of segue. Reading only the known part would lose the rest."""


class DumpError(_PathError):
    """A value cannot be stored as JSON without changing it."""


class SessionChanged(SegueError):
    """Another program has changed a session file since it was read, and writing it would lose that; `path` is its name.

    Nothing was written. Make the change again in `with session_file(path) as file:`, which waits for other programs.
    """

    def __init__(self, message: str, *, path: str) -> None:
        super().__init__(message)
        self.path = path


class ConversationError(_PathError):
    """A conversation holds a value that cannot be used: one of the wrong type, or an image that is not base64."""


class _UnknownName(SegueError):
    """Nothing has this name; `suggestions` are the closest names, the best first."""

    def __init__(self, message: str, *, name: str, suggestions: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.name = name
        self.suggestions: tuple[str, ...] = tuple(suggestions)


class ModelError(SegueError):
    """A model or protocol cannot be found."""


class UnknownModel(ModelError, _UnknownName):
    """The catalogue has no model of that name, or several that match it.

    `suggestions` are the closest full names, the best first.
    """


class UnknownProtocol(ModelError, _UnknownName):
    """No wire protocol of that name is registered."""


class UnknownFormat(_UnknownName):
    """No format of stored histories has that name, or the format of a file is not recognised."""


class HistoryExists(SegueError):
    """A session file of that name is there already; nothing was written. `file` is its path."""

    def __init__(self, message: str, *, file: str) -> None:
        super().__init__(message)
        self.file = file


class SettingsError(SegueError):
    """A rule, dialect, policy or option does not exist or does not accept the given value.

    `key` is the name that was used; `suggestions` are the closest existing names.
    """

    def __init__(self, message: str, *, key: str, suggestions: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.key = key
        self.suggestions: tuple[str, ...] = tuple(suggestions)


class DecodeError(_PathError):
    """A wire body does not match its protocol."""


class CallError(SegueError):
    """An HTTP request of a client cannot be read.

    `status` is the status to answer with, `protocol` the one whose errors the client reads, None if it is unknown;
    `methods` are those that the path has, for the status 405.
    """

    def __init__(self, message: str, *, status: int, protocol: str | None = None, methods: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.protocol = protocol
        self.methods: tuple[str, ...] = tuple(methods)


class EncodeError(_PathError):
    """A protocol does not support this content. `project` replaces or removes it and reports the change."""


class ProjectionError(SegueError):
    """A conversation cannot be projected for the target."""


class EmptyConversation(ProjectionError):
    """Nothing visible would be left to send: no instructions, and no messages or only ones that are not sent.

    The message names the reason: empty messages, unfinished turns, or tool results whose calls are missing.
    """


class DoesNotFit(ProjectionError):
    """What has to be sent is larger than the window of the target, although everything else is left out.

    `path` is the largest part of it; `needed` and `limit` are in tokens.
    """

    def __init__(self, message: str, *, path: Path, needed: int, limit: int) -> None:
        super().__init__(message)
        self.path = path
        self.needed = needed
        self.limit = limit


class ProjectionRefused(ProjectionError):
    """The target needs changes that the policy refuses. `report` lists every one of them."""

    def __init__(self, message: str, *, report: segue.Report) -> None:
        super().__init__(message)
        self.report = report


class RequestFailed(SegueError):
    """Every attempt at a request failed. `failure` is how the last attempt ended, `attempts` are all of them.

    `message` is what had arrived before the failure. It can be stored: its stop reason is `error` or `aborted`.
    """

    def __init__(
        self,
        message: str,
        *,
        failure: segue.Failure,
        attempts: tuple[segue.Attempt, ...],
        reply: segue.AssistantMessage,
    ) -> None:
        super().__init__(message)
        self.failure = failure
        self.attempts = attempts
        self.message = reply


class OutputError(SegueError):
    """A reply has no value of the type that was asked for. `message` is the reply, `attempts` are all requests."""

    def __init__(
        self, message: str, *, reply: segue.AssistantMessage, attempts: tuple[segue.Attempt, ...] = ()
    ) -> None:
        super().__init__(message)
        self.message = reply
        self.attempts = attempts


class OutputInvalid(OutputError):
    """A reply does not fit the type. `reason` says why, `place` where, such as `$.places[0].name`, if that is known."""

    def __init__(
        self,
        message: str,
        *,
        reason: str,
        place: str = "",
        reply: segue.AssistantMessage,
        attempts: tuple[segue.Attempt, ...] = (),
    ) -> None:
        super().__init__(message, reply=reply, attempts=attempts)
        self.reason = reason
        self.place = place


class OutputCut(OutputError):
    """A reply ended at its limit of tokens, so its value is not complete. Raise `Options(max_tokens=...)`."""


class OutputRefused(OutputError):
    """The model, or a filter of its provider, refused to answer."""


class OutputPending(OutputError):
    """A reply calls tools before it answers. Add their results and ask again, with the same type."""


class RunLimitReached(SegueError):
    """A tool loop reached one of its limits. `run` has the conversation until then; the last calls may be pending."""

    def __init__(self, message: str, *, run: segue.Run) -> None:
        super().__init__(message)
        self.run = run


class CorpusError(SegueError):
    """A corpus cannot be converted or read: no input, another job wrote to the folder, a note is missing."""


class SessionLocked(SegueError):
    """Another conversation, in this process or another one, is writing to this session file."""


class MissingExtra(SegueError, ImportError):
    """An optional dependency is not installed. `extra` names it: `pip install 'segue-llm[extra]'`."""

    def __init__(self, message: str, *, extra: str) -> None:
        super().__init__(f"{message}: {install_line(extra)}")
        self.extra = extra


class TornLine(UserWarning):
    """The last line of a session file was cut off during a write. Everything before it was read."""
