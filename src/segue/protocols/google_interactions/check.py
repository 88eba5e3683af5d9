"""Checks whether Google would accept a body of the Interactions API.

Facts, in addition to those next to each rule:
- A key that the API does not have is refused: there is an error code `parameter_unknown`.
                                                                (codes of a public adapter's live calls, 2026-11-16)
- A body that continues a stored interaction may refer to steps that it does not contain, so its calls and results are
  not paired.                                                    (google-genai 3.1.0: previous_interaction_id)

Limits of the models are those of generateContent, where the same models answer; the threads were read on 2026-11-15.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from segue.errors import Path
from segue.models.rules import Rules
from segue.protocols.families.tool_checks import Declared, Pairs, check_name, check_tool_count, check_tools
from segue.protocols.google_interactions.content import CONTENTS, MEDIA, REPLAY
from segue.protocols.google_interactions.options import FORMAT, GENERATION, SERVER_TOOLS
from segue.protocols.kit.capabilities import Places
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.checking import check_base64, objects_of
from segue.protocols.kit.codec import Endpoint, JsonObject, Violation
from segue.protocols.kit.efforts import check_effort
from segue.protocols.kit.json_values import Block, kind_of, object_of
from segue.protocols.kit.media_checks import check_bytes
from segue.protocols.kit.ranges import check_range, check_stop_sizes
from segue.protocols.kit.reading import strings_of, text_of
from segue.protocols.kit.request_fields import RequestFields

_FIELDS: Final = RequestFields(
    __package__ or "",
    Places(
        turns="input",
        media={"image": "image", "audio": "audio", "video": "video", "document": "document"},
        inner=(("content",), ("result",)),
        output=((FORMAT, "schema"),),
        limits=((GENERATION, "max_output_tokens"),),
    ),
)
_CONTINUED: Final = ("previous_interaction_id", "continuation_token")
_INPUT_STEPS: Final = frozenset({"user_input", "function_result"})


def check(body: JsonObject, endpoint: Endpoint) -> list[Violation]:
    """List what the provider would refuse in a body."""
    rules = endpoint.rules
    steps = list(objects_of(body.get("input")))
    found = [*_check_frame(body), *_check_tools(body, rules)]
    found += [*_check_generation(object_of(body.get(GENERATION)), body, endpoint)]
    for index, step in steps:
        found += _check_step(step, ("input", index), rules)
    if not any(body.get(key) for key in REPLAY.stored):
        found += _check_pairs(steps)
    if rules.call_signature == "thought" and not body.get("previous_interaction_id"):
        found += _check_thoughts(steps)
    if not rules.last_assistant and steps and not _is_input(steps[-1][1]) and not body.get("continuation_token"):
        # "Requests ending with a model turn are not supported." (LibreChat agents #323, langchain-google #1897)
        message = "the request ends with a step of the model; add a user_input or function_result step"
        found.append(Violation(CheckCode.LAST_TURN_WRONG, ("input", steps[-1][0]), message))
    found += check_base64(body, "input", _data_keys, "data")
    return _FIELDS.add(found, body, endpoint)


def _is_input(step: Block) -> bool:
    kind = kind_of(step)
    return kind in _INPUT_STEPS or kind in CONTENTS


def _data_keys(block: Block) -> Iterable[str]:
    return ("data",) if kind_of(block) in MEDIA and isinstance(block.get("data"), str) else ()


def _check_frame(body: JsonObject) -> Iterator[Violation]:
    if body.get("model") and body.get("agent"):
        # google-genai 3.1.0: CreateModelInteraction and CreateAgentInteraction are two forms
        yield Violation(
            CheckCode.OPTIONS_CONFLICT, ("agent",), "`agent` cannot be used with `model`; remove one of them"
        )
    if body.get("input") in (None, "", []) and not any(body.get(key) for key in _CONTINUED):
        # google-genai 3.1.0: only a continuation has no input
        yield Violation(CheckCode.MESSAGES_MISSING, ("input",), "`input` is missing; add it")


# -- tools -------------------------------------------------------------------------------------------------------------


def _check_tools(body: JsonObject, rules: Rules) -> Iterator[Violation]:
    tools = [(index, tool) for index, tool in objects_of(body.get("tools")) if tool.get("type") == "function"]
    functions = [Declared(("tools", index), tool) for index, tool in tools]
    # "Invalid function name. Must start with a letter or an underscore. ..." (ccs #25, gemini-cli #7869); "Duplicate
    # function declaration found: x" (rikkahub #1311, threads-mcp #1)
    yield from check_tools(functions, rules, is_unique=True)
    for path, tool, *_ in functions:
        kind = text_of(object_of(tool.get("parameters")).get("type"))
        if kind is not None and kind.lower() != "object":
            # "parameters schema should be of type OBJECT" (Vertex: OmniRoute #3360)
            message = "the schema of a tool must have the type object; wrap it in one"
            yield Violation(CheckCode.SCHEMA_ROOT_INVALID, (*path, "parameters", "type"), message)
    # "Maximum 512 function declarations can be provided." (google-genai 3.1.0)
    yield from check_tool_count(len(functions), rules)
    if functions and rules.server_tools_with_functions == "refused":
        for index, tool in objects_of(body.get("tools")):
            if any(known.matches(tool) for known in SERVER_TOOLS):
                # "Tool use with function calling is unsupported" (go-genai #323, 2025-05-25)
                message = "the model refuses Google's own tools beside functions; remove the ones or the others"
                yield Violation(CheckCode.TOOLS_NOT_COMBINABLE, ("tools", index), message)


# -- settings ----------------------------------------------------------------------------------------------------------


def _check_generation(generation: Block, body: JsonObject, endpoint: Endpoint) -> Iterator[Violation]:
    rules = endpoint.rules
    # "thinking_level: minimal" of Gemini 3.8 Flash (live calls of a public adapter, 2026-11-16)
    yield from check_effort(generation.get("thinking_level"), (GENERATION, "thinking_level"), endpoint)
    for option in ("temperature", "top_p"):
        # "temperature must be in the range [0.0, 2.0]." (google-genai 3.1.0)
        yield from check_range(option, generation.get(option), (GENERATION, option), rules)
    most = generation.get("max_output_tokens")
    if isinstance(most, int) and most < 1:
        # refused by Vertex at generateContent: "the supported range is from 1 (inclusive)"
        path: Path = (GENERATION, "max_output_tokens")
        yield Violation(CheckCode.VALUE_OUT_OF_RANGE, path, "the limit has to be at least 1; raise it")
    # "up to 5" (Google documentation: GenerationConfig)
    yield from check_stop_sizes(generation.get("stop_sequences"), (GENERATION, "stop_sequences"), rules)
    choice = generation.get("tool_choice")
    allowed = object_of(object_of(choice).get("allowed_tools"))
    names = {text_of(tool.get("name")) for _, tool in objects_of(body.get("tools"))}
    if choice is not None and not any(tool.get("type") == "function" for _, tool in objects_of(body.get("tools"))):
        # "Function calling config is set without function_declarations." (kelivo #317)
        message = "a tool choice is set without functions; add functions, or remove it"
        yield Violation(CheckCode.TOOL_CHOICE_WITHOUT_TOOLS, (GENERATION, "tool_choice"), message)
    elif not names.issuperset(strings_of(allowed.get("tools")) or ()):
        # google-genai 3.1.0: "The names of the allowed tools."
        message = "an allowed tool is not declared; declare it or remove its name"
        yield Violation(CheckCode.TOOL_CHOICE_INVALID, (GENERATION, "tool_choice", "allowed_tools"), message)
    schema_at = (FORMAT, "schema") if object_of(body.get(FORMAT)).get("schema") is not None else None
    if schema_at is None or not body.get("tools"):
        return
    if not rules.schema_with_tools:
        # "Function calling with a response mime type: 'application/json' is unsupported" (symfony/ai #803 and #1777)
        message = "the model does not support JSON answers beside tools; remove the schema or the tools"
        yield Violation(CheckCode.JSON_WITH_TOOLS, schema_at, message)
    elif not rules.schema_with_forced_choice and "any" in (choice, allowed.get("mode")):
        # Newer models refuse "Forced function calling (ANY mode)" only (vercel/ai 43318a3)
        message = "the model does not support JSON answers beside a forced call; remove the schema or change the choice"
        yield Violation(CheckCode.JSON_WITH_TOOLS, schema_at, message)


# -- steps -------------------------------------------------------------------------------------------------------------


def _check_step(step: Block, path: Path, rules: Rules) -> Iterator[Violation]:
    match kind_of(step):
        case "function_result":
            if not text_of(step.get("name")):
                # A result without the name of its tool was refused (live calls of a public adapter, 2026-11-16).
                message = "a result has no name; add the `name` of the tool that was called"
                yield Violation(CheckCode.RESULT_NAME_WRONG, (*path, "name"), message)
            yield from _check_media(step.get("result"), (*path, "result"))
        case "function_call":
            yield from check_name(step.get("name"), (*path, "name"), rules)
        case "user_input" | "model_output":
            yield from _check_media(step.get("content"), (*path, "content"))
        case _:
            yield from _check_media([step], path[:-1])


def _check_media(contents: object, path: Path) -> Iterator[Violation]:
    for index, content in objects_of(contents):
        if kind_of(content) in MEDIA:
            yield from check_bytes(content.get("data"), content.get("mime_type"), (*path, index, "data"))
            if content.get("data") is None and content.get("uri") is None:
                # google-genai 3.1.0: the data or the address of each content
                message = "the content has neither `data` nor `uri`; set one of them"
                yield Violation(CheckCode.CONTENT_MISSING, (*path, index), message)


def _check_pairs(steps: list[tuple[int, Block]]) -> Iterator[Violation]:
    """Find calls without a result before the next turn, and results without a call.

    "Please ensure that the number of function response parts is equal to the number of function call parts of the
    function call turn." (generateContent: gemini-cli #4217, bifrost #1391)
    """
    pairs = Pairs("before the next turn")
    was_input = False
    for index, step in steps:
        kind = kind_of(step)
        if kind == "function_result":
            yield from pairs.add_result(text_of(step.get("call_id")) or "", ("input", index, "call_id"))
        elif kind == "user_input" or (was_input and not _is_input(step)):
            yield from pairs.end()
        if kind == "function_call":
            yield from pairs.add_call(text_of(step.get("id")) or "", ("input", index), is_unique=False)
        was_input = _is_input(step)


def _check_thoughts(steps: list[tuple[int, Block]]) -> Iterator[Violation]:
    """Find a call of the current turn that no thought precedes in its turn.

    Such calls were refused (live calls of a public adapter, 2026-11-16; error code `missing_thought_signature`).
    generateContent checks the turns since the last input of the user only, so no others are reported.
    """
    has_thought, found = False, list[Violation]()
    was_input = True
    for index, step in steps:
        kind, is_input = kind_of(step), _is_input(step)
        if kind == "user_input" or kind in CONTENTS:
            found = []
        if is_input or was_input:
            has_thought = False
        if kind == "thought":
            has_thought = bool(step.get("signature"))
        elif kind == "function_call" and not has_thought:
            has_thought = True  # one violation for all calls of a turn
            message = "no thought with a signature precedes the call; send the one it was received with"
            found.append(Violation(CheckCode.SIGNATURE_MISSING, ("input", index), message))
        was_input = is_input
    yield from found
