"""Prove the rules against real providers, for pennies: `make live`.

    python scripts/live.py                      every provider whose key is in the environment
    python scripts/live.py anthropic google     only these; a model can be named too: anthropic/claude-opus-5-5
    python scripts/live.py --limit 0.10         stop before more than ten cents are spent (five without it)
    python scripts/live.py --record FOLDER      where the exchanges are kept, without keys (a new folder without it)

Each model gets one conversation: a tool call with reasoning, its result, another question, a switch to another model
and back, a changed system prompt, and last a request that segue would not send: reasoning behind a prompt that is not
the one it was made after. The same conversation is run against the emulator. For every request the provider's verdict
is compared with what `check` says of its body and with the emulator's verdict; where they differ, a rule is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, cast, final

import httpx2
from msgspec.structs import replace

from segue import (
    AssistantMessage,
    Client,
    Context,
    Model,
    Options,
    RequestFailed,
    SegueError,
    TextContent,
    ToolDefinition,
    ToolResultMessage,
    UserMessage,
    check,
    get_model,
)
from segue.client.local.echo import echo_mounts
from segue.conversation.messages import Usage
from segue.failures.masking import mask_keys
from segue.models.built_in import ECHO, ECHO_HOST
from segue.models.price import find_cost
from segue.models.providers import DEFAULT_MODELS, PROVIDERS
from segue.protocols.api import resolve_endpoint
from segue.protocols.registry import get_protocol
from segue.testing.emulator import EmulatedCall, Step, emulate

_PROMPT: Final = "You are a porter. Look up room codes with the tool."
_CHANGED: Final = "You are a porter. Look up room codes with the tool. It is Tuesday."
_TOOL: Final = ToolDefinition(
    name="look_up_code",
    description="Gives the code of a room.",
    parameters={
        "type": "object",
        "properties": {"room": {"type": "string"}},
        "required": ["room"],
        "additionalProperties": False,
    },
)
_OPTIONS: Final = Options(thinking="low", max_tokens=2048)
_INPUT: Final = 1500
"""More tokens than a request of this conversation has."""
_KEPT_HEADERS: Final = ("content-type", "anthropic-version", "anthropic-beta", "openai-beta")


class Exchange(NamedTuple):
    """A request and its answer, as they were sent."""

    request: httpx2.Request
    status: int
    answer: bytes


@final
class Recorder(httpx2.BaseTransport):
    """Sends requests and keeps the exchanges."""

    def __init__(self) -> None:
        self._inner = httpx2.HTTPTransport()
        self._echo = cast("httpx2.BaseTransport", next(iter(echo_mounts().values())))
        self.exchanges: list[Exchange] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; one to the echo model is answered here."""
        if request.url.host == ECHO_HOST:
            return self._echo.handle_request(request)
        response = self._inner.handle_request(request)
        answer = response.read()
        response.close()
        self.exchanges.append(Exchange(request, response.status_code, answer))
        headers = [(name, value) for name, value in response.headers.multi_items() if name != "content-encoding"]
        return httpx2.Response(response.status_code, headers=headers, content=answer)

    def close(self) -> None:
        """Close the connections."""
        self._inner.close()


class Verdict(NamedTuple):
    """How one step ended; `findings` are those of `check`, `status` is None if nothing was sent."""

    step: str
    status: int | None
    findings: tuple[str, ...] = ()
    cost: float = 0.0
    note: str = ""


class SpentError(Exception):
    """The next request could cost more than is left."""


