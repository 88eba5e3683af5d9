"""The settings of a conversion of many conversations, and the fingerprint by which a later run recognises them."""

from __future__ import annotations

from hashlib import sha256
from typing import Final, Literal, NamedTuple, TypeAlias, cast, final

import msgspec

from segue.corpus.rows import Reader
from segue.foundation.version import __version__
from segue.models.model import Model
from segue.projection.policy import Policy

Purpose: TypeAlias = Literal["requests", "batch", "training"]
SPAN: Final = 256 * 1024 * 1024
"""Bytes of a file, or of row groups of a Parquet file, that one shard has at most."""


@final
class Job(NamedTuple):
    """The settings of a conversion; the same for every row. It can be pickled if the functions of its policy can be."""

    model: Model
    policy: Policy = Policy()
    reader: Reader = Reader()
    purpose: Purpose = "requests"
    stop: bool = False
    """Whether a bad row stops the run."""
    reports: bool = False
    """Whether to make a report for each conversation."""
    details: bool = False
    """Whether the output needs id, changes and tokens of each row."""
    span: int = SPAN
    """The most bytes of a shard."""
    form: str | None = None
    """The format of a training set; None is that of the model."""
    ids: bool | None = None
    """Whether a line of the output has the `id` that its row has; None: if the input is lines, and so the output."""

    def description(self) -> JobDescription:
        """Describe what decides about the bytes of the output."""
        policy = {name: _plain(getattr(self.policy, name)) for name in Policy.__struct_fields__}
        reader = self.reader
        writer = None if reader.writer is None else reader.writer.full_name()
        settings = (self.model, policy, reader, self.purpose, self.span, self.form, __version__)
        digest = sha256(msgspec.json.encode(settings, order="deterministic", enc_hook=_plain)).hexdigest()
        return JobDescription(
            target=self.model.full_name(),
            protocol=self.model.protocol,
            purpose=self.purpose,
            reasoning=self.policy.reasoning,
            source=reader.protocol,
            writer=writer,
            column=reader.column,
            id_column=reader.id_column,
            span=self.span,
            form=self.form,
            version=__version__,
            fingerprint=digest[:32],
        )


@final
class JobDescription(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a note records of a job. Equal fingerprints give equal output for the same input."""

    target: str
    protocol: str
    fingerprint: str
    purpose: str = "requests"
    reasoning: str = "auto"
    source: str | None = None
    writer: str | None = None
    column: str | None = None
    id_column: str | None = None
    span: int = SPAN
    form: str | None = None
    version: str = ""

    def differences(self, other: JobDescription) -> str:
        """Name what differs from another job, for an error message."""
        named = [
            f"{_LABELS[name]} {mine!s} in place of {theirs!s}"
            for name in _LABELS
            if (mine := cast("object", getattr(self, name))) != (theirs := cast("object", getattr(other, name)))
        ]
        return ", ".join(named) or "another policy or another entry of the catalogue"


_LABELS: Final = {
    "target": "target",
    "protocol": "protocol",
    "purpose": "--as",
    "reasoning": "--reasoning",
    "source": "--from",
    "writer": "--from-model",
    "column": "--column",
    "id_column": "--id-column",
    "span": "--span",
    "form": "--format",
    "version": "version",
}


def _plain(value: object) -> object:
    """Write a value of a policy as JSON; a function by its name, a set in order."""
    if isinstance(value, (frozenset, set)):
        return sorted(map(str, cast("set[object]", value)))
    if callable(value) and not isinstance(value, msgspec.Struct):
        return f"{value.__module__}.{getattr(value, '__qualname__', type(value).__qualname__)}"
    return value
