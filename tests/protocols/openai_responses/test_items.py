"""Items of a model's turn: read into content, and written back as they were."""

from __future__ import annotations

import pytest

from protocols.openai_responses.bodies import THINKER, assistant_item, call, endpoint, output, reasoning, reply, user
from segue.conversation.content import ImageContent, NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Context, Prompt
from segue.conversation.messages import AssistantMessage, SystemMessage, ToolResultMessage, UserMessage
from segue.errors import EncodeError
from segue.protocols.openai_responses.items import TurnReader, write_turn
from segue.protocols.openai_responses.protocol import PROTOCOL as CODEC

P = "openai-responses"


def text(words, signature=None, **shape):
    return TextContent(text=words, text_signature=signature, extra={P: {"shape": shape}} if shape else None)


def bare(fields, thinking=""):
    return ThinkingContent(thinking=thinking, extra={P: {"shape": {"reasoning": fields}}})


def written(content):
    items = []
    write_turn(items, content)
    return items


MSG = '{"id":"msg_1","status":"completed"}'
PART = {"type": "output_text", "text": "a", "annotations": [], "logprobs": []}

TURNS = {
    "an easy message is a plain text": ([{"type": "message", "role": "assistant", "content": "Hi"}], (text("Hi"),)),
    "an easy message may leave its type out": (
        [{"role": "assistant", "content": "Hi"}],
        (text("Hi", type="absent"),),
    ),
    "a message of the provider's has its id in the signature": ([assistant_item("Hi")], (text("Hi", MSG),)),
    "a phase is kept": (
        [assistant_item("Hi", phase="final_answer")],
        (text("Hi", '{"id":"msg_1","status":"completed","phase":"final_answer"}'),),
    ),
    "a phase without an id is kept": (
        [{"type": "message", "role": "assistant", "content": "Hi", "phase": "commentary"}],
        (text("Hi", '{"phase":"commentary"}'),),
    ),
    "a null status is not an absent one": (
        [{**assistant_item("Hi"), "status": None}],
        (text("Hi", '{"id":"msg_1","status":null}'),),
    ),
    "several texts of one message stay one message": (
        [{**assistant_item(), "content": [PART, {**PART, "text": "b"}]}],
        (text("a", MSG), text("b", joined=True)),
    ),
    "annotations are kept": (
        [
            {
                **assistant_item(),
                "content": [{**PART, "annotations": [{"type": "file_path", "file_id": "f", "index": 1}]}],
            }
        ],
        (
            TextContent(
                text="a",
                text_signature=MSG,
                extra={P: {"annotations": [{"type": "file_path", "file_id": "f", "index": 1}]}},
            ),
        ),
    ),
    "a refusal is words": (
        [{**assistant_item(), "content": [{"type": "refusal", "refusal": "No."}]}],
        (text("No.", MSG, part="refusal"),),
    ),
    "reasoning without words is a seal": (
        [reasoning()],
        (ThinkingContent(thinking="", thinking_signature='{"id":"rs_1","encrypted_content":"gAAA"}'),),
    ),
    "several summaries are joined and cut again": (
        [reasoning(summary=[{"type": "summary_text", "text": "One."}, {"type": "summary_text", "text": "Two."}])],
        (
            ThinkingContent(
                thinking="One.\n\nTwo.",
                thinking_signature='{"id":"rs_1","encrypted_content":"gAAA","summary_lengths":[4,4]}',
            ),
        ),
    ),
    "reasoning with content and an empty secret cannot be replayed": (
        [
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [],
                "content": [{"type": "reasoning_text", "text": "Hm."}],
                "encrypted_content": "",
                "status": "completed",
            }
        ],
        (
            bare(
                {
                    "id": "rs_1",
                    "encrypted_content": "",
                    "status": "completed",
                    "summary_lengths": [],
                    "content_lengths": [3],
                },
                "Hm.",
            ),
        ),
    ),
    "behind bare reasoning ids are spelling and no signature": (
        [{"type": "reasoning", "id": "rs_1", "summary": []}, call(id="fc_1")],
        (
            bare({"id": "rs_1"}),
            ToolCall(
                id="call_1",
                name="read",
                arguments={"path": "a"},
                extra={P: {"shape": {"signature": '{"id":"fc_1"}'}}},
            ),
        ),
    ),
    "a secret alone is the signature": (
        [{"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}],
        (ThinkingContent(thinking="", thinking_signature="gAAA"),),
    ),
    "a call without anything of the server's": (
        [call()],
        (ToolCall(id="call_1", name="read", arguments={"path": "a"}),),
    ),
    "a call with id, status and name space": (
        [call(id="fc_1", status="completed", namespace="files")],
        (
            ToolCall(
                id="call_1",
                name="read",
                arguments={"path": "a"},
                thought_signature='{"id":"fc_1","status":"completed","namespace":"files"}',
            ),
        ),
    ),
    "the spelling of arguments is kept": (
        [call(arguments='{"path": "a"}')],
        (ToolCall(id="call_1", name="read", arguments={"path": "a"}, arguments_text='{"path": "a"}'),),
    ),
    "a custom call has one text": (
        [{"type": "custom_tool_call", "call_id": "call_1", "name": "sql", "input": "SELECT 1", "id": "ctc_1"}],
        (
            ToolCall(
                id="call_1",
                name="sql",
                arguments={"input": "SELECT 1"},
                thought_signature='{"id":"ctc_1"}',
                extra={P: {"shape": {"custom": True}}},
            ),
        ),
    ),
    "a generated image can be seen by others": (
        [{"type": "image_generation_call", "id": "ig_1", "result": "AAAA", "output_format": "webp"}],
        (
            NativeContent(
                protocol=P,
                block={"type": "image_generation_call", "id": "ig_1", "result": "AAAA", "output_format": "webp"},
                fallback=(ImageContent(data="AAAA", mime_type="image/webp"),),
            ),
        ),
    ),
    "a search can be read by others": (
        [{"type": "web_search_call", "id": "ws_1", "action": {"type": "search", "query": "segue"}}],
        (
            NativeContent(
                protocol=P,
                block={"type": "web_search_call", "id": "ws_1", "action": {"type": "search", "query": "segue"}},
                fallback=(TextContent(text="[web search: segue]"),),
            ),
        ),
    ),
    "what is not known is kept": (
        [{"type": "brand_new_call", "id": "x_1"}],
        (NativeContent(protocol=P, block={"type": "brand_new_call", "id": "x_1"}),),
    ),
    "an order is kept": (
        [reasoning(), assistant_item("a"), call()],
        (
            ThinkingContent(thinking="", thinking_signature='{"id":"rs_1","encrypted_content":"gAAA"}'),
            text("a", MSG),
            ToolCall(id="call_1", name="read", arguments={"path": "a"}),
        ),
    ),
}


@pytest.mark.parametrize(("items", "content"), TURNS.values(), ids=TURNS.keys())
def test_items_survive_both_directions(items, content):
    assert TurnReader().read_all(items) == content
    assert written(content) == items


@pytest.mark.parametrize(
    ("signature", "item"),
    {
        "a whole item, as pi stores it": (
            '{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":"g"}',
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "Hm."}],
                "encrypted_content": "g",
            },
        ),
        "any other text is the secret itself": (
            "gAAA",
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "gAAA"},
        ),
    }.values(),
    ids=["a whole item, as pi stores it", "any other text is the secret itself"],
)
def test_signatures_that_others_stored_are_understood(signature, item):
    assert written((ThinkingContent(thinking="Hm.", thinking_signature=signature),)) == [item]


