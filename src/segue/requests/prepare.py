"""Requests: projects and encodes a stored conversation, and converts a request of one protocol to another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property, lru_cache, partial
from typing import Any, Final, cast

import msgspec
from msgspec.structs import replace

from segue.conversation.context import Context, Options, Prompt, is_decoded
from segue.conversation.marks import all_marks_of, mark_of, marks_of, stored_digest
from segue.conversation.messages import AssistantMessage, Message, Sent
from segue.errors import DecodeError, ProjectionRefused, SegueError, SettingsError
from segue.foundation.json_text import encode_json
from segue.foundation.quoting import check_path, join_headers
from segue.models.catalogue import Catalogue, get_model
from segue.models.model import Model
from segue.models.providers import find_row
from segue.projection.policy import Policy
from segue.projection.projector import Projection, project_for, prompt_of, refuse_at, with_routers
from segue.projection.report import Change, ChangeCode, Loss, Report
from segue.projection.requirements import Requirement
from segue.projection.workspace.ownership import KEY_LABEL, known_account
from segue.projection.workspace.workspace import KnownTools
from segue.protocols.api import check, decode_request, encode_request, find_endpoint, find_target, resolve_endpoint
from segue.protocols.context_input import ContextInput, leading_prompts, read_input
from segue.protocols.detection import detect_protocol
from segue.protocols.kit.api_versions import ApiVersions
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import detached
from segue.protocols.kit.owned_body import encode_owned
from segue.protocols.kit.protocol import Protocol
from segue.protocols.kit.reading import as_mapping
from segue.protocols.kit.reply_form import NO_FAULT, WITHHELD
from segue.protocols.kit.streaming import StreamDecoder
from segue.protocols.plain_text.content import write_transcript
from segue.protocols.plain_text.rules import PROTOCOL as PLAIN_TEXT
from segue.protocols.property_names import restore_properties, restoring_decoder
from segue.protocols.registry import get_protocol
from segue.requests.appending import Remembered, fit_appended
from segue.requests.binding.bind import MakeStamp, Sender, account_check, account_stamp, bind, stamp_body
from segue.requests.binding.digests import START, DigestCache
from segue.requests.binding.run import OTHER_ACCOUNT
from segue.requests.binding.stamp import Stamp
from segue.requests.fitting import fit_request
from segue.requests.provider_data import set_other_data_apart

_READER: Final = Model("reader", PLAIN_TEXT, PLAIN_TEXT)
"""The target of `transcribe`."""
_DEFAULT_POLICY: Final = Policy()
_UNFINISHED: Final = frozenset({"error", "aborted"})
_NO_STAMP: Final = Stamp()


class Request:
    """A request for one model: body, URL, headers, and the report of what projection changed.

    `body` and `content` are encoded on first access. `headers` contain no secret: the client adds the key.

    `body` is the caller's own: it shares no dict or list with the conversation, the tools, the options or another
    request, and changing it changes nothing else, `content` included. So are the results of `sdk_arguments`.
    """

    def __init__(
        self,
        projection: Projection,
        endpoint: Endpoint,
        codec: Protocol,
        content: bytes | None = None,
        *,
        wire: dict[str, object] | None = None,
        stamp: Stamp | MakeStamp | None = None,
        given: Context | None = None,
        account: str | None = None,
        remembered: Remembered | None = None,
        is_opened: bool = True,
        unsearched: Callable[[], bytes | None] | None = None,
    ) -> None:
        self.model: Model = endpoint.model
        self.protocol: str = codec.name
        self.report: Report = projection.report
        self.requirements: tuple[Requirement, ...] = projection.requirements
        self.tool_names: Mapping[str, str] = projection.tool_names
        self._projection = projection
        self._endpoint = endpoint
        self._codec = codec
        name = endpoint.dialect.transport
        self._transport = codec.transports.get(name) if name is not None and is_opened else None
        # Not cached properties: these take a lock for each access up to Python 3.11.
        self._wire = wire
        self._content = content
        self._unsearched = unsearched  # finds the part of the content that decides about the version
        self._made_stamp = stamp
        self._given = given
        self._remembered = remembered
        self._account = account if endpoint.rules.bound_account != "no" else None

    def __repr__(self) -> str:
        return f"Request({self.model.full_name()} over {self.protocol}, {len(self.report.changes)} changes)"

    @property
    def projection(self) -> Projection:
        """The projected conversation and options, in segue's types."""
        return self._projection

    @property
    def framing(self) -> str:
        """How a streamed reply is split into frames."""
        transport = self._codec.transports.get(self._endpoint.dialect.transport or "")
        return (transport and transport.framing) or self._codec.framing

    @cached_property
    def body(self) -> dict[str, Any]:
        """The request body as dicts and lists, to read or to change."""
        return {**self._moved_headers, **self._owned()}

    def _owned(self) -> dict[str, Any]:
        if self._wire is not None or self._asks:  # it is encoded already, or changed after that
            return detached(self._encoded())
        prompt = prompt_of(self._projection, self._endpoint)
        has_free_json = self._projection.has_free_json or prompt.anchored
        return encode_owned(self._codec, prompt, self._endpoint, has_free_json=has_free_json)

    @property
    def content(self) -> bytes:
        """The request body as JSON bytes; changes of `body` are not in it."""
        content = self._bare_content
        if self._transport is None:
            return content
        # The turns may be megabytes that are encoded already: what is added comes before them.
        return encode_json(self._moved_headers)[:-1] + b"," + content[1:]

    @property
    def _bare_content(self) -> bytes:
        """The body without what a transport adds to it."""
        if self._content is None:
            self._content = encode_json(self._encoded())
        return self._content

    @property
    def _moved_headers(self) -> dict[str, object]:
        """What the body has in place of headers, for the transport of the provider."""
        versions = self._codec.versions
        if self._transport is None or versions is None:
            return {}
        given = {name.lower(): value for name, value in join_headers(self.model.headers, self.needed_headers).items()}
        version = given.get(versions.header) or self._version_of(versions)
        return self._transport.keys(version, given)

    def _version_of(self, versions: ApiVersions) -> str:
        return versions.choose(self._bare_content, None if self._unsearched is None else self._unsearched())

    def _encoded(self) -> dict[str, object]:
        """Return the body as the codec gives it: it shares dicts with the conversation, so it is only read."""
        if self._wire is None:
            prompt = prompt_of(self._projection, self._endpoint)
            self._wire = self._codec.encode_request(prompt, self._endpoint)
            if self._codec.prefix is not None and self._asks:
                self._codec.prefix.ask(self._wire)
        return self._wire

    @property
    def url(self) -> str:
        """The URL that the request is sent to.

        Raises:
            SettingsError: neither the model nor its provider has a base URL, or the model id cannot be part of a URL.
        """
        return self._at(self._codec.path(self._endpoint, bool(self._projection.options.stream)))

    @property
    def count_url(self) -> str | None:
        """The URL at which the provider counts the tokens of the request; None if it has none.

        Raises:
            SettingsError: neither the model nor its provider has a base URL.
        """
        count = self._codec.token_count
        return self._at(count.path(self._endpoint)) if count and self._endpoint.dialect.count_tokens else None

    @cached_property
    def count_body(self) -> dict[str, Any] | None:
        """The body that is sent to `count_url`; None if there is none."""
        count = self._codec.token_count
        return count.body(self.body, self._endpoint) if count and self._endpoint.dialect.count_tokens else None

    def read_count(self, answer: object) -> int | None:
        """Read the number of input tokens in the answer to `count_body`; None if it has none."""
        count = self._codec.token_count
        return None if count is None else count.read(answer)

    def _at(self, path: str) -> str:
        row = None if self.model.base_url else find_row(self.model.provider)
        base = self.model.base_url if row is None else row.base_url
        if not base:
            raise SettingsError(
                f"{self.model.full_name()} has no base URL, so its requests have no address; set it on the model:"
                f" Model({self.model.id!r}, {self.model.provider!r}, {self.protocol!r}, base_url=...)",
                key="base_url",
            )
        return _join_url(base.rstrip("/"), path, self.model.id)

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the request, without the key."""
        given, versions = self.model.headers, self._codec.versions
        chosen = {} if versions is None or versions.header in given else {versions.header: self._version_of(versions)}
        headers = {"content-type": "application/json", **self._codec.headers, **chosen, **given}
        if needed := self.needed_headers:
            headers = join_headers(headers, needed)
        transport = self._codec.transports.get(self._endpoint.dialect.transport or "")
        return headers if transport is None else {k: v for k, v in headers.items() if not transport.is_moved(k)}

    @property
    def needed_headers(self) -> Mapping[str, str]:
        """The headers that the content needs; each is a list, to which other values may be added."""
        form, needed = self._codec.prefix, self._codec.needed_headers
        headers: Mapping[str, str] = form.headers if form is not None and self._asks else {}
        if needed is None or not self._projection.may_need_headers:
            return headers
        prompt = Prompt(context=self._projection.context, options=self._projection.options)
        return join_headers(headers, needed(prompt))

    @property
    def _asks(self) -> bool:
        """Whether the server is asked to drop reasoning that is not valid."""
        return self._made_stamp is not None and bool(self.stamp.asked)

    def sdk_arguments(self) -> dict[str, Any]:
        """Return the arguments for the provider's own client, new ones each time; unknown ones are in `extra_body`."""
        body = self._owned()
        if self._transport is not None:  # the provider's client makes the path and what is in place of headers
            body = {"model": self.model.id, **body}
            if self._projection.options.stream:
                body["stream"] = True
        if self._codec.sdk_arguments is not None:
            return self._codec.sdk_arguments(body, self._endpoint)
        named = self._codec.sdk_parameters
        named = named() if callable(named) else named
        if not named:
            return body
        arguments = {key: value for key, value in body.items() if key in named}
        beyond = {key: value for key, value in body.items() if key not in named}
        if beyond:
            arguments["extra_body"] = beyond
        headers: dict[str, str] = {}
        versions = self._codec.versions
        if versions is not None and (version := versions.choose(self._bare_content)) != versions.newest:
            headers[versions.header] = version  # the client itself sends the newest
        if needed := self.needed_headers:
            headers |= join_headers(self.model.headers, needed)
        if headers:
            arguments["extra_headers"] = headers
        return arguments

    def decode(self, body: object, *, account: str | None = None, key: str | None = None) -> AssistantMessage:
        """Decode a reply that was not streamed; renamed tools get their own names back.

        The message remembers what it was made after (`AssistantMessage.sent`), where the target binds reasoning to it.
        `account` names the account that the request was sent with: see `account_in`. `key` is the label of its key.
        """
        message = self._codec.decode_response(as_mapping(body), self._endpoint, self.tool_names)
        return self.stamped(restore_properties(message, self.tool_names), account=account, key=key)

    def stream_decoder(self, *, account: str | None = None, key: str | None = None) -> StreamDecoder:
        """Make a decoder for a streamed reply; its message is stamped like that of `decode`."""
        decoder = self._codec.stream_decoder(self._endpoint, self.tool_names)
        if self._is_stamped:
            decoder.stamp_with(partial(self.stamped, account=account, key=key))
        return restoring_decoder(decoder, self.tool_names, self.protocol)

    # -- what the reply is bound to ------------------------------------------------------------------------------------

    @property
    def _is_stamped(self) -> bool:
        rules = self._endpoint.rules
        is_known = self._made_stamp is not None or self._remembered is not None
        if is_known or rules.bound_prefix or rules.bound_account != "no":
            return True
        return self._codec.reply_form.withheld is not None or self._find_inserted() is not None

    def _find_inserted(self) -> str | None:
        """Find the text of a last user turn that is not a message of the conversation."""
        given = None if self._given is None else self._given.messages
        if given is None or (given and given[-1].role != "assistant"):
            return None
        last = self._projection.context.messages[-1:]
        if not last or last[0].role != "user" or not self.report.of(ChangeCode.TURN_INSERTED):
            return None
        return None if any(each is last[0] for each in given) else last[0].text()

    @property
    def binds_prefix(self) -> bool:
        """Whether the target binds reasoning to what comes before it."""
        return self._endpoint.rules.bound_prefix

    @property
    def stamp(self) -> Stamp:
        """What the request contains, from which the `sent` of its reply is made; computed on first use."""
        if callable(self._made_stamp):
            self._made_stamp = self._made_stamp()
        if self._made_stamp is None:
            is_given = self._wire is None and self._content is not None
            body = msgspec.json.decode(self._bare_content) if is_given else self._encoded()
            self._made_stamp = replace(stamp_body(self._codec, self._endpoint, body), account=self._account)
        return self._made_stamp

    @property
    def marks(self) -> frozenset[str]:
        """The marks of what the provider may refuse as not valid.

        That is signed thinking where it is bound to what comes before it. Elsewhere it is reasoning that no account is
        known of; without such, all signatures and native blocks.
        """
        if not self.binds_prefix and self.stamp.unknown:
            return frozenset(self.stamp.unknown)
        find = marks_of if self.binds_prefix else all_marks_of
        messages = self._projection.context.messages
        return frozenset(mark for message in messages if message.role == "assistant" for mark in find(message))

    def account_in(self, headers: Mapping[str, str]) -> str | None:
        """Return the account that the headers of a reply name, in lower case; None if they name none."""
        name = self._endpoint.dialect.account_header
        return None if name is None else headers.get(name) or None

    def stamped(
        self, message: AssistantMessage, *, account: str | None = None, key: str | None = None
    ) -> AssistantMessage:
        """Return a reply to this request with what it was made after."""
        if not self._is_stamped:
            return message
        stamp = self.stamp if self.binds_prefix or self._made_stamp is not None else _NO_STAMP
        if stamp.messages and self._is_compacted(message):
            stamp = replace(stamp, messages=stored_digest(START))
        if account is not None and self._endpoint.rules.bound_account != "no":
            known = key or self._account
            is_key = known is not None and known != account and known.startswith(KEY_LABEL)
            stamp = replace(stamp, account=account, key=known if is_key else None)
        is_reported = stamp.asked or stamp.passed or _is_withheld(message)
        sent = stamp.sent(message, self._withheld(message) if is_reported else None)
        if self._remembered is not None:
            sent = replace(sent or Sent(), **self._remembered._asdict())
        inserted = self._find_inserted()
        if inserted is not None and not self._is_compacted(message):  # nothing may be before a summary of everything
            sent = replace(sent or Sent(), inserted=inserted)
        return message if sent is None else replace(message, sent=sent)

    def _is_compacted(self, message: AssistantMessage) -> bool:
        """Whether a reply begins with a summary that represents everything before it."""
        form = self._codec.prefix
        blocks = [piece.block for piece in message.content if piece.kind == "native"]
        return bool(blocks) and form is not None and form.starts({"content": blocks})

    def _withheld(self, message: AssistantMessage) -> dict[str, str] | None:
        """Return the marks of what the server says that it did not read of this request, with the reasons."""
        read = self._codec.reply_form.withheld
        if read is None or message.stop_reason in _UNFINISHED or message.extra is None:
            return None
        body = self._wire or cast("dict[str, object]", msgspec.json.decode(self.content))
        found = read(self._codec.encode_response(message, self._endpoint), body)
        return None if found is None else {mark_of(signature): reason for signature, reason in found.items()}

    def note_dropped(self, message: AssistantMessage) -> tuple[Change, ...]:
        """Return the changes that a reply reports: reasoning that the server dropped, and how it shortened the request.

        It says so if it was asked to drop; reasoning of another account is dropped without a word.
        """
        reasons = (self._withheld(message) if _is_withheld(message) else None) or {}
        if not reasons and self._codec.prefix is None:
            return self._note_edits(message)
        account = None if message.sent is None else message.sent.account
        given = self._given if self._given is not None else self._projection.context
        is_of_account = account_check(account, self._endpoint, given.messages)
        others = {id(each) for each in given.messages if each.role == "assistant" and not is_of_account(each)}
        if not reasons and not others:
            return self._note_edits(message)
        marks, changes = self.marks, list(self._note_edits(message))
        for place, each in enumerate(given.messages):
            other = OTHER_ACCOUNT if id(each) in others else ""
            for at, piece in enumerate(each.content if each.role == "assistant" else ()):
                mark = mark_of(piece.thinking_signature or "") if piece.kind == "thinking" else ""
                if reason := reasons.get(mark) or (other if mark in marks else ""):
                    path = ("messages", place, "content", at)
                    code, loss = ChangeCode.REASONING_REJECTED, Loss.NONE if reason in NO_FAULT else Loss.OPAQUE
                    changes.append(Change(code=code, path=path, loss=loss, detail=reason))
        return tuple(changes)

    def _note_edits(self, message: AssistantMessage) -> tuple[Change, ...]:
        form, options = self._codec.server_edits, self._projection.options
        is_asked = form is not None and bool((options.extra or {}).get(self.protocol))
        if form is None or not is_asked or message.stop_reason in _UNFINISHED:
            return ()
        notes = form.applied(self._codec.encode_response(message, self._endpoint))
        code, path = ChangeCode.SERVER_EDITED, ("messages",)
        return tuple(Change(code=code, path=path, loss=Loss.CONTENT, detail=detail) for detail in notes)


