"""The agent of `segue acp`: an editor lists, loads and continues the sessions of every agent on this machine.

A session is named `AGENT:ID`, as the list gives it; `segue.cli.mcp_gate` opens it, and nothing that the list does not
have. What the editor adds is stored in a session file of segue: the files of other agents are never changed. The model
has three tools, which the editor performs: a path outside of the project's folder is refused before the editor is
asked, and writing and commands need its permission.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, cast, final
from uuid import uuid4

import acp
from acp import schema

from segue.cli.mcp_gate import AgentGate, NotAllowed, Unreadable, source_of
from segue.cli.printable import printable
from segue.client.flow.tool_loop import Run
from segue.client.http.clients import AsyncClient
from segue.client.http.settings import ClientSettings
from segue.client.session.conversation import AsyncConversation
from segue.client.tools.toolbox import Toolbox
from segue.conversation.content import AnyContent, ToolCall, UserContent
from segue.conversation.context import Context, Options
from segue.conversation.messages import Message, StopReason, ToolResultMessage
from segue.errors import SegueError
from segue.foundation.version import __version__
from segue.histories.api import restore_history
from segue.histories.kit.acp_updates import content_of
from segue.histories.kit.envelope import is_own_text
from segue.histories.kit.format import Place
from segue.histories.places import find_folder
from segue.models.model import Model

_SAVED: Final = Place(folder=".local/share/segue/acp", variables=("XDG_DATA_HOME/segue/acp",))
_PAGE: Final = 50
"""Sessions of one page of the list."""
_TITLE: Final = 200
_OUTPUT: Final = 200_000
"""Bytes of a command's output that the model gets."""
_LONGEST: Final = 2000
_KINDS: Final[dict[str, schema.ToolKind]] = {"read_file": "read", "write_file": "edit", "run_command": "execute"}
_ASKED: Final = frozenset({"write_file", "run_command"})
"""Tools that need the permission of the editor's user."""
_STOPS: Final[dict[StopReason, Literal["end_turn", "max_tokens", "refusal", "cancelled"]]] = {
    StopReason.LENGTH: "max_tokens",
    StopReason.ABORTED: "cancelled",
}


def serve(
    model: Model | None, settings: ClientSettings, *, roots: Sequence[Path], save: Path | None, options: Options
) -> None:
    """Serve an editor over standard input and output until it ends."""

    async def work() -> None:
        async with AsyncClient(**settings) as client:
            agent = SessionAgent(client, model, roots=roots, save=save, options=options)
            try:
                await acp.run_agent(cast("acp.Agent", agent))
            finally:
                await agent.close()

    asyncio.run(work())


@final
@dataclass
class _Open:
    """A session that the editor has opened."""

    cwd: str
    context: Context
    model: Model | None
    path: Path
    conversation: AsyncConversation | None = None
    running: asyncio.Task[StopReason] | None = None


