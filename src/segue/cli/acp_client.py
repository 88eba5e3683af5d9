"""Sessions that an agent itself loads, by the Agent Client Protocol: `acp:AGENT`, `acp:AGENT:ID`, `handover --verify`.

The agent's own program is started in the folder of the project, lists or loads a session, and is ended. It replays the
session without asking a model. It gets no file, no terminal and no permission from segue.

Facts (run on 2026-11-18: Qwen Code 0.24.4, Kimi Code 2.1.0, Copilot CLI 1.0.102, opencode 1.18.18, Gemini CLI 0.61.0):
- `session/load` replays everything before it answers; Gemini CLI answers first. Gemini CLI has no list.
- Gemini CLI replays neither the arguments of calls nor all results. It begins a file with the id of the session that it
  loads; when it starts again, it removes both, because the new one has no messages.
- What is not in a replay: signatures, models, instructions, often the names of tools; of Copilot CLI thinking too.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from asyncio.subprocess import DEVNULL
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn, TypeVar, cast, final

from segue.conversation.messages import Message
from segue.errors import LoadError, MissingExtra
from segue.foundation.plurals import counted
from segue.histories.acp_log.format import NAME as LOG
from segue.histories.acp_log.format import read
from segue.histories.kit.envelope import is_own_text
from segue.histories.kit.history import History, Session
from segue.histories.kit.lines import object_of, objects_of, text_of
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.writing import json_line

try:
    import acp
    from acp import schema
    from acp.connection import StreamEvent
except ModuleNotFoundError as _missing:
    raise MissingExtra("the Agent Client Protocol needs the package agent-client-protocol", extra="acp") from _missing

PREFIX: Final = "acp:"
LAST: Final = "last"
COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    "opencode": ("opencode", "acp"),
    "qwen-code": ("qwen", "--acp"),
    "kimi-code": ("kimi", "acp"),
    "copilot-cli": ("copilot", "--acp"),
    "gemini-cli": ("gemini", "--acp"),
    "droid": ("droid", "exec", "--output-format", "acp"),
    "mistral-vibe": ("vibe-acp",),
    "goose": ("goose", "acp"),
    "kiro": ("kiro-cli", "acp"),
}
"""How the programs of formats speak the protocol."""
NOT_REPLAYED: Final[Mapping[str, frozenset[str]]] = {"gemini-cli": frozenset({"toolCall", "toolResult"})}
"""What the programs of formats do not replay whole, so that it is not compared: calls, results."""
_LATE: Final = frozenset({"gemini-cli"})
"""Agents whose programs answer before they have replayed everything."""
_QUIET: Final = 3.0
SECONDS: Final = 180.0
"""How long a program may take; a start alone can take ten."""
_LIMIT: Final = 256 << 20
"""The longest line of a program, such as a result with an image."""
_PAGES: Final = 50
_VERSION: Final = 1
_Answer = TypeVar("_Answer")


@final
class AcpName(NamedTuple):
    """`acp:AGENT:ID`: an agent, and the id of a session, the beginning of it, or `last`."""

    agent: str
    id: str


def parse_name(text: str) -> AcpName | None:
    """Read the name of such a source; None for any other text.

    Raises:
        LoadError: segue does not know how this agent speaks the protocol.
    """
    if not text.startswith(PREFIX):
        return None
    agent, _, which = text.removeprefix(PREFIX).partition(":")
    if agent not in COMMANDS:
        raise LoadError(f"acp:{agent}: segue cannot start this agent; choose one of {', '.join(COMMANDS)}")
    return AcpName(agent, which or LAST)


def list_sessions(agent: str, cwd: str | None = None) -> list[Session]:
    """List the sessions that an agent's program has, the newest first.

    Raises:
        LoadError: it is not installed, does not answer, or has no list.
    """
    return _run(_Program(agent, cwd).list())


def load_log(name: AcpName, cwd: str | None = None) -> bytes:
    """Let the agent's program load a session, and return the log of the protocol.

    Raises:
        LoadError: it is not installed, does not answer, or has no such session.
    """
    return _run(_Program(name.agent, cwd).load(name.id))


def load_history(name: AcpName, cwd: str | None = None) -> History:
    """Let the agent's program load a session, and read what it replays.

    Raises:
        LoadError: as `load_log`.
    """
    return read(Source(data=load_log(name, cwd), format=LOG), View())


def _run(work: Coroutine[Any, Any, _Answer]) -> _Answer:
    return asyncio.run(work)


class _Client:
    """The side of the editor: it allows nothing."""

    async def request_permission(self, **_: object) -> schema.RequestPermissionResponse:
        return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))

    async def session_update(self, **_: object) -> None:
        return None

    async def _refuse(self, **_: object) -> NoReturn:
        raise acp.RequestError.method_not_found("segue gives no files and no terminals")

    write_text_file = read_text_file = create_terminal = terminal_output = release_terminal = _refuse
    wait_for_terminal_exit = kill_terminal = create_elicitation = _refuse

    async def complete_elicitation(self, **_: object) -> None:
        return None

    async def ext_method(self, method: str, _: object) -> NoReturn:
        raise acp.RequestError.method_not_found(method)

    async def ext_notification(self, *_: object) -> None:
        return None

    def on_connect(self, *_: object) -> None:
        return None


@final
class _Program:
    """One run of an agent's program."""

    def __init__(self, agent: str, cwd: str | None) -> None:
        self._agent: Final = agent
        self._cwd: Final = cwd or str(Path.cwd())
        self._start: Final = self._cwd if Path(self._cwd).is_dir() else None
        self._lines: list[Mapping[str, Any]] = []

    async def list(self) -> list[Session]:
        """Ask for the list."""
        return await self._connected(lambda connection, _: self._all(connection))

    async def load(self, which: str) -> bytes:
        """Load a session; `last` or the beginning of an id is looked up in the list."""

        async def work(connection: acp.Agent, can_list: bool) -> bytes:
            cwd, name = self._cwd, which
            if can_list:
                found = _choose(await self._all(connection), which, self._agent)
                name, cwd = found.id, found.cwd or cwd
            self._lines.clear()
            request = {"sessionId": name, "cwd": cwd}
            await connection.load_session(cwd=cwd, session_id=name, mcp_servers=[])
            if self._agent in _LATE:
                await self._settle()
            updates = [line for line in self._lines if line.get("method") == "session/update"]
            return b"".join(map(json_line, [{"jsonrpc": "2.0", "method": "session/load", "params": request}, *updates]))

        return await self._connected(work)

    async def _settle(self) -> None:
        """Wait until no update has come for some seconds."""
        count = -1
        while count != len(self._lines):
            count = len(self._lines)
            await asyncio.sleep(_QUIET)

    async def _all(self, connection: acp.Agent) -> list[Session]:
        found: list[Session] = []
        cursor: str | None = None
        for _ in range(_PAGES):
            answer = await connection.list_sessions(cursor=cursor)
            fields = answer.model_dump(mode="json", by_alias=True)
            found += (_session(self._agent, each) for each in objects_of(fields.get("sessions")))
            cursor = text_of(fields.get("nextCursor"))
            if cursor is None:
                break
        return sorted(found, key=lambda session: -(session.updated or 0))

    def _keep(self, event: StreamEvent) -> None:
        self._lines.append(event.message)

    async def _connected(self, work: Callable[[acp.Agent, bool], Awaitable[_Answer]]) -> _Answer:
        command = COMMANDS[self._agent]
        if shutil.which(command[0]) is None:
            raise LoadError(f"acp:{self._agent}: the program {command[0]!r} is not installed, or not on the PATH")
        options = {"stderr": DEVNULL, "limit": _LIMIT}
        try:
            async with (
                asyncio.timeout(SECONDS),
                acp.spawn_agent_process(
                    cast("acp.Client", _Client()),
                    *command,
                    env=dict(os.environ),
                    cwd=self._start,
                    transport_kwargs=options,
                    observers=[self._keep],
                ) as (connection, _),
            ):
                answer = await connection.initialize(_VERSION, schema.ClientCapabilities())
                able = object_of(cast("Any", answer).model_dump(mode="json", by_alias=True).get("agentCapabilities"))
                can_list = object_of(able.get("sessionCapabilities")).get("list") is not None
                return await work(cast("acp.Agent", connection), can_list)
        except TimeoutError:
            raise LoadError(f"acp:{self._agent}: the program did not answer in {SECONDS:.0f} seconds") from None
        except acp.RequestError as error:
            raise LoadError(f"acp:{self._agent}: the program refused: {error}; `segue formats` lists files") from error
        except (OSError, ConnectionError) as error:
            raise LoadError(f"acp:{self._agent}: the program ended: {error}") from error