@lru_cache(maxsize=256)  # asked for each request
def _join_url(base: str, path: str, model_id: str) -> str:
    path = check_path(path, model_id=model_id)
    # Many write the version as a part of the base URL, because other protocols of the same server have it there.
    version = path[: path.find("/", 1)]
    return base + (path.removeprefix(version) if version and base.endswith(version) else path)


def _is_withheld(message: AssistantMessage) -> bool:
    return bool(message.diagnostics) and any(note.type == WITHHELD for note in message.diagnostics)


def prepare(
    context: ContextInput,
    model: Model | str,
    *,
    options: Options | None = None,
    policy: Policy | None = None,
    catalogue: Catalogue | None = None,
    account: str | None = None,
    refused: AbstractSet[str] = frozenset(),
) -> Request:
    """Make a request: project the conversation for the model, meet the requirements of the model, encode it.

    `context` may also be the text of one user message, or a list of messages in the form of OpenAI chat. `catalogue`
    has models and providers of the user's own; without it those of segue and of installed packages are known.
    `account` names the account that the request will be sent with, as `AssistantMessage.sent` names those of earlier
    replies: reasoning that only another account can use is left out. `refused` are the marks of signatures that the
    provider refused in this conversation, in addition to those that its replies remember.

    Raises:
        EmptyConversation: the conversation has no content to send.
        DoesNotFit: the window of the model is too small for what has to be sent.
        ProjectionRefused: the policy refuses a necessary change.
    """
    given = read_input(context)
    shift = leading_prompts(context, given)
    try:
        request = prepare_again(
            given,
            model,
            options=options,
            policy=policy,
            catalogue=catalogue,
            account=account,
            refused=frozenset(refused),
        )
    except ProjectionRefused as refusal:
        refuse_at(refusal, shift, policy, get_model(model, catalogue=catalogue))
        raise
    if not refused and _is_changed(request, options, policy):
        request = _as_decoded(given, options or Options(), request) or request
    request.report = request.report.shifted(shift)
    return request


