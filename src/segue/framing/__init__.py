"""Streams of bytes and their frames: SSE, NDJSON, a JSON array, AWS event streams.

A decoder takes bytes as they arrive (`feed`) and returns the frames that are complete. `segue.stream_decoder` turns
frames into events. An encoder writes frames as bytes; `segue.stream_encoder` turns events into frames.
"""

from segue._lazy import attach

__getattr__, __dir__ = attach(__name__, __path__[0], __spec__.loader.get_data, globals())
