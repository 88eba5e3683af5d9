"""Texts of many kinds, made from a seed: what agents read and what people write."""

from __future__ import annotations

import base64
import gzip
import json
import random
import string
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

Text = Callable[[random.Random, int], str]
_SAMPLES = Path(__file__).resolve().parent / "samples"

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
def _sample(name: str) -> str:
    """Read a sample: sources and pages of segue as they were once, so that a change of segue changes no history."""
    return gzip.decompress((_SAMPLES / f"{name}.txt.gz").read_bytes()).decode()


def piece_of(text: str, chance: random.Random, size: int) -> str:
    """Give a piece of a text, from a random place on; it is repeated if it is too short."""
    start = chance.randrange(len(text))
    if start + size <= len(text):
        return text[start : start + size]
    return (text[start:] + text * (size // len(text) + 1))[:size]


def code(chance: random.Random, size: int) -> str:
    """Give lines of source code."""
    return piece_of(_sample("code"), chance, size)


def markdown(chance: random.Random, size: int) -> str:
    """Give lines of prose."""
    return piece_of(_sample("prose"), chance, size)


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


def rows(values: Callable[[random.Random], object], *, separator: str = " ") -> Text:
    def make(chance: random.Random, size: int) -> str:
        lines = (separator.join(str(values(chance)) for _ in range(30)) for _ in range(size // 30 + 1))
        return "\n".join(lines)[:size]

    return make


DENSE: dict[str, Text] = {
    "a grid of digits": rows(lambda chance: chance.randint(0, 9)),
    "a grid with commas": rows(lambda chance: chance.randint(0, 9), separator=", "),
    "a grid without spaces": rows(lambda chance: chance.randint(0, 9), separator=","),
    "a column of digits": rows(lambda chance: chance.randint(0, 9), separator="\n"),
    "a grid of numbers": rows(lambda chance: chance.randint(0, 99)),
    "measurements": rows(lambda chance: f"{chance.random():.3f}"),
    "single letters": rows(lambda chance: chance.choice("abcdefghijkl")),
    "short words": rows(lambda chance: chance.choice(("it", "is", "so", "we", "go", "by", "ox"))),
    "short words and digits": rows(lambda chance: chance.choice(("it", "is", "7", "so", "4", "x"))),
    "a dump of bytes": rows(lambda chance: f"{chance.getrandbits(8):02x}"),
    "digests": rows(lambda chance: f"{chance.getrandbits(256):064x}", separator="\n"),
    "digests in capitals": rows(lambda chance: f"{chance.getrandbits(256):064X}", separator="\n"),
}
"""Texts with more tokens than their classes of characters give, because a token never spans two words or numbers."""


LETTERS = string.ascii_letters


def at_random(alphabet: Sequence[str], lengths: tuple[int, int], *, separator: str = " ") -> Text:
    def make(chance: random.Random, size: int) -> str:
        count = size // (lengths[0] + len(separator)) + 1
        return separator.join("".join(chance.choices(alphabet, k=chance.randint(*lengths))) for _ in range(count))[
            :size
        ]

    return make


def minified(chance: random.Random, size: int) -> str:
    def name() -> str:
        return chance.choice(string.ascii_lowercase)

    statements = (
        lambda: f"function {name()}({name()},{name()}){{return {name()}[{name()}]||{name()}.{name()}({name()})}}",
        lambda: f"for({name()}=0;{name()}<{name()};{name()}++){name()}[{name()}]={name()}^{name()}>>>3;",
        lambda: f"if(!{name()}&&{name()}!=={name()}){{{name()}.push({name()})}}",
    )
    return "".join(chance.choice(statements)() for _ in range(size // 20))[:size]


RANDOM: dict[str, Text] = {
    "small letters": at_random(string.ascii_lowercase, (3, 9)),
    "small letters without spaces": at_random(string.ascii_lowercase, (60, 60), separator=""),
    "capitals": at_random(string.ascii_uppercase, (3, 9)),
    "letters": at_random(LETTERS, (3, 9)),
    "letters and digits": at_random(LETTERS + string.digits, (20, 20), separator=","),
    "consonants": at_random("bcdfghjklmnpqrstvwxz", (3, 8)),
    "vowels": at_random("aeiou", (3, 8)),
    "syllables": at_random([first + second for first in "bdfgklmnprstvz" for second in "aeiou"], (2, 4)),
    "names with underscores": at_random([*string.ascii_lowercase, "_"], (9, 20)),
    "genes": at_random("ACGT", (60, 60), separator="\n"),
    "punctuation": at_random(string.punctuation, (1, 12)),
    "punctuation without spaces": at_random(string.punctuation, (60, 60), separator=""),
    "brackets": at_random("()[]{}<>", (1, 8)),
    "punctuation and letters": at_random(string.punctuation + string.ascii_lowercase, (60, 60), separator=""),
    "short words in lines": at_random(("it", "is", "so", "we"), (1, 1), separator="\n"),
    "short words with commas": at_random(("it", "is", "so", "we"), (1, 1), separator=","),
    "base64 in lines": at_random(LETTERS + string.digits + "+/", (76, 76), separator="\n"),
    "minified code": minified,
    "control characters": at_random([*map(chr, range(1, 9))], (1, 5)),
    "Cyrillic": at_random([*map(chr, range(0x430, 0x450))], (2, 8)),
    "Greek": at_random([*map(chr, range(0x3B1, 0x3CA))], (2, 8)),
    "Arabic": at_random([*map(chr, range(0x621, 0x64B))], (2, 8)),
    "Devanagari": at_random([*map(chr, range(0x905, 0x93A))], (2, 8)),
    "Ethiopic": at_random([*map(chr, range(0x1200, 0x1248))], (2, 8)),
    "Latin with accents": at_random([*map(chr, range(0xC0, 0x250))], (2, 8)),
    "kana": at_random([*map(chr, range(0x3041, 0x3097))], (4, 30)),
    "Han": at_random([*map(chr, range(0x4E00, 0x9F00))], (2, 8)),
    "Hangul": at_random([*map(chr, range(0xAC00, 0xD7A4))], (2, 8)),
    "emoji": at_random([*map(chr, range(0x1F300, 0x1F650))], (1, 9)),
    "mathematical letters": at_random([*map(chr, range(0x1D400, 0x1D4FF))], (3, 9)),
    "several scripts": at_random("aZ7{éßжλשعक漢か한🌍→ǣ뇑", (2, 9)),
}
"""Texts with more tokens than the same characters in words have: nothing of them is in a vocabulary."""


_NAMES = ("asgiref", "certifi", "charset-normalizer", "grpcio", "jsonschema", "markupsafe", "numpy", "pyyaml", "zipp")


def _lines(line: Callable[[random.Random], str]) -> Text:
    def make(chance: random.Random, size: int) -> str:
        lines: list[str] = []
        length = 0
        while length < size:
            lines.append(line(chance))
            length += len(lines[-1]) + 1
        return "\n".join(lines)[:size]

    return make


def _version(chance: random.Random) -> str:
    return f"{chance.randrange(9)}.{chance.randrange(40)}.{chance.randrange(12)}"


def _pin(chance: random.Random) -> str:
    name = chance.choice(_NAMES)
    via = "".join(f"\n    #   {other}" for other in chance.sample(_NAMES, chance.randrange(1, 4)))
    return f"{name}=={_version(chance)}\n    # via{via}"


def _hashed_pin(chance: random.Random) -> str:
    hashes = " \\\n".join(f"    --hash=sha256:{chance.getrandbits(256):064x}" for _ in range(chance.randrange(2, 9)))
    return f"{chance.choice(_NAMES)}=={_version(chance)} \\\n{hashes}"


def _package(chance: random.Random) -> str:
    digest = base64.b64encode(chance.randbytes(64)).decode()
    name = chance.choice(_NAMES)
    return (
        f'    "node_modules/{name}": {{\n      "version": "{_version(chance)}",\n'
        f'      "resolved": "https://packages.example/{name}/-/{name}-{_version(chance)}.tgz",\n'
        f'      "integrity": "sha512-{digest}",\n      "license": "MIT"\n    }},'
    )


def _crate(chance: random.Random) -> str:
    return (
        f'[[package]]\nname = "{chance.choice(_NAMES)}"\nversion = "{_version(chance)}"\n'
        f'checksum = "{chance.getrandbits(256):064x}"\ndependencies = [\n "{chance.choice(_NAMES)}",\n]\n'
    )


def _icon(chance: random.Random) -> str:
    path = "".join(
        f"{chance.choice('mlcsahvz')}{chance.randrange(99)}.{chance.randrange(999)}-{chance.randrange(9)}.{chance.randrange(99)}"
        for _ in range(chance.randrange(6, 30))
    )
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" class="bi"><path d="{path}"/></svg>'


def _record(chance: random.Random) -> str:
    digest = base64.urlsafe_b64encode(chance.randbytes(32)).decode().rstrip("=")
    return f"{chance.choice(_NAMES)}/_{chance.choice(_NAMES)}.py,sha256={digest},{chance.randrange(90_000)}"


def _entry(chance: random.Random) -> str:
    size, time = chance.randrange(90_000), f"{chance.randrange(24):02}:{chance.randrange(60):02}"
    return f"-rw-r--r-- 1 root root {size:>7} Nov {chance.randrange(1, 30):>2} {time} {chance.choice(_NAMES)}.pyc"


def _mapping(chance: random.Random) -> str:
    letters = string.ascii_letters + string.digits
    return ";".join("".join(chance.choices(letters, k=chance.choice((4, 4, 5)))) + "," for _ in range(40))


FILES: dict[str, Text] = {
    "pinned requirements": _lines(_pin),
    "requirements with hashes": _lines(_hashed_pin),
    "a lock file of npm": _lines(_package),
    "a lock file of Cargo": _lines(_crate),
    "icons in SVG": _lines(_icon),
    "a list of installed files": _lines(_record),
    "a directory": _lines(_entry),
    "a source map": _lines(_mapping),
    "a log of requests": log,
    "records in JSON": rows_of_json,
    "minified functions": minified,
    "base64": opaque,
    **{
        f"prose in {name}": lambda _, size, text=text: (text * (size // len(text) + 1))[:size]
        for name, text in SENTENCES.items()
    },
}
"""Texts like files that agents read and that are neither English prose nor source code."""
