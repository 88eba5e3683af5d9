"""What an emulated provider refuses in addition to invalid conversation state, in its own words and error types.

What a body shows is found by `check`, with the rules that projection follows; this file gives the provider's words for
it. Headers, models that are not served, stored replies and the window are checked here.

Words, read 2026-11-17:
- OpenAI: reported 400s, with `param` and `code` (spring-ai #2969, 2025-05-02; ExtractThinker #346, 2025-06-24); "The
  model `x` does not exist or you do not have access to it."; "Previous response with id 'x' not found."
- Anthropic: reported 400s (claude-code #4378; anthropic 2.8.0); "anthropic-version: header is required"; "model: x";
  "max_tokens: 9 > 8, which is the maximum allowed number of output tokens for x".      (API reference: errors)
- Google: protobuf's mapping (CLIProxyAPI #97, 2025-10-07); "models/x is not found for API version v1beta, or is not
  supported for generateContent.".
- Mistral: 422 with `extra_forbidden` (eca #231; zeroclaw #2693, 2026-03-04); "Invalid model: x".
- Bedrock: "The provided model identifier is invalid."; "extraneous key [x] is not permitted".
- Cohere: "model 'x' not found, make sure the correct model ID was used".
- Ollama: "model 'x' not found"; it shortens a prompt that does not fit, and does not refuse it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple, cast, final

from segue.calls.reading import Call
from segue.calls.replies import encode_error
from segue.errors import Path, SegueError
from segue.failures.classify import classify
from segue.failures.failure import Failure, FailureKind
from segue.foundation.safe_text import in_one_line
from segue.models.catalogue import find_models, installed_catalogue
from segue.models.model import Model
from segue.models.providers import PROVIDERS
from segue.protocols.api import WINDOW_EXCEEDED, check, find_checked
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.codec import Violation
from segue.protocols.registry import all_protocols, get_protocol, protocol_names
from segue.requests.tokens import estimate_tokens
from segue.testing.emulator.causes import find_cause
from segue.testing.emulator.claude import claude_of

RULE_HEADER: Final = "x-segue-rule"
"""The header of a refusal that names the rule, its row and its source."""
_NO_NAME: Final = re.compile(r"[^a-z0-9]")
_SHORTEST_FAMILY: Final = 4
"""Characters from which the beginning of listed ids is taken for the name of a family."""
_DATED: Final = re.compile(r"[-@](?:\d{8}|\d{4}-\d{2}-\d{2}|\d{4}|latest)$")


@final
class Refusal(NamedTuple):
    """A refused request: the failure, the reason for tests, the additional fields of OpenAI, and the rule."""

    failure: Failure
    reason: str
    param: str | None = None
    code: str | None = None
    rule: str | None = None

    def write(self, call: Call) -> tuple[int, dict[str, str], dict[str, object]]:
        """Write the status, the headers and the body of the refusal."""
        status, headers, body = encode_error(self.failure, protocol=call.protocol, transport=call.transport)
        error = body.get("error")
        if isinstance(error, dict) and "param" in error:
            fields = cast("dict[str, object]", error)
            fields.update(param=self.param, code=self.code or fields["code"])
        if self.rule is not None:
            headers = {**headers, RULE_HEADER: in_one_line(self.rule).encode("ascii", "replace").decode()}
        return self.failure.status or status, headers, body


def _dotted(path: Path) -> str:
    return ".".join(map(str, path))


def _indexed(path: Path) -> str:
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")


@final
class Words(NamedTuple):
    """How the providers of a protocol write refusals.

    `by_code` has the words for codes of `check`, and the code of the wire. `version` is the header that is needed.
    """

    path: Callable[[Path], str] = _dotted
    by_code: Mapping[CheckCode, tuple[str, str | None]] = {}
    model: tuple[str, int] = ("model '{model}' not found", 404)
    version: tuple[str, str] | None = None
    field_status: int = 400
    has_window: bool = True


_OPENAI: Final[Mapping[CheckCode, tuple[str, str | None]]] = {
    CheckCode.FIELD_UNKNOWN: ("Unknown parameter: '{path}'.", "unknown_parameter"),
    CheckCode.FIELD_MISSING: ("Missing required parameter: '{path}'.", "missing_required_parameter"),
    CheckCode.VALUE_UNKNOWN: ("Invalid value: '{value}'. {message}", "invalid_value"),
    CheckCode.TYPE_WRONG: ("Invalid type for '{path}': {message}", "invalid_type"),
    CheckCode.MAX_TOKENS_TOO_LARGE: ("{key} is too large: {value}. {message}", "invalid_value"),
    CheckCode.MEDIA_BASE64_INVALID: ("Invalid 'image_url'. The data is not valid base64.", "invalid_base64"),
    CheckCode.OPTION_RENAMED: (
        "Unsupported parameter: '{key}' is not supported with this model. Use 'max_completion_tokens' instead.",
        "unsupported_parameter",
    ),
    CheckCode.OPTION_UNSUPPORTED: (
        "Unsupported parameter: '{key}' is not supported with this model.",
        "unsupported_parameter",
    ),
    CheckCode.SCHEMA_NOT_STRICT: (
        "Invalid schema: In context=(), 'additionalProperties' is required to be supplied and to be false. {message}",
        "invalid_function_parameters",
    ),
    CheckCode.SCHEMA_ROOT_INVALID: ("Invalid schema at '{path}': {message}", "invalid_function_parameters"),
    CheckCode.RESULT_ORPHANED: (
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        None,
    ),
    CheckCode.RESULT_MISSING: (
        "'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. {message}",
        None,
    ),
}
_RESPONSES: Final[Mapping[CheckCode, tuple[str, str | None]]] = {
    **_OPENAI,
    CheckCode.OPTION_RENAMED: ("Unsupported parameter: '{key}'. {message}", "unsupported_parameter"),
    CheckCode.RESULT_ORPHANED: ("No tool call found for function call output. {message}", None),
    CheckCode.RESULT_MISSING: ("No tool output found for function call. {message}", None),
}
_WORDS: Final[Mapping[str, Words]] = {
    "openai-chat": Words(
        _indexed, _OPENAI, ("The model `{model}` does not exist or you do not have access to it.", 404)
    ),
    "openai-responses": Words(_indexed, _RESPONSES, ("The requested model '{model}' does not exist.", 400)),
    "anthropic-messages": Words(
        _dotted,
        {
            CheckCode.FIELD_UNKNOWN: ("{path}: Extra inputs are not permitted", None),
            CheckCode.FIELD_MISSING: ("{path}: Field required", None),
            CheckCode.VALUE_UNKNOWN: ("{path}: Input should be a supported value; {message}", None),
            CheckCode.TYPE_WRONG: ("{path}: Input should be of another type; {message}", None),
            CheckCode.MAX_TOKENS_TOO_LARGE: (
                "max_tokens: {value} > {limit}, which is the maximum allowed number of output tokens for {model}",
                None,
            ),
            CheckCode.MEDIA_BASE64_INVALID: ("{path}: Invalid base64 data", None),
            CheckCode.THINKING_MISSING: (
                "{path}.type: Expected `thinking` or `redacted_thinking`, but found `{type}`. {message}",
                None,
            ),
        },
        ("model: {model}", 404),
        ("anthropic-version", "anthropic-version: header is required"),
    ),
    "google-genai": Words(
        _indexed,
        {
            CheckCode.FIELD_UNKNOWN: (
                "Invalid JSON payload received. Unknown name \"{key}\" at '{parent}': Cannot find field.",
                None,
            ),
            CheckCode.VALUE_UNKNOWN: ("Invalid value at '{path}': \"{value}\"", None),
            CheckCode.TYPE_WRONG: ("Invalid value at '{path}': {message}", None),
            CheckCode.MEDIA_BASE64_INVALID: ("Invalid value at '{path}' (TYPE_BYTES), Base64 decoding failed", None),
            CheckCode.SIGNATURE_MISSING: (
                "Function call is missing a thought_signature in functionCall parts, at {path}.",
                None,
            ),
        },
        ("models/{model} is not found for API version v1beta, or is not supported for generateContent.", 404),
    ),
    "mistral-chat": Words(
        _dotted,
        {
            CheckCode.FIELD_UNKNOWN: ("extra_forbidden: body.{path}: Extra inputs are not permitted", None),
            CheckCode.FIELD_MISSING: ("missing: body.{path}: Field required", None),
        },
        ("Invalid model: {model}", 400),
        field_status=422,
    ),
    "bedrock-converse": Words(
        by_code={
            CheckCode.FIELD_UNKNOWN: (
                "Malformed input request: extraneous key [{key}] is not permitted, please reformat your input.",
                None,
            )
        },
        model=("The provided model identifier is invalid.", 400),
    ),
    "cohere-chat": Words(model=("model '{model}' not found, make sure the correct model ID was used", 404)),
    "ollama-chat": Words(has_window=False),
}
_DEFAULT: Final = Words()
_BODY_KINDS: Final = frozenset(
    (FailureKind.INVALID_HISTORY, FailureKind.OPAQUE_REJECTED, FailureKind.PAYLOAD_TOO_LARGE)
)
_FIELDS: Final = frozenset(
    {CheckCode.FIELD_UNKNOWN, CheckCode.FIELD_MISSING, CheckCode.TYPE_WRONG, CheckCode.VALUE_UNKNOWN}
)


def refuse_headers(call: Call, headers: Mapping[str, str]) -> Refusal | None:
    """Refuse a request to the maker of the protocol without the version that it asks for."""
    needed = _WORDS.get(call.protocol, _DEFAULT).version
    if needed is None or needed[0] in headers or claude_of(call.model or "") is None:
        return None
    return Refusal(Failure(kind=FailureKind.INVALID_REQUEST, status=400, message=needed[1]), "version")


def refuse_model(call: Call) -> Refusal | None:
    """Refuse a model that is not served."""
    if not call.model or is_known_model(call.model) or _is_loadable(call):
        return None
    text, status = _WORDS.get(call.protocol, _DEFAULT).model
    failure = Failure(kind=FailureKind.NOT_FOUND, status=status, message=text.format(model=call.model[:200]))
    return Refusal(failure, "model", "model", "model_not_found")


def is_known_model(model_id: str) -> bool:
    """Whether a catalogue has a model, at any provider and under any of its versions, or it is a later Claude."""
    names = {model_id, model_id.rpartition("/")[2], _DATED.sub("", model_id)}
    return claude_of(model_id) is not None or not names.isdisjoint(_known_ids())


def _is_loadable(call: Call) -> bool:
    """Whether a server of the user's own could have loaded a model: it has the name of a family (`qwen3:8b`)."""
    row = PROVIDERS.get(get_protocol(call.protocol).provider)
    if row is None or not row.any_id:
        return False
    family = _NO_NAME.sub("", (call.model or "").rpartition("/")[2].partition(":")[0].lower())
    return len(family) >= _SHORTEST_FAMILY and any(_NO_NAME.sub("", each).startswith(family) for each in _known_ids())


