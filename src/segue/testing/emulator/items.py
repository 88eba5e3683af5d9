"""Reasoning that providers other than Anthropic sign: what it was made after, and what is withheld from the model.

Facts this file rests on:
- OpenAI can withhold reasoning items instead of refusing them, and lists them in `input_transformations`: by their
  original ids, in the order of the input, with the first reason of organization, model and prefix.
                                                      (openai 3.51.0: Response; the order of reasons is that of Claude)
- Which models do so, and what counts as the prefix, is not documented. Here it is the instructions, the tools and the
  messages before the reply; reasoning and ids do not count.
- Google checks the model, the endpoint and the signed part, not the prefix.     (Google documentation, recorded errors)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any, NamedTuple, TypeAlias, cast, final

import msgspec

from segue.conversation.content import AssistantContent, SystemContent, UserContent
from segue.conversation.context import Prompt
from segue.conversation.messages import AssistantMessage, Message
from segue.envelope.canonical import canonical_json
from segue.protocols.kit.facts import SignatureForm
from segue.testing.emulator.signing import tokens_of

Removed: TypeAlias = Mapping[str, str]


@final
class MadeItem(NamedTuple):
    """A token of a reply: for which model and realm it is, behind what it was made, and the id of its item."""

    model: str
    realm: str
    prefix: bytes
    name: str


class ItemLedger:
    """What the emulated providers have signed besides Claude thinking."""

    def __init__(self) -> None:
        self._made: dict[str, MadeItem] = {}

    def record(self, reply: AssistantMessage, form: SignatureForm, model: str, realm: str, prompt: Prompt) -> None:
        """Remember the tokens of a reply."""
        prefix = _prefixes(prompt)[-1]
        for token, name in zip(tokens_of(reply, form), _names(reply), strict=False):
            if token is not None:
                self._made[token] = MadeItem(model, realm, prefix, name)

    def made(self) -> tuple[str, ...]:
        """Give all tokens so far, the oldest first."""
        return tuple(self._made)

    def judge(self, prompt: Prompt, form: SignatureForm, model: str, realm: str) -> tuple[Removed, ...]:
        """Give what is withheld from the model, as the reply reports it."""
        found: list[Removed] = []
        prefixes = _prefixes(prompt)
        for place, message in enumerate(prompt.context.messages):
            for token in tokens_of(message, form) if message.role == "assistant" else ():
                made = None if token is None else self._made.get(token)
                reason = None if made is None else _unusable(made, model, realm, prefixes[place])
                if made is not None and reason is not None:
                    entry = {"id": made.name, "type": "reasoning", "action": "removed", "reason": reason}
                    found.append(entry)
        return tuple(found)

    def given_up(
        self, prompt: Prompt, known: Collection[str], form: SignatureForm, model: str, realm: str, *, binds: bool
    ) -> tuple[str, ...]:
        """Give the known tokens that a request does not send although they would be accepted at their places.

        `binds` says whether the prefix counts. Where it does not, a token is accepted wherever its turn is.
        """
        sent = {token for message in prompt.context.messages for token in _sent(message, form)}
        made = {token: self._made[token] for token in known if token in self._made and token not in sent}
        usable = {token: each for token, each in made.items() if (each.model, each.realm) == (model, realm)}
        if not usable or not binds:
            return tuple(usable)
        turns = zip(prompt.context.messages, _prefixes(prompt), strict=False)
        places = {prefix for message, prefix in turns if message.role == "assistant"}
        return tuple(token for token, each in usable.items() if each.prefix in places)


def add_removed(body: dict[str, object] | None, frames: Sequence[object] | None, removed: Sequence[Removed]) -> None:
    """Report in a reply what was withheld: every object `response` has the list."""
    holders = [body] if frames is None else [cast("Mapping[str, object]", frame).get("response") for frame in frames]
    for holder in holders:
        if isinstance(holder, dict):
            cast("dict[str, object]", holder)["input_transformations"] = [dict(entry) for entry in removed]


def _unusable(made: MadeItem, model: str, realm: str, prefix: bytes) -> str | None:
    if made.realm != realm:
        return "organization_mismatch"
    if made.model != model:
        return "model_mismatch"
    return None if made.prefix == prefix else "prefix_mismatch"


def _sent(message: Message, form: SignatureForm) -> list[str]:
    found = tokens_of(message, form) if message.role == "assistant" else []
    return [token for token in found if token is not None]


def _prefixes(prompt: Prompt) -> list[bytes]:
    """Give a digest of what is before each message, then one of everything."""
    context = prompt.context
    tools = [msgspec.to_builtins(tool) for tool in context.tools]
    digests = [sha256(canonical_json({"system": context.system_prompt, "tools": tools})).digest()]
    for message in context.messages:
        value = {"role": message.role, "content": [_value(piece) for piece in message.content]}
        if message.role == "assistant":  # one text or two
            texts = "".join(piece.text for piece in message.content if piece.kind == "text")
            calls = [_value(piece) for piece in message.content if piece.kind == "toolCall"]
            value = {"role": message.role, "text": texts, "calls": calls}
        digests.append(sha256(digests[-1] + canonical_json(value)).digest())
    return digests


def _value(piece: AssistantContent | UserContent | SystemContent) -> object:
    if piece.kind == "toolCall":
        return {"id": piece.id, "name": piece.name, "arguments": piece.arguments}
    return piece.text if piece.kind == "text" else msgspec.to_builtins(piece)


def _names(reply: AssistantMessage) -> list[str]:
    """Give the ids of reasoning items, for each piece of a reply."""
    names: list[str] = []
    for piece in reply.content:
        name = ""
        if piece.kind == "thinking" and piece.thinking_signature and piece.thinking_signature.startswith("{"):
            with suppress(msgspec.DecodeError):
                name = str(msgspec.json.decode(piece.thinking_signature, type=dict[str, Any]).get("id", ""))
        names.append(name)
    return names
