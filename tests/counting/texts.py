"""Texts of many kinds, made from a seed: what agents read and what people write."""

from __future__ import annotations

import base64
import json
import random
from functools import lru_cache
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]

SENTENCES = {
    "English": "The committee met on Tuesday and decided to postpone the vote until every member had read the report. ",
    "German": "Der Ausschuss traf sich am Dienstag und verschob die Abstimmung, bis alle den Bericht kannten. ",
    "French": "Le comité s'est réuni mardi et a décidé de reporter le vote jusqu'à ce que chacun ait lu le rapport. ",
    "Polish": "Komisja zebrała się we wtorek i postanowiła odłożyć głosowanie, aż wszyscy przeczytają sprawozdanie. ",
    "Russian": "Комитет собрался во вторник и решил отложить голосование, пока все не прочитают отчёт. ",
    "Greek": "Η επιτροπή συνεδρίασε την Τρίτη και αποφάσισε να αναβάλει την ψηφοφορία μέχρι να διαβαστεί η έκθεση. ",
    "Chinese": "委员会星期二开会，决定推迟投票，直到每位成员都读完报告为止。接下来的会议将讨论预算和人员安排。",
    "Japanese": "委員会は火曜日に会合を開き、全員が報告書を読み終えるまで採決を延期することを決めました。",
    "Korean": "위원회는 화요일에 모여 모든 위원이 보고서를 읽을 때까지 표결을 미루기로 결정했습니다. ",
}
EUROPEAN = ("English", "German", "French", "Polish", "Russian", "Greek")
EAST_ASIAN = ("Chinese", "Japanese", "Korean")


@lru_cache
def source() -> str:
    """Give the source code of segue, as a sample of code."""
    files = sorted((_ROOT / "src" / "segue").rglob("*.py"))
    return "\n".join(path.read_text("utf-8") for path in files)


@lru_cache
def prose() -> str:
    """Give the documentation of segue, as a sample of English prose and Markdown."""
    return "\n".join(path.read_text("utf-8") for path in sorted((_ROOT / "docs").glob("*.md")))


def piece_of(text: str, chance: random.Random, size: int) -> str:
    """Give a piece of a text, from a random place on; it is repeated if it is too short."""
    start = chance.randrange(len(text))
    if start + size <= len(text):
        return text[start : start + size]
    return (text[start:] + text * (size // len(text) + 1))[:size]


def code(chance: random.Random, size: int) -> str:
    """Give lines of source code."""
    return piece_of(source(), chance, size)


def markdown(chance: random.Random, size: int) -> str:
    """Give lines of prose."""
    return piece_of(prose(), chance, size)


def speech(chance: random.Random, size: int, languages: tuple[str, ...]) -> str:
    """Give sentences in one of several languages."""
    sentence = SENTENCES[chance.choice(languages)]
    return (sentence * (size // len(sentence) + 1))[:size]


def rows_of_json(chance: random.Random, size: int) -> str:
    """Give records as an interface returns them: ids, names, numbers, dates."""
    rows: list[dict[str, object]] = []
    length = 0
    while length < size:
        row: dict[str, object] = {
            "id": f"{chance.getrandbits(64):016x}",
            "name": chance.choice(("invoice", "Customer record", "order item", "shipment")),
            "amount": chance.randrange(100_000) / 100,
            "created": f"2026-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}T08:00:00Z",
            "tags": chance.sample(("open", "paid", "late", "disputed", "closed"), 2),
        }
        rows.append(row)
        length += len(json.dumps(row)) + 2
    return json.dumps(rows, indent=chance.choice((None, None, 2)))[:size]


def listing(chance: random.Random, size: int) -> str:
    """Give the lines of a search in a repository."""
    lines: list[str] = []
    length = 0
    while length < size:
        line = (
            f"src/{chance.choice(('core', 'api', 'web'))}/{chance.choice(('handler', 'parser', 'store'))}"
            f"_{chance.randrange(99)}.py:{chance.randrange(1, 900)}: {code(chance, 60).split(chr(10))[0]}"
        )
        lines.append(line)
        length += len(line) + 1
    return "\n".join(lines)[:size]


def opaque(chance: random.Random, size: int) -> str:
    """Give base64, as it stands in dumps of messages and keys."""
    return base64.b64encode(chance.randbytes(size)).decode()[:size]


def log(chance: random.Random, size: int) -> str:
    """Give lines of a log with times, addresses and ids."""
    lines: list[str] = []
    length = 0
    while length < size:
        line = (
            f"2026-11-15T08:{chance.randrange(60):02}:{chance.randrange(60):02}.{chance.randrange(1000):03}Z"
            f" {chance.choice(('INFO', 'WARN', 'ERROR'))} request_id={chance.getrandbits(48):012x}"
            f" GET /v1/items/{chance.randrange(10_000)} {chance.choice((200, 404, 500))} {chance.randrange(900)}ms"
        )
        lines.append(line)
        length += len(line) + 1
    return "\n".join(lines)[:size]


KINDS = {
    "code": code,
    "markdown": markdown,
    "JSON": rows_of_json,
    "a search": listing,
    "a log": log,
    "base64": opaque,
    "European languages": lambda chance, size: speech(chance, size, EUROPEAN),
    "East Asian languages": lambda chance, size: speech(chance, size, EAST_ASIAN),
}