def _as_decoded(context: Context, options: Options, request: Request) -> Request | None:
    """Return a request with a conversation as it was decoded for this model; None if a rule refuses something in it."""
    model = request.model
    if not is_decoded(context, model.protocol, model.provider, model.id) or not _is_text(request.report):
        return None
    prompt = Prompt(context=context, options=options, model=model.id)
    try:
        return _as_received(encode_request(prompt, model=model), prompt, model)
    except SegueError:
        return None


def _is_changed(request: Request, options: Options | None, policy: Policy | None) -> bool:
    """Whether projection changed something that the default policy would leave as it was, if nothing refuses it.

    Thinking that is off is not sent to a model that does not think, without a report.
    """
    if policy is not None and policy != _DEFAULT_POLICY:
        return False
    is_off = options is not None and options.thinking in ("off", 0) and not request.model.reasoning
    return bool(request.report.changes) or is_off


def _is_text(report: Report) -> bool:
    """Whether all texts of a conversation can be sent."""
    return not report.of(ChangeCode.SURROGATE_REPLACED)


def prepare_again(
    given: Context,
    model: Model | str,
    *,
    options: Options | None = None,
    policy: Policy | None = None,
    catalogue: Catalogue | None = None,
    account: str | None = None,
    refused: frozenset[str] = frozenset(),
    cache: DigestCache | None = None,
    known: KnownTools | None = None,
) -> Request:
    """Make a request like `prepare`.

    `cache` is what was digested of conversations that come again, and `known` what was fitted of their tools.
    """
    target = get_model(model, catalogue=catalogue)
    policy = with_routers(policy, catalogue)
    account = known_account(given.messages, account)
    sender = Sender(resolve_endpoint(target), account, refused, cache)

    def projecting(shown: Context, asked: Options | None) -> Projection:
        return project_for(shown, target, options=asked, policy=policy, account=account, refused=refused, known=known)

    endpoint, codec = sender.endpoint, get_protocol(target.protocol)
    projection, remembered = fit_appended(given, projecting, endpoint, options=options, policy=policy)

    def encode(projected: Projection) -> dict[str, object]:
        return codec.encode_request(prompt_of(projected, endpoint), endpoint)

    bound = bind(given, projection, sender, codec, encode, policy=policy)
    stamp = bound.stamp or first_stamp(sender, bound.projection.context.messages)
    return Request(
        bound.projection,
        endpoint,
        codec,
        bound.content,
        wire=bound.wire,
        stamp=stamp,
        given=given,
        account=account,
        remembered=remembered,
    )


