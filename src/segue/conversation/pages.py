"""A conversation for people to read: as Markdown, and as a self-contained HTML page.

Facts:
- Everything in a conversation may be hostile. In HTML all text is escaped; images are only those with their own data
  and a type that holds no scripts, and a content security policy lets the page load nothing.  (HTML standard, CSP 3)
- A fence of a code block is longer than any run of backticks in it.                                (CommonMark 0.31)
- Notebooks show what `_repr_html_` returns; a style sheet there would change the whole notebook.       (IPython 9)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import Final, Protocol

from segue.conversation.content import AnyContent, SystemContent
from segue.conversation.messages import Message
from segue.foundation.json_text import encode_valid_json

_SHOWN: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_FOLDED_RESULT: Final = 400
"""A tool result that is longer than this is folded."""
_STYLE: Final = """
:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem}
article{border-left:.25rem solid #8888;padding:.1rem 0 .1rem 1rem;margin:1rem 0}article.user{border-color:#2954c8}
h2{font-size:1rem;margin:0}h2 small{font-weight:400;opacity:.75}
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.4rem 0}
pre.words{font:inherit}summary{cursor:pointer;opacity:.8}img{max-width:100%}.error{color:#b3261e}
"""
_POLICY: Final = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


class Readable(Protocol):
    """What a page shows: a `Context`, which shows itself in notebooks with this module and is not imported here."""

    @property
    def system_prompt(self) -> str | tuple[SystemContent, ...] | None:
        """The instructions."""
        ...

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages in their order."""
        ...


def render_html(context: Readable, *, title: str = "Conversation") -> str:
    """Write a conversation as a self-contained page that loads nothing; thinking and calls are folded."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"><style>{_STYLE}</style></head>\n'
        f"<body><h1>{escape(title)}</h1>\n{render_fragment(context)}</body></html>\n"
    )


def render_fragment(context: Readable) -> str:
    """Write the messages as HTML that can be part of another page, such as a notebook."""
    parts = (
        [f"<details><summary>instructions</summary>{_words(_system(context))}</details>\n"] if _system(context) else []
    )
    parts += [_article(number, message) for number, message in enumerate(context.messages)]
    return "".join(parts) or "<p>The conversation has no messages.</p>\n"


def _article(number: int, message: Message) -> str:
    failed = ' <span class="error">error</span>' if _is_error(message) else ""
    head = f"<h2>{escape(_role(message))}{failed} <small>{escape(_origin(message))} messages[{number}]</small></h2>"
    inside = "".join(_html_of(piece, message) for piece in message.content)
    return f'<article class="{message.role}">{head}{inside}</article>\n'


def _html_of(piece: AnyContent, message: Message) -> str:
    match piece.kind:
        case "text":
            is_long = message.role == "toolResult" and len(piece.text) > _FOLDED_RESULT
            return _fold(f"{len(piece.text):,} characters", piece.text) if is_long else _words(piece.text)
        case "thinking":
            return _fold("thinking", piece.thinking or "(not readable)")
        case "toolCall":
            return _fold(f"call of {piece.name}", encode_valid_json(piece.arguments).decode())
        case "image" if piece.data is not None and piece.mime_type in _SHOWN:
            return f'<p><img alt="image" src="data:{piece.mime_type};base64,{escape(piece.data)}"></p>'
        case "image" | "file" | "native":
            return _words(_placeholder(piece))


def _fold(title: str, text: str) -> str:
    return f"<details><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>"


def _words(text: str) -> str:
    return f'<pre class="words">{escape(text)}</pre>'


def render_markdown(context: Readable, *, title: str = "Conversation") -> str:
    """Write a conversation as Markdown; thinking, calls and results are in folded blocks, as GitHub shows them."""
    return "".join((f"# {title}\n\n", *_markdown_parts(context)))


def _markdown_parts(context: Readable) -> Iterator[str]:
    if system := _system(context):
        yield _markdown_fold("instructions", system)
    for message in context.messages:
        origin = f" ({_origin(message)})" if _origin(message) else ""
        yield f"## {_role(message)}{origin}{', error' if _is_error(message) else ''}\n\n"
        for piece in message.content:
            match piece.kind:
                case "text" if message.role != "toolResult":
                    yield f"{piece.text}\n\n"
                case "text":
                    yield _markdown_fold("result", piece.text)
                case "thinking":
                    yield _markdown_fold("thinking", piece.thinking or "(not readable)")
                case "toolCall":
                    yield _markdown_fold(f"call of {piece.name}", encode_valid_json(piece.arguments).decode())
                case "image" | "file" | "native":
                    yield f"{_placeholder(piece)}\n\n"


def _markdown_fold(title: str, text: str) -> str:
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"<details><summary>{escape(title)}</summary>\n\n{fence}\n{text}\n{fence}\n\n</details>\n\n"


def _system(context: Readable) -> str:
    given = context.system_prompt
    if given is None or isinstance(given, str):
        return given or ""
    return "\n".join(piece.text for piece in given if piece.kind == "text")


def _role(message: Message) -> str:
    return f"result of {message.tool_name or 'a tool'}" if message.role == "toolResult" else message.role


def _origin(message: Message) -> str:
    is_named = message.role == "assistant" and message.model
    return f"{message.provider}/{message.model}" if message.role == "assistant" and is_named else ""


def _is_error(message: Message) -> bool:
    if message.role == "toolResult":
        return message.is_error
    return message.role == "assistant" and message.stop_reason in ("error", "aborted")


def _placeholder(piece: AnyContent) -> str:
    name = getattr(piece, "name", None) or getattr(piece, "url", None) or getattr(piece, "mime_type", None) or ""
    return f"[{piece.kind}{f': {name}' if name else ''}]"


PAGES: Final = {"markdown": render_markdown, "html": render_html}
"""The documents that a conversation can be written as, by their names."""
