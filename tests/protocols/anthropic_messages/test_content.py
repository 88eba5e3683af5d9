"""Every block of the wire, both ways."""

from __future__ import annotations

import pytest

from protocols.anthropic_messages.endpoints import SONNET, endpoint_of
from segue.conversation.content import (
    CacheMark,
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from segue.errors import EncodeError
from segue.protocols.anthropic_messages.content import (
    decode_assistant_block,
    decode_reply_block,
    decode_user_block,
    encode_assistant_content,
    encode_user_content,
)
from segue.protocols.kit.verbatim import keep

P = "anthropic-messages"
MARK = {"type": "ephemeral", "ttl": "1h"}
HOUR = CacheMark(ttl="1h")
CITATION = {"type": "char_location", "cited_text": "x", "document_index": 0, "start_char_index": 0, "end_char_index": 1}


def native(block: dict, *fallback) -> NativeContent:
    return NativeContent(protocol=P, block=block, fallback=fallback)


def text(value: str) -> TextContent:
    return TextContent(text=value)


def verbatim(**patch) -> dict:
    return {P: {"verbatim": patch}}


INPUT_AS_TEXT = keep(P, {"input": '{"a": 1}'}, {"input": {"a": 1}})


USER = {
    "a text": ({"type": "text", "text": "hi"}, text("hi")),
    "an empty text": ({"type": "text", "text": ""}, text("")),
    "a text with a cache mark": (
        {"type": "text", "text": "hi", "cache_control": MARK},
        TextContent(text="hi", cache_mark=HOUR),
    ),
    "a text whose cache mark and citations are null": (
        {"type": "text", "text": "hi", "cache_control": None, "citations": None},
        TextContent(text="hi", extra=verbatim(cache_control={"to": None}, citations={"to": None})),
    ),
    "a text with a cache mark that has more keys": (
        {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral", "ttl": None, "scope": "global"}},
        TextContent(text="hi", cache_mark=CacheMark(extra={P: {"scope": "global", "verbatim": {"ttl": {"to": None}}}})),
    ),
    "a text with a cache mark of an unknown type": (
        {"type": "text", "text": "hi", "cache_control": {"type": "forever"}},
        TextContent(text="hi", extra={P: {"cache_control": {"type": "forever"}}}),
    ),
    "an image with a cache mark": (
        {"type": "image", "source": {"type": "url", "url": "https://e.org/a"}, "cache_control": MARK},
        ImageContent(url="https://e.org/a", cache_mark=HOUR),
    ),
    "an image by file id with a cache mark": (
        {"type": "image", "source": {"type": "file", "file_id": "file_1"}, "cache_control": MARK},
        FileContent(file_id="file_1", mime_type="image/*", cache_mark=HOUR),
    ),
    "a document with a cache mark": (
        {"type": "document", "source": {"type": "file", "file_id": "file_1"}, "cache_control": MARK},
        FileContent(file_id="file_1", mime_type="application/pdf", cache_mark=HOUR),
    ),
    "a document of another type, in base64": (
        {"type": "document", "source": {"type": "base64", "media_type": "text/plain", "data": "AAAA"}},
        FileContent(
            data="AAAA", mime_type="text/plain", extra=verbatim(**{"@source": {"from": "text", "to": "base64"}})
        ),
    ),
    "a document of another type, as text": (
        {"type": "document", "source": {"type": "text", "media_type": "text/csv", "data": "x"}},
        FileContent(data="eA==", mime_type="text/csv", extra=verbatim(**{"@source": {"from": None, "to": "text"}})),
    ),
    "an image in base64": (
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
        ImageContent(data="AAAA", mime_type="image/png"),
    ),
    "an image by address, to be made smaller": (
        {
            "type": "image",
            "source": {"type": "url", "url": "https://e.org/a"},
            "transformations": {"oversized_image": "error"},
        },
        ImageContent(url="https://e.org/a", extra={P: {"transformations": {"oversized_image": "error"}}}),
    ),
    "an image by file id": (
        {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
        FileContent(file_id="file_1", mime_type="image/*"),
    ),
    "an image whose source has more keys": (
        {"type": "image", "source": {"type": "url", "url": "https://e.org/a", "detail": "low"}},
        ImageContent(url="https://e.org/a", extra={P: {"source": {"detail": "low"}}}),
    ),
    "an image from nowhere": (
        {"type": "image", "source": {"type": "moon"}},
        native({"type": "image", "source": {"type": "moon"}}),
    ),
    "a PDF with title, context and citations": (
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
            "title": "Report",
            "context": "Draft",
            "citations": {"enabled": True},
        },
        FileContent(
            data="JVBERi0=",
            mime_type="application/pdf",
            name="Report",
            context="Draft",
            extra={P: {"citations": {"enabled": True}}},
        ),
    ),
    "a document of plain text": (
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Grüße"}, "title": None},
        FileContent(data="R3LDvMOfZQ==", mime_type="text/plain", extra=verbatim(title={"to": None})),
    ),
    "a document by address": (
        {"type": "document", "source": {"type": "url", "url": "https://e.org/a.pdf"}},
        FileContent(url="https://e.org/a.pdf", mime_type="application/pdf"),
    ),
    "a document by file id": (
        {"type": "document", "source": {"type": "file", "file_id": "file_1"}},
        FileContent(file_id="file_1", mime_type="application/pdf"),
    ),
    "a document made of blocks": (
        {"type": "document", "title": "T", "source": {"type": "content", "content": [{"type": "text", "text": "x"}]}},
        native(
            {
                "type": "document",
                "title": "T",
                "source": {"type": "content", "content": [{"type": "text", "text": "x"}]},
            },
            text("T"),
            text("x"),
        ),
    ),
    "a search result": (
        {"type": "search_result", "source": "https://e.org", "title": "T", "content": [{"type": "text", "text": "x"}]},
        native(
            {
                "type": "search_result",
                "source": "https://e.org",
                "title": "T",
                "content": [{"type": "text", "text": "x"}],
            },
            text("T\nhttps://e.org"),
            text("x"),
        ),
    ),
    "an upload to the container": (
        {"type": "container_upload", "file_id": "file_1"},
        native({"type": "container_upload", "file_id": "file_1"}, FileContent(file_id="file_1")),
    ),
    "a reference to a tool": (
        {"type": "tool_reference", "tool_name": "f"},
        native({"type": "tool_reference", "tool_name": "f"}, text("f")),
    ),
    "a block of an unknown type": (
        {"type": "hologram", "text": "ho"},
        native({"type": "hologram", "text": "ho"}, text("ho")),
    ),
    "a block of no type": ({"x": 1}, native({"x": 1})),
}

ASSISTANT = {
    "a text with citations": (
        {"type": "text", "text": "x", "citations": [CITATION]},
        TextContent(text="x", extra={P: {"citations": [CITATION]}}),
    ),
    "thinking with its signature": (
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        ThinkingContent(thinking="hm", thinking_signature="c2ln"),
    ),
    "thinking whose text is withheld": (
        {"type": "thinking", "thinking": "", "signature": "c2ln"},
        ThinkingContent(thinking="", thinking_signature="c2ln"),
    ),
    "thinking without a signature": (
        {"type": "thinking", "thinking": "hm"},
        ThinkingContent(thinking="hm", extra=verbatim(signature={"from": ""})),
    ),
    "thinking with an empty signature": (
        {"type": "thinking", "thinking": "hm", "signature": ""},
        ThinkingContent(thinking="hm", thinking_signature=""),
    ),
    "thinking whose signature is null": (
        {"type": "thinking", "thinking": "hm", "signature": None},
        ThinkingContent(thinking="hm", extra=verbatim(signature={"from": "", "to": None})),
    ),
    "a server's call with a cache mark": (
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}, "cache_control": MARK},
        NativeContent(
            protocol=P,
            block={"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
            cache_mark=HOUR,
        ),
    ),
    "a call with a cache mark": (
        {"type": "tool_use", "id": "t", "name": "f", "input": {}, "cache_control": MARK},
        ToolCall(id="t", name="f", cache_mark=HOUR),
    ),
    "redacted thinking": (
        {"type": "redacted_thinking", "data": "c2ln"},
        ThinkingContent(thinking="", thinking_signature="c2ln", redacted=True),
    ),
    "a call": (
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": [1, None]}},
        ToolCall(id="toolu_1", name="f", arguments={"a": [1, None]}),
    ),
    "a call that the model made itself": (
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}, "caller": {"type": "direct"}},
        ToolCall(id="toolu_1", name="f", extra=verbatim(caller={"to": {"type": "direct"}})),
    ),
    "a call of a program, in a toolset": (
        {
            "type": "tool_use",
            "id": "t",
            "name": "left_click",
            "input": {},
            "toolset_name": "computer",
            "caller": {"type": "x"},
        },
        ToolCall(id="t", name="left_click", extra={P: {"toolset_name": "computer", "caller": {"type": "x"}}}),
    ),
    "a call whose input is text": (
        {"type": "tool_use", "id": "t", "name": "f", "input": '{"a": 1}'},
        ToolCall(id="t", name="f", arguments={"a": 1}, extra=INPUT_AS_TEXT),
    ),
    "a call without input": (
        {"type": "tool_use", "id": "t", "name": "f"},
        ToolCall(id="t", name="f", extra=verbatim(input={"from": {}})),
    ),
    "a call without an id": (
        {"type": "tool_use", "name": "f", "input": {}},
        native({"type": "tool_use", "name": "f", "input": {}}),
    ),
    "a server's call": (
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
        native({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}),
    ),
    "what a web search found": (
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": [
                {"type": "web_search_result", "title": "T", "url": "https://e.org", "encrypted_content": "zzz"}
            ],
        },
        native(
            {
                "type": "web_search_tool_result",
                "tool_use_id": "srvtoolu_1",
                "content": [
                    {"type": "web_search_result", "title": "T", "url": "https://e.org", "encrypted_content": "zzz"}
                ],
            },
            text("[web search results]\n- T: https://e.org"),
        ),
    ),
    "a web search that failed": (
        {
            "type": "web_search_tool_result",
            "tool_use_id": "s",
            "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"},
        },
        native(
            {
                "type": "web_search_tool_result",
                "tool_use_id": "s",
                "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"},
            },
            text("[web search results: failed]\nmax_uses_exceeded"),
        ),
    ),
    "what a program printed": (
        {
            "type": "bash_code_execution_tool_result",
            "tool_use_id": "s",
            "content": {
                "type": "bash_code_execution_result",
                "stdout": "42\n",
                "stderr": "",
                "return_code": 0,
                "content": [],
            },
        },
        native(
            {
                "type": "bash_code_execution_tool_result",
                "tool_use_id": "s",
                "content": {
                    "type": "bash_code_execution_result",
                    "stdout": "42\n",
                    "stderr": "",
                    "return_code": 0,
                    "content": [],
                },
            },
            text("[output of an executed command]\n42"),
        ),
    ),
    "what an MCP server answered": (
        {
            "type": "mcp_tool_result",
            "tool_use_id": "m",
            "is_error": False,
            "content": [{"type": "text", "text": "yes"}],
        },
        native(
            {
                "type": "mcp_tool_result",
                "tool_use_id": "m",
                "is_error": False,
                "content": [{"type": "text", "text": "yes"}],
            },
            text("[result of an MCP tool]\nyes"),
        ),
    ),
    "a summary of all before": (
        {"type": "compaction", "content": "So far so good.", "encrypted_content": "zzz", "signature": "s"},
        native(
            {"type": "compaction", "content": "So far so good.", "encrypted_content": "zzz", "signature": "s"},
            text("So far so good."),
        ),
    ),
    "the place where another model took over": (
        {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}},
        native({"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}}),
    ),
}


