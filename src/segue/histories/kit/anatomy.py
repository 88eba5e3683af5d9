"""Where the records of a program hold calls, results, reasoning and pictures: what a repair has to know of a format."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, final

from segue.histories.kit.lines import Fields, text_of

NO_RESULT: Final = "No result: the session ended before this call was answered."
PLACEHOLDER: Final = "skip_thought_signature_validator"


@final
class OpenCall(NamedTuple):
    """A call that has no result."""

    id: str
    name: str


@final
@dataclass(frozen=True)
class Anatomy:
    """Where the records of a program hold what can be at fault.

    - `id_key`, `parent_key`: the fields that make the records a tree or a chain; None without one.
    - `carrier`: the field of a record that holds an item of the conversation as a whole.
    - `is_record`: whether an object that was found in a broken line is a record.
    - `call_id`, `result_id`: the id of the call that a node is, or is the result of; None for any other node.
    - `is_holder`: whether a node is a message or an item, after which a result can be inserted.
    - `close`: a call with its result, for programs that store both together; None if a result is inserted.
    - `answer`: the result of an open call, made after the holder of the call.
    - `group`: what records of one reply have in common; results follow the last one of them.
    - `signatures`: the names of fields that hold signatures. `unsign`: a node without its signature; None without node.
    - `picture`: the base64 data of a node that is a picture. `note`: a text in its place.
    - `is_hollow`: whether a node that lost something holds nothing any more.
    - `model_record`: a record after which the next turn uses another model; None if the program takes the model from
      its settings. `user_model`: the model as a message of the user names it, where that decides.
    - `own_models`: whether the signatures of a model are those of the provider that the program asks.
    """

    is_record: Callable[[Fields], bool]
    call_id: Callable[[Fields], str | None]
    result_id: Callable[[Fields], str | None]
    is_holder: Callable[[Fields], bool]
    answer: Callable[[Fields, OpenCall], dict[str, Any]]
    unsign: Callable[[dict[str, Any], str], dict[str, Any] | None]
    signatures: frozenset[str]
    picture: Callable[[Fields], str | None]
    note: Callable[[Fields, str], dict[str, Any] | None]
    is_hollow: Callable[[Fields], bool]
    close: Callable[[dict[str, Any]], dict[str, Any] | None] = lambda _: None
    group: Callable[[Fields], object] = lambda _: None
    model_record: Callable[[Sequence[Fields], str, str], dict[str, Any] | None] = lambda _records, _provider, _model: (
        None
    )
    user_model: Callable[[str, str], dict[str, Any]] | None = None
    own_models: Callable[[str], bool] = lambda _: True
    id_key: str | None = None
    parent_key: str | None = None
    carrier: str | None = None


def id_in(node: Mapping[str, Any], kinds: Collection[str], key: str) -> str | None:
    """Return the id in a node of one of these types."""
    return text_of(node.get(key)) if node.get("type") in kinds else None
