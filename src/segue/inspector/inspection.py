"""The data of the page: a conversation next to the request that a target would get.

An `Inspection` is made once for a conversation and a target. The page asks for its summary, then for the rows that are
on the screen: the work of one answer does not grow with the conversation, except for making the request itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple, cast, final

import msgspec
from msgspec.structs import replace

from segue.conversation.context import Context
from segue.conversation.limits import parse_json
from segue.conversation.messages import Message
from segue.errors import (
    ConversationError,
    LoadError,
    ProjectionError,
    SettingsError,
    UnknownFormat,
    UnknownModel,
    render_path,
)
from segue.foundation.json_text import encode_valid_json
from segue.foundation.plurals import counted
from segue.histories.kit.history import History
from segue.histories.opening import How, OpenedDocument, open_source, open_value
from segue.histories.registry import get_format
from segue.inspector.alignment import align
from segue.inspector.dropped import find_dropped
from segue.inspector.pieces import Json
from segue.inspector.side_by_side import SideBySide, place_changes
from segue.models.catalogue import Catalogue
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.projection.projector import Projection, project
from segue.projection.report import SENTENCES, ChangeCode, Loss, describe_loss, describe_size
from segue.projection.workspace.ownership import Ownership
from segue.protocols.api import find_checked, taken_options
from segue.protocols.kit.codec import Violation
from segue.protocols.registry import PROTOCOLS, get_protocol
from segue.requests.check import check, compare_requests
from segue.requests.prepare import Request
from segue.requests.tokens import measure

_SUGGESTED: Final = 3
"""How many targets the page starts with."""
_COMMON_TARGETS: Final = ("anthropic/claude-opus-4-8", "openai/gpt-5.4", "google/gemini-3.1-pro-preview")
"""What is suggested where the conversation names fewer models: one for each of three protocols."""
_MOST_VIOLATIONS: Final = 20
"""How many of the violations of a request the page gets."""
_LONGEST_LINE: Final = 120
"""The characters of a message that is listed because the model no longer sees it."""
_UNSENDABLE: Final = (ConversationError, ProjectionError)
"""What is raised for a conversation that no request can be made from, such as one with an image that is not base64."""

_NAMING: Final = "`segue ui FILE --from`"
"""What a user of the page and of `segue ui` can do about a file that is not recognised."""


@final
class OpenedConversation(NamedTuple):
    """A conversation of a file or of a pasted text, with the lines of all conversations if there are several.

    Of a session of an agent, `source` names the agent, and `left_out` has a sentence for each kind of content that is
    in the session and not in its messages.
    """

    document: OpenedDocument
    lines: Sequence[tuple[int, bytes]] = ()
    nth: int = 1
    source: str = ""
    left_out: Sequence[str] = ()

    def open_nth(self, nth: int, protocol: str | None) -> OpenedConversation:
        """Read another conversation of the same file; the nearest if there is none with this number.

        Raises:
            LoadError, DecodeError: the line is not a conversation.
        """
        nth = min(max(nth, 1), max(len(self.lines), 1))
        if not self.lines:
            return self
        number, line = self.lines[nth - 1]
        return OpenedConversation(_read_line(number, line, protocol), self.lines, nth)


def open_conversation(source: object, name: str, protocol: str | None) -> OpenedConversation:
    """Read a conversation; of a file with one conversation on a line, the first.

    `source` is the data of a file, or the name of a session, such as `codex:ID`.

    Raises:
        LoadError, DecodeError: the data is not a conversation.
    """
    try:
        opened = open_source(source, How(format=protocol), name=name)
        if opened.document is None:
            lines = list(opened.lines)
            return OpenedConversation(_read_line(*lines[0], protocol), lines)
    except UnknownFormat as error:
        raise LoadError(str(error).replace("format=...", _NAMING)) from error
    history = opened.document.history
    if history is None:
        return OpenedConversation(opened.document)
    return OpenedConversation(
        opened.document, source=get_format(history.origin.format).title, left_out=_left_out(history)
    )


def _read_line(number: int, line: bytes, protocol: str | None) -> OpenedDocument:
    return open_value(parse_json(line), How(format=protocol), line=number, data=line)


def _left_out(history: History) -> list[str]:
    counts = Counter(change.code for change in history.report.changes if change.loss == Loss.CONTENT)
    return [f"{count} x {code.value}: {SENTENCES[code]}" for code, count in counts.items()]


def describe(opened: OpenedConversation) -> Json:
    """Return what the page shows of a conversation before there is a target."""
    context = opened.document.prompt.context
    return {
        "source": opened.source or opened.document.protocol or "a stored conversation",
        "messages": len(context.messages),
        "tools": len(context.tools),
        "writers": [name for name, _ in _writers(context)],
        "isRequest": isinstance(opened.document.body, Mapping),
        "leftOut": opened.left_out,
        "nth": opened.nth,
        "conversations": max(len(opened.lines), 1),
    }


def describe_given(document: OpenedDocument) -> Json:
    """Return a request verbatim, indented, and what its provider would refuse in it."""
    body, protocol = document.body, document.protocol
    if not isinstance(body, Mapping) or protocol is None:
        return {"body": "", "violations": []}
    shown = msgspec.json.format(encode_valid_json(body), indent=2).decode()
    return {"body": shown, "violations": _sentences(check(body, protocol=protocol))}


def _sentences(violations: Sequence[Violation]) -> list[str]:
    shown = [f"{render_path(violation.path)}: {violation.message}" for violation in violations[:_MOST_VIOLATIONS]]
    return [*shown, f"and {left} more"] if (left := len(violations) - _MOST_VIOLATIONS) > 0 else shown


def suggest_targets(document: OpenedDocument, catalogue: Catalogue) -> list[str]:
    """Name three targets: the model that a request names, the last writers of the conversation, and common models."""
    writers = [name for name, protocol in _writers(document.prompt.context) if protocol in PROTOCOLS]
    names = [*dict.fromkeys([*_named_in(document, catalogue), *writers])]
    known = [name for name in names if _is_known(name, document, catalogue)]
    taken = {protocol for name, protocol in _writers(document.prompt.context) if name in known}
    common = [name for name in _COMMON_TARGETS if name not in known and _is_known(name, document, catalogue)]
    # A target with another protocol shows more than a second one with the same.
    common.sort(key=lambda name: find_target(name, document, catalogue).protocol in taken)
    return [*known, *common][:_SUGGESTED]


def _named_in(document: OpenedDocument, catalogue: Catalogue) -> list[str]:
    """Return the full name of the model that a request names, if it is in the catalogue."""
    if not isinstance(document.body, Mapping) or document.protocol is None:
        return []
    return [find_checked(document.body, document.protocol, None, catalogue).model.full_name()]


def _writers(context: Context) -> list[tuple[str, str]]:
    """Return the full names and the protocols of the models that wrote in the conversation, the last one first."""
    seen: dict[str, str] = {}
    for message in reversed(context.messages):
        if message.role == "assistant" and message.provider and message.model:
            seen.setdefault(f"{message.provider}/{message.model}", message.protocol)
    return list(seen.items())


def _is_known(name: str, document: OpenedDocument, catalogue: Catalogue) -> bool:
    try:
        find_target(name, document, catalogue)
    except UnknownModel:
        return False
    return True


def find_target(name: str, document: OpenedDocument, catalogue: Catalogue) -> Model:
    """Find a model by its name; the name of a protocol means any model of it.

    A model that is not in the catalogue can be a target if it wrote in the conversation: its protocol is known there.

    Raises:
        UnknownModel: there is no such model; the message is for the page.
    """
    if name in PROTOCOLS:
        return Model("any", get_protocol(name).provider, name, reasoning=True)
    try:
        return catalogue.get(name)
    except UnknownModel as error:
        protocol = dict(_writers(document.prompt.context)).get(name, "")
        if protocol not in PROTOCOLS:
            nearest = f"; similar names: {', '.join(error.suggestions)}" if error.suggestions else ""
            message = f"the catalogue has no model {name!r}{nearest or '; choose one of the list, or a protocol'}"
            raise UnknownModel(message, name=name, suggestions=error.suggestions) from error
        provider, _, model_id = name.partition("/")
        return Model(model_id, provider, protocol)


def wire_json(document: OpenedDocument, model: Model, policy: Policy) -> bytes:
    """Return the exact request body, indented.

    Raises:
        ProjectionError: the conversation has no content to send, or does not fit.
        ConversationError: a part of it could never be sent.
    """
    return msgspec.json.format(document.prepare(model, policy).content, indent=2)


@final
class Inspection:
    """A conversation as one target would get it, next to the stored one, or next to what another target gets."""

    def __init__(
        self, document: OpenedDocument, model: Model, policy: Policy, beside: Inspection | None = None
    ) -> None:
        self._document = document
        self._model = model
        self._policy = policy
        self._given = document.prompt.context
        self._problem: str | None = None
        request: Request | None = None
        try:
            request = document.prepare(model, policy)
        except _UNSENDABLE as error:
            self._problem = str(error)
        self._request = request
        self.sent: Context = request.projection.context if request is not None else Context()
        left = self._given if beside is None else beside.sent
        same = (left.system_prompt, left.tools) == (self.sent.system_prompt, self.sent.tools)
        rows = align(left.messages, self.sent.messages)
        self.side: SideBySide = SideBySide(left, self.sent, rows, has_same_instructions=same and request is not None)
        self._changes = request.report.changes if request is not None else ()
        if beside is None:
            self.side.changes = place_changes(self.side.pairs, self._changes)

    def summary(self) -> Json:
        """Return what the page shows of the target, without the rows."""
        counts = Counter(change.loss.value for change in self._changes)
        kinds = Counter((change.loss, change.code) for change in self._changes)
        about: Json = {
            "name": self._model.full_name(),
            "protocol": self._model.protocol,
            "options": list(taken_options(self._model)),
            "counts": {loss.value: counts[loss.value] for loss in Loss},
            "sizes": {loss.value: self._size(loss) for loss in Loss},
            "kinds": [
                {
                    "code": code.value,
                    "loss": loss.value,
                    "dropped": describe_loss(code, loss),
                    "sentence": SENTENCES[code],
                    "count": count,
                }
                for (loss, code), count in kinds.items()
            ],
            **self.side.summary(),
            "length": self._length(),
        }
        if self._problem is not None:
            about |= {"problem": self._problem, "changed": [], "notSent": []}
        return about

    def _size(self, loss: Loss) -> str:
        """Say how many messages, and of a cut how many tokens, the changes of one loss concern."""
        changes = [change for change in self._changes if change.loss == loss]
        places = {change.path[1] for change in changes if change.messages}
        if not places:
            return counted(len(changes), "change")
        return describe_size([change for change in changes if change.tokens]) or counted(len(places), "message")

    @cached_property
    def facts(self) -> Json:
        """Compute what takes longer than the summary: what the provider would refuse, and what a cache may hold."""
        request = self._request
        if request is None:
            return {}
        found = check(request.body, protocol=self._model.protocol, model=self._model)
        return {
            "url": _url(request),
            "bytes": len(request.content),
            "required": [str(requirement) for requirement in request.requirements],
            "violations": _sentences(found),
            "dropped": self._find_dropped(request),
            "cache": self._find_cached(request),
        }

    def _find_dropped(self, request: Request) -> list[str]:
        """List the messages that the model no longer sees, those first that matter most."""
        window = request.projection.window
        if window is None or not (window.lean or window.gone):
            return []
        found = find_dropped(self._given, request.projection, self._model)
        lines: list[str] = []
        for each in found[:_MOST_VIOLATIONS]:
            message = self._given.messages[each.index]
            text = " ".join(piece.text for piece in message.content if piece.kind == "text")
            shown = " ".join(text[:_LONGEST_LINE].split())
            what = "left out" if each.is_gone else "shortened"
            lines.append(f"message {each.index} ({message.role}, {what}, {each.tokens:,} tokens): {shown}")
        if len(found) > _MOST_VIOLATIONS:
            lines.append(f"and {len(found) - _MOST_VIOLATIONS:,} more; `segue show FILE --dropped` lists them")
        return lines

    def compare_with(self, before: OpenedDocument) -> Json:
        """Compare the request with the one that the same target would get of `before`: what it does not continue.

        Raises:
            ProjectionError, ConversationError: one of the two cannot be sent.
        """
        request = self._request
        if request is None:
            raise ProjectionError(self._problem or "")
        earlier = before.prepare(self._model, self._policy)
        change = compare_requests(request.body, earlier.body, protocol=self._model.protocol, model=self._model)
        withheld = [it for it in self._changes if it.code == ChangeCode.REASONING_WITHHELD]
        left_out = [f"{render_path(it.path)}: {it.detail}" for it in withheld[:_MOST_VIOLATIONS]]
        shown: Json = {"withheld": len(withheld), "leftOut": left_out}
        if change is None:
            return shown
        reasoning = [render_path(path) for path in change.reasoning[:_MOST_VIOLATIONS]]
        shown |= {"where": render_path(change.path), "message": change.message, "tokens": change.tokens}
        shown |= {"invalid": len(change.reasoning), "reasoning": reasoning}
        return shown | ({"cost": change.cost} if change.cost is not None else {})

    def _length(self) -> Json | None:
        """Estimate how much of the window the conversation takes, what is cut, and what the input costs."""
        try:
            projection = self._request.projection if self._request is not None else self._project()
        except _UNSENDABLE:
            return None
        length = measure(self._document.prompt, self._model, projection)
        shown: Json = {"whole": length.whole, "sent": length.sent, "limit": length.limit, "fits": length.fits}
        window = projection.window
        if window is not None and not length.fits:
            shown |= {"tooSmall": length.too_small, "shortened": window.lean, "leftOut": window.gone}
        return shown | ({"cost": length.cost} if length.cost is not None else {})

    def _project(self) -> Projection:
        """Project a conversation that cannot be sent: it has a length all the same."""
        prompt, policy = self._document.prompt, replace(self._policy, refuse=frozenset())
        return project(prompt.context, self._model, options=prompt.options, policy=policy)

    def _find_cached(self, request: Request) -> Json | None:
        """Count the turns that are the same as in the last request to this model: a prompt cache may hold them.

        That request is the conversation before the last turn of the model. None if the model has no turn yet, or if the
        turns of the wire are not in one list.
        """
        document, model, policy = self._document, self._model, self._policy
        ownership = Ownership(model, policy.same_model, policy.routers)
        messages = self._given.messages
        own = next((at for at in range(len(messages) - 1, -1, -1) if _is_own(messages[at], ownership)), None)
        key = get_protocol(model.protocol).turns_key
        if own is None or key is None:
            return None
        before = replace(self._given, messages=messages[:own])
        try:
            earlier = document._replace(prompt=replace(document.prompt, context=before)).prepare(model, policy)
        except _UNSENDABLE:
            return None
        old, new = cast("list[object]", earlier.body[key]), cast("list[object]", request.body[key])
        same = next(
            (at for at, (was, now) in enumerate(zip(old, new, strict=False)) if was != now), min(len(old), len(new))
        )
        return {"turns": same, "of": len(new), "sentBefore": len(old)}


def _is_own(message: Message, ownership: Ownership) -> bool:
    return message.role == "assistant" and ownership.is_own(message)


def _url(request: Request) -> str | None:
    """Return the URL of a request; None for a model without one, such as one of an editor."""
    try:
        return request.url
    except SettingsError:
        return None