def prepare_intact(
    context: Context,
    model: Model,
    *,
    options: Options | None = None,
    policy: Policy | None = None,
    catalogue: Catalogue | None = None,
) -> Request:
    """Make a request from a conversation that is as it was sent, with its own instructions and tools.

    Whatever its reasoning was made after is in the conversation, so none of it is left out. Otherwise like `prepare`.
    """
    target = get_model(model, catalogue=catalogue)
    policy = with_routers(policy, catalogue)

    def projecting(asked: Options | None) -> Projection:
        return project_for(context, target, options=asked, policy=policy)

    projection = fit_request(context, projecting, target, options, policy)
    return Request(projection, resolve_endpoint(target), get_protocol(target.protocol), given=context)


def first_stamp(sender: Sender, messages: Sequence[Message]) -> MakeStamp | None:
    """Return the stamp of a request where nothing is bound to its prefix; None if there is nothing to remember.

    `messages` are those that are sent. The stamp is made with the reply, so the request does not wait for it.
    """
    rules = sender.endpoint.rules
    if rules.bound_prefix or not (sender.refused or (sender.account is not None and rules.bound_account != "no")):
        return None
    return partial(account_stamp, sender, messages)


def transcribe(context: Context, *, policy: Policy | None = None) -> str:
    """Write a conversation as one text, with the roles, tool calls, results and media as text.

    Raises:
        EmptyConversation: the conversation has no content.
    """
    return write_transcript(prepare(context, _READER, policy=policy).body)


