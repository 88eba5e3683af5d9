"""Wordings that mention tokens, lengths and limits but do not report an overflow of the context window.

They are searched before the overflow rows, in this order. The limit is on something else (tokens per minute, bytes of a
request, one field), and a shorter conversation would not help.

Samples follow recorded replies, lists of other projects and issues of users (2026-11); the others are common wordings
that were not checked against the provider, and `generic` ones are our own.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from segue.failures.failure import FailureKind
from segue.failures.row import Row, row

_rate_limit = partial(row, FailureKind.RATE_LIMIT)
_invalid_request = partial(row, FailureKind.INVALID_REQUEST)
_payload_too_large = partial(row, FailureKind.PAYLOAD_TOO_LARGE)

_NUMBER = r"[\d][\d,._]*"
_PART_NOUN = r"(?:(?:tool|function)[ _-]?(?:call )?(?:results?|outputs?|responses?|definitions?)|system prompts?)"
_SHOWN = r"(?:images?|pictures?|videos?|audio(?: \w+)?|documents?|files?|pdfs?|pages?|attachments?)"
"""Parts of a request: texts and media."""
_WHOLE = r"(?:context|(?<!system )prompt|conversation|history|window|inputs?|request|total|messages)"
_BOUND = (
    r"(?:at most|up to|limit\w*|max\w*|exceed\w*|over|above|(?:more|longer|larger|fewer|less) than|cannot|can't|must|"
    r"may|only|too (?:long|large|many))"
)


def _bounds_part(part: str) -> str:
    """Build a pattern for "the <part> may have so many tokens", without a mention of the whole request or a window."""
    text = rf"(?:(?!\b{_WHOLE}\b)[^.:;!\n])"
    return (
        rf"(?:^|[.:;!\n]\s*){text}{{0,30}}?\b{part}\b(?=[^\n]{{0,80}}\b{_BOUND}\b){text}{{0,60}}?\btokens?\b"
        r"(?![\s\S]*\b(?:context|window|conversation)\b)"
    )


def _bounds_each(part: str) -> str:
    """Build a pattern for "each <part> may have so many tokens" and "so many tokens per <part>"."""
    each = rf"\b(?:each|every|any single|a single|an individual|individual|per)[ -](?:\w+ ){{0,2}}?{part}\b"
    per = rf"\btokens?\b[^.\n]{{0,40}}?\bper[ -](?:\w+ ){{0,2}}?{part}\b"
    return rf"^(?![\s\S]*\b(?:context|window|conversation)\b)[\s\S]*?(?:{each}[^.\n]{{0,60}}?\btokens?\b|{per})"


OVERFLOW_FALSE_POSITIVES: Final[tuple[Row, ...]] = (
    # -- rate limits: tokens per time -----------------------------------------------------------------------------
    _rate_limit(
        "per|/",
        r"\b(?:tokens?|requests?|calls?|queries|images?|messages?)[ -]?(?:processed )?(?:per|/)[ -]?(?:second|sec|"
        r"minute|min|hour|day|week|month)\b",
        sample="Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 117505.",
        source="OpenAI 429; Groq sends the like with status 413",
    ),
    _rate_limit(
        "per",
        r"\bper[ -](?:second|minute|hour|day)\b[^\n]{0,40}\b(?:limit|quota|rate)|\b(?:limit|quota|"
        r"rate)\b[^\n]{0,60}\bper[ -](?:second|minute|hour|day)\b",
        sample="Number of request tokens has exceeded your per-minute rate limit",
        source="Anthropic 429",
    ),
    _rate_limit(
        "too many tokens",
        r"too many tokens(?: processed|,? (?:please )?wait|[^\n]{0,40}(?:wait before|try again later))",
        sample="Too many tokens, please wait before trying again.",
        source="Bedrock ThrottlingException; Cerebras: 'too many tokens processed'",
    ),
    _rate_limit(
        "rate",
        r"\b(?:token|request|call|usage)?[ -]?rate[ _-]?limit|\brate (?:is )?(?:exceeded|limited)|\brate (?:increased|"
        r"exceeds)",
        sample="Requests to the Responses_Create Operation have exceeded token rate limit of your current pricing "
        "tier.",
        source="Azure OpenAI",
    ),
    _rate_limit(
        "time|period|allowed per",
        r"\b(?:tokens?|requests?|messages?)\b[^\n]{0,40}\b(?:within|in) (?:a |an |the |this )?(?:given |"
        r"certain |short |"
        r"allotted )?(?:time ?(?:frame|period|window|span|interval)|period)\b|\brequests? allowed per \d",
        sample="You have exceeded the maximum number of tokens allowed within a given time frame. Wait a bit and try "
        "again.",
        source="Llama API 429, llama-models#354",
    ),
    _rate_limit(
        "too many requests|sent too many|request limit|burst",
        r"too many requests|\bsent too many \w+|\bburst (?:limit|rate)\b|\b(?:hit|reached|"
        r"exceeded)\b[^\n.]{0,20}\brequests? limit",
        sample="Too many requests, please slow down",
        source="everyone's 429",
    ),
    _rate_limit(
        "request too large",
        r"request too large for (?:model\b|[\w./`-]+ (?:in|on) )",
        sample="Request too large for model `llama-3.1-8b-instant` in organization `org_1`",
        source="Groq 413, whose limit is tokens per minute",
    ),
    _rate_limit(
        "tpm|tpd|rpm|rpd|rps|qps|qpm",
        r"\b(?:tpm|itpm|otpm|tpd|rpm|rpd|rps|qps|qpm)\b",
        sample="TPM limit reached for this model",
        source="SiliconFlow, DashScope",
    ),
    row(
        FailureKind.QUOTA,
        "daily|weekly|monthly|hourly|free|plan|account|subscription|trial|quota|allowance|credit|balance|package",
        r"\b(?:daily|weekly|monthly|hourly|free|plan|account|subscription|"
        r"trial)\b[^\n.]{0,30}\btokens?\b[^\n.]{0,20}\b(?:limit|quota|allowance|budget|exhausted|used up)|"
        r"\btokens?[ -](?:quota|allowance|plan|credits?|balance|package)\b",
        sample="Daily token limit exceeded for your free plan",
        source="generic",
    ),
    # -- the requested output -------------------------------------------------------------------------------------
    _invalid_request(
        "token limit reached",
        r"^\W*(?:max(?:imum)? |output )?token limit reached",
        sample="Token limit reached",
        source="OpenRouter, recorded: the reply was cut, not the input",
    ),
    _invalid_request(
        "budget",
        r"\b(?:thinking|reasoning)[_. -]?budget|budget_tokens",
        sample="`max_tokens` must be greater than `thinking.budget_tokens`.",
        source="Anthropic 400; Google: 'The thinking budget 50000 is invalid'",
    ),
    _invalid_request(
        "token",
        rf"max_?(?:completion_?|output_?|new_?)?tokens(?:_to_sample)?\W*:? {_NUMBER} > {_NUMBER}\b(?!\s*-)",
        sample="max_tokens: 300000 > 128000, which is the maximum allowed number of output tokens for claude-x",
        source="Anthropic 400",
    ),
    _invalid_request(
        "token",
        r"max_?(?:completion_?|output_?|"
        r"new_?)?tokens\b(?![^\n]{0,80}\binput\b)(?![^\n]{0,30}exceed context)[^\n]{0,60}?"
        r"(?:too large|too high|must be|should be|has to be|cannot be|is not|is invalid|at most|less than|"
        r"supported range|"
        r"valid range|out of range|less or equal|greater than|larger than|exceeds the (?:max\w*|limit|model))",
        sample="`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than "
        "the `context_window` for this model",
        source="Groq 400; OpenAI: 'max_tokens is too large: 100000. This model supports at most 16384 completion "
        "tokens'",
    ),
    _invalid_request(
        "max_tokens",
        r"(?:invalid|range of|value of|value for|unsupported)[^\n.]{0,20}\bmax_(?:completion_|output_|new_)?tokens",
        sample="Range of max_tokens should be [1, 8192]",
        source="DashScope; DeepSeek: 'Invalid max_tokens value, the valid range of max_tokens is [1, 8192]'",
    ),
    _invalid_request(
        "maximum tokens",
        r"maximum tokens (?:you requested|value|requested)",
        sample="The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens "
        "value that is lower than 4096.",
        source="Bedrock Converse",
    ),
    _invalid_request(
        "tokens",
        r"\b(?:maximum|max|at most|more than|number of|too many)\b(?: allowed| number of)?[^\n.,]{0,25}\b(?:output|"
        r"completion|generated|response) tokens\b(?![^\n]{0,120}\b(?:input|prompt|context|messages)\b)",
        sample="This model supports at most 16384 completion tokens, whereas you provided 100000.",
        source="OpenAI 400",
    ),
    _invalid_request(
        "output token|output limit|exceed|completion token",
        r"\b(?:output|completion) tokens? (?:limit|maximum|max|count|budget)\b|\b(?:response|output|reply|"
        r"completion)\b[^\n.]{0,15}\bexceed\w*[^\n.]{0,40}\btokens?\b(?![^\n]{0,120}\b(?:input|prompt|context|"
        r"messages)\b)|\bmodel output limit",
        sample="The response exceeded the 32000 output token maximum.",
        source="Claude Code; Copilot: 'max_tokens or model output limit was reached'",
    ),
    # -- one part of the request: a shorter conversation does not help ---------------------------------------------
    _payload_too_large(
        "each |every |single |individual |per |per-",
        _bounds_each(_SHOWN),
        sample="Too many tokens: the limit is 1280 tokens per image",
        source="generic",
    ),
    _invalid_request(
        "each |every |single |individual |per |per-",
        _bounds_each(rf"(?:{_PART_NOUN}|message|turn|item|part|block|entry|chunk|field|parameter)"),
        sample="Each tool result may use at most 25,000 tokens; this one has 31,204.",
        source="generic",
    ),
    _payload_too_large("token", _bounds_part(_SHOWN), sample="Images may use at most 16384 tokens", source="generic"),
    _invalid_request(
        "token",
        _bounds_part(_PART_NOUN),
        sample="The tool output exceeds the maximum of 20000 tokens",
        source="generic",
    ),
    # -- one field, one file, one list ----------------------------------------------------------------------------
    _invalid_request(
        "string",
        r"\bstrings?\b[^\n.]{0,30}\b(?:too long|above max|at most|exceeds)|string with maximum length|string_too_long",
        sample="Invalid 'user': string too long. Expected a string with maximum length 64, but got one of length 116.",
        source="OpenAI 400",
    ),
    _invalid_request(
        "array",
        r"\barray\b[^\n.]{0,30}\b(?:too long|above max)|array with maximum length",
        sample="Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with "
        "length 151 instead.",
        source="OpenAI 400",
    ),
    _invalid_request(
        "too many|stop sequences|functions|declarations",
        r"too many (?:tools?|functions?|stop sequences|stop|choices|function declarations|parameters|properties|"
        r"labels)\b|\b(?:stop sequences|functions|function declarations)\b[^\n.]{0,20}\bexceed",
        sample="Too many tools provided: 200, the maximum is 128",
        source="generic",
    ),
    _invalid_request(
        "tools",
        r"\b(?:maximum|max|limit|at most|more than)\b[^\n]{0,30}\b\d+ (?:tools|functions|function declarations)\b|"
        r"\bnumber of (?:allowed )?tools\b|\btools\b[^\n.]{0,40}\b(?:exceed|maximum of|at most|"
        r"up to)\b(?![^\n]{0,40}token)",
        sample="You may not include more than 128 tools in your request.",
        source="VS Code LM API",
    ),
    _invalid_request(
        "items|elements|entries|keys",
        r"\b(?:exceed\w*|maximum|at most|more than|limit)\b[^\n]{0,30}\b\d+ (?:items|elements|entries|keys)\b",
        sample="Field 'messages' exceeds maximum of 2048 items",
        source="generic",
    ),
    _invalid_request(
        "cache",
        r"cache_control|cache[ _-]?point|cached content|prompt[ _-]?cach\w*|caching",
        sample="The cached content is of 1000 tokens. The minimum token count to start caching is 4096.",
        source="Google 400; Anthropic: 'A maximum of 4 blocks with cache_control may be provided. Found 5.'",
    ),
    _invalid_request(
        "text units",
        r"text units",
        sample="Input is too long. Content size exceeds the maximum input size in text units.",
        source="Bedrock Guardrails",
    ),
    _invalid_request(
        "character",
        r"\b\d[\d,]* characters?\b|\bcharacters? (?:limit|long|allowed|maximum)|\b(?:number of|many) characters",
        sample="Invalid 'metadata': maximum input length is 512 characters.",
        source="OpenAI 400",
    ),
    _invalid_request(
        "name",
        r"\b(?:tool|function)[ _.]?(?:call)?[ _.]?(?:name|id)s?\b[^\n]{0,40}\b(?:too long|exceed|at most|maximum|"
        r"longer than)",
        sample="tool name exceeds the maximum length of 64",
        source="generic",
    ),
    _invalid_request(
        "id",
        r"\b(?:\w+_id|(?:message|item|call|user|session|response) ids?)\b[^\n]{0,60}\b(?:too long|"
        r"exceed|at most|maximum length|longer than)",
        sample="tool_call_id is too long: maximum length is 40",
        source="generic",
    ),
    _payload_too_large(
        "image|file|pdf|document|page|audio|video|attachment|picture|upload|media|data ur|base64",
        r"\b(?:images?|files?|pdfs?|documents?|pages?|audio|videos?|attachments?|pictures?|uploads?|media|"
        r"data ur[il]s?|base64)\b(?:(?!\btokens?\b)[^\n.]){0,50}?\b(?:exceed\w*|too (?:large|big|many|long)|"
        r"larger than|bigger than|limit|at most|over the|maximum)\b(?![^\n]{0,80}\btokens?\b)",
        sample="messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes",
        source="Anthropic 400",
    ),
    _payload_too_large(
        "image|file|pdf|page|document|video|attachment|media",
        r"\b(?:too many|maximum of|at most|up to|more than|limit of|max)\b[^\n.]{0,15}\b(?:images?|files?|pdf|pages|"
        r"documents?|videos?|attachments|media)\b(?![^\n]{0,60}\btokens?\b)",
        sample="A maximum of 100 PDF pages may be provided.",
        source="Anthropic 400",
    ),
    _payload_too_large(
        " mb|mb | kb|bytes|mib|gb|0mb|5mb|2mb|0kb",
        r"\b(?:exceed\w*|limit|maximum|max|larger than|too large|over)\b[^\n]{0,60}?\d\s?(?:mb|mib|kb|kib|gb|gib|"
        r"(?:mega|kilo|giga)?bytes)\b",
        sample="The file exceeds the limit of 5 MB",
        source="Copilot, generic",
    ),
    _payload_too_large(
        "payload|body|entity|content-length|content length|request size",
        r"\b(?:payload|request body|request entity|body|content[- ]length|entity|"
        r"request size)\b[^\n.]{0,40}\b(?:too large|exceed\w*|larger than|too big|limit)\b(?![^\n]{0,80}(?:token|"
        r"context))",
        sample="413 Request Entity Too Large",
        source="nginx, Cloudflare",
    ),
    _payload_too_large(
        "maximum",
        r"request exceeds the maximum (?:allowed )?(?:size|number of bytes)|exceeds the maximum (?:request|body|"
        r"payload)",
        sample="Request exceeds the maximum size",
        source="Anthropic 413, docker-agent#2819",
    ),
    _invalid_request(
        "too long",
        r"\b(?:ur[il]|header|name|title|description|metadata|key|identifier|id|label|value|"
        r"field)s?\b[^\n.]{0,15}\btoo long",
        sample="Request URI is too long",
        source="RFC 9110, 414",
    ),
    row(
        FailureKind.SERVER,
        "cannot be read",
        r"\b(?:stream|reply|frame)\b[^\n.]{0,20}\bcannot be read",
        sample="the stream cannot be read: the checksum of the beginning of a message does not hold",
        source="segue's message for a reply that does not match its protocol",
    ),
    row(
        FailureKind.SERVER,
        "too long",
        r"\b(?:took|taking|takes|waited|running|ran|been)\b[^\n.]{0,20}\btoo long",
        sample="The request took too long to process",
        source="generic time-out",
    ),
    row(
        FailureKind.AUTH,
        "expired|invalid|missing|revoked|malformed|not valid|required|incorrect",
        r"\b(?:access|bearer|auth\w*|security|session|id|refresh|api|jwt|oauth|"
        r"sso)[ _-]?tokens?\b[^\n.]{0,60}\b(?:expired|invalid|missing|revoked|malformed|not valid|required|incorrect)|"
        r"\b(?:invalid|expired|missing|malformed|incorrect)\b[^\n.]{0,20}\b(?:access|bearer|auth\w*|security|jwt|"
        r"api)[ _-]?token",
        sample="The security token included in the request is expired",
        source="AWS",
    ),
)
