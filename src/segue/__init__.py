"""One conversation, any model: the public face.

Everything a user needs is importable from `segue`, and nothing is loaded before it is asked for: `import segue` costs
next to nothing, and a program that only reads stored files never pays for the catalogue or for a network library.

A public name stands in three places, and a test keeps them in step: in the imports that type checkers and editors
read, in `_MODULES`, where it is found at run time, and in `__all__`.
"""

# Type checkers and linters know this name by itself; `typing` alone would cost more than the rest of this file.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from segue.client.flow.attempts import Attempt
    from segue.client.flow.backoff import Retry
    from segue.client.http.async_streams import AsyncStream
    from segue.client.http.clients import (
        AsyncClient,
        Client,
        complete,
        stream,
    )
    from segue.client.http.streams import Stream
    from segue.client.session.conversation import AsyncConversation, Conversation
    from segue.conversation.arguments import ParsedArguments, parse_arguments
    from segue.conversation.content import (
        AnyContent,
        AssistantContent,
        Extra,
        FallbackContent,
        FileContent,
        ImageContent,
        NativeContent,
        SystemContent,
        TextContent,
        ThinkingContent,
        ToolCall,
        ToolResultContent,
        UserContent,
    )
    from segue.conversation.context import (
        CacheRetention,
        Context,
        NativeTool,
        Options,
        Prompt,
        ThinkingLevel,
        Tool,
        ToolDefinition,
    )
    from segue.conversation.events import (
        DoneEvent,
        ErrorEvent,
        Event,
        StartEvent,
        TextDelta,
        TextEnd,
        TextStart,
        ThinkingDelta,
        ThinkingEnd,
        ThinkingStart,
        ToolCallDelta,
        ToolCallEnd,
        ToolCallStart,
    )
    from segue.conversation.messages import (
        AssistantMessage,
        Diagnostic,
        Message,
        StopReason,
        SystemMessage,
        ToolResultMessage,
        Usage,
        UsageCost,
        UserMessage,
    )
    from segue.conversation.stored import (
        dump,
        dump_message,
        load,
        load_message,
    )
    from segue.errors import (
        ConversationError,
        DecodeError,
        DumpError,
        EmptyConversation,
        EncodeError,
        LoadError,
        MissingExtra,
        ModelError,
        NewerFormat,
        ProjectionError,
        ProjectionRefused,
        RequestFailed,
        SegueError,
        SessionLocked,
        SettingsError,
        TornLine,
        UnknownModel,
        UnknownProtocol,
    )
    from segue.failures.classify import classify, is_context_overflow
    from segue.failures.failure import Failure, FailureKind
    from segue.framing.aws_event_stream import AwsEvent, AwsEventStreamDecoder
    from segue.framing.json_array import JsonArrayDecoder
    from segue.framing.ndjson import NdjsonDecoder
    from segue.framing.sse import SseDecoder, SseEvent
    from segue.models.catalogue import (
        Catalogue,
        find_models,
        get_model,
        load_catalogue,
        packaged_catalogue,
    )
    from segue.models.dialect import Dialect
    from segue.models.model import (
        Modality,
        Model,
        Price,
        PriceTier,
    )
    from segue.models.origin import new_assistant_message
    from segue.models.price import compute_cost
    from segue.models.provider import Provider
    from segue.models.rules import Rules
    from segue.models.thinking import clamp_thinking_level, supported_thinking_levels
    from segue.outbox import Outbox
    from segue.projection.policy import Policy, Texts
    from segue.projection.projector import (
        Projection,
        Projector,
        project,
        transform_messages,
    )
    from segue.projection.report import (
        Change,
        ChangeCode,
        Loss,
        Report,
    )
    from segue.projection.requirements import MediaNeeded, Requirement, ThinkingOff
    from segue.protocols.api import (
        check,
        decode_error,
        decode_request,
        decode_response,
        encode_request,
        encode_response,
        stream_decoder,
    )
    from segue.protocols.detection import detect_protocol
    from segue.protocols.kit.codec import Violation, WireError
    from segue.protocols.kit.protocol import Protocol
    from segue.protocols.kit.streaming import StreamDecoder
    from segue.protocols.registry import register_protocol, resolve_dialect, resolve_rules
    from segue.request import Request, convert, prepare, transcribe
    from segue.sessions import append_header, append_message, read_session
    from segue.tokens import estimate_tokens
    from segue.version import __version__

