"""What an endpoint really supports: a handful of small requests, and what they show.

"Compatible" servers differ in what they accept and return. `probe` asks one, and returns a card: a finding for each
question, and the rules and dialect that segue needs for it. A catalogue file with them is `Card.catalogue()`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, final
from zlib import compress, crc32

import msgspec
from msgspec.structs import replace

from segue.client.flow.attempts import Attempt
from segue.client.flow.backoff import Retry
from segue.client.http.clients import Client
from segue.conversation.content import ImageContent, TextContent
from segue.conversation.context import Context, Options, ToolDefinition
from segue.conversation.messages import AssistantMessage, ToolResultMessage, UserMessage
from segue.errors import RequestFailed
from segue.failures.failure import Failure, FailureKind
from segue.models.model import Model
from segue.requests.prepare import prepare

Verdict = Literal["yes", "no", "unknown"]

_MAX_TOKENS: Final = 512
_ROOMS: Final = ToolDefinition(
    name="look_up_code",
    description="Gives the code of a room.",
    parameters={"type": "object", "properties": {"room": {"type": "string"}}, "required": ["room"]},
)
_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"colour": {"type": "string"}},
    "required": ["colour"],
    "additionalProperties": False,
}
_SHORTEST_SIGNATURE: Final = 32
_UNKNOWN_MODEL: Final = "no-such-model-8c1f"


@final
class ProbeFinding(msgspec.Struct, frozen=True, kw_only=True):
    """What one question showed. `refusal` is the provider's own text, with keys masked."""

    question: str
    verdict: Verdict
    detail: str = ""
    refusal: str = ""


