"""Kills a writer of a session in the middle of its work, again and again, and looks at what is left each time.

Run as a program: `python killing.py <folder> <how often> <seed>`. It is a process of its own, so that the writers can
be forked from one that has no threads and everything loaded. Each writer opens the session anew, appends numbered
messages and says so after each; it is killed after a random time. Then the file has to hold every message that was said
to be kept, in order, and nothing else. In the end it says how many messages were kept, and how many lines were torn.
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
from segue.models.model import Model
from segue.sessions import read_session

MODEL = Model("m", "p", "openai-chat", base_url="http://127.0.0.1")
SIZES = (10, 10, 10, 5_000, 40_000, 400_000)
"""Characters of a message: a long one takes the system some time to write, and can be cut."""
LONGEST = 30
"""Messages until the next file is begun: each writer reads the whole of it."""


def write_for_ever(path: Path, said: int, client: Client, seed: int) -> None:
    """Append numbered messages until someone puts an end to it."""
    rng = random.Random(seed)
    warnings.simplefilter("ignore")
    with Conversation(MODEL, path=path, client=client) as conversation:
        number = len(conversation.messages)
        while True:
            conversation.add(UserMessage.of(f"{number} " + "x" * rng.choice(SIZES)))
            os.write(said, b"%d\n" % number)
            number += 1


def kill_one(path: Path, client: Client, rng: random.Random) -> tuple[int, int]:
    """Let a writer work for a moment and kill it; give how many messages it said are kept, and how many it wrote."""
    received, said = os.pipe()
    writer = os.fork()
    if writer == 0:
        try:
            os.close(received)
            write_for_ever(path, said, client, rng.randrange(1 << 30))
        finally:
            os._exit(1)
    os.close(said)
    first = os.read(received, 1) if rng.random() < 0.8 else b""  # now and then it is killed before it has begun
    time.sleep(rng.random() * 0.006)
    os.kill(writer, signal.SIGKILL)
    _, status = os.waitpid(writer, 0)
    with os.fdopen(received, "rb") as reported:
        numbers = (first + reported.read()).split()
    if not os.WIFSIGNALED(status):
        raise AssertionError("the writer ended by itself")
    return int(numbers[-1]) + 1 if numbers else 0, len(numbers)


def main(folder: Path, kills: int, seed: int) -> None:
    """Kill that often, and check each time."""
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
            raise AssertionError(f"{path}: {kept} were kept, and there are {numbers}")
        kept = len(numbers)
        if len(numbers) > LONGEST:
            path.unlink()
            files += 1
            kept, path = 0, folder / f"session-{files}.jsonl"
    sys.stdout.write(f"{total} {torn}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
