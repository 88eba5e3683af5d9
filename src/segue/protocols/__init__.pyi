from segue.protocols.kit.assembly import Assembly as Assembly
from segue.protocols.kit.assembly import Part as Part
from segue.protocols.kit.codec import NOT_IN_A_BODY as NOT_IN_A_BODY
from segue.protocols.kit.codec import Codec as Codec
from segue.protocols.kit.codec import Endpoint as Endpoint
from segue.protocols.kit.codec import Framing as Framing
from segue.protocols.kit.codec import JsonObject as JsonObject
from segue.protocols.kit.codec import Violation as Violation
from segue.protocols.kit.codec import WireError as WireError
from segue.protocols.kit.streaming import Frame as Frame
from segue.protocols.kit.streaming import StreamDecoder as StreamDecoder
from segue.protocols.kit.streaming import StreamReader as StreamReader
from segue.protocols.kit.verbatim import apply as apply
from segue.protocols.kit.verbatim import choose as choose
from segue.protocols.kit.verbatim import keep as keep
from segue.protocols.kit.verbatim import restore as restore
from segue.protocols.registry import PROTOCOLS as PROTOCOLS
from segue.protocols.registry import Protocol as Protocol
from segue.protocols.registry import get_protocol as get_protocol

__all__ = [
    "NOT_IN_A_BODY",
    "PROTOCOLS",
    "Assembly",
    "Codec",
    "Endpoint",
    "Frame",
    "Framing",
    "JsonObject",
    "Part",
    "Protocol",
    "StreamDecoder",
    "StreamReader",
    "Violation",
    "WireError",
    "apply",
    "choose",
    "get_protocol",
    "keep",
    "restore",
]
