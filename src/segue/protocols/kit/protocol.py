"""`Protocol`: one wire format as one public, frozen record of plain functions and data.

A protocol of segue is a folder of about nine files: `rules`, `content` (blocks both ways), `turns`, `options`,
`request`, `response`, `stream` and `check`, and `protocol`, which imports what they define and assembles the record
field by field: `PROTOCOL = Protocol(name=NAME, encode_request=encode_request, framing="sse", ...)`. A protocol of
another package is the same record, passed to `register_protocol` or named by an entry point of the group
`segue.protocols`.

Codecs never lose data, and do not depend on which model wrote a message. An unknown wire block becomes `NativeContent`.
Unknown keys, and wire format that differs from the default, go to `extra[protocol]` (`segue.protocols.kit.verbatim`).
Neutral content that the protocol does not support raises `EncodeError` with its path; projection removes it before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pkgutil import get_data
from typing import Literal, TypeAlias, final

import msgspec
from msgspec.structs import force_setattr

from segue.conversation.context import Options, Prompt
from segue.conversation.messages import AssistantMessage, Message
from segue.errors import EncodeError, SettingsError
from segue.models.dialect import Dialect
from segue.models.family import Family
from segue.models.model import Model
from segue.models.rules import Rules
from segue.protocols.kit.api_versions import ApiVersions
from segue.protocols.kit.batch_form import BatchForm
from segue.protocols.kit.clues import Clues
from segue.protocols.kit.codec import Endpoint, ErrorReply, Fault, JsonObject, Violation, WireError
from segue.protocols.kit.facts import (
    NO_SIGNATURES,
    NO_SLOTS,
    ItemIds,
    Namespaces,
    PrefixForm,
    SearchForm,
    ServerEdits,
    SignatureForm,
    StateSlots,
    TrainingForm,
)
from segue.protocols.kit.held_content import NO_HELD_CONTENT, HeldContent
from segue.protocols.kit.model_lists import ModelList
from segue.protocols.kit.replay import NO_REPLAY, Replay
from segue.protocols.kit.reply_form import DEFAULT_FORM, ReplyForm
from segue.protocols.kit.routing import Route
from segue.protocols.kit.server_tools import ServerTool
from segue.protocols.kit.sources import CitedPage
from segue.protocols.kit.storable import PlainChecks, PlainErrors, StorableRequests, StorableResponses
from segue.protocols.kit.stream_writing import Explain, StreamEncoder
from segue.protocols.kit.streaming import StreamDecoder
from segue.protocols.kit.token_count import TokenCount
from segue.protocols.kit.transports import Transport

Framing: TypeAlias = Literal["sse", "ndjson", "aws-event-stream", "none"]


@final
class Sample(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One exchange as the provider would send and receive it, for tests and documentation.

    `request` is a body, `response` the whole reply, `stream` the same reply as parsed frames. `stream_error` is a frame
    that reports an error in the middle of a stream. `stream_end` is the text of a last SSE event that is not JSON, such
    as `[DONE]`. A part that the protocol does not have is None.
    """

    name: str
    request: dict[str, object] | None = None
    response: dict[str, object] | None = None
    stream: tuple[dict[str, object], ...] | None = None
    stream_error: dict[str, object] | None = None
    stream_end: str | None = None


@final
class Documentation(msgspec.Struct, frozen=True, kw_only=True):
    """The title of a protocol, a link to the provider's reference, and a summary in one sentence, for documents."""

    title: str
    link: str = ""
    summary: str = ""


def _no_samples() -> tuple[Sample, ...]:
    return ()


