"""Wordings of errors about the history: refused signatures, and refused structures.

`SIGNATURES` are searched before `HISTORY_FORMS`: a request with a refused signature succeeds without the reasoning of
earlier turns, one with a refused structure does not.

Samples are from recorded replies and issues of users (each row names one), read in 2026-11.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from segue.failures.failure import FailureKind
from segue.failures.row import Row, row

_signature_row = partial(row, FailureKind.OPAQUE_REJECTED)
_history_row = partial(row, FailureKind.INVALID_HISTORY)

SIGNATURES: Final[tuple[Row, ...]] = (
    _signature_row(
        "signature",
        r"\binvalid\b[^\n]{0,20}\bsignature\b[^\n]{0,30}\bthinking|"
        r"\b(?:thinking|reasoning\w*)\b[^\n]{0,40}\bsignature\b[^\n]{0,30}\b(?:invalid|mismatch|not valid|"
        r"field required|"
        r"verif)",
        sample="messages.1.content.0: Invalid `signature` in `thinking` block",
        source="Anthropic, llxprt-code#2335",
    ),
    _signature_row(
        "signature",
        r"\b(?:corrupted|invalid|bad|malformed|unknown|expired)\b[^\n.]{0,20}\bthought[ _]?signature|"
        r"\bthought[ _]?signature\b[^\n.]{0,30}\b(?:invalid|corrupted|not valid|malformed|mismatch|cannot be|"
        r"could not be)",
        sample="Unable to submit request because thought_signature is invalid.",
        source="Vertex; Gemini API: 'Corrupted thought signature.' (9router#4136)",
    ),
    _signature_row(
        "redacted",
        r"\binvalid\b[^\n]{0,20}\bdata\b[^\n]{0,20}\bredacted_thinking|"
        r"\bredacted_thinking\b[^\n]{0,30}\b(?:could not|cannot) "
        r"be (?:decrypted|verified|read)",
        sample="messages.1.content.0: Invalid `data` in `redacted_thinking` block",
        source="Anthropic on Vertex",
    ),
    _signature_row(
        "encrypted",
        r"\bencrypted[ _](?:function output )?(?:content|reasoning)\b[^\n]{0,80}\b(?:could not be|cannot be|failed|"
        r"was produced|different|invalid|not (?:be )?(?:verified|decrypted|valid))|"
        r"\b(?:decrypt|verify)\b[^\n]{0,30}\bencrypted",
        sample="The encrypted content for item rs_067d4968 could not be verified. Reason: Encrypted content could not "
        "be decrypted or parsed.",
        source="OpenAI, codex#8119; OpenRouter: 'encrypted reasoning or compaction content ... a different model';"
        " OpenAI: 'Encrypted function output content could not be decrypted' (codex#33267, 2026-07)",
    ),
    _signature_row(
        "cannot be modified|must remain as they were",
        r"thinking\W* blocks? in the latest assistant message cannot be modified|"
        r"blocks must remain as they were in the original",
        sample="messages.3.content.1: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot "
        "be modified. These blocks must remain as they were in the original response.",
        source="Anthropic, claude-code#63203",
    ),
    _signature_row(
        "reasoningcontent.reasoningtext.signature",
        r"support the reasoningcontent\.reasoningtext\.signature field",
        sample="This model doesn't support the reasoningContent.reasoningText.signature field. Remove "
        "reasoningContent.reasoningText.signature and try again.",
        source="Bedrock, strands#682",
    ),
)

HISTORY_FORMS: Final[tuple[Row, ...]] = (
    # -- calls and their results ----------------------------------------------------------------------------------
    _history_row(
        "tool_use|tool_result|tooluse|toolresult",
        r"\btool_use\b[^\n]{0,60}\b(?:without|followed|must have|corresponding|matching|single result|must be unique)|"
        r"\btool_result\b[^\n]{0,60}\b(?:must|unexpected|corresponding|matching|blocks with id)|"
        r"\bunexpected\b[^\n]{0,30}\btool_use_id|\b(?:expected )?toolresult blocks?\b|\btooluse\b[^\n]{0,60}\b(?:must|"
        r"previous|duplicate)",
        sample="messages.33: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1.",
        source="Anthropic, claude-code#1237; Bedrock: 'Expected toolResult blocks at messages.3.content for the "
        "following Ids'",
    ),
    _history_row(
        "tool_call|tool message|role|corresponding tool|assistant message must|tool call ids|consecutive",
        r"\btool_calls?\b[^\n]{0,30}\b(?:must be followed|must be a response|preceding|not followed)|"
        r"\brole\W{0,2} ?['\"]?tool['\"]?\W[^\n]{0,40}\b(?:must|preceding|response)|"
        r"\btool messages?\b[^\n]{0,40}\b(?:must|preced|follow)|tool_call_ids? did not have response|"
        r"\bcorresponding tool (?:call|use|result|response)|\bduplicate\b[^\n]{0,20}\btool_call_ids?\b|"
        r"\btool call ids must\b|\bconsecutive (?:user|assistant|tool|system) (?:messages?|turns?|roles?)\b|"
        r"\bassistant message must (?:have|contain)\b",
        sample="An assistant message with 'tool_calls' must be followed by tool messages responding to each "
        "'tool_call_id'.",
        source="OpenAI, ellmer#459; Moonshot, DashScope alike",
    ),
    _history_row(
        "no tool",
        r"no tool (?:output|call) found",
        sample="No tool output found for function call call_1.",
        source="OpenAI Responses, livekit#5092; DeepSeek, recorded",
    ),
    _history_row(
        "not found",
        r"\bsource tool\b[^\n]{0,80}\bnot found for tool use|\btool reference\b[^\n]{0,80}\bnot found in available",
        sample="source tool `srvtoolu_1` not found for tool use block `toolu_1`",
        source="Anthropic, vercel/ai 3c2067f; \"Tool reference 'f' not found in available tools\" (vercel/ai 4a00b68)",
    ),
    _history_row(
        "function call|function response",
        r"\bfunction (?:call|response) (?:turn|parts?|must)\b|same number of function calls and responses|"
        r"\bfunction call\b[^\n]{0,80}\bthought[ _]?signature",
        sample="Please ensure that function call turn comes immediately after a user turn or after a function "
        "response turn.",
        source="Google, gemini-cli#11814; Mistral: 'Not the same number of function calls and responses'",
    ),
    _history_row(
        "signature",
        r"\bmissing a\W* ?thought[ _]?signature",
        sample="Function call is missing a thought_signature in functionCall parts.",
        source="Google, litellm#16893",
    ),
    _history_row(
        "function_response|functionresponse|tool_call_id|tool call id|tool_use.id|tool_use_id|toolconfig|toolspec",
        r"function_?response\.name|\btool call id\b[^\n]{0,40}\bmust be|tool_call_id to be set|"
        r"tool_use_?\.?id\b[^\n]{0,40}\b(?:pattern|match|should|must)|toolconfig field must be defined",
        sample="Tool call id was call_0fypS1hVX but must be a-z, A-Z, 0-9, with a length of 9.",
        source="Mistral, opencode#1680",
    ),
    _history_row(
        "tool_use.input|arguments",
        r"tool_use\.input\b|\barguments\b[^\n]{0,40}\b(?:valid json|json object|unmarshal|must be)|"
        r"unmarshal \w+ into go struct field chatrequest\.messages",
        sample="messages.5.content.1.tool_use.input: Input should be a valid dictionary",
        source="Anthropic, koda#501; Ollama: 'cannot unmarshal string into Go struct field ChatRequest.messages...'",
    ),
    # -- reasoning that has to be there, or not -------------------------------------------------------------------
    _history_row(
        "thinking",
        r"\bexpected\b[^\n]{0,10}\bthinking\b[^\n]{0,60}\bfound\b|each thinking block must contain|"
        r"must start with a thinking block|\bthinking\.thinking\b|final\W{0,2} ?assistant\b[^\n]{0,40}\bthinking block",
        sample="messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
        source="Anthropic, opencode#3077",
    ),
    _history_row(
        "reasoning",
        r"\breasoning_content\b[^\n]{0,80}\b(?:must be passed|missing|required|field in the)|"
        r"\bmissing\b[^\n]{0,10}\breasoning_content|reasoning content format incorrect|reasoning input is not enabled|"
        r"\bof type\b[^\n]{0,30}\bwas provided without its required|does(?:n't| not) support the reasoningcontent",
        sample="The `reasoning_content` in the thinking mode must be passed back to the API.",
        source="DeepSeek, pi#3636; OpenAI: \"Item 'rs_1' of type 'reasoning' was provided without its required ...\"",
    ),
    _history_row(
        "reasoning content",
        r"\bmessages cannot contain reasoning content",
        sample="User messages cannot contain reasoning content. Please remove the reasoning content and try again.",
        source="Bedrock, vercel/ai 58022e0",
    ),
    _history_row(
        "not found",
        r"\bitem\b[^\n]{0,60}\bnot found|not found\W{1,3}items are not persisted|"
        r"\b(?:previous )?response\b[^\n]{0,60}\bnot found",
        sample="Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.",
        source="OpenAI Responses, opencode#7724",
    ),
    _history_row(
        "string too long",
        r"\b(?:messages|input)\[\d+\][\w.\[\]]*id\b[^\n]{0,5}string too long",
        sample="Invalid 'input[95].call_id': string too long. Expected a string with maximum length 64, but got a "
        "string with length 116 instead.",
        source="OpenAI 400, fastllm#45: an id that another provider made",
    ),
    _history_row(
        "expected an id",
        r"expected an id that (?:begins|starts) with",
        sample="Invalid 'input[133].id': 'thinking_0'. Expected an ID that begins with 'rs'.",
        source="OpenAI Responses, vscode#316536",
    ),
    # -- roles and their order ------------------------------------------------------------------------------------
    _history_row(
        "role",
        r"\broles?\b[^\n]{0,80}\b(?:alternat\w*|after role|in a row|does not support|not supported|unsupported)|"
        r"\b(?:unexpected|unsupported|invalid|incorrect|unknown|last|expected)\b[^\n]{0,10}\broles?\b|"
        r"\balternat\w*\b[^\n]{0,40}\broles?\b|\busing 'role'|\bmessages\[\d+\]\.role\b|"
        r"\bdoes not support\b[^\n]{0,10}\brole\b",
        sample="Unexpected role 'user' after role 'tool'",
        source="Mistral, zed#37021; OpenAI: \"'messages[0].role' does not support 'developer' with this model\"",
    ),
    _history_row(
        "conversation|message|trailing whitespace",
        r"\bconversation must (?:start|end|alternate)|must end with a user|must start with a user|first message must|"
        r"last message must|(?:final|last) (?:position|turn|role) must be|cannot end with trailing whitespace|"
        r"assistant message prefill|prefill\w*\b[^\n]{0,20}\bnot supported|"
        r"system message\b[^\n]{0,20}\bmust be (?:at the beginning|first)|at least one message is required",
        sample="This model does not support assistant message prefill. The conversation must end with a user message.",
        source="Anthropic, llxprt#1977; Bedrock: 'A conversation must start with a user message.'",
    ),
    # -- content --------------------------------------------------------------------------------------------------
    _history_row(
        "content block|contentblock|content blocks|content field|part type",
        r"\bcontent ?blocks? (?:object|must|that you provided|are expected|cannot|is not|in the)|invalid part type|"
        r"\bcontent field\b[^\n]{0,60}\b(?:is empty|must not be empty|blank)",
        sample="ContentBlock object at messages.0.content.0 must set one of the following keys: text, image",
        source="Bedrock; OpenAI: 'Content blocks are expected to be either text or image_url type.'",
    ),
    _history_row(
        "non-empty|nonempty|must not be empty|cannot be empty|be blank|non-whitespace|is empty|empty message|"
        "empty content",
        r"\bempty (?:message|content|text)\b|\b(?:text|content|message|messages|parts?|"
        r"block)s?\b[^\n]{0,60}\b(?:must be non-?empty|must not be empty|"
        r"cannot be empty|must have non-?empty|must contain non-whitespace|be blank|is empty)",
        sample="messages: text content blocks must be non-empty",
        source="Anthropic, arunalabs/mode#9",
    ),
    _history_row(
        "input tag",
        r"\bmessages\.\d+\.content\.\d+\W[^\n]{0,20}\binput tag\b",
        sample="messages.1.content.0: Input tag 'fallback' found using 'type' does not match any of the expected tags: "
        "'text', 'tool_use'",
        source="Anthropic, vercel/ai dc5fc4a: a block of a beta that was not asked for",
    ),
    _history_row(
        "extraneous key",
        r"#/messages/\d+[^\n]{0,60}\bextraneous key",
        sample="Malformed input request: #/messages/2/content/0: extraneous key [toolResult] is not permitted",
        source="Bedrock, recorded",
    ),
    _history_row(
        "image|audio|video|vision|pdf|document|file|mimetype|media type|modalit|content must be a string",
        r"image urls are only allowed for messages with role|contains an image url|"
        r"unknown variant\W+(?:image_url|input_audio|video_url|file)|"
        r"no endpoints found that support (?:image|input audio|audio|video|file|input)|"
        r"\b(?:image|audio|video|pdf)(?:_url| inputs?| content)?s?\b[^\n]{0,30}\b(?:not supported|unsupported|"
        r"is not enabled|is only supported by certain)|"
        r"does(?:n't| not) support (?:image|vision|audio|video|pdf|document|file|multi-?modal)|"
        r"\bmimetype parameter with value [\w/.+-]+, which is not supported|"
        r"\bunsupported (?:input )?modalit|"
        r"\bmessages?\W?\d+\W*content\W{0,4}(?:value )?must be a string",
        sample="Invalid 'messages[234]'. Image URLs are only allowed for messages with role 'user', but this message "
        "with role 'tool' contains an image URL.",
        source="OpenAI, OpenHands#7700; OpenRouter: 'No endpoints found that support image input'; all modalities",
    ),
    _history_row(
        "surrogate",
        r"\bsurrogate",
        sample="The request body is not valid JSON: no low surrogate in string: line 1 column 28642 (char 28641)",
        source="Anthropic, claude-code#1709",
    ),
)
