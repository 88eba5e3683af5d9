"""The rules of the Bedrock Converse wire, and of the families of models that it serves.

Facts:
- Patterns and limits of fields.                                   (botocore 1.44.0 service model, read 2026-11-15)
- Roles alternate, the user begins, content is never empty, a document is next to a text: "A conversation must ...".
                                                          (langchain-aws #192, dify #12340, archestra #4220, 2026-04-30)
- Claude accepts its own first turn, and a blank text with other text.             (recorded traffic, 2026-11)
- `toolConfig` is required whenever the history has calls.                               (vercel/ai #7537, strands #998)
- An image inside a result is accepted by Claude, Nova and Llama 4, refused by the others.
                                              (opencode #49443, live table, 2026-09-17; AWS ToolResultContentBlock)
- The `signature` field is refused by every model but Claude; DeepSeek refuses any reasoning content.
                                                                            (strands #682, pi #1505; langchain-aws #401)
- Claude and Nova accept the choice of one tool by name.                         (AWS ToolChoice, read 2026-11-15)
- The status of a result is for Claude and Nova; agents omit it for the others.
                                             (AWS ToolResultBlock; strands: `remove_tool_result_status`; 2026-11-15)
- A document in S3 is refused by Claude ("document.source.type: Field required"), a video in S3 is accepted by Nova;
  Claude refuses video of any kind.                                                        (recorded traffic, 2026-11)
- A cache point in a request to a model without caching is refused.   (AWS documentation: prompt caching, 2026-11-15)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from segue.models.dialect import Dialect
from segue.models.family import Family
from segue.models.model_ids import (
    CLAUDE,
    CLAUDE_3,
    CLAUDE_3_AND_3_5,
    CLAUDE_4_6,
    CLAUDE_ALWAYS_THINKS,
    CLAUDE_BINDS_PREFIX,
    CLAUDE_ONE_SAMPLING_PARAMETER,
    CLAUDE_REFUSES_FORCED_CHOICE,
    CLAUDE_UP_TO_4_5,
    OPENAI_GPT_5_5_ON,
    OPENAI_GPT_5_6_ON,
    OPENAI_GPT_5_ALONE,
)
from segue.models.rule import Rule
from segue.models.rules import Rules
from segue.protocols.bedrock_converse.media_types import FORMATS
from segue.protocols.families.claude_prefix import CLAUDE_BINDING

PROTOCOL: Final = "bedrock-converse"
PROVIDER: Final = "amazon-bedrock"

_IMAGES: Final = tuple(FORMATS["image"])
_DOCUMENTS: Final = tuple(FORMATS["document"])
_SAMPLING: Final = frozenset({"temperature", "top_p"})
CACHED_FIVE_MINUTES: Final = r"claude-(?:instant|v?[123](?:[-.:@]|$)|(?:opus|sonnet)-4(?:[-.][01])?(?:-\d{8}|$))"
"""The Claude models before 4.5: their caches last five minutes."""

_RESULT_CONTENT: Final = frozenset({"result_content"})
_MODEL: Final = "botocore 1.44.0, service model"
READ: Final = "2026-11-15"

RULES: Final = Rules(
    body_fields="closed",
    server_tools=frozenset(),
    # -- tools
    tools_with_history=True,
    call_id_alphabet="a-zA-Z0-9_.:-",
    call_id_max=64,
    tool_name_alphabet="a-zA-Z0-9_-",
    tool_name_max=64,
    tool_choices=frozenset({"auto", "required"}),
    tool_error="text",
    schema_root_object=True,
    # -- media
    user_media=tuple(mime for formats in FORMATS.values() for mime in formats),
    result_media=(),
    image_sources=frozenset({"data", "file_id"}),
    file_sources=frozenset({"data", "file_id"}),
    file_context=True,
    file_id_pattern=r"s3://[a-z0-9][.\-a-z0-9]{1,61}[a-z0-9](?:/.*)?",
    max_images=20,
    # -- turns
    alternate=True,
    first_user=True,
    last_assistant=False,
    instructions_alone=False,
    system_messages="none",
    refused_text="blank",
    blank_beside=frozenset({"signed", "text"}),
    empty_result=False,
    # -- reasoning
    reasoning_replay="none",
    # -- settings
    refused_options=frozenset({"seed", "parallel_tool_calls", "cache_retention", "session_id", "user_id"}),
    cache_mark_key="cachePoint",
    # -- what is refused
    rows={
        "alternation": Rule('"A conversation must alternate between user and assistant roles" (dify #12340)', READ),
        "untyped_media": Rule(f"{_MODEL}: `format` is required", READ),
        "image_edge": Rule(f"{_MODEL}: Message, height and width", READ, most=8000),
        "files": Rule(f"{_MODEL}: Message", READ, most=5),
        "media_bytes": Rule("AWS documentation: video up to 25 MB in the request", READ, most=26_214_400),
        "image_bytes": Rule(f"{_MODEL}: 3.75 MB", READ, most=3_932_160),
        "document_bytes": Rule(f"{_MODEL}: 4.5 MB", READ, most=4_718_592),
        "files_alone": Rule('"A text block must be included when using documents" (archestra #4220)', READ),
        "temperature": Rule(_MODEL, READ, most=1.0),
        "stop": Rule(_MODEL, READ, most=2500),
        "cache_mark_order": Rule("a 400 for 1h after 5m, in the order tools, system, messages (headroom #2939)", READ),
        "cache_mark_places": Rule(f"{_MODEL}: ToolResultContentBlock has none", READ, values=_RESULT_CONTENT),
    },
)

SOURCES: Final[Mapping[str, str]] = {
    "body_fields": 'service model; "Unknown parameter in input: "tools"" (boto3: agents-course #593, 2025-08-20)',
    "server_tools": '"... is not supported for this model" (subrouter #237); Nova has some, by a family',
    "tools_with_history": '"The toolConfig field must be defined when using toolUse and toolResult content blocks"',
    "call_id_alphabet": "service model; recorded traffic, 2026-11: `functions.get_temperature:0`",
    "call_id_max": "service model",
    "tool_name_alphabet": "service model",
    "tool_name_max": "service model",
    "tool_choices": "service model: there is no `none`; by name, see the families",
    "tool_error": "service model: ToolResultBlock, `status` is for Claude and Nova",
    "schema_root_object": '"inputSchema.json.type must be one of the following: object"',
    "user_media": "service model",
    "result_media": "service model: ToolResultBlock; which models read them is in the families",
    "image_sources": "service model: bytes, or an S3 location, which is a file id here",
    "file_sources": "service model: bytes, or an S3 location",
    "file_context": "service model: DocumentBlock",
    "file_id_pattern": "service model",
    "max_images": "service model",
    "alternate": '"A conversation must alternate between user and assistant roles" (dify #12340)',
    "first_user": '"A conversation must start with a user message." (Bedrock API)',
    "last_assistant": "semantic-kernel #10281",
    "instructions_alone": 'Claude too needs a message: "at least one message is required" (langchain #31657)',
    "system_messages": "service model; no reported 200 of the role",
    "refused_text": '"The text field in the ContentBlock object ... is blank"',
    "blank_beside": "recorded 200 of white space beside a text, 2026-11",
    "empty_result": '"cannot be empty when status value is error" (sample-multi-agent-orchestration-chat-on-agentcore'
    " #15, 2026-06-01); Nemotron: strands",
    "reasoning_replay": "service model: ReasoningContentBlock; which models read it is in the families",
    "refused_options": "service model: no such fields; cache points depend on the model",
    "cache_mark_key": "service model: CachePointBlock",
}
"""Who says so, for each field of `RULES`; its rows have their own sources. All were read on `READ`."""

DIALECT: Final = Dialect(max_tokens_field="max_tokens", thinking_format="none", auth="aws")

FAMILIES: Final[tuple[Family, ...]] = (
    Family(
        pattern=r"^(?!.*(?:claude-|openai\.gpt|amazon\.nova-2))",
        rules={"refused_options": frozenset({"thinking"})},
        source="service model: each family has its own thinking fields; none are known for the others",
        read="2026-11-15",
    ),
    Family(
        pattern=r"titan-text|mistral-7b|mixtral-8x7b|jurassic|ai21\.j2|cohere\.command-(?:text|light)",
        rules={"tools": False, "system_prompt": False, "system_messages": "none"},
        source="AWS documentation: supported models and features of Converse, neither tools nor system prompts",
        read="2026-11-17",
    ),
    Family(
        pattern=r"llama3-(?:8|70)b|llama3-2-[13]b",
        rules={"tools": False},
        source="the same: no tools",
        read="2026-11-17",
    ),
    Family(
        pattern=CLAUDE,
        rules={
            "calls_last": True,  # vercel/ai #8318, #13013
            "call_id_alphabet": "a-zA-Z0-9_-",
            "tool_choices": frozenset({"auto", "required", "name"}),
            "tool_error": "flag",
            "user_media": (*_IMAGES, *_DOCUMENTS),
            "image_sources": frozenset({"data"}),
            "file_sources": frozenset({"data"}),
            "other_image_type": Rule('"the image appears to be a image/png image" (llxprt-code #2130)', READ),
            "result_media": (*_IMAGES, "application/pdf"),  # a PDF: recorded 200s of Sonnet 4.5, 2026-11
            "error_media": Rule("\"all content must be type 'text'\" (vellum-assistant #18387, 2026-03-17)", READ),
            "first_user": False,
            "reasoning_replay": "signed",
            "final_thinking": "text",
            "thinking_levels": frozenset({"off", "low", "medium", "high", "xhigh", "max"}),  # efforts: anthropic 2.8.0
            "refused_with_thinking": _SAMPLING,
            "cache_marks": 4,
            "cache_mark_beside": Rule(
                '"messages.0.content.3.type: Field required" (strands harness-sdk #1966, 2026-03-24, and #2001, live)',
                READ,
                values=frozenset(_DOCUMENTS) - {"application/pdf"},
            ),
            "thinking_types": frozenset({"adaptive", "disabled"}),
            # AWS documentation: Claude, additional fields; `reasoning_config` is the first name of `thinking`
            "added_fields": ["anthropic_version", "anthropic_beta", "reasoning_config"],
            "refused_options": ["-cache_retention", "temperature", "top_p"],
        },
        dialect={"thinking_format": "adaptive", "cache_format": "bedrock", "cache_long": "1h"},
        source="Claude's own rules apply behind Bedrock (pi-ai 1.5.0; hermes-agent #105780); recorded traffic, 2026-11",
        read="2026-11-15",
    ),
    Family(
        pattern=CLAUDE_UP_TO_4_5,
        rules={
            "last_assistant": True,
            "thinking_types": frozenset({"enabled", "disabled"}),
            "thinking_before_calls": True,
            "min_thinking_budget": 1024,
            "budget_in_max_tokens": True,
            "thinking_levels": frozenset({"off", "minimal", "low", "medium", "high"}),  # sent as budgets
            "forced_choice_with_thinking": False,
            "refused_options": ["-temperature", "-top_p"],
        },
        dialect={"thinking_format": "budget"},
        source="strands #1694 (Sonnet 4.5 accepts prefill); spring-ai #6413; AWS documentation: adaptive thinking",
        read="2026-11-15",
    ),
    Family(
        pattern=CLAUDE_3_AND_3_5,
        rules={"first_user": True},
        source="'A conversation must start with a user message' for Claude 3.5 (dify #12340, 2025-01-03)",
        read="2026-11-17",
    ),
    Family(
        pattern=CLAUDE_3,
        rules={"cache_marks": 0},
        source="AWS documentation: prompt caching, supported models (from Claude 3.5 Haiku on)",
        read="2026-11-17",
    ),
    Family(
        pattern=CACHED_FIVE_MINUTES,
        dialect={"cache_long": "none"},
        source="AWS documentation: prompt caching; opencode #23106 (an hour was tried from the 4.5 generation on)",
        read="2026-11-15",
    ),
    Family(
        pattern=CLAUDE_ONE_SAMPLING_PARAMETER,
        rules={"exclusive_options": _SAMPLING},
        source="'`temperature` and `top_p` cannot both be specified for this model' (litellm #15097, opencode #28930)",
        read="2026-11-15",
    ),
    Family(
        pattern=CLAUDE_4_6,
        rules={
            "exclusive_options": _SAMPLING,
            "thinking_types": frozenset({"adaptive", "enabled", "disabled"}),
            "refused_options": ["-temperature", "-top_p"],
            # the API refuses xhigh and lists these (recorded 400)
            "thinking_levels": frozenset({"off", "low", "medium", "high", "max"}),
        },
        source="4.6 still accepts sampling settings (anthropic 2.8.0)",
        read="2026-11-15",
    ),
    Family(
        pattern=CLAUDE_REFUSES_FORCED_CHOICE,
        rules={"tool_choices": frozenset({"auto"})},
        source='\'type "tool" and "any" are not supported for this model\' (vercel/ai #21364, oh-my-pi #12939)',
        read="2026-11-15",
    ),
    Family(
        pattern=CLAUDE_BINDS_PREFIX,
        # A blank text that only thinking made acceptable would be refused, or differ, once the thinking is left out.
        rules={"blank_beside": frozenset({"text"})},
        source="concluded from the check of the prefix",
        read="2026-11-16",
    ),
    *CLAUDE_BINDING,
    Family(
        pattern=CLAUDE_ALWAYS_THINKS,
        rules={"thinking_levels": frozenset({"low", "medium", "high", "xhigh", "max"})},
        source="thinking of type `disabled` answers 400 (pydantic-ai 2.66.0, live; @ai-sdk/anthropic 3.0.138)",
        read="2026-11-15",
    ),
    Family(
        pattern=r"amazon\.nova",
        rules={
            "tool_choices": frozenset({"auto", "required", "name"}),
            "tool_error": "flag",
            "result_media": _IMAGES,
            "last_assistant": True,  # a last turn of the assistant was answered with 200 (recorded traffic, 2026-11)
            "cache_marks": 4,
            "alternation": None,  # two user turns in a row were answered with 200 (recorded traffic, 2026-08)
            # "extraneous key [cachePoint] is not permitted" of tools
            "cache_mark_places": Rule("LibreChat #13838, 2026-06-18", READ, values=_RESULT_CONTENT | {"tool"}),
            "refused_options": ["-cache_retention"],
        },
        dialect={"cache_format": "bedrock", "cache_on_tools": False},
        source="AWS ToolChoice and ToolResultContentBlock; AWS documentation: prompt caching; opencode #49443",
        read="2026-11-15",
    ),
    Family(
        pattern=r"amazon\.nova-(?!2)",
        rules={"schema_keywords": Rule(values=frozenset({"definitions", "$defs"}))},
        source="'inputSchema/json: extraneous key [definitions] is not permitted' (zed #28521, 2025-04-10)",
        read="2026-11-17",
    ),
    Family(
        pattern=r"amazon\.nova-(?!2)",
        rules={"refused_extra": ["additionalModelRequestFields.reasoningConfig"]},
        source="'Malformed input request: the provided reasoning config value is invalid' (inspect_ai #5301, Nova Pro,"
        " 2026-09-08)",
        read="2026-11-18",
    ),
    Family(
        pattern=r"amazon\.nova-2",
        rules={
            "refused_with_thinking": frozenset({"max_tokens", *_SAMPLING}),
            "thinking_levels": frozenset({"off", "low", "medium", "high"}),
            "server_tools": frozenset({"nova_grounding", "nova_code_interpreter"}),  # AWS documentation: system tools
        },
        dialect={"thinking_format": "level"},
        source="AWS Nova 2 guide: extended thinking; with high effort none of the three may be set (inspect_ai #3767)",
        read="2026-11-15",
    ),
    Family(
        pattern=r"amazon\.nova-premier",
        rules={"server_tools": frozenset({"nova_grounding"})},
        source="AWS documentation: web grounding (Nova Premier, US profiles)",
        read="2026-11-15",
    ),
    Family(
        pattern=r"amazon\.titan",
        rules={"alternate": False},
        source="two user turns in a row were answered (recorded by opentelemetry-instrumentation-bedrock 0.62.4)",
        read="2026-11-15",
    ),
    Family(
        pattern=r"meta\.llama",
        rules={"user_after_result": False, "tool_choices": frozenset({"auto"})},
        source="Llama refuses results and text in one turn; langchain-aws #620 (tool choice)",
        read="2026-11-15",
    ),
    Family(
        pattern=r"amazon\.nova|meta\.llama|mistral\.pixtral",
        rules={"refused_extra": ["outputConfig"], "refused_options": ["output_schema"]},
        source="'This model doesn't support the outputConfig field. Remove outputConfig and try again.' (public probes"
        " of every Nova, Llama 3.3 and 4, and Pixtral, 2026)",
        read="2026-11-18",
    ),
    Family(
        pattern=r"meta\.llama4",
        rules={"result_media": (*_IMAGES, *_DOCUMENTS)},
        source="opencode #49443, live table of 2026-09-17; a PDF, recorded by pydantic-ai",
        read="2026-11-15",
    ),
    Family(
        pattern=r"mistral\.pixtral",
        rules={"result_media": _DOCUMENTS},
        source="a PDF in a result was read, recorded by pydantic-ai",
        read="2026-11-15",
    ),
    Family(
        pattern=r"openai\.gpt-oss|moonshot|kimi|zai\.glm|minimax|qwen|nemotron",
        rules={"reasoning_replay": "open"},
        source="reasoning text is accepted without a signature (strands #682, pi #1505; pi-ai 1.5.0)",
        read="2026-11-15",
    ),
    Family(
        pattern=r"moonshot|kimi",
        rules={"refused_options": ["temperature"]},
        source="'This model doesn't support the temperature field. Remove temperature and try again.' (observed by a"
        " public agent, 2026-09-22)",
        read="2026-11-17",
    ),
    Family(
        pattern=r"xai\.grok",
        rules={"refused_options": _SAMPLING | {"stop"}},
        source="the same of all three: maxTokens alone is accepted (the table of a public gateway, 2026-09)",
        read="2026-11-17",
    ),
    Family(
        pattern=r"qwen\.qwen3",
        rules={"refused_options": ["stop"]},
        source="'This model doesn't support the stopSequences field.' (dify-official-plugins #1767, 2025-09-25)",
        read="2026-11-17",
    ),
    Family(
        pattern=r"zai\.glm",
        rules={"refused_options": ["stop"]},
        source="'This model doesn't support the stopSequences field' (bifrost #4684, 2026-06-25)",
        read="2026-11-18",
    ),
    Family(
        pattern=r"nova-micro|jamba-instruct",
        rules={"user_media": ()},
        source="AWS documentation: supported models and features of Converse, neither documents nor vision",
        read="2026-11-17",
    ),
    Family(
        pattern=r"jamba-instruct|deepseek\.r1",
        rules={"tools": False},
        source="the same: no tools",
        read="2026-11-17",
    ),
    Family(
        pattern=OPENAI_GPT_5_6_ON,
        rules={"user_media": _IMAGES},
        source="'This model doesn't support documents.' (models.dev #6821, 2026-09-11)",
        read="2026-11-17",
    ),
    Family(
        pattern=OPENAI_GPT_5_6_ON,
        rules={"result_media": ()},
        source="an image in a result fails, the same next to a result of text does not (opencode #48069, live, of Astra"
        " and Sol, 2026-09-16)",
        read="2026-11-18",
    ),
    Family(
        pattern=f"{OPENAI_GPT_5_ALONE}|{OPENAI_GPT_5_5_ON}",
        rules={"refused_options": _SAMPLING | {"stop"}},
        source="'doesn't support the stopSequences field' of 5.6 (vercel/ai 1a1e246); litellm 1.108.4: no sampling",
        read="2026-11-15",
    ),
    Family(
        pattern=r"openai\.gpt",
        # GPT has had no `minimal` since 5.1 (meerkat-core 0.6.25: live, 5.4 and 5.5)
        rules={"thinking_levels": frozenset({"off", "low", "medium", "high"})},
        dialect={"thinking_format": "nested"},
        source="pi-ai 1.5.0: an effort inside `reasoning`, among the additional fields",
        read="2026-11-15",
    ),
    Family(
        pattern=r"openai\.gpt-oss",
        rules={"thinking_levels": frozenset({"low", "medium", "high"})},  # its three; it always thinks
        dialect={"thinking_format": "effort"},
        source="pi-ai 1.5.0: a flat `reasoning_effort` for gpt-oss",
        read="2026-11-15",
    ),
)
