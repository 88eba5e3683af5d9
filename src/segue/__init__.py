"""One conversation, any model.

    from segue import Context, complete

    context = Context().add("Do I need an umbrella in Bergen?")
    reply = complete(context, "openai/gpt-5.4")

What represents a conversation, and how one becomes another (docs/types.md):

    Context       a conversation, immutable: what you store     `Context().add("Hello")`, `load(data)`
    Prompt        a decoded request: a Context and its options  `decode_request(body, protocol=...)`
    History       a session of an agent, read: `.context`       `read_history(path)`
    Session       an entry in the list of such sessions         `find_sessions()`
    Conversation  talks to models and keeps a growing Context   `Conversation("echo").ask("Hello")`
    Document      the stored JSON of a Context                  `dump(context)`

`dir(segue)` lists the names that a first program uses. The rest is in modules: `segue.events` (streamed replies),
`segue.errors`, `segue.wire` (encode and decode requests and replies), `segue.framing` (SSE and other streams of bytes)
and `segue.protocols` (add a protocol). Public names of these modules can also be imported from `segue`.
`segue.corpus` (many conversations at once) has its own names.

`import segue` imports nothing else: a name is imported when it is first used. The list of names is `__init__.pyi`
(docs/decisions/0002-lazy-public-face.md).
"""

from segue._lazy import attach

__getattr__, __dir__ = attach(__name__, __path__[0], __spec__.loader.get_data, globals())
