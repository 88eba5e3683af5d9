"""A streamed reply of an OpenAI chat endpoint: what its chunks say, and of which choice.

Facts this file rests on:
- Chunks carry deltas of choices; usage comes last, in a chunk of its own, in the choice or under the vendor's name; the
  end is `[DONE]`.                                        (openai 3.49.0; pi-ai 1.5.0; recorded traffic, 2026-11)
- A stream whose last chunk, and no other, tells the usage is whole even if no chunk said why it stopped.
                                                           (recorded traffic, 2026-11: openai-chat/0265 and 0307)
- An error may come at any point, as a chunk of its own or beside a choice.           (openai 3.49.0; OpenRouter)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from segue.conversation.messages import Diagnostic
from segue.models.model import Model
from segue.protocols.kit.assembly import Assembly
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import of_reply
from segue.protocols.kit.replies import read_stop
from segue.protocols.kit.streaming import StreamDecoder
from segue.protocols.openai_chat.errors import decode_error
from segue.protocols.openai_chat.fast_decode import find_delta
from segue.protocols.openai_chat.response import STOP_REASONS, encode_choice
from segue.protocols.openai_chat.rules import PROTOCOL
from segue.protocols.openai_chat.stream_choices import ChoiceReader
from segue.protocols.openai_chat.usage import decode_usage
from segue.protocols.openai_chat.verbatim import Block, Json

_READ: Final = frozenset({"id", "model", "object", "choices", "usage", "obfuscation", "error"})
"""Keys of a chunk that are read, or that say nothing about the reply."""
_MOST_MISFITS: Final = 16
"""A stream whose chunks do not fit so many times in a row has a form of its own: nothing shorter is tried any more."""


def stream_decoder(endpoint: Endpoint, tool_names: Mapping[str, str]) -> StreamDecoder:
    """Make a decoder for one reply."""
    reader = ChatReader(endpoint)
    return StreamDecoder(reader, Assembly(endpoint.model, PROTOCOL, tool_names), reader.read_fast)


class ChatReader:
    """Reads chunks: the first choice is the message, the others are assembled in silence and kept."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._choice = ChoiceReader(endpoint)
        self._others: dict[int, tuple[ChoiceReader, Assembly]] = {}
        self._body: dict[str, object] = {}
        self._chunks = 0
        self._billed = 0  # chunks that told the usage
        self._last_billed = 0
        self._misfits = 0  # chunks in a row that were too much for the short way

    def read_fast(self, frame: bytes, out: Assembly) -> bool:
        """Take in a chunk that brings nothing but growth, the short way; say whether it was one."""
        if self._misfits > _MOST_MISFITS or not self._chunks:
            return False
        delta = find_delta(frame)
        if delta is None or not self._choice.grow_by(delta, out):
            self._misfits += 1
            return False
        self._misfits = 0
        self._chunks += 1
        return True

    def read(self, frame: Mapping[str, object], out: Assembly) -> None:
        """Take one chunk in."""
        self._chunks += 1
        usage, choices = frame.get("usage"), cast("Json", frame.get("choices"))
        if usage is not None or self._chunks == 1:
            self._read_frame(frame, usage, out)
        if isinstance(choices, list):
            for choice in choices:
                # JSON objects are dicts: asking for a mapping costs more than all the rest of a delta.
                if isinstance(choice, dict) and not self._choice.grow(choice, out):
                    self._read_choice(choice, frame, out)
            if "error" in frame:
                self._fail(frame, out)
        elif "error" in frame or frame.get("object") == "error":
            self._fail(frame, out)

    def end(self, out: Assembly) -> None:
        """Put the reply together: whole, or as far as it came."""
        if out.final is not None:
            return
        self._choice.finish(out)
        self._keep(out)
        kinds: list[str] = [part.kind for part in out.parts]
        if self._choice.finished or (kinds and (not self._endpoint.dialect.finish_reason or self._is_billed())):
            out.raw_stop_reason = self._choice.reason
            out.stop_reason = read_stop(STOP_REASONS, self._choice.reason, kinds)
        out.finish()

    def _is_billed(self) -> bool:
        """Whether the usage came last and only then: whoever tells it all along says nothing by it."""
        return self._chunks > 1 and self._billed == 1 and self._last_billed == self._chunks

    def _read_frame(self, frame: Block, usage: object, out: Assembly) -> None:
        """Read what stands beside the choices: who answers, how much it took, what else is said."""
        out.start()
        if out.response_id is None and isinstance(name := frame.get("id"), str) and name:
            out.response_id = name
        if out.response_model is None and isinstance(model := frame.get("model"), str) and model:
            out.response_model = model
        if isinstance(usage, Mapping):
            out.usage = decode_usage(cast("Block", usage), self._endpoint.model)
            self._billed += 1
            self._last_billed = self._chunks
        for key, value in frame.items():
            if key not in _READ and value is not None:
                self._body[key] = value
                if usage is None and isinstance(value, Mapping):
                    nested = cast("Block", value).get("usage")
                    if isinstance(nested, Mapping) and "prompt_tokens" in nested:
                        out.usage = decode_usage(cast("Block", nested), self._endpoint.model)

    def _read_choice(self, choice: Block, frame: Block, out: Assembly) -> None:
        index = choice.get("index")
        reader = self._choice
        if isinstance(index, int) and index > 0:
            if index not in self._others:
                silent = Assembly(Model(out.model.id, out.model.provider, PROTOCOL), PROTOCOL)
                self._others[index] = (ChoiceReader(self._endpoint), silent)
            reader, silent = self._others[index]
            reader.read(choice, silent)
            silent.events.clear()
            return
        reader.read(choice, out)
        if choice.get("finish_reason") is not None and frame.get("usage") is None:
            self._read_frame(frame, None, out)
        nested = choice.get("usage")
        if isinstance(nested, Mapping):
            out.usage = decode_usage(cast("Block", nested), self._endpoint.model)
        error = choice.get("error")
        if error:
            self._fail({"error": error}, out)

    def _fail(self, frame: Block, out: Assembly) -> None:
        if out.final is not None or not (frame.get("error") or frame.get("object") == "error"):
            return
        error = decode_error(frame, None)
        given = {"code": error.code, "type": error.type, "status": error.status}
        details = {key: value for key, value in given.items() if value is not None}
        if details:
            out.diagnostics.append(Diagnostic(type="provider_error", message=error.message, details=details))
        self._choice.finish(out)
        self._keep(out)
        out.raw_stop_reason = self._choice.reason
        out.fail(error.message or "the provider reported an error")

    def _keep(self, out: Assembly) -> None:
        """Keep what the chunks said beyond our words, where a whole reply would have it."""
        kept: dict[str, object] = {}
        if self._body:
            kept["body"] = self._body
        if self._choice.left:
            kept["message"] = self._choice.left
        if self._choice.beside:
            kept["choice"] = self._choice.beside
        if self._others:
            kept["others"] = [self._other(index) for index in sorted(self._others)]
        out.extra = of_reply(PROTOCOL, kept)

    def _other(self, index: int) -> dict[str, object]:
        reader, silent = self._others[index]
        reader.finish(silent)
        silent.close_all()
        silent.raw_stop_reason = reader.reason
        return encode_choice(silent.message(), self._endpoint, {"message": reader.left}, index)
