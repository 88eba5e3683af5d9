"""Every registered protocol, and functions that tests of several protocols share."""

from __future__ import annotations

import msgspec

from segue.conversation.context import Context
from segue.models.catalogue import find_models
from segue.models.model import Model
from segue.protocols.kit.protocol import Protocol
from segue.protocols.registry import all_protocols
from segue.testing.compare import answered_prefixes as cuts
from segue.testing.compare import joined_turns, message_given, without_fields

__all__ = [
    "all_codecs",
    "cuts",
    "find_model",
    "joined_turns",
    "message_given",
    "vouched_for",
    "wire_messages",
    "without_fields",
]


def all_codecs() -> list[Protocol]:
    """Give every protocol, in the registry's order."""
    return all_protocols()


def find_model(model_id: str, provider: str) -> Model | None:
    """Find a model of the catalogue, else None; `get_model` is slow here, because its error suggests similar names."""
    return next((model for model in find_models(provider=provider) if model.id == model_id), None)


def vouched_for(context: Context) -> Context:
    """Remove what the types of a provider's SDK do not cover: native content, native tools and `extra`.

    Media without a byte is removed too: `project` refuses it as a mistake of the program that built it.
    """

    def plain(value):
        mark = getattr(value, "cache_mark", None)
        changes = {} if mark is None else {"cache_mark": msgspec.structs.replace(mark, extra=None)}
        return msgspec.structs.replace(value, extra=None, **changes)

    def pieces(given):
        return tuple(plain(piece) for piece in given if piece.kind != "native" and getattr(piece, "data", None) != "")

    prompt = context.system_prompt
    return Context(
        system_prompt=pieces(prompt) if isinstance(prompt, tuple) else prompt,
        messages=tuple(
            msgspec.structs.replace(plain(message), content=pieces(message.content)) for message in context.messages
        ),
        tools=tuple(plain(tool) for tool in context.tools if tool.kind != "native"),
    )


def wire_messages(body: dict[str, object]) -> list[object]:
    """Give the list of turns of a body of any protocol."""
    keys = [codec.turns_key for codec in all_protocols() if codec.turns_key in body]
    turns = body[keys[0] or ""]
    assert isinstance(turns, list)
    return turns
