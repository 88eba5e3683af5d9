# The public names of segue: the only list, read by type checkers and by segue._lazy (docs/decisions/0002).
# To add a name, add its import, on one line. `__all__` is the short list for a first program.

from segue import corpus as corpus
from segue import errors as errors
from segue import events as events
from segue import framing as framing
from segue import protocols as protocols
from segue import wire as wire
from segue.calls.reading import Call as Call
from segue.calls.reading import read_call as read_call
from segue.calls.replies import encode_error as encode_error
from segue.calls.replies import encode_model as encode_model
from segue.calls.replies import encode_model_list as encode_model_list
from segue.calls.replies import encode_token_count as encode_token_count
from segue.calls.replies import stream_encoder as stream_encoder
from segue.client.flow.attempts import Attempt as Attempt
from segue.client.flow.backoff import Retry as Retry
from segue.client.flow.deciding import Decision as Decision
from segue.client.flow.tool_loop import Run as Run
from segue.client.flow.tool_loop import RunLimits as RunLimits
from segue.client.flow.tool_loop import Tools as Tools
from segue.client.flow.typed_answers import Answer as Answer
from segue.client.flow.typed_answers import read_output as read_output
from segue.client.http.async_streams import AsyncStream as AsyncStream
from segue.client.http.async_streams import AsyncTypedStream as AsyncTypedStream
from segue.client.http.clients import AsyncClient as AsyncClient
from segue.client.http.clients import Client as Client
from segue.client.http.running import RunEvent as RunEvent
from segue.client.http.running import RunSettings as RunSettings
from segue.client.http.settings import ClientSettings as ClientSettings
from segue.client.http.single_requests import complete as complete
from segue.client.http.single_requests import decide as decide
from segue.client.http.single_requests import stream as stream
from segue.client.http.streams import Stream as Stream
from segue.client.http.streams import TypedStream as TypedStream
from segue.client.http.telemetry import Telemetry as Telemetry
from segue.client.output.schemas import json_schema as json_schema
from segue.client.session.conversation import AsyncConversation as AsyncConversation
from segue.client.session.conversation import Conversation as Conversation
from segue.client.session.keep_warm import KeepWarm as KeepWarm
from segue.client.session.summarising import SummaryTask as SummaryTask
from segue.client.tools.signatures import define_tool as define_tool
from segue.client.tools.toolbox import Toolbox as Toolbox
from segue.conversation.arguments import ParsedArguments as ParsedArguments
from segue.conversation.arguments import parse_arguments as parse_arguments
from segue.conversation.content import AnyContent as AnyContent
from segue.conversation.content import AssistantContent as AssistantContent
from segue.conversation.content import CacheMark as CacheMark
from segue.conversation.content import Extra as Extra
from segue.conversation.content import FallbackContent as FallbackContent
from segue.conversation.content import FileContent as FileContent
from segue.conversation.content import ImageContent as ImageContent
from segue.conversation.content import NativeContent as NativeContent
from segue.conversation.content import SystemContent as SystemContent
from segue.conversation.content import TextContent as TextContent
from segue.conversation.content import ThinkingContent as ThinkingContent
from segue.conversation.content import ToolCall as ToolCall
from segue.conversation.content import ToolResultContent as ToolResultContent
from segue.conversation.content import UserContent as UserContent
from segue.conversation.context import CacheRetention as CacheRetention
from segue.conversation.context import Context as Context
from segue.conversation.context import NativeTool as NativeTool
from segue.conversation.context import Options as Options
from segue.conversation.context import Origin as Origin
from segue.conversation.context import Prompt as Prompt
from segue.conversation.context import Summary as Summary
from segue.conversation.context import ThinkingLevel as ThinkingLevel
from segue.conversation.context import Tool as Tool
from segue.conversation.context import ToolDefinition as ToolDefinition
from segue.conversation.events import DoneEvent as DoneEvent
from segue.conversation.events import ErrorEvent as ErrorEvent
from segue.conversation.events import Event as Event
from segue.conversation.events import NativeEvent as NativeEvent
from segue.conversation.events import NoticeEvent as NoticeEvent
from segue.conversation.events import PingEvent as PingEvent
from segue.conversation.events import StartEvent as StartEvent
from segue.conversation.events import TextDelta as TextDelta
from segue.conversation.events import TextEnd as TextEnd
from segue.conversation.events import TextStart as TextStart
from segue.conversation.events import ThinkingDelta as ThinkingDelta
from segue.conversation.events import ThinkingEnd as ThinkingEnd
from segue.conversation.events import ThinkingStart as ThinkingStart
from segue.conversation.events import ToolCallDelta as ToolCallDelta
from segue.conversation.events import ToolCallEnd as ToolCallEnd
from segue.conversation.events import ToolCallStart as ToolCallStart
from segue.conversation.events import UsageEvent as UsageEvent
from segue.conversation.messages import AssistantMessage as AssistantMessage
from segue.conversation.messages import Diagnostic as Diagnostic
from segue.conversation.messages import Message as Message
from segue.conversation.messages import Sent as Sent
from segue.conversation.messages import StopReason as StopReason
from segue.conversation.messages import SystemMessage as SystemMessage
from segue.conversation.messages import ToolResultMessage as ToolResultMessage
from segue.conversation.messages import Usage as Usage
from segue.conversation.messages import UsageCost as UsageCost
from segue.conversation.messages import UserMessage as UserMessage
from segue.conversation.replayed import message_events as message_events
from segue.conversation.shared_options import SharedOptions as SharedOptions
from segue.conversation.stored import dump as dump
from segue.conversation.stored import dump_message as dump_message
from segue.conversation.stored import load as load
from segue.conversation.stored import load_message as load_message
from segue.conversation.stored_events import dump_events as dump_events
from segue.conversation.stored_events import load_events as load_events
from segue.counting.estimates import Estimate as Estimate
from segue.counting.exact import exact_counter as exact_counter
from segue.errors import CallError as CallError
from segue.errors import ConversationError as ConversationError
from segue.errors import CorpusError as CorpusError
from segue.errors import DecodeError as DecodeError
from segue.errors import DoesNotFit as DoesNotFit
from segue.errors import DumpError as DumpError
from segue.errors import EmptyConversation as EmptyConversation
from segue.errors import EncodeError as EncodeError
from segue.errors import HistoryExists as HistoryExists
from segue.errors import LoadError as LoadError
from segue.errors import MissingExtra as MissingExtra
from segue.errors import ModelError as ModelError
from segue.errors import NewerFormat as NewerFormat
from segue.errors import OutputCut as OutputCut
from segue.errors import OutputError as OutputError
from segue.errors import OutputInvalid as OutputInvalid
from segue.errors import OutputPending as OutputPending
from segue.errors import OutputRefused as OutputRefused
from segue.errors import ProjectionError as ProjectionError
from segue.errors import ProjectionRefused as ProjectionRefused
from segue.errors import RequestFailed as RequestFailed
from segue.errors import RunLimitReached as RunLimitReached
from segue.errors import SegueError as SegueError
from segue.errors import SessionChanged as SessionChanged
from segue.errors import SessionLocked as SessionLocked
from segue.errors import SettingsError as SettingsError
from segue.errors import TornLine as TornLine
from segue.errors import UnknownFormat as UnknownFormat
from segue.errors import UnknownModel as UnknownModel
from segue.errors import UnknownProtocol as UnknownProtocol
from segue.failures.classify import classify as classify
from segue.failures.classify import is_context_overflow as is_context_overflow
from segue.failures.failure import Failure as Failure
from segue.failures.failure import FailureKind as FailureKind
from segue.foundation.version import __version__ as __version__
from segue.framing.aws_event_stream import AwsEvent as AwsEvent
from segue.framing.aws_event_stream import AwsEventStreamDecoder as AwsEventStreamDecoder
from segue.framing.json_array import JsonArrayDecoder as JsonArrayDecoder
from segue.framing.ndjson import NdjsonDecoder as NdjsonDecoder
from segue.framing.sse import SseDecoder as SseDecoder
from segue.framing.sse import SseEvent as SseEvent
from segue.framing.writing import AwsEventStreamEncoder as AwsEventStreamEncoder
from segue.framing.writing import FrameEncoder as FrameEncoder
from segue.framing.writing import JsonArrayEncoder as JsonArrayEncoder
from segue.framing.writing import NdjsonEncoder as NdjsonEncoder
from segue.framing.writing import SseEncoder as SseEncoder
from segue.framing.writing import frame_encoder as frame_encoder
from segue.histories.api import check_bound_state as check_bound_state
from segue.histories.api import find_sessions as find_sessions
from segue.histories.api import framework_objects as framework_objects
from segue.histories.api import read_history as read_history
from segue.histories.api import restore_history as restore_history
from segue.histories.api import save_history as save_history
from segue.histories.api import write_history as write_history
from segue.histories.kit.format import Format as Format
from segue.histories.kit.history import Branch as Branch
from segue.histories.kit.history import Child as Child
from segue.histories.kit.history import Compaction as Compaction
from segue.histories.kit.history import History as History
from segue.histories.kit.history import HistoryOrigin as HistoryOrigin
from segue.histories.kit.history import Session as Session
from segue.histories.kit.history import Written as Written
from segue.histories.opening import recognise as recognise
from segue.histories.recognition import Recognition as Recognition
from segue.histories.registry import register_format as register_format
from segue.histories.sessions import SessionFile as SessionFile
from segue.histories.sessions import append_header as append_header
from segue.histories.sessions import append_message as append_message
from segue.histories.sessions import append_summary as append_summary
from segue.histories.sessions import read_session as read_session
from segue.histories.sessions import session_file as session_file
from segue.histories.sessions import write_session as write_session
from segue.models.catalogue import Catalogue as Catalogue
from segue.models.catalogue import find_models as find_models
from segue.models.catalogue import get_model as get_model
from segue.models.catalogue import load_catalogue as load_catalogue
from segue.models.catalogue import packaged_catalogue as packaged_catalogue
from segue.models.dialect import Dialect as Dialect
from segue.models.model import Modality as Modality
from segue.models.model import Model as Model
from segue.models.model import Price as Price
from segue.models.model import PriceTier as PriceTier
from segue.models.origin import new_assistant_message as new_assistant_message
from segue.models.price import compute_cost as compute_cost
from segue.models.provider import Provider as Provider
from segue.models.rule import Rule as Rule
from segue.models.rules import Rules as Rules
from segue.models.thinking import clamp_thinking_level as clamp_thinking_level
from segue.models.thinking import supported_thinking_levels as supported_thinking_levels
from segue.planning.fallbacks import FallbackPolicy as FallbackPolicy
from segue.planning.plan import ModelPlan as ModelPlan
from segue.planning.plan import Money as Money
from segue.planning.plan import Plan as Plan
from segue.planning.plan import plan as plan
from segue.projection.fitting.window import Window as Window
from segue.projection.policy import Fit as Fit
from segue.projection.policy import Policy as Policy
from segue.projection.policy import Texts as Texts
from segue.projection.projector import Projection as Projection
from segue.projection.projector import Projector as Projector
from segue.projection.projector import project as project
from segue.projection.projector import transform_messages as transform_messages
from segue.projection.replies.projector import Reply as Reply
from segue.projection.replies.projector import ReplyProjector as ReplyProjector
from segue.projection.replies.projector import project_reply as project_reply
from segue.projection.report import Change as Change
from segue.projection.report import ChangeCode as ChangeCode
from segue.projection.report import Loss as Loss
from segue.projection.report import Report as Report
from segue.projection.requirements import HistoryNeeded as HistoryNeeded
from segue.projection.requirements import MediaNeeded as MediaNeeded
from segue.projection.requirements import RenameNeeded as RenameNeeded
from segue.projection.requirements import Requirement as Requirement
from segue.projection.requirements import SummaryWanted as SummaryWanted
from segue.projection.requirements import ThinkingOff as ThinkingOff
from segue.projection.requirements import WindowTooSmall as WindowTooSmall
from segue.protocols.api import decode_error as decode_error
from segue.protocols.api import decode_request as decode_request
from segue.protocols.api import decode_response as decode_response
from segue.protocols.api import encode_request as encode_request
from segue.protocols.api import encode_response as encode_response
from segue.protocols.api import stream_decoder as stream_decoder
from segue.protocols.api import taken_options as taken_options
from segue.protocols.check_scope import CheckScope as CheckScope
from segue.protocols.check_scope import Unknown as Unknown
from segue.protocols.check_scope import explain_check as explain_check
from segue.protocols.context_input import ContextInput as ContextInput
from segue.protocols.detection import detect_protocol as detect_protocol
from segue.protocols.kit.check_codes import CheckCode as CheckCode
from segue.protocols.kit.codec import ErrorReply as ErrorReply
from segue.protocols.kit.codec import Violation as Violation
from segue.protocols.kit.codec import WireError as WireError
from segue.protocols.kit.protocol import Protocol as Protocol
from segue.protocols.kit.stream_writing import StreamEncoder as StreamEncoder
from segue.protocols.kit.streaming import StreamDecoder as StreamDecoder
from segue.protocols.registry import register_protocol as register_protocol
from segue.protocols.registry import resolve_dialect as resolve_dialect
from segue.protocols.registry import resolve_rules as resolve_rules
from segue.protocols.shared_fields import read_shared as read_shared
from segue.requests.check import PrefixChange as PrefixChange
from segue.requests.check import check as check
from segue.requests.check import compare_requests as compare_requests
from segue.requests.outbox import Outbox as Outbox
from segue.requests.prepare import Request as Request
from segue.requests.prepare import convert as convert
from segue.requests.prepare import prepare as prepare
from segue.requests.prepare import transcribe as transcribe
from segue.requests.tokens import estimate as estimate
from segue.requests.tokens import estimate_tokens as estimate_tokens

