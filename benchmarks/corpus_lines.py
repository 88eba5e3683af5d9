"""The lines of corpora for benchmarks and acceptance tests, the same bytes on every machine."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

from cases import DEEPSEEK
from replies import make_history
from transcripts import make_transcript

from segue import prepare

_LENGTHS: Final = range(40, 61)
_SEEDS: Final = 40
"""Different traces; more repeat them, as one takes 40 ms to write."""

BAD_LINES: Final = (
    b'{"model":"gpt-5.4","messages":[{"role":"user","content":"cut',
    b"{}",
    b"null",
    b'{"messages":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    b'{"messages":[{"role":"user","content":"\xff\xfe"}]}',
    b'{"model":"gpt-5.4","messages":[{"role":"user","content":42}]}',
    b'{"model":"gpt-5.4","messages":[]}',
    b"not json at all",
)
GOOD_LINES: Final = (
    '{"model":"gpt-5.4","messages":[{"role":"user","content":"a\u2028b\u2029c\u0085d"}]}'.encode(),
    rb'{"model":"gpt-5.4","messages":[{"role":"user","content":"half \ud83d of a pair"}]}',
    '{"model":"gpt-5.4","messages":[{"role":"user","content":"Größe 設定 🚀"}]}'.encode(),
)
BLANK_LINES: Final = (b"", b"   ", b"\t\r")


def agent_lines() -> Iterator[bytes]:
    """Write agent traces of DeepSeek as chat requests, without an end."""
    made: dict[int, bytes] = {}
    for number in count():
        seed = number % _SEEDS
        if seed not in made:
            length = _LENGTHS[seed % len(_LENGTHS)]
            made[seed] = prepare(make_history(length, DEEPSEEK, seed=seed + 1), DEEPSEEK).content
        yield made[seed]


def chat_lines() -> Iterator[bytes]:
    """Write chats of 3 to 9 short messages, without an end."""
    rng = random.Random(7)  # noqa: S311 - repeatable, not secret
    words = [message.text() for message in make_transcript(200, seed=3).messages if message.role == "assistant"]
    texts = [text[:400] for text in words if text]
    while True:
        messages: list[dict[str, str]] = [{"role": "system", "content": "You are a helpful assistant."}]
        for turn in range(rng.choice((3, 5, 7, 9))):
            role = "assistant" if turn % 2 else "user"
            messages.append({"role": role, "content": " ".join(rng.choices(texts, k=2))})
        yield json.dumps({"model": "gpt-5.4", "messages": messages}, ensure_ascii=False).encode()


def bad_lines(lines: int) -> Iterator[bytes]:
    """Write so many lines, every tenth of them bad and every twentieth blank."""
    good = chat_lines()
    for number in range(lines):
        if number % 10 == 3:
            yield BAD_LINES[number // 10 % len(BAD_LINES)]
        elif number % 20 == 5:
            yield BLANK_LINES[number // 20 % len(BLANK_LINES)]
        elif number % 10 == 7:
            yield GOOD_LINES[number // 10 % len(GOOD_LINES)]
        else:
            yield next(good)


def write_lines(lines: Iterator[bytes], megabytes: float, path: Path) -> int:
    """Write lines until the file has its size, and give their number."""
    written = number = 0
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for line in lines:
            written += file.write(line + b"\n")
            number += 1
            if written >= megabytes * 1e6:
                return number
    return number


def split(path: Path, folder: Path, parts: int) -> None:
    """Write the lines of a file to so many files, in order."""
    lines = [line + b"\n" for line in path.read_bytes().split(b"\n")[:-1]]
    folder.mkdir(parents=True, exist_ok=True)
    for part in range(parts):
        chosen = lines[part * len(lines) // parts : (part + 1) * len(lines) // parts]
        (folder / f"part-{part:03}.jsonl").write_bytes(b"".join(chosen))
