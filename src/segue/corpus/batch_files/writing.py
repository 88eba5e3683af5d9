"""Batch files: lines in the form of a provider, split at its limits, with a table of ids next to each file."""

from __future__ import annotations

from typing import Any, Final, final

import msgspec
from msgspec.structs import replace

from segue.calls.batch_forms import find_form
from segue.corpus.batches import BadRow, Batch
from segue.corpus.files import Files, Pending
from segue.corpus.rows import CorpusRow
from segue.errors import CorpusError
from segue.foundation.json_text import encode_json, encode_valid_json
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.protocols.kit.batch_form import BatchForm
from segue.requests.prepare import Request

IDS: Final = ".ids.json"
"""The ending of the table next to a batch file."""


@final
class SentRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the table of ids has about a request: the id that the row had, and the names of tools before a change."""

    id: str
    tool_names: dict[str, str] = msgspec.field(default_factory=dict[str, str])


@final
class BatchTable(msgspec.Struct, omit_defaults=True):
    """The table next to a batch file: the target, and the requests by the ids in the file."""

    model: str
    protocol: str
    form: str
    requests: dict[str, SentRequest]


@final
class BatchLines:
    """Writes the lines of a batch for one model.

    Raises:
        CorpusError: the provider has no batch file that is known.
    """

    def __init__(self, model: Model, policy: Policy) -> None:
        # No reply in a batch is streamed, also none of models that only stream otherwise.
        self._model, self._policy = replace(model, rules={**model.rules, "unstreamed": True}), policy
        self._form = find_form(model)

    def prepare(self, row: CorpusRow, place: tuple[str, int, int]) -> tuple[Request, bytes, str, str]:
        """Make the request of a row; return it with its line, its id and the id that the row had.

        Raises:
            SegueError: the row cannot be converted, or not be part of a batch.
        """
        document = row.document
        if document.prompt.options.stream:
            options = replace(document.prompt.options, stream=None)
            document = document._replace(prompt=replace(document.prompt, options=options))
        request = document.prepare(self._model, self._policy)
        given = row.id or f"{place[0]}@{place[2]}"
        name = self._form.legal_id(given)
        return request, line_of(self._form, name, request), name, given


def line_of(form: BatchForm, name: str, request: Request) -> bytes:
    """Write a request as a line of a batch file, without the line break."""
    if form.is_plain:
        # The body stays unchanged, so it is not encoded a second time.
        body: Any = msgspec.Raw(request.content)
        return encode_json(form.envelope.write(name, body, form.place))
    return encode_json(form.line(name, request.body))


@final
class BatchFiles:
    """The files of a batch: a new one is begun where the next request would exceed a limit of the provider."""

    def __init__(self, files: Files, folder: str, stem: str, model: Model) -> None:
        self._files, self._folder, self._stem = files, folder, stem
        self._model, self._form = model, find_form(model)
        self._pending: Pending | None = None
        self._table = self._new_table()
        self._seen: set[str] = set()
        self._size = 0
        self.names: list[str] = []
        """The files that were begun."""

    def _new_table(self) -> BatchTable:
        return BatchTable(self._model.full_name(), self._model.protocol, self._form.name, {})

    def write(self, batch: Batch, file: str) -> list[BadRow]:
        """Write the lines of a batch; return the rows that no file can take."""
        output, position, bad = bytes(batch.output), 0, list[BadRow]()
        for row in batch.details:
            line = output[position : position + row.size]
            position += row.size
            name, given = row.id or "", row.given_id or row.id or ""
            if name in self._seen:
                name, line = self._renamed(line, f"{given}#{file}:{row.line}")
            if len(line) > self._form.size:
                reason = f"the request is larger than a batch file of {self._form.name} may be"
                bad.append(BadRow(row.line, 0, "CorpusError", reason, line.removesuffix(b"\n")))
                continue
            self._seen.add(name)
            self._add(name, line, SentRequest(given, dict(row.tool_names or {})))
        return bad

    def _renamed(self, line: bytes, given: str) -> tuple[str, bytes]:
        """Change the id of a line; the ids in one batch have to be different."""
        name = self._form.legal_id(given)
        written = self._form.envelope.with_id(msgspec.json.decode(line, type=dict[str, object]), name)
        return name, encode_json(written) + b"\n"

    def _add(self, name: str, line: bytes, sent: SentRequest) -> None:
        is_full = len(self._table.requests) >= self._form.requests or self._size + len(line) > self._form.size
        if self._pending is None or is_full:
            self.close()
            number = len(self.names) + 1
            self.names.append(f"{self._stem}.jsonl" if number == 1 else f"{self._stem}-{number:05}.jsonl")
            self._pending = self._files.begin(self._folder, self.names[-1])
        self._pending.file.write(line)
        self._size += len(line)
        self._table.requests[name] = sent

    def close(self) -> None:
        """Make the file appear, after the table of its ids."""
        if self._pending is None:
            return
        table = self._files.begin(self._folder, self.names[-1] + IDS)
        table.file.write(encode_valid_json(self._table))
        table.commit()
        self._pending.commit()
        self._pending, self._table, self._size = None, self._new_table(), 0

    def discard(self) -> None:
        """Remove the file that is being written."""
        if self._pending is not None:
            self._pending.discard()
            self._pending = None


def read_table(data: bytes, path: str) -> BatchTable:
    """Read the table of ids of a batch file.

    Raises:
        CorpusError: the file is not such a table.
    """
    try:
        return msgspec.json.decode(data, type=BatchTable)
    except msgspec.DecodeError as error:
        raise CorpusError(f"{path}: this is not a table of ids: {error}; remove it to match ids directly") from None
