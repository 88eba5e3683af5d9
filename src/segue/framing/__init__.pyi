from segue.framing.aws_event_stream import AwsEvent as AwsEvent
from segue.framing.aws_event_stream import AwsEventStreamDecoder as AwsEventStreamDecoder
from segue.framing.json_array import JsonArrayDecoder as JsonArrayDecoder
from segue.framing.ndjson import NdjsonDecoder as NdjsonDecoder
from segue.framing.sse import SseDecoder as SseDecoder
from segue.framing.sse import SseEvent as SseEvent

__all__ = [
    "AwsEvent",
    "AwsEventStreamDecoder",
    "JsonArrayDecoder",
    "NdjsonDecoder",
    "SseDecoder",
    "SseEvent",
]