def test_a_signature_that_this_wire_did_not_make_is_no_id():
    turn = (TextContent(text="a", text_signature="toolu_1"), ToolCall(id="c", name="n", thought_signature="sig"))
    assert written(turn) == [
        {"type": "message", "role": "assistant", "content": "a"},
        {"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"},
    ]


def test_ids_go_with_the_bare_reasoning_they_followed():
    items = [{"type": "reasoning", "id": "rs_1", "summary": []}, assistant_item("a"), call(id="fc_1")]
    turn = TurnReader().read_all(items)
    assert written(turn) == items
    assert all("id" not in item for item in written(turn[1:]))


@pytest.mark.parametrize(
    "content",
    [
        ThinkingContent(thinking="Hm."),
        NativeContent(protocol="anthropic-messages", block={"type": "redacted_thinking", "data": "x"}),
    ],
    ids=["thinking without a signature", "another protocol's block"],
)
def test_what_the_wire_has_no_word_for_is_refused_with_its_place(content):
    message = AssistantMessage(content=(TextContent(text="a"), content))
    with pytest.raises(EncodeError) as caught:
        CODEC.encode_request(Prompt(context=Context(messages=(message,))), endpoint())
    assert caught.value.path == ("messages", 0, "content", 1)


ITEMS = [
    {"type": "file_search_call", "id": "fs_1", "queries": ["q"], "status": "completed", "results": None},
    {"type": "computer_call", "id": "cu_1", "call_id": "call_9", "action": {"type": "click"}, "status": "completed"},
    {"type": "computer_call_output", "call_id": "call_9", "output": {"type": "computer_screenshot", "image_url": "x:"}},
    {"type": "code_interpreter_call", "id": "ci_1", "code": "1", "outputs": [{"type": "logs", "logs": "1"}]},
    {"type": "local_shell_call", "id": "ls_1", "call_id": "call_8", "action": {"type": "exec", "command": ["ls"]}},
    {"type": "local_shell_call_output", "id": "call_8", "output": "a"},
    {"type": "shell_call", "call_id": "call_7", "action": {"commands": ["ls"]}},
    {"type": "shell_call_output", "call_id": "call_7", "output": [{"stdout": "a", "stderr": ""}]},
    {"type": "apply_patch_call", "call_id": "call_6", "operation": {"type": "delete_file", "path": "a"}},
    {"type": "apply_patch_call_output", "call_id": "call_6", "status": "completed", "output": "ok"},
    {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []},
    {"type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "n", "arguments": "{}", "output": "o"},
    {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "n", "arguments": "{}"},
    {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
    {"type": "tool_search_call", "call_id": None, "execution": "server", "arguments": {}, "status": "completed"},
    {"type": "tool_search_output", "call_id": None, "execution": "server", "tools": [], "status": "completed"},
    {"type": "tool_search_output", "call_id": "s_1", "execution": "client", "tools": [], "status": "completed"},
    {"type": "additional_tools", "role": "developer", "tools": []},
    {"type": "configuration_update", "reasoning": {"effort": "low"}},
    {"type": "program", "id": "prog_1", "code": "print(1)", "fingerprint": "f"},
    {"type": "program_output", "id": "po_1", "result": "1"},
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"},
    {"type": "compaction_trigger"},
    {"type": "item_reference", "id": "msg_7"},
    {"type": "custom_tool_call_output", "call_id": "call_5", "output": "o"},
    {"type": "message", "role": "critic", "content": "?"},
]


@pytest.mark.parametrize("item", ITEMS, ids=[str(item["type"]) + str(index) for index, item in enumerate(ITEMS)])
def test_an_item_of_the_wires_own_is_replayed_as_it_was(item):
    body = {"model": "gpt-5.4", "input": [user(), item, user("And?")], "store": False}
    assert CODEC.encode_request(CODEC.decode_request(body, endpoint()), endpoint()) == body


@pytest.mark.parametrize(
    ("item", "role"),
    [
        ({"type": "compaction", "encrypted_content": "g"}, AssistantMessage),
        ({"type": "mcp_approval_response", "approve": True}, UserMessage),
        ({"type": "additional_tools", "role": "developer", "tools": []}, SystemMessage),
        ({"type": "shell_call_output", "id": "sho_1", "call_id": "c", "output": []}, AssistantMessage),
        ({"type": "shell_call_output", "call_id": "c", "output": []}, UserMessage),
    ],
    ids=["compacted history", "an approval", "new tools", "a hosted shell's output", "the client's shell's output"],
)
def test_an_item_stands_in_the_turn_of_whoever_says_it(item, role):
    prompt = CODEC.decode_request([user(), item], endpoint())
    assert isinstance(prompt.context.messages[1], role)


def test_neighbouring_items_of_the_models_are_one_turn():
    prompt = CODEC.decode_request(
        [user(), reasoning(), assistant_item("a"), call(), output(), assistant_item("b")], endpoint()
    )
    roles = [message.role for message in prompt.context.messages]
    assert roles == ["user", "assistant", "toolResult", "assistant"]
    assert [piece.kind for piece in prompt.context.messages[1].content] == ["thinking", "text", "toolCall"]
    assert prompt.context.messages[2] == ToolResultMessage(
        tool_call_id="call_1", tool_name="read", content=(TextContent(text="done"),)
    )


def test_a_result_of_the_applications_own_answers_a_custom_call_in_its_kind():
    items = [user(), {"type": "custom_tool_call", "call_id": "call_1", "name": "sql", "input": "SELECT 1"}]
    context = CODEC.decode_request(items, endpoint()).context
    context = context.add(ToolResultMessage(tool_call_id="call_1", tool_name="sql", content=(TextContent(text="1"),)))
    body = CODEC.encode_request(Prompt(context=context), endpoint())
    assert body["input"] == [*items, {"type": "custom_tool_call_output", "call_id": "call_1", "output": "1"}]


def test_a_reply_can_be_sent_back_item_by_item():
    items = [reasoning(), assistant_item("Looking.", phase="commentary"), call(id="fc_1", status="completed")]
    message = CODEC.decode_response(reply(*items), endpoint(), {})
    body = CODEC.encode_request(Prompt(context=Context(messages=(message,))), endpoint(THINKER))
    assert body["input"] == items