def _session(agent: str, fields: Mapping[str, Any]) -> Session:
    name = text_of(fields.get("sessionId")) or ""
    return Session(
        format=f"{PREFIX}{agent}",
        id=name,
        path=f"{PREFIX}{agent}:{name}",
        title=text_of(fields.get("title")),
        cwd=text_of(fields.get("cwd")),
        updated=milliseconds_of(fields.get("updatedAt")),
    )


def _choose(sessions: Sequence[Session], which: str, agent: str) -> Session:
    matching = sessions[:1] if which == LAST else [each for each in sessions if each.id == which]
    matching = matching or [each for each in sessions if each.id.startswith(which)]
    if len(matching) != 1:
        found = counted(len(matching), "session")
        raise LoadError(f"acp:{agent}: {found} with the id {which!r}; `segue sessions acp:{agent}` lists them")
    return matching[0]


# -- comparing ---------------------------------------------------------------------------------------------------------


@final
class Compared(NamedTuple):
    """What a program has of a session that was written for it: how many pieces were compared, and which it lacks."""

    pieces: int
    missing: tuple[str, ...]


def compare(written: Sequence[Message], loaded: Sequence[Message], agent: str = "") -> Compared:
    """Find what was written and is not in what the program replays: prompts, answers, calls and results.

    Thinking, the names of tools and the error flag are not compared, because not every program replays them; nor is
    what the program of this agent leaves out.
    """
    left_out = NOT_REPLAYED.get(agent, frozenset())
    there = "\n".join(_shown(text) for message in loaded for text in _texts(message))
    pieces = [
        text
        for message in written
        if not is_own_text(message) and message.role not in left_out
        for text in _texts(message, calls="toolCall" not in left_out)
    ]
    missing = tuple(text for text in pieces if _shown(text) not in there)
    return Compared(len(pieces), missing)


def _texts(message: Message, *, calls: bool = True) -> list[str]:
    """Return what a person would look for: texts, and the values of a call."""
    found: list[str] = []
    for piece in message.content:
        if piece.kind == "text":
            found.append(piece.text)
        elif piece.kind == "toolCall" and calls:
            found += (value for value in piece.arguments.values() if isinstance(value, str))
    return [text for text in found if text.strip()]


def _shown(text: str) -> str:
    """Return a text without what programs change for the display: spaces and quotes around it."""
    return " ".join(text.split())