@final
class SessionAgent:
    """The agent. Its methods are those of the protocol."""

    def __init__(
        self, client: AsyncClient, model: Model | None, *, roots: Sequence[Path], save: Path | None, options: Options
    ) -> None:
        self._client: Final = client
        self._model: Final = model
        self._options: Final = options
        self._gate: Final = AgentGate(roots)
        self._folder: Final = find_folder(_SAVED) if save is None else save
        self._open: dict[str, _Open] = {}
        self._able = schema.ClientCapabilities()
        self._editor: acp.Client | None = None

    def on_connect(self, conn: acp.Client) -> None:
        """Keep the connection to the editor."""
        self._editor = conn

    async def close(self) -> None:
        """Close what is open."""
        for each in self._open.values():
            if each.conversation is not None:
                await each.conversation.close()

    async def initialize(
        self, protocol_version: int, client_capabilities: schema.ClientCapabilities | None = None, **_: object
    ) -> schema.InitializeResponse:
        """Tell the editor what is there."""
        self._able = client_capabilities or self._able
        sessions = schema.SessionCapabilities(list=schema.SessionListCapabilities())
        able = schema.AgentCapabilities(
            load_session=True,
            session_capabilities=sessions,
            prompt_capabilities=schema.PromptCapabilities(image=True, embedded_context=True),
        )
        about = schema.Implementation(name="segue", title="segue", version=__version__)
        version = min(protocol_version, acp.PROTOCOL_VERSION)
        return schema.InitializeResponse(protocol_version=version, agent_capabilities=able, agent_info=about)

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_: object
    ) -> schema.ListSessionsResponse:
        """List the sessions of all agents, the newest first."""
        found = await asyncio.to_thread(lambda: list(self._gate.sessions(None, cwd)))
        first = int(cursor) if cursor is not None and cursor.isdecimal() and len(cursor) < 10 else 0
        page = found[first : first + _PAGE]
        rows = [
            schema.SessionInfo(
                session_id=source_of(session),
                cwd=session.cwd or str(Path.home()),
                title=printable(f"{session.format}: {session.title or session.id}")[:_TITLE],
                updated_at=None
                if session.updated is None
                else datetime.fromtimestamp(session.updated / 1000, UTC).isoformat(),
            )
            for session in page
        ]
        last = first + len(page)
        return schema.ListSessionsResponse(sessions=rows, next_cursor=str(last) if last < len(found) else None)

    async def new_session(self, cwd: str, **_: object) -> schema.NewSessionResponse:
        """Begin a session."""
        name = f"segue:{uuid4()}"
        self._open[name] = self._opened(cwd, Context(), self._model)
        return schema.NewSessionResponse(session_id=name)

    async def load_session(self, cwd: str, session_id: str, **_: object) -> schema.LoadSessionResponse:
        """Read a session of the list, and replay it.

        Raises:
            RequestError: the list does not have it, or it cannot be read.
        """
        try:
            opened = await asyncio.to_thread(self._gate.open, session_id, "active")
            history = await asyncio.to_thread(restore_history, opened)
        except NotAllowed:
            raise acp.RequestError.resource_not_found(session_id[:_TITLE]) from None
        except (Unreadable, SegueError) as error:
            raise acp.RequestError.internal_error({"reason": str(error)[:_LONGEST]}) from None
        context = history.context
        for message in context.messages:
            for update in _updates(message):
                await self._send(session_id, update)
        self._open[session_id] = self._opened(cwd, context, self._model)
        return schema.LoadSessionResponse()

    def _opened(self, cwd: str, context: Context, model: Model | None) -> _Open:
        return _Open(cwd, context, model or _last_model(context), self._folder / f"{uuid4()}.jsonl")

    async def prompt(self, session_id: str, prompt: Sequence[Any], **_: object) -> schema.PromptResponse:
        """Ask the model, and stream its answer.

        Raises:
            RequestError: there is no such session or no model, or the request failed.
        """
        opened = self._open.get(session_id)
        if opened is None:
            raise acp.RequestError.resource_not_found(session_id[:_TITLE])
        blocks = [block.model_dump(mode="json", by_alias=True) for block in prompt]
        opened.running = asyncio.ensure_future(self._answer(session_id, opened, content_of(blocks)))
        try:
            stop = await opened.running
        except asyncio.CancelledError:
            return schema.PromptResponse(stop_reason="cancelled")
        except SegueError as error:
            raise acp.RequestError.internal_error({"reason": str(error)[:_LONGEST]}) from None
        finally:
            opened.running = None
        return schema.PromptResponse(stop_reason=_STOPS.get(stop, "end_turn"))

    async def cancel(self, session_id: str, **_: object) -> None:
        """End the answer that is running."""
        opened = self._open.get(session_id)
        if opened is not None and opened.running is not None:
            opened.running.cancel()

    async def _answer(self, name: str, opened: _Open, content: Sequence[UserContent]) -> StopReason:
        if opened.conversation is None:
            if opened.model is None:
                raise acp.RequestError.invalid_params({"reason": "no model: start `segue acp --model MODEL`"})
            opened.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            opened.conversation = AsyncConversation(
                opened.model, client=self._client, context=opened.context, path=opened.path, options=self._options
            )
        hands = _Hands(cast("acp.Client", self._editor), self._able, name, opened.cwd)
        stop = StopReason.STOP
        async for event in opened.conversation.run_stream(*content, tools=hands.toolbox(), approve=hands.approve):
            if isinstance(event, Run):
                break
            if isinstance(event, ToolResultMessage):
                for update in _updates(event):
                    await self._send(name, update)
            elif event.kind == "text_delta":
                await self._send(name, acp.update_agent_message_text(event.delta))
            elif event.kind == "thinking_delta":
                await self._send(name, acp.update_agent_thought_text(event.delta))
            elif event.kind == "toolcall_end":
                await self._send(name, _call_update(event.tool_call))
            elif event.kind == "error":
                raise SegueError(event.message.error_message or "the request failed")
            elif event.kind == "done":
                stop = event.message.stop_reason
        await opened.conversation.flush()
        return stop

    async def _send(self, name: str, update: Any) -> None:  # noqa: ANN401 - one of a dozen models of the package
        await cast("acp.Client", self._editor).session_update(session_id=name, update=update)


def _last_model(context: Context) -> Model | None:
    for message in reversed(context.messages):
        if message.role == "assistant" and message.model and message.protocol:
            return Model(message.model, message.provider, message.protocol, reasoning=True)
    return None


# -- replaying ---------------------------------------------------------------------------------------------------------


