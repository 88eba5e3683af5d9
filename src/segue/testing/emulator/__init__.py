"""A strict emulator of the providers, for tests of programs that switch models, without a network and without keys.

It answers like Anthropic, Bedrock (Converse), OpenAI (Chat and Responses), Google, Mistral, Cohere and Ollama, and in
the protocols of installed packages. It refuses with the provider's own error what `check` names, unknown models and
prompts that do not fit. It signs its thinking and verifies what comes back (model, account, and for current Claude
models the conversation before it), keeps a prompt cache and a bill for each key, streams by a script, counts tokens,
and fails on demand:

    with emulate(Step(calls=(EmulatedCall(name="read"),)), Step(status=529)) as server:
        client = anthropic.Anthropic(base_url=server.url, api_key="any")
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from typing import Literal, NamedTuple, final

from segue.testing.emulator.app import EmulatedReply as EmulatedReply
from segue.testing.emulator.app import Emulator as Emulator
from segue.testing.emulator.app import RecordedRequest as RecordedRequest
from segue.testing.emulator.binding import AccountLedger as AccountLedger
from segue.testing.emulator.prices import Bill as Bill
from segue.testing.emulator.running import serve_in_thread as serve_in_thread
from segue.testing.emulator.script import EmulatedCall as EmulatedCall
from segue.testing.emulator.script import Step as Step
from segue.testing.emulator.script import StepInput as StepInput
from segue.testing.emulator.script import load_steps as load_steps

__all__ = [
    "AccountLedger",
    "Bill",
    "EmulatedCall",
    "EmulatedReply",
    "Emulator",
    "EmulatorServer",
    "RecordedRequest",
    "Step",
    "StepInput",
    "emulate",
    "load_steps",
    "serve_in_thread",
]


@final
class EmulatorServer(NamedTuple):
    """A running emulator: its base URL, and the application with its requests and its script."""

    url: str
    emulator: Emulator


@contextmanager
def emulate(
    *steps: StepInput,
    key: str = "emulator",
    account: Literal["old", "new"] = "new",
    organizations: Mapping[str, str] | None = None,
    ledger: AccountLedger | None = None,
    strict: bool = True,
    api_key: str | None = None,
    port: int = 0,
    clock: Callable[[], float] = time.monotonic,
    models: Collection[str] = (),
) -> Generator[EmulatorServer]:
    """Run an emulator on this machine while the block runs. The settings are those of `Emulator`."""
    emulator = Emulator(
        *steps,
        key=key,
        account=account,
        organizations=organizations,
        ledger=ledger,
        strict=strict,
        api_key=api_key,
        clock=clock,
        models=models,
    )
    with serve_in_thread(emulator, port=port) as url:
        yield EmulatorServer(url, emulator)
