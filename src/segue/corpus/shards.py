"""Shards: the parts into which a corpus is divided. One shard is one file, or a span of one, and gives one output file.

The plan depends only on the names and sizes of the input, so that every process of a cluster makes the same one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final, Literal, NamedTuple, TypeAlias, final

from segue.corpus.compression import COMPRESSIONS, open_reader
from segue.corpus.files import FileEntry, Files, files_at, is_remote
from segue.corpus.pieces import ShardPiece, WholeFile, cut_file, cut_span, cut_stream
from segue.errors import CorpusError
from segue.histories.opening import is_one_conversation
from segue.histories.recognition import HEAD

Form: TypeAlias = Literal["lines", "rows", "document"]

FORMS: Final[dict[str, Form]] = {".jsonl": "lines", ".ndjson": "lines", ".json": "document", ".parquet": "rows"}
"""The ending of a file -> what it holds: a conversation on each line, rows of columns, or one conversation."""
DONE: Final = ".done.json"
BAD: Final = ".bad.jsonl"
"""Endings of the files that a run writes next to its output."""


@final
class Shard(NamedTuple):
    """A part of the input.

    `name` is the name of its output, relative to the folder of the output. `file` is the name of the input as notes and
    quarantine files have it. `start` and `end` are bytes, or row groups of a Parquet file; 0 is the whole file.
    """

    name: str
    file: str
    path: str
    form: Form
    ending: str = ""
    """The ending of a compressed file."""
    start: int = 0
    end: int = 0
    size: int = 0
    stamp: str = ""


def form_of(name: str) -> tuple[Form, str] | None:
    """Return what a file contains, and its ending if it is compressed; None if the name has no known ending."""
    path = PurePosixPath(name.lower())
    ending = path.suffix if path.suffix in COMPRESSIONS else ""
    form = FORMS.get(PurePosixPath(path.stem).suffix if ending else path.suffix)
    return None if form is None or (ending and form == "rows") else (form, ending)


@final
class ShardPlan(NamedTuple):
    """The shards of a corpus in order, and the files that were left out because their ending is not known."""

    shards: list[Shard]
    ignored: list[str]


def plan(source: str, *, span: int, share: tuple[int, int] = (1, 1)) -> ShardPlan:
    """Divide a file or a folder into shards; `share` is (K, N): every N-th shard, beginning with the K-th.

    Raises:
        CorpusError: there is nothing to convert.
    """
    files = files_at(source)
    entries, ignored = list[FileEntry](), list[FileEntry]()
    if files.is_folder(source):
        for entry in sorted(files.walk(source), key=lambda each: each.name):
            if entry.name.endswith((DONE, BAD)):
                continue
            (ignored if form_of(entry.name) is None else entries).append(entry)
    else:
        entry = files.entry(source)
        if entry is None:
            raise CorpusError(f"{source}: there is no such file or folder; check the path")
        entries.append(entry)
    if not entries:
        raise CorpusError(f"{source}: no file ends in .jsonl, .ndjson, .json, .parquet, .jsonl.gz or .jsonl.zst")
    shards = [shard for entry in entries for shard in _cut(entry, span)]
    number, count = share
    return ShardPlan(shards[number - 1 :: count], [each.name for each in ignored])


def _cut(entry: FileEntry, span: int) -> Iterator[Shard]:
    form, ending = form_of(entry.name) or ("lines", "")
    whole = Shard(entry.name, entry.name, entry.path, form, ending, size=entry.size, stamp=entry.stamp)
    if entry.size <= span or ending or form == "document":
        yield whole
    elif form == "rows":
        from segue.corpus.parquet import cut_groups

        runs = cut_groups(entry.path, span)
        for number, (start, end) in enumerate(runs):
            yield _numbered(whole, number, len(runs))._replace(start=start, end=end)
    elif is_remote(entry.path) and not _is_seekable(entry.path):
        yield whole  # such as a web server that sends no ranges
    else:
        count = -(-entry.size // span)
        for number in range(count):
            yield _numbered(whole, number, count)._replace(start=number * span, end=(number + 1) * span)


def _is_seekable(path: str) -> bool:
    with files_at(path).open(path) as file:
        return file.seekable()


def _numbered(shard: Shard, number: int, count: int) -> Shard:
    if count == 1:
        return shard
    path = PurePosixPath(shard.name)
    return shard._replace(name=str(path.with_name(f"{path.stem}.{number:05}-of-{count:05}{path.suffix}")))


def pieces_of(shard: Shard, number: int = 0, *, skipped: int = 0) -> Iterator[ShardPiece]:
    """Read a shard in pieces and mark the last one; an empty shard has one empty piece.

    Raises:
        OSError: the file cannot be read.
    """
    waiting: ShardPiece | None = None
    for piece in _pieces(shard, number, skipped):
        if waiting is not None:
            yield waiting
        waiting = piece
    yield (waiting or ShardPiece(b"", number, shard.file, shard.start))._replace(last=True)


def _pieces(shard: Shard, number: int, skipped: int) -> Iterator[ShardPiece]:
    if shard.form == "rows":
        from segue.corpus.parquet import row_pieces

        for offset, rows in row_pieces(shard.path, shard.start, shard.end, skipped):
            yield ShardPiece(rows, number, shard.file, offset)
        return
    files = files_at(shard.path)
    if shard.form == "document" or _is_one_conversation(shard, files):
        yield ShardPiece(WholeFile(shard.path, shard.ending), number, shard.file)
        return
    if not shard.ending and not is_remote(shard.path):
        path = Path(shard.path)
        with path.open("rb") as file:
            start, end = cut_span(file, path.stat().st_size, shard.start, shard.end or None)
        for span in cut_file(path, start=start, end=end, skipped=skipped):
            yield ShardPiece(span, number, shard.file, span.start)
        return
    with files.open(shard.path) as file:
        start, size = 0, None
        if shard.end:
            start, end = cut_span(file, shard.size, shard.start, shard.end)
            file.seek(start)
            size = end - start
        reader = open_reader(file, shard.ending)
        read = sum(len(reader.readline()) for _ in range(skipped))
        offset = start + read
        for data in cut_stream(reader, None if size is None else size - read):
            yield ShardPiece(data, number, shard.file, offset)
            offset += len(data)


def _is_one_conversation(shard: Shard, files: Files) -> bool:
    """Whether a file of lines is one session, of segue or of an agent, as its beginning says."""
    if shard.start:
        return False
    with files.open(shard.path) as file:
        reader = open_reader(file, shard.ending)
        first = next((line for line in reader if not line.isspace()), b"")
        head = first + reader.read(HEAD) if len(first) < HEAD else first
    return is_one_conversation(head, PurePosixPath(shard.path).name)