@final
class Protocol(msgspec.Struct, frozen=True, kw_only=True):
    """One wire format: its rules, its functions, and data for tests, documents and detection.

    Data:

    - `name`: the name that models and callers use, such as `openai-chat`.
    - `provider`: the default provider, where only the protocol is known.
    - `rules`, `dialect`, `families`: what the provider accepts, how it is written, and which families of models differ.
    - `server_tools`: the tools that providers of this protocol run themselves.
    - `framing`: how a streamed reply is split into frames.
    - `not_carried`: the fields of neutral types that a request body cannot hold. `turns`: the body does not separate
      two turns of the same role. `pieces`: the body joins the texts of a turn.
    - `default_fields`: fields that segue has no name for, with the values that say no more than their absence.
    - `held_content`: which parts of a body refer to content that only the provider has.
    - `headers`: headers of every request, in addition to the key.
    - `reads_apart`: the turns from a reply on are read alike with and without the turns before them, as long as their
      results are those of their own calls.
    - `usage_option`: the field of a request, and the key in it, that ask for usage in a stream; None: always there.
    - `versions`: the versions of the API that a header names, and what each refuses; None: there is no such header.
    - `copies_arguments`: `encode_request` shares no dict or list with the arguments of calls, whose texts or copies it
      writes where `Endpoint.owned` asks for it. Without it the whole body is copied for callers that may change it.
    - `replay`: which blocks of this wire belong together, so that none is sent without the other.
    - `item_ids`: where the ids of items are that a request may hold only once; None: the wire has none.
    - `sdk_parameters`: the arguments of the provider's own client, or a function that reads them; other keys go to
      `extra_body`.
    - `clues`: keys and values by which detection recognises a body.
    - `example`: a model of this protocol, for tests, documentation and the demo.
    - `samples()`: sample exchanges. A function, so that they are read only when needed.
    - `documentation`: title, link and summary.
    - `token_count`: the endpoint that counts the tokens of a request, where providers of this protocol have one.
    - `transports`: other ways in which providers take the requests of this protocol, by their names.
    - `routes`: the endpoints as a server sees them, with which `read_call` recognises requests.
    - `reply_form`: what a reply can hold of the reply of another protocol.
    - `json_mode`: the fields of a body that ask for JSON without a schema; empty: the protocol has none.
    - `prefix`: how a body holds what reasoning is bound to; None: no provider of this protocol is known to check it.
    - `server_edits`: how a server is asked to shorten a conversation itself; None: the protocol has no such field.
    - `model_list`: how the answers about models are written; None: the protocol has none.
    - `forwarded_headers`: headers of a client that a gateway sends on to a provider of the same protocol.
    - `state_slots`: the fields of replies that clients return unread, in which a gateway keeps state.
    - `batch_forms`: the batch files of providers that take bodies of this protocol.
    - `training_forms`: the lines of training files, the first whose `ids` the model has; else the default form.
    - `signatures`: how the emulator signs replies, and refuses signatures.
    - `searches`: what searches of the provider leave in a reply; None: it has none.
    - `operation`: what OpenTelemetry's conventions call a request.

    Functions:

    - `path(endpoint, stream)`: the path of a request below the base URL.
    - `encode_request(prompt, endpoint)`: writes a body. A prompt that `decode_request` read gives the same body again.
    - `decode_request(body, endpoint)`: reads a body, or its bare list of messages.
    - `encode_response(message, endpoint)`, `decode_response(body, endpoint, tool_names)`: write and read a whole reply.
    - `stream_decoder(endpoint, tool_names)`: makes a decoder for one streamed reply.
    - `stream_encoder(endpoint, options, explain)`: makes an encoder for one streamed reply; `options` are those of the
      client's request, `explain` gives what to write of an error. None: the protocol has no stream to write.
    - `encode_error(fault)`: writes an error body with its status and headers; None: the protocol has no errors.
    - `decode_error(body, status)`: reads an error body, or the error object of a stream.
    - `check(body, endpoint)`: lists what the provider would refuse.
    - `check_options(body, endpoint)`: finds the options that it would refuse, without a look at the turns; None: there
      is no such function. A gateway does not pass such a body on as it is.
    - `affects_later(message)`: whether the wire format of later messages depends on this one; None: never.
    - `namespaces`: how tools are grouped in namespaces; None: they are not.
    - `cited_sources(message)`: the web pages that a reply cites in fields that only this protocol has; None: none.
      `cites_in_reply`: it reads what the message keeps of its reply, and not only the `extra` of its content.
    - `needed_headers(prompt)`: the headers without which its content is refused, each a list; None: there are none.
    - `tool_changes(defined, named, removed)`: the blocks of a system message that adds tools by their definitions, adds
      them by name and removes them by name; None: the protocol has no such blocks.
    - `sdk_arguments(body, endpoint)`: the arguments of an SDK client that does not accept the keys of the body.

    The record wraps `decode_request`, `decode_response`, `decode_error` and `check`: these functions get plain JSON,
    and their results can be stored (`segue.protocols.kit.storable`).
    """

    name: str
    provider: str
    rules: Rules
    dialect: Dialect = Dialect()
    families: tuple[Family, ...] = ()
    server_tools: tuple[ServerTool, ...] = ()
    framing: Framing
    path: Callable[[Endpoint, bool], str]
    encode_request: Callable[[Prompt, Endpoint], dict[str, object]]
    decode_request: Callable[[JsonObject | Sequence[object], Endpoint], Prompt]
    encode_response: Callable[[AssistantMessage, Endpoint], dict[str, object]]
    decode_response: Callable[[JsonObject, Endpoint, Mapping[str, str]], AssistantMessage]
    stream_decoder: Callable[[Endpoint, Mapping[str, str]], StreamDecoder]
    stream_encoder: Callable[[Endpoint, Options | None, Explain], StreamEncoder] | None = None
    decode_error: Callable[[object, int | None], WireError]
    encode_error: Callable[[Fault], ErrorReply] | None = None
    check: Callable[[JsonObject, Endpoint], list[Violation]]
    check_options: Callable[[JsonObject, Endpoint], Iterator[Violation]] | None = None
    not_carried: frozenset[str]
    clues: Clues
    example: Model
    documentation: Documentation
    samples: Callable[[], tuple[Sample, ...]] = _no_samples
    default_fields: Mapping[str, object] = msgspec.field(default_factory=dict[str, object])
    held_content: HeldContent = NO_HELD_CONTENT
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    reads_apart: bool = False
    usage_option: tuple[str, str] | None = None
    versions: ApiVersions | None = None
    affects_later: Callable[[Message], bool] | None = None
    namespaces: Namespaces | None = None
    cited_sources: Callable[[AssistantMessage], Sequence[CitedPage]] | None = None
    cites_in_reply: bool = False
    replay: Replay = NO_REPLAY
    item_ids: ItemIds | None = None
    copies_arguments: bool = False
    sdk_parameters: frozenset[str] | Callable[[], frozenset[str]] = frozenset()
    sdk_arguments: Callable[[JsonObject, Endpoint], dict[str, object]] | None = None
    token_count: TokenCount | None = None
    transports: Mapping[str, Transport] = msgspec.field(default_factory=dict[str, Transport])
    routes: tuple[Route, ...] = ()
    model_list: ModelList | None = None
    reply_form: ReplyForm = DEFAULT_FORM
    json_mode: Mapping[str, object] = msgspec.field(default_factory=dict[str, object])
    prefix: PrefixForm | None = None
    server_edits: ServerEdits | None = None
    needed_headers: Callable[[Prompt], Mapping[str, str]] | None = None
    forwarded_headers: tuple[str, ...] = ()
    state_slots: StateSlots = NO_SLOTS
    batch_forms: tuple[BatchForm, ...] = ()
    training_forms: tuple[TrainingForm, ...] = ()
    signatures: SignatureForm = NO_SIGNATURES
    searches: SearchForm | None = None
    operation: str = "chat"
    tool_changes: Callable[[Sequence[JsonObject], Sequence[str], Sequence[str]], list[dict[str, object]]] | None = None

    def __post_init__(self) -> None:
        """Wrap the functions that read a body, so that no codec has to expect values which cannot be stored."""
        if not isinstance(self.decode_request, StorableRequests):
            force_setattr(self, "decode_request", StorableRequests(self.decode_request, self.turns_key))
        if not isinstance(self.decode_response, StorableResponses):
            force_setattr(self, "decode_response", StorableResponses(self.decode_response))
        if not isinstance(self.decode_error, PlainErrors):
            force_setattr(self, "decode_error", PlainErrors(self.decode_error))
        if not isinstance(self.check, PlainChecks):
            force_setattr(self, "check", PlainChecks(self.check))

    @property
    def turns_key(self) -> str | None:
        """The key of a body whose list holds all turns; None where no single list does."""
        return self.clues.turns_key


