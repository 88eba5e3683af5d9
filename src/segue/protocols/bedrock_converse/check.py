"""Documented and observed refusals of Bedrock requests, each with its source next to it.

`check_turns` checks the messages; this file checks tools, settings, thinking, cache points and the body as a whole.
Real traffic outranks every document: what was answered is not a violation.

Refusals of the messages of a Bedrock request: roles, pairing, reasoning, media, documents, blanks.

Each rule has its source next to it. Unknown blocks may be new, and are left to the provider.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final, TypeAlias, cast

from segue.errors import Path
from segue.models.model_ids import is_claude
from segue.models.rules import Rules
from segue.protocols.bedrock_converse.content import MEMBERS
from segue.protocols.bedrock_converse.limits import LIMITS
from segue.protocols.bedrock_converse.media_types import ALIASES, FORMATS, TYPES, Kind
from segue.protocols.bedrock_converse.native import LONGEST, MARK, REPLAY, SERVER_CALL
from segue.protocols.kit.capabilities import Places
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.checking import check_base64, matches_alphabet, objects_of, run_checks
from segue.protocols.kit.codec import Endpoint, Violation
from segue.protocols.kit.efforts import check_effort
from segue.protocols.kit.json_values import Block, object_of
from segue.protocols.kit.media_checks import check_bytes, check_edge
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.replay import NO_CALL, Turn, find_halves
from segue.protocols.kit.request_fields import RequestFields, check_part

Placed: TypeAlias = tuple[Path, Block]

_ROLES: Final = frozenset({"user", "assistant", "system"})
_USER_MEDIA: Final = frozenset({"image", "document", "video", "audio"})
_MEMBERS: Final = MEMBERS | {"text"}
_NAME: Final = re.compile(r"[\w \-()\[\]]+", re.ASCII)  # no other white space, whatever the refusal lists
_TWO_SPACES: Final = "  "


class WireTurn:
    """One wire message: its role, its path, its blocks with their paths."""

    __slots__ = ("blocks", "path", "role")

    def __init__(self, index: int, turn: Block) -> None:
        self.role: str | None = text_of(turn.get("role"))
        self.path: Path = ("messages", index)
        self.blocks: list[Placed] = [
            ((*self.path, "content", at), block) for at, block in objects_of(turn.get("content"))
        ]

    def of(self, member: str) -> list[Placed]:
        """Return the members of one type, with their paths."""
        return [((*path, member), object_of(block[member])) for path, block in self.blocks if member in block]

    def own_calls(self) -> list[Placed]:
        """Return the calls that the application answers."""
        return [(path, call) for path, call in self.of("toolUse") if call.get("type") != SERVER_CALL]


class Turns:
    """The messages of a body, and their violations."""

    def __init__(self, body: Block, endpoint: Endpoint) -> None:
        self.body = body
        self.endpoint = endpoint
        self.rules: Rules = endpoint.rules
        self.turns: list[WireTurn] = [WireTurn(index, turn) for index, turn in objects_of(body.get("messages"))]

    def check(self) -> Iterator[Violation]:
        """List what the provider would refuse."""
        if not self.turns:
            if ":prompt/" not in self.endpoint.model.id:  # a stored prompt has its own messages
                # "A conversation must start with a user message" (langchain-aws #192)
                yield Violation(CheckCode.MESSAGES_MISSING, ("messages",), "there is no message; add one")
            return
        for turn in self.turns:
            yield from self._check_turn(turn)
        for position, turn in enumerate(self.turns):
            yield from self._check_pairing(position, turn)
        yield from self._check_order()
        yield from self._check_cycle()
        yield from self._check_documents()

    # -- one turn ------------------------------------------------------------------------------------------------------

    def _check_turn(self, turn: WireTurn) -> Iterator[Violation]:
        if turn.role not in _ROLES:
            # service model: user, assistant, system
            message = f"unknown role {turn.role!r}; use user or assistant"
            yield Violation(CheckCode.ROLE_UNKNOWN, (*turn.path, "role"), message)
        if not turn.blocks:
            # "The content field in the Message object at messages.0 is empty" (langchain-aws #192)
            message = "the turn has no content; add some or remove it"
            yield Violation(CheckCode.CONTENT_MISSING, (*turn.path, "content"), message)
        elif all("text" in block and not str(block["text"]).strip() for _, block in turn.blocks):
            # "The text field in the ContentBlock object at messages.0.content.0 is blank" (dify #12340); next to other
            # text a blank one was answered (recorded traffic, 2026-11)
            yield Violation(CheckCode.TEXT_BLANK, (*turn.path, "content"), "the turn is blank; add text or remove it")
        for path, block in turn.blocks:
            yield from self._check_block(block, path, turn.role)
        final = turn.blocks[-1] if turn.blocks else None
        ends_in_reasoning = final is not None and "reasoningContent" in final[1]
        if turn.role == "assistant" and final and ends_in_reasoning and self.rules.final_thinking != "allowed":
            # "The final block in an assistant message cannot be `thinking`" (forgecode #2107)
            yield Violation(CheckCode.THINKING_LAST, final[0], "the turn ends in reasoning; add text or remove it")

    def _check_block(self, block: Block, path: Path, role: str | None) -> Iterator[Violation]:
        members = [key for key in block if key in _MEMBERS]
        if len(members) > 1:
            # service model: a union has one member
            yield Violation(CheckCode.FIELDS_EXCLUSIVE, path, f"the block has {' and '.join(members)}; split it")
            return
        kind = members[0] if members else ""
        inner = object_of(block.get(kind))
        if kind in _USER_MEDIA:
            if role == "assistant":
                # "You can only include images and documents if the role is user" (service model: Message)
                message = f"an assistant turn cannot hold {kind}; move it to a user turn"
                yield Violation(CheckCode.BLOCK_MISPLACED, path, message)
            yield from self._check_media(cast("Kind", kind), inner, (*path, kind))
        elif kind == "toolUse":
            yield from self._check_call(inner, (*path, kind), role)
        elif kind == "toolResult":
            yield from self._check_result(inner, (*path, kind))
        elif kind == "reasoningContent" and role == "user":
            # "User messages cannot contain reasoning content." (vercel/ai 58022e0)
            yield Violation(CheckCode.BLOCK_MISPLACED, path, "a user turn cannot hold reasoning; remove it")
        elif kind == "reasoningContent":
            yield from self._check_reasoning(inner, (*path, kind))

    def _check_call(self, call: Block, path: Path, role: str | None) -> Iterator[Violation]:
        if role != "assistant":
            # "User messages cannot contain tool uses" (AWS documentation: tool use)
            yield Violation(CheckCode.BLOCK_MISPLACED, path, "only an assistant turn can hold a call; remove it")
        alphabet, call_id, name = self.rules.call_id_alphabet, call.get("toolUseId"), call.get("name")
        if alphabet and not matches_alphabet(text_of(call_id) or "", alphabet, most=self.rules.call_id_max):
            # service model: ToolUseId; of Claude "tool_use.id: String should match pattern" (forgecode #1142)
            message = f"{call_id!r} is not a valid call id; change it"
            yield Violation(CheckCode.CALL_ID_INVALID, (*path, "toolUseId"), message)
        names = self.rules.tool_name_alphabet
        if names and not matches_alphabet(text_of(name) or "", names, most=self.rules.tool_name_max):
            # service model: ToolName
            message = f"{name!r} is not a valid tool name; rename it"
            yield Violation(CheckCode.TOOL_NAME_INVALID, (*path, "name"), message)
        if not isinstance(call.get("input"), Mapping):
            # "The format of the value at ... toolUse.input is invalid. Provide a json object for the field"
            # (aws-sdk-js-v3 #7330 quotes the same for results; koda #501)
            message = "the input of a call has to be an object; change it"
            yield Violation(CheckCode.ARGUMENTS_INVALID, (*path, "input"), message)

    def _check_result(self, result: Block, path: Path) -> Iterator[Violation]:
        status = result.get("status")
        if status is not None and status not in ("success", "error"):
            # service model: ToolResultStatus
            message = f"{status!r} is not a status; use success or error"
            yield Violation(CheckCode.VALUE_UNKNOWN, (*path, "status"), message)
        content = [((*path, "content", at), block) for at, block in objects_of(result.get("content"))]
        for place, block in content:
            if "json" in block and not isinstance(block["json"], Mapping):
                # "The format of the value at ... toolResult.content.0.json is invalid. Provide a json object"
                # (aws-sdk-js-v3 #7330)
                yield Violation(CheckCode.TYPE_WRONG, (*place, "json"), "JSON of a result has to be an object; wrap it")
            for kind in _USER_MEDIA & block.keys():
                media = object_of(block[kind])
                yield from self._check_media(cast("Kind", kind), media, (*place, kind))
                yield from self._check_stored(cast("Kind", kind), media, (*place, kind))
        if status == "error" and not content:
            # "... toolResult.content ... empty" for error results (strands)
            yield Violation(CheckCode.RESULT_EMPTY, (*path, "content"), "an error result needs content; add a text")
        if (
            status == "error"
            and self.rules.has("error_media")
            and any(_USER_MEDIA & block.keys() for _, block in content)
        ):
            # "all content must be type 'text' if 'is_error' is true" (vellum-assistant #18387, 2026-03-17)
            message = "an error result cannot hold media; send text only"
            yield Violation(CheckCode.RESULT_MEDIA_UNSUPPORTED, path, message)

    def _check_reasoning(self, content: Block, path: Path) -> Iterator[Violation]:
        if "reasoningText" not in content:
            return
        wire, place = object_of(content["reasoningText"]), (*path, "reasoningText")
        signature = wire.get("signature")
        if not isinstance(wire.get("text"), str):
            # "reasoning content format incorrect. Either 'text' or 'redactedContent' must be set." (strands #2704)
            yield Violation(CheckCode.THINKING_TEXT_MISSING, place, "reasoning needs a text; add it, if empty")
        if self.rules.reasoning_replay == "signed" and not isinstance(signature, str):
            # "thinking.signature: Field required" (strands #1053)
            yield Violation(CheckCode.THINKING_UNSIGNED, place, "reasoning needs its signature; remove the block")
        if self.rules.reasoning_replay == "open" and "signature" in wire:
            # "This model doesn't support the reasoningContent.reasoningText.signature field" (strands #682, pi #1505)
            message = "the model refuses signatures; remove it"
            yield Violation(CheckCode.SIGNATURE_UNSUPPORTED, (*place, "signature"), message)

    # -- media ---------------------------------------------------------------------------------------------------------

    def _check_media(self, kind: Kind, media: Block, path: Path) -> Iterator[Violation]:
        source = object_of(media.get("source"))
        if kind in ("video", "audio") and not any(mime.startswith(f"{kind}/") for mime in self.rules.user_media):
            # "This model doesn't support the video content block that you provided" (recorded traffic, 2026-11)
            message = f"{self.endpoint.model.id} does not support {kind}; remove it"
            yield Violation(CheckCode.MEDIA_UNSUPPORTED, path, message)
        sources = self.rules.image_sources if kind == "image" else self.rules.file_sources
        if "s3Location" in source and "file_id" not in sources:
            # "document.source.type: Field required" (recorded traffic, 2026-11)
            message = "the model cannot read from S3; send the data"
            yield Violation(CheckCode.MEDIA_SOURCE_UNSUPPORTED, (*path, "source"), message)
        data, most = source.get("bytes"), self.rules.most("media_bytes")
        if kind in ("image", "document"):
            most = self.rules.most("image_bytes" if kind == "image" else "document_bytes")
        if data == "":
            # service model: at least one byte
            message = "the data is empty; remove the block"
            yield Violation(CheckCode.MEDIA_BYTES_INVALID, (*path, "source", "bytes"), message)
        elif most and isinstance(data, str) and len(data) * 3 // 4 > most:
            # service model: Message (3.75 MB an image, 4.5 MB a document); AWS documentation: 25 MB a video
            message = f"the data has more than {most} bytes; make it smaller"
            yield Violation(CheckCode.MEDIA_TOO_LARGE, (*path, "source", "bytes"), message)
        mime = TYPES[kind].get(str(media.get("format"))) or ALIASES[kind].get(str(media.get("format")))
        yield from check_bytes(data, mime, (*path, "source", "bytes"), exact=self.rules.has("other_image_type"))
        if kind == "image":
            yield from check_edge(
                data, (*path, "source", "bytes"), self.rules.most("image_edge")
            )  # service model: Message

    def _check_stored(self, kind: Kind, media: Block, path: Path) -> Iterator[Violation]:
        """Check media inside a result: GPT reads none, others some from S3.

        Nova accepts an image there; of a document and a video it says "#/messages/2/content/0: extraneous key
        [toolResult] is not permitted", though it accepts both with the result (recorded by pydantic-ai, 2026-03).
        """
        if not self.rules.result_media:
            message = f"the model reads no {kind} in a result; move it to the turn, next to the result"
            yield Violation(CheckCode.RESULT_MEDIA_UNSUPPORTED, path, message)
        kinds = {mime.partition("/")[0] for mime in self.rules.result_media}
        in_s3 = "s3Location" in object_of(media.get("source"))
        if in_s3 and kinds and (kind if kind != "document" else "application") not in kinds:
            message = f"the model cannot read a {kind} from S3 in a result; move it to the turn, beside the result"
            yield Violation(CheckCode.RESULT_MEDIA_UNSUPPORTED, (*path, "source"), message)

    def _check_documents(self) -> Iterator[Violation]:
        seen: set[str] = set()
        for turn in self.turns:
            documents = turn.of("document")
            if documents and self.rules.has("files_alone") and not any("text" in block for _, block in turn.blocks):
                # "A text block must be included when using documents" (archestra #4220; service model: Message)
                message = "a document needs a text in its turn; add one"
                yield Violation(CheckCode.DOCUMENT_ALONE, documents[0][0], message)
            most = self.rules.most("files")
            if 0 < most < len(documents):
                # service model: Message; generative-ai-use-cases #1685
                message = f"{len(documents)} documents, and at most {most} are supported; remove some"
                yield Violation(CheckCode.MEDIA_TOO_MANY, turn.path, message)
            images = len(turn.of("image"))
            if self.rules.max_images and images > self.rules.max_images:
                # service model: Message
                message = f"{images} images, and at most {self.rules.max_images} are supported; remove some"
                yield Violation(CheckCode.MEDIA_TOO_MANY, turn.path, message)
            for path, document in [*documents, *_in_results(turn)]:
                yield from self._check_name(text_of(document.get("name")) or "", (*path, "name"), seen)

    def _check_name(self, name: str, path: Path, seen: set[str]) -> Iterator[Violation]:
        if not 1 <= len(name) <= LONGEST or not _NAME.fullmatch(name) or _TWO_SPACES in name:
            # "The document file name can only contain alphanumeric characters, whitespace characters, hyphens,
            # parentheses, and square brackets" (vercel/ai #20365, 2026-09-04)
            yield Violation(CheckCode.DOCUMENT_NAME_INVALID, path, f"{name!r} is not a valid document name; rename it")
        elif name in seen:
            # "Messages can't contain duplicate document names" (bifrost #7003, 2026-09-08)
            yield Violation(CheckCode.VALUE_DUPLICATE, path, f"two documents have the name {name!r}; rename one")
        seen.add(name)

    # -- calls and results ---------------------------------------------------------------------------------------------

    def _check_pairing(self, position: int, turn: WireTurn) -> Iterator[Violation]:
        if turn.role == "assistant":
            after = self.turns[position + 1] if position + 1 < len(self.turns) else None
            answered = _ids(after.of("toolResult")) if after is not None and after.role == "user" else ()
            seen: set[str | None] = set()
            yield from _check_native_pairs(turn)
            for path, call in turn.own_calls():
                call_id = text_of(call.get("toolUseId"))
                if call_id in seen:
                    # "`tool_use` ids must be unique" (claude-code #21317, 2026-01-27)
                    yield Violation(CheckCode.CALL_ID_DUPLICATE, path, f"two calls have the id {call_id!r}; change one")
                elif call_id not in answered:
                    # "Expected toolResult blocks at messages.2.content for the following Ids: ..." (vercel/ai #13013)
                    message = f"the call {call_id!r} has no result; add one in the next turn"
                    yield Violation(CheckCode.RESULT_MISSING, path, message)
                seen.add(call_id)
            if self.rules.calls_last:
                yield from self._check_after_calls(turn)
        elif turn.role == "user":
            before = self.turns[position - 1] if position else None
            calls = _ids(before.own_calls()) if before is not None and before.role == "assistant" else ()
            seen = set()
            for path, result in turn.of("toolResult"):
                call_id = text_of(result.get("toolUseId"))
                if call_id not in calls:
                    # "The number of toolResult blocks at messages.2.content exceeds the number of toolUse blocks of
                    # previous turn." (langchain-aws #192)
                    message = f"no call of the turn before has the id {call_id!r}; remove the result, or add the call"
                    yield Violation(CheckCode.RESULT_ORPHANED, path, message)
                elif call_id in seen:
                    # "The toolResult blocks at messages.2.content contain duplicate Ids" (hindsight #4250)
                    yield Violation(CheckCode.RESULT_DUPLICATE, path, f"the call {call_id!r} has two results; keep one")
                seen.add(call_id)

    def _check_after_calls(self, turn: WireTurn) -> Iterator[Violation]:
        called = False
        for path, block in turn.blocks:
            if called and "text" in block:
                # "Expected toolResult blocks at messages.2.content for the following Ids" (vercel/ai #8318, #13013)
                message = "text follows a call in its turn; move it before the calls"
                yield Violation(CheckCode.TEXT_AFTER_CALL, path, message)
            is_call = "toolUse" in block and object_of(block["toolUse"]).get("type") != "server_tool_use"
            # Nothing is known about text after reasoning or server tools that follow a call.
            called = is_call or (called and "text" in block)

    # -- the order of turns --------------------------------------------------------------------------------------------

    def _check_order(self) -> Iterator[Violation]:
        first, last = self.turns[0], self.turns[-1]
        if self.rules.first_user and first.role == "assistant":
            # "A conversation must start with a user message" (langchain-aws #192)
            yield Violation(CheckCode.FIRST_TURN_WRONG, first.path, "the first turn is not the user's; add a user turn")
        if not self.rules.last_assistant and last.role == "assistant":
            # "The conversation must end with a user message" (semantic-kernel #10281, llxprt #1977)
            yield Violation(CheckCode.LAST_TURN_WRONG, last.path, "the last turn is not the user's; add a user turn")
        if self.rules.alternate and self.rules.has("alternation"):
            turns = [turn for turn in self.turns if turn.role in ("user", "assistant")]
            for one, other in pairwise(turns):
                if one.role == other.role:
                    # "A conversation must alternate between user and assistant roles" (dify #12340)
                    message = f"two {one.role} turns in a row; merge them"
                    yield Violation(CheckCode.TURNS_NOT_ALTERNATING, other.path, message)
        if not self.rules.user_after_result:
            for turn in self.turns:
                results = turn.of("toolResult")
                if results and len(turn.blocks) > len(results) + len(turn.of("cachePoint")):
                    # "Conversation blocks and tool result blocks cannot be provided in the same turn." (from Llama)
                    message = "results and other content share a turn; split it"
                    yield Violation(CheckCode.RESULT_MISPLACED, turn.path, message)

    def _check_cycle(self) -> Iterator[Violation]:
        """Check the current cycle of calls and a last assistant turn, which have to be in the mode of the request.

        With thinking on they have to begin with reasoning; with thinking disabled they may not contain any.
        """
        fields = object_of(self.body.get("additionalModelRequestFields"))
        mode = object_of(fields.get("thinking")).get("type")
        if mode not in ("enabled", "disabled") or not self.rules.thinking_before_calls:
            return
        if mode == "disabled":
            at = max((place for place, turn in enumerate(self.turns) if turn.role == "assistant"), default=None)
            if at is not None and _are_results(self.turns[at + 1 :]):
                for path, _ in self.turns[at].of("reasoningContent"):
                    # "When thinking is disabled, an `assistant` message in the final position cannot contain
                    # `thinking`." (forgecode #1853; Claude's own rules apply through Bedrock)
                    message = "the last assistant turn holds reasoning while thinking is off; remove it"
                    yield Violation(CheckCode.THINKING_WHILE_OFF, path, message)
            return
        last = self.turns[-1]
        if last.role == "assistant" and last.blocks and "reasoningContent" not in last.blocks[0][1]:
            # "Expected `thinking` or `redacted_thinking`, but found `text`" (aider #3820; documentation: prefill)
            message = "an answer cannot be begun while thinking is on; add a user turn, or turn thinking off"
            yield Violation(CheckCode.THINKING_MISSING, last.blocks[0][0], message)
            return
        opener: WireTurn | None = None
        for turn in reversed(self.turns):
            if turn.role == "assistant" and turn.own_calls():
                opener = turn
            elif turn.role != "user" or any("toolResult" not in block for _, block in turn.blocks):
                break
        if opener is not None and "reasoningContent" not in opener.blocks[0][1]:
            # "Expected `thinking` or `redacted_thinking`, but found `tool_use`" (opencode #3077)
            message = "with thinking on, a turn with calls has to begin with its reasoning; turn thinking off"
            yield Violation(CheckCode.THINKING_MISSING, opener.blocks[0][0], message)


def _are_results(turns: list[WireTurn]) -> bool:
    """Whether turns hold results of tools, and cache points, alone."""
    return all("toolResult" in block or "cachePoint" in block for turn in turns for _, block in turn.blocks)


def _in_results(turn: WireTurn) -> list[Placed]:
    found: list[Placed] = []
    for path, result in turn.of("toolResult"):
        for index, block in objects_of(result.get("content")):
            if "document" in block:
                found.append(((*path, "content", index, "document"), object_of(block["document"])))
    return found


def _ids(placed: list[Placed]) -> set[str | None]:
    return {text_of(block.get("toolUseId")) for _, block in placed}


def _check_native_pairs(turn: WireTurn) -> Iterator[Violation]:
    """Check that a tool that the provider runs has its call and its result in one turn; see `native.REPLAY`."""
    blocks = [(path, *REPLAY.read(block)) for path, block in turn.blocks]
    for path, why in find_halves([Turn("assistant", blocks)], REPLAY).refused.items():
        if why == NO_CALL:
            message = "the result of a server tool has no call before it; remove it"
            yield Violation(CheckCode.RESULT_ORPHANED, path, message)
        else:
            yield Violation(CheckCode.RESULT_MISSING, path, "the call of a server tool has no result; remove it")


_SAMPLING: Final[Mapping[str, str]] = {"temperature": "temperature", "topP": "top_p"}
"""Settings of the body -> the field of `Options` whose rule applies."""
_HISTORY: Final = ("toolUse", "toolResult")

_FIELDS: Final = RequestFields(
    __package__ or "",
    Places(
        media={"image": "image", "video": "video", "audio": "audio", "document": "document"},
        inner=(("content",), ("toolResult", "content")),
        tools=("toolConfig", "tools"),
        function=("toolSpec",),
        schema=("inputSchema", "json"),
    ),
    limits=LIMITS,
)


def check(body: Mapping[str, object], endpoint: Endpoint) -> list[Violation]:
    """List what the provider would refuse."""
    found = [*_check_system(body, endpoint), *_check_tools(body, endpoint)]
    found += [*_check_history(body, endpoint), *check_options(body, endpoint)]
    found += Turns(body, endpoint).check()
    found += check_base64(body.get("messages"), ("messages",), lambda block: ("bytes",) if "bytes" in block else ())
    found += _check_marks(body, endpoint)
    found += _check_passed_on(body, endpoint)
    return _FIELDS.add(found, body, endpoint)


def check_options(body: Mapping[str, object], endpoint: Endpoint) -> Iterator[Violation]:
    """Find the options that the model would refuse."""
    checks = (_check_limits, _check_choice, _check_thinking, _check_sampling, _check_refused)
    return run_checks(checks, body, endpoint)


def _check_limits(body: Block, endpoint: Endpoint) -> Iterator[Violation]:
    config = object_of(body.get("inferenceConfig"))
    most, limit = config.get("maxTokens"), endpoint.model.max_tokens
    path: Path = ("inferenceConfig", "maxTokens")
    if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
        # service model: a whole number from 1 on (botocore 1.44.0)
        yield Violation(CheckCode.VALUE_OUT_OF_RANGE, path, "maxTokens has to be at least 1; raise it")
    elif isinstance(most, int) and 0 < limit < most:
        # "The maximum tokens you requested exceeds the model limit of 4096" (langchain-aws #192; AWS documentation)
        message = f"{endpoint.model.id} writes at most {limit:,} tokens, not {most:,}; lower `maxTokens`"
        yield Violation(CheckCode.MAX_TOKENS_TOO_LARGE, path, message)
    stops = config.get("stopSequences")
    if isinstance(stops, list) and (
        len(cast("list[object]", stops)) > (endpoint.rules.most("stop") or 2500) or "" in stops
    ):
        # service model: up to 2500, none of them empty
        message = "too many stop sequences, or an empty one; remove it"
        yield Violation(CheckCode.STOP_INVALID, ("inferenceConfig", "stopSequences"), message)


def _check_system(body: Block, endpoint: Endpoint) -> Iterator[Violation]:
    if endpoint.rules.refused_text == "none":
        return
    for index, block in objects_of(body.get("system")):
        if "text" in block and not str(block["text"]).strip():
            # service model: at least one character; a blank text is refused as well (langchain-aws #192)
            yield Violation(CheckCode.TEXT_BLANK, ("system", index), "the text is blank; remove it")


# -- tools -------------------------------------------------------------------------------------------------------------


def _check_tools(body: Block, endpoint: Endpoint) -> Iterator[Violation]:
    config, rules = body.get("toolConfig"), endpoint.rules
    tools = object_of(config).get("tools")
    if isinstance(config, Mapping) and not tools:
        # service model: at least one tool
        message = "toolConfig has no tools; add one or remove it"
        yield Violation(CheckCode.TOOL_LIST_EMPTY, ("toolConfig", "tools"), message)
    seen: set[str] = set()
    for index, block in objects_of(tools):
        if "cachePoint" in block and "tool" in rules.values("cache_mark_places"):
            # "#/toolConfig/tools/0: extraneous key [cachePoint] is not permitted" (LibreChat #13838, 2026-06-18)
            where: Path = ("toolConfig", "tools", index, "cachePoint")
            message = "a cache point is refused among the tools; put it into the messages"
            yield Violation(CheckCode.CACHE_MARK_MISPLACED, where, message)
        if "toolSpec" not in block:
            continue
        spec, path = object_of(block["toolSpec"]), ("toolConfig", "tools", index, "toolSpec")
        name = text_of(spec.get("name"))
        alphabet = rules.tool_name_alphabet
        if name in seen:
            # "tools: Tool names must be unique." (LibreChat #13162, 2026-05-17)
            yield Violation(CheckCode.VALUE_DUPLICATE, (*path, "name"), f"two tools have the name {name!r}; rename one")
        if name is None or (alphabet and not matches_alphabet(name, alphabet, most=rules.tool_name_max)):
            # service model: ToolName
            message = f"{name!r} is not a valid tool name; rename it"
            yield Violation(CheckCode.TOOL_NAME_INVALID, (*path, "name"), message)
        else:
            seen.add(name)
        if spec.get("description") == "":
            # service model: a description is not empty
            message = "the description is empty; remove it"
            yield Violation(CheckCode.TOOL_DESCRIPTION_MISSING, (*path, "description"), message)
        schema = object_of(spec.get("inputSchema")).get("json")
        if rules.schema_root_object and object_of(schema).get("type") != "object":
            # "inputSchema.json.type must be one of the following: object" (AWS documentation: tool use)
            place: Path = (*path, "inputSchema", "json")
            message = "the schema of a tool must have the type object; add it"
            yield Violation(CheckCode.SCHEMA_ROOT_INVALID, place, message)


def _check_history(body: Block, endpoint: Endpoint) -> Iterator[Violation]:
    if "toolConfig" in body or not endpoint.rules.tools_with_history:
        return
    for index, turn in objects_of(body.get("messages")):
        for at, block in objects_of(turn.get("content")):
            if any(kind in block for kind in _HISTORY):
                # "The toolConfig field must be defined when using toolUse and toolResult content blocks."
                # (vercel/ai #7537, strands #998)
                path: Path = ("messages", index, "content", at)
                yield Violation(CheckCode.TOOLS_MISSING, path, "tool blocks need a toolConfig; declare the tools")
                return


def _check_choice(body: Block, endpoint: Endpoint) -> Iterator[Violation]:
    config = object_of(body.get("toolConfig"))
    choice, path = object_of(config.get("toolChoice")), ("toolConfig", "toolChoice")
    forced = "any" in choice or "tool" in choice
    if forced and "required" not in endpoint.rules.tool_choices:
        # "This model doesn't support the toolConfig.toolChoice.any field" (langchain-aws #620)
        message = f"{endpoint.model.id} does not support a forced tool choice; use auto"
        yield Violation(CheckCode.TOOL_CHOICE_INVALID, path, message)
    names = [
        object_of(tool.get("toolSpec", tool.get("systemTool"))).get("name")
        for _, tool in objects_of(config.get("tools"))
    ]
    name = object_of(choice.get("tool")).get("name")
    if "tool" in choice and name not in names:
        # "Tool 'get_weather' not found in provided tools" (of Claude; found 2026-11-15)
        message = f"there is no tool {name!r}; declare it or choose another"
        yield Violation(CheckCode.TOOL_CHOICE_INVALID, (*path, "tool", "name"), message)
    if forced and _thinking_type(body) == "enabled" and not endpoint.rules.forced_choice_with_thinking:
        # "Thinking may not be enabled when tool_choice forces tool use." (Anthropic documentation: extended thinking)
        message = "a call cannot be forced while thinking is on; use auto, or turn thinking off"
        yield Violation(CheckCode.TOOL_CHOICE_WITH_THINKING, path, message)


# -- thinking and sampling ---------------------------------------------------------------------------------------------


def _thinking_type(body: Block) -> str | None:
    thinking = object_of(object_of(body.get("additionalModelRequestFields")).get("thinking"))
    return text_of(thinking.get("type"))


def _check_thinking(body: Block, endpoint: Endpoint) -> Iterator[Violation]:
    kind = _thinking_type(body)
    types = endpoint.rules.thinking_types
    if kind in ("adaptive", "enabled") and types is not None and kind not in types:
        # '"thinking.type.enabled" is not supported for this model.' (vscode #322706, 2026-06-24)
        where: Path = ("additionalModelRequestFields", "thinking", "type")
        message = f"{endpoint.model.id} does not support {kind!r}; use another type"
        yield Violation(CheckCode.THINKING_MODE_UNSUPPORTED, where, message)
    if kind == "disabled" and "off" not in endpoint.rules.thinking_levels:
        # Refused by Fable, Mythos and the 5.5 generation (pydantic-ai 2.66.0, live)
        place: Path = ("additionalModelRequestFields", "thinking", "type")
        message = f"{endpoint.model.id} does not support thinking off; remove it"
        yield Violation(CheckCode.THINKING_MODE_UNSUPPORTED, place, message)
    effort = object_of(object_of(body.get("additionalModelRequestFields")).get("output_config")).get("effort")
    # "This model does not support effort level 'xhigh'." (of Anthropic's own API: recorded traffic, 2026-11)
    path: Path = ("additionalModelRequestFields", "output_config", "effort")
    yield from check_effort(effort, path, endpoint)
    if kind != "enabled":
        return
    thinking = object_of(object_of(body["additionalModelRequestFields"])["thinking"])
    budget, most = thinking.get("budget_tokens"), object_of(body.get("inferenceConfig")).get("maxTokens")
    path = ("additionalModelRequestFields", "thinking", "budget_tokens")
    least = endpoint.rules.min_thinking_budget
    if not isinstance(budget, int) or budget < least:
        # "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024" (anthropic 2.8.0)
        yield Violation(CheckCode.THINKING_BUDGET_INVALID, path, f"the budget has to be at least {least}; raise it")
    elif isinstance(most, int) and budget >= most and "toolConfig" not in body:
        # "`max_tokens` must be greater than `thinking.budget_tokens`"; with tools it may span several rounds
        yield Violation(CheckCode.THINKING_BUDGET_INVALID, path, "maxTokens has to exceed the budget; raise it")


def _check_sampling(body: Block, endpoint: Endpoint) -> Iterator[Violation]:
    rules, config = endpoint.rules, object_of(body.get("inferenceConfig"))
    given = {key: config[key] for key in _SAMPLING if config.get(key) is not None}
    is_thinking = _thinking_type(body) in ("enabled", "adaptive")
    for key, value in given.items():
        path: Path = ("inferenceConfig", key)
        if _SAMPLING[key] in rules.refused_options:
            # "`temperature` is deprecated for this model." (pi #7961)
            message = f"{endpoint.model.id} does not support {key}; remove it"
            yield Violation(CheckCode.OPTION_UNSUPPORTED, path, message)
        elif is_thinking and _SAMPLING[key] in rules.refused_with_thinking and _conflicts_with_thinking(key, value):
            # "`temperature` may only be set to 1 when thinking is enabled"; top_p from 0.95 on
            # (Anthropic documentation: extended thinking, feature compatibility)
            yield Violation(CheckCode.OPTION_WITH_THINKING, path, f"{key} cannot be {value} with thinking; remove it")
        if isinstance(value, int | float) and not 0 <= value <= 1:
            # service model: from 0 to 1
            yield Violation(CheckCode.VALUE_OUT_OF_RANGE, path, f"{key} has to be between 0 and 1; change it")
    if len(given) > 1 and all(name in rules.exclusive_options for name in _SAMPLING.values()):
        # "`temperature` and `top_p` cannot both be specified for this model" (litellm #15097, opencode #28930)
        message = "temperature excludes topP; remove one of them"
        yield Violation(CheckCode.OPTIONS_CONFLICT, ("inferenceConfig", "topP"), message)


def _check_refused(body: Block, endpoint: Endpoint) -> Iterator[Violation]:
    """Find settings other than sampling that the model refuses."""
    rules, config = endpoint.rules, object_of(body.get("inferenceConfig"))
    if config.get("stopSequences") and "stop" in rules.refused_options:
        # "This model doesn't support the stopSequences field." (of GPT-5.6: vercel/ai 1a1e246)
        message = f"{endpoint.model.id} does not support stopSequences; remove them"
        yield Violation(CheckCode.OPTION_UNSUPPORTED, ("inferenceConfig", "stopSequences"), message)
    nova = object_of(object_of(body.get("additionalModelRequestFields")).get("reasoningConfig"))
    if nova.get("type") == "enabled" and nova.get("maxReasoningEffort") == "high":
        for key in ("maxTokens", *_SAMPLING):
            if config.get(key) is not None:
                # "`maxTokens` must be unset when reasoningConfig type is 'enabled' and maxReasoningEffort is 'high'."
                # (Nova 2: vercel/ai 833e611; inspect_ai #3767)
                message = f"{key} may not be set with the highest effort; remove it"
                yield Violation(CheckCode.OPTIONS_CONFLICT, ("inferenceConfig", key), message)


def _check_passed_on(body: Block, endpoint: Endpoint) -> Iterator[Violation]:
    """Compare what is passed on to a model with the fields of its own API; the rest of them is in the body.

    "The model returned the following errors: reasoning: Extra inputs are not permitted" (litellm #13609 of 2025-08-14;
    `guardrails`: #13825); "thinking: unknown field thinking, expected one of messages, model, ..." (gpt-oss: litellm
    #13959, 2025-08-26).
    """
    key = "additionalModelRequestFields"
    of_claude, fields = is_claude(endpoint.model.id), object_of(body.get(key))
    if of_claude or "openai.gpt-oss" in endpoint.model.id:
        wire = "anthropic-messages" if of_claude else "openai-chat"
        for one in check_part(fields, wire, endpoint, (key,)):
            if one.code != CheckCode.FIELD_MISSING or len(one.path) > len((key, "messages")):
                yield one
    if of_claude and fields.get("top_k") is not None and "temperature" in endpoint.rules.refused_options:
        # "`top_k` is deprecated for this model." (as `temperature`: pi #7961)
        message = f"{endpoint.model.id} does not support top_k; remove it"
        yield Violation(CheckCode.OPTION_UNSUPPORTED, (key, "top_k"), message)


def _conflicts_with_thinking(key: str, value: object) -> bool:
    if not isinstance(value, int | float):
        return False
    return value != 1 if key == "temperature" else not 0.95 <= value <= 1


# -- cache points ------------------------------------------------------------------------------------------------------


def _check_marks(body: Block, endpoint: Endpoint) -> Iterator[Violation]:
    marks = [(path, object_of(block[MARK])) for path, block in _blocks(body) if MARK in block]
    most = endpoint.rules.cache_marks
    if marks and not most:
        # "You invoked an unsupported model or your request did not allow prompt caching." (of Kimi, GLM, Nemotron and
        # the first Claude 3: reported 403s and 400s, 2026)
        message = f"{endpoint.model.id} does not support cache points; remove them"
        yield Violation(CheckCode.CACHE_MARKS_TOO_MANY, marks[0][0], message)
    elif len(marks) > most:
        # "A maximum of 4 blocks with cache_control may be provided. Found 5." (AWS documentation: four checkpoints)
        message = f"there are {len(marks)} cache points; keep at most {most}"
        yield Violation(CheckCode.CACHE_MARKS_TOO_MANY, marks[most][0], message)
    for path, before in _misplaced(body, endpoint):
        # "Cache point cannot be inserted after reasoning block" (opencode #36517, strands #1820, langchain-aws #1290);
        # "messages.0.content.3.type: Field required" after a document that is not a PDF (strands harness-sdk #1966)
        message = f"a cache point cannot follow {before}; put it after other content"
        yield Violation(CheckCode.CACHE_MARK_MISPLACED, path, message)
    short = False
    for path, mark in marks:
        if path[-1] == 0:
            # Nothing comes before it that could be cached (AWS documentation: prompt caching)
            yield Violation(CheckCode.CACHE_MARK_MISPLACED, path, "a cache point has to follow what it caches; move it")
        if mark.get("ttl") != "1h":
            short = True
        elif short and endpoint.rules.has("cache_mark_order"):
            # A longer ttl may not follow a shorter one; order: tools, system, messages (headroom #2939)
            yield Violation(CheckCode.CACHE_MARK_ORDER, path, "a ttl of 1h follows a shorter one; reorder them")


def _misplaced(body: Block, endpoint: Endpoint) -> Iterator[tuple[Path, str]]:
    """Find the cache points that directly follow reasoning, or a document that cannot have one."""
    refused = {FORMATS["document"].get(one) for one in endpoint.rules.values("cache_mark_beside")}
    for turn_index, turn in objects_of(body.get("messages")):
        for (_, before), (index, block) in pairwise(objects_of(turn.get("content"))):
            if MARK not in block:
                continue
            path: Path = ("messages", turn_index, "content", index)
            kind = text_of(object_of(before.get("document")).get("format"))
            if "reasoningContent" in before:
                yield path, "reasoning"
            elif kind is not None and kind in refused:
                yield path, f"a document of the format {kind}"


def _blocks(body: Block) -> Iterator[tuple[Path, Block]]:
    """Yield every block that may be a cache point, in prompt order."""
    for index, block in objects_of(object_of(body.get("toolConfig")).get("tools")):
        yield ("toolConfig", "tools", index), block
    for index, block in objects_of(body.get("system")):
        yield ("system", index), block
    for turn_index, turn in objects_of(body.get("messages")):
        for index, block in objects_of(turn.get("content")):
            yield ("messages", turn_index, "content", index), block
