"""One vocabulary: the same words on messages, content and events, and the same arguments wherever a request is made."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from pathlib import Path
from typing import Any, get_args

import pytest

import segue
from samples import EVERYTHING
from segue import (
    AnyContent,
    AssistantMessage,
    AsyncConversation,
    Catalogue,
    Context,
    Conversation,
    ConversationError,
    Event,
    ImageContent,
    Message,
    Model,
    SystemMessage,
    TextContent,
    ToolResultMessage,
    UserMessage,
    dump,
    load,
    message_events,
    prepare,
    project,
)
from segue.client.http.clients import AsyncClient, Client

ROOT = Path(__file__).parent.parent


# -- kind and text -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", [*get_args(Message), *get_args(AnyContent), *get_args(Event)], ids=lambda kind: kind.__name__
)
def test_kind_is_the_tag_of_every_message_content_and_event(kind: Any):
    assert kind.kind == kind.__struct_config__.tag


def test_kind_is_not_stored():
    assert b'"kind"' not in dump(EVERYTHING)
    replies = [message for message in EVERYTHING.messages if message.role == "assistant"]
    assert b'"kind"' not in segue.dump_events(event for message in replies for event in message_events(message))


PIECES = (TextContent("Look: "), ImageContent(url="https://example.org/a.png"), TextContent("a cat."))
WITH_TEXT: tuple[Message, ...] = (
    UserMessage.of(*PIECES),
    AssistantMessage(content=(PIECES[0], PIECES[2])),
    ToolResultMessage(tool_call_id="c", content=PIECES),
    SystemMessage.of(PIECES[0], PIECES[2]),
)


@pytest.mark.parametrize("message", WITH_TEXT, ids=lambda message: message.role)
def test_every_message_gives_its_text(message: Message):
    assert message.text() == "Look: a cat."


# -- values ------------------------------------------------------------------------------------------------------------


def test_the_text_of_content_may_be_given_without_its_name():
    assert TextContent("hi") == TextContent(text="hi")
    assert load(dump(Context().add(UserMessage.of(TextContent("hi"))))).messages[0].text() == "hi"
    with pytest.raises(TypeError):
        TextContent("hi", "signature")  # pyright: ignore[reportCallIssue]


def test_a_text_that_is_added_is_a_message_of_the_user():
    assert Context().add("hi") == Context().add(UserMessage.of("hi"))
    assert Context().add(UserMessage.of("hi"), "there").messages[1].text() == "there"


@pytest.mark.parametrize("given", [None, {"role": "user", "content": "hi"}, TextContent("hi"), [UserMessage.of("hi")]])
def test_anything_else_that_is_added_fails_at_once_with_the_right_call(given: Any):
    with pytest.raises(ConversationError, match=re.escape("write context.add(UserMessage.of(...))")):
        Context().add(given)


def test_a_change_reads_as_a_sentence():
    context = Context().add("hi", AssistantMessage(content=(), stop_reason=segue.StopReason.ERROR), "again")
    [change] = project(context, "echo").report.changes
    assert str(change) == change.sentence()
    assert str(change).startswith("messages[1]: ")


# -- the arguments of a request ----------------------------------------------------------------------------------------


def test_project_has_the_parameters_of_prepare():
    assert list(inspect.signature(project).parameters) == list(inspect.signature(prepare).parameters)


@pytest.mark.parametrize(
    "given", ["hi", UserMessage.of("hi"), [UserMessage.of("hi")], [{"role": "user", "content": "hi"}]], ids=repr
)
def test_project_takes_what_prepare_takes(given: Any):
    projected = project(given, "echo")
    assert projected.context.messages[0].text() == "hi"
    assert projected.context == prepare(given, "echo").projection.context


def test_project_finds_the_models_and_routers_of_a_catalogue():
    router = Model(id="auto", provider="mine", protocol="openai-chat", router=True, base_url="https://mine.example/v1")
    catalogue = Catalogue(models=(router,))
    reply = AssistantMessage(
        content=(TextContent("hm"),), protocol="openai-chat", provider="mine", model="auto", response_model="other"
    )
    context = Context().add("hi", reply, "on")
    projected = project(context, "mine/auto", catalogue=catalogue)
    assert projected.report == prepare(context, "mine/auto", catalogue=catalogue).report
    with pytest.raises(segue.UnknownModel):
        project(context, "mine/auto")


# -- conversations -----------------------------------------------------------------------------------------------------

CONTENT: dict[str, Any] = {
    "a text": "hi",
    "content": TextContent("hi"),
    "several": ["hi"],
    "a message": UserMessage.of("hi"),
}


@pytest.mark.parametrize("case", CONTENT)
def test_a_conversation_completes_like_a_client(case: str):
    pytest.importorskip("httpx2", reason="of the client (no httpx2)")
    with Conversation("echo") as conversation, Client() as client:
        reply = conversation.complete(CONTENT[case], "echo")
        assert reply.text() == client.complete("hi", "echo").text() == "hi"
        assert [message.role for message in conversation.messages] == ["user", "assistant"]
        assert conversation.complete(CONTENT[case]).text() == "hi"


def test_an_asynchronous_conversation_completes_like_a_client():
    pytest.importorskip("httpx2", reason="of the client (no httpx2)")

    async def run() -> None:
        async with AsyncConversation("echo") as conversation, AsyncClient() as client:
            assert (await conversation.complete("hi", "echo")).text() == (await client.complete("hi", "echo")).text()

    asyncio.run(run())


@pytest.mark.parametrize("given", [Context().add("hi"), [{"role": "user", "content": "hi"}], None], ids=repr)
def test_a_whole_conversation_is_refused_with_the_right_call(given: Any):
    with Conversation("echo") as conversation:
        with pytest.raises(ConversationError, match=re.escape('write conversation.complete("Hello")')):
            conversation.complete(given)
        assert conversation.messages == ()


def test_a_conversation_has_the_report_of_its_last_answer():
    with Conversation("echo") as conversation:
        assert not conversation.report
        conversation.add("hi", AssistantMessage(content=(), stop_reason=segue.StopReason.ERROR))
        conversation.ask("again")
        assert conversation.report == conversation.attempts[-1].report
        assert [change.code for change in conversation.report.changes] == ["unfinished_turn"]
        assert conversation.messages[0].timestamp is not None  # pyright: ignore[reportAttributeAccessIssue]


# -- the map -----------------------------------------------------------------------------------------------------------


def test_the_map_of_types_is_in_the_help_of_the_package():
    page = (ROOT / "docs" / "types.md").read_text(encoding="utf-8")
    for name in ("Context", "Prompt", "History", "Session", "Conversation", "Document"):
        assert f"| `{name}` |" in page
        assert re.search(rf"^    {name} ", segue.__doc__ or "", re.MULTILINE), name


# -- names of classes --------------------------------------------------------------------------------------------------


SAME_MEANING = {"MessageReader", "TurnReader"}
"""What each codec and each format has for itself, under the name that says what it is."""
PROMISED = {"Summary"}
"""`segue.Summary` and `segue.corpus.Summary` are public, and public names stay."""


def class_rooms(folder: Path) -> dict[str, set[str]]:
    """Return the rooms of each public class of a package: its folder, or the folder of one protocol or format."""
    rooms: dict[str, set[str]] = {}
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder).parts
        room = "/".join(parts[:2]) if parts[0] in ("protocols", "histories") else parts[0]
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                rooms.setdefault(node.name, set()).add(room)
    return rooms


def test_a_public_class_name_has_one_meaning():
    rooms = class_rooms(ROOT / "src" / "segue")
    assert len(rooms) > 700
    assert {
        name: found for name, found in rooms.items() if len(found) > 1 and name not in SAME_MEANING | PROMISED
    } == {}


def test_a_class_name_of_two_rooms_is_found(tmp_path):
    for room, name in (("gateway", "Turn"), ("histories/pi", "Turn"), ("histories/pi", "Row"), ("gateway", "_Row")):
        (tmp_path / room).mkdir(parents=True, exist_ok=True)
        (tmp_path / room / f"{name}.py").write_text(f"class {name}:\n    pass\n")
    assert {name for name, found in class_rooms(tmp_path).items() if len(found) > 1} == {"Turn"}
