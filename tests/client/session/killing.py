"""Kills a process that writes a session file, many times, and checks the file after each kill.

Run as a program: `python killing.py <folder> <kills> <seed>`. It is a separate process, so that writers can be forked
from one without threads and with every module loaded. Each writer opens the session, appends numbered messages and
acknowledges each; it is killed after a random time. Then the file must hold every acknowledged message, in order, and
nothing else. At the end it prints the number of stored messages and of torn lines.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import warnings
from pathlib import Path

from segue.client.http.clients import Client
from segue.client.session.conversation import Conversation
from segue.conversation.messages import UserMessage
from segue.histories.sessions import read_session
from segue.models.model import Model

MODEL = Model("m", "p", "openai-chat", base_url="http://127.0.0.1")
SIZES = (10, 10, 10, 5_000, 40_000, 400_000)
"""Characters of a message: the write of a long one takes long enough to be interrupted."""
LONGEST = 30
"""Messages before a new file is started: each writer reads the whole file."""


def write_forever(path: Path, acknowledged: int, client: Client, seed: int) -> None:
    """Append numbered messages until the process is killed."""
    rng = random.Random(seed)
    warnings.simplefilter("ignore")
    with Conversation(MODEL, path=path, client=client) as conversation:
        number = len(conversation.messages)
        while True:
            conversation.add(UserMessage.of(f"{number} " + "x" * rng.choice(SIZES)))
            os.write(acknowledged, b"%d\n" % number)
            number += 1


def kill_one(path: Path, client: Client, rng: random.Random) -> tuple[int, int]:
    """Run a writer for a moment and kill it; return the number of stored messages, and of those it wrote."""
    received, acknowledged = os.pipe()
    writer = os.fork()
    if writer == 0:
        try:
            os.close(received)
            write_forever(path, acknowledged, client, rng.randrange(1 << 30))
        finally:
            os._exit(1)
    os.close(acknowledged)
    first = os.read(received, 1) if rng.random() < 0.8 else b""  # sometimes it is killed before its first message
    time.sleep(rng.random() * 0.006)
    os.kill(writer, signal.SIGKILL)
    _, status = os.waitpid(writer, 0)
    with os.fdopen(received, "rb") as reported:
        numbers = (first + reported.read()).split()
    if not os.WIFSIGNALED(status):
        raise AssertionError("the writer ended before it was killed")
    return int(numbers[-1]) + 1 if numbers else 0, len(numbers)


def main(folder: Path, kills: int, seed: int) -> None:
    """Kill a number of writers, and check the file after each."""
    rng = random.Random(seed)
    client = Client()
    total = torn = kept = files = 0
    path = folder / "session-0.jsonl"
    for _ in range(kills):
        acknowledged, count = kill_one(path, client, rng)
        total += count
        kept = max(kept, acknowledged)
        if not path.exists() or path.stat().st_size == 0:
            continue
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            messages = read_session(path).messages
        torn += len(caught)
        numbers = [int(str(message.content[0].text).split(" ", 1)[0]) for message in messages]  # pyright: ignore[reportAttributeAccessIssue]
        if numbers != list(range(len(numbers))) or len(numbers) < kept:
            raise AssertionError(f"{path}: {kept} messages were acknowledged, and the file holds {numbers}")
        kept = len(numbers)
        if len(numbers) > LONGEST:
            path.unlink()
            files += 1
            kept, path = 0, folder / f"session-{files}.jsonl"
    sys.stdout.write(f"{total} {torn}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