__all__ = [  # noqa: RUF022 - by subject, as docs/reference shows it
    # conversations
    "Context",
    "UserMessage",
    "AssistantMessage",
    "ToolResultMessage",
    "SystemMessage",
    "Message",
    "TextContent",
    "ImageContent",
    "FileContent",
    "ThinkingContent",
    "ToolCall",
    "NativeContent",
    "ToolDefinition",
    "Options",
    "Usage",
    "StopReason",
    # stored conversations
    "load",
    "dump",
    "read_session",
    "write_session",
    "append_header",
    "append_message",
    "append_summary",
    # sessions of agents and messages of frameworks
    "read_history",
    "write_history",
    "save_history",
    "find_sessions",
    "History",
    "Session",
    # models
    "Model",
    "get_model",
    "find_models",
    "new_assistant_message",
    "estimate_tokens",
    # one history for any model
    "project",
    "Projector",
    "Projection",
    "Policy",
    "Report",
    "Change",
    "Loss",
    # requests
    "prepare",
    "Outbox",
    "Request",
    "convert",
    "check",
    "detect_protocol",
    # send
    "complete",
    "stream",
    "Client",
    "AsyncClient",
    "Conversation",
    "AsyncConversation",
    # tools
    "Toolbox",
    "define_tool",
    "json_schema",
    # failures
    "classify",
    "Failure",
    "FailureKind",
    "SegueError",
]
