"""Binds a request: leaves out reasoning that the target would refuse, and makes the stamp for the reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias, cast

import msgspec
from msgspec.structs import replace

from segue.conversation.content import ThinkingContent
from segue.conversation.context import Context
from segue.conversation.marks import digest_value, mark_of, marks_of, stored_digest
from segue.conversation.messages import AssistantMessage, Message
from segue.errors import UnknownProtocol
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.projection.projector import Projection, refuse_changes
from segue.projection.report import Report, place_of
from segue.projection.workspace.ownership import ACCOUNT_BOUND, is_same_account, made_with
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.facts import PrefixForm
from segue.protocols.kit.json_values import Block, Wire
from segue.protocols.kit.protocol import Protocol
from segue.protocols.registry import resolve_rules
from segue.requests.binding.digests import DigestCache, ReplyTurn, TurnDigests
from segue.requests.binding.run import BoundRun, Frame, choose_run
from segue.requests.binding.stamp import Stamp
from segue.requests.binding.withholding import note_withheld, without_blocks

Encode: TypeAlias = Callable[[Projection], Wire]
MakeStamp: TypeAlias = Callable[[], Stamp]
_DEFAULT_POLICY: Final = Policy()


class Sender(NamedTuple):
    """The account a request is sent with, and what is known to be refused in addition to what its replies remember."""

    endpoint: Endpoint
    account: str | None = None
    refused: frozenset[str] = frozenset()
    cache: DigestCache | None = None
    """What was digested for earlier requests, where the same turns come again."""


class Bound(NamedTuple):
    """A request whose reasoning the target accepts: the projection, and the body and stamp if they were made.

    `content` is the body as JSON, if it was needed.
    """

    projection: Projection
    wire: Wire | None = None
    stamp: MakeStamp | None = None
    content: bytes | None = None


def prefix_form(codec: Protocol, endpoint: Endpoint) -> PrefixForm | None:
    """Return how a target's bodies are read, if it binds reasoning to its prefix."""
    return codec.prefix if endpoint.rules.bound_prefix and codec.turns_key else None


def bind(
    given: Context,
    projection: Projection,
    sender: Sender,
    codec: Protocol,
    encode: Encode,
    *,
    policy: Policy | None = None,
) -> Bound:
    """Leave out the reasoning that the target would refuse. A conversation without reasoning costs nothing."""
    endpoint, account = sender.endpoint, sender.account
    form, policy = prefix_form(codec, endpoint), policy or _DEFAULT_POLICY
    if form is None or not any(map(_is_signed, projection.context.messages)):
        return Bound(projection)
    wire = encode(projection)
    content, digests = _read(form, codec, wire, projection, sender.cache)
    replies = digests.replies
    frame = make_frame(form, wire, projection, sender)
    check = account_check(account, endpoint, given.messages)
    run = choose_run(replies, frame, check)
    if run.withheld or run.asked:
        bare = withhold(projection, given, replies, run, policy=policy, model=endpoint.model)
        wire = encode(bare)
        content, verified = _read(form, codec, wire, bare, sender.cache)
        if verified.last() != digests.last():
            # A turn is written differently without its reasoning: nothing after it is valid.
            everything = frozenset(mark for each in replies for mark in each.marks)
            run = choose_run(replies, replace(frame, refused=everything), check)
            bare = withhold(projection, given, replies, run, policy=policy, model=endpoint.model)
            wire = encode(bare)
            content, verified = _read(form, codec, wire, bare, sender.cache)
        projection, digests = bare, verified
    if run.asked:
        form.ask(wire)
        content = None
    return Bound(projection, wire, partial(make_stamp, frame, digests, run, sender), content)


def _read(
    form: PrefixForm, codec: Protocol, wire: Block, projection: Projection, cache: DigestCache | None
) -> tuple[bytes | None, TurnDigests]:
    """Return the digests of a body, and the body as JSON where it is compared with what was digested before."""
    key = codec.turns_key or ""
    turns, messages = cast("list[Block]", wire[key]), assistant_turns(projection.context.messages)
    if cache is None:
        return None, TurnDigests(form).followed_by(turns, messages)
    content = msgspec.json.encode(wire)
    start = msgspec.json.encode({**wire, key: [msgspec.Raw(b"\0")]}).index(b"\0")
    return content, TurnDigests.cached(form, turns, messages, (content, start), cache)


def make_frame(form: PrefixForm, wire: Block, projection: Projection, sender: Sender) -> Frame:
    """Return what the reasoning of a body is compared with."""
    window = projection.window
    endpoint, account, refused, _ = sender
    return Frame(
        system=digest_value(form.system(wire)),
        tools=digest_value(form.tools(wire)),
        account=account,
        refused=projection.refused | refused if refused else projection.refused,
        can_ask=can_ask(form, wire, endpoint),
        is_cut=window is not None and bool(window.lean or window.gone),
    )


def can_ask(form: PrefixForm, wire: Block, endpoint: Endpoint) -> bool:
    """Whether the server can be asked to drop reasoning of a request."""
    return endpoint.rules.drops_unbound and form.ask(dict(wire))


def make_stamp(frame: Frame, digests: TurnDigests, run: BoundRun, sender: Sender) -> Stamp:
    """Return the stamp of a request; `digests` are those of its last turns."""
    endpoint, account, refused, _ = sender
    return Stamp(
        system=frame.system,
        tools=frame.tools,
        messages=stored_digest(digests.last()),
        newest=run.newest,
        known=run.known if run.asked else None,
        asked=run.asked,
        refused=tuple(sorted(refused)),
        account=account if endpoint.rules.bound_account != "no" else None,
    )