@final
class Card(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about an endpoint: its model as segue should describe it, and the findings that show it."""

    model: Model
    findings: tuple[ProbeFinding, ...]
    requests: int

    def catalogue(self, read: str, key_variable: str | None = None) -> dict[str, object]:
        """Return a catalogue file: the provider's row and the model. `read` is the date."""
        model = self.model
        row: dict[str, object] = {
            "name": model.provider,
            "title": model.provider,
            "protocol": model.protocol,
            "base_url": model.base_url,
            "key_variables": [] if key_variable is None else [key_variable],
            "any_id": True,
            "source": "segue probe",
            "read": read,
        }
        for name, values in (("rules", model.rules), ("dialect", model.dialect)):
            if values:
                row[name] = {model.protocol: values}
        entry = replace(model, base_url=None, rules={}, dialect={})
        return {"providers": [row], "models": [msgspec.to_builtins(entry)]}


def probe(model: Model, client: Client, *, overflow: int = 0) -> Card:
    """Ask the endpoint of a model what it supports. `overflow` is a prompt's length in words that should not fit.

    A question that depends on another one (a tool result on a tool call) is asked only if that one was answered.

    Raises:
        RequestFailed: the endpoint does not answer the simplest request.
    """
    # What is known about the model would prevent some requests.
    unknown = replace(model, reasoning=True, input=("text", "image"), context_window=0, max_input=0, max_tokens=0)
    run = _Probe(unknown, client)
    run.must_answer()
    for question in _QUESTIONS:
        question(run)
    if overflow:
        run.overflow(overflow)
    return run.card(model)


def quick_client(api_key: str | None, **settings: Any) -> Client:  # noqa: ANN401 - those of the client
    """Return a client for `probe`: a refusal is an answer, so nothing is retried."""
    return Client(api_key=api_key or "none", retry=Retry(max_retries=0), **settings)


@final
class _Probe:
    """The questions, and what was found so far."""

    def __init__(self, model: Model, client: Client) -> None:
        self._model = model
        self._client = client
        self._found: list[ProbeFinding] = []
        self._requests = 0
        self._rules: dict[str, object] = {}
        self._dialect: dict[str, object] = {}
        self._input: list[str] = ["text"]
        self._reasoning = False
        self._window = 0

    def card(self, model: Model) -> Card:
        described = replace(
            model,
            reasoning=self._reasoning,
            input=tuple(self._input),  # pyright: ignore[reportArgumentType]
            context_window=self._window or model.context_window,
            rules={**model.rules, **self._rules},
            dialect={**model.dialect, **self._dialect},
        )
        return Card(model=described, findings=tuple(self._found), requests=self._requests)

    # -- requests -----------------------------------------------------------------------------------------------------

    def _ask(
        self, context: Context, options: Options | None = None, model: Model | None = None
    ) -> AssistantMessage | Failure:
        """Send a request; return the reply or the first failure: what the client repaired after it is not an answer."""
        given = options or Options()
        limited = replace(given, max_tokens=given.max_tokens or _MAX_TOKENS)
        attempts: list[Attempt] = []
        try:
            reply = self._client.complete(context, model or self._model, options=limited, on_attempt=attempts.append)
        except RequestFailed as failed:
            return failed.attempts[0].failure or failed.failure
        finally:
            self._requests += len(attempts)
        return next((each.failure for each in attempts if each.failure is not None), reply)

    def _note(self, question: str, verdict: Verdict, detail: str = "", failure: Failure | None = None) -> None:
        status = "" if failure is None else f"{failure.status or 'no answer'}, {failure.kind.value}"
        self._found.append(
            ProbeFinding(
                question=question,
                verdict=verdict,
                detail="; ".join(filter(None, (detail, status))),
                refusal="" if failure is None else failure.message,
            )
        )

    # -- questions -----------------------------------------------------------------------------------------------------

    def must_answer(self) -> None:
        """Ask the simplest question; without an answer there is nothing to find out."""
        self._requests += 1
        reply = self._client.complete(_user("Answer with one word: yes."), self._model, options=Options())
        self._note("text", "yes", _start(reply))
        used = reply.usage
        has_usage = used is not None and used.input + used.cache_read > 0
        self._note("usage in replies", "yes" if has_usage else "no")

    def stream(self) -> None:
        """Whether a stream arrives in pieces, ends as it should, and has the usage."""
        self._requests += 1
        deltas = 0
        with self._client.stream(_user("Count from one to five in words."), self._model) as stream:
            for event in stream:
                deltas += event.type == "text_delta"
            last = stream.message
        if last.stop_reason == "error":
            self._note("streaming", "no", last.error_message or "")
            return
        self._note("streaming", "yes", f"{deltas} pieces")
        has_usage = last.usage is not None and last.usage.input + last.usage.cache_read > 0
        self._note("usage in streams", "yes" if has_usage else "no")
        if not has_usage:
            self._dialect["usage_in_stream"] = False

    def system_prompt(self) -> None:
        """Whether there may be a system prompt, and whether it has an effect."""
        context = replace(_user("What is the password?"), system_prompt="The password is mango. Tell it when asked.")
        match self._ask(context):
            case Failure() as failure:
                self._note("system prompt", "no", failure=failure)
                self._rules["system_prompt"] = False
            case reply:
                has_effect = "mango" in reply.text().lower()
                self._note("system prompt", "yes", "followed" if has_effect else "accepted, not followed")

    def tools(self) -> None:
        """Whether a tool can be forced, is called otherwise, and whether its result is accepted."""
        context = replace(_user("What is the code of room 12?"), tools=(_ROOMS,))
        reply = self._ask(context, Options(tool_choice="required"))
        if isinstance(reply, Failure):
            self._note("forced tool choice", "no", failure=reply)
            self._rules["tool_choices"] = ["auto", "none"]
            reply = self._ask(context)
        else:
            self._note("forced tool choice", "yes" if reply.tool_calls() else "no", _called(reply) or "no call")
        if isinstance(reply, Failure):
            self._note("tools", "no", failure=reply)
            self._rules["tools"] = False
            return
        calls = reply.tool_calls()
        if not calls:
            self._note("tools", "unknown", "accepted, but the model called none")
            return
        self._note("tools", "yes", _called(reply))
        results = [
            ToolResultMessage(tool_call_id=call.id, tool_name=call.name, content=(TextContent(text="4711"),))
            for call in calls
        ]
        answer = self._ask(context.add(reply, *results))
        if isinstance(answer, Failure):
            self._note("tool results", "no", failure=answer)
        else:
            self._note("tool results", "yes", "used" if "4711" in answer.text() else "accepted")
        both = replace(_user("What are the codes of room 1 and of room 2? Ask for both at once."), tools=(_ROOMS,))
        several = self._ask(both)
        if isinstance(several, Failure):
            self._note("parallel calls", "unknown", failure=several)
        else:
            count = len(several.tool_calls())
            self._note("parallel calls", "yes" if count > 1 else "unknown", f"{count} in one reply")

    def image(self) -> None:
        """Whether a picture is accepted."""
        text = TextContent(text="Which colour is this? One word.")
        picture = ImageContent(data=_red_square(), mime_type="image/png")
        reply = self._ask(Context(messages=(UserMessage(content=(text, picture)),)))
        if isinstance(reply, Failure):
            self._note("images", "no", failure=reply)
            return
        seen = "red" in reply.text().lower()
        self._note("images", "yes" if seen else "unknown", "seen" if seen else f"accepted: {_start(reply)}")
        if seen:
            self._input.append("image")

    def output_schema(self) -> None:
        """Whether the reply follows a JSON schema."""
        reply = self._ask(_user("Name a colour, as JSON."), Options(output_schema=_SCHEMA))
        if isinstance(reply, Failure):
            self._note("output schema", "no", failure=reply)
            self._dialect["json_schema"] = False
            return
        try:
            follows = list(msgspec.json.decode(reply.text().encode(), type=dict[str, str])) == ["colour"]
        except msgspec.DecodeError:
            follows = False
        self._note("output schema", "yes" if follows else "no", _start(reply))

    def sampling(self) -> None:
        """Which options of sampling are refused."""
        context = _user("Say yes.")
        refused: list[str] = []
        for name, options in _SAMPLING.items():
            changes = prepare(context, self._model, options=options).report.changes
            if any(change.path[:1] == ("options",) for change in changes):
                continue  # the protocol has no such field
            if isinstance(self._ask(context, options), Failure):
                refused.append(name)
        self._note("sampling options", "no" if refused else "yes", f"refused: {', '.join(refused)}" if refused else "")
        if refused:
            self._rules["refused_options"] = refused

    def reasoning(self) -> None:
        """Whether the model thinks when asked to, and takes its thinking back."""
        context = _user("What is 17 times 23? Think first.")
        reply = self._ask(context, Options(thinking="low", max_tokens=4 * _MAX_TOKENS))
        if isinstance(reply, Failure):
            self._note("reasoning", "no", failure=reply)
            return
        thinking = [piece for piece in reply.content if piece.kind == "thinking"]
        # In some protocols there is only the name of a field.
        signed = any(len(piece.thinking_signature or "") > _SHORTEST_SIGNATURE for piece in thinking)
        self._note("reasoning", "yes" if thinking else "no", "signed" if signed else "")
        if not thinking:
            return
        self._reasoning = True
        again = context.add(reply, UserMessage.of("And plus one?"))
        answer = self._ask(again, Options(thinking="low", max_tokens=4 * _MAX_TOKENS))
        if isinstance(answer, Failure):
            self._note("reasoning returned", "no", failure=answer)
            return
        self._note("reasoning returned", "yes")
        if signed:
            self._bound(again)

    def _bound(self, context: Context) -> None:
        """Whether signed thinking is refused after another system prompt."""
        changed = replace(context, system_prompt="You are a calculator.")
        # A model that is known to bind its thinking would not be sent it.
        free = replace(self._model, rules={**self._model.rules, "bound_prefix": False, "drops_unbound": False})
        answer = self._ask(changed, Options(thinking="low", max_tokens=4 * _MAX_TOKENS), free)
        if isinstance(answer, Failure):
            self._note("reasoning bound to its prefix", "yes", failure=answer)
            self._rules["bound_prefix"] = True
        else:
            self._note("reasoning bound to its prefix", "no")

    def unknown_model(self) -> None:
        """How the endpoint refuses a model that does not exist."""
        reply = self._ask(_user("Hi"), model=replace(self._model, id=_UNKNOWN_MODEL))
        if isinstance(reply, Failure):
            self._note("unknown model refused", "yes", failure=reply)
        else:
            self._note("unknown model refused", "no", "any name is answered")

    def overflow(self, words: int) -> None:
        """How the endpoint refuses a prompt that does not fit."""
        reply = self._ask(_user("one " * words))
        if not isinstance(reply, Failure):
            self._note("overflow refused", "no", f"{words} words were accepted")
            return
        recognised = reply.kind == FailureKind.OVERFLOW
        self._note("overflow refused", "yes" if recognised else "unknown", failure=reply)
        self._window = reply.limit or 0


_QUESTIONS: Final[tuple[Callable[[_Probe], None], ...]] = (
    _Probe.stream,
    _Probe.system_prompt,
    _Probe.tools,
    _Probe.image,
    _Probe.output_schema,
    _Probe.sampling,
    _Probe.reasoning,
    _Probe.unknown_model,
)
_SAMPLING: Final[Mapping[str, Options]] = {
    "temperature": Options(temperature=0.5),
    "top_p": Options(top_p=0.9),
    "stop": Options(stop=("\n\n\n",)),
    "seed": Options(seed=7),
}


def _user(text: str) -> Context:
    return Context(messages=(UserMessage.of(text),))


def _start(reply: AssistantMessage) -> str:
    return " ".join(reply.text().split())[:60]


def _called(reply: AssistantMessage) -> str:
    return ", ".join(f"{call.name}({msgspec.json.encode(call.arguments).decode()})" for call in reply.tool_calls())[:80]


def _red_square() -> str:
    """Return a red picture of 32 x 32 pixels, as base64 of a PNG."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + crc32(kind + data).to_bytes(4, "big")

    head = (32).to_bytes(4, "big") * 2 + bytes((8, 2, 0, 0, 0))
    rows = b"".join(b"\x00" + b"\xff\x00\x00" * 32 for _ in range(32))
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", compress(rows)) + chunk(b"IEND", b"")
    return b64encode(png).decode()
