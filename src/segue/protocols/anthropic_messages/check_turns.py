"""Whether Anthropic accepts the messages of a body: roles, pairing of calls and results, thinking, media, blank text.

Each rule has its source next to it. The server merges consecutive turns of one role before it checks them
(anthropic 2.8.0; recorded traffic, 2026-11), so pairing is checked over runs of turns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias, cast

from segue.errors import Path
from segue.models.model_ids import is_claude
from segue.models.rules import Rules
from segue.protocols.anthropic_messages.native import REPLAY
from segue.protocols.anthropic_messages.rules import PROVIDER
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.checking import check_base64, objects_of
from segue.protocols.kit.codec import Endpoint, Violation
from segue.protocols.kit.json_values import kind_of, object_of
from segue.protocols.kit.media_checks import check_address, check_bytes, check_edge, check_scheme
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.replay import NO_CALL, NO_RESULT, Turn, find_halves

Object: TypeAlias = Mapping[str, object]
Placed: TypeAlias = tuple[Path, Object]

_ROLES: Final = frozenset({"user", "assistant", "system"})
_THINKING: Final = frozenset({"thinking", "redacted_thinking"})
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


class RoleRun:
    """Consecutive turns of one role, which the server reads as one."""

    __slots__ = ("blocks", "first", "role")

    def __init__(self, role: object, first: int) -> None:
        self.role: object = role
        self.first: int = first
        self.blocks: list[Placed] = []

    def of(self, *kinds: str) -> list[Placed]:
        """Return the blocks of some types."""
        return [placed for placed in self.blocks if kind_of(placed[1]) in kinds]


class Turns:
    """The messages of a body, checked."""

    def __init__(self, body: Object, endpoint: Endpoint) -> None:
        self.body = body
        self.endpoint = endpoint
        self.rules: Rules = endpoint.rules
        # A system message that only sets something, such as the effort, is not a turn.
        self.turns: list[tuple[int, Mapping[str, object]]] = [
            (index, turn) for index, turn in objects_of(body.get("messages")) if not self._is_setting(turn)
        ]
        self.runs: list[RoleRun] = []
        for index, turn in self.turns:
            if not self.runs or self.runs[-1].role != turn.get("role"):
                self.runs.append(RoleRun(turn.get("role"), index))
            self.runs[-1].blocks += _blocks_of(turn, ("messages", index))

    def check(self) -> Iterator[Violation]:
        """List what the provider would refuse."""
        if not self.turns:
            # "messages: at least one message is required" (langchain #31657)
            yield Violation(CheckCode.MESSAGES_MISSING, ("messages",), "there is no message; add one")
            return
        for position, (index, turn) in enumerate(self.turns):
            yield from self._check_turn(index, turn, last=position == len(self.turns) - 1)
        for position, run in enumerate(self.runs):
            yield from self._check_pairing(position, run)
        yield from self._check_native_pairs()
        yield from self._check_system()
        yield from self._check_end()
        yield from self._check_cycle()
        yield from self._check_media()
        yield from check_base64(
            self.body.get("messages"), ("messages",), lambda block: ("data",) if block.get("type") == "base64" else ()
        )

    # -- one turn ------------------------------------------------------------------------------------------------------

    def _is_setting(self, turn: Object) -> bool:
        """Whether a system message only sets something, such as the effort."""
        is_empty = turn.get("role") == "system" and not turn.get("content")
        return is_empty and not self.rules.values("system_fields").isdisjoint(turn)

    def _check_turn(self, index: int, turn: Object, *, last: bool) -> Iterator[Violation]:
        role, path = turn.get("role"), ("messages", index)
        if text_of(role) not in _ROLES:
            # "Input tag 'developer' found using 'role' does not match any of the expected tags" (chatgpt-md #189)
            message = f"unknown role {role!r}; use user, assistant or system"
            yield Violation(CheckCode.ROLE_UNKNOWN, (*path, "role"), message)
        blocks = _blocks_of(turn, path)
        texts = [block for _, block in blocks if block.get("type") == "text"]
        blank = all(map(_is_blank, texts)) and bool(texts or not blocks)
        if blank and self.rules.refused_text != "none" and not (last and role == "assistant" and not blocks):
            # "text content blocks must be non-empty" / "must contain non-whitespace text" (arunalabs/mode #9,
            # LibreChat-AI/agents #124): refused where a turn has no other text
            message = "the turn has no text that is not blank; remove the blank one"
            yield Violation(CheckCode.TEXT_BLANK, (*path, "content"), message)
        for place, block in blocks:
            yield from self._check_block(block, place, role)
        final = blocks[-1] if blocks else None
        if role == "assistant" and final and kind_of(final[1]) in _THINKING and self.rules.final_thinking != "allowed":
            # "The final block in an assistant message cannot be `thinking`" (forgecode #2107)
            yield Violation(CheckCode.THINKING_LAST, final[0], "a turn cannot end in thinking; add a text after it")

    def _check_block(self, block: Object, path: Path, role: object) -> Iterator[Violation]:
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
                yield from self._check_call(block, path, role)
            case "tool_result" if role != "user":
                # Refused: "`tool_result` blocks can only be in `user` messages" (quoted in several agents' sources)
                yield Violation(CheckCode.BLOCK_MISPLACED, path, "a tool result must be in a user turn; move it")
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

    def _check_call(self, block: Object, path: Path, role: object) -> Iterator[Violation]:
        if role != "assistant":
            # Refused: "`tool_use` blocks can only be in `assistant` messages" (quoted in several agents' sources)
            yield Violation(CheckCode.BLOCK_MISPLACED, path, "a tool call must be in an assistant turn; move it")
        alphabet = self.rules.call_id_alphabet
        if alphabet and not re.fullmatch(f"[{alphabet}]+", str(block.get("id") or "")):
            # "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'" (forgecode #1142)
            message = f"{block.get('id')!r} is not a valid call id; use characters of {alphabet}"
            yield Violation(CheckCode.CALL_ID_INVALID, (*path, "id"), message)
        if not isinstance(block.get("name"), str):
            # "tool_use block missing required 'name' field" (Ollama: ollama #15815, 2026-04-25)
            yield Violation(CheckCode.TOOL_NAME_INVALID, (*path, "name"), "the tool name is missing; set `name`")
        if not isinstance(block.get("input"), Mapping):
            # "tool_use.input: Input should be a valid dictionary" (koda #501)
            message = "the input of a call must be an object; use {} where there is none"
            yield Violation(CheckCode.ARGUMENTS_INVALID, (*path, "input"), message)

    # -- calls and results ---------------------------------------------------------------------------------------------

    def _check_pairing(self, position: int, run: RoleRun) -> Iterator[Violation]:
        if not self.rules.paired_calls:
            return
        if run.role == "assistant":
            following = self.runs[position + 1] if position + 1 < len(self.runs) else None
            answered = (
                _ids(following.of("tool_result"), "tool_use_id") if following and following.role == "user" else ()
            )
            seen: set[object] = set()
            for path, block in run.of("tool_use"):
                call_id = text_of(block.get("id"))
                if call_id in seen:
                    # Refused: "messages.1.content.1: `tool_use` ids must be unique" (claude-code #21317, 2026-01-27)
                    message = f"two calls have the id {call_id!r}; change one"
                    yield Violation(CheckCode.CALL_ID_DUPLICATE, (*path, "id"), message)
                elif call_id not in answered:
                    # "`tool_use` ids were found without `tool_result` blocks immediately after" (claude-code #1237)
                    message = f"the call {call_id!r} has no result; add one in the next turn"
                    yield Violation(CheckCode.RESULT_MISSING, path, message)
                seen.add(call_id)
            if self.rules.calls_last and is_claude(self.endpoint.model.id):
                yield from self._check_after_calls(run)
        elif run.role == "user":
            yield from self._check_results(position, run)

    def _check_after_calls(self, run: RoleRun) -> Iterator[Violation]:
        called = False
        for path, block in run.blocks:
            if called and kind_of(block) == "text":
                # "`tool_use` ids were found without `tool_result` blocks immediately after" (vercel/ai #8318, #13013)
                message = "text comes after a call in its turn; move it before the calls"
                yield Violation(CheckCode.TEXT_AFTER_CALL, path, message)
            # Nothing is known about text after thinking or server tools that follow a call.
            called = kind_of(block) == "tool_use" or (called and kind_of(block) == "text")

    def _check_results(self, position: int, run: RoleRun) -> Iterator[Violation]:
        before = self.runs[position - 1] if position else None
        calls = _ids(before.of("tool_use"), "id") if before and before.role == "assistant" else ()
        seen: set[object] = set()
        texts = False
        for path, block in run.blocks:
            if block.get("type") != "tool_result":
                texts = True
                continue
            call_id = text_of(block.get("tool_use_id"))
            if call_id not in calls:
                # "unexpected `tool_use_id` found in `tool_result` blocks" (eca #209, cline #7225)
                message = f"no call of the turn before has the id {call_id!r}; remove the result, or add the call"
                yield Violation(CheckCode.RESULT_ORPHANED, path, message)
            elif call_id in seen:
                # "each tool_use must have a single result" (hindsight #4250)
                yield Violation(CheckCode.RESULT_DUPLICATE, path, f"the call {call_id!r} has two results; keep one")
            elif texts:
                # Results come first in their turn, else the calls count as unanswered (vercel/ai #8318, xum #1437;
                # documentation: handle tool calls)
                message = "a result comes after other content; put the results first"
                yield Violation(CheckCode.RESULT_MISPLACED, path, message)
            seen.add(call_id)
            if block.get("is_error") and self.rules.has("error_media"):
                media = [inner for _, inner in objects_of(block.get("content")) if kind_of(inner) in _MEDIA]
                if media:
                    # "all content must be type 'text' if 'is_error' is true" (vellum-assistant #18387, 2026-03-17)
                    message = "an error result has media; keep its text alone"
                    yield Violation(CheckCode.RESULT_MEDIA_UNSUPPORTED, path, message)

    def _check_native_pairs(self) -> Iterator[Violation]:
        """Check that calls of tools that the provider runs have their results; `native.REPLAY` has the sources."""
        turns: list[Turn[Path]] = []
        kinds = {kind_of(block) for run in self.runs for _, block in run.blocks}
        for index, turn in self.turns if not kinds <= _PLAIN | {"tool_result"} else ():
            placed = _blocks_of(turn, ("messages", index))
            blocks = [(path, *REPLAY.read(block)) for path, block in placed]
            callers = (REPLAY.reference_of(block) for _, block in placed)
            if turn.get("role") == "assistant":
                turns.append(Turn("assistant", blocks, frozenset(caller for caller in callers if caller)))
            elif turn.get("role") != "system":
                is_result = bool(blocks) and all(kind == "tool_result" for _, kind, _ in blocks)
                turns.append(Turn("results" if is_result else "user", blocks))
        rules = self.rules
        found = find_halves(turns, REPLAY, alternate=rules.alternate, may_wait=not rules.has("pending_calls"))
        for path, why in found.refused.items():
            if why == NO_RESULT:
                yield Violation(CheckCode.RESULT_MISSING, path, "the call of a server tool has no result; remove it")
            elif why == NO_CALL:
                message = "the result of a server tool has no call before it; remove it"
                yield Violation(CheckCode.RESULT_ORPHANED, path, message)
        yield from self._check_callers()

    def _check_callers(self) -> Iterator[Violation]:
        """Check that a call that names the code that made it comes after that code."""
        known: set[str | None] = set()
        for run in self.runs:
            known |= {text_of(block.get("id")) for _, block in run.of(*_SERVER_CALLS)}
            for path, block in run.blocks:
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
            elif before is None or (before.role == "assistant" and not before.of(*_SERVER_CALLS)):
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
        paused = any(kind_of(block) not in _PLAIN for _, block in last.blocks)
        if not self.rules.last_assistant and not paused:
            # "This model does not support assistant message prefill. The conversation must end with a user message."
            # (llxprt #1977, copilot-api #261; 2026)
            yield Violation(CheckCode.LAST_TURN_WRONG, path, "the last turn is the assistant's; add a user turn")
        final = last.blocks[-1] if last.blocks else None
        text = final[1].get("text") if final and final[1].get("type") == "text" else None
        if self.rules.has("final_space") and isinstance(text, str) and text != text.rstrip():
            # "final assistant content cannot end with trailing whitespace" (langchain #35071, 2026-02-08)
            yield Violation(CheckCode.FINAL_SPACE, path, "the last turn ends in white space; strip it")

    def _check_cycle(self) -> Iterator[Violation]:
        """Check the running cycle of calls and a last assistant turn, which have to be in the mode of the request.

        With a thinking budget they must begin with thinking; with thinking disabled they may not contain any. A request
        without `thinking` is not checked: it is refused only at times.
        """
        mode = object_of(self.body.get("thinking")).get("type")
        if mode not in ("enabled", "disabled") or not self.rules.thinking_before_calls:
            return
        last = next((run for run in reversed(self.runs) if run.role == "assistant"), None)
        if mode == "disabled":
            if last is not None and self._is_final(last):
                for path, _ in last.of(*_THINKING):
                    # "When thinking is disabled, an `assistant` message in the final position cannot contain
                    # `thinking`." (forgecode #1853, and #1195 at Vertex)
                    message = "the last assistant turn contains thinking while thinking is disabled; remove it"
                    yield Violation(CheckCode.THINKING_WHILE_OFF, path, message)
            return
        if last is not None and last is self.runs[-1] and last.blocks and kind_of(last.blocks[0][1]) not in _THINKING:
            # "Expected `thinking` or `redacted_thinking`, but found `text`. When `thinking` is enabled, a final
            # `assistant` message must start with a thinking block." (aider #3820; documentation: prefill)
            message = "an answer cannot be begun while thinking is enabled; add a user turn, or disable thinking"
            yield Violation(CheckCode.THINKING_MISSING, last.blocks[0][0], message)
            return
        opener: RoleRun | None = None
        for run in reversed(self.runs):
            if run.role == "assistant" and run.of("tool_use"):
                opener = run
            elif run.role != "user" or any(block.get("type") != "tool_result" for _, block in run.blocks):
                break
        if opener is not None and kind_of(opener.blocks[0][1]) not in _THINKING:
            # "Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final
            # `assistant` message must start with a thinking block" (opencode #3077)
            message = "a turn that calls tools must begin with thinking while thinking is enabled; disable thinking"
            yield Violation(CheckCode.THINKING_MISSING, opener.blocks[0][0], message)

    def _is_final(self, run: RoleRun) -> bool:
        """Whether nothing but results of tools follows a run."""
        following = self.runs[self.runs.index(run) + 1 :]
        return all(kind_of(block) == "tool_result" for later in following for _, block in later.blocks)

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
            for path, block in run.blocks:
                if kind_of(block) in _MEDIA:
                    yield path, block
                elif block.get("type") == "tool_result":
                    for index, inner in objects_of(block.get("content")):
                        if kind_of(inner) in _MEDIA:
                            yield (*path, "content", index), inner


def _blocks_of(turn: Object, path: Path) -> list[Placed]:
    content = turn.get("content")
    if isinstance(content, str):
        return [((*path, "content"), {"type": "text", "text": content})]
    return [((*path, "content", index), block) for index, block in objects_of(content)]


def _is_blank(block: Object) -> bool:
    return not str(block.get("text", "")).strip()


def _ids(placed: list[Placed], key: str) -> set[object]:
    return {text_of(block.get(key)) for _, block in placed}
