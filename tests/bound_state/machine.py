"""Random conversations against the strict emulator: what people and programs do between two requests.

A `Walk` holds a conversation and sends it in one of the ways that the library offers. After each request it checks the
laws of bound state:

- Never refused: the emulator refuses no request because of reasoning that came back. One exception: nobody can know
  the account of imported OpenAI reasoning, and only a refusal tells. It may be refused once, while the conversation
  remembers no answer.
- Nothing given up without need: reasoning whose prefix is known, and that the emulator would accept, is sent: Claude
  thinking by its prefix and chain, reasoning items and thought signatures by their model and account or endpoint.
- Said: reasoning that is not sent, that the server dropped, or that it was asked about, is in the report. One
  exception: imported reasoning before a reply of this account seems to be of this account too.

The emulator judges; nothing here asks the library what is valid.
"""

from __future__ import annotations

import inspect
import json
import random
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, cast, final

import httpx2
from msgspec.structs import replace

from segue import (
    AssistantMessage,
    Attempt,
    Change,
    ChangeCode,
    Client,
    Context,
    Conversation,
    Message,
    Model,
    Options,
    Policy,
    Report,
    Retry,
    TextContent,
    ThinkingContent,
    ToolDefinition,
    ToolResultMessage,
    UserMessage,
    dump,
    get_model,
    load,
    prepare,
)
from segue.testing.emulator import EmulatedCall, Emulator, Step
from segue.testing.emulator.app import RecordedRequest
from segue.testing.emulator.claude import binds, claude_of

ORGANIZATIONS: Final = {"key-a": "org-a", "key-b": "org-b"}
OPTIONS: Final = Options(thinking="medium", max_tokens=1000)
PROVIDERS: Final[tuple[str, ...]] = ("anthropic", "amazon-bedrock", "openai", "google")
CUTS: Final = (
    ChangeCode.RESULT_SHORTENED,
    ChangeCode.TURNS_DROPPED,
    ChangeCode.SUMMARY_USED,
    ChangeCode.MEDIA_SHORTENED,
)
OPUS: Final = get_model("anthropic/claude-opus-5-5")
SONNET: Final = get_model("anthropic/claude-sonnet-5-5")
BEDROCK_OPUS: Final = get_model("amazon-bedrock/anthropic.claude-opus-5-5")
BEDROCK_SONNET: Final = get_model("amazon-bedrock/anthropic.claude-sonnet-5-5")
OPUS_5: Final = get_model("anthropic/claude-opus-5")
FABLE: Final = get_model("anthropic/claude-fable-5-1")
HAIKU: Final = get_model("anthropic/claude-haiku-5-5")
GPT: Final = get_model("openai/gpt-5.4")
GEMINI: Final = get_model("google/gemini-3.1-pro-preview")
MODELS: Final = (OPUS, OPUS, OPUS, SONNET, BEDROCK_OPUS, BEDROCK_SONNET, OPUS_5, FABLE, HAIKU, GPT, GEMINI)
SMALL: Final = 3000
"""Tokens of a small window: some turns with long results do not fit."""