def _updates(message: Message) -> Iterator[object]:
    """Yield the updates that show a message; what the agent added by itself is not shown."""
    if is_own_text(message) or message.role == "system":
        return
    if isinstance(message, ToolResultMessage):
        content = [acp.tool_content(block) for piece in message.content if (block := _block(piece)) is not None]
        status = "failed" if message.is_error else "completed"
        yield acp.update_tool_call(message.tool_call_id, status=status, content=content)
        return
    for piece in message.content:
        block = _block(piece)
        if piece.kind == "toolCall":
            yield _call_update(piece)
        elif piece.kind == "thinking":
            if piece.thinking:
                yield acp.update_agent_thought_text(piece.thinking)
        elif block is not None:
            yield acp.update_user_message(block) if message.role == "user" else acp.update_agent_message(block)


def _call_update(call: ToolCall) -> object:
    kind = _KINDS.get(call.name, "other")
    return acp.start_tool_call(
        call.id, call.name, kind=kind, status="in_progress", raw_input=dict(call.arguments), content=[]
    )


def _block(piece: AnyContent) -> Any:  # noqa: ANN401 - one of the content blocks of the package
    if piece.kind == "text":
        return acp.text_block(piece.text) if piece.text else None
    if piece.kind == "image" and piece.data is not None:
        return acp.image_block(piece.data, piece.mime_type or "image/png")
    return None


# -- tools -------------------------------------------------------------------------------------------------------------


@final
class _Hands:
    """The tools of the model, which the editor performs."""

    def __init__(self, editor: acp.Client, able: schema.ClientCapabilities, session: str, cwd: str) -> None:
        self._editor = editor
        self._session = session
        self._root = Path(os.path.abspath(cwd))  # noqa: PTH100 - without following links, as the editor names it
        files = able.fs
        self._can_read = files is not None and bool(files.read_text_file)
        self._can_write = files is not None and bool(files.write_text_file)
        self._can_run = bool(able.terminal)

    def toolbox(self) -> Toolbox:
        """Return the tools that the editor can perform."""
        functions = [
            function
            for function, can in (
                (self.read_file, self._can_read),
                (self.write_file, self._can_write),
                (self.run_command, self._can_run),
            )
            if can
        ]
        return Toolbox(*functions)

    async def approve(self, call: ToolCall) -> bool | str:
        """Ask the user of the editor before a file is written or a command is run."""
        path = call.arguments.get("path")
        if isinstance(path, str):
            try:
                self._below(path)
            except NotAllowed as error:
                return str(error)
        if call.name not in _ASKED:
            return True
        options = [
            schema.PermissionOption(option_id="allow", name="Allow", kind="allow_once"),
            schema.PermissionOption(option_id="reject", name="Reject", kind="reject_once"),
        ]
        shown = schema.ToolCallUpdate(
            tool_call_id=call.id, title=call.name, kind=_KINDS.get(call.name), raw_input=dict(call.arguments)
        )
        answer = await self._editor.request_permission(session_id=self._session, tool_call=shown, options=options)
        outcome = answer.outcome
        is_allowed = isinstance(outcome, schema.AllowedOutcome) and outcome.option_id == "allow"
        return is_allowed or "the user did not allow this"

    def _below(self, path: str) -> str:
        """Return the absolute path of a file of the project.

        Raises:
            NotAllowed: it is outside of the folder of the project, or no file can have this name.
        """
        whole = Path(os.path.abspath(self._root / path))  # noqa: PTH100 - `..` is resolved, links are the next check
        try:
            real = Path(os.path.realpath(whole))
        except ValueError:  # a null character, or half of a surrogate pair
            real = Path()
        if not whole.is_relative_to(self._root) or not real.is_relative_to(os.path.realpath(self._root)):
            raise NotAllowed(f"{path[:_TITLE]!r} is outside of the folder of the project")
        return str(whole)

    async def read_file(self, path: str) -> str:
        """Read a text file of the project. `path` is relative to its folder."""
        answer = await self._editor.read_text_file(session_id=self._session, path=self._below(path))
        return answer.content

    async def write_file(self, path: str, content: str) -> str:
        """Write a text file of the project; what is there is replaced. `path` is relative to its folder."""
        await self._editor.write_text_file(session_id=self._session, path=self._below(path), content=content)
        return "written"

    async def run_command(self, command: str) -> str:
        """Run a command of a shell in the folder of the project, and return what it printed."""
        made = await self._editor.create_terminal(
            session_id=self._session, command="sh", args=["-c", command], cwd=str(self._root), output_byte_limit=_OUTPUT
        )
        try:
            ended = await self._editor.wait_for_terminal_exit(session_id=self._session, terminal_id=made.terminal_id)
            answer = await self._editor.terminal_output(session_id=self._session, terminal_id=made.terminal_id)
        finally:
            await self._editor.release_terminal(session_id=self._session, terminal_id=made.terminal_id)
        return answer.output if not ended.exit_code else f"{answer.output}\n(exit status {ended.exit_code})"
