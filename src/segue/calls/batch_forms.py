"""Lines of providers' batch files, in the forms of every protocol."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, final

from segue.errors import CorpusError
from segue.models.model import Model
from segue.protocols.kit.batch_form import BatchForm, Fields, ResultLine
from segue.protocols.registry import all_batch_forms, registered_count


@final
class RequestLine(NamedTuple):
    """A line of a batch file, read: the id, the body, and its protocol."""

    id: str | None
    body: Fields
    protocol: str


def batch_forms() -> tuple[tuple[str, BatchForm], ...]:
    """Return every form with the name of its protocol, in the order in which a line is recognised."""
    return _read_forms(registered_count())


@lru_cache(maxsize=4)
def _read_forms(count: int) -> tuple[tuple[str, BatchForm], ...]:  # noqa: ARG001 - the cache key: new records have new forms
    return tuple((name, form) for name, forms in all_batch_forms().items() for form in forms)


def find_form(model: Model) -> BatchForm:
    """Find the form of the batch files for a model; vendors with the API of OpenAI take its files.

    Raises:
        CorpusError: no form is known.
    """
    own = [form for name, form in batch_forms() if name == model.protocol]
    known = sorted({name for _, form in batch_forms() for name in form.providers})
    for form in own:
        if model.provider in form.providers or (form.for_others and model.provider not in known):
            return form
    raise CorpusError(
        f"no batch file is known for {model.full_name()} with {model.protocol}; the providers with one are:"
        f" {', '.join(known)}"
    )


def read_request_line(line: Fields) -> RequestLine | None:
    """Read a line of any provider's batch file; None for a line of none."""
    for protocol, form in batch_forms():
        found = form.read(line)
        if found is not None:
            return RequestLine(*found, protocol)
    return None


def read_result_line(line: Fields) -> ResultLine | None:
    """Read a result of any provider; None for a line of none."""
    for reader in dict.fromkeys(form.read_result for _, form in batch_forms()):
        found = reader(line)
        if found is not None:
            return found
    return None
