"""Pass 4, part 2: list the web pages that turns of other models cite.

Facts:
- Citations are in fields that only their protocol has (annotations, citations, grounding metadata), which are not
  sent to another one. Without them it is not known which pages an answer is based on.
- The provider that wrote them gets them back, whichever of its models is the target.
- A page that the text names already, or a list of search results before it, is not listed again.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from segue.conversation.content import TextContent
from segue.conversation.messages import AssistantMessage
from segue.projection.policy import fill
from segue.projection.report import ChangeCode, Loss
from segue.projection.workspace.surrogates import clean_text
from segue.projection.workspace.workspace import INSERTED, Workspace
from segue.protocols.kit.sources import CitedPage, write_sources
from segue.protocols.registry import find_protocol


def list_sources(workspace: Workspace) -> None:
    """Add a text with the pages that a foreign turn cites after its last text."""
    scan = workspace.scan
    if not scan.foreign or not (scan.extra or scan.replies):
        return
    records = {name: record for name in scan.protocols if (record := find_protocol(name)) is not None}
    readers = {name: each.cited_sources for name, each in records.items() if scan.extra or each.cites_in_reply}
    if not any(readers.values()):
        return
    model, places = workspace.target.model, workspace.places
    for index, message in enumerate(workspace.messages):
        if type(message) is not AssistantMessage or (message.extra is None and not scan.extra) or places[index] < 0:
            continue
        read = readers.get(message.protocol)
        if read is None or (message.protocol == model.protocol and message.provider == model.provider):
            continue  # the provider gets its own citations back
        if sources := read(message):
            _list_sources(workspace, index, message, sources)


def _list_sources(workspace: Workspace, index: int, message: AssistantMessage, sources: Sequence[CitedPage]) -> None:
    texts = [piece.text for piece in message.content if piece.kind == "text"]
    lines = write_sources(source for source in sources if not any(source.url in text for text in texts))
    if not lines or not texts:
        return
    last = max(at for at, piece in enumerate(message.content) if piece.kind == "text")
    text = TextContent(text=fill(workspace.target.policy.texts.sources, text=clean_text("\n".join(lines))))
    origins = workspace.origins(index)
    content = (*message.content[: last + 1], text, *message.content[last + 1 :])
    workspace.note(ChangeCode.SOURCES_AS_TEXT, (*workspace.path(index), "content"), Loss.NONE)
    workspace.put(index, replace(message, content=content), [*origins[: last + 1], INSERTED, *origins[last + 1 :]])
