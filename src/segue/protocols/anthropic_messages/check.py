"""Whether Anthropic accepts a body: its messages first, then its options, tools and cache marks.

Every rule quotes the refusal and its source; the threads were read on 2026-11-15. There is no rule for what recorded
traffic shows to be accepted: a first turn of the assistant, an id used again in a later turn, several turns of one
role, a forced tool with adaptive thinking, consecutive turns of instructions. What Claude refuses on other wires too is
in `families.block_checks`.

The server merges consecutive turns of one role before it checks them (anthropic 2.8.0; recorded traffic, 2026-11), so
pairing is checked over runs of turns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias, cast

from segue.errors import Path
from segue.protocols.anthropic_messages.limits import LIMITS
from segue.protocols.anthropic_messages.native import CACHE_CONTROL, REPLAY
from segue.protocols.anthropic_messages.rules import PROVIDER
from segue.protocols.families.block_checks import (
    BlockForm,
    BlockTurns,
    Kind,
    TurnPiece,
    TurnRun,
    check_blank_system,
    check_choice,
    check_declared_tools,
    check_mark_order,
    check_sampling,
    check_thinking,
)
from segue.protocols.families.tool_checks import Declared, check_native_pairs
from segue.protocols.kit.capabilities import Places
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.checking import check_base64, may_have, objects_of, run_checks
from segue.protocols.kit.codec import Endpoint, Violation
from segue.protocols.kit.json_values import kind_of, object_of
from segue.protocols.kit.media_checks import check_address, check_bytes, check_edge, check_scheme
from segue.protocols.kit.ranges import check_stops, check_user_ids
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.replay import Turn, find_halves
from segue.protocols.kit.request_fields import RequestFields

Object: TypeAlias = Mapping[str, object]
Placed: TypeAlias = tuple[Path, Object]

_ROLES: Final = frozenset({"user", "assistant", "system"})
_KINDS: Final[Mapping[str, Kind]] = {
    "text": "text",
    "thinking": "thinking",
    "redacted_thinking": "thinking",
    "tool_use": "call",
    "tool_result": "result",
}
_MEDIA: Final = frozenset({"image", "document"})
_IMAGES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})  # anthropic 2.8.0
_PLAIN: Final = frozenset({"text", "thinking", "redacted_thinking", "tool_use", "image", "document"})
"""The blocks of a finished turn; all others may belong to a server tool in whose run the provider paused."""
_SERVER_CALLS: Final = frozenset({"server_tool_use", "mcp_tool_use"})
_OTHER_WIRES: Final = frozenset(
    {"image_url", "input_audio", "file", "input_text", "input_image", "input_file", "output_text", "refusal"}
)
"""Types of parts of the OpenAI protocols. Any other unknown type may be new, and is left to the provider."""
_SERVER_ID: Final = re.compile(r"srvtoolu_[a-zA-Z0-9_]+")


def _functions(body: Object) -> Iterator[Declared]:
    for index, tool in objects_of(body.get("tools")):
        is_function = tool.get("type") in (None, "custom") and ("name" in tool or "input_schema" in tool)
        yield Declared(("tools", index), tool, ("input_schema",), is_function)


def _check_chat_tools(body: Object) -> Iterator[Violation]:
    for index, tool in objects_of(body.get("tools")):
        if tool.get("type") == "function" and "name" not in tool and "name" in object_of(tool.get("function")):
            message = "this is a Chat tool; write only what is in `function`, with `input_schema` for `parameters`"
            yield Violation(CheckCode.TOOL_NAME_INVALID, ("tools", index, "name"), message)


def _choices(body: Object) -> list[object]:
    return [tool.get("name") for _, tool in objects_of(body.get("tools"))]


def _is_forced(choice: Object) -> bool:
    return kind_of(choice) in ("any", "tool")


FORM: Final = BlockForm(
    call_id="id",
    result_id="tool_use_id",
    functions=_functions,
    tools="tools",
    choice=("tool_choice",),
    name=("name",),
    choices=_choices,
    is_forced=_is_forced,
    passed_on=(),
    max_tokens=("max_tokens",),
    sampling={name: (name,) for name in ("temperature", "top_p", "top_k")},
)


class ClaudeTurns(BlockTurns):
    """The messages of a body, checked."""

    def __init__(self, body: Object, endpoint: Endpoint) -> None:
        runs: list[TurnRun] = []
        super().__init__(body, endpoint, FORM, runs)
        # A system message that only sets something, such as the effort, is not a turn.
        self.turns: list[tuple[int, Object, list[TurnPiece]]] = [
            (index, turn, _pieces_of(turn, ("messages", index)))
            for index, turn in objects_of(body.get("messages"))
            if not self._is_setting(turn)
        ]
        for index, turn, pieces in self.turns:
            if not runs or runs[-1].role != turn.get("role"):
                runs.append(TurnRun(turn.get("role"), index))
            runs[-1].pieces += pieces

    def check(self) -> Iterator[Violation]:
        """List what the provider would refuse."""
        if not self.turns:
            # "messages: at least one message is required" (langchain #31657)
            yield Violation(CheckCode.MESSAGES_MISSING, ("messages",), "there is no message; add one")
            return
        for index, turn, pieces in self.turns:
            yield from self._check_turn(index, turn.get("role"), pieces, last=index == self.turns[-1][0])
        yield from self.check_pairs(results_first=True)
        yield from self._check_native_pairs()
        yield from self._check_system()
        yield from self._check_end()
        yield from self.check_cycle()
        yield from self._check_media() if may_have(self.body, _MEDIA) else ()
        yield from check_base64(
            self.body, "messages", lambda block: ("data",) if block.get("type") == "base64" else (), "data"
        )

    # -- one turn ------------------------------------------------------------------------------------------------------

    def _is_setting(self, turn: Object) -> bool:
        """Whether a system message only sets something, such as the effort."""
        is_empty = turn.get("role") == "system" and not turn.get("content")
        return is_empty and not self.rules.values("system_fields").isdisjoint(turn)

    def _check_turn(self, index: int, role: object, pieces: list[TurnPiece], *, last: bool) -> Iterator[Violation]:
        path: Path = ("messages", index)
        if text_of(role) not in _ROLES:
            # "Input tag 'developer' found using 'role' does not match any of the expected tags" (chatgpt-md #189)
            message = f"unknown role {role!r}; use user, assistant or system"
            yield Violation(CheckCode.ROLE_UNKNOWN, (*path, "role"), message)
        texts = [piece.fields for piece in pieces if piece.kind == "text"]
        blank = all(map(_is_blank, texts)) and bool(texts or not pieces)
        if blank and self.rules.refused_text != "none" and not (last and role == "assistant" and not pieces):
            # "text content blocks must be non-empty" / "must contain non-whitespace text" (arunalabs/mode #9,
            # LibreChat-AI/agents #124): refused where a turn has no other text
            message = "the turn has no text that is not blank; remove the blank one"
            yield Violation(CheckCode.TEXT_BLANK, (*path, "content"), message)
        for piece in pieces:
            yield from self._check_block(piece, role)
        yield from self.check_final_thinking(role, pieces)

    def _check_block(self, piece: TurnPiece, role: object) -> Iterator[Violation]:
        _, path, block = piece
        own = self.endpoint.model.provider == PROVIDER
        match kind_of(block):
            case "image" if own and role == "assistant":
                # "'image' blocks are not permitted within assistant turns" (SEMOSS #2323, 2026-04-09)
                yield Violation(CheckCode.BLOCK_MISPLACED, path, "an image must be in a user turn; move it")
            case kind if own and kind in _OTHER_WIRES:
                # "Input tag 'image_url' found using 'type' does not match any of the expected tags" (AstrBot #4444)
                message = f"{kind!r} is a block type of another protocol; convert it"
                yield Violation(CheckCode.BLOCK_TYPE_UNKNOWN, (*path, "type"), message)
            case "tool_use":
                yield from self.check_call(piece, role, is_modelled=False)
            case "tool_result":
                if role != "user":
                    # Refused: "`tool_result` blocks can only be in `user` messages" (quoted in several agents' sources)
                    yield Violation(CheckCode.BLOCK_MISPLACED, path, "a tool result must be in a user turn; move it")
                elif block.get("is_error"):
                    media = any(kind_of(inner) in _MEDIA for _, inner in objects_of(block.get("content")))
                    yield from self.check_error_media(path, has_media=media)
            case "thinking":
                signature = block.get("signature")
                if self.rules.reasoning_replay == "signed" and not isinstance(signature, str):
                    # "thinking.signature: Field required" (opencode #42735)
                    message = "the thinking has no signature; remove it or send it as text"
                    yield Violation(CheckCode.THINKING_UNSIGNED, path, message)
                if not isinstance(block.get("thinking"), str):
                    # "thinking.thinking: Field required" (litellm #38809)
                    message = "the thinking has no text; set `thinking`, if only to an empty string"
                    yield Violation(CheckCode.THINKING_TEXT_MISSING, path, message)
            case "server_tool_use" if not _SERVER_ID.fullmatch(str(block.get("id"))):
                # "server_tool_use.id: String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'" (claude-code-hub #470)
                message = f"{block.get('id')!r} is not the id of a server tool call; it must begin with srvtoolu_"
                yield Violation(CheckCode.CALL_ID_INVALID, (*path, "id"), message)
            case _:
                return

    # -- calls and results ---------------------------------------------------------------------------------------------

    def _check_native_pairs(self) -> Iterator[Violation]:
        """Check that calls of tools that the provider runs have their results; `native.REPLAY` has the sources."""
        turns: list[Turn[Path]] = []
        kinds = {kind_of(piece.fields) for run in self.runs for piece in run.pieces}
        for _, turn, pieces in self.turns if not kinds <= _PLAIN | {"tool_result"} else ():
            blocks = [(piece.path, *REPLAY.read(piece.fields)) for piece in pieces]
            callers = (REPLAY.reference_of(piece.fields) for piece in pieces)
            if turn.get("role") == "assistant":
                turns.append(Turn("assistant", blocks, frozenset(caller for caller in callers if caller)))
            elif turn.get("role") != "system":
                is_result = bool(blocks) and all(kind == "tool_result" for _, kind, _ in blocks)
                turns.append(Turn("results" if is_result else "user", blocks))
        rules = self.rules
        found = find_halves(turns, REPLAY, alternate=rules.alternate, may_wait=not rules.has("pending_calls"))
        yield from check_native_pairs(found)
        yield from self._check_callers() if may_have(self.body, ("caller",)) else ()

    def _check_callers(self) -> Iterator[Violation]:
        """Check that a call that names the code that made it comes after that code."""
        known: set[str | None] = set()
        for run in self.runs:
            known |= {text_of(block.get("id")) for block in _server_calls(run)}
            for _, path, block in run.pieces:
                caller = REPLAY.reference_of(block)
                if caller is not None and caller not in known:
                    # The id of the call of the code, which has to be there (anthropic 2.8.0: ServerToolCaller)
                    message = f"no call before it has the id {caller!r}; remove `caller`"
                    yield Violation(CheckCode.CALLER_UNKNOWN, (*path, "caller"), message)

    # -- the order of turns --------------------------------------------------------------------------------------------

    def _check_system(self) -> Iterator[Violation]:
        """Check instructions in mid-conversation."""
        allowed = self.rules.system_messages
        for position, run in enumerate(self.runs):
            if run.role != "system" or allowed == "anywhere":
                continue
            path: Path = ("messages", run.first)
            before = self.runs[position - 1] if position else None
            after = self.runs[position + 1] if position + 1 < len(self.runs) else None
            if allowed == "none":
                # "role 'system' is not supported on this model" (documentation: what's new in Claude 4.8)
                message = f"{self.endpoint.model.id} does not support the role system; write it in `system`"
                yield Violation(CheckCode.SYSTEM_UNSUPPORTED, path, message)
            elif before is None or (before.role == "assistant" and not _server_calls(before)):
                # Not first; after a user turn, or an assistant's that ends in a server tool (the same)
                message = "instructions must follow a user turn; move them, or write them in `system`"
                yield Violation(CheckCode.SYSTEM_MISPLACED, path, message)
            elif after is not None and after.role != "assistant":
                # Last, or before an assistant turn (the same)
                message = "instructions must be last or before an assistant turn; move them"
                yield Violation(CheckCode.SYSTEM_MISPLACED, path, message)

    def _check_end(self) -> Iterator[Violation]:
        last = self.runs[-1]
        if last.role != "assistant":
            return
        path: Path = ("messages", self.turns[-1][0])
        # A reply that paused in the run of a server tool is sent back unchanged. (anthropic 2.8.0)
        is_paused = any(kind_of(piece.fields) not in _PLAIN for piece in last.pieces)
        yield from self.check_last(path, is_paused=is_paused)
        final = last.pieces[-1] if last.pieces else None
        text = final.fields.get("text") if final and final.kind == "text" else None
        if self.rules.has("final_space") and isinstance(text, str) and text != text.rstrip():
            # "final assistant content cannot end with trailing whitespace" (langchain #35071, 2026-02-08)
            yield Violation(CheckCode.FINAL_SPACE, path, "the last turn ends in white space; strip it")

    # -- media ---------------------------------------------------------------------------------------------------------

    def _check_media(self) -> Iterator[Violation]:
        images = sum(block.get("type") == "image" for _, block in self._media())
        rules = self.rules
        edge, large = rules.most("image_edge"), rules.rows.get("large_images")
        if large is not None and images > (large.most or images):
            edge = int(large.least or 0)
        for path, block in self._media():
            is_image = block.get("type") == "image"
            source = block.get("source")
            if is_image:
                # "At least one of the image dimensions exceed max allowed size: 8000 pixels" (documentation: vision)
                yield from check_edge(object_of(source).get("data"), path, edge)
            if isinstance(source, Mapping):
                yield from self._check_source(cast("Object", source), (*path, "source"), is_image=is_image)
        if self.rules.max_images and images > self.rules.max_images:
            # At most 100, from the 4.6 generation on 600 (pi #401; pi-ai 1.5.0 catalogue)
            message = f"{images} images, and at most {self.rules.max_images} are supported; remove some"
            yield Violation(CheckCode.MEDIA_TOO_MANY, ("messages",), message)

    def _check_source(self, source: Object, path: Path, *, is_image: bool) -> Iterator[Violation]:
        kind = source.get("type")
        if kind == "url" and "url" not in (self.rules.image_sources if is_image else self.rules.file_sources):
            # "URL content sources are not yet supported for this model" (Bedrock: chatlas #410, 2026-09-01)
            yield Violation(CheckCode.MEDIA_SOURCE_UNSUPPORTED, path, "URLs are not supported here; send the data")
        if kind == "url":
            # anthropic 2.8.0: the URL of an image, or of a PDF
            allowed = ("image/*",) if is_image else ("application/pdf", "text/*")
            yield from check_address(source.get("url"), allowed, (*path, "url"))
            yield from check_scheme(source.get("url"), self.rules.url_schemes, (*path, "url"))
        if kind != "base64":
            return
        mime, data = text_of(source.get("media_type")), source.get("data")
        if mime not in (_IMAGES if is_image else {"application/pdf"}):
            # "source.base64.media_type: Input should be 'image/jpeg', ..." (anthropic 2.8.0)
            message = f"the type {mime!r} is not supported; convert it"
            yield Violation(CheckCode.MEDIA_TYPE_UNSUPPORTED, (*path, "media_type"), message)
        else:
            yield from check_bytes(data, mime, (*path, "data"), exact=self.rules.has("other_image_type"))
        most = self.rules.most("image_bytes" if is_image else "document_bytes")
        if most and isinstance(data, str) and len(data) * 3 // 4 > most:
            # "image exceeds 5 MB maximum: 5404560 bytes > 5242880 bytes", of base64 (claude-code #13381)
            message = f"the data has more than {most} bytes; make it smaller"
            yield Violation(CheckCode.MEDIA_TOO_LARGE, (*path, "data"), message)

    def _media(self) -> Iterator[Placed]:
        for run in self.runs:
            for kind, path, block in run.pieces:
                if kind == "other" and kind_of(block) in _MEDIA:
                    yield path, block
                elif kind == "result":
                    for index, inner in objects_of(block.get("content")):
                        if kind_of(inner) in _MEDIA:
                            yield (*path, "content", index), inner


def _pieces_of(turn: Object, path: Path) -> list[TurnPiece]:
    content = turn.get("content")
    if isinstance(content, str):
        return [TurnPiece("text", (*path, "content"), {"type": "text", "text": content})]
    return [
        TurnPiece(_KINDS.get(kind_of(block) or "", "other"), (*path, "content", index), block)
        for index, block in objects_of(content)
    ]


def _server_calls(run: TurnRun) -> list[Object]:
    return [piece.fields for piece in run.pieces if kind_of(piece.fields) in _SERVER_CALLS]


def _is_blank(block: Object) -> bool:
    return not str(block.get("text", "")).strip()


# -- the body as a whole -----------------------------------------------------------------------------------------------

_THINKING: Final = frozenset({"thinking", "redacted_thinking"})

_FIELDS: Final = RequestFields(
    __package__ or "",
    Places(
        media={"image": "image", "document": "document"},
        schema=("input_schema",),
        output=(("output_config", "format", "schema"), ("output_format", "schema")),
        judged=frozenset({"thinking.type"}),
    ),
    limits=LIMITS,
)


def check(body: Mapping[str, object], endpoint: Endpoint) -> list[Violation]:
    """List what the provider would refuse."""
    turns = ClaudeTurns(body, endpoint)
    found = [*_check_chat_tools(body), *check_declared_tools(body, endpoint, FORM), *turns.check_declared()]
    found += check_options(body, endpoint)
    found += check_blank_system(body, endpoint)
    found += turns.check()
    found += _check_marks(body, endpoint)
    found += _check_combinations(body, endpoint)
    return _FIELDS.add(found, body, endpoint)


def check_options(body: Mapping[str, object], endpoint: Endpoint) -> Iterator[Violation]:
    """Find the options that the model would refuse."""
    yield from run_checks((_check_limits, _check_alone), body, endpoint)
    for check_part in (check_choice, check_thinking, check_sampling):
        yield from check_part(body, endpoint, FORM)
    # "stop_sequences: each stop sequence must contain non-whitespace" (litellm #3286)
    yield from check_stops(body.get("stop_sequences"), ("stop_sequences",), endpoint.rules)


def _check_limits(body: Mapping[str, object], endpoint: Endpoint) -> Iterator[Violation]:
    # "max_tokens: Field required" (anthropic 2.8.0); 0 only warms the cache
    most = body.get("max_tokens")
    if not isinstance(most, int) or isinstance(most, bool) or most < 0:
        yield Violation(CheckCode.MAX_TOKENS_MISSING, ("max_tokens",), "max_tokens is required; set a number of tokens")
    elif 0 < endpoint.model.max_tokens < most:
        # "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens" (quoted in the tests of
        # many projects; Anthropic documentation: models overview)
        message = (
            f"{endpoint.model.id} writes at most {endpoint.model.max_tokens:,} tokens, not {most:,}; lower `max_tokens`"
        )
        yield Violation(CheckCode.MAX_TOKENS_TOO_LARGE, ("max_tokens",), message)

    # The lengths are in the rows of the providers, with their sources.
    yield from check_user_ids(body, endpoint.rules)


def _check_alone(body: Mapping[str, object], _: Endpoint) -> Iterator[Violation]:
    if kind_of(object_of(body.get("tool_choice"))) == "any" and not body.get("tools") and not body.get("mcp_servers"):
        # Refused: "tool_choice.any may only be specified while providing tools"; `auto` and `none` without tools are
        # answered (a probe published by an agent's author; found 2026-11-15)
        message = "a tool choice is set without tools; add tools, or remove it"
        yield Violation(CheckCode.TOOL_CHOICE_WITHOUT_TOOLS, ("tool_choice",), message)


def _check_combinations(body: Mapping[str, object], endpoint: Endpoint) -> Iterator[Violation]:
    """Features that exclude each other (Anthropic documentation of each, read 2026-11-17)."""
    if endpoint.model.provider != PROVIDER:
        return
    messages = objects_of(body.get("messages"))
    documents = [
        (("messages", index, "content", at), object_of(block.get("citations")).get("enabled") is True)
        for index, turn in (messages if may_have(body, ("document",)) else ())
        for at, block in objects_of(turn.get("content"))
        if block.get("type") == "document"
    ]
    if len({cited for _, cited in documents}) > 1:
        # "must be enabled on all or none of the documents" (documentation: citations)
        first: Path = next(path for path, cited in documents if not cited)
        message = "citations have to be enabled on all documents or on none; change it"
        yield Violation(CheckCode.CITATIONS_MIXED, first, message)
    tools = [tool for _, tool in objects_of(body.get("tools"))]
    if tools and all(tool.get("defer_loading") is True for tool in tools):
        # Tool search: "All tools have defer_loading set. At least one tool must be non-deferred."
        yield Violation(CheckCode.TOOLS_DEFERRED, ("tools",), "every tool is deferred; load at least one")
    edits = [edit.get("type") for _, edit in objects_of(object_of(body.get("context_management")).get("edits"))]
    if "clear_thinking_20251015" in edits[1:]:
        # Context editing: clear_thinking has to be listed first
        path: Path = ("context_management", "edits", edits.index("clear_thinking_20251015", 1))
        yield Violation(CheckCode.EDIT_MISPLACED, path, "`clear_thinking_20251015` has to be first; move it")


# -- cache marks -------------------------------------------------------------------------------------------------------


def _check_marks(body: Mapping[str, object], endpoint: Endpoint) -> Iterator[Violation]:
    key, most = CACHE_CONTROL, endpoint.rules.cache_marks
    if not may_have(body, (key,)):
        return
    marks = [
        (path, block, object_of(block[key])) for path, block in _blocks(body) if isinstance(block.get(key), Mapping)
    ]
    # The mark of the request is put on its last block, and has no effect where that one has the same. Where four blocks
    # are marked, or the last one has another lifetime, it is refused (documentation: prompt caching, automatic caching;
    # it uses one of the four slots: Anthropic's cookbook on prompt caching, read 2026-11-18).
    turns = [turn for _, turn in objects_of(body.get("messages"))]
    last = [block for _, block in objects_of(turns[-1].get("content"))][-1:] if turns else []
    marked = [object_of(block[key]) for block in last if isinstance(block.get(key), Mapping)]
    automatic = object_of(body.get(key))
    count = len(marks) + bool(automatic and (not marked or len(marks) >= most))
    if automatic and marked and count <= most and _lifetime(automatic) != _lifetime(marked[0]):
        message = f"the last block has a `{key}` with another ttl; remove one of them, or use one ttl for both"
        yield Violation(CheckCode.CACHE_MARK_ORDER, (key,), message)
    if most and count > most:
        # "A maximum of 4 blocks with cache_control may be provided. Found 5." (sub2api #176, #2013)
        message = f"{count} blocks have `{key}`; keep at most {most}"
        yield Violation(CheckCode.CACHE_MARKS_TOO_MANY, (*(marks[most][0] if len(marks) > most else ()), key), message)
    yield from check_mark_order((((*path, key), mark) for path, _, mark in marks), endpoint)
    for path, block, _ in marks:
        if block.get("type") == "text" and not str(block.get("text", "")).strip():
            # "cache_control cannot be set for empty text blocks" (claude-code #55302, vercel/eve #2753)
            message = "a blank text cannot be cached; remove the mark"
            yield Violation(CheckCode.CACHE_MARK_MISPLACED, (*path, key), message)
        if kind_of(block) in _THINKING:
            # Thinking cannot be marked itself (documentation: prompt caching)
            message = "thinking cannot have a mark; put it on another block"
            yield Violation(CheckCode.CACHE_MARK_MISPLACED, (*path, key), message)
        if path[0] == "tools" and any(block.get(beside) for beside in endpoint.rules.values("cache_mark_beside")):
            # A deferred tool is not part of the cached prefix (documentation: tool use with prompt caching)
            message = "a tool whose loading is deferred cannot have a mark; put it on another tool"
            yield Violation(CheckCode.CACHE_MARK_MISPLACED, (*path, key), message)


def _lifetime(mark: Mapping[str, object]) -> object:
    return mark.get("ttl", "5m")


def _blocks(body: Mapping[str, object]) -> Iterator[tuple[Path, Mapping[str, object]]]:
    """Yield every block that may have a mark, in the order in which the prompt is read."""
    for root in ("tools", "system"):
        for index, block in objects_of(body.get(root)):
            yield (root, index), block
    for turn_index, turn in objects_of(body.get("messages")):
        for index, block in objects_of(turn.get("content")):
            path: Path = ("messages", turn_index, "content", index)
            for inner_index, inner in objects_of(block.get("content")):
                yield (*path, "content", inner_index), inner
            yield path, block
