from segue.protocols.kit.assembly import Assembly as Assembly
from segue.protocols.kit.assembly import Part as Part
from segue.protocols.kit.check_codes import CheckCode as CheckCode
from segue.protocols.kit.clues import Clues as Clues
from segue.protocols.kit.codec import NOT_IN_A_BODY as NOT_IN_A_BODY
from segue.protocols.kit.codec import Endpoint as Endpoint
from segue.protocols.kit.codec import JsonObject as JsonObject
from segue.protocols.kit.codec import Violation as Violation
from segue.protocols.kit.codec import WireError as WireError
from segue.protocols.kit.json_patch import apply as apply
from segue.protocols.kit.json_patch import difference as difference
from segue.protocols.kit.model_lists import ModelList as ModelList
from segue.protocols.kit.protocol import Documentation as Documentation
from segue.protocols.kit.protocol import Framing as Framing
from segue.protocols.kit.protocol import Protocol as Protocol
from segue.protocols.kit.protocol import Sample as Sample
from segue.protocols.kit.protocol import fixed_path as fixed_path
from segue.protocols.kit.protocol import read_samples as read_samples
from segue.protocols.kit.routing import Route as Route
from segue.protocols.kit.streaming import Frame as Frame
from segue.protocols.kit.streaming import StreamDecoder as StreamDecoder
from segue.protocols.kit.streaming import StreamReader as StreamReader
from segue.protocols.kit.token_count import TokenCount as TokenCount
from segue.protocols.kit.verbatim import choose as choose
from segue.protocols.kit.verbatim import chosen as chosen
from segue.protocols.kit.verbatim import data_of as data_of
from segue.protocols.kit.verbatim import keep as keep
from segue.protocols.kit.verbatim import restore as restore
from segue.protocols.registry import PROTOCOLS as PROTOCOLS
from segue.protocols.registry import all_protocols as all_protocols
from segue.protocols.registry import get_protocol as get_protocol
from segue.protocols.registry import register_protocol as register_protocol

__all__ = [
    "NOT_IN_A_BODY",
    "PROTOCOLS",
    "Assembly",
    "CheckCode",
    "Clues",
    "Documentation",
    "Endpoint",
    "Frame",
    "Framing",
    "JsonObject",
    "ModelList",
    "Part",
    "Protocol",
    "Route",
    "Sample",
    "StreamDecoder",
    "StreamReader",
    "TokenCount",
    "Violation",
    "WireError",
    "all_protocols",
    "apply",
    "choose",
    "chosen",
    "data_of",
    "difference",
    "fixed_path",
    "get_protocol",
    "keep",
    "read_samples",
    "register_protocol",
    "restore",
]
