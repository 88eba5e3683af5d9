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

__all__ = [
    "AwsEvent",
    "AwsEventStreamDecoder",
    "AwsEventStreamEncoder",
    "FrameEncoder",
    "JsonArrayDecoder",
    "JsonArrayEncoder",
    "NdjsonDecoder",
    "NdjsonEncoder",
    "SseDecoder",
    "SseEncoder",
    "SseEvent",
    "frame_encoder",
]
