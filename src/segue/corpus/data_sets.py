"""Lines of a training set in the format of a data set, for any model: ShareGPT, and messages of Hugging Face.

Nothing is projected: every turn keeps what its model wrote, thinking between tags.
"""

from __future__ import annotations

from typing import Final, final

import msgspec

from segue.conversation.context import Options
from segue.corpus.training import INVENTED, invented_content
from segue.errors import ProjectionError
from segue.foundation.json_text import encode_json
from segue.histories.api import write_history
from segue.histories.opening import OpenedDocument
from segue.models.model import Model
from segue.projection.projector import Projection
from segue.protocols.api import resolve_endpoint
from segue.protocols.registry import DEFAULT_PROTOCOL, get_protocol
from segue.requests.prepare import Request

FORMATS: Final = ("sharegpt", "hf-messages")
"""Formats of histories that have one row for each conversation."""


def data_set_model(name: str) -> Model:
    """Return the model that represents a format if no target is named; its price and its window are not known."""
    return Model(name, "data-set", DEFAULT_PROTOCOL)


@final
class DataSetRows:
    """Makes rows in one format."""

    def __init__(self, model: Model, name: str) -> None:
        self._name = name
        self._endpoint = resolve_endpoint(model)
        self._codec = get_protocol(model.protocol)

    def prepare(self, document: OpenedDocument) -> Request:
        """Make the row of a conversation.

        Raises:
            ProjectionError: the conversation does not end with the assistant, or would need something invented.
        """
        context = document.prompt.context
        if not context.messages or context.messages[-1].role != "assistant":
            raise ProjectionError("a training conversation has to end with a turn of the assistant; add the answer")
        written = write_history(context, format=self._name)
        invented = next((change for change in written.report.changes if change.code in INVENTED), None)
        if invented is not None:
            raise invented_content(invented)
        row: object = msgspec.json.decode(written.files[0].data)
        projection = Projection(context=context, options=Options(), report=written.report)
        return Request(projection, self._endpoint, self._codec, encode_json(row))
