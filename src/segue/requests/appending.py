"""Changed instructions that are appended instead of edited: `Policy(instructions="append")`.

What comes before a reply stays as it was sent, so that reasoning after it stays valid and the cache is read. The
first reply to a system prompt and tools remembers them (`Sent.instructions`); a request sends those that the newest
such reply names first, and each later change as a system message where it came into force: after the newest user
message or tool result (Anthropic documentation: preserved thinking, read 2026-11-16).

A change starts over, as an edit does, if it cannot be appended: a tool with another definition under the same name, a
tool that the provider runs, a message that is not accepted in its place, or one that the window has no room for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, cast

import msgspec
from msgspec.structs import replace

from segue.conversation.content import NativeContent, SystemContent, TextContent
from segue.conversation.context import Context, Options, Prompt, Tool
from segue.conversation.messages import AssistantMessage, Message, SystemMessage, UserMessage
from segue.errors import Path
from segue.projection.policy import Policy, fill
from segue.projection.projector import Projection, project, refuse_changes
from segue.projection.report import Change, ChangeCode, Loss, Report, place_of
from segue.projection.requirements import Requirement
from segue.projection.workspace.scan import UNFINISHED
from segue.protocols.kit.codec import Endpoint
from segue.protocols.registry import get_protocol
from segue.requests.fitting import fit_request

Project: TypeAlias = Callable[[Context, Options | None], Projection]
Instructions: TypeAlias = Mapping[str, Any]
"""A system prompt and tools as plain JSON."""

_PROMPT: Final = "systemPrompt"
_ANYTHING: Final = UserMessage.of("Hello")
_PATHS: Final = (("system_prompt", _PROMPT), ("tools", "tools"))
_KEPT: Final = 20
"""How many frames and changes are kept."""


class Remembered(NamedTuple):
    """What the reply to a request remembers of its instructions."""

    instructions: Instructions
    is_appended: bool


class Appended(NamedTuple):
    """A conversation with its changed instructions appended; the given one if nothing changed.

    `places` are the indexes of the inserted messages in `context`, in order; `changed` names what differs from what
    comes first, by its path.
    """

    context: Context
    places: tuple[int, ...] = ()
    changed: tuple[Path, ...] = ()
    remembered: Remembered | None = None

    def place(self, index: int) -> int:
        """Return the index in the given conversation of a message, or of the next one for an inserted message."""
        return index - bisect_left(self.places, index)


class Known:
    """What was made for earlier requests of a conversation: the same objects are recognised and not encoded again."""

    def __init__(self) -> None:
        self._frames: list[tuple[Instructions, Context]] = []
        self._messages: list[tuple[Instructions, Instructions, frozenset[str], SystemMessage]] = []

    def frame(self, instructions: Instructions) -> Context:
        """Return a conversation with these instructions and no messages."""
        for known, frame in self._frames:
            if known == instructions:
                return frame
        frame = msgspec.convert(dict(instructions), Context)
        self._frames = [*self._frames[-_KEPT:], (instructions, frame)]
        return frame

    def find(self, old: Instructions, new: Instructions, defined: frozenset[str]) -> SystemMessage | None:
        """Return the message that changes some instructions to others."""
        for one, other, names, message in self._messages:
            if names == defined and one == old and other == new:
                return message
        return None

    def keep(self, old: Instructions, new: Instructions, defined: frozenset[str], message: SystemMessage) -> None:
        """Keep such a message."""
        self._messages = [*self._messages[-_KEPT:], (old, new, defined, message)]


def fit_appended(
    given: Context,
    projecting: Project,
    endpoint: Endpoint,
    *,
    options: Options | None,
    policy: Policy | None,
    known: Known | None = None,
) -> tuple[Projection, Remembered | None]:
    """Do what `fit_request` does, with changed instructions appended where policy and target want it.

    Raises:
        EmptyConversation, DoesNotFit: see `fit_request`.
        ProjectionRefused: the policy refuses that instructions are appended.
    """
    model = endpoint.model

    def fit(context: Context) -> Projection:
        return fit_request(context, lambda asked: projecting(context, asked), model, options, policy)

    if policy is None or policy.instructions != "append" or not endpoint.rules.has("tool_changes"):
        return fit(given), None
    now = _read_instructions(given)
    appended = _Appending(given, now, endpoint, policy, known or Known()).run()
    if appended is not None and appended.context is given:
        return fit(given), appended.remembered
    if appended is not None:
        projection = fit(appended.context)
        if _holds_all(projection, appended):
            located = _located(projection, appended)
            if policy.refuse:
                refuse_changes(located.report, policy, model.full_name())
            return located, appended.remembered
    return fit(given), Remembered(now, is_appended=False)


def _read_instructions(context: Context) -> Instructions:
    given = Context(system_prompt=context.system_prompt, tools=context.tools)
    return cast("Instructions", msgspec.json.decode(msgspec.json.encode(given)))


class _Appending:
    """Appends the changed instructions of one conversation."""

    def __init__(self, given: Context, now: Instructions, endpoint: Endpoint, policy: Policy, known: Known) -> None:
        self.given = given
        self.known = known
        self.now = now
        self.endpoint = endpoint
        self.codec = get_protocol(endpoint.model.protocol)
        self.policy = policy
        self.defined: dict[str, Instructions] = {}
        """All functions so far, by name."""

    def run(self) -> Appended | None:
        """Return the conversation to send; None if a change cannot be appended."""
        first, changes = self._remembered()
        if first is None:
            return Appended(self.given, remembered=Remembered(self.now, is_appended=False))
        messages, in_force = self.given.messages, first
        inserted: list[tuple[int, SystemMessage]] = []
        remembered = None
        if self.now != (changes[-1][1] if changes else first):
            changes.append((len(messages), self.now))
            remembered = Remembered(self.now, is_appended=True)
        if not changes:
            return Appended(self.given)
        self._define(first)
        for at, instructions in changes:
            message = self._change(in_force, instructions)
            if message is None or (message.content and not _follows_user(messages, at)):
                return None
            if message.content:
                inserted.append((at, message))
            self._define(instructions)
            in_force = instructions
        changed = tuple((path,) for path, key in _PATHS if first.get(key) != self.now.get(key))
        return Appended(*self._insert(first, inserted), changed, remembered)

    def _define(self, instructions: Instructions) -> None:
        for tool in _tools_of(instructions):
            if name := _name_of(tool):
                self.defined.setdefault(name, tool)

    def _remembered(self) -> tuple[Instructions | None, list[tuple[int, Instructions]]]:
        """Find the instructions that come first, and the later ones with the replies that remember them."""
        first: Instructions | None = None
        changes: list[tuple[int, Instructions]] = []
        for at, message in enumerate(self.given.messages):
            if type(message) is not AssistantMessage or message.sent is None or message.stop_reason in UNFINISHED:
                continue
            found = message.sent.instructions
            if found is None:
                continue
            if not message.sent.is_appended:
                first, changes = found, []
            elif first is not None:
                changes.append((at, found))
        return first, changes

    def _insert(
        self, first: Instructions, inserted: Sequence[tuple[int, SystemMessage]]
    ) -> tuple[Context, tuple[int, ...]]:
        messages: list[Message] = []
        places: list[int] = []
        start = 0
        for at, message in inserted:
            messages += self.given.messages[start:at]
            places.append(len(messages))
            messages.append(message)
            start = at
        messages += self.given.messages[start:]
        summaries = tuple(
            replace(summary, covers=summary.covers + sum(at < summary.covers for at, _ in inserted))
            for summary in self.given.summaries
        )
        frame = self.known.frame(first)
        context = replace(
            self.given,
            system_prompt=frame.system_prompt,
            tools=frame.tools,
            messages=tuple(messages),
            summaries=summaries,
            pins=tuple(pin + sum(at <= pin for at, _ in inserted) for pin in self.given.pins),
        )
        return context, tuple(places)

    # -- one change ----------------------------------------------------------------------------------------------------

    def _change(self, old: Instructions, new: Instructions) -> SystemMessage | None:
        """Return the message that changes instructions to others; None if there is none that does."""
        defined = frozenset(self.defined)
        message = self.known.find(old, new, defined)
        if message is None:
            texts = self._new_prompt(new.get(_PROMPT)) if old.get(_PROMPT) != new.get(_PROMPT) else ()
            tools = self._new_tools(_tools_of(old), _tools_of(new))
            if texts is None or tools is None:
                return None
            message = SystemMessage(content=(*texts, *tools))
            self.known.keep(old, new, defined, message)
        return message

    def _new_prompt(self, prompt: object) -> tuple[SystemContent, ...] | None:
        pieces = cast("list[Instructions]", prompt if isinstance(prompt, list) else [])
        if any(piece.get("type") != "text" for piece in pieces):
            return None
        text = prompt if isinstance(prompt, str) else "\n\n".join(str(piece.get("text")) for piece in pieces)
        texts = self.policy.texts
        if not text.strip():
            return (TextContent(text=texts.instructions_removed),)
        return (TextContent(text=fill(texts.instructions_replaced, text=text)),)

    def _new_tools(self, old: Sequence[Instructions], new: Sequence[Instructions]) -> tuple[SystemContent, ...] | None:
        before, after = {_name_of(tool): tool for tool in old}, {_name_of(tool): tool for tool in new}
        if [tool for tool in old if not _name_of(tool)] != [tool for tool in new if not _name_of(tool)]:
            return None  # tools that the provider runs
        added = [tool for name, tool in after.items() if name and name not in before]
        removed = [name for name in before if name and name not in after]
        is_redefined = any(self.defined.get(name, tool) != tool for name, tool in after.items() if name)
        if is_redefined or (added and not self.defined) or self.codec.tool_changes is None:
            return None
        if not added and not removed:
            return ()
        fresh = [tool for tool in added if _name_of(tool) not in self.defined]
        wire = self._encode_tools((*self.defined.values(), *fresh))
        if wire is None:
            return None
        named = [name for tool in added if (name := _name_of(tool)) in self.defined]
        definitions = [wire[_name_of(tool)] for tool in fresh]
        blocks = self.codec.tool_changes(definitions, named, removed)
        protocol = self.codec.name
        return tuple(NativeContent(protocol=protocol, block=block) for block in blocks)

    def _encode_tools(self, tools: Sequence[Instructions]) -> dict[str, Mapping[str, object]] | None:
        """Write tools as the target gets them, by name; None if it gets one under another name."""
        given = msgspec.convert(tuple(map(dict, tools)), tuple[Tool, ...])
        policy = replace(self.policy, refuse=frozenset(), fit=None)
        projection = project(Context(messages=(_ANYTHING,), tools=given), self.endpoint.model, policy=policy)
        body = self.codec.encode_request(
            Prompt(context=projection.context, options=projection.options, model=self.endpoint.model.id), self.endpoint
        )
        wire = {str(tool.get("name")): tool for tool in cast("list[Mapping[str, object]]", body.get("tools") or [])}
        return wire if wire.keys() == set(map(_name_of, tools)) else None


def _tools_of(instructions: Instructions) -> list[Instructions]:
    """Return the tools of instructions without cache marks, which change nothing."""
    tools = cast("list[Instructions]", instructions.get("tools") or [])
    return [{key: value for key, value in tool.items() if key != "cacheMark"} for tool in tools]


def _name_of(tool: Instructions) -> str:
    """Return the name of a function; empty for a tool that the provider runs."""
    return str(tool.get("name")) if tool.get("type") == "function" else ""


def _follows_user(messages: Sequence[Message], at: int) -> bool:
    """Whether a system message is accepted before this index: after a user message or a tool result."""
    for message in reversed(messages[:at]):
        if message.role in ("user", "toolResult"):
            return True
        if type(message) is AssistantMessage and message.stop_reason not in UNFINISHED:
            return False
    return False


# -- the projection ----------------------------------------------------------------------------------------------------


def _holds_all(projection: Projection, appended: Appended) -> bool:
    """Whether all inserted messages are sent as system messages: another one may have been joined to them."""
    sent = {
        id(piece) for message in projection.context.messages if message.role == "system" for piece in message.content
    }
    messages = appended.context.messages
    return all(id(piece) in sent for place in appended.places for piece in messages[place].content)


def _located(projection: Projection, appended: Appended) -> Projection:
    """Return a projection whose report names places in the given conversation, and what was appended."""
    changes = [
        replace(change, path=_given_path(change.path, appended), last=last if last is None else appended.place(last))
        for change in projection.report.changes
        for last in (change.last,)
    ]
    changes += [Change(code=ChangeCode.INSTRUCTIONS_APPENDED, path=path, loss=Loss.NONE) for path in appended.changed]
    window = projection.window
    if window is not None:
        window.lean, window.gone = appended.place(window.lean), appended.place(window.gone)
    return replace(
        projection,
        report=Report(tuple(sorted(changes, key=place_of))),
        requirements=tuple(_given_requirement(each, appended) for each in projection.requirements),
    )


def _given_path(path: Path, appended: Appended) -> Path:
    if len(path) > 1 and path[0] == "messages":
        return ("messages", appended.place(cast("int", path[1])), *path[2:])
    return path


def _given_requirement(requirement: Requirement, appended: Appended) -> Requirement:
    match requirement.kind:
        case "summaryWanted":
            first, last = appended.place(requirement.first), appended.place(requirement.last)
            return replace(requirement, first=first, last=last)
        case _:
            return replace(requirement, path=_given_path(requirement.path, appended))
