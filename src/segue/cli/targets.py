"""How commands find a model: in the catalogue, in a user's catalogue file, or by a protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import wraps
from typing import Final, NamedTuple, TypeVar, final

import click
from click.shell_completion import CompletionItem
from msgspec.structs import replace

from segue.errors import UnknownModel
from segue.histories.registry import format_names
from segue.models.catalogue import Catalogue, get_model, installed_catalogue, load_catalogue
from segue.models.model import Modality, Model
from segue.protocols.registry import PROTOCOLS, get_protocol

_Command = TypeVar("_Command", bound=Callable[..., object])


class _ProtocolNames(click.Choice[str]):
    """The names of all protocols; those of installed packages are listed when the names are first needed."""

    def __init__(self) -> None:
        super().__init__(())

    @property
    def choices(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return tuple(PROTOCOLS)

    @choices.setter
    def choices(self, names: object) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Ignore what the base class sets: the names are read again."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Accept a name of a protocol; for any other, suggest similar ones."""
        if value in PROTOCOLS:
            return value
        near = find_near(value, PROTOCOLS)
        hint = f"did you mean {' or '.join(near)}? The" if near else "the"
        text = f"there is no protocol {value!r}; {hint} protocols are {', '.join(PROTOCOLS)}."
        raise click.BadParameter(text, ctx, param)


def find_near(name: str, names: Iterable[str]) -> list[str]:
    """Find the names that are similar to one that is unknown, or begin with it; at most three."""
    known = {each.lower(): each for each in names}
    low = name.lower()
    begun = [each for each in known if len(low) > 1 and each.startswith(low)]
    found = dict.fromkeys((*begun, *get_close_matches(low, known, n=3, cutoff=0.7)))
    return [known[each] for each in found][:3]