@pytest.mark.parametrize(("block", "content"), USER.values(), ids=USER.keys())
def test_a_block_of_the_user_survives_both_directions(block, content):
    assert decode_user_block(block) == content
    assert encode_user_content(content) == block


@pytest.mark.parametrize(("block", "content"), ASSISTANT.values(), ids=ASSISTANT.keys())
def test_a_block_of_the_assistant_survives_both_directions(block, content):
    assert decode_assistant_block(block, SONNET) == content
    assert encode_assistant_content(content, SONNET) == block


def test_a_fetched_page_can_be_read_elsewhere():
    page = {"type": "document", "title": "T", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}
    fetched = {"type": "web_fetch_result", "url": "https://e.org", "content": page}
    block = {"type": "web_fetch_tool_result", "tool_use_id": "s", "content": fetched}
    content = decode_assistant_block(block, SONNET)
    assert isinstance(content, NativeContent)
    assert content.fallback == (text("[fetched web page]\n- T: https://e.org\nx"),)


def test_a_fetched_pdf_stays_a_file_behind_its_address():
    page = {
        "type": "document",
        "title": "T",
        "source": {"type": "base64", "media_type": "application/pdf", "data": "x"},
    }
    fetched = {"type": "web_fetch_result", "url": "https://e.org", "content": page}
    content = decode_assistant_block({"type": "web_fetch_tool_result", "tool_use_id": "s", "content": fetched}, SONNET)
    assert isinstance(content, NativeContent)
    assert content.fallback[0] == text("[fetched web page]\n- T: https://e.org")
    assert [piece.kind for piece in content.fallback] == ["text", "file"]