def convert(
    body: Mapping[str, object] | Sequence[object],
    *,
    source: str | None = None,
    target: Model | str,
    target_protocol: str | None = None,
    policy: Policy | None = None,
    source_model: Model | str | None = None,
    catalogue: Catalogue | None = None,
) -> Request:
    """Convert a request of one protocol to a request for a model of any protocol.

    `source` is the protocol of the body; without it, it is detected. `target` is a model or its name; with
    `target_protocol` the name may be one that the catalogue does not have.

    `source_model` is the model that wrote the assistant turns. Without it, that is the model that the body names. Some
    protocols name the model in the URL and not in the body (Google, Bedrock, Vertex). Then the writer is unknown and
    the signatures are dropped: a provider refuses signatures of another model.

    A body for the model that it was written for comes out unchanged, unless a rule refuses something in it or the
    policy is not the default.

    Raises:
        DecodeError: the protocol cannot be detected, or the body does not fit it.
        UnknownModel: the catalogue has no model of that name.
    """
    protocol = source or detect_protocol(body)
    if protocol is None:
        raise DecodeError(
            "the protocol of this body cannot be detected; pass source=..., the name of its protocol, such as"
            " 'openai-chat'"
        )
    writer = source_model if source_model is None else get_model(source_model, catalogue=catalogue)
    prompt = decode_request(body, protocol=protocol, model=writer, catalogue=catalogue)
    model = find_target(target, target_protocol, catalogue)
    turns = body.get(get_protocol(protocol).turns_key or "") if isinstance(body, Mapping) else body
    shift = leading_prompts(turns, prompt.context)
    try:
        request = prepare_prompt(prompt, model, source=protocol, writer=writer, policy=policy, catalogue=catalogue)
    except ProjectionRefused as refusal:
        refuse_at(refusal, shift, policy, model)
        raise
    if isinstance(body, Mapping) and _is_changed(request, prompt.options, policy):
        read = find_endpoint(protocol, writer, prompt.model, catalogue).model
        is_own = (read.id, read.provider, protocol) == (model.id, model.provider, model.protocol)
        if is_own and _is_text(request.report):
            request = _as_received(body, prompt, model) or request
    request.report = request.report.shifted(shift)
    return request


def _as_received(body: Mapping[str, object], prompt: Prompt, model: Model) -> Request | None:
    """Return a request with the body that was received for this model; None if a rule refuses something in it.

    Whatever projection would change in it is accepted, as far as is known.
    """
    endpoint, codec = resolve_endpoint(model), get_protocol(model.protocol)
    wire = dict(body)
    if endpoint.dialect.transport is not None or check(wire, protocol=codec.name, model=model):
        return None
    projection = Projection(context=prompt.context, options=prompt.options, report=Report(()))
    return Request(projection, endpoint, codec, wire=wire, given=prompt.context)


def prepare_prompt(
    prompt: Prompt,
    model: Model,
    *,
    source: str,
    writer: Model | None = None,
    policy: Policy | None = None,
    catalogue: Catalogue | None = None,
) -> Request:
    """Make a request for a model from one that was decoded from the protocol `source`; `writer` was its model."""
    prompt = set_other_data_apart(prompt, model, source=source, writer=writer)
    return prepare_intact(prompt.context, model, options=prompt.options, policy=policy, catalogue=catalogue)
