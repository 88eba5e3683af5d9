"""Items of the model's turn: read into content, and written back unchanged."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from protocols.openai_responses.bodies import THINKER, call, endpoint, output, reasoning, reply, text_item, user
from segue.conversation.content import ImageContent, NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Context, Prompt
from segue.conversation.messages import AssistantMessage, SystemMessage, ToolResultMessage, UserMessage
from segue.errors import EncodeError
from segue.protocols.api import decode_request, decode_response, encode_request, encode_response
from segue.protocols.openai_responses.protocol import PROTOCOL as CODEC
from segue.protocols.openai_responses.turns import TurnReader, write_turn

P = "openai-responses"


def text(text, signature=None, phase=None, **patch):
    extra = {P: {"verbatim": patch}} if patch else None
    return TextContent(text=text, text_signature=signature, phase=phase, extra=extra)


def unsigned(fields, thinking=""):
    return ThinkingContent(thinking=thinking, extra=item_choice(fields))


def item_choice(fields):
    return {P: {"verbatim": {"@item": {"from": "unsigned", "to": fields}}}}


def written(content):
    items = []
    write_turn(items, content)
    return items


MSG = '{"id":"msg_1","status":"completed"}'
PART = {"type": "output_text", "text": "a", "annotations": [], "logprobs": []}
SAME = {"@turn": {"from": "new", "to": "same"}}

TURNS = {
    "an easy message is a plain text": ([{"type": "message", "role": "assistant", "content": "Hi"}], (text("Hi"),)),
    "an easy message may leave its type out": (
        [{"role": "assistant", "content": "Hi"}],
        (text("Hi", message={"in": {"type": {"from": "message"}}}),),
    ),
    "a message of the provider's has its id in the signature": ([text_item("Hi")], (text("Hi", MSG),)),
    "a phase is kept": (
        [text_item("Hi", phase="final_answer")],
        (text("Hi", MSG, "final_answer"),),
    ),
    "a phase without an id is kept": (
        [{"type": "message", "role": "assistant", "content": "Hi", "phase": "commentary"}],
        (text("Hi", phase="commentary"),),
    ),
    "a phase that is no text stays in the signature": (
        [text_item("Hi", phase=None)],
        (text("Hi", '{"id":"msg_1","status":"completed","phase":null}'),),
    ),
    "a phase belongs to the first text of a message": (
        [{**text_item(phase="commentary"), "content": [PART, {**PART, "text": "b"}]}],
        (text("a", MSG, "commentary"), text("b", **SAME)),
    ),
    "a null status is not an absent one": (
        [{**text_item("Hi"), "status": None}],
        (text("Hi", '{"id":"msg_1","status":null}'),),
    ),
    "several texts of one message stay one message": (
        [{**text_item(), "content": [PART, {**PART, "text": "b"}]}],
        (text("a", MSG), text("b", **SAME)),
    ),
    "annotations are kept": (
        [{**text_item(), "content": [{**PART, "annotations": [{"type": "file_path", "file_id": "f", "index": 1}]}]}],
        (
            TextContent(
                text="a",
                text_signature=MSG,
                extra={P: {"annotations": [{"type": "file_path", "file_id": "f", "index": 1}]}},
            ),
        ),
    ),
    "an easy message of one part stays a list": (
        [{"type": "message", "role": "assistant", "content": [PART]}],
        (text("a", **{"@content": {"from": "string", "to": "list"}}),),
    ),
    "a message with an id stays a string": (
        [{**text_item(), "content": "a"}],
        (text("a", MSG, **{"@content": {"from": "list", "to": "string"}}),),
    ),
    "lists that a vendor leaves out": (
        [{**text_item(), "content": [{"type": "output_text", "text": "a"}]}],
        (text("a", MSG, annotations={"from": []}, logprobs={"from": []}),),
    ),
    "a refusal is a text": (
        [{**text_item(), "content": [{"type": "refusal", "refusal": "No."}]}],
        (text("No.", MSG, **{"@field": {"from": "text", "to": "refusal"}}),),
    ),
    "reasoning without text is a signature": (
        [reasoning()],
        (ThinkingContent(thinking="", thinking_signature='{"id":"rs_1","encrypted_content":"gAAA"}'),),
    ),
    "several summaries are joined and split again": (
        [reasoning(summary=[{"type": "summary_text", "text": "One."}, {"type": "summary_text", "text": "Two."}])],
        (
            ThinkingContent(
                thinking="One.\n\nTwo.",
                thinking_signature='{"id":"rs_1","encrypted_content":"gAAA","summary_lengths":[4,4]}',
            ),
        ),
    ),
    "reasoning with content and empty encrypted content is unsigned": (
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
            unsigned(
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
    "behind unsigned reasoning ids are no signature": (
        [{"type": "reasoning", "id": "rs_1", "summary": []}, call(id="fc_1")],
        (
            unsigned({"id": "rs_1"}),
            ToolCall(
                id="call_1",
                name="read",
                arguments={"path": "a"},
                extra=item_choice({"id": "fc_1"}),
            ),
        ),
    ),
    "encrypted content alone is the signature": (
        [{"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}],
        (ThinkingContent(thinking="", thinking_signature="gAAA"),),
    ),
    "a call without anything of the server's": (
        [call()],
        (ToolCall(id="call_1", name="read", arguments={"path": "a"}),),
    ),
    "a call with id, status and namespace": (
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
    "the text of arguments is kept": (
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
                extra={P: {"verbatim": {"@type": {"from": "function", "to": "custom"}}}},
            ),
        ),
    ),
    "a generated image has a fallback": (
        [{"type": "image_generation_call", "id": "ig_1", "result": "AAAA", "output_format": "webp"}],
        (
            NativeContent(
                protocol=P,
                block={"type": "image_generation_call", "id": "ig_1", "result": "AAAA", "output_format": "webp"},
                fallback=(ImageContent(data="AAAA", mime_type="image/webp"),),
            ),
        ),
    ),
    "a search has a fallback": (
        [{"type": "web_search_call", "id": "ws_1", "action": {"type": "search", "query": "segue"}}],
        (
            NativeContent(
                protocol=P,
                block={"type": "web_search_call", "id": "ws_1", "action": {"type": "search", "query": "segue"}},
                fallback=(TextContent(text="[web search: segue]"),),
            ),
        ),
    ),
    "an unknown item is kept": (
        [{"type": "brand_new_call", "id": "x_1"}],
        (NativeContent(protocol=P, block={"type": "brand_new_call", "id": "x_1"}),),
    ),
    "an order is kept": (
        [reasoning(), text_item("a"), call()],
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
        "any other text is the encrypted content": (
            "gAAA",
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "gAAA"},
        ),
    }.values(),
    ids=["a whole item, as pi stores it", "any other text is the encrypted content"],
)
def test_signatures_that_others_stored_are_read(signature, item):
    assert written((ThinkingContent(thinking="Hm.", thinking_signature=signature),)) == [item]


def test_a_signature_of_another_protocol_is_ignored():
    turn = (TextContent(text="a", text_signature="toolu_1"), ToolCall(id="c", name="n", thought_signature="sig"))
    assert written(turn) == [
        {"type": "message", "role": "assistant", "content": "a"},
        {"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"},
    ]


def test_ids_are_removed_with_the_unsigned_reasoning_before_them():
    items = [{"type": "reasoning", "id": "rs_1", "summary": []}, text_item("a"), call(id="fc_1")]
    turn = TurnReader().read_all(items)
    assert written(turn) == items
    assert all("id" not in item for item in written(turn[1:]))


def test_a_phase_in_a_signature_of_an_older_file_is_written():
    old = TextContent(text="Hi", text_signature='{"id":"msg_1","status":"completed","phase":"commentary"}')
    assert written((old,)) == [text_item("Hi", phase="commentary")]
    assert written((replace(old, phase="final_answer"),)) == [text_item("Hi", phase="final_answer")]


def test_a_changed_text_leaves_nothing_stale_behind():
    items = [{**text_item(), "content": [{"type": "refusal", "refusal": "No."}]}, {"role": "assistant", "content": "a"}]
    turn = [replace(piece, text="Yes.") for piece in TurnReader().read_all(items)]
    assert written(turn) == [
        {**text_item(), "content": [{"type": "refusal", "refusal": "Yes."}]},
        {"role": "assistant", "content": "Yes."},
    ]


def test_a_text_without_its_signature_is_a_plain_message():
    vendor = {**text_item("Hi"), "content": [{"type": "output_text", "text": "Hi"}]}
    turn = [replace(piece, text_signature=None) for piece in TurnReader().read_all([vendor])]
    assert written(turn) == [{"type": "message", "role": "assistant", "content": "Hi"}]


def test_annotations_stay_without_the_signature():
    cited = {**PART, "annotations": [{"type": "file_path", "file_id": "f", "index": 1}]}
    turn = [
        replace(piece, text_signature=None) for piece in TurnReader().read_all([{**text_item(), "content": [cited]}])
    ]
    assert written(turn) == [{"type": "message", "role": "assistant", "content": [cited]}]


def test_a_second_text_without_the_first_is_a_message():
    turn = TurnReader().read_all([{**text_item(), "content": [PART, {**PART, "text": "b"}]}])
    assert written(turn[1:]) == [{"type": "message", "role": "assistant", "content": "b"}]


OLD = {P: {"shape": {"type": "absent", "list": True, "joined": True, "part": "refusal", "signature": '{"id":"x"}'}}}


def test_format_of_an_older_file_is_ignored():
    turn = (TextContent(text="a", extra=OLD), ToolCall(id="c", name="n", extra=OLD))
    assert written(turn) == [
        {"type": "message", "role": "assistant", "content": "a"},
        {"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"},
    ]


@pytest.mark.parametrize(
    "content",
    [
        ThinkingContent(thinking="Hm."),
        NativeContent(protocol="anthropic-messages", block={"type": "redacted_thinking", "data": "x"}),
    ],
    ids=["thinking without a signature", "another protocol's block"],
)
def test_content_that_is_not_supported_is_refused_with_its_path(content):
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
def test_a_native_item_is_replayed_unchanged(item):
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
def test_an_item_belongs_to_the_turn_of_its_author(item, role):
    prompt = CODEC.decode_request([user(), item], endpoint())
    assert isinstance(prompt.context.messages[1], role)


def test_adjacent_items_of_the_model_are_one_turn():
    prompt = CODEC.decode_request([user(), reasoning(), text_item("a"), call(), output(), text_item("b")], endpoint())
    roles = [message.role for message in prompt.context.messages]
    assert roles == ["user", "assistant", "toolResult", "assistant"]
    assert [piece.kind for piece in prompt.context.messages[1].content] == ["thinking", "text", "toolCall"]
    assert prompt.context.messages[2] == ToolResultMessage(
        tool_call_id="call_1", tool_name="read", content=(TextContent(text="done"),)
    )


def test_a_result_of_the_application_for_a_custom_call_has_its_type():
    items = [user(), {"type": "custom_tool_call", "call_id": "call_1", "name": "sql", "input": "SELECT 1"}]
    context = CODEC.decode_request(items, endpoint()).context
    context = context.add(ToolResultMessage(tool_call_id="call_1", tool_name="sql", content=(TextContent(text="1"),)))
    body = CODEC.encode_request(Prompt(context=context), endpoint())
    assert body["input"] == [*items, {"type": "custom_tool_call_output", "call_id": "call_1", "output": "1"}]


def test_a_reply_can_be_sent_back_item_by_item():
    items = [reasoning(), text_item("Looking.", phase="commentary"), call(id="fc_1", status="completed")]
    message = CODEC.decode_response(reply(*items), endpoint(), {})
    body = CODEC.encode_request(Prompt(context=Context(messages=(message,))), endpoint(THINKER))
    assert body["input"] == items


@pytest.mark.parametrize("arguments", [None, {"a": 1}, 7, [], "no JSON"], ids=repr)
def test_a_call_is_a_call_whatever_its_arguments_are(arguments):
    item = {"type": "function_call", "id": "f", "call_id": "c", "name": "look", "arguments": arguments}
    body = {"id": "r", "object": "response", "status": "completed", "model": "gpt-5.2", "output": [item]}
    message = decode_response(body, protocol="openai-responses", model="openai/gpt-5.2")
    assert [call.name for call in message.tool_calls()] == ["look"]
    assert message.stop_reason == "toolUse"
    assert encode_response(message, protocol="openai-responses")["output"] == [item]
    sent = encode_request(Context(messages=(message,)), model="openai/gpt-5.2")["input"]
    assert all(isinstance(call["arguments"], str) for call in sent)
    request = {"model": "gpt-5.2", "input": [item]}
    prompt = decode_request(request, protocol="openai-responses")
    assert encode_request(prompt, protocol="openai-responses") == request


def test_a_custom_call_without_input_is_a_call():
    item = {"type": "custom_tool_call", "id": "f", "call_id": "c", "name": "look", "input": None}
    body = {"id": "r", "object": "response", "status": "completed", "model": "gpt-5.2", "output": [item]}
    message = decode_response(body, protocol="openai-responses")
    assert [dict(call.arguments) for call in message.tool_calls()] == [{"input": ""}]
    assert encode_response(message, protocol="openai-responses")["output"] == [item]