@final
class Purse:
    """What may be spent."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.spent = 0.0

    def ask(self, model: Model) -> None:
        """Check that the most that a request can cost is left."""
        most = find_cost(model.cost, Usage(input=_INPUT, output=_OPTIONS.max_tokens or 0))
        if most is not None and self.spent + most.total > self.limit:
            raise SpentError(f"${self.spent:.4f} of ${self.limit:.2f} are spent, and {model.full_name()} may need more")

    def pay(self, usage: Usage | None) -> float:
        """Add what a reply cost."""
        cost = 0.0 if usage is None or usage.cost is None else usage.cost.total
        self.spent += cost
        return cost


@final
class Run:
    """One conversation with one model; `other` is the model in the middle."""

    def __init__(self, client: Client, recorder: Recorder, model: Model, other: Model, purse: Purse) -> None:
        self._client = client
        self._recorder = recorder
        self._model = model
        self._other = other
        self._purse = purse
        self._context = Context(system_prompt=_PROMPT, tools=(_TOOL,))

    def steps(self) -> Iterator[Verdict]:
        """Run every step; a first one that fails is the last."""
        self._ask("What is the code of room 12?")
        yield self._send("tool call", self._model)
        reply = self._context.messages[-1]
        if not isinstance(reply, AssistantMessage):
            return
        calls = reply.tool_calls()
        if calls:
            for call in calls:
                content = (TextContent(text="4711"),)
                self._add(ToolResultMessage(tool_call_id=call.id, tool_name=call.name, content=content))
            yield self._send("tool result", self._model)
        else:
            yield Verdict("tool result", None, note="the model called no tool")
        self._ask("And twice that number?")
        yield (last := self._send("next question", self._model))
        stale = self._recorder.exchanges[-1] if last.status == 200 else None
        self._ask("Which of the two is larger?")
        yield self._send("switch", self._other)
        self._ask("Thank you. And in words?")
        yield self._send("return", self._model)
        self._context = replace(self._context, system_prompt=_CHANGED)
        self._ask("Is it open today?")
        yield self._send("changed prompt", self._model)
        if stale is not None:
            yield self._send_stale(stale)

    def _ask(self, text: str) -> None:
        self._add(UserMessage.of(text))

    def _add(self, message: UserMessage | ToolResultMessage | AssistantMessage) -> None:
        self._context = replace(self._context, messages=(*self._context.messages, message))

    def _send(self, step: str, model: Model) -> Verdict:
        """Send the conversation as segue sends it."""
        self._purse.ask(model)
        before = len(self._recorder.exchanges)
        try:
            reply = self._client.complete(self._context, model, options=_OPTIONS)
        except RequestFailed as error:
            sent = self._recorder.exchanges[before:]
            status = sent[-1].status if sent else None
            return Verdict(step, status, self._findings(sent, model), note=str(error).partition("\n")[0])
        self._add(reply)
        sent = self._recorder.exchanges[before:]
        refused = [each for each in sent if each.status >= 400]
        note = f"{len(refused)} refused before" if refused else ""
        return Verdict(
            step,
            200 if not refused else refused[0].status,
            self._findings(sent, model),
            self._purse.pay(reply.usage),
            note,
        )

    def _send_stale(self, given: Exchange) -> Verdict:
        """Send an accepted request again, with another system prompt and nothing else changed."""
        self._purse.ask(self._model)
        endpoint = resolve_endpoint(self._model)
        codec = get_protocol(self._model.protocol)
        body = json.loads(given.request.content)
        prompt = codec.decode_request(body, endpoint)
        changed = replace(prompt, context=replace(prompt.context, system_prompt=_CHANGED))
        content = {**body, **codec.encode_request(changed, endpoint)}
        headers = {name: value for name, value in given.request.headers.items() if name != "content-length"}
        request = httpx2.Request(given.request.method, given.request.url, headers=headers, json=content)
        status = self._recorder.handle_request(request).status_code
        found = check(content, protocol=self._model.protocol, model=self._model, after=body)
        codes = tuple(one.code for one in found if one.code != "prefix_changed")
        return Verdict("stale reasoning", status, codes, note="not as segue sends it")

    def _findings(self, sent: Sequence[Exchange], model: Model) -> tuple[str, ...]:
        if not sent:
            return ()
        body = json.loads(sent[0].request.content)
        return tuple(one.code for one in check(body, protocol=model.protocol, model=model))


# -- models, recordings, output ----------------------------------------------------------------------------------------


def find_models(names: Sequence[str], client: Client) -> list[Model]:
    """Give the models that were named, or the default model of every provider whose key is set."""
    if names:
        return [get_model(name if "/" in name else f"{name}/{DEFAULT_MODELS.get(name, '')}") for name in names]
    found: list[Model] = []
    for provider, model_id in DEFAULT_MODELS.items():
        model = get_model(f"{provider}/{model_id}")
        is_set = any(os.environ.get(name) for name in PROVIDERS[provider].key_variables)
        if is_set and client.find_missing(model) is None:
            found.append(model)
    return found


def run_live(model: Model, other: Model, purse: Purse, settings: Mapping[str, object], folder: Path) -> list[Verdict]:
    """Run the conversation against a provider and keep the exchanges."""
    recorder = Recorder()
    found: list[Verdict] = []
    with Client(transport=recorder, retry=0, **settings) as client:  # pyright: ignore[reportArgumentType]
        try:
            found.extend(Run(client, recorder, model, other, purse).steps())
        except SpentError as error:
            found.append(Verdict("stopped", None, note=str(error)))
        finally:
            record(recorder.exchanges, folder / model.full_name().replace("/", "_"))
    return found


def run_emulated(model: Model, other: Model) -> list[Verdict]:
    """Run the same conversation against the emulator."""
    recorder = Recorder()
    with emulate(Step(thinking="Look it up.", calls=(EmulatedCall(name=_TOOL.name),))) as server:
        addresses = dict.fromkeys({model.provider, other.provider} - {ECHO.provider}, server.url)
        keys = dict.fromkeys(addresses, "emulated")
        with Client(transport=recorder, retry=0, base_url=addresses, api_key=keys) as client:
            return list(Run(client, recorder, model, other, Purse(float("inf"))).steps())


def record(exchanges: Sequence[Exchange], folder: Path) -> None:
    """Write exchanges to files, without keys."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, each in enumerate(exchanges, 1):
        kept = {name: value for name, value in each.request.headers.items() if name in _KEPT_HEADERS}
        url = str(each.request.url.copy_with(query=None))
        given = {"method": each.request.method, "url": url, "headers": kept, "body": _json(each.request.content)}
        text = json.dumps({"request": given, "status": each.status, "answer": _json(each.answer)}, indent=1)
        path = folder / f"{number:02}.json"
        path.write_text(mask_keys(text), "utf-8")
        path.chmod(0o600)


