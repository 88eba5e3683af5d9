"""The data of the page: a conversation beside the request that each target would get.

Pure functions: the server passes the pasted text and the targets, and sends the result to the page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from io import BytesIO
from typing import Final, TypeAlias, cast

import msgspec
from msgspec.structs import replace

from segue.conversation.content import AnyContent
from segue.conversation.context import Context, Prompt
from segue.conversation.messages import Message
from segue.documents import Document, open_source, read_document
from segue.errors import DoesNotFit, EmptyConversation, LoadError, SettingsError, render_path
from segue.histories.api import is_session_file, read_history
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.projection.report import SENTENCES, Change, Loss, describe_loss
from segue.projection.workspace.ownership import Ownership
from segue.protocols.api import check
from segue.protocols.registry import get_protocol
from segue.request import Request
from segue.tokens import measure

Json: TypeAlias = dict[str, object]

_EXCERPT: Final = 1500
"""How many characters of one text the page gets; the request JSON has all of them."""


def open_pasted(text: str, protocol: str | None) -> Document:
    """Read the pasted text, also a session of an agent; of a file with one conversation on a line, the first.

    Raises:
        LoadError, DecodeError: the text is not a conversation.
    """
    data = text.encode("utf-8", "surrogatepass")
    if protocol is None and is_session_file(data):
        return Document(Prompt(context=read_history(data).context))
    opened = open_source(BytesIO(data), "the pasted text", protocol=protocol)
    if opened.document is not None:
        return opened.document
    first = next(opened.lines, None)
    if first is None:
        raise LoadError("there is no conversation; paste one or open a file")
    return read_document(first[1], protocol, first[0])


def inspect(document: Document, targets: Sequence[Model], policy: Policy) -> Json:
    """Return the conversation and, for each target, the projected messages and the changes."""
    context = document.prompt.context
    return {
        "source": document.protocol or "a stored conversation",
        "system": _system(context),
        "tools": [tool.name if tool.kind == "function" else f"{tool.protocol} tool" for tool in context.tools],
        "stored": [_summary(message) for message in context.messages],
        "targets": [_inspect_target(document, model, policy) for model in targets],
    }


def wire_json(document: Document, model: Model, policy: Policy) -> bytes:
    """Return the exact request body, indented.

    Raises:
        EmptyConversation: the conversation has no content to send.
        DoesNotFit: the window of the model is too small.
    """
    return msgspec.json.format(document.prepare(model, policy).content, indent=2)


def _inspect_target(document: Document, model: Model, policy: Policy) -> Json:
    context = document.prompt.context
    about: Json = {"name": model.full_name(), "protocol": model.protocol, "window": model.context_window}
    try:
        request = document.prepare(model, policy)
    except (EmptyConversation, DoesNotFit) as problem:
        return {**about, "problem": str(problem), "changes": [], "counts": {loss.value: 0 for loss in Loss}}
    length = measure(document.prompt, model, request.projection)
    changes = request.report.changes
    counts = Counter(change.loss.value for change in changes)
    sent = request.projection.context
    rows = align(context.messages, sent.messages)
    same = {there for _, there, is_same in rows if is_same}  # unchanged messages are sent to the page once
    return {
        **about,
        "url": _url(request),
        "counts": {loss.value: counts[loss.value] for loss in Loss},
        "changes": [_change(change) for change in changes],
        "needed": [str(requirement) for requirement in request.requirements],
        "violations": [
            f"{render_path(found.path)}: {found.message}"
            for found in check(request.body, protocol=model.protocol, model=model)
        ],
        "rows": rows,
        "sent": [None if at in same else _summary(message) for at, message in enumerate(sent.messages)],
        "system": _system(sent),
        "tokens": length.sent,
        "length": length.describe(),
        "limit": length.limit,
        "fits": length.fits,
        "cost": length.cost,
        "bytes": len(request.content),
        "cache": _cached(document, model, policy, request),
    }


def _url(request: Request) -> str | None:
    """Return the URL of a request; None for a model without one, such as one of an editor."""
    try:
        return request.url
    except SettingsError:
        return None


def _change(change: Change) -> Json:
    message = change.path[1] if len(change.path) > 1 and change.path[0] == "messages" else None
    return {
        "code": change.code.value,
        "loss": change.loss.value,
        "dropped": describe_loss(change.code, change.loss),
        "where": render_path(change.path),
        "message": message,
        "sentence": SENTENCES[change.code],
        "detail": change.detail,
    }


def _system(context: Context) -> str:
    prompt = context.system_prompt
    if prompt is None or isinstance(prompt, str):
        return _shortened(prompt or "")
    return _shortened("\n".join(piece.text if piece.kind == "text" else "[native block]" for piece in prompt))


def _summary(message: Message) -> Json:
    about: Json = {"role": message.role, "pieces": [_piece(content) for content in message.content]}
    if message.role == "assistant":
        about |= {"origin": f"{message.provider}/{message.model}", "stop": message.stop_reason}
    elif message.role == "toolResult":
        about |= {"origin": message.tool_name, "id": message.tool_call_id, "failed": message.is_error}
    return about


def _piece(content: AnyContent) -> Json:
    match content.kind:
        case "text":
            return _block("text", content.text, signature=content.text_signature)
        case "thinking":
            return _block("thinking", content.thinking, signature=content.thinking_signature)
        case "toolCall":
            arguments = content.arguments_text or msgspec.json.encode(content.arguments).decode()
            return {
                **_block("toolCall", arguments, signature=content.thought_signature),
                "name": content.name,
                "id": content.id,
            }
        case "image" | "file":
            where = content.url or (content.file_id if content.kind == "file" else None)
            size = f"{len(content.data) * 3 // 4:,} bytes" if content.data is not None else where or ""
            return _block(content.kind, f"{content.mime_type or 'unknown type'}, {size}")
        case "native":
            kind = content.block.get("type")
            return _block("native", f"{content.protocol} {kind if isinstance(kind, str) else 'block'}")


def _block(kind: str, text: str, signature: str | None = None) -> Json:
    piece: Json = {"kind": kind, "text": _shortened(text)}
    if len(text) > _EXCERPT:
        piece["more"] = len(text) - _EXCERPT
    if signature:
        piece["signed"] = True
    return piece


def _shortened(text: str) -> str:
    # Half a surrogate pair cannot be encoded.
    return text[:_EXCERPT].encode("utf-8", "replace").decode()


def align(stored: Sequence[Message], sent: Sequence[Message]) -> list[tuple[int | None, int | None, bool]]:
    """Align sent messages with stored ones: (stored, sent, whether they are the same object).

    An unchanged message is the same object in both. Between two of those, messages with the same role and the same
    origin or call are paired; any other message is in a row by itself.
    """
    places = {id(message): at for at, message in enumerate(sent)}
    rows: list[tuple[int | None, int | None, bool]] = []
    reached = 0
    waiting: list[int] = []
    for at, message in enumerate(stored):
        found = places.get(id(message))
        if found is None or found < reached:
            waiting.append(at)
            continue
        rows += _align_changed(stored, waiting, sent, range(reached, found))
        rows.append((at, found, True))
        waiting, reached = [], found + 1
    return rows + _align_changed(stored, waiting, sent, range(reached, len(sent)))


def _align_changed(
    stored: Sequence[Message], old: Sequence[int], sent: Sequence[Message], new: Sequence[int]
) -> list[tuple[int | None, int | None, bool]]:
    rows: list[tuple[int | None, int | None, bool]] = []
    left = list(new)
    for at in old:
        match = next((there for there in left if _is_made_of(stored[at], sent[there])), None)
        if match is None:
            rows.append((at, None, False))
            continue
        while left[0] != match:
            rows.append((None, left.pop(0), False))
        left.pop(0)
        rows.append((at, match, False))
    return rows + [(None, there, False) for there in left]


def _is_made_of(given: Message, sent: Message) -> bool:
    if given.role != sent.role:
        return False
    if given.role == "assistant" and sent.role == "assistant":
        return (given.model, given.response_id) == (sent.model, sent.response_id)
    if given.role == "toolResult" and sent.role == "toolResult":
        return given.tool_name == sent.tool_name
    return True


def _cached(document: Document, model: Model, policy: Policy, request: Request) -> Json | None:
    """Count the turns that are the same as in the last request to this model, so that a prompt cache may hold them.

    That request is the conversation before the last turn of the model. None if the model has no turn yet, or if the
    turns of the wire do not stand in one list.
    """
    context = document.prompt.context
    ownership = Ownership(model, policy.same_model, policy.routers)
    own = [at for at, it in enumerate(context.messages) if it.role == "assistant" and ownership.is_own(it)]
    if not own:
        return None
    before = replace(context, messages=context.messages[: own[-1]])
    try:
        earlier = document._replace(prompt=replace(document.prompt, context=before)).prepare(model, policy)
    except (EmptyConversation, DoesNotFit):
        return None
    key = get_protocol(model.protocol).turns_key
    if key is None:
        return None
    old, new = cast("list[object]", earlier.body[key]), cast("list[object]", request.body[key])
    same = next(
        (at for at, (was, now) in enumerate(zip(old, new, strict=False)) if was != now), min(len(old), len(new))
    )
    return {"turns": same, "of": len(new), "sentBefore": len(old)}
