"""Results of server tools and cited pages, as other models get them."""

from __future__ import annotations

from typing import Any

import pytest

from projection.building import GEMINI, GPT, MISTRAL, SONNET, user
from segue import Policy, Texts, decode_response, prepare
from segue.conversation.content import NativeContent
from segue.conversation.context import Context
from segue.conversation.messages import AssistantMessage
from segue.models.model import Model
from segue.projection.projector import project
from segue.projection.report import ChangeCode

GPT_CHAT = Model("gpt-4o-search-preview", "openai", "openai-chat")
COMPOUND = Model("groq/compound", "groq", "openai-chat")
NOVA = Model("amazon.nova-2-lite-v1:0", "amazon-bedrock", "bedrock-converse")
URL = "https://e.org/p"


def claude_reply(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"id": "m", "type": "message", "role": "assistant", "model": SONNET.id, "content": list(blocks),
            "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip


def responses_reply(*items: dict[str, Any]) -> dict[str, Any]:
    return {"id": "r", "object": "response", "status": "completed", "model": "gpt-5.4", "output": list(items)}


def message_item(text: str, *annotations: dict[str, Any]) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": list(annotations)}
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}


def chat_reply(model: str, **fields: object) -> dict[str, Any]:
    message = {"role": "assistant", "content": "It rains.", **fields}
    return {"id": "c", "object": "chat.completion", "model": model,
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}  # fmt: skip


SEARCH_CALL = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
FOUND = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [{"type": "web_search_result", "title": "Rain", "url": URL, "encrypted_content": "zzz"}],
}
GROUNDING = {"groundingChunks": [{"web": {"title": "Rain", "uri": URL}}], "webSearchQueries": ["q"]}
CASES: dict[str, tuple[Model, dict[str, Any], str]] = {
    "pages that Claude found": (
        SONNET,
        claude_reply(SEARCH_CALL, FOUND, {"type": "text", "text": "It rains."}),
        f"[web search results]\n- Rain: {URL}",
    ),
    "pages that Claude cites, without the search": (
        SONNET,
        claude_reply(
            {
                "type": "text",
                "text": "It rains.",
                "citations": [
                    {"type": "web_search_result_location", "url": URL, "title": "Rain", "encrypted_index": "z"}
                ],
            }
        ),
        f"It rains.\n[sources]\n- Rain: {URL}",
    ),
    "a search of OpenAI's, with the pages that the text cites": (
        GPT,
        responses_reply(
            {
                "type": "web_search_call",
                "id": "ws_1",
                "status": "completed",
                "action": {"type": "search", "query": "q"},
            },
            message_item(
                "It rains.", {"type": "url_citation", "url": URL, "title": "Rain", "start_index": 0, "end_index": 1}
            ),
        ),
        f"[web search: q]\nIt rains.\n[sources]\n- Rain: {URL}",
    ),
    "sources of a search": (
        GPT,
        responses_reply(
            {
                "type": "web_search_call",
                "id": "ws_1",
                "status": "completed",
                "action": {"type": "search", "query": "q", "sources": [{"type": "url", "url": URL}]},
            },
            message_item("It rains."),
        ),
        f"[web search: q]\n- {URL}\nIt rains.",
    ),
    "an opened page": (
        GPT,
        responses_reply(
            {
                "type": "web_search_call",
                "id": "ws_1",
                "status": "completed",
                "action": {"type": "open_page", "url": URL},
            },
            message_item("It rains."),
        ),
        f"[web page opened: {URL}]\nIt rains.",
    ),
    "what was found in files": (
        GPT,
        responses_reply(
            {
                "type": "file_search_call",
                "id": "fs_1",
                "status": "completed",
                "queries": ["rain"],
                "results": [{"file_id": "file-1", "filename": "a.md", "text": "It rains."}],
            },
            message_item("So it does."),
        ),
        "[file search: rain]\n- a.md: It rains.\nSo it does.",
    ),
    "code and its output": (
        GPT,
        responses_reply(
            {
                "type": "code_interpreter_call",
                "id": "ci_1",
                "status": "completed",
                "code": "print(42)",
                "container_id": "cntr_1",
                "outputs": [{"type": "logs", "logs": "42"}],
            },
            message_item("42."),
        ),
        "[code run]\nprint(42)\n[output of the code]\n42\n42.",
    ),
    "pages that Gemini is grounded on": (
        GEMINI,
        {
            "candidates": [
                {
                    "content": {"role": "model", "parts": [{"text": "It rains."}]},
                    "finishReason": "STOP",
                    "groundingMetadata": GROUNDING,
                }
            ],
            "modelVersion": GEMINI.id,
        },
        f"It rains.\n[sources]\n- Rain: {URL}",
    ),
    "pages that a chat cites": (
        GPT_CHAT,
        chat_reply(GPT_CHAT.id, annotations=[{"type": "url_citation", "url_citation": {"url": URL, "title": "Rain"}}]),
        f"It rains.\n[sources]\n- Rain: {URL}",
    ),
    "pages that a compound model found": (
        COMPOUND,
        chat_reply(
            COMPOUND.id,
            executed_tools=[
                {
                    "index": 0,
                    "type": "search",
                    "arguments": "{}",
                    "search_results": {"results": [{"title": "Rain", "url": URL, "content": "c", "score": 1}]},
                }
            ],
        ),
        f"It rains.\n[sources]\n- Rain: {URL}",
    ),
    "a page that the text names is not listed again": (
        GPT,
        responses_reply(
            message_item(f"It rains ({URL}).", {"type": "url_citation", "url": URL, "title": "Rain"}),
        ),
        f"It rains ({URL}).",
    ),
    "a text that Nova cites pages for": (
        NOVA,
        {
            "output": {
                "message": {
                    "role": "assistant",
                    "content": [
                        {
                            "citationsContent": {
                                "content": [{"text": "It rains."}],
                                "citations": [{"title": "Rain", "location": {"web": {"url": URL, "domain": "e.org"}}}],
                            }
                        }
                    ],
                }
            },
            "stopReason": "end_turn",
            "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
        },
        f"It rains.\n[sources]\n- Rain: {URL}",
    ),
}


