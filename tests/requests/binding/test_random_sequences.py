"""Random sequences of turns, edits, forks, imports, cuts, switches, accounts and reloads against the strict server.

Nothing is refused, nothing that the server would accept is left out where what it was made after is known, and whatever
is left out is in the report.
"""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from bound_state.strict_server import StrictServer, blocks_of, prefix_of
from bound_state.talking import LOOK, OPUS, Talk
from segue import ChangeCode, Model, Options, Policy, UserMessage, get_model
from segue.models.readers import reads_reasoning

MODELS = (OPUS, get_model("anthropic/claude-sonnet-5-5"), get_model("anthropic/claude-opus-5"))
SMALL = tuple(replace(model, context_window=3000) for model in MODELS)


def reads(writer: str, reader: str) -> bool:
    return reads_reasoning("anthropic", writer, "anthropic", reader)


class Walk:
    """One random conversation."""

    def __init__(self, seed: int, models: tuple[Model, ...]) -> None:
        self.random = random.Random(seed)
        self.models = models
        self.server = StrictServer(reads=reads)
        self.talk = Talk(self.server, models[0], tools=(LOOK,), policy=Policy(), options=Options(max_tokens=500))
        self.account = "org-a"
        self.given_up = 0

    def step(self) -> None:
        """Do something, then send a request."""
        chance, talk = self.random, self.talk
        action = chance.choice(
            ("nothing",) * 5
            + ("system", "tools", "edit", "fork", "forget", "reload", "switch", "account", "unthink", "drop", "back")
        )
        messages = talk.context.messages
        replies = [place for place, message in enumerate(messages) if message.role == "assistant"]
        match action:
            case "system":
                talk.change(system_prompt=chance.choice(("Be brief.", "Be kind.", None)))
            case "tools":
                talk.change(tools=chance.choice(((LOOK,), (LOOK, replace(LOOK, name="listen")))))
            case "edit" if messages:
                users = [place for place, message in enumerate(messages) if message.role == "user"]
                if users:
                    talk.edit(chance.choice(users), lambda _: UserMessage.of(f"edited {chance.random()}"))
            case "fork" | "back" if replies:
                talk.change(messages=messages[: chance.choice(replies)])
                if not talk.context.messages or talk.context.messages[-1].role != "user":
                    talk.change(messages=talk.context.messages)
            case "forget" if chance.random() < 0.3:
                talk.forget()
            case "reload":
                talk.reload()
            case "switch":
                talk.model = chance.choice(self.models)
            case "account":
                self.account = chance.choice(("org-a", "org-b"))
            case "unthink":
                self.server.thinks = chance.choice((0, 1, 1, 2))
            case "drop" if replies:
                place = chance.choice(replies)
                pieces = [piece for piece in talk.reply(place).content if piece.kind == "thinking"]
                if pieces:
                    gone = chance.choice(pieces)
                    talk.edit(
                        place,
                        lambda message: replace(
                            message, content=tuple(piece for piece in message.content if piece is not gone)
                        ),
                    )
            case _:
                pass
        self.send()

    def send(self) -> None:
        talk, chance = self.talk, self.random
        if chance.random() < 0.4:
            self.server.calls.append(("look", {"n": chance.randrange(5)}))
        messages = talk.context.messages
        is_looping = bool(messages) and messages[-1].role == "toolResult"
        talk.ask(None if is_looping else f"question {chance.randrange(9)}", account=self.account)
        self.check()
        last = talk.reply(-1)
        if last.tool_calls():
            talk.answer_call("seen " * chance.choice((1, 200)))

    def check(self) -> None:
        """Check what was left out: it is reported, and the server would not have accepted it."""
        talk, request = self.talk, self.talk.request
        body = self.server.bodies[-1]
        sent = [signature for _, _, signature in blocks_of(body)]
        context = talk.context
        unsent = [
            (place, at, piece)
            for place, message in enumerate(context.messages[:-1])
            if message.role == "assistant" and reads(message.model, talk.model.id)
            for at, piece in enumerate(message.content)
            if piece.kind == "thinking" and piece.thinking_signature not in sent
        ]
        paths = {change.path for change in request.report.changes}
        changed = {path[1] for path in paths if len(path) > 1}
        for place, at, _ in unsent:
            assert ("messages", place, "content", at) in paths or place in changed or _is_cut(request)
        if not talk.model.id.endswith("5-5") or _is_cut(request):
            return
        # Would the server have accepted a block more at the end of the run?
        turns = [turn for turn, message in enumerate(body["messages"]) if message["role"] == "assistant"]
        known = [message for message in context.messages[:-1] if message.role == "assistant"]
        if len(turns) != len(known):
            return
        newest = next((signature for _, _, signature in reversed(list(blocks_of(body)))), None)
        refused = {change.path for change in request.report.changes if "refused or dropped" in change.detail}
        for turn, message in zip(reversed(turns), reversed(known), strict=True):
            place = context.messages.index(message)
            first = next((piece for piece in message.content if piece.kind == "thinking"), None)
            if first is None or first.thinking_signature is None:
                continue
            if first.thinking_signature in sent:
                break
            record = self.server.made[first.thinking_signature]
            is_valid = (
                reads(record["model"], talk.model.id)
                and (not record["binds_account"] or record["account"] == self.account)
                and record["prefix"] == prefix_of(body, turn)
                and (newest is None or record["before"] == newest)
                and message.sent is not None
                and bool(message.sent.messages)
                and not any(path[1] == place for path in refused if len(path) > 1)
            )
            self.given_up += is_valid
            assert not is_valid, (turn, message, request.report.changes)


def _is_cut(request) -> bool:
    return bool(
        request.report.of(
            ChangeCode.RESULT_SHORTENED, ChangeCode.TURNS_DROPPED, ChangeCode.SUMMARY_USED, ChangeCode.MEDIA_SHORTENED
        )
    )


@pytest.mark.parametrize("models", [MODELS, SMALL], ids=["wide windows", "small windows"])
@pytest.mark.parametrize("walks", [5, pytest.param(1000, marks=pytest.mark.proof)])
def test_no_request_is_refused_and_nothing_valid_is_given_up(models, walks):
    for seed in range(walks):
        walk = Walk(seed, models)
        try:
            for _ in range(25):
                walk.step()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        assert walk.given_up == 0
