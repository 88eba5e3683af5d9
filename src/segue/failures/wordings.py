"""Wordings of errors that are about neither a length nor the history, the most specific first.

`QUOTAS` distinguish a used-up quota from a rate limit, also with status 429. `GENERATIONS` are about a reply that the
provider could not use: the request was valid, and the next attempt may succeed, so they are failures of the provider
even where the status is 400. Samples follow recorded replies, tests of other projects and issues of users (2026-11);
the others are common wordings that were not checked against a source.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from segue.failures.failure import FailureKind
from segue.failures.row import Row, row

_quota = partial(row, FailureKind.QUOTA)
_invalid_request = partial(row, FailureKind.INVALID_REQUEST)
_server = partial(row, FailureKind.SERVER)
_auth = partial(row, FailureKind.AUTH)

QUOTAS: Final[tuple[Row, ...]] = (
    _quota(
        "extra usage",
        r"extra usage is required|extra usage\b[^\n]{0,40}\b(?:disabled|exhausted|limit)",
        sample="Extra usage is required for long context requests.",
        source="Anthropic 429, claude-code#48721",
    ),
    _quota(
        "balance|credit|funds|budget|billing|payment|arrear|overdue|past due",
        r"\b(?:insufficient|not enough|low|negative|no|any|out of|exceeded|zero|exhausted|"
        r"used all)\b[^\n.]{0,40}\b(?:balance|credits?|funds|(?<!token )(?<!context )budget)\b|\b(?:balance|credits?|"
        r"funds|budget)\b[^\n.]{0,40}\b(?:insufficient|too low|exhausted|depleted|exceeded|not enough|negative|"
        r"used up)|payment (?:is )?required|arrear|billing\b[^\n.]{0,12}(?:not active|hard limit|disabled)|"
        r"\brequires more credits|plan and billing|add (?:more )?(?:credits|funds)|overdue|past due|can only afford|"
        r"purchase\b[^\n.]{0,20}\bcredits",
        sample="You exceeded your current quota, please check your plan and billing details.",
        source="OpenAI; DeepSeek: 'Insufficient Balance'; Anthropic: 'Your credit balance is too low'",
    ),
    _quota(
        "usage limit|spend|subscription|usage_limit|usage cap|included usage|upgrade|plan",
        r"\busage[ _](?:limit|cap)\b(?![^\n]{0,20}\bper[ -](?:second|minute|hour))|\bspend\w*[ _-](?:limit|cap)|"
        r"\bsubscription\b[^\n.]{0,40}\b(?:expired|limit|quota|required)|\bincluded usage\b|"
        r"\bupgrade (?:is )?required\b|"
        r"\bplan (?:does not|doesn't) include\b",
        sample="You have hit your ChatGPT usage limit.",
        source="Codex; Copilot, Anthropic: 'You have reached your specified API usage limits'",
    ),
    _quota(
        "perday|daily|monthly|weekly|models-per-day",
        r"\bper(?:day|month)\b|perday|permonth|\bmodels-per-day\b|\b(?:monthly|weekly|"
        r"daily)\b[^\n.]{0,40}\b(?:limit|quota|allowance|"
        r"cap)\b",
        sample="Monthly usage limit reached",
        source="Google: quotaId 'GenerateRequestsPerDayPerProjectPerModel-FreeTier'",
    ),
    _quota(
        "quota|free tier|premium request|allocation|allowance|trial|payment method|over budget|subscription|"
        "exceededbudget",
        r"\b(?:insufficient|exhausted your|used up your|used all of your)\b[^\n.]{0,20}\bquota|\bfree (?:quota|"
        r"tier)\b[^\n.]{0,40}\b(?:exhausted|used up|exceeded|expired)|\bquota\b[^\n.]{0,30}\b(?:used up|exhausted|"
        r"is not enough|insufficient)|premium requests?\b[^\n.]{0,40}\b(?:limit|exceed|used)|\b(?:allocation|"
        r"allowance)\b[^\n.]{0,40}\b(?:used up|exhausted|exceeded|reached)|\bno quota\b|\bquota left\b|\b(?:trial|"
        r"subscription)\b[^\n.]{0,20}\b(?:ended|expired|lapsed|is over)|\b(?:add|valid|"
        r"update)\b[^\n.]{0,15}\bpayment method|"
        r"\bover budget\b|exceededbudget",
        sample="The free quota has been exhausted. To continue, disable the free tier only mode",
        source="DashScope; GitHub Copilot",
    ),
    _quota(
        "余额|欠费|额度|套餐",
        r"余额不足|欠费|额度(?:已)?(?:用完|不足|耗尽)|套餐.{0,10}(?:到期|用完)",
        sample="账户余额不足,请充值",
        source="Z.ai, DashScope",
    ),
)

GENERATIONS: Final[tuple[Row, ...]] = (
    _invalid_request(
        "before generating a valid document",
        r"max completion tokens reached before generating a valid document",
        sample="max completion tokens reached before generating a valid document",
        source="Groq, 400 with the code json_validate_failed: the next attempt needs a higher limit",
    ),
    _server(
        "failed_generation|failed to call a function|tool call validation|did not call a tool|model called a tool",
        r"\bsee 'failed_generation'|failed to call a function|tool call validation failed|"
        r"\btool choice is (?:required|none),? but (?:the )?model (?:did not call|called) a tool",
        sample="Tool call validation failed: parameters for tool get_x did not match schema",
        source="Groq, recorded; 'Failed to call a function. ...' (opencode #1018, pipecat #1168)",
    ),
    _server(
        "model produced invalid|error parsing tool call",
        r"\bmodel produced invalid (?:content|sequence)|\berror parsing tool call\b",
        sample="Model produced invalid sequence as part of ToolUse. Please refer to the model tool use troubleshooting "
        "guide.",
        source="Bedrock (langchain-aws #567); OpenAI: 'The model produced invalid content.' (litellm #8020); Ollama "
        "#17638",
    ),
)
"""Replies that the provider could not use; the request was valid."""

WORDINGS: Final[tuple[Row, ...]] = (
    _auth(
        "api key|api_key|apikey|api-key|x-api-key",
        r"\b(?:invalid|incorrect|missing|no|wrong|expired|unauthorized|not a valid|bad|unknown|provide|leaked|"
        r"disabled|revoked|set)\b[^\n.]{0,40}\bx?-?api[ _-]?keys?\b|\bapi[ _-]?keys?\b[^\n]{0,60}\b(?:invalid|"
        r"not valid|incorrect|missing|expired|not found|required|is not|revoked|does not|was reported|must be|format|"
        r"disabled)",
        sample="Incorrect API key provided. You can find your API key at https://platform.openai.com/account/api-keys.",
        source="OpenAI 401; Google 400: 'API key not valid. Please pass a valid API key.'",
    ),
    _auth(
        "auth|credential|permission|access denied|not authorized|forbidden|accessdenied|signature|signing|logged "
        "in|log in|login|sign in|expired|subscription key|disabled|deactivated|suspended|banned|territory|"
        "region|location|身份|鉴权|授权|密钥|令牌",
        r"\bunauthori[sz]ed\b|\bunauthenticated\b|\bauthentication\b[^\n.]{0,30}\b(?:fail\w*|error|required|invalid|"
        r"missing)|\b(?:no|missing|invalid|expired|unable to locate|could not find|"
        r"couldn't find)\b[^\n.]{0,40}\b(?:auth\w*|credentials?)|\bnot authori[sz]ed\b|\baccess (?:is )?denied|"
        r"\bpermissions?\b[^\n]{0,60}\bdenied|\bpermission\b[^\n.]{0,20}\b(?:required|error)|\bforbidden\b|"
        r"\b(?:lacks?|not have|no|insufficient|missing)\b[^\n.]{0,20}\bpermissions?\b|request signature|"
        r"signature expired|credentials? (?:is|are|was|were|have|has)\b[^\n.]{0,20}(?:invalid|expired|missing|not)|"
        r"\bnot authenticated\b|\blog-?in (?:is )?required\b|\b(?:please|must) (?:log|sign) ?in\b|"
        r"\btoken (?:has |is )?expired\b|\b(?:invalid|wrong) subscription key\b|\bonly authori[sz]ed for\b|"
        r"\b(?:organi[sz]ation|account|user|workspace|"
        r"project)\b[^\n.]{0,20}\b(?:disabled|deactivated|suspended|banned)|\b(?:country|region|territory|"
        r"location)\b[^\n.]{0,20}\bnot supported|身份验证|鉴权失败|未授权|(?:密钥|令牌).{0,8}(?:无效|错误|过期)",
        sample="You do not have permission to perform this action: access denied",
        source="AWS, Azure, generic",
    ),
    row(
        FailureKind.RATE_LIMIT,
        "throttl|slow down|try again in|quota exceeded|quota|concurren|resource exhausted|resource has been "
        "exhausted|limit reached|capacity exceeded|频繁|速率|并发|频率|限流|请求过|limit exceeded|requests",
        r"\bthrottl\w*|\bslow down\b|\bquota\b[^\n.]{0,30}\b(?:exceed\w*|limit|reached)|"
        r"\bexceed\w*\b[^\n.]{0,40}\bquota|\b(?:max\w*|too many|exceed\w*|limit\w*)\b[^\n.]{0,30}\bconcurren\w*|"
        r"\bconcurren\w*\b[^\n.]{0,40}\b(?:limit|exceed\w*|max\w*)|resource (?:has been )?exhausted|"
        r"\brequests? limit (?:reached|exceeded)|service tier capacity exceeded|"
        r"\bexceed\w*\b[^\n.]{0,30}\b(?:number of|allowed|max\w*) requests|过于频繁|速率限制|并发|请求过[多快]|"
        r"频率(?:过高|超限|限制)|限流",
        sample="Request was throttled or rate limited",
        source="Together, Replicate; Vertex: 'Quota exceeded for ...'; Mistral: 'service tier capacity exceeded'",
    ),
    row(
        FailureKind.RATE_LIMIT,
        "request too large",
        r"^request too large\.?$",
        sample="Request too large",
        source="Groq, as a peer's pattern has it; with status 413 it is one of bytes",
    ),
    _invalid_request(
        "did not allow prompt caching",
        r"\bdid not allow prompt caching\b",
        sample="You invoked an unsupported model or your request did not allow prompt caching.",
        source="Bedrock, with status 403: of a cache point, though a model is named before it (reported, 2026)",
    ),
    _invalid_request(
        "is deprecated for this",
        r"\bis deprecated for this (?:model|deployment)\b",
        sample="The model returned the following errors: `temperature` is deprecated for this model.",
        source="Bedrock, vercel/ai 5b7be1d: of a setting, though the model is named before it",
    ),
    row(
        FailureKind.NOT_FOUND,
        "exist|not found|be found|available|deprecated|decommissioned|retired|removed|shut|not a valid "
        "model|invalid|end of its life|supported for this|recogni|unknown|have access|unsupported|no such|no "
        "endpoints|pulling it|no model|no deployment|no allowed|requested model|model names|deprecating|不存在|下线",
        r"\b(?:models?|deployment|engine|endpoint|publisher model)\b[^\n]{0,120}?\b(?:does not exist|not found|"
        r"doesn't exist|was not found|is not found|no longer available|has been (?:deprecated|decommissioned|retired|"
        r"removed|shut)|is deprecated|not available|not exist|is not a valid model|identifier is invalid|"
        r"end of its life|is not supported for this|not recogni[sz]ed|is unknown|could not be found|"
        r"do(?:es)? not have access)|\b(?:unknown|invalid|unrecognized|unsupported|no such|"
        r"nonexistent)\b[^\n.]{0,12}\bmodel\b(?! (?:output|response|identity))|\bno endpoints found|"
        r"\bmodel identifier is invalid|\btry pulling it|\bno models? (?:loaded|named)|\bis not a valid model\b|"
        r"\bunknown deployment\b|"
        r"\brequested entity was not found|\brequested model is not\b|"
        r"\bno deployments?\b|\bno allowed providers\b|\bdeprecating state\b|\binvalid url \(|"
        r"\bsupported api model names are\b|"
        r"模型.{0,12}(?:不存在|未找到|已下线)",
        sample="The model `llama-3.3-70b-versatlie` does not exist or you do not have access to it.",
        source="Groq, recorded; Bedrock: 'The provided model identifier is invalid.'",
    ),
    _auth(
        "access|verified",
        r"\b(?:don't|do not|does not|doesn't|not) have access\b|\baccess to\b[^\n.]{0,40}\bdenied|\bmust be verified",
        sample="Your organization must be verified to use the model `o3`.",
        source='OpenAI; Bedrock: "You don\'t have access to the model with the specified model ID."',
    ),
    row(
        FailureKind.NOT_FOUND,
        "model:",
        r"^(?:\w+_error: )?model: [\w.:/@-]+$",
        sample="model: claude-does-not-exist",
        source="Anthropic 404, recorded",
    ),
    row(
        FailureKind.REFUSED,
        "content|safety|policy|moderation|guardrail|flagged|blocked|violat|harmful|refus|sensitive|recitation|declined|"
        "敏感|违规",
        r"\bcontent[ _-](?:filter\w*|policy|management|moderation|safety)|\b(?:safety|usage|acceptable use|"
        r"responsible ai) (?:policy|policies|system|settings|filters?|reasons)|\bmoderation\b[^\n.]{0,40}\b(?:flag\w*|"
        r"block\w*|fail\w*|required)|\b(?:flagged|blocked)\b[^\n.]{0,60}\b(?:content|safety|policy|moderation|"
        r"potentially|violat\w*|guardrail|by|harmful|for)|\bviolat\w*\b[^\n.]{0,40}\b(?:polic\w*|terms|guidelines|"
        r"safety)|\bguardrails?\b[^\n.]{0,40}\b(?:interven\w*|block\w*)|\b(?:inappropriate|harmful|sensitive|"
        r"prohibited|unsafe) (?:content|information)|\bmodel (?:refused|declined)\b|\bcontent exists risk\b|"
        r"\brecitation\b|reply ended with (?:refusal|content_filter|"
        r"safety|sensitive|recitation|prohibited_content|blocklist|spii)|敏感|违规",
        sample="The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
        source="Azure 400; DashScope: 'Input data may contain inappropriate content.'",
    ),
    row(
        FailureKind.OVERLOADED,
        "overload|capacity|unavailable|busy|high demand|high load|high traffic|heavy load|繁忙|no available|no "
        "healthy|warming|not ready|loading|queue|instances|bedrock is unable",
        r"\boverload\w*|\b(?:over|at|exceeded|insufficient|no|lack of|out of|not enough)\b[^\n.]{0,20}\bcapacity|"
        r"\b(?:service|model|server|engine|provider|system|backend|temporarily|"
        r"currently)\b[^\n.]{0,30}\b(?:unavailable|busy)|\bhigh (?:demand|load|traffic)|heavy load|\bno (?:healthy|"
        r"available) \w+|系统繁忙|服务器?繁忙|\bmodel\b[^\n.]{0,30}\b(?:is (?:currently )?loading|not ready|warming)|"
        r"loading model|\bno (?:\w+ )?(?:instances?|workers?|replicas?|slots?)\b[^\n.]{0,20}\bavailable|\b(?:workers?|"
        r"instances?|replicas?|slots?)\b[^\n.]{0,20}\bbusy|\bqueue (?:is )?full|\bbedrock is unable to process",
        sample="The model is overloaded. Please try again later.",
        source="Google 503, Hugging Face; llama.cpp 503: 'Loading model'",
    ),
    row(
        FailureKind.NETWORK,
        "connect|timed out|timeout|time-out|network|socket|reset|stream|dns|getaddrinfo|econn|terminated|eof|ssl|tls|"
        "closed|err_connection|max retries|premature|"
        "incomplete|broken pipe|fetch failed|unreachable|name resolution|deadline",
        r"\bconnection\b[^\n.]{0,40}\b(?:error|refused|reset|aborted|closed|lost|broken|failed|timed out|terminated|"
        r"dropped)|\b(?:failed|unable|could not|cannot|can't|error) (?:to )?connect\w*|\bconnect\w* (?:error|timeout|"
        r"failed)|\bdeadline exceeded|\btimed[ -]out\b|\btime-?out\b|\bnetwork\b[^\n.]{0,30}\b(?:error|fail\w*|"
        r"unreachable|issue|lost)|\bsocket hang up|\bstream\b[^\n.]{0,40}\b(?:ended|closed|terminated|broke\w*|"
        r"disconnected|before|cut|interrupted)|\bgetaddrinfo|\bname resolution|\bfetch failed|\beconn\w+|"
        r"\bbroken pipe|\bunexpected (?:eof|end of)|\bpeer closed|\bincomplete (?:chunked )?read|\b(?:ssl|"
        r"tls)\b[^\n.]{0,30}\b(?:error|fail\w*|verify)|certificate verify|^terminated$|server disconnected|"
        r"err_connection|\bclosed (?:the )?connection|\bmax retries exceeded|\bpremature close|"
        r"socket\b[^\n.]{0,10}\bclosed|"
        r"host is unreachable|network is unreachable|nodename nor servname|without sending complete",
        sample="Connection error.",
        source="openai and anthropic clients; undici: 'terminated'",
    ),
    _server(
        "internal|server|gateway|upstream|unexpected error|went wrong|unknown error|cloudflare|"
        "exception|error occurred|cuda|out of memory|out of range|runner process|error processing|error while|"
        "backend|内部错误",
        r"\binternal\b[^\n.]{0,20}\b(?:error|failure|exception)|\bserver (?:had an |encountered an )?error|"
        r"\bbad gateway|\bgateway time-?out|\bupstream\b[^\n.]{0,30}\b(?:error|fail\w*)|\bunexpected error|"
        r"something went wrong|\berror (?:while|processing|on our)|"
        r"\bserver had an error|\berror occurred while\b|\bunhandled exception|\bcuda\b[^\n]{0,40}\b(?:error|"
        r"out of memory)|\bout of memory\b|"
        r"\brunner process\b|\bindex out of range\b|\b(?:backend|upstream) returned\b|内部错误",
        sample="The server had an error while processing your request. Sorry about that!",
        source="OpenAI 500",
    ),
    _invalid_request(
        "not permitted|not supported|unsupported|unrecognized|unknown|invalid|support|required|unexpected|must|should "
        "be|malformed|expected|should match|should have|not allowed|not valid|cannot|deprecated|not a valid|"
        "is limited|unavailable|"
        "at most",
        r"extra inputs are not permitted|\b(?:not|isn't|aren't) (?:be )?supported\b|\bunsupported\b|"
        r"\bunrecogni[sz]ed\b|\bunknown (?:field|parameter|name|argument)|\binvalid\b|does(?:n't| not) support|"
        r"\bfield required\b|\bis required\b|\bmust be\b|\bmalformed\b|\bshould (?:be|match|have)\b|\bnot allowed\b|"
        r"\bnot permitted\b|\bmissing required|\bunexpected (?:keyword|field|argument|parameter)|\bnot valid\b|"
        r"\bmust (?:set|have|provide|include|contain)\b|\bcannot (?:both )?be\b|\bcannot unmarshal\b|"
        r"\bis not a valid\b|"
        r"\b(?:is limited|unavailable) for this\b|\bmay (?:contain|have) at most\b",
        sample="output_config.format: Extra inputs are not permitted",
        source="Anthropic, Bedrock, Fireworks",
    ),
)
