"""How commands find a model: in the catalogue, in a user's catalogue file, or by a protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import click
from click.shell_completion import CompletionItem
from msgspec.structs import replace

from segue.errors import UnknownModel
from segue.models.catalogue import Catalogue, get_model, installed_catalogue
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
        """Ignore what the base class sets: the names are read anew."""


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
        help="A JSON or TOML file of your own models and providers; they win over the packaged ones.",
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
    installed = installed_catalogue()
    return installed if path is None else installed.with_catalogue(Catalogue.read(path))


def find_target(name: str | None, protocol: str | None, catalogue: str | None) -> Model:
    """Find the target model.

    Raises:
        UnknownModel: the catalogue has no such name, and no protocol is given.
    """
    if name is None:
        if protocol is None:
            raise click.UsageError("name the target model with --to, or only its protocol with --to-protocol")
        return Model(_ANY_ID, get_protocol(protocol).provider, protocol, reasoning=True, input=_EVERYTHING)
    try:
        found = get_model(name, catalogue=open_catalogue(catalogue))
    except UnknownModel:
        if protocol is None:
            raise
        provider, slash, model_id = name.partition("/")
        return Model(model_id, provider, protocol) if slash else Model(name, get_protocol(protocol).provider, protocol)
    return found if protocol is None or protocol == found.protocol else replace(found, protocol=protocol)
