"""Wordings of errors about a conversation that is longer than the model's context window.

The patterns match the meaning of a message, not one string: something that is counted (prompt, input, messages, tokens,
context) is compared with a limit (window, context length, maximum). Samples that name a provider follow texts reported
by users or kept in tests of other projects (2026-11); those marked `generic` are our own.

- `CERTAIN` rows count input and output together, or name the context. They are searched before the false positives.
- `STRICT` rows name the context or the prompt. They also apply to status 413: one provider answers it with "Prompt is
  too long".
- `LOOSE` rows do not apply to status 413.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from segue.failures.failure import FailureKind
from segue.failures.row import Row, row

_overflow = partial(row, FailureKind.OVERFLOW)

_CONTEXT = r"context[ _-]?(?:length|window|size|limit|budget|capacity|space|tokens?)"
_NOUN = (
    r"(?:prompt|inputs?|context|conversation|history|messages?|chat|thread|transcript|dialogue|request|quer(?:y|ies))"
)
_NUMBER = r"\d[\d,._]*[km]?"

CERTAIN: Final[tuple[Row, ...]] = (
    _overflow(
        "inputs",
        r"[`'\"]?inputs[`'\"]? (?:tokens \+ |must have (?:less|fewer) than)",
        sample="Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` "
        "tokens and 500 `max_new_tokens`",
        source="Hugging Face TGI 422",
    ),
    _overflow(
        "tokens",
        rf"max(?:imum)? size:? {_NUMBER} tokens",
        sample="Request body too large for gpt-4o model. Max size: 8000 tokens.",
        source="GitHub Models 413",
    ),
    _overflow(
        "max_tokens|max tokens|max_completion_tokens",
        rf"max[_ ]tokens of {_NUMBER} exceeded|max_(?:completion_)?tokens must be (?:at least 1|positive|"
        r"greater than 0),? got -\d",
        sample="max_tokens must be at least 1, got -736. (parameter=max_tokens, value=-736)",
        source="vLLM behind NVIDIA: what the input leaves of the window, below nothing; Snowflake: 'max tokens of N "
        "exceeded'",
    ),
    _overflow(
        "exceed",
        r"\b(?:prompt|inputs?|messages?) (?:and|plus|with) (?:the )?(?:completion|output|response|"
        r"max_tokens)\b[^\n]{0,40}?\bexceed\w*",
        sample="The combined prompt and completion would exceed 16385 tokens",
        source="generic",
    ),
    _overflow(
        "+",
        r"(?:prompt|input|context)\w*\b[^\n+]{0,40}\+[^\n]{0,20}(?:max|output|completion)\w*\b[^\n]{0,60}?(?:exceed\w*|"
        r"greater than|larger than|more than|beyond|over|>)",
        sample="tokens_in_prompt (45012) + max_new_tokens (4096) exceeds the model limit 32768",
        source="generic: input and output against one limit",
    ),
    _overflow(
        " > ",
        rf"\({_NUMBER} > {_NUMBER} - {_NUMBER}\)",
        sample="'max_tokens' is too large: 2000. This model's maximum context length is 4096 tokens and your request "
        "has 3000 input tokens (2000 > 4096 - 3000).",
        source="vLLM; when the output alone is above the window, `asks_too_much_output` is true",
    ),
    _overflow(
        "context limit",
        r"\bexceed\w* (?:the )?context limit",
        sample="AWS Bedrock Error: The request payload size has exceed context limit.",
        source="Bedrock; Anthropic: 'input length and `max_tokens` exceed context limit: 179413 + 32768 > 200000'",
    ),
    _overflow(
        "(no body)",
        r"^4(?:00|13)\s*(?:status code)?\s*\(no body\)",
        sample="400 status code (no body)",
        source="Cerebras sends only this text",
        scope=("cerebras",),
    ),
)

STRICT: Final[tuple[Row, ...]] = (
    _overflow(
        "context",
        rf"\b{_CONTEXT}\b[^.\n]{{0,60}}?\b(?:exceed\w*|overflow\w*|too (?:long|large|small)|surpass\w*|is full|"
        r"reached|not enough|not (?:large|big|long) enough|insufficient)",
        sample="invalid params, context window exceeds limit",
        source="MiniMax",
    ),
    _overflow(
        "context",
        r"\b(?:exceed\w*|surpass\w*|overflow\w*|longer than|larger than|greater than|bigger than|higher than|"
        r"more than|beyond|over|above|outside|past|too (?:long|large|big|many \w+) for|fit(?:s|ting)? (?:in|into|"
        rf"within|inside)|reached|hit|ran out of|out of|not enough|insufficient)\b[^\n]{{0,80}}?\b(?:{_CONTEXT}|"
        r"context\b)",
        sample="Your input exceeds the context window of this model. Please adjust your input and try again.",
        source="OpenAI Responses",
    ),
    _overflow(
        "context",
        r"\bmax(?:imum)?[ _-](?:\w+ ){0,2}?context",
        sample="This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 tokens.",
        source="OpenAI; vLLM, OpenRouter, DeepSeek and Azure alike",
    ),
    _overflow(
        "context",
        rf"\btokens?\b[^\n]{{0,60}}?\b(?:but|while|whereas|only)\b[^\n]{{0,60}}?\b{_CONTEXT}",
        sample="prompt has 5120 tokens, but the configured context size is 4096 tokens",
        source="DS4 server",
    ),
    _overflow(
        "context",
        rf"\b{_CONTEXT}\b[^\n]{{0,80}}?\b(?:but|while|whereas|however|only)\b[^\n]{{0,80}}?\btokens?\b",
        sample="the model is loaded with context length of only 4096 tokens, which is not enough",
        source="LM Studio",
    ),
    _overflow(
        "context",
        rf"\b{_NUMBER} ?tokens?\b[^\n]{{0,60}}?\b{_CONTEXT}\b\D{{0,20}}{_NUMBER}|"
        rf"\b{_CONTEXT}\b\D{{0,20}}{_NUMBER}[^\n]{{0,60}}?\b{_NUMBER} ?tokens?\b",
        sample="The prompt is 2614 tokens and the context window is 2048!",
        source="GPT4All, private-gpt#839: a count with a window",
    ),
    _overflow(
        "context",
        r"\bcontext\b[^.\n]{0,20}\boverflow|\bcontext (?:is|was) full\b",
        sample="Trying to keep the first 6000 tokens when context the overflows.",
        source="LM Studio",
    ),
    _overflow(
        "too long|overly long",
        rf"\b{_NOUN}\b[^.\n]{{0,40}}?\b(?:too|overly) long\b",
        sample="prompt is too long: 209752 tokens > 200000 maximum",
        source="Anthropic 400, on Vertex 413; Bedrock: 'Input is too long for requested model'; Perplexity",
    ),
    _overflow(
        "too large|too big",
        r"\b(?:prompt|context|conversation|history|chat|thread|transcript|input tokens?)\b[^.\n]{0,60}?\btoo (?:large|"
        r"big)\b",
        sample="Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        source="Mistral 400, code 3051",
    ),
    _overflow(
        "prompt length|input length|prompt_length|input_length|sequence length|model length|input len|prompt "
        "len|model_len|model len|input token|prompt token|input_token|prompt_token|seq_len|sequence_length",
        r"\bmax(?:imum)?[ _-](?:allowed |supported |total |model )?(?:prompt|input|sequence|seq|model)[ _-]?(?:length|"
        r"len|tokens?)\b",
        sample="This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        source="xAI",
    ),
    _overflow(
        "input length",
        r"range of input length should be",
        sample="Range of input length should be [1, 98304]",
        source="DashScope",
    ),
    _overflow(
        "while",
        r"\bwhile (?:the )?limit is\b",
        sample="Please reduce the length of the messages or completion. Current length is 132784 while limit is 131072",
        source="Cerebras",
    ),
    _overflow(
        ">",
        rf"{_NUMBER} tokens? > {_NUMBER}|{_NUMBER} \+ {_NUMBER} > {_NUMBER}",
        sample="input length and `max_tokens` exceed context limit: 179413 + 32768 > 200000",
        source="Anthropic",
    ),
    _overflow(
        "text bytes",
        r"too many total text bytes",
        sample="too many total text bytes",
        source="Bedrock, as a peer's list has it",
    ),
    _overflow(
        "n_ctx|n_prompt|kv cache|kv_cache|max_model_len|max_seq_len|max_position|model_max_length",
        r"\b(?:n_ctx|max_model_len|max_seq_len|max_position_embeddings|model_max_length)\b|kv[ _]cache (?:is )?(?:full|"
        r"exhausted|too small)|\bfit (?:in|into) (?:the )?kv[ _]cache",
        sample="prompt is longer than max_model_len of 4096",
        source="generic, after the settings of llama.cpp and vLLM",
    ),
    _overflow(
        "超|过长",
        r"(?:上下文|输入|提示词?|prompt|消息|对话|tokens?).{0,20}(?:超长|过长|超过|超出)|"
        r"超[过出].{0,20}(?:上下文|最大长度|最大输入)",
        sample="输入长度超过模型最大上下文长度",
        source="generic, for hosts that answer in Chinese",
    ),
)

LOOSE: Final[tuple[Row, ...]] = (
    _overflow(
        "too many",
        r"\btoo many (?:[\w-]+ ){0,2}?tokens\b",
        sample="Too many input tokens",
        source="Bedrock",
    ),
    _overflow(
        "token",
        r"\btokens?[ _-]?(?:limit|count|budget|maximum|length|usage)s?\b[^\n]{0,60}?\b(?:exceed\w*|surpass\w*|is over|"
        r"overflow\w*)",
        sample="The input token count (2800010) exceeds the maximum number of tokens allowed (1048575).",
        source="Google 400",
    ),
    _overflow(
        "token",
        r"\b(?:exceed\w*|surpass\w*|over|above|beyond|greater than|more than|larger than|"
        r"longer than)\b[^.\n]{0,60}?\b(?:tokens?[ _-]?(?:limit|length|maximum|window|budget)|(?:number|amount|"
        r"count) of (?:\w+ ){0,2}tokens|max\w*(?: \w+){0,2} tokens|tokens? (?:allowed|permitted|supported|maximum|"
        r"window|limit))",
        sample="Your request exceeded model token limit: 262144 (requested: 300000)",
        source="Moonshot",
    ),
    _overflow(
        "token",
        r"\btokens\b[^.\n]{0,60}?\b(?:exceed\w*|surpass\w*|(?:is|are) (?:greater|more|larger|longer|higher) than|"
        r"is over|overflow\w*)\b[^\n]{0,60}?\b(?:limits?|max\w*|allowed|models?|context|window|length|size|capacity)\b",
        sample="Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 509178 tokens.",
        source="OpenAI",
    ),
    _overflow(
        "reduce|shorten|decrease|trim|truncate|cut|shorter|smaller",
        rf"\b(?:reduce|shorten|decrease|trim|truncate|cut)\b[^.\n]{{0,30}}?(?:\b(?:length|size|number) of )?(?:the |"
        rf"your |its )(?:\w+ )?{_NOUN}\b|\b(?:shorter|smaller) (?:prompt|input|conversation|context|message|history)",
        sample="Please reduce the length of the messages or completion.",
        source="Groq, code context_length_exceeded",
    ),
    _overflow(
        "max|limit|allowed",
        rf"\b{_NOUN}\b[^.\n]{{0,50}}?\b(?:exceed\w*|surpass\w*|is over|longer than|larger than|"
        rf"greater than)\b[^.\n]{{0,40}}?"
        r"\b(?:(?:max\w*|limit|allowed|permitted)(?: \w+){0,2} (?:length|tokens?|input|sequence|context|window)|"
        r"(?:input|prompt|token|length|sequence) (?:limit|max\w*)|max length)",
        sample="Prompt exceeds max length",
        source="Z.ai, code 1261",
    ),
    _overflow(
        "than",
        r"\b(?:longer|larger|greater|more|bigger|"
        r"higher) than (?:or equal to )?(?:the )?(?:this )?(?:model(?:'s)? )?(?:max\w* |supported |allowed |"
        r"available )?(?:model|input|sequence|prompt|context|token)s?\b",
        sample="The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
        source="vLLM",
    ),
    _overflow(
        "tokens",
        r"\b(?:(?:fewer|less|shorter|no more|not more) than(?: or equal to)?|at most|up to|cannot exceed|"
        r"must not exceed|can't exceed|may not exceed|exceed\w*|limited to|(?:a )?maximum of|limit of|limit is|"
        rf"limit:|max:?|only|allows?|supports?) (?:the )?(?:only |limit of |maximum of )?{_NUMBER} (?:\w+ )?tokens\b",
        sample="too many tokens: total number of tokens in the prompt cannot exceed 4081 tokens - received 5000.",
        source="Cohere",
    ),
    _overflow(
        "token",
        rf"\b{_NUMBER}[ -]tokens? (?:limit|context|window|maximum|max)\b",
        sample="The conversation is past the 128000 token limit",
        source="generic",
    ),
    _overflow(
        "tokens",
        r"\btokens (?:is |are |was |were |has been |have been )?exceeded",
        sample="Input Tokens Exceeded: Number of input tokens exceeds maximum length.",
        source="Bedrock",
    ),
    _overflow(
        "exceed|longer|greater|too long",
        r"\b(?:prompt|input|sequence|messages?|conversation|context)s?[ _](?:length|"
        r"tokens?)\b[^\n]{0,40}?\bexceed\w*[^\n]{0,30}?\b(?:max\w*|limit|allowed)|\blength of (?:all |the |"
        r"your )*(?:messages?|prompt|input|conversation)\b[^\n]{0,40}?\b(?:exceed\w*|longer|greater)",
        sample="Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens).",
        source="SGLang",
    ),
    _overflow(
        "length exceeded|length is exceeded|length has been exceeded",
        r"\bmax(?:imum)? (?:\w+ ){0,2}?length (?:is |was |has been )?exceeded",
        sample="model max length exceeded, max length:8192",
        source="Moonshot, cookbook#18",
    ),
    _overflow(
        "tokens",
        r"\btokens\b[^\n]{0,50}?\b(?:maximum|limit|max) (?:is|of|allowed is|:)\s*(?:only )?\d",
        sample="The prompt is 12000 tokens long; the maximum is 8192 tokens.",
        source="generic",
    ),
    _overflow(
        "token",
        rf"\b{_NOUN}s?\b[^\n]{{0,40}}?\b{_NUMBER}\W{{0,2}}tokens?\b[^\n]{{0,40}}?\b(?:max\w*|limit\w*|only|"
        rf"up to|at most|"
        rf"accepts?|handles?|fits?|window|capacity)\b|\btoo (?:large|big|much)\b[^\n.]{{0,20}}\b{_NUMBER} tokens",
        sample="error: prompt has 12,001 tokens (max 8,192)",
        source="generic: what was counted in the conversation, with a bound",
    ),
    _overflow(
        "conversation|chat|thread|prompt|input|window",
        rf"\b(?:conversation|chat|thread|prompt|input)s? (?:length|size) (?:limit|maximum)|\bmaximum (?:length|"
        rf"size) (?:for|"
        rf"of) (?:this|the|your|a) {_NOUN}|\b(?:prompt|input|conversation)\b[^\n.]{{0,15}}\bcannot be (?:longer|larger|"
        rf"more) than\b|\b(?:past|beyond|over|outside)\b[^\n.]{{0,20}}\b{_NUMBER} ?(?:token )?window",
        sample="You have reached the maximum length for this conversation",
        source="messages written by chat applications",
    ),
    _overflow(
        ">|number of",
        rf"\btokens?\b[^\n]{{0,15}}\b{_NUMBER} > [\w ]{{0,20}}{_NUMBER}|"
        rf"\bmaximum number of (?:input|prompt) tokens\b[^\n]{{0,20}}?\bis {_NUMBER}",
        sample="request tokens 140000 > model limit 131072",
        source="generic",
    ),
    _overflow(
        "input|prompt",
        rf"\b(?:input|prompt)[ _]tokens?\b[^\n]{{0,30}}?(?:\blimit\b[^\n]{{0,40}}?\bis {_NUMBER}|\bmust be (?:less|"
        rf"fewer|at most|below|<))",
        sample="input_tokens must be less than 65536, got 70012",
        source="generic",
    ),
    _overflow(
        "what|model limit|models limit",
        rf"\b(?:{_NOUN}|tokens)\b[^\n]{{0,50}}?\b(?:(?:beyond|more than|longer than|larger than) what\b[^\n]{{0,40}}?"
        r"\b(?:can|is able to|could) (?:process|take|handle|read|fit|accept)|exceed\w* (?:the )?models? limit)",
        sample="The messages (201k tokens) are beyond what this model can process (200k)",
        source="generic; kilocode#9763: 'context still exceeds model limits'",
    ),
    _overflow(
        "requested tokens|tokens requested|total tokens|number of tokens",
        r"\b(?:requested tokens|tokens requested|total tokens|number of tokens)\b[^\n]{0,60}?\b(?:exceed\w*|greater|"
        r"larger|more|longer|over)\b",
        sample="Requested tokens (5000) exceed context window of 4096",
        source="llama-cpp-python",
    ),
    _overflow(
        "exceeds the limit of",
        r"exceeds the limit of \d",
        sample="prompt of this chat exceeds the limit of 64000",
        source="generic, after GitHub Copilot: 'prompt token count of X exceeds the limit of Y'",
        scope=("copilot", "github"),
    ),
)