def text_of(message: AssistantMessage) -> str:
    return "\n".join(piece.text for piece in message.content if piece.kind == "text")


@pytest.mark.parametrize(("writer", "reply", "expected"), CASES.values(), ids=CASES.keys())
def test_another_model_reads_what_was_found_and_where(writer, reply, expected):
    message = decode_response(reply, protocol=writer.protocol, model=writer)
    context = Context(messages=(user("hi"), message, user("and?")))
    reader = MISTRAL
    projection = project(context, reader)
    turn = projection.context.messages[1]
    assert isinstance(turn, AssistantMessage)
    assert text_of(turn).startswith(expected)
    assert project(projection.context, reader).report.of(ChangeCode.SOURCES_AS_TEXT) == ()
    own = project(context, writer)
    assert own.report.of(ChangeCode.SOURCES_AS_TEXT, ChangeCode.NATIVE_REPLACED) == ()
    assert "[sources]" not in str(prepare(context, writer).body)


def test_a_reference_of_mistral_names_its_page():
    chunk = {"type": "tool_reference", "tool": "web_search", "title": "Rain", "url": URL}
    reply = chat_reply("mistral-large-latest", content=[{"type": "text", "text": "It rains."}, chunk])
    message = decode_response(reply, protocol="mistral-chat", model=MISTRAL)
    [native] = [piece for piece in message.content if isinstance(piece, NativeContent)]
    assert [piece.text for piece in native.fallback if piece.kind == "text"] == [
        f"[source of web_search]\n- Rain: {URL}"
    ]


def test_the_text_before_the_sources_can_be_replaced():
    message = decode_response(CASES["pages that Gemini is grounded on"][1], protocol="google-genai", model=GEMINI)
    policy = Policy(texts=Texts(sources="Pages:\n{text}"))
    turn = project(Context(messages=(user("hi"), message)), SONNET, policy=policy).context.messages[1]
    assert f"Pages:\n- Rain: {URL}" in text_of(turn)  # pyright: ignore[reportArgumentType]
