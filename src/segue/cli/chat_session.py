"""A chat in the terminal: handles typed lines, commands and output.

The history is in a `Conversation`, which can only grow. So `/undo` replaces the session file and opens a new
`Conversation` with the remaining messages.
"""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import click

from segue.cli.echo import ECHO
from segue.client.http.clients import Client
from segue.client.session.conversation import Conversation
from segue.conversation.content import FileContent, ImageContent
from segue.conversation.context import Context, Options
from segue.conversation.messages import AssistantMessage
from segue.errors import SegueError
from segue.models.catalogue import Catalogue
from segue.models.model import Model
from segue.projection.projector import project
from segue.sessions import append_header, append_message, append_summary

_HELP: Final = """\
/model NAME   switch to another model and show what changes
/models QUERY list the models of the catalogue whose names contain QUERY
/image PATH   attach an image or another file to your next message
/undo         remove your last message and the answer
/save PATH    write the conversation to a session file; /save! PATH overwrites an existing file
/help         show this list
/quit         end the chat; Ctrl-D does the same"""


class ChatSession:
    """One conversation in the terminal."""

    def __init__(
        self,
        client: Client,
        model: Model,
        catalogue: Catalogue,
        *,
        path: Path | None,
        system_prompt: str | None,
        options: Options,
    ) -> None:
        self._client = client
        self._catalogue = catalogue
        self._path = path
        self._options = options
        self._attached: list[ImageContent | FileContent] = []
        self._commands: Mapping[str, Callable[[str], None]] = {
            "/help": self._help,
            "/model": self._switch,
            "/models": self._list,
            "/image": self._attach,
            "/undo": self._undo,
            "/save": self._save,
            "/save!": self._save_over,
        }
        self._conversation = Conversation(model, client=client, path=path, system_prompt=system_prompt, options=options)

    @property
    def context(self) -> Context:
        """The conversation so far."""
        return self._conversation.context

    def close(self) -> None:
        """Release the session file."""
        self._conversation.close()

    def handle(self, line: str) -> bool:
        """Handle a typed line; False ends the chat."""
        text = line.strip()
        if not text and not self._attached:
            return True
        command, _, rest = text.partition(" ")
        if command in ("/quit", "/exit"):
            return False
        try:
            if command in self._commands:
                self._commands[command](rest.strip())
            elif command.startswith("/"):
                click.echo(f"There is no command {command}. /help lists the commands.", err=True)
            else:
                self._send(text)
        except SegueError as error:
            click.secho(str(error), fg="red", err=True)
        except OSError as error:
            click.secho(f"{error.filename}: {error.strerror}" if error.filename else str(error), fg="red", err=True)
        return True

    def _send(self, text: str) -> None:
        content = (*([text] if text else []), *self._attached)
        self._attached = []
        stream = self._conversation.stream(*content)
        thinks = False
        try:
            for event in stream:
                if event.type == "thinking_delta":
                    thinks = True
                    click.secho(event.delta, dim=True, nl=False)
                elif event.type == "text_delta":
                    click.echo(("\n" if thinks else "") + event.delta, nl=False)
                    thinks = False
        except KeyboardInterrupt:
            stream.close()
        click.echo()
        self._print_end(stream.message)

    def _print_end(self, message: AssistantMessage) -> None:
        if message.stop_reason == "aborted":
            click.secho("(stopped; the part that arrived is kept)", dim=True, err=True)
        elif message.stop_reason == "error":
            click.secho(
                message.error_message or "the answer is incomplete, and the server gave no reason", fg="red", err=True
            )
        elif message.stop_reason == "length":
            click.secho("(the answer was cut at its token limit; --max-tokens sets it)", dim=True, err=True)

    # -- commands ------------------------------------------------------------------------------------------------------

    def _help(self, _: str) -> None:
        click.echo(_HELP)

    def _switch(self, name: str) -> None:
        if not name:
            click.echo(f"The model is {self._conversation.model.full_name()}. /model NAME switches to another.")
            return
        model = ECHO if name in ("echo", ECHO.full_name()) else self._catalogue.get(name)
        report = project(self.context, model).report
        self._conversation.switch(model)
        click.echo(f"The model is now {model.full_name()}. {report.summary()}")

    def _list(self, query: str) -> None:
        found = self._catalogue.find(query or None)
        for model in found[:20]:
            click.echo(model.full_name())
        if len(found) > 20:
            click.echo(f"... and {len(found) - 20:,} more")

    def _attach(self, name: str) -> None:
        path = Path(name).expanduser()
        data = base64.b64encode(path.read_bytes()).decode()
        kind = mimetypes.guess_type(path.name)[0]
        if kind is not None and kind.startswith("image/"):
            self._attached.append(ImageContent(data=data, mime_type=kind))
        else:
            self._attached.append(FileContent(data=data, mime_type=kind, name=path.name))
        click.echo(f"{path.name} will be sent with your next message.")

    def _undo(self, _: str) -> None:
        messages = self.context.messages
        last = max((at for at, message in enumerate(messages) if message.role == "user"), default=None)
        if last is None:
            click.echo("There is no message to remove.")
            return
        left = Context(
            system_prompt=self.context.system_prompt,
            messages=messages[:last],
            tools=self.context.tools,
            summaries=tuple(summary for summary in self.context.summaries if summary.covers <= last),
            extra=self.context.extra,
        )
        model = self._conversation.model
        if self._path is not None:
            _write_session(left, self._path)  # while the file is still locked
        self._conversation.close()
        self._conversation = Conversation(
            model,
            client=self._client,
            path=self._path,
            context=None if self._path is not None else left,
            options=self._options,
        )
        click.echo(f"Removed your last message and what followed. {len(left.messages)} messages remain.")

    def _save(self, name: str) -> None:
        if not name:
            click.echo("/save needs a path: /save PATH")
            return
        path = Path(name).expanduser()
        if path.exists():
            click.echo(f"{path} already exists and was not changed. /save! {name} overwrites it.")
            return
        self._save_over(name)

    def _save_over(self, name: str) -> None:
        if not name:
            click.echo("/save! needs a path: /save! PATH")
            return
        path = Path(name).expanduser()
        _write_session(self.context, path)
        click.echo(f"Saved to {path}. `segue chat --session {path}` continues it.")


def _write_session(context: Context, path: Path) -> None:
    """Write a session to a temporary file and rename it, so that the file is always complete."""
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)
    append_header(fresh, context)
    for message in context.messages:
        append_message(fresh, message)
    for summary in context.summaries:
        append_summary(fresh, summary)
    fresh.replace(path)
