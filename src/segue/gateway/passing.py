"""Bodies that are passed on as their client wrote them: whether the target would refuse their reasoning.

Only what is known counts. Blocks about which nothing is remembered are passed on: the body has its own instructions and
tools, so they are valid as far as anybody can tell, and a refusal is learned from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import msgspec

from segue.conversation.marks import all_marks_of, digest_value, mark_of, stored_digest
from segue.conversation.messages import AssistantMessage, Message
from segue.protocols.kit.facts import PrefixForm
from segue.protocols.kit.json_values import Block
from segue.protocols.kit.protocol import Protocol
from segue.requests.binding.bind import Sender, account_check, account_stamp, assistant_turns, prefix_form
from segue.requests.binding.digests import ReplyTurn, TurnDigests
from segue.requests.binding.run import BoundRun, Frame, choose_run
from segue.requests.binding.stamp import Stamp


def pass_body(codec: Protocol, body: Block, messages: Sequence[Message], sender: Sender) -> Stamp | None:
    """Return the stamp of a body that is sent as it is; None if the target is known to refuse something in it.

    `messages` are those of the body with what is remembered of them.
    """
    replies = assistant_turns(messages)
    refused = sender.refused.union(
        *[reply.sent.dropped for _, reply in replies if reply.sent is not None and reply.sent.dropped]
    )
    form = prefix_form(codec, sender.endpoint)
    if form is not None:
        return _pass_bound(form, codec, body, replies, sender._replace(refused=refused))
    is_of_account = account_check(sender.account, sender.endpoint, messages)
    for _, reply in replies:
        if (marks := all_marks_of(reply)) and not (refused.isdisjoint(marks) and is_of_account(reply)):
            return None
    return account_stamp(sender, messages)


def _pass_bound(
    form: PrefixForm, codec: Protocol, body: Block, messages: list[tuple[int, AssistantMessage]], sender: Sender
) -> Stamp | None:
    endpoint, account, refused, cache = sender
    turns = cast("list[Block]", body.get(codec.turns_key or ""))
    signed = [_marks_in(form, turn) for turn in turns if turn.get("role") == "assistant"]
    if len(signed) != len(messages):
        return None  # what is remembered of the turns cannot be told apart
    if cache is None:
        digests = TurnDigests(form).followed_by(turns, messages)
    else:
        digests = TurnDigests.cached(form, turns, messages, (msgspec.json.encode(turns), 1), cache)
    replies = digests.replies
    if any(reply.marks != marks for reply, marks in zip(replies, signed, strict=True)):
        return None
    frame = Frame(
        system=digest_value(form.system(body)),
        tools=digest_value(form.tools(body)),
        account=account,
        refused=refused,
        can_ask=True,  # unknown blocks may be sent
    )
    is_of_account = account_check(account, endpoint, [message for _, message in messages])
    run = choose_run(replies, frame, is_of_account)
    if run.withheld and not (form.asks(body) and _is_end(run, replies)):
        return None
    if any(reply.marks and not is_of_account(reply.message) for reply in replies):
        return None  # the client may ask the server to drop it, but another account never gets it
    passed = tuple(mark for marks in signed for mark in marks)
    return Stamp(
        system=frame.system,
        tools=frame.tools,
        messages=stored_digest(digests.last()),
        newest=passed[-1] if passed else None,
        passed=passed,
        unknown=run.asked,
        account=account if endpoint.rules.bound_account != "no" else None,
    )


def _is_end(run: BoundRun, replies: Sequence[ReplyTurn]) -> bool:
    """Whether nothing is sent after what is left out: a server that is asked drops the first that fails and the rest.

    A client may keep a summary that it had made with other instructions, and its thinking: opencode 1.18.33 does.
    """
    is_left = False
    for index, reply in enumerate(replies):
        left = set(run.withheld.get(index, ((), ""))[0])
        for position in range(len(reply.marks)):
            if is_left and position not in left:
                return False
            is_left = is_left or position in left
    return True


def _marks_in(form: PrefixForm, turn: Block) -> tuple[str, ...]:
    content = turn.get("content")
    if not isinstance(content, list):
        return ()
    return tuple(mark_of(found) for block in cast("list[Block]", content) if (found := form.signature(block)))
