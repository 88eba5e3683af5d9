"""What can go wrong, drawn once.

    SegueError
    ├── LoadError            stored JSON that cannot be read; says where (`path`), in files which `line`
    │   └── NewerFormat      written by a later segue; refused whole, never half-read
    ├── ConversationError    a conversation that is not built as its types say; says where (`path`)
    ├── DumpError            a value that stored JSON cannot carry (NaN, 200 levels, a key that is no text)
    ├── ModelError
    │   ├── UnknownModel     no such name in the catalogue; carries the nearest names
    │   └── UnknownProtocol  no such wire protocol
    ├── SettingsError        a rule, dialect or policy key that does not exist, or a value it cannot have
    ├── DecodeError          a wire body that is not what its protocol says
    ├── EncodeError          neutral content that one wire has no word for; projection should have changed it
    ├── ProjectionError
    │   ├── EmptyConversation   nothing visible would be left to send
    │   └── ProjectionRefused   the policy refuses a change that this target needs; carries the report
    ├── RequestFailed        nobody answered as they should; carries the failure, every attempt, and what arrived
    ├── SessionLocked        another conversation writes to this session file
    └── MissingExtra         (also an ImportError) something that is installed as an extra is not there

    TornLine (a warning)     a session file whose last line was cut off; everything before it was read

Data stands in attributes, prose in the message: callers branch on the class and read the attributes, people the text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from segue.client.flow.attempts import Attempt
    from segue.conversation.messages import AssistantMessage
    from segue.failures.failure import Failure
    from segue.projection.report import Report

Path = tuple[str | int, ...]


def render_path(path: Path) -> str:
    """`("messages", 3, "content", 0)` -> `messages[3].content[0]`, the way people write it."""
    out = ""
    for step in path:
        if isinstance(step, int):
            out += f"[{step}]"
        else:
            out += f".{step}" if out else step
    return out


class SegueError(Exception):
    """The parent of every error segue raises on purpose. All of them survive the way through a process pool."""

    def __reduce__(self) -> tuple[Callable[..., SegueError], tuple[object, ...]]:
        return _restore, (type(self), self.args, self.__dict__)


def _restore(kind: type[SegueError], args: tuple[object, ...], attributes: dict[str, object]) -> SegueError:
    """Make an error again from what it said and what it carried, without asking its constructor."""
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(attributes)
    return error


class _PathError(SegueError):
    """An error about one place in a document."""

    def __init__(self, message: str, *, path: Path = ()) -> None:
        super().__init__(f"{render_path(path)}: {message}" if path else message)
        self.reason = message
        self.path = path


class LoadError(_PathError):
    """Stored JSON cannot be read as a conversation.

    `path` says where in the document; `line` (counted from 1) which line of a session file.
    """

    def __init__(self, message: str, *, path: Path = (), line: int | None = None) -> None:
        super().__init__(message, path=path)
        self.line = line
        if line is not None:
            self.args: tuple[Any, ...] = (f"line {line}: {self.args[0]}",)


class NewerFormat(LoadError):
    """The document was written by a later segue. Reading half of it would lose the rest."""


class DumpError(_PathError):
    """A value cannot be stored as JSON without changing it."""


class ConversationError(_PathError):
    """A conversation is not built as its types say: a string where a tuple belongs, a dict where a message does."""


class ModelError(SegueError):
    """Something about a model or its catalogue entry."""


class UnknownModel(ModelError):
    """The catalogue has no such model, or several that the name could mean.

    `suggestions` holds the nearest full names, the best first.
    """

    def __init__(self, message: str, *, name: str, suggestions: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.name = name
        self.suggestions: tuple[str, ...] = tuple(suggestions)


class UnknownProtocol(ModelError):
    """No wire protocol of that name is registered."""

    def __init__(self, message: str, *, name: str, suggestions: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.name = name
        self.suggestions: tuple[str, ...] = tuple(suggestions)


class SettingsError(SegueError):
    """A rule, dialect or policy that does not exist or cannot have that value.

    `key` is the misspelt or misused name; `suggestions` the nearest ones.
    """

    def __init__(self, message: str, *, key: str, suggestions: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.key = key
        self.suggestions: tuple[str, ...] = tuple(suggestions)


class DecodeError(_PathError):
    """A wire body is not what its protocol says it is."""


class EncodeError(_PathError):
    """A wire has no word for this content. Projection for the target makes it fit, with a report."""


class ProjectionError(SegueError):
    """The history could not be made ready for the target."""


class EmptyConversation(ProjectionError):
    """Nothing visible would be left to send: no messages, blank ones, or unfinished turns only."""


class ProjectionRefused(ProjectionError):
    """The target needs changes that the policy refuses. `report` lists every one of them."""

    def __init__(self, message: str, *, report: Report) -> None:
        super().__init__(message)
        self.report = report


class RequestFailed(SegueError):
    """Nobody answered as they should. `failure` is how the last attempt ended, `attempts` are all of them.

    `message` can be stored: it keeps what had arrived, and ended in `error` or `aborted`.
    """

    def __init__(
        self, message: str, *, failure: Failure, attempts: tuple[Attempt, ...], reply: AssistantMessage
    ) -> None:
        super().__init__(message)
        self.failure = failure
        self.attempts = attempts
        self.message = reply


class SessionLocked(SegueError):
    """Another conversation, in this process or another one, writes to this session file."""


class MissingExtra(SegueError, ImportError):
    """Something is not installed that segue needs for this. `extra` names what to install: `segue[extra]`."""

    def __init__(self, message: str, *, extra: str) -> None:
        super().__init__(f"{message}: pip install 'segue[{extra}]'")
        self.extra = extra


class TornLine(UserWarning):
    """A session file ends in the middle of a line: a write was cut off. Everything before it was read."""
