"""Whether Bedrock accepts a body: its messages first, then tools, settings, cache points and the body as a whole.

Each rule has its source next to it. Real traffic outranks every document: what was answered is not a violation. Unknown
blocks may be new, and are left to the provider. What Claude refuses on other wires too is in `families.block_checks`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final, TypeAlias, cast

from segue.errors import Path
from segue.models.model_ids import is_claude
from segue.protocols.bedrock_converse.content import MEMBERS
from segue.protocols.bedrock_converse.limits import LIMITS
from segue.protocols.bedrock_converse.media_types import ALIASES, FORMATS, TYPES, Kind
from segue.protocols.bedrock_converse.native import LONGEST, MARK, REPLAY, SERVER_CALL
from segue.protocols.families.block_checks import (
    BlockForm,
    BlockTurns,
    TurnPiece,
    TurnRun,
    check_blank_system,
    check_choice,
    check_declared_tools,
    check_mark_order,
    check_sampling,
    check_thinking,
)
from segue.protocols.families.block_checks import Kind as PieceKind
from segue.protocols.families.tool_checks import Declared, check_native_pairs
from segue.protocols.kit.capabilities import Places
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.checking import check_base64, may_have, objects_of
from segue.protocols.kit.codec import Endpoint, Violation
from segue.protocols.kit.json_values import Block, object_of
from segue.protocols.kit.media_checks import check_bytes, check_edge
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.replay import Turn, find_halves
from segue.protocols.kit.request_fields import RequestFields, check_part

Placed: TypeAlias = tuple[Path, Block]

_ROLES: Final = frozenset({"user", "assistant", "system"})
_USER_MEDIA: Final = frozenset({"image", "document", "video", "audio"})
_MEMBERS: Final = MEMBERS | {"text"}
_NAME: Final = re.compile(r"[\w \-()\[\]]+", re.ASCII)  # no other white space, whatever the refusal lists
_TWO_SPACES: Final = "  "
_KINDS: Final[Mapping[str, PieceKind]] = {
    "text": "text",
    "reasoningContent": "thinking",
    "toolUse": "call",
    "toolResult": "result",
    "cachePoint": "mark",
}


class WireTurn(TurnRun):
    """One wire message: its role, its path, its pieces, and its blocks with their paths."""

    __slots__ = ("blocks", "path")

    def __init__(self, index: int, turn: Block) -> None:
        self.path: Path = ("messages", index)
        blocks = objects_of(turn.get("content"))
        self.blocks: list[Placed] = [((*self.path, "content", at), block) for at, block in blocks]
        super().__init__(text_of(turn.get("role")), index, [_piece_of(path, block) for path, block in self.blocks])

    def members(self, member: str) -> list[Placed]:
        """Return the members of one type, with their paths."""
        return [((*path, member), object_of(block[member])) for path, block in self.blocks if member in block]


def _piece_of(path: Path, block: Block) -> TurnPiece:
    kind = next((member for member in _KINDS if member in block), None)
    if kind in ("toolUse", "toolResult"):
        inner = object_of(block[kind])
        is_own = kind == "toolResult" or inner.get("type") != SERVER_CALL
        return TurnPiece(_KINDS[kind] if is_own else "other", (*path, kind), inner)
    return TurnPiece(_KINDS[kind] if kind else "other", path, block)


def _functions(body: Block) -> Iterator[Declared]:
    for index, block in objects_of(object_of(body.get("toolConfig")).get("tools")):
        if "toolSpec" in block:
            path = ("toolConfig", "tools", index, "toolSpec")
            yield Declared(path, object_of(block["toolSpec"]), ("inputSchema", "json"))


def _choices(body: Block) -> list[object]:
    tools = objects_of(object_of(body.get("toolConfig")).get("tools"))
    return [object_of(tool.get("toolSpec", tool.get("systemTool"))).get("name") for _, tool in tools]


def _is_forced(choice: Block) -> bool:
    return "any" in choice or "tool" in choice


_FORM: Final = BlockForm(
    call_id="toolUseId",
    result_id="toolUseId",
    functions=_functions,
    tools="toolConfig",
    choice=("toolConfig", "toolChoice"),
    name=("tool", "name"),
    choices=_choices,
    is_forced=_is_forced,
    passed_on=("additionalModelRequestFields",),
    max_tokens=("inferenceConfig", "maxTokens"),
    sampling={
        "temperature": ("inferenceConfig", "temperature"),
        "top_p": ("inferenceConfig", "topP"),
        "top_k": ("additionalModelRequestFields", "top_k"),
    },
)


class ConverseTurns(BlockTurns):
    """The messages of a body, and their violations."""

    def __init__(self, body: Block, endpoint: Endpoint) -> None:
        self.turns: list[WireTurn] = [WireTurn(index, turn) for index, turn in objects_of(body.get("messages"))]
        super().__init__(body, endpoint, _FORM, self.turns)

    def check(self) -> Iterator[Violation]:
        """List what the provider would refuse."""
        if not self.turns:
            if ":prompt/" not in self.endpoint.model.id:  # a stored prompt has its own messages
                # "A conversation must start with a user message" (langchain-aws #192)
                yield Violation(CheckCode.MESSAGES_MISSING, ("messages",), "there is no message; add one")
            return
        for turn in self.turns:
            yield from self._check_turn(turn)
        has_server_calls = may_have(self.body, (SERVER_CALL,))
        for turn in self.turns:
            has_half = has_server_calls or any("toolResult" in block for _, block in turn.blocks)
            yield from _check_native_pairs(turn) if has_half and turn.role == "assistant" else ()
        yield from self.check_pairs(results_first=False)
        yield from self._check_order()
        yield from self.check_cycle()
        yield from self._check_documents() if may_have(self.body, ("document", "image")) else ()

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
        for piece, (path, block) in zip(turn.pieces, turn.blocks, strict=True):
            yield from self._check_block(piece, block, path, turn.role)
        yield from self.check_final_thinking(turn.role, turn.pieces)

    def _check_block(self, piece: TurnPiece, block: Block, path: Path, role: object) -> Iterator[Violation]:
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
            yield from self.check_call(piece, role, is_modelled=True)
        elif kind == "toolResult":
            yield from self._check_result(inner, (*path, kind))
        elif kind == "reasoningContent" and role == "user":
            # "User messages cannot contain reasoning content." (vercel/ai 58022e0)
            yield Violation(CheckCode.BLOCK_MISPLACED, path, "a user turn cannot hold reasoning; remove it")
        elif kind == "reasoningContent":
            yield from self._check_reasoning(inner, (*path, kind))

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
        has_media = any(_USER_MEDIA & block.keys() for _, block in content)
        yield from self.check_error_media(path, has_media=status == "error" and has_media)

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
            documents = turn.members("document")
            if documents and self.rules.has("files_alone") and not any("text" in block for _, block in turn.blocks):
                # "A text block must be included when using documents" (archestra #4220; service model: Message)
                message = "a document needs a text in its turn; add one"
                yield Violation(CheckCode.DOCUMENT_ALONE, documents[0][0], message)
            most = self.rules.most("files")
            if 0 < most < len(documents):
                # service model: Message; generative-ai-use-cases #1685
                message = f"{len(documents)} documents, and at most {most} are supported; remove some"
                yield Violation(CheckCode.MEDIA_TOO_MANY, turn.path, message)
            images = len(turn.members("image"))
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

    # -- the order of turns --------------------------------------------------------------------------------------------

    def _check_order(self) -> Iterator[Violation]:
        first = self.turns[0]
        if self.rules.first_user and first.role == "assistant":
            # "A conversation must start with a user message" (langchain-aws #192)
            yield Violation(CheckCode.FIRST_TURN_WRONG, first.path, "the first turn is not the user's; add a user turn")
        yield from self.check_last(self.turns[-1].path)
        if self.rules.alternate and self.rules.has("alternation"):
            turns = [turn for turn in self.turns if turn.role in ("user", "assistant")]
            for one, other in pairwise(turns):
                if one.role == other.role:
                    # "A conversation must alternate between user and assistant roles" (dify #12340)
                    message = f"two {one.role} turns in a row; merge them"
                    yield Violation(CheckCode.TURNS_NOT_ALTERNATING, other.path, message)
        if not self.rules.user_after_result:
            for turn in self.turns:
                results = turn.of("result")
                if results and len(turn.pieces) > len(results) + len(turn.of("mark")):
                    # "Conversation blocks and tool result blocks cannot be provided in the same turn." (from Llama)
                    message = "results and other content share a turn; split it"
                    yield Violation(CheckCode.RESULT_MISPLACED, turn.path, message)


def _in_results(turn: WireTurn) -> list[Placed]:
    found: list[Placed] = []
    for path, result in turn.members("toolResult"):
        for index, block in objects_of(result.get("content")):
            if "document" in block:
                found.append(((*path, "content", index, "document"), object_of(block["document"])))
    return found


def _check_native_pairs(turn: WireTurn) -> Iterator[Violation]:
    """Check that a tool that the provider runs has its call and its result in one turn; see `native.REPLAY`."""
    blocks = [(path, *REPLAY.read(block)) for path, block in turn.blocks]
    yield from check_native_pairs(find_halves([Turn("assistant", blocks)], REPLAY))


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
    turns = ConverseTurns(body, endpoint)
    found = [*check_blank_system(body, endpoint), *_check_tools(body, endpoint)]
    found += [*turns.check_declared(), *check_options(body, endpoint)]
    found += turns.check()
    found += check_base64(body, "messages", lambda block: ("bytes",) if "bytes" in block else (), "bytes")
    found += _check_marks(body, endpoint)
    found += _check_passed_on(body, endpoint)
    return _FIELDS.add(found, body, endpoint)


def check_options(body: Mapping[str, object], endpoint: Endpoint) -> Iterator[Violation]:
    """Find the options that the model would refuse."""
    yield from _check_limits(body, endpoint)
    for check_shared in (check_choice, check_thinking, check_sampling):
        yield from check_shared(body, endpoint, _FORM)
    yield from _check_refused(body, endpoint)


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


# -- tools -------------------------------------------------------------------------------------------------------------


def _check_tools(body: Block, endpoint: Endpoint) -> Iterator[Violation]:
    config, rules = body.get("toolConfig"), endpoint.rules
    tools = object_of(config).get("tools")
    if isinstance(config, Mapping) and not tools:
        # service model: at least one tool
        message = "toolConfig has no tools; add one or remove it"
        yield Violation(CheckCode.TOOL_LIST_EMPTY, ("toolConfig", "tools"), message)
    yield from check_declared_tools(body, endpoint, _FORM)
    for index, block in objects_of(tools):
        if "cachePoint" in block and "tool" in rules.values("cache_mark_places"):
            # "#/toolConfig/tools/0: extraneous key [cachePoint] is not permitted" (LibreChat #13838, 2026-06-18)
            where: Path = ("toolConfig", "tools", index, "cachePoint")
            message = "a cache point is refused among the tools; put it into the messages"
            yield Violation(CheckCode.CACHE_MARK_MISPLACED, where, message)
        if object_of(block.get("toolSpec")).get("description") == "":
            # service model: a description is not empty
            place: Path = ("toolConfig", "tools", index, "toolSpec", "description")
            yield Violation(CheckCode.TOOL_DESCRIPTION_MISSING, place, "the description is empty; remove it")


def _check_refused(body: Block, endpoint: Endpoint) -> Iterator[Violation]:
    """Find settings other than sampling that the model refuses."""
    rules, config = endpoint.rules, object_of(body.get("inferenceConfig"))
    if config.get("stopSequences") and "stop" in rules.refused_options:
        # "This model doesn't support the stopSequences field." (of GPT-5.6: vercel/ai 1a1e246)
        message = f"{endpoint.model.id} does not support stopSequences; remove them"
        yield Violation(CheckCode.OPTION_UNSUPPORTED, ("inferenceConfig", "stopSequences"), message)
    nova = object_of(object_of(body.get("additionalModelRequestFields")).get("reasoningConfig"))
    if nova.get("type") == "enabled" and nova.get("maxReasoningEffort") == "high":
        for key in ("maxTokens", "temperature", "topP"):
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


# -- cache points ------------------------------------------------------------------------------------------------------


def _check_marks(body: Block, endpoint: Endpoint) -> Iterator[Violation]:
    if not may_have(body, (MARK,)):
        return
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
    for path, _ in marks:
        if path[-1] == 0:
            # Nothing comes before it that could be cached (AWS documentation: prompt caching)
            yield Violation(CheckCode.CACHE_MARK_MISPLACED, path, "a cache point has to follow what it caches; move it")
    yield from check_mark_order(marks, endpoint)


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
