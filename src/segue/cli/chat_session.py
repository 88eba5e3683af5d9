"""A conversation in the terminal: what is typed, what a command does, what is shown.

The history lives in a `Conversation`; here it is only talked to. It can be cut short (`/undo`), which a conversation
cannot: it is opened anew with what is left, and its session file is replaced as a whole.
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
from segue.sessions import append_header, append_message

_HELP: Final = """\
/model NAME   go on with another model, and see what the switch changes
/models WORDS list models of the catalogue
/image PATH   show a picture, or give a file, with what you say next
/undo         take back your last words and the answer
/save PATH    write the conversation to a session file; /save! PATH also over one that is there
/help         this
/quit         the end; so does Ctrl-D"""


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
        """What was said so far."""
        return self._conversation.context

    def close(self) -> None:
        """Let others write to the session file."""
        self._conversation.close()

    def handle(self, line: str) -> bool:
        """Do what a line says; False when it is the end."""
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
                click.echo(f"There is no {command}. /help lists what there is.", err=True)
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
            click.secho("(stopped; what had come is kept)", dim=True, err=True)
        elif message.stop_reason == "error":
            click.secho(message.error_message or "the reply broke off", fg="red", err=True)
        elif message.stop_reason == "length":
            click.secho("(the answer was cut off at its limit)", dim=True, err=True)

    # -- commands ------------------------------------------------------------------------------------------------------

    def _help(self, _: str) -> None:
        click.echo(_HELP)

    def _switch(self, name: str) -> None:
        if not name:
            click.echo(f"This is {self._conversation.model.full_name()}. /model NAME goes on with another.")
            return
        model = ECHO if name in ("echo", ECHO.full_name()) else self._catalogue.get(name)
        report = project(self.context, model).report
        self._conversation.switch(model)
        click.echo(f"Now {model.full_name()}. {report.summary()}")

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
        click.echo(f"{path.name} goes with what you say next.")

    def _undo(self, _: str) -> None:
        messages = self.context.messages
        last = max((at for at, message in enumerate(messages) if message.role == "user"), default=None)
        if last is None:
            click.echo("There is nothing to take back.")
            return
        left = Context(
            system_prompt=self.context.system_prompt,
            messages=messages[:last],
            tools=self.context.tools,
            extra=self.context.extra,
        )
        model = self._conversation.model
        if self._path is not None:
            _write_session(left, self._path)  # while nobody else can write to it
        self._conversation.close()
        self._conversation = Conversation(
            model,
            client=self._client,
            path=self._path,
            context=None if self._path is not None else left,
            options=self._options,
        )
        click.echo(f"Taken back. {len(left.messages)} messages are left.")

    def _save(self, name: str) -> None:
        if not name:
            click.echo("/save PATH says where to.")
            return
        path = Path(name).expanduser()
        if path.exists():
            click.echo(f"{path} is there already, and was left as it is; /save! {name} writes over it.")
            return
        self._save_over(name)

    def _save_over(self, name: str) -> None:
        if not name:
            click.echo("/save! PATH says where to.")
            return
        path = Path(name).expanduser()
        _write_session(self.context, path)
        click.echo(f"Written to {path}; `segue chat --session {path}` goes on with it.")


def _write_session(context: Context, path: Path) -> None:
    """Write a session beside its place and put it there in one go, so that there is always a whole one."""
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)
    append_header(fresh, context)
    for message in context.messages:
        append_message(fresh, message)
    fresh.replace(path)
