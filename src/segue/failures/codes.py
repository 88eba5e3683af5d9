"""Error codes and types of providers, and HTTP statuses.

Codes are compared without punctuation and case, so `rate_limit_exceeded`, `RateLimitExceeded` and
`rate-limit-exceeded` are equal. There are three tables:

- `CODES` decide alone: `insufficient_quota` has one meaning everywhere. `OVERFLOW_CODE` matches unknown ones.
- `VAGUE_CODES` decide only if neither the message nor the status does: many different errors have the code
  `invalid_request_error`, and some servers report an overflow as `server_error`.
                                                                           (llama.cpp until 2025-09, Ollama: both 500)
- `NUMBERED_CODES` have a meaning at one provider only.

A comment names the providers of each group. Read in 2026-11: the numbers of Z.ai, the first of MiniMax's, the classes
of the installed clients, and codes in recorded or reported bodies. The others were not checked against a source: check
them before you change them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from segue.failures.failure import FailureKind

_PUNCTUATION: Final = str.maketrans("", "", "_-. ")


def normalize_code(value: str) -> str:
    """Give a code without punctuation and case, and without what an AWS type has before `#` or after `:`."""
    return value.rpartition("#")[2].partition(":")[0].translate(_PUNCTUATION).lower()


_CODE_TERMS: Final[tuple[tuple[FailureKind, str], ...]] = (
    (
        FailureKind.OVERFLOW,  # OpenAI, LiteLLM, Anthropic and Z.ai, llama.cpp, DS4, Copilot, GitHub Models
        """context_length_exceeded ContextWindowExceededError model_context_window_exceeded exceed_context_size_error
        context_exceeded model_max_prompt_tokens_exceeded tokens_limit_reached max_tokens_per_request""",
    ),
    (
        FailureKind.PAYLOAD_TOO_LARGE,  # Anthropic, AWS, OpenAI
        """request_too_large RequestEntityTooLarge RequestEntityTooLargeException payload_too_large
        PayloadTooLargeException image_too_large image_file_too_large file_too_large ContentTooLargeError""",
    ),
    (
        FailureKind.QUOTA,  # OpenAI, Anthropic, Moonshot, DashScope, Codex, Copilot, opencode, LiteLLM
        """insufficient_quota billing_not_active billing_hard_limit_reached billing_error exceeded_current_quota_error
        Arrearage AllocationQuota.FreeTierOnly usage_limit_reached usage_not_included quota_exceeded payment_required
        insufficient_balance insufficient_balance_error
        GoUsageLimitError FreeUsageLimitError budget_exceeded BudgetExceededError""",
    ),
    (
        FailureKind.RATE_LIMIT,  # OpenAI, Anthropic, GitHub, Moonshot, AWS, DashScope, Google, Mistral, Copilot
        """rate_limit_exceeded rate_limit_error rate_limit RateLimitError RateLimitReached rate_limit_reached_error
        rate_limited too_many_requests too_many_requests_error ThrottlingException Throttling Throttling.RateQuota
        Throttling.AllocationQuota Throttling.BurstRate limit_requests limit_burst_rate TooManyRequestsException
        LimitExceededException ServiceQuotaExceededException RESOURCE_EXHAUSTED service_tier_capacity_exceeded
        user_global_rate_limited user_model_rate_limited""",
    ),
    (
        FailureKind.AUTH,  # OpenAI, Anthropic, Google, Moonshot, DashScope, AWS and botocore
        """invalid_api_key authentication_error AuthenticationError permission_error permission_denied
        PermissionDeniedError account_deactivated unsupported_country_region_territory invalid_organization
        mismatched_organization UNAUTHENTICATED API_KEY_INVALID API_KEY_SERVICE_BLOCKED SERVICE_DISABLED
        BILLING_DISABLED ACCESS_TOKEN_EXPIRED invalid_authentication_error incorrect_api_key_error
        permission_denied_error InvalidApiKey AccessDeniedException AccessDenied UnrecognizedClientException
        InvalidSignatureException SignatureDoesNotMatch IncompleteSignature ExpiredTokenException ExpiredToken
        MissingAuthenticationToken MissingAuthenticationTokenException InvalidClientTokenId OptInRequired
        PUP_LIMITED_DISABLED
        NoCredentialsError PartialCredentialsError TokenRetrievalError CredentialsError OAuthError unauthorized
        forbidden""",
    ),
    (FailureKind.OPAQUE_REJECTED, "invalid_encrypted_content"),  # OpenAI
    (FailureKind.INVALID_HISTORY, "invalid_request_message_order MISSING_THOUGHT_SIGNATURE"),  # Mistral, Google
    (
        FailureKind.INVALID_REQUEST,  # OpenAI
        """array_above_max_length unsupported_parameter unknown_parameter missing_required_parameter
        integer_above_max_value integer_below_min_value decimal_above_max_value decimal_below_min_value
        invalid_function_parameters
        data_residency_mismatch invalid_image invalid_image_format invalid_base64_image invalid_image_url
        image_too_small image_parse_error invalid_image_mode unsupported_image_media_type empty_image_file
        failed_to_download_image image_file_not_found""",
    ),
    (
        FailureKind.NOT_FOUND,  # OpenAI, Anthropic, Azure, AWS, Google, Moonshot, Copilot, GitHub Models, Groq
        """model_not_found not_found_error NOT_FOUND NotFoundError DeploymentNotFound ResourceNotFoundException
        resource_not_found_error ModelNotFound model_not_supported unknown_model model_decommissioned unknown_url""",
    ),
    (
        FailureKind.OVERLOADED,  # Anthropic, Google, Moonshot, AWS, OpenAI, Cerebras, DeepSeek, llama.cpp
        """overloaded_error OverloadedError UNAVAILABLE unavailable_error engine_overloaded_error
        ServiceUnavailableException ServiceUnavailableError ModelNotReadyException server_is_overloaded slow_down
        queue_exceeded capacity_exceeded insufficient_system_resource""",
    ),
    (
        FailureKind.REFUSED,  # OpenAI, Azure, Anthropic, LiteLLM, DashScope, Google, Bedrock, Z.ai, Cohere
        """content_filter content_policy_violation ContentPolicyViolationError ContentFilterFinishReasonError
        ResponsibleAIPolicyViolation moderation_blocked invalid_prompt refusal data_inspection_failed
        DataInspectionFailed SAFETY PROHIBITED_CONTENT BLOCKLIST RECITATION SPII LANGUAGE MODEL_ARMOR IMAGE_SAFETY
        IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION IMAGE_OTHER content_blocked guardrail_intervened content_filtered
        ESCALATION sensitive ERROR_TOXIC image_content_policy_violation bio_policy misalignment_policy_violation""",
    ),
    (
        FailureKind.NETWORK,  # the operating system, Node, the SDKs
        """APITimeoutError ECONNRESET ECONNREFUSED ECONNABORTED ETIMEDOUT EPIPE ENOTFOUND EAI_AGAIN ENETUNREACH
        EHOSTUNREACH UND_ERR_SOCKET UND_ERR_CONNECT_TIMEOUT""",
    ),
    (
        FailureKind.SERVER,  # AWS, Google, OpenAI; Groq: this reply was not a valid call (pydantic-ai #2774, #4354)
        """InternalServerException InternalFailure ModelTimeoutException ModelStreamErrorException DEADLINE_EXCEEDED
        vector_store_timeout tool_use_failed output_parse_failed""",
    ),
)

_VAGUE_TERMS: Final[tuple[tuple[FailureKind, str], ...]] = (
    (
        FailureKind.INVALID_REQUEST,
        """invalid_request_error invalid_request bad_request BadRequest BadRequestError bad_request_error
        INVALID_ARGUMENT FAILED_PRECONDITION OUT_OF_RANGE UNIMPLEMENTED ValidationException ValidationError
        invalid_value unsupported_value invalid_type InvalidParameter invalid_parameter_error InvalidRequestError
        UnprocessableEntityError HTTPValidationError extra_forbidden value_error ParamValidationError
        string_above_max_length max_tokens max_output_tokens LengthFinishReasonError""",
    ),
    (
        FailureKind.SERVER,
        """server_error api_error internal_server_error InternalServerError internal_error InternalError INTERNAL
        UNKNOWN ModelErrorException timeout_error GatewayTimeoutError APIResponseValidationError
        MALFORMED_FUNCTION_CALL
        MALFORMED_RESPONSE UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS NO_IMAGE malformed_model_output
        malformed_tool_use model_error json_validate_failed""",
    ),
    (FailureKind.NETWORK, "APIConnectionError ConnectionError network_error RequestTimeoutError Timeout CANCELLED"),
)

OVERFLOW_CODE: Final = re.compile(
    r"context(?:length|window|size|limit)?(?:limit)?(?:exceed|overflow|toolong)|exceed\w{0,12}context|"
    r"(?:prompt|input)(?:is)?toolong|(?:prompt|input)tokens?(?:limit)?exceed"
)
"""A pattern for unknown codes of an overflow, without punctuation."""

CODES: Final[Mapping[str, FailureKind]] = {
    normalize_code(value): kind for kind, text in _CODE_TERMS for value in text.split()
}
VAGUE_CODES: Final[Mapping[str, FailureKind]] = {
    normalize_code(value): kind for kind, text in _VAGUE_TERMS for value in text.split()
}

_ZAI: Final = ("zai", "z.ai", "zhipu", "glm", "bigmodel")
_MINIMAX: Final = ("minimax",)
_MISTRAL: Final = ("mistral",)

NUMBERED_CODES: Final[tuple[tuple[tuple[str, ...], FailureKind, str], ...]] = (
    # docs.bigmodel.cn/cn/api/api-code
    (_ZAI, FailureKind.SERVER, "500 1120 1230 1234"),
    (_ZAI, FailureKind.AUTH, "1000 1001 1002 1003 1004 1110 1111 1112 1121 1220 1311"),
    (_ZAI, FailureKind.QUOTA, "1113 1304 1308 1309 1310"),
    (_ZAI, FailureKind.NOT_FOUND, "1211 1221 1222"),
    (_ZAI, FailureKind.OVERFLOW, "1261"),
    (_ZAI, FailureKind.REFUSED, "1301"),
    (_ZAI, FailureKind.RATE_LIMIT, "1302 1303 1305 1313"),
    (_ZAI, FailureKind.OVERLOADED, "1312"),
    # platform.minimax.io/docs/api-reference/errorcode, read up to 1024; the others as in other projects
    (_MINIMAX, FailureKind.SERVER, "1000 1001 1024 1033"),
    (_MINIMAX, FailureKind.RATE_LIMIT, "1002 1039 1041 2045"),
    (_MINIMAX, FailureKind.AUTH, "1004 2049"),
    (_MINIMAX, FailureKind.QUOTA, "1008 2056"),
    (_MINIMAX, FailureKind.REFUSED, "1026 1027"),
    # error bodies users reported; 3230 and 3280 in zed#37021, opencode#1680
    (_MISTRAL, FailureKind.OVERFLOW, "3051"),
    (_MISTRAL, FailureKind.INVALID_HISTORY, "3230 3280"),
    (_MISTRAL, FailureKind.RATE_LIMIT, "1300 3505"),
    (_MISTRAL, FailureKind.NOT_FOUND, "1500"),
)
"""Provider, kind, numbers."""

DECISIVE_STATUSES: Final[Mapping[int, FailureKind]] = {
    401: FailureKind.AUTH,
    402: FailureKind.QUOTA,
    407: FailureKind.AUTH,
    429: FailureKind.RATE_LIMIT,
    529: FailureKind.OVERLOADED,  # Anthropic's own
}
"""Unambiguous statuses; the message only distinguishes a quota from a rate limit."""

STATUSES: Final[Mapping[int, FailureKind]] = {
    403: FailureKind.AUTH,
    404: FailureKind.NOT_FOUND,
    408: FailureKind.NETWORK,
    410: FailureKind.NOT_FOUND,
    413: FailureKind.PAYLOAD_TOO_LARGE,
    421: FailureKind.SERVER,
    424: FailureKind.SERVER,  # Bedrock: ModelErrorException
    425: FailureKind.SERVER,
    444: FailureKind.NETWORK,
    451: FailureKind.REFUSED,
    498: FailureKind.OVERLOADED,  # Groq: flex tier at capacity
    499: FailureKind.NETWORK,
    503: FailureKind.OVERLOADED,
}
"""The kind of a status if the message does not decide; other statuses by their class (4xx, 5xx)."""


def kind_of_status(status: int) -> FailureKind | None:
    """Give the kind of a status; None for a status below 400."""
    found = STATUSES.get(status)
    if found is not None:
        return found
    if status >= 500:
        return FailureKind.SERVER
    return FailureKind.INVALID_REQUEST if status >= 400 else None