def test_the_names_of_tools_are_mapped_back():
    block = {"type": "tool_use", "id": "t", "name": "my_tool", "input": {}}
    assert decode_reply_block(block, SONNET, {"my_tool": "my.tool"}) == ToolCall(id="t", name="my.tool")


def test_replaced_arguments_win_over_the_input_that_was_kept():
    call = ToolCall(id="t", name="f", arguments={"b": 2}, extra=INPUT_AS_TEXT)
    assert encode_assistant_content(call, SONNET)["input"] == {"b": 2}


def test_a_provider_that_accepts_an_empty_signature_gets_one():
    fireworks = endpoint_of("accounts/fireworks/models/glm-5p1", "fireworks")
    block = {"type": "thinking", "thinking": "hm", "signature": ""}
    assert encode_assistant_content(ThinkingContent(thinking="hm"), fireworks) == block
    assert decode_assistant_block(block, fireworks) == ThinkingContent(thinking="hm")


REFUSED = {
    "thinking has no signature": ThinkingContent(thinking="hm"),
    "redacted thinking has no data": ThinkingContent(thinking="", redacted=True),
    "does not support a block of openai-chat": NativeContent(protocol="openai-chat", block={}),
}


@pytest.mark.parametrize(("reason", "content"), REFUSED.items(), ids=REFUSED.keys())
def test_unsupported_assistant_content_is_an_error(reason, content):
    with pytest.raises(EncodeError, match=reason):
        encode_assistant_content(content, SONNET)


REFUSED_MEDIA = {
    "does not support documents of type audio/wav": FileContent(data="AAAA", mime_type="audio/wav"),
    "a file has neither data nor a URL": FileContent(mime_type="application/pdf"),
    "an image has neither data nor a URL": ImageContent(mime_type="image/png"),
    "an image with data has no MIME type": ImageContent(data="AAAA"),
}


@pytest.mark.parametrize(("reason", "content"), REFUSED_MEDIA.items(), ids=REFUSED_MEDIA.keys())
def test_unsupported_media_are_an_error(reason, content):
    with pytest.raises(EncodeError, match=reason):
        encode_user_content(content)


def test_a_text_file_that_is_not_utf8_is_sent_with_replacement_characters():
    source = encode_user_content(FileContent(data="/+8=", mime_type="text/plain"))["source"]
    assert source == {"type": "text", "media_type": "text/plain", "data": "\ufffd\ufffd"}
