"""`segue show`: prints a conversation as readable text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO, Final

import click

from segue.cli.inputs import (
    SourceFile,
    choose_input,
    example_option,
    open_input,
    print_redacted,
    raise_named,
    redact_option,
)
from segue.cli.printable import echo_data
from segue.cli.reports import open_console
from segue.cli.targets import FOR, catalogue_option, complete_model, find_target, open_catalogue, source_option
from segue.conversation.content import AnyContent, FileContent, ImageContent
from segue.conversation.context import Context, Prompt
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage, Usage
from segue.conversation.pages import PAGES
from segue.errors import LoadError, UnknownModel
from segue.foundation.json_text import encode_valid_json
from segue.foundation.plurals import counted
from segue.foundation.safe_text import in_one_line, printable
from segue.histories.opening import BadLine, How, OpenedDocument, open_line
from segue.histories.redacting import new_redactor, redact_document
from segue.inspector.dropped import find_dropped
from segue.models.catalogue import Catalogue
from segue.models.model import Model
from segue.models.price import compute_cost
from segue.projection.projector import project
from segue.requests.tokens import measure

if TYPE_CHECKING:
    from rich.console import Console

_COLOURS: Final = ("cyan", "magenta", "green", "yellow", "blue", "red", "bright_cyan", "bright_magenta")
"""One for each model, in order of appearance."""
_FOLDED: Final = 160
_SHORT: Final = 2000
"""How many characters of shortened thinking, and of a long text, are shown."""


@click.command("show")
@click.argument("file", required=False, type=SourceFile())
@example_option
@source_option
@click.option(
    "--nth",
    type=click.IntRange(1),
    metavar="N",
    help="The conversation to show, of a file with several; 1 is the first.",
)
@click.option("--line", type=click.IntRange(1), metavar="N", help="The same by its line in the file.")
@click.option("--full", is_flag=True, help="Do not shorten thinking and long texts.")
@click.option(
    "--for",
    "targets",
    metavar="MODEL",
    multiple=True,
    shell_complete=complete_model,
    help="Also print the length for this model, in addition to those that wrote answers. Can be repeated.",
)
@click.option(
    "--dropped",
    is_flag=True,
    help="Print only what the models given with --for would not see, those messages first that matter most.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", *PAGES]),
    default="text",
    show_default=True,
    help="text for a terminal, or a document: html is a page that needs no other file.",
)
@redact_option
@catalogue_option
def command(
    *,
    file: BinaryIO | None,
    example: bool,
    source: str | None,
    nth: int | None,
    line: int | None,
    full: bool,
    targets: tuple[str, ...],
    dropped: bool,
    form: str,
    redacts: bool,
    catalogue: str | None,
) -> None:
    """Print FILE: messages and their models, tool calls and results, tokens and costs. Thinking is shortened.

    Of a file with one conversation on each line, the first is printed, and how many there are.

    The last line says how long the next request would be for each model that wrote an answer, how much of its window
    that is, and what its input would cost. With --dropped only what would be left out or shortened is printed, those
    messages first that share most names with what is sent; `segue pin FILE NUMBER` keeps one of them.
    """
    file = choose_input(file, example=example)
    if nth is not None and line is not None:
        raise click.UsageError("--nth and --line both choose a conversation; use one of them")
    document, position = _pick(file, source, nth, line)
    if redacts:
        redactor = new_redactor()
        document = redact_document(document, redactor)
        print_redacted(redactor)
    if form != "text":
        echo_data(PAGES[form](document.prompt.context), nl=False)
        return
    models = [find_target(name, None, catalogue, FOR) for name in targets]
    if dropped:
        if not models:
            raise click.UsageError("--dropped needs the model whose window is too small; add --for MODEL")
        for model in models:
            _show_dropped(document.prompt.context, model)
        return
    _Reader(open_console(), document.prompt, open_catalogue(catalogue), full=full).show(models)
    if not document.prompt.context.messages:
        click.echo("the conversation has no messages", err=True)
    if position:
        click.echo(position, err=True)


def _pick(file: BinaryIO, source: str | None, nth: int | None, line: int | None) -> tuple[OpenedDocument, str]:
    """Read the chosen conversation, and describe its position in a file that has several."""
    opened = open_input(file, source)
    if opened.document is not None:
        if (nth or 1) > 1:
            raise click.UsageError(f"{file.name} has 1 conversation; --nth {nth} does not exist")
        return opened.document, ""
    chosen: tuple[int, int, bytes] | None = None
    count = 0
    for count, (number, data) in enumerate(opened.lines, 1):
        if number == line if line is not None else count == (nth or 1):
            chosen = count, number, data
    if chosen is None:
        what = f"a conversation on line {line}" if line is not None else f"a conversation {nth}"
        raise LoadError(
            f"{file.name}: the file has {counted(count, 'conversation')}, but not {what}; use --nth 1 to {count}"
        )
    position, number, data = chosen
    document = open_line(data, How(format=source), number)
    if isinstance(document, BadLine):
        raise_named(LoadError(document.reason, line=number), file.name)
    return document, f"conversation {position:,} of {count:,}, line {number:,}; --nth N shows another"


def _show_dropped(context: Context, model: Model) -> None:
    """List the messages that a model would not see, ranked."""
    found = find_dropped(context, project(context, model), model)
    if not found:
        click.echo(f"{model.full_name()} sees every message")
        return
    words = {True: "left out", False: "shortened"}
    gone = sum(each.is_gone for each in found)
    click.echo(f"{model.full_name()}: {counted(gone, 'message')} left out, {len(found) - gone:,} shortened")
    for each in found:
        message = context.messages[each.index]
        text = in_one_line(" ".join(" ".join(map(_in_a_line, message.content)).split()))
        role = "result" if message.role == "toolResult" else message.role
        click.echo(f"{each.index:6} {role:9} {words[each.is_gone]:9} {each.tokens:7,} tokens  {text[:_FOLDED]}")


class _Reader:
    """Prints one conversation."""

    def __init__(self, console: Console, prompt: Prompt, catalogue: Catalogue, *, full: bool) -> None:
        context = prompt.context
        self._console = console
        self._prompt = prompt
        self._context = context
        self._catalogue = catalogue
        self._full = full
        names = dict.fromkeys(_writer(message) for message in context.messages if message.role == "assistant")
        self._colours = {name: _COLOURS[at % len(_COLOURS)] for at, name in enumerate(names)}

    def show(self, targets: Sequence[Model] = ()) -> None:
        context = self._context
        prompt = context.system_prompt
        if prompt:
            self._head("system", "", "dim")
            self._body(prompt if isinstance(prompt, str) else "\n".join(map(_in_a_line, prompt)))
        if context.tools:
            names = ", ".join(
                tool.name if tool.kind == "function" else f"{tool.protocol} tool" for tool in context.tools
            )
            self._head("tools", names, "dim")
        for number, message in enumerate(context.messages):
            self._message(number, message)
        self._sums()
        self._lengths(targets)

    def _message(self, number: int, message: Message) -> None:
        match message.role:
            case "assistant":
                self._head(f"{number} assistant", _origin(message), self._colours[_writer(message)])
            case "toolResult":
                mark = " failed" if message.is_error else ""
                self._head(
                    f"{number} result", f"{message.tool_name} {message.tool_call_id}{mark}", "red" if mark else "dim"
                )
            case _:
                self._head(f"{number} {message.role}", "", "bold")
        for content in message.content:
            self._content(content, is_result=isinstance(message, ToolResultMessage))
        if message.role == "assistant":
            self._foot(message)

    def _content(self, content: AnyContent, *, is_result: bool) -> None:
        match content.kind:
            case "text":
                self._body(content.text)
            case "thinking":
                self._body(_thinking(content.thinking, full=self._full, redacted=content.redacted), style="italic dim")
            case "toolCall":
                text = content.arguments_text or encode_valid_json(content.arguments).decode()
                self._body(f"-> {content.name}({text})  {content.id}", style="bold")
            case "image" | "file" | "native":
                self._body(_in_a_line(content), style="dim" if is_result else "")

    def _head(self, who: str, detail: str, style: str) -> None:
        from rich.text import Text

        self._console.print(Text(f"\n{who}", style).append(f"  {detail}" if detail else "", "dim"))

    def _body(self, text: str, style: str = "") -> None:
        from rich.padding import Padding
        from rich.text import Text

        shown = text if self._full or len(text) <= _SHORT else f"{text[:_SHORT]} ... ({len(text) - _SHORT:,} more)"
        terms = Text(printable(shown), style)
        if self._console.is_terminal:
            self._console.print(Padding(terms, (0, 0, 0, 2)))
        else:  # in a pipe, lines are not wrapped or padded, so that they can be searched
            self._console.print(
                "\n".join(f"  {line}".rstrip() for line in terms.plain.split("\n")), soft_wrap=True, markup=False
            )

    def _foot(self, message: AssistantMessage) -> None:
        parts: list[str] = []
        if message.stop_reason in ("error", "aborted", "length"):
            reason = f": {message.error_message}" if message.error_message else ""
            parts.append(f"[{message.stop_reason}{reason}]")
        if message.usage is not None:
            parts.append(_usage(message.usage, self._cost(message)))
        if parts:
            self._body("  ".join(parts), style="dim")

    def _cost(self, message: AssistantMessage) -> float:
        usage = message.usage
        if usage is None:
            return 0.0
        if usage.cost is not None and usage.cost.total:
            return usage.cost.total
        try:
            return compute_cost(self._catalogue.get(_writer(message)).cost, usage).total
        except UnknownModel:
            return 0.0

    def _sums(self) -> None:
        turns = [message for message in self._context.messages if message.role == "assistant"]
        if not any(turn.usage for turn in turns):
            return
        self._head("total", "", "bold")
        for name in self._colours:
            own = [turn for turn in turns if _writer(turn) == name]
            cost = sum(map(self._cost, own))
            count = counted(len(own), "turn")
            self._body(f"{name}: {count}, {_usage(_added(own), cost)}", style=self._colours[name])

    def _lengths(self, targets: Sequence[Model]) -> None:
        """Print how long the next request would be, for the models that wrote answers and for `targets`."""
        models = {model.full_name(): model for name in self._colours if (model := self._find(name)) is not None}
        models |= {model.full_name(): model for model in targets}
        if not models:
            return
        self._head("next request", "", "bold")
        for name, model in models.items():
            length = measure(self._prompt, model)
            self._body(f"{name}: {length.describe()}", style=self._colours.get(name, "") if length.fits else "bold red")

    def _find(self, name: str) -> Model | None:
        try:
            return self._catalogue.get(name)
        except UnknownModel:
            return None


def _writer(message: AssistantMessage) -> str:
    return f"{message.provider}/{message.model}"


def _origin(message: AssistantMessage) -> str:
    other = message.response_model
    served = f" as {other}" if other and other != message.model else ""
    return f"{_writer(message)} over {message.protocol}{served}"


def _thinking(text: str, *, full: bool, redacted: bool) -> str:
    if redacted:
        return "(encrypted thinking, readable only by its own model)"
    flat = text if full else " ".join(text.split())
    if not flat:
        return "(thinking without text)"
    return f"~ {flat}" if full or len(flat) <= _FOLDED else f"~ {flat[:_FOLDED]} ... ({len(text):,} characters)"


def _in_a_line(content: AnyContent) -> str:
    match content.kind:
        case "image" | "file":
            return _media(content)
        case "native":
            kind = content.block.get("type")
            fallback = "\n".join(map(_in_a_line, content.fallback))
            return f"[{content.protocol} {kind if isinstance(kind, str) else 'block'}] {fallback}".rstrip()
        case "text":
            return content.text
        case _:
            return f"[{content.kind}]"


def _media(content: ImageContent | FileContent) -> str:
    if content.data is not None:
        where = _bytes(len(content.data) * 3 // 4)
    else:
        file_id = content.file_id if content.kind == "file" else None
        where = content.url or file_id or "no data"
    name = f" {content.name}" if content.kind == "file" and content.name else ""
    return f"[{content.kind}{name}: {content.mime_type or 'unknown type'}, {where}]"


def _bytes(count: int) -> str:
    return f"{count / 1_048_576:.1f} MB" if count >= 1_048_576 else f"{count / 1024:.1f} KB"


def _usage(usage: Usage, cost: float) -> str:
    cached = f" ({usage.cache_read:,} cached)" if usage.cache_read else ""
    read = usage.input + usage.cache_read + usage.cache_write
    price = f", ${cost:.4f}" if cost else ""
    return f"{read:,} input tokens{cached}, {usage.output:,} output tokens{price}"


def _added(turns: Sequence[AssistantMessage]) -> Usage:
    used = [turn.usage for turn in turns if turn.usage is not None]
    return Usage(
        input=sum(usage.input for usage in used),
        output=sum(usage.output for usage in used),
        cache_read=sum(usage.cache_read for usage in used),
        cache_write=sum(usage.cache_write for usage in used),
    )