def tool(name: str, description: str = "Looks.") -> ToolDefinition:
    """Make a tool."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    return ToolDefinition(name=name, description=description, parameters=schema)


LOOK: Final = tool("look")


@final
class Signed(NamedTuple):
    """A signed block of Claude thinking in a conversation."""

    message: int
    piece: int
    signature: str


def signed_blocks(messages: tuple[Message, ...]) -> Iterator[Signed]:
    """Find the signed thinking that Claude models made."""
    for place, message in enumerate(messages):
        if message.role != "assistant" or claude_of(message.model) is None:
            continue
        for at, piece in enumerate(message.content):
            if piece.kind == "thinking" and piece.thinking_signature:
                yield Signed(place, at, piece.thinking_signature)


def covers(change: Change, block: Signed) -> bool:
    """Whether a change is about a block or about a message that contains it."""
    path = change.path
    if path[0] != "messages" or len(path) < 2:
        return False
    first = cast("int", path[1])
    last = first if change.last is None else change.last
    if not first <= block.message <= last:
        return False
    return len(path) < 4 or path[2] != "content" or path[3] == block.piece


def transport(find: Callable[[], Emulator]) -> httpx2.MockTransport:
    """Make a transport whose requests an emulator answers, without a server."""

    def respond(request: httpx2.Request) -> httpx2.Response:
        path = request.url.raw_path.decode()
        reply = find().respond(request.method, path, dict(request.headers), request.read())
        return httpx2.Response(reply.status, headers=reply.headers, content=reply.body)

    return httpx2.MockTransport(respond)


class Walk:
    """One conversation, its accounts, and the emulator that answers."""

    def __init__(
        self,
        seed: int = 0,
        *,
        models: tuple[Model, ...] = MODELS,
        emulator: Emulator | None = None,
        policy: Policy | None = None,
    ) -> None:
        self.policy = policy
        self.random = random.Random(seed)
        self.models = models
        self.emulator = emulator or Emulator(organizations=ORGANIZATIONS, strict=seed % 4 == 0, withholds=seed % 3 == 1)
        self.model = models[0]
        self.account = "key-a"
        self.way = "client"
        self.events: tuple[str, ...] = EVENTS
        self.window: int | None = None
        self.context = Context(system_prompt="Be brief.", tools=(LOOK,))
        self.unknown: set[str] = set()
        """Signatures whose prefix the library cannot know: of imports."""
        self.answered: set[str] = set()
        """Those of them that a request contained: the library may know the answer."""
        self.unusable: set[str] = set()
        """Signatures of turns that paused in a tool of the provider and that the same model did not continue."""
        self.ownerless: dict[str, str | None] = {}
        """Encrypted reasoning whose account the library cannot know, with the id of the reply that told it."""
        self.removed: set[str] = set()
        """Reasoning items that the server withheld from the model once: they are not sent again."""
        self.refused: set[bytes] = set()
        """Bodies that were refused: the program sends none twice, also after it undid the turn that remembers it."""
        self.accepted = 0
        """How many signatures the requests sent that the model read."""
        self.clients = {key: self._client(key) for key in ORGANIZATIONS}
        self.conversation: Conversation | None = None
        self.report = Report()
        self.sent: RecordedRequest | None = None
        self.log: list[str] = []

    def _client(self, key: str) -> Client:
        keys: dict[str, str] = dict.fromkeys(PROVIDERS, key)
        return Client(
            api_key=keys, retry=Retry(max_retries=0), transport=transport(lambda: self.emulator), environment={}
        )

    def close(self) -> None:
        """End the clients."""
        self.leave()
        for client in self.clients.values():
            client.close()

    def leave(self) -> None:
        """End the open `Conversation`: something else than a request happens to the history."""
        if self.conversation is not None:
            self.conversation.close()
            self.conversation = None

    # -- sending -------------------------------------------------------------------------------------------------------

    @property
    def target(self) -> Model:
        """The model with its window."""
        return self.model if self.window is None else replace(self.model, context_window=self.window)

    def ask(self, text: str | None, *steps: Step, way: str = "client", is_checked: bool = True) -> AssistantMessage:
        """Send the conversation with a user message, if any, and check the laws."""
        self.emulator.script.add(*steps)
        self.way = way
        if way != "conversation":
            self.leave()
        given = self.context if text is None else self.context.add(UserMessage.of(text))
        start = len(self.emulator.requests)
        reply = getattr(self, f"_by_{way}")(given, text)
        self.sent = self.emulator.requests[-1]
        self.context = given.add(reply)
        if is_checked:
            self.check(given, self.emulator.requests[start:])
        for request in self.emulator.requests[start:]:
            self.ownerless.update(dict.fromkeys(self.ownerless.keys() & _encrypted_in(request), reply.response_id))
        return reply

    def signatures(self) -> list[str]:
        """Give the signatures of Claude thinking in the conversation."""
        return [block.signature for block in signed_blocks(self.context.messages)]

    def sent_signatures(self) -> list[str]:
        """Give those that the last request sent."""
        assert self.sent is not None, "a request was sent"
        return [signature for _, signature in _signatures_in(self.sent)]

    def _by_client(self, given: Context, _: str | None, *, stream: bool = False) -> AssistantMessage:
        attempts: list[Attempt] = []
        options = replace(OPTIONS, stream=stream)
        client = self.clients[self.account]
        reply = client.complete(given, self.target, options=options, policy=self.policy, on_attempt=attempts.append)
        self.report = attempts[-1].report
        return reply

    def _by_stream(self, given: Context, _: str | None) -> AssistantMessage:
        return self._by_client(given, None, stream=True)

    def _by_conversation(self, given: Context, text: str | None) -> AssistantMessage:
        if self.conversation is None:
            client = self.clients[self.account]
            self.conversation = Conversation(
                self.target, client=client, context=self.context, options=OPTIONS, policy=self.policy
            )
        else:
            self.conversation.add(*given.messages[len(self.conversation.messages) : -1 if text is not None else None])
        reply = self.conversation.ask(*(() if text is None else (text,)), model=self.target)
        self.report = self.conversation.attempts[-1].report
        return reply

    def _by_prepare(self, given: Context, _: str | None) -> AssistantMessage:
        """Send with a program's own HTTP: `prepare` and `Request.decode`."""
        organization = ORGANIZATIONS[self.account]
        named: dict[str, Any] = {"account": organization}
        accepted = {name: named[name] for name in named if name in inspect.signature(prepare).parameters}
        request = prepare(given, self.target, options=OPTIONS, policy=self.policy, **accepted)
        headers = {**request.headers, "authorization": f"Bearer {self.account}"}
        path = httpx2.URL(request.url).raw_path.decode()
        answer = (
            None if request.content in self.refused else self.emulator.respond("POST", path, headers, request.content)
        )
        if answer is None or (answer.status == 400 and self.model is GPT):
            self.refused.add(request.content)
            request = prepare(given, self.target, options=OPTIONS, refused=request.marks, **accepted)
            answer = self.emulator.respond("POST", path, headers, request.content)
        assert answer.status == 200, answer.body
        decoded = {name: named[name] for name in named if name in inspect.signature(request.decode).parameters}
        reply = request.decode(json.loads(answer.body), **decoded)
        note: Callable[[AssistantMessage], tuple[Change, ...]] | None = getattr(request, "note_dropped", None)
        said = () if note is None else note(reply)
        self.report = Report((*request.report.changes, *said))
        return reply

    # -- the laws ------------------------------------------------------------------------------------------------------

    def check(self, given: Context, requests: list[RecordedRequest]) -> None:
        """Check the laws for the requests of one turn."""
        refused = [each for each in requests if each.refusal is not None and not self._is_first_answer(given, each)]
        assert not refused, f"refused ({refused[0].refusal}): {refused[0].body}"
        assert not self.emulator.repeated(), "a refused body was sent again"
        last = requests[-1]
        body = json.dumps(last.body)
        blocks = list(signed_blocks(given.messages))
        paths = {each["path"] for each in last.transformations if each["type"] == "thinking_dropped"}
        names = {each["id"] for each in last.transformations if each["type"] == "reasoning"}
        self.removed.update(item["encrypted_content"] for item in _items_in(last) if item.get("id") in names)
        dropped = {signature for path, signature in _signatures_in(last) if path in paths}
        kept = [each for each in blocks if json.dumps(each.signature)[1:-1] in body and each.signature not in dropped]
        # A reply that is read shows that everything before it is accepted: nobody is asked about that.
        vouched = max((each.message for each in kept if self._is_known(given, each)), default=-1)
        for block in blocks:
            if block not in kept:
                if block.signature in self.unknown and self._seems_own(given, block):
                    continue
                assert any(covers(change, block) for change in self.report.changes), f"not in the report: {block}"
            elif (
                "block_binding" in body and block.message > vouched and block.signature in self.unknown - self.answered
            ):
                asked = self.report.of(ChangeCode.REASONING_ASKED)
                assert any(covers(change, block) for change in asked), f"asked about without a word: {block}"
                self.answered.add(block.signature)
        if not self.report.of(*CUTS):
            known = [block.signature for block in blocks if self._is_known(given, block)]
            others = [*self._known_tokens(given)]
            withheld = set(self.emulator.withheld(last, [*known, *others]))
            places: list[object] = [block for block in blocks if block.signature in withheld]
            places += [token for token in others if token in withheld]
            assert not places, f"valid, but not sent: {places} in {self.report.changes}"
            self.accepted += len([token for token in (*known, *others) if json.dumps(token)[1:-1] in body])

    def _seems_own(self, given: Context, block: Signed) -> bool:
        """Whether the first reply after imported thinking that remembers its account was made with this one.

        The server may have dropped it then, without a word. That was reported when it was not imported yet.
        """
        later = (message for message in given.messages[block.message + 1 :] if message.role == "assistant")
        account = next((each.sent.account for each in later if each.sent is not None), None)
        return account == ORGANIZATIONS[self.account]

    def _is_first_answer(self, given: Context, request: RecordedRequest) -> bool:
        """Whether a refusal told something about reasoning of which the conversation remembered no answer."""
        told = {message.response_id for message in given.messages if message.role == "assistant"} - {None}
        return any(token in self.ownerless and self.ownerless[token] not in told for token in _encrypted_in(request))

    def _is_known(self, given: Context, block: Signed) -> bool:
        """Whether the library can know what a block was made after: models without the check say nothing about it."""
        message = cast("AssistantMessage", given.messages[block.message])
        model = claude_of(message.model)
        return block.signature not in self.unknown | self.unusable and model is not None and binds(model)

    def _known_tokens(self, given: Context) -> Iterator[str]:
        """Find the reasoning items and thought signatures of which the library knows what they need."""
        for message in given.messages:
            if message.role != "assistant" or message.stop_reason in ("error", "aborted"):
                continue
            if message.protocol == GPT.protocol:
                tokens = set(_encrypted_of((message,)))
                # A client knows the name of its account with its first reply; until then replies need the key, which a
                # program's own HTTP does not tell.
                is_named = self.way == "prepare" or (message.sent is not None and message.sent.key is not None)
                if is_named and tokens.isdisjoint(self.removed):  # the items of a reply are sent together
                    yield from tokens - self.ownerless.keys()
            elif message.protocol == GEMINI.protocol:
                texts = [piece.text_signature for piece in message.content if piece.kind == "text"]
                calls = [piece.thought_signature for piece in message.content if piece.kind == "toolCall"]
                yield from (token for token in (*texts, *calls) if token)

    # -- what happens between requests ---------------------------------------------------------------------------------

    def change(self, **fields: Any) -> None:
        """Replace fields of the conversation."""
        self.leave()
        self.context = replace(self.context, **fields)

    def edit(self, place: int, edit: Callable[[Any], Message]) -> None:
        """Replace one message."""
        messages = list(self.context.messages)
        messages[place] = edit(messages[place])
        self.change(messages=tuple(messages))

    def forget(self) -> None:
        """Make the history an imported one: what its replies were made after is not known."""
        self.unknown.update(self.signatures())
        self.answered.difference_update(self.signatures())
        self.ownerless.update(dict.fromkeys(_encrypted_of(self.context.messages)))
        if hasattr(AssistantMessage, "sent"):
            messages = self.context.messages
            self.change(messages=tuple(replace(m, sent=None) if m.role == "assistant" else m for m in messages))

    def reload(self) -> None:
        """Store and load."""
        self.change(messages=load(dump(self.context)).messages)

    def restart(self) -> None:
        """Restart the program: new clients; the provider remembers."""
        self.leave()
        for client in self.clients.values():
            client.close()
        self.clients = {key: self._client(key) for key in ORGANIZATIONS}

    def results(self, text: str = "seen") -> None:
        """Answer the open calls."""
        last = self.context.messages[-1]
        assert last.role == "assistant", "calls are answered at once"
        made = [
            ToolResultMessage(tool_call_id=call.id, tool_name=call.name, content=(TextContent(text=text),))
            for call in last.tool_calls()
        ]
        self.context = self.context.add(*made)

    def import_session(self, turns: int = 2) -> None:
        """Continue a session of another program: other instructions and tools, which the history does not contain."""
        self.leave()
        model = "claude-opus-5-5"
        messages: list[Any] = []
        context = Context(system_prompt=self.context.system_prompt, tools=self.context.tools)
        for number in range(turns):
            text = f"imported {number}"
            messages.append({"role": "user", "content": text})
            body = {"model": model, "max_tokens": 9, "system": "An agent.", "messages": messages}
            reply = self.emulator.respond(
                "POST",
                "/v1/messages",
                {"x-api-key": "key-a", "anthropic-version": "2023-06-01"},
                json.dumps(body).encode(),
                step=Step(thinking="Hm.", text=f"answer {number}"),
                is_recorded=False,
            )
            made = json.loads(reply.body)["content"]
            messages.append({"role": "assistant", "content": made})
            thinking = ThinkingContent(thinking=made[0]["thinking"], thinking_signature=made[0]["signature"])
            answer = AssistantMessage(
                content=(thinking, TextContent(text=made[1]["text"])),
                protocol="anthropic-messages",
                provider="anthropic",
                model=model,
            )
            context = context.add(UserMessage.of(text), answer)
            self.unknown.add(made[0]["signature"])
        self.context = context

    # -- a random step -------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """Do something to the conversation, maybe, and send it."""
        chance = self.random
        event = chance.choice(self.events)
        getattr(self, f"_do_{event}")()
        way = chance.choice(WAYS)
        if way == "prepare" and self.model is BEDROCK_SONNET:
            way = "client"  # replies of Bedrock name no account: programs and the client give it different names
        self.log.append(f"{event}, {way} to {self.target.full_name()}")
        messages = self.context.messages
        is_looping = bool(messages) and messages[-1].role in ("toolResult", "user")
        if messages and messages[-1].role == "assistant" and _is_paused(messages[-1]):
            is_looping = chance.random() < 0.7
            if not is_looping or (self.model.provider, self.model.id) != (messages[-1].provider, messages[-1].model):
                # A call of the server's tool without its result is refused, and signed thinking is refused without a
                # block of its own turn (oh-my-pi #6496, vercel/ai #7099): neither can be sent.
                begin = max(at for at, each in enumerate((None, *messages)) if each is None or each.role != "assistant")
                self.unusable.update(block.signature for block in signed_blocks(messages[begin:]))
        step = self._random_step()
        self.ask(None if is_looping else f"question {chance.randrange(5)}", step, way=way)
        if self.context.messages[-1].role == "assistant" and self.context.messages[-1].tool_calls():
            self.results("seen " * chance.choice((1, 1, 600)))

    def _random_step(self) -> Step:
        chance = self.random
        names = [each.name for each in self.context.tools or () if isinstance(each, ToolDefinition)]
        calls = tuple(
            EmulatedCall(name=chance.choice(names), arguments={"n": chance.randrange(9)})
            for _ in range(chance.choice((0, 0, 1, 1, 3)) if names else 0)
        )
        thinks = chance.choice((0, 1, 1, 1, 2))
        return Step(
            thinking="Hm." if thinks else None,
            text=f"answer {chance.randrange(9)}" if not calls or chance.random() < 0.5 or thinks == 2 else None,
            thinking_after="So." if thinks == 2 and calls else None,
            calls=calls,
            paused=not calls and chance.random() < 0.15,
        )

    def _do_nothing(self) -> None:
        pass

    def _do_system(self) -> None:
        self.change(system_prompt=self.random.choice(("Be brief.", "Be kind.", None)))

    def _do_tools(self) -> None:
        more = ((LOOK,), (LOOK, tool("listen")), (tool("look", "Looks well."),))
        self.change(tools=self.random.choice(more))

    def _do_edit(self) -> None:
        users = [at for at, message in enumerate(self.context.messages) if message.role == "user"]
        if users:
            self.edit(self.random.choice(users), lambda _: UserMessage.of(f"edited {self.random.randrange(5)}"))

    def _do_edit_reply(self) -> None:
        if places := self._replies():
            self.edit(self.random.choice(places), _with_other_text)

    def _do_fork(self) -> None:
        if places := self._replies():
            self.change(messages=self.context.messages[: self.random.choice(places)])

    def _do_delete_first_turn(self) -> None:
        users = [at for at, message in enumerate(self.context.messages) if message.role == "user"]
        if len(users) > 1:
            self.change(messages=self.context.messages[users[1] :])

    def _do_remove_thinking(self) -> None:
        if blocks := list(signed_blocks(self.context.messages)):
            gone = self.random.choice(blocks)
            self.edit(gone.message, lambda message: _without(message, gone.piece))

    def _do_import_session(self) -> None:
        if self.random.random() < 0.3:
            self.import_session(self.random.choice((1, 2, 3)))

    def _do_forget(self) -> None:
        if self.random.random() < 0.3:
            self.forget()

    def _do_forget_half(self) -> None:
        """Make the first part of the history an imported one."""
        replies = self._replies()
        if len(replies) < 2 or self.random.random() < 0.5:
            return
        cut = self.random.choice(replies[1:])
        whole, self.context = self.context, replace(self.context, messages=self.context.messages[:cut])
        self.forget()
        self.change(messages=(*self.context.messages, *whole.messages[cut:]))

    def _do_switch(self) -> None:
        self.model = self.random.choice(self.models)

    def _do_account(self) -> None:
        self.leave()
        self.account = self.random.choice(tuple(ORGANIZATIONS))

    def _do_reload(self) -> None:
        self.reload()

    def _do_restart(self) -> None:
        self.restart()

    def _do_summarise(self) -> None:
        """Let the provider summarise the conversation on demand, and keep some of its last turns behind the summary."""
        messages = self.context.messages
        users = [at for at, message in enumerate(messages) if message.role == "user"]
        if not users or self.model.provider != "anthropic" or _is_paused(messages[-1]) or self.window:
            return
        self.leave()
        kept = self.random.choice([*users[1:], len(messages)])
        extra = {"anthropic-messages": {"compaction": {"type": "summarize"}}}
        whole = replace(self.context, messages=messages[:kept])
        request = prepare(whole, self.model, options=replace(OPTIONS, extra=extra), account=ORGANIZATIONS[self.account])
        headers = {**request.headers, "authorization": f"Bearer {self.account}"}
        answer = self.emulator.respond("POST", "/v1/messages", headers, request.content)
        assert answer.status == 200, answer.body
        summary = request.decode(json.loads(answer.body), account=ORGANIZATIONS[self.account])
        assert [piece.kind for piece in summary.content] == ["native"]
        self.context = replace(self.context, messages=(summary, *messages[kept:]))

    def _do_window(self) -> None:
        self.window = self.random.choice((None, SMALL))

    def _replies(self) -> list[int]:
        return [at for at, message in enumerate(self.context.messages) if message.role == "assistant"]


