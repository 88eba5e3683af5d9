"""A chat in the terminal: handles typed lines, commands and output.

The history is in a `Conversation`, which can only grow. So `/undo` replaces the session file and opens a new
`Conversation` with the remaining messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import click

from segue.cli.answers import describe_usage, print_answer, print_end, print_usage, status_of
from segue.cli.attachments import read_attachment
from segue.cli.printable import echo_styled
from segue.cli.starting import find_obstacle, start_local
from segue.cli.statuses import Status
from segue.cli.targets import IN_CHAT, explain_unknown, find_near
from segue.cli.wording import in_program_words
from segue.client.http.clients import Client
from segue.client.session.conversation import Conversation
from segue.client.session.recorded_models import storable_model
from segue.conversation.content import FileContent, ImageContent
from segue.conversation.context import Context, Options
from segue.conversation.messages import UserMessage
from segue.conversation.pages import PAGES
from segue.errors import SegueError, UnknownModel
from segue.foundation.plurals import counted
from segue.histories.sessions import append_model, read_session_models, write_session
from segue.models.catalogue import Catalogue, installed_catalogue
from segue.models.model import Model
from segue.models.price import add_usage
from segue.projection.projector import project

_HELP: Final = """\
/model NAME   send your next messages to another model, and show what changes
/models QUERY list the models of the catalogue whose names contain QUERY
/image PATH   attach an image or another file to your next message
/cost         show the tokens and the cost of this conversation
/undo         remove your last message and the answer
/save PATH    write the conversation to a session file; /save! PATH overwrites an existing file
/export PATH  write the conversation for people to read: Markdown, or a page if PATH ends in .html
/help         show this list
/quit         end the chat; Ctrl-D does the same
A line that ends with \\ goes on in the next one. Tab completes commands and names of models, arrow keys bring back
earlier lines."""
_COMPLETED: Final = 200
"""How many names of models a completion offers at most."""
_NEXT: Final = "(your next message)"


class ChatSession:
    """One conversation in the terminal."""

    def __init__(
        self,
        client: Client,
        model: Model | None,
        catalogue: Catalogue,
        *,
        path: Path | None,
        system_prompt: str | None,
        options: Options,
        usage: bool = False,
    ) -> None:
        self._usage = usage
        self._client = client
        self._catalogue = catalogue
        self._path = path
        self._options = options
        self._attached: list[ImageContent | FileContent] = []
        self.status: Status = Status.SUCCESS
        """The exit status of the last answer."""
        self._commands: Mapping[str, Callable[[str], None]] = {
            "/help": self._help,
            "/model": self._switch,
            "/models": self._list,
            "/image": self._attach,
            "/cost": self._cost,
            "/export": self._export,
            "/undo": self._undo,
            "/save": self._save,
            "/save!": self._save_over,
        }
        self._conversation = Conversation(model, client=client, path=path, system_prompt=system_prompt, options=options)
        self._answered: dict[str, Model] = {}
        self._answering = self._conversation.model
        """The model that gave the last answer, or the first model."""

    @property
    def context(self) -> Context:
        """The conversation so far."""
        return self._conversation.context

    @property
    def model(self) -> Model:
        """The model that the next message goes to."""
        return self._conversation.model

    def close(self) -> None:
        """Release the session file."""
        self._conversation.close()

    def handle(self, line: str) -> bool:
        """Handle a typed line; False ends the chat."""
        text = line.strip()
        if not text and not self._attached:
            return True
        # A pasted text may begin with a slash; a command is one line.
        command, _, rest = text.partition(" ") if "\n" not in text else ("", "", "")
        if command in ("/quit", "/exit"):
            return False
        try:
            if command in self._commands:
                self._commands[command](rest.strip())
            elif command.startswith("/"):
                near = find_near(command, (*self._commands, "/quit"))
                hint = f"did you mean {' or '.join(near)}?" if near else "/help lists the commands"
                click.echo(f"There is no command {command}; {hint}", err=True)
            else:
                self._send(text)
        except SegueError as error:
            echo_styled(in_program_words(str(error)), fg="red", err=True)
        except OSError as error:
            if error.filename is None:
                raise  # the output is full or closed
            echo_styled(f"{error.filename}: {error.strerror}", fg="red", err=True)
        return True

    def _send(self, text: str) -> None:
        content = (*([text] if text else []), *self._attached)
        self._attached = []
        stream = self._conversation.stream(*content)
        message = print_answer(stream, on_first=self._report_switch)
        self.status = status_of(message, stream.attempts)
        if stream.attempts:
            answered = stream.attempts[-1].model
            self._answered[answered.full_name()] = answered
        print_end(message)
        if self._usage and message.usage is not None:
            print_usage(message.usage)

    def _report_switch(self) -> None:
        """Report that another model answers than before, when its first answer begins."""
        if self._answering != self.model:
            echo_styled(f"(the model is now {self.model.full_name()})", dim=True, err=True)
            self._answering = self.model

    # -- commands ------------------------------------------------------------------------------------------------------

    def _help(self, _: str) -> None:
        click.echo(_HELP)

    def _switch(self, name: str) -> None:
        if not name:
            click.echo(f"The model is {self._conversation.model.full_name()}. /model NAME switches to another.")
            return
        try:
            model = self._conversation.find_model(name)
        except UnknownModel as unknown:
            raise explain_unknown(unknown, IN_CHAT) from None
        self._conversation.switch(model)
        changes = ""
        if self.context.messages:
            # What changes is that of the next request, which ends with a message of the user.
            summary = project(self.context.add(UserMessage.of(_NEXT)), model).report.summary()
            changes = " " + "\n".join(map(in_program_words, summary.split("\n")))
        click.echo(f"Your next message goes to {model.full_name()}.{changes}")
        self.prepare_model()

    def prepare_model(self) -> None:
        """Warn at once if the model cannot answer, such as without its key; a model of this machine is started."""
        if (obstacle := find_obstacle(self._client, self.model)) is not None:
            echo_styled(f"It cannot answer yet: {in_program_words(obstacle)}", fg="yellow", err=True)
        else:
            start_local(self.model)

    def _list(self, query: str) -> None:
        found = self._catalogue.find(query or None)
        for model in found[:20]:
            click.echo(model.full_name())
        if len(found) > 20:
            click.echo(f"... and {len(found) - 20:,} more")

    def _attach(self, name: str) -> None:
        path = Path(name).expanduser()
        self._attached.append(read_attachment(path))
        click.echo(f"{path.name} will be sent with your next message.")

    def complete(self, text: str) -> list[str]:
        """Return what a line that is being typed can be completed to: commands, and names of models after /model."""
        command, space, rest = text.partition(" ")
        if not space:
            return [name for name in (*self._commands, "/quit") if name.startswith(command) and command]
        if command not in ("/model", "/models"):
            return []
        return [f"{command} {model.full_name()}" for model in self._catalogue.find(rest or None)[:_COMPLETED]]

    def _cost(self, _: str) -> None:
        usages = [message.usage for message in self.context.messages if message.role == "assistant" and message.usage]
        click.echo(f"{counted(len(usages), 'answer')}: {describe_usage(add_usage(usages))}")

    def _export(self, name: str) -> None:
        if not name:
            click.echo("/export needs a path: /export PATH")
            return
        path = Path(name).expanduser()
        form = "html" if path.suffix in (".html", ".htm") else "markdown"
        try:
            with path.open("x", encoding="utf-8", errors="replace") as file:
                file.write(PAGES[form](self.context, title=path.stem))
        except FileExistsError:
            click.echo(f"{path} already exists and was not changed; name another file.")
            return
        click.echo(f"Written to {path}.")

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
            pins=tuple(pin for pin in self.context.pins if pin < last),
            extra=self.context.extra,
        )
        model = self._conversation.model
        if self._path is not None:
            models = read_session_models(self._path)[1]
            write_session(self._path, left)  # while the file is still locked
            for each in models:
                append_model(self._path, each)
        self._conversation.close()
        self._conversation = Conversation(
            model,
            client=self._client,
            path=self._path,
            context=None if self._path is not None else left,
            options=self._options,
        )
        remains = counted(len(left.messages), "message remains", "messages remain")
        click.echo(f"Removed your last message and what followed. {remains}.")

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
        known = {} if self._path is None else {each.full_name(): each for each in read_session_models(self._path)[1]}
        write_session(path, self.context)
        for full_name, model in (known | self._answered).items():
            if not installed_catalogue().has_name(full_name):
                append_model(path, storable_model(model))
        click.echo(f"Saved to {path}. `segue chat --session {path}` continues it.")