__all__ = [
    "AnyContent",
    "AssistantContent",
    "AssistantMessage",
    "AsyncClient",
    "AsyncConversation",
    "AsyncStream",
    "Attempt",
    "AwsEvent",
    "AwsEventStreamDecoder",
    "CacheRetention",
    "Catalogue",
    "Change",
    "ChangeCode",
    "Client",
    "Context",
    "Conversation",
    "ConversationError",
    "DecodeError",
    "Diagnostic",
    "Dialect",
    "DoneEvent",
    "DumpError",
    "EmptyConversation",
    "EncodeError",
    "ErrorEvent",
    "Event",
    "Extra",
    "Failure",
    "FailureKind",
    "FallbackContent",
    "FileContent",
    "ImageContent",
    "JsonArrayDecoder",
    "LoadError",
    "Loss",
    "MediaNeeded",
    "Message",
    "MissingExtra",
    "Modality",
    "Model",
    "ModelError",
    "NativeContent",
    "NativeTool",
    "NdjsonDecoder",
    "NewerFormat",
    "Options",
    "Outbox",
    "ParsedArguments",
    "Policy",
    "Price",
    "PriceTier",
    "Projection",
    "ProjectionError",
    "ProjectionRefused",
    "Projector",
    "Prompt",
    "Protocol",
    "Provider",
    "Report",
    "Request",
    "RequestFailed",
    "Requirement",
    "Retry",
    "Rules",
    "SegueError",
    "SessionLocked",
    "SettingsError",
    "SseDecoder",
    "SseEvent",
    "StartEvent",
    "StopReason",
    "Stream",
    "StreamDecoder",
    "SystemContent",
    "SystemMessage",
    "TextContent",
    "TextDelta",
    "TextEnd",
    "TextStart",
    "Texts",
    "ThinkingContent",
    "ThinkingDelta",
    "ThinkingEnd",
    "ThinkingLevel",
    "ThinkingOff",
    "ThinkingStart",
    "Tool",
    "ToolCall",
    "ToolCallDelta",
    "ToolCallEnd",
    "ToolCallStart",
    "ToolDefinition",
    "ToolResultContent",
    "ToolResultMessage",
    "TornLine",
    "UnknownModel",
    "UnknownProtocol",
    "Usage",
    "UsageCost",
    "UserContent",
    "UserMessage",
    "Violation",
    "WireError",
    "__version__",
    "append_header",
    "append_message",
    "check",
    "clamp_thinking_level",
    "classify",
    "complete",
    "compute_cost",
    "convert",
    "decode_error",
    "decode_request",
    "decode_response",
    "detect_protocol",
    "dump",
    "dump_message",
    "encode_request",
    "encode_response",
    "estimate_tokens",
    "find_models",
    "get_model",
    "is_context_overflow",
    "load",
    "load_catalogue",
    "load_message",
    "new_assistant_message",
    "packaged_catalogue",
    "parse_arguments",
    "prepare",
    "project",
    "read_session",
    "register_protocol",
    "resolve_dialect",
    "resolve_rules",
    "stream",
    "stream_decoder",
    "supported_thinking_levels",
    "transcribe",
    "transform_messages",
]