def fixed_path(path: str) -> Callable[[Endpoint, bool], str]:
    """Return the function `path` of a protocol whose path does not depend on the request.

    A dialect may have another.
    """

    def path_of(endpoint: Endpoint, stream: bool) -> str:  # noqa: ARG001 - common signature
        return endpoint.dialect.path or path

    return path_of


def only_arguments(
    client: str, named: frozenset[str] | Callable[[], frozenset[str]]
) -> Callable[[JsonObject, Endpoint], dict[str, object]]:
    """Return the function `sdk_arguments` of a client that takes the keys of a body, and no others."""

    def sdk_arguments(body: JsonObject, endpoint: Endpoint) -> dict[str, object]:  # noqa: ARG001 - common signature
        known = named() if callable(named) else named
        for key in body:
            if key not in known:
                raise EncodeError(f"the {client} client has no argument {key!r}; send the body itself", path=(key,))
        return dict(body)

    return sdk_arguments


def read_samples(package: str | None, file: str = "samples.json") -> Callable[[], tuple[Sample, ...]]:
    """Return a function that reads the samples of a package from its JSON file, once, when it is first called.

    Raises:
        SettingsError: the file is missing or is not a list of samples. Raised by the function that is returned.
    """

    @lru_cache(maxsize=1)
    def samples() -> tuple[Sample, ...]:
        try:
            return msgspec.json.decode(get_data(package or "", file) or b"", type=tuple[Sample, ...])
        except (OSError, msgspec.DecodeError) as error:
            raise SettingsError(f"{package}/{file} cannot be read as samples: {error}", key=file) from error

    return samples