EVENTS: Final = (
    *("nothing",) * 9,
    "forget_half",
    *("switch",) * 3,
    "system",
    "tools",
    "edit",
    "edit_reply",
    "fork",
    "delete_first_turn",
    "remove_thinking",
    "import_session",
    "forget",
    "account",
    "reload",
    "restart",
    "window",
    "summarise",
)
SWITCHES: Final = ("switch", "switch", "reload")
"""Events of conversations that only change their model; visits of one that is named less often are short."""
WAYS: Final = ("client", "stream", "conversation", "conversation", "prepare")


def _is_paused(message: Message) -> bool:
    """Whether the provider paused in a tool of its own: the next request sends the reply back as it is."""
    return message.role == "assistant" and message.raw_stop_reason == "pause_turn"


def _with_other_text(message: AssistantMessage) -> AssistantMessage:
    texts = [at for at, piece in enumerate(message.content) if piece.kind == "text"]
    content = [replace(p, text="edited") if at in texts else p for at, p in enumerate(message.content)]
    return replace(message, content=tuple(content))


def _without(message: AssistantMessage, piece: int) -> AssistantMessage:
    return replace(message, content=tuple(each for at, each in enumerate(message.content) if at != piece))


def _signatures_in(request: RecordedRequest) -> Iterator[tuple[str, str]]:
    """Find the signatures of a body, with their places as the API names them."""
    messages = cast("dict[str, Any]", request.body).get("messages") or ()
    for at, message in enumerate(messages):
        content = message.get("content")
        for piece, block in enumerate(content if isinstance(content, list) else ()):
            reasoning = block.get("reasoningContent", {}).get("reasoningText", {})
            signature = block.get("signature") or reasoning.get("signature")
            if signature:
                yield f"messages.{at}.content.{piece}", signature


