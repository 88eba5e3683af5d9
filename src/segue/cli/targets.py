"""How commands find a model: in the catalogue, in a user's catalogue file, or by a protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar, final

import click
from click.shell_completion import CompletionItem
from msgspec.structs import replace

from segue.errors import UnknownModel
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


PROTOCOL_NAMES: Final = _ProtocolNames()
_ANY_ID: Final = "model"
_EVERYTHING: Final[tuple[Modality, ...]] = ("text", "image", "document", "audio", "video")
"""The id and inputs of a target that only a protocol names: it accepts everything that the protocol supports."""


def catalogue_option(command: _Command) -> _Command:
    """Add the option for a user's own catalogue file."""
    return click.option(
        "--catalogue",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False),
        help="A JSON or TOML file of your own models and providers; they override the packaged ones.",
    )(command)


def source_option(command: _Command) -> _Command:
    """Add the option for the protocol of the file that is read."""
    return click.option(
        "--from", "source", metavar="PROTOCOL", type=PROTOCOL_NAMES, help="The protocol of FILE.  [default: detected]"
    )(command)


def complete_model(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    """Complete the names of the catalogue in the shell."""
    names = (model.full_name() for model in installed_catalogue().models)
    return [CompletionItem(name) for name in names if incomplete.lower() in name.lower()]


def open_catalogue(path: str | None) -> Catalogue:
    """Give the catalogue of segue and of installed packages, with the models and providers of a user's own file.

    Raises:
        ModelError: the file is no catalogue.
    """
    return installed_catalogue() if path is None else load_catalogue(path)


@final
class Words(NamedTuple):
    """How a command names a model and its protocol, for error messages.

    If `alone` is true, the command also takes a protocol without a model.
    """

    model: str
    protocol: str
    alone: bool = True


TO: Final = Words("--to", "--to-protocol")
FROM: Final = Words("--from-model", "--from")
FOR: Final = Words("--for", "--for")
CHAT: Final = Words("MODEL", "--protocol", alone=False)


def find_target(name: str | None, protocol: str | None, catalogue: str | None, words: Words = TO) -> Model:
    """Find a model by its name, or any model of a protocol.

    A name that the catalogue does not have needs a protocol; what stands before its first slash is the provider.

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
            raise _explain(unknown, words) from None
        provider, slash, model_id = name.partition("/")
        return Model(model_id, provider, protocol) if slash else Model(name, get_protocol(protocol).provider, protocol)
    return found if protocol is None or protocol == found.protocol else replace(found, protocol=protocol)


def _protocol_named(name: str, known: Catalogue, words: Words) -> str:
    """Explain that a protocol was given where a model is expected, with an example that works."""
    example = get_protocol(name).example.full_name()
    try:
        known.get(example)
    except UnknownModel:
        example = f"{example} with {words.protocol} {name}"
    alone = f"{words.protocol} {name}, or " if words.alone else ""
    return f"{words.model} takes a model, and {name} is a protocol; use {alone}a model of it, such as {example}"


def _explain(unknown: UnknownModel, words: Words) -> UnknownModel:
    """Replace advice for Python programs with the options of the command."""
    if unknown.suggestions:
        return unknown
    text = (
        f"the catalogue has no model {unknown.name!r}; `segue models` lists the names. For any other model, "
        f"name its protocol, such as {words.protocol} openai-chat"
    )
    return UnknownModel(text, name=unknown.name)