@final
class _ReadableNames(_ProtocolNames):
    """The names of everything that can be read: formats and protocols, those of packages too."""

    @property
    def choices(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return (*format_names(), *PROTOCOLS)

    @choices.setter
    def choices(self, names: object) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Ignore what the base class sets: the names are read again."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Accept a name of a format or of a protocol; for any other, suggest similar ones."""
        if value in self.choices:
            return value
        near = find_near(value, self.choices)
        hint = f"did you mean {' or '.join(near)}? The names" if near else "the names"
        text = f"there is no format or protocol {value!r}; {hint} are {', '.join(self.choices)}."
        raise click.BadParameter(text, ctx, param)


PROTOCOL_NAMES: Final = _ProtocolNames()
READABLE_NAMES: Final = _ReadableNames()
_FROM: Final = "The format or the protocol that is read.  [default: recognised]"
_ANY_ID: Final = "model"
_EVERYTHING: Final[tuple[Modality, ...]] = ("text", "image", "document", "audio", "video")
"""The id and inputs of a target that only a protocol names: it accepts everything that the protocol supports."""


def gather(**records: type[NamedTuple]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Pass options to a command in records, each by its keyword: the fields of a record are names of options."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(*arguments: object, **given: object) -> None:
            made = {key: record._make(map(given.pop, record._fields)) for key, record in records.items()}
            command(*arguments, **given, **made)

        return run

    return decorate


def catalogue_option(command: _Command) -> _Command:
    """Add the option for a user's own catalogue file."""
    return click.option(
        "--catalogue",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False),
        help="A JSON or TOML file of your own models and providers; they override the packaged ones.",
    )(command)


def source_option(command: _Command) -> _Command:
    """Add the option for the format or the protocol of the file that is read."""
    return click.option("--from", "source", metavar="FORMAT", type=READABLE_NAMES, help=_FROM)(command)


def name_option(command: _Command) -> _Command:
    """Add the same option for commands whose argument is a SOURCE; they had it under another name first."""
    return click.option("--from", "--format", "name", metavar="FORMAT", type=READABLE_NAMES, help=_FROM)(command)


def reasoning_option(command: _Command) -> _Command:
    """Add the option for the thinking of other models."""
    return click.option(
        "--reasoning",
        type=click.Choice(["auto", "text", "drop", "native"]),
        default="auto",
        show_default=True,
        help="What to do with the thinking of other models.",
    )(command)


def complete_model(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    """Complete the names of the catalogue in the shell."""
    names = (model.full_name() for model in installed_catalogue().models)
    return [CompletionItem(name) for name in names if incomplete.lower() in name.lower()]


def complete_model_or_protocol(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the names of protocols and of the catalogue in the shell."""
    protocols = [CompletionItem(name) for name in PROTOCOLS if name.startswith(incomplete.lower())]
    return protocols + complete_model(ctx, param, incomplete)


def complete_provider(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    """Complete the names of providers in the shell."""
    names = dict.fromkeys(model.provider for model in installed_catalogue().models)
    return [CompletionItem(name) for name in names if name.startswith(incomplete.lower())]


def open_catalogue(path: str | None) -> Catalogue:
    """Return the catalogue of segue and of installed packages, with the models and providers of a user's own file.

    Raises:
        ModelError: the file is not a catalogue.
    """
    return installed_catalogue() if path is None else load_catalogue(path)


@final
class ModelWords(NamedTuple):
    """How a command names a model and its protocol, for error messages.

    If `alone` is true, the command also takes a protocol without a model.
    """

    model: str
    protocol: str
    alone: bool = True
    models: str = "`segue models` lists the names"
    """Where the names of models are listed."""
    other: str = "For any other model, name its protocol, such as {protocol} openai-chat"
    """What to do for a model that the catalogue does not have."""


TO: Final = ModelWords("--to", "--to-protocol")
FROM: Final = ModelWords("--from-model", "--from")
FOR: Final = ModelWords("--for", "--for")
CHAT: Final = ModelWords("MODEL", "--protocol", alone=False)
ASK: Final = ModelWords("--model", "--protocol", alone=False)
MODELS: Final = ModelWords("QUERY", "--protocol", alone=False, other="Add a model of your own with --catalogue FILE")
COMPARED: Final = ModelWords(
    "--model", "--protocol", alone=False, other="Add a model of your own with --catalogue FILE"
)
IN_CHAT: Final = ModelWords(
    "/model",
    "--protocol",
    alone=False,
    models="/models QUERY lists the names",
    other="For any other model, start the program again: segue chat NAME --protocol PROTOCOL",
)


def find_target(name: str | None, protocol: str | None, catalogue: str | None, words: ModelWords = TO) -> Model:
    """Find a model by its name, or any model of a protocol.

    A name that the catalogue does not have needs a protocol; what comes before its first slash is the provider.

    Raises:
        UsageError: there is neither a name nor a protocol, or the name is that of a protocol.
        UnknownModel: the catalogue has no such name, and no protocol is given.
    """
    if name is None:
        if protocol is None:
            raise click.UsageError(
                f"name the target model with {words.model}, or only its protocol with {words.protocol}"
            )
        return Model(_ANY_ID, get_protocol(protocol).provider, protocol, reasoning=True, input=_EVERYTHING)
    known = open_catalogue(catalogue)
    try:
        found = get_model(name, catalogue=known)
    except UnknownModel as unknown:
        if name in PROTOCOLS:
            raise click.UsageError(_protocol_named(name, known, words)) from None
        if protocol is None:
            raise explain_unknown(unknown, words) from None
        provider, slash, model_id = name.partition("/")
        return Model(model_id, provider, protocol) if slash else Model(name, get_protocol(protocol).provider, protocol)
    return found if protocol is None or protocol == found.protocol else replace(found, protocol=protocol)


def _protocol_named(name: str, known: Catalogue, words: ModelWords) -> str:
    """Explain that a protocol was given where a model is expected, with an example that works."""
    example = get_protocol(name).example.full_name()
    try:
        known.get(example)
    except UnknownModel:
        example = f"{example} with {words.protocol} {name}"
    alone = f"{words.protocol} {name}, or " if words.alone else ""
    return f"{words.model} takes a model, and {name} is a protocol; use {alone}a model of it, such as {example}"


def explain_unknown(unknown: UnknownModel, words: ModelWords) -> UnknownModel:
    """Replace advice for Python programs with that of the command; names of protocols are suggested, too."""
    near = find_near(unknown.name, PROTOCOLS) if words.alone else []
    if near:
        text = f"there is no model and no protocol {unknown.name!r}; did you mean {words.protocol} {near[0]}?"
        if unknown.suggestions:
            text += f" Similar models: {', '.join(unknown.suggestions)}"
        return UnknownModel(text, name=unknown.name, suggestions=(*near, *unknown.suggestions))
    if unknown.suggestions:
        return unknown
    other = words.other.format(protocol=words.protocol)
    return UnknownModel(f"the catalogue has no model {unknown.name!r}; {words.models}. {other}", name=unknown.name)