def _json(data: bytes) -> object:
    try:
        return json.loads(data)
    except ValueError:
        return data.decode("utf-8", "replace")


def agrees(live: Verdict, emulated: Verdict | None) -> bool:
    """Whether provider, `check` and emulator say the same of a request."""
    if live.status is None:
        return True
    accepted = live.status < 400
    other = accepted if emulated is None or emulated.status is None else emulated.status < 400
    return accepted == (not live.findings) == other


def show(model: Model, live: Sequence[Verdict], emulated: Sequence[Verdict]) -> int:
    """Print the verdicts of a model, and give how many of them differ."""
    by_step = {one.step: one for one in emulated}
    print(f"{model.full_name()}")
    wrong = 0
    for one in live:
        other = by_step.get(one.step)
        differs = not agrees(one, other)
        wrong += differs
        named = ", ".join(dict.fromkeys(one.findings)) or "nothing"
        theirs = "-" if other is None or other.status is None else str(other.status)
        mark = "DIFFERS" if differs else "agrees"
        verdicts = f"{one.status or '-':>4}  check: {named:20} emulator: {theirs:4}"
        print(f"  {one.step:16} {verdicts} {mark:8} ${one.cost:.4f}  {one.note}".rstrip())
    return wrong


def main() -> int:
    """Run the program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("models", nargs="*", help="providers or models; without them, all whose key is set")
    parser.add_argument("--limit", type=float, default=0.05, help="dollars that may be spent in all (0.05)")
    parser.add_argument("--record", type=Path, help="the folder for the exchanges")
    parser.add_argument("--base-url", help="send every request to this address")
    given = parser.parse_args()
    folder = given.record or Path(tempfile.mkdtemp(prefix="segue-live-"))
    try:
        with Client() as client:
            models = find_models(given.models, client)
    except SegueError as error:
        print(error, file=sys.stderr)
        return 2
    if not models:
        print("no key of a provider is set; set one, such as ANTHROPIC_API_KEY", file=sys.stderr)
        return 2
    purse, wrong = Purse(given.limit), 0
    settings: dict[str, object] = {"environment": dict(os.environ)}
    if given.base_url:
        settings["base_url"] = {model.provider: given.base_url for model in models}
    for at, model in enumerate(models):
        other = models[at - 1] if len(models) > 1 else ECHO
        wrong += show(model, run_live(model, other, purse, settings, folder), run_emulated(model, other))
    print(f"spent ${purse.spent:.4f}; exchanges: {folder}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
