"""One conversation, any model.

    from segue import Context, UserMessage, complete

    context = Context().add(UserMessage.of("Do I need an umbrella in Bergen?"))
    reply = complete(context, "openai/gpt-5.4")

`dir(segue)` lists the names that a first program uses. The rest is in modules: `segue.events` (streamed replies),
`segue.errors`, `segue.wire` (encode and decode requests and replies), `segue.framing` (SSE and other streams of bytes)
and `segue.protocols` (add a protocol). Public names of these modules can also be imported from `segue`.
`segue.corpus` (many conversations at once) has names of its own.

`import segue` imports nothing else: a name is imported when it is first used. The list of names is `__init__.pyi`
(docs/decisions/0002-lazy-public-face.md).
"""

from segue._lazy import attach

__getattr__, __dir__ = attach(__name__, __path__[0], __spec__.loader.get_data, globals())