def _known_ids() -> frozenset[str]:
    return _read_ids(id(installed_catalogue()), protocol_names())


@lru_cache(maxsize=4)
def _read_ids(_catalogue: int, _protocols: tuple[str, ...]) -> frozenset[str]:
    """Read the ids of all models, once for each catalogue and set of protocols."""
    listed = {model.id for model in find_models()} | {record.example.id for record in all_protocols()}
    return frozenset(listed | {name.rpartition("/")[2] for name in listed} | {_DATED.sub("", name) for name in listed})


def refuse_body(call: Call, model: Model) -> Refusal | None:
    """Refuse what `check` finds in a body, and a prompt that is longer than the window."""
    assert call.body is not None, "only requests with a body are checked"
    assert call.prompt is not None, "only requests with a prompt are checked"
    words = _WORDS.get(call.protocol, _DEFAULT)
    body = _plain_body(call, call.body)
    found = check(body, protocol=call.protocol, model=model)
    if found and found[0].code != WINDOW_EXCEEDED:
        first = found[0]
        rule = find_cause(first, body, find_checked(body, call.protocol, model, None)).describe()
        text, code = words.by_code.get(first.code, (f"{words.path(first.path)}: {first.message}".lstrip(": "), None))
        filled = text.format(
            path=words.path(first.path),
            parent=words.path(first.path[:-1]),
            key=first.path[-1] if first.path else "",
            value=_value_at(call.body, first),
            type=_type_of(_value_at(call.body, first)),
            limit=model.max_tokens,
            model=model.id,
            message=first.message,
        )
        status = words.field_status if first.code in _FIELDS else 400
        # The kind is the one that clients read from these words, or they would be replaced by words of that kind.
        read = classify(filled, status=status).kind
        kind = read if read in _BODY_KINDS else FailureKind.INVALID_REQUEST
        named = f"{filled} [rule: {rule}]"
        is_same = classify(named, status=status).kind == read
        failure = Failure(kind=kind, status=status, message=named if is_same else filled)
        reason = ", ".join(dict.fromkeys(one.code for one in found))
        return Refusal(failure, reason, words.path(first.path) or None, code, rule)
    if not (words.has_window and model.context_window):
        return None
    try:
        used = estimate_tokens(call.prompt, model)
    except SegueError:
        return None
    if used <= model.context_window and not found:
        return None
    return Refusal(Failure(kind=FailureKind.OVERFLOW, status=400, used=used, limit=model.context_window), "overflow")


def _plain_body(call: Call, body: Mapping[str, object]) -> Mapping[str, object]:
    """Return a body as the protocol defines it: without the fields of a transport, and with the model of its path."""
    transport = get_protocol(call.protocol).transports.get(call.transport or "")
    return body if transport is None else {"model": call.model, **transport.open(body)[0]}


def _type_of(block: object) -> object:
    """Return the type of a block; a text has none."""
    return cast("Mapping[str, object]", block).get("type") if isinstance(block, Mapping) else "text"


def _value_at(body: Mapping[str, object], violation: Violation) -> object:
    value: object = body
    for key in violation.path:
        try:
            value = cast("Mapping[object, object]", value)[key]
        except (KeyError, IndexError, TypeError):
            return ""
    return value
