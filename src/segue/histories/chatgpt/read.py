"""Reads an export of ChatGPT: `conversations.json` or `conversations-NNN.json`, alone or in its zip archive.

Facts this file rests on (descriptions of exports by others, read 2026-11-15):
- `mapping` is a tree of nodes; `current_node` is the end of the conversation that is shown.
- A message with `weight: 0` is hidden, but for `user_editable_context`, which has the user's instructions.
- A message to a tool has its name in `recipient`; the answer of the tool has it in `author.name`. There are no ids of
  calls: an answer belongs to the last call of that tool.
- An image is a pointer (`sediment://ID`, `file-service://ID`); the file in the archive has a name that begins so.
- `metadata.model_slug` names the model. There are no signatures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from segue.conversation.messages import Message
from segue.errors import LoadError
from segue.histories.chatgpt.messages import MessageReader, is_shown, text_of_message
from segue.histories.kit.documents import OTHER, choose, conversations_of, finish_history, load_value, parse_text
from segue.histories.kit.history import History, Session
from segue.histories.kit.lines import object_of, text_of, title_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.trees import Tree

NAME: Final = "chatgpt"
KNOWN_RECORDS: Final = frozenset({"hidden message", "reasoning_recap", "system message", OTHER})
MEMBERS: Final = ("conversations.json", "conversations-*.json", "*/conversations.json", "*/conversations-*.json")


def _all_conversations(source: Source) -> Iterator[dict[str, Any]]:
    """Give the conversations of the file, and of the other files of an export that is split."""
    yield from conversations_of(load_value(source))
    folder, _, own = source.name.rpartition("/")
    if not own.startswith("conversations-"):
        return
    for name in source.neighbours.find(f"{folder}/conversations-*.json" if folder else "conversations-*.json"):
        if name != source.name:
            yield from conversations_of(parse_text(source.neighbours.read(name)))


def _id(conversation: dict[str, Any]) -> str | None:
    return text_of(conversation.get("conversation_id")) or text_of(conversation.get("id"))


def _updated(conversation: dict[str, Any]) -> int | None:
    return milliseconds_of(conversation.get("update_time")) or milliseconds_of(conversation.get("create_time"))


def list_sessions(source: Source) -> tuple[Session, ...]:
    """List the conversations of an export.

    Raises:
        LoadError: it is not valid JSON.
    """
    found: list[Session] = []
    for each in filter(None, _all_conversations(source)):
        model = text_of(each.get("default_model_slug"))
        title = text_of(each.get("title"))
        found.append(
            Session(
                format=NAME,
                id=_id(each) or "",
                path=source.path or source.name,
                title=None if title is None else title_of(title),
                created=milliseconds_of(each.get("create_time")),
                updated=_updated(each),
                models=() if model is None else (model,),
                messages=sum(is_shown(object_of(node)) for node in object_of(each.get("mapping")).values()),
            )
        )
    return tuple(found)


def read(source: Source, view: View) -> History:
    """Read one conversation of an export.

    Raises:
        LoadError: there is none.
    """
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    found: list[dict[str, Any]] = []
    for number, each in enumerate(_all_conversations(source), 1):
        if object_of(each.get("mapping")):
            found.append(each)
        else:
            notes.unreadable(number, "a conversation needs a `mapping`")
    if not found:
        raise LoadError("no conversation found: the file has no `mapping` of ChatGPT")
    conversation = choose(found, source.session, notes, _id, _updated)
    nodes = {name: object_of(node) for name, node in object_of(conversation["mapping"]).items()}
    tree = Tree({name: text_of(node.get("parent")) for name, node in nodes.items()})
    path = tree.path(tree.end(view, text_of(conversation.get("current_node"))))
    reader = MessageReader(NAME, source, notes)
    messages: Sequence[Message] = reader.messages([(name, nodes[name]) for name in path])
    branches = tree.branches(
        path,
        notes,
        is_message=lambda name: is_shown(nodes[name]),
        text_of=lambda name: text_of_message(object_of(nodes[name].get("message"))),
        time_of=lambda name: milliseconds_of(object_of(nodes[name].get("message")).get("create_time")),
    )
    for number, (name, node) in enumerate(nodes.items(), 1):
        if not node:
            notes.unreadable(number, "a node of the `mapping` is an object")
        if name not in path and object_of(node.get("message")) and not is_shown(node):
            reader.record("hidden message", object_of(node.get("message")), number)
    return finish_history(
        NAME,
        notes,
        messages,
        session_id=_id(conversation),
        title=text_of(conversation.get("title")),
        created=milliseconds_of(conversation.get("create_time")),
        updated=milliseconds_of(conversation.get("update_time")),
        system_prompt=reader.instructions,
        branches=branches,
        extra={"conversation": without(conversation, ("mapping",))},
    )