def account_stamp(sender: Sender, messages: Sequence[Message]) -> Stamp:
    """Return the stamp of a request where nothing is bound to its prefix; `messages` are those that are sent."""
    endpoint, account, refused, _ = sender
    bound = account if endpoint.rules.bound_account != "no" else None
    unknown = unknown_marks(messages) if bound is not None else ()
    return Stamp(account=bound, refused=tuple(sorted(refused)), unknown=unknown)


def stamp_body(codec: Protocol, endpoint: Endpoint, body: Block) -> Stamp:
    """Return the stamp of a body as it is, whoever wrote it; an empty one where the target binds nothing."""
    form = prefix_form(codec, endpoint)
    given = body.get(codec.turns_key or "")
    if form is None or not isinstance(given, list):
        return Stamp()
    turns = cast("list[Block]", given)
    newest = None
    for turn in turns:
        content = turn.get("content")
        if turn.get("role") == "assistant" and isinstance(content, list):
            found = [sign for block in cast("list[Block]", content) if (sign := form.signature(block))]
            newest = mark_of(found[-1]) if found else newest
    nobody = [(0, _NOBODY)] * len(turns)
    digests = TurnDigests(form).followed_by(turns, nobody)
    return Stamp(
        system=digest_value(form.system(body)),
        tools=digest_value(form.tools(body)),
        messages=stored_digest(digests.last()),
        newest=newest,
    )


_NOBODY: Final = AssistantMessage(content=())


def account_check(
    account: str | None, endpoint: Endpoint, messages: Sequence[Message] = ()
) -> Callable[[AssistantMessage], bool]:
    """Return a function that says whether the reasoning of a message may be sent with this account.

    `messages` is the conversation: what is not known to be made with an account belongs to the one that accepted it.
    """
    if account is None:
        return lambda _: True
    is_sure = endpoint.rules.bound_account == "refused"
    owners: dict[str | None, str | None] = {}

    def is_of_account(message: AssistantMessage) -> bool:
        made = made_with(message)
        if made is None and messages:
            if not owners:  # most conversations need none
                owners.update(_find_owners(messages))
            made = next((owners[mark] for mark in marks_of(message) if mark in owners), None)
        return is_same_account(made, account, is_sure=is_sure) or not binds_account(message, endpoint)

    return is_of_account


def _find_owners(messages: Sequence[Message]) -> dict[str | None, str | None]:
    """Return the accounts of blocks by what was made after them: the first reply after a block, or what accepted it."""
    sent = [message.sent for message in messages if type(message) is AssistantMessage and message.sent is not None]
    before = {each.before: each.account for each in reversed(sent)}
    return {**before, None: None, **{mark: each.account for each in sent for mark in each.accepted}}


def unknown_marks(messages: Sequence[Message]) -> tuple[str, ...]:
    """Return the marks of reasoning that no account is known of.

    The reply to a request shows that they are accepted.
    """
    replies = [message for message in messages if type(message) is AssistantMessage]
    unknown = [
        mark_of(piece.thinking_signature)
        for reply in replies
        for piece in reply.content
        if type(piece) is ThinkingContent and piece.thinking_signature and made_with(reply) is None
    ]
    if not unknown:
        return ()
    known = {mark for reply in replies if reply.sent is not None for mark in reply.sent.accepted}
    return tuple(mark for mark in unknown if mark not in known)


def binds_account(message: AssistantMessage, endpoint: Endpoint) -> bool:
    """Whether the reasoning of a message is bound to an account: its writer decides that, not its reader."""
    model = endpoint.model
    if (message.protocol, message.provider, message.model) == (model.protocol, model.provider, model.id):
        return endpoint.rules.bound_account in ACCOUNT_BOUND
    try:
        return resolve_rules(Model(message.model, message.provider, message.protocol)).bound_account in ACCOUNT_BOUND
    except UnknownProtocol:
        return True


def withhold(
    projection: Projection, given: Context, replies: Sequence[ReplyTurn], run: BoundRun, *, policy: Policy, model: Model
) -> Projection:
    """Return a projection without the reasoning that a run leaves out, and report it.

    Raises:
        ProjectionRefused: the policy refuses that.
    """
    stripped = strip(replies, run, policy)
    changes = sorted([*projection.report.changes, *note_withheld(given.messages, replies, run)], key=place_of)
    return with_messages(projection, stripped, Report(tuple(changes)), policy, model)


def strip(replies: Sequence[ReplyTurn], run: BoundRun, policy: Policy) -> dict[int, Message]:
    """Return the messages that replace others, by the index of those."""
    return {
        replies[index].place: without_blocks(replies[index].message, positions, policy.texts.empty_turn)
        for index, (positions, _) in run.withheld.items()
    }


def with_messages(
    projection: Projection, stripped: Mapping[int, Message], report: Report, policy: Policy, model: Model
) -> Projection:
    """Replace some messages of a projection, and its report.

    Raises:
        ProjectionRefused: the policy refuses a change.
    """
    if policy.refuse:
        refuse_changes(report, policy, model.full_name())
    messages = list(projection.context.messages)
    for place, message in stripped.items():
        messages[place] = message
    return replace(projection, context=replace(projection.context, messages=tuple(messages)), report=report)


def assistant_turns(messages: Sequence[Message], first: int = 0) -> list[tuple[int, AssistantMessage]]:
    """Return the assistant messages, which are the assistant turns of a body, with their indexes from `first` on."""
    return [(place, message) for place, message in enumerate(messages, first) if type(message) is AssistantMessage]


def _is_signed(message: Message) -> bool:
    return type(message) is AssistantMessage and any(
        piece.kind == "thinking" and piece.thinking_signature for piece in message.content
    )