_MODULES = {
    "segue.client.http.async_streams": ("AsyncStream",),
    "segue.client.flow.attempts": ("Attempt",),
    "segue.client.flow.backoff": ("Retry",),
    "segue.client.http.clients": (
        "AsyncClient",
        "Client",
        "complete",
        "stream",
    ),
    "segue.client.session.conversation": (
        "AsyncConversation",
        "Conversation",
    ),
    "segue.client.http.streams": ("Stream",),
    "segue.conversation.arguments": (
        "ParsedArguments",
        "parse_arguments",
    ),
    "segue.conversation.content": (
        "AnyContent",
        "AssistantContent",
        "Extra",
        "FallbackContent",
        "FileContent",
        "ImageContent",
        "NativeContent",
        "SystemContent",
        "TextContent",
        "ThinkingContent",
        "ToolCall",
        "ToolResultContent",
        "UserContent",
    ),
    "segue.conversation.context": (
        "CacheRetention",
        "Context",
        "NativeTool",
        "Options",
        "Prompt",
        "ThinkingLevel",
        "Tool",
        "ToolDefinition",
    ),
    "segue.conversation.events": (
        "DoneEvent",
        "ErrorEvent",
        "Event",
        "StartEvent",
        "TextDelta",
        "TextEnd",
        "TextStart",
        "ThinkingDelta",
        "ThinkingEnd",
        "ThinkingStart",
        "ToolCallDelta",
        "ToolCallEnd",
        "ToolCallStart",
    ),
    "segue.conversation.messages": (
        "AssistantMessage",
        "Diagnostic",
        "Message",
        "StopReason",
        "SystemMessage",
        "ToolResultMessage",
        "Usage",
        "UsageCost",
        "UserMessage",
    ),
    "segue.conversation.stored": (
        "dump",
        "dump_message",
        "load",
        "load_message",
    ),
    "segue.errors": (
        "ConversationError",
        "DecodeError",
        "DumpError",
        "EmptyConversation",
        "EncodeError",
        "LoadError",
        "MissingExtra",
        "ModelError",
        "NewerFormat",
        "ProjectionError",
        "ProjectionRefused",
        "RequestFailed",
        "SegueError",
        "SessionLocked",
        "SettingsError",
        "TornLine",
        "UnknownModel",
        "UnknownProtocol",
    ),
    "segue.failures.classify": (
        "classify",
        "is_context_overflow",
    ),
    "segue.failures.failure": (
        "Failure",
        "FailureKind",
    ),
    "segue.framing.aws_event_stream": (
        "AwsEvent",
        "AwsEventStreamDecoder",
    ),
    "segue.framing.json_array": ("JsonArrayDecoder",),
    "segue.framing.ndjson": ("NdjsonDecoder",),
    "segue.framing.sse": (
        "SseDecoder",
        "SseEvent",
    ),
    "segue.models.catalogue": (
        "Catalogue",
        "find_models",
        "get_model",
        "load_catalogue",
        "packaged_catalogue",
    ),
    "segue.models.dialect": ("Dialect",),
    "segue.models.model": (
        "Modality",
        "Model",
        "Price",
        "PriceTier",
    ),
    "segue.models.origin": ("new_assistant_message",),
    "segue.models.price": ("compute_cost",),
    "segue.models.provider": ("Provider",),
    "segue.models.rules": ("Rules",),
    "segue.models.thinking": (
        "clamp_thinking_level",
        "supported_thinking_levels",
    ),
    "segue.outbox": ("Outbox",),
    "segue.projection.policy": (
        "Policy",
        "Texts",
    ),
    "segue.projection.projector": (
        "Projection",
        "Projector",
        "project",
        "transform_messages",
    ),
    "segue.projection.report": (
        "Change",
        "ChangeCode",
        "Loss",
        "Report",
    ),
    "segue.projection.requirements": (
        "MediaNeeded",
        "Requirement",
        "ThinkingOff",
    ),
    "segue.protocols.kit.codec": (
        "Violation",
        "WireError",
    ),
    "segue.protocols.detection": ("detect_protocol",),
    "segue.protocols.api": (
        "check",
        "decode_error",
        "decode_request",
        "decode_response",
        "encode_request",
        "encode_response",
        "stream_decoder",
    ),
    "segue.protocols.kit.protocol": ("Protocol",),
    "segue.protocols.registry": (
        "register_protocol",
        "resolve_dialect",
        "resolve_rules",
    ),
    "segue.protocols.kit.streaming": ("StreamDecoder",),
    "segue.request": (
        "Request",
        "convert",
        "prepare",
        "transcribe",
    ),
    "segue.sessions": (
        "append_header",
        "append_message",
        "read_session",
    ),
    "segue.tokens": ("estimate_tokens",),
    "segue.version": ("__version__",),
}
"""Where each public name lives, in the order of the imports above."""

_HOMES = {name: module for module, names in _MODULES.items() for name in names}


if not TYPE_CHECKING:  # seen by a type checker, a module `__getattr__` would make every misspelt name an `object`

    def __getattr__(name: str) -> object:
        """Load the module that holds `name`; the next look-up finds the name here and does not come back."""
        if name not in _HOMES:
            raise AttributeError(f"module 'segue' has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return [*__all__]
