"""What a projected conversation has to obey, read off the target's rules: law 1 before there is a wire.

Written independently of the projection: it reads only the conversation and names what the target would refuse.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec
from msgspec.structs import replace

from segue.conversation.content import AnyContent, NativeContent
from segue.conversation.context import Options, Tool
from segue.conversation.messages import AssistantMessage, Message
from segue.models.model import Model
from segue.models.rules import Rules
from segue.projection.passes.media_fit import edge_of, kind_of
from segue.projection.policy import Policy
from segue.projection.projector import Projection
from segue.projection.workspace.ownership import Ownership
from segue.protocols.api import resolve_described
from segue.protocols.kit.capabilities import refused_input
from segue.protocols.registry import resolve_rules


def find_faults(projection: Projection, model: Model, policy: Policy) -> list[str]:
    """Name everything the target would refuse."""
    validator = _Validator(model, policy)
    messages = projection.context.messages
    return [
        *validator.pairs(messages),
        *validator.ids(messages),
        *validator.order(messages),
        *(fault for message in messages for fault in validator.message(message)),
        *validator.last(messages),
        *validator.counts(messages),
        *validator.settings(projection),
        *validator.characters(projection),
    ]


class _Validator:
    def __init__(self, model: Model, policy: Policy) -> None:
        self.model = model
        self.described: Model = resolve_described(model).model
        self.policy = policy
        self.rules: Rules = resolve_rules(model)
        self.own_turns = Ownership(model, policy.same_model)

    # -- calls and results ---------------------------------------------------------------------------------------------

    def pairs(self, messages: Sequence[Message]) -> Iterator[str]:
        awaited: list[str] = []
        for index, message in enumerate(messages):
            if message.role == "toolResult":
                if not awaited or awaited.pop(0) != message.tool_call_id:
                    yield f"{index}: a result without its call"
                continue
            if awaited:
                yield f"{index}: a call without a result"
            awaited = [call.id for call in message.tool_calls()] if message.role == "assistant" else []
            if not self.rules.tools and (awaited or message.role == "toolResult"):
                yield f"{index}: a call where there are no tools"
        if awaited and self.policy.trailing_calls == "close":
            yield "the last calls have no result"

    def ids(self, messages: Sequence[Message]) -> Iterator[str]:
        seen: set[str] = set()
        rules = self.rules
        for index, message in enumerate(messages):
            if message.role != "assistant":
                continue
            calls = message.tool_calls()
            ids = [call.id for call in calls]
            if len(set(ids)) != len(ids) or (rules.has("repeated_call_ids") and seen.intersection(ids)):
                yield f"{index}: two calls of one id"
            seen.update(ids)
            for call_id in ids:
                alphabet = rules.call_id_alphabet
                if not rules.call_id_min <= len(call_id) <= (rules.call_id_max or 10**9):
                    yield f"{index}: an id of {len(call_id)} characters"
                if alphabet is not None and not re.fullmatch(f"[{alphabet}]*", call_id):
                    yield f"{index}: the id {call_id!r}"
            for call in calls:
                yield from self.name(call.name, index)

    def name(self, name: str, index: int) -> Iterator[str]:
        rules = self.rules
        if not 1 <= len(name) <= (rules.tool_name_max or 10**9):
            yield f"{index}: a name of {len(name)} characters"
        if rules.tool_name_alphabet is not None and not re.fullmatch(f"[{rules.tool_name_alphabet}]*", name):
            yield f"{index}: the name {name!r}"
        if rules.tool_name_first is not None and not re.match(f"[{rules.tool_name_first}]", name):
            yield f"{index}: the name {name!r} begins badly"

    # -- turns ---------------------------------------------------------------------------------------------------------

    def order(self, messages: Sequence[Message]) -> Iterator[str]:
        rules = self.rules
        roles = [message.role for message in messages]
        if rules.first_user and roles and roles[0] != "user":
            yield "the first turn is not the user's"
        if rules.system_prompt and roles and roles[0] == "system" and rules.system_messages != "anywhere":
            yield "instructions come first"
        for index, (one, other) in enumerate(pairwise(roles)):
            if rules.alternate and one == other and one in ("user", "assistant"):
                yield f"{index}: two turns of one role"
            if not rules.user_after_result and (one, other) == ("toolResult", "user"):
                yield f"{index}: a user turn after a result"
        for index, role in enumerate(roles):
            if role != "system" or rules.system_messages == "anywhere":
                continue
            before = roles[index - 1] if index else None
            behind = next((later for later in roles[index:] if later != "system"), "assistant")
            if (
                rules.system_messages == "none"
                or before not in ("user", "toolResult", "system")
                or behind != "assistant"
            ):
                yield f"{index}: instructions in a wrong place"

    def last(self, messages: Sequence[Message]) -> Iterator[str]:
        if not messages or messages[-1].role != "assistant":
            return
        last = messages[-1]
        if last.tool_calls():
            return
        if self.rules.assistant_prefix and last.prefix:
            return
        paused = last.raw_stop_reason in self.rules.values("resumable_stops") and self.own_turns.is_own(last)
        if not self.rules.last_assistant and not (paused and any(piece.kind == "native" for piece in last.content)):
            yield "the last turn is the assistant's"
        piece = last.content[-1]
        is_signed = piece.kind == "text" and piece.text_signature and self.rules.text_signatures
        spaced = piece.kind == "text" and not is_signed and piece.text != piece.text.rstrip()
        if self.rules.has("final_space") and spaced:
            yield "the last turn ends in white space"

    def message(self, message: Message) -> Iterator[str]:
        rules = self.rules
        if not message.content and (message.role != "toolResult" or not rules.empty_result):
            yield f"{message.role}: no content"
        kinds = {piece.kind for piece in message.content if piece.kind not in ("text", "thinking")}
        kinds |= {"signed" for piece in message.content if piece.kind == "thinking" and piece.thinking_signature}
        kinds |= {"text" for piece in message.content if piece.kind == "text" and piece.text.strip()}
        is_beside = not kinds.isdisjoint(rules.blank_beside)
        for piece in message.content:
            if piece.kind == "text" and not (rules.text_signatures and piece.text_signature):
                refused = "empty" if is_beside and rules.refused_text == "blank" else rules.refused_text
                is_accepted = refused == "none" or (refused == "empty" and is_beside and rules.refused_text == "empty")
                if not is_accepted and not (piece.text.strip() if refused == "blank" else piece.text):
                    yield f"{message.role}: a blank text"
            if piece.kind == "native" and piece.protocol != self.model.protocol:
                yield f"{message.role}: a native block of {piece.protocol}"
            if piece.kind in ("image", "file"):
                yield from self.media(message, piece)
            for key, part in (piece.extra or {}).items():
                # Format alone, and empty fields, may stay: no codec writes them for another protocol.
                data = [value for name, value in part.items() if name not in ("verbatim", "shape")]
                if key not in (self.model.protocol, "stored") and any(
                    value not in (None, "", [], {}) for value in data
                ):
                    yield f"{message.role}: extra of {key}: {part}"
        if message.role == "assistant":
            yield from self.turn(message)
        if message.role == "user" and rules.has("files_alone"):
            kinds = {piece.kind for piece in message.content}
            if "file" in kinds and "text" not in kinds:
                yield "a file without a text"

    def turn(self, message: AssistantMessage) -> Iterator[str]:
        rules = self.rules
        is_own = self.own_turns.is_own(message)
        if message.stop_reason in ("error", "aborted"):
            yield "an unfinished turn"
        if message.content and message.content[-1].kind == "thinking" and rules.final_thinking != "allowed":
            yield "a turn ends in thinking"
        allowed = self.policy.texts.call_signature if rules.call_signature == "required" else None
        lead = self.policy.texts.thought_signature if rules.call_signature == "thought" else None
        for at, piece in enumerate(message.content):
            if piece.kind == "thinking":
                is_lead = at == 0 and not piece.thinking and lead is not None and piece.thinking_signature == lead
                if is_lead and not message.tool_calls():
                    yield "a placeholder without calls"
                if rules.reasoning_replay == "none" or (not is_own and piece.thinking_signature and not is_lead):
                    yield "thinking that cannot be replayed"
                if rules.reasoning_replay == "signed" and not piece.thinking_signature:
                    yield "thinking without a signature"
                if not piece.thinking_signature and not piece.thinking.strip():
                    yield "an empty thought"
            if piece.kind == "text" and not is_own and piece.text_signature is not None:
                yield "a signature of another model on a text"
            if piece.kind == "native" and not is_own:
                yield "a native block of another model"
            if piece.kind == "toolCall" and not is_own and piece.thought_signature not in (None, allowed):
                yield "a signature of another model on a call"
        calls = message.tool_calls()
        kinds = [piece.kind for piece in message.content]
        fixed = {"thinking", "native"} if is_own else {"thinking"}
        if rules.calls_last and fixed.isdisjoint(kinds) and kinds != sorted(kinds, key=_calls_last):
            yield "words after the calls"
        if calls and rules.call_signature == "required" and not calls[0].thought_signature:
            yield "a step whose first call has no signature"
        if calls and rules.call_signature == "thought":
            before = message.content[: kinds.index("toolCall")]
            if not any(piece.kind == "thinking" and piece.thinking_signature for piece in before):
                yield "a call without signed thinking before it"

    # -- media ---------------------------------------------------------------------------------------------------------

    def media(self, message: Message, piece: AnyContent) -> Iterator[str]:
        rules = self.rules
        if piece.kind != "image" and piece.kind != "file":
            return
        kind = kind_of(piece)
        if kind in refused_input(self.described, rules):
            yield f"{message.role}: a {kind} that the model cannot read"
        patterns = rules.result_media if message.role == "toolResult" else rules.user_media
        mime = (piece.mime_type or f"{kind}/").split(";")[0].lower()
        family = mime.split("/")[0]
        is_known = piece.mime_type and not mime.endswith("/*")  # an image by its id alone may be of any type
        if not any(pattern in ("*", mime, f"{family}/*") or not is_known for pattern in patterns):
            yield f"{message.role}: a {mime} that the wire cannot carry"
        sources = rules.image_sources if piece.kind == "image" else rules.file_sources
        file_id = piece.file_id if piece.kind == "file" else None
        has = {"data": piece.data, "url": piece.url, "file_id": file_id}
        if not any(has[source] is not None for source in sources):
            yield f"{message.role}: media without a source the target can use"
        size = len(piece.data or "") * 3 // 4
        own = {"image": rules.most("image_bytes"), "document": rules.most("document_bytes")}.get(kind, 0)
        if any(limit and size > limit for limit in (rules.most("media_bytes"), own)):
            yield f"{message.role}: media of {size} bytes"
        if message.role == "toolResult" and message.is_error and rules.has("error_media"):
            yield "media in an error"

    def counts(self, messages: Sequence[Message]) -> Iterator[str]:
        kinds = [piece.kind for message in messages for piece in message.content]
        for kind, limit in (("image", self.rules.max_images), ("file", self.rules.most("files"))):
            if limit and kinds.count(kind) > limit:
                yield f"{kinds.count(kind)} pieces of kind {kind}"
        images = [piece for message in messages for piece in message.content if piece.kind == "image"]
        edge, few = max((edge_of(image) for image in images), default=0), self.rules.most("large_images")
        if 0 < self.rules.most("image_edge") < edge:
            yield f"an image of {edge} pixels"
        if few and len(images) > few and edge > (self.rules.rows["large_images"].least or 0):
            yield f"an image of {edge} pixels among {len(images)}"

    # -- settings ------------------------------------------------------------------------------------------------------

    def settings(self, projection: Projection) -> Iterator[str]:
        context, options, rules = projection.context, projection.options, self.rules
        if not rules.system_prompt and context.system_prompt is not None and context.messages:
            yield "a system prompt where there is no place for one"
        if context.tools and not rules.tools:
            yield "tools where there are none"
        names = [tool.name for tool in context.tools if tool.kind == "function"]
        if len(set(names)) != len(names):
            yield "two tools of one name"
        for index, name in enumerate(names):
            yield from self.name(name, index)
        for name in Options.__struct_fields__:
            if name in rules.refused_options and getattr(options, name) is not None:
                yield f"the option {name}"
        if sum(getattr(options, name) is not None for name in rules.exclusive_options) > 1:
            yield "options that exclude each other"
        if options.tool_choice is not None:
            kind = options.tool_choice if options.tool_choice in ("auto", "none", "required") else "name"
            if kind not in rules.tool_choices or (kind == "name" and options.tool_choice not in names):
                yield f"the tool choice {options.tool_choice!r}"
        if rules.tools_with_history:
            called = {call.name for m in context.messages if m.role == "assistant" for call in m.tool_calls()}
            if called - set(names):
                yield f"tools of the history that are not declared: {called - set(names)}"

    def characters(self, projection: Projection) -> Iterator[str]:
        context = projection.context
        prompt = context.system_prompt
        pieces = prompt if isinstance(prompt, tuple) else ()
        sent: list[object] = [None if isinstance(prompt, tuple) else prompt]
        sent += [self.sent_part(node) for node in (*pieces, *context.tools, projection.options)]
        for message in context.messages:
            sent += [self.sent_part(piece) for piece in message.content]
            sent.append((message.extra or {}).get(self.model.protocol))
            if message.role == "toolResult":
                sent.append((message.tool_call_id, message.tool_name))
        for part in sent:
            try:
                msgspec.json.encode(part)
            except UnicodeEncodeError:
                yield f"half a surrogate pair in {part!r}"

    def sent_part(self, node: AnyContent | Tool | Options) -> object:
        """Give a node without the extra of other protocols and of the store."""
        extra = {key: part for key, part in (node.extra or {}).items() if key == self.model.protocol}
        if isinstance(node, NativeContent):
            return replace(node, extra=extra, fallback=())
        return replace(node, extra=extra)


def _calls_last(kind: str) -> bool:
    return kind == "toolCall"