def _encrypted_in(request: RecordedRequest) -> set[str]:
    """Find the encrypted reasoning of a body."""
    return {item["encrypted_content"] for item in _items_in(request) if "encrypted_content" in item}


def _items_in(request: RecordedRequest) -> list[dict[str, Any]]:
    return cast("dict[str, Any]", request.body).get("input") or []


def _encrypted_of(messages: tuple[Message, ...]) -> Iterator[str]:
    """Find the encrypted reasoning of a conversation."""
    for message in messages:
        for piece in message.content if message.role == "assistant" and message.protocol == GPT.protocol else ():
            if piece.kind == "thinking" and piece.thinking_signature:
                yield json.loads(piece.thinking_signature)["encrypted_content"]


def walk(
    seed: int,
    steps: int,
    models: tuple[Model, ...] = MODELS,
    policy: Policy | None = None,
    events: tuple[str, ...] = EVENTS,
) -> int:
    """Take some random steps; an error names the seed and the steps. Gives how many signatures were read."""
    walking = Walk(seed, models=models, policy=policy)
    walking.events = events
    try:
        for _ in range(steps):
            walking.step()
    except Exception as error:
        way = "\n  ".join(walking.log)
        raise AssertionError(f"seed {seed}, step {len(walking.log)}: {error}\n  {way}") from error
    finally:
        walking.close()
    return walking.accepted
