"""Native blocks and citations of another protocol: the client's equivalent of them, or a labelled text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from msgspec.structs import replace

from segue.conversation.content import FallbackContent, NativeContent, TextContent
from segue.conversation.events import Event, NativeEvent
from segue.conversation.messages import AssistantMessage
from segue.errors import Path
from segue.projection.policy import fill
from segue.projection.replies.shown import Parts, ReplyClient
from segue.projection.report import ChangeCode, Loss
from segue.protocols.kit.reply_form import Search
from segue.protocols.kit.sources import CitedPage, distinct, write_sources
from segue.protocols.registry import find_protocol


@final
class Natives:
    """Shows the native blocks of one reply, and collects the pages that it cites."""

    def __init__(self, client: ReplyClient, parts: Parts) -> None:
        self._client = client
        self._parts = parts
        self._half: tuple[int, Search, NativeContent] | None = None  # the first block of a search that has two
        self.cited: list[CitedPage] = []
        """Pages to cite at the end of the reply."""
        self.queries: list[str] = []
        """What was searched for, to be written at the end of the reply."""

    def show(self, event: NativeEvent, out: list[Event]) -> None:
        """Show a block: unchanged, as the equivalent of this protocol, or as its fallback."""
        content, client = event.content, self._client
        if content.protocol == client.record.name and client.is_own:
            place = self._parts.add()
            self._parts.content[place] = content
            out.append(event if place == event.index else replace(event, index=place))
            return
        search = self._read(content)
        if search is None or not (client.form.write_search or client.form.searches_in_reply):
            self.flush(out)
            self._fall_back(content, event.index, out)
        elif search.is_open:
            self.flush(out)
            self._half = (event.index, search, content)
        else:
            if self._half is not None:
                search = Search(search.query or self._half[1].query, search.pages)
            self._half = None
            self._show_search(search, content, event.index, out)

    def _read(self, content: NativeContent) -> Search | None:
        record = find_protocol(content.protocol)
        read = None if record is None else record.reply_form.read_search
        return None if read is None else read(content)

    def flush(self, out: list[Event]) -> None:
        """Show a search whose second block did not come."""
        if self._half is not None:
            index, search, content = self._half
            self._half = None
            self._show_search(search, content, index, out)

    def _show_search(self, search: Search, content: NativeContent, index: int, out: list[Event]) -> None:
        form = self._client.form
        self._client.note(ChangeCode.NATIVE_REPLACED, ("content", index), Loss.OPAQUE, "web search")
        if form.write_search is None:
            self.cited += search.pages
            self.queries += [search.query] if search.query else []
            return
        block = form.write_search(search, content.block)
        shown = NativeContent(protocol=self._client.record.name, block=block, fallback=content.fallback)
        place = self._parts.add()
        self._parts.content[place] = shown
        out.append(NativeEvent(index=place, content=shown))

    def _fall_back(self, content: NativeContent, index: int, out: list[Event]) -> None:
        path: Path = ("content", index)
        if not content.fallback:
            self._client.note(ChangeCode.NATIVE_DROPPED, path, Loss.OPAQUE, content.protocol)
            return
        is_text = all(piece.kind == "text" for piece in content.fallback)
        loss = Loss.OPAQUE if is_text else Loss.CONTENT
        self._client.note(ChangeCode.NATIVE_REPLACED, path, loss, content.protocol)
        for piece in content.fallback:
            text = self._as_text(piece)
            if text:
                self._parts.add_text(text, out)

    def _as_text(self, piece: FallbackContent) -> str:
        if piece.kind == "text":
            return piece.text
        kind = "image" if piece.kind == "image" else "file"
        mime = piece.mime_type or piece.url or "unknown type"
        return fill(self._client.policy.texts.media_flattened, kind=kind, mime=mime)

    # -- citations -----------------------------------------------------------------------------------------------------

    def pages_of_text(self, content: TextContent) -> list[CitedPage]:
        """Return the pages that a text cites in its own fields."""
        client = self._client
        cite = None if client.source is None else client.source.cited_sources
        if cite is None or content.extra is None or client.origin is None:
            return []
        return distinct(cite(replace(client.origin, content=(content,), extra=None)))

    def pages_of_reply(self, message: AssistantMessage) -> list[CitedPage]:
        """Return the pages that are cited next to the content, and those that were found before."""
        client = self._client
        cite = None if client.source is None else client.source.cited_sources
        texts = tuple(TextContent(text=piece.text) for piece in message.content if piece.kind == "text")
        plain = None if cite is None or message.extra is None else replace(message, content=texts)
        beside: Sequence[CitedPage] = () if cite is None or plain is None else cite(plain)
        return distinct([*self.cited, *beside])

    def list_pages(self, message: AssistantMessage, pages: Sequence[CitedPage], out: list[Event]) -> None:
        """List pages in a text at the end; nothing comes after calls, which end the reply."""
        texts = [piece.text for piece in self._parts.content.values() if piece.kind == "text"]
        lines = write_sources(page for page in pages if not any(page.url in text for text in texts))
        if not lines:
            return
        if message.tool_calls() or not texts:
            self._client.note(ChangeCode.EXTRA_REMOVED, ("content",), Loss.OPAQUE, "cited pages")
            return
        self._client.note(ChangeCode.SOURCES_AS_TEXT, ("content",), Loss.NONE)
        self._parts.add_text(fill(self._client.policy.texts.sources, text="\n".join(lines)), out)
