"""The generated parts of the protocol pages: rules with their sources, families, and how each content type is sent.

The source of a rule is the comment beside it in the protocol's `rules.py`. The table of content types is made by
preparing a request for each type; no expected result is written in this file.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Final, NamedTuple, cast

import msgspec
from doc_tables import as_text, table

from segue import (
    Context,
    FileContent,
    ImageContent,
    Message,
    Model,
    NativeContent,
    SystemMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolDefinition,
    ToolResultMessage,
    UserMessage,
    new_assistant_message,
    prepare,
)
from segue.models.dialect import Dialect
from segue.models.family import Family
from segue.models.rules import Rules
from segue.models.weights import WEIGHTS
from segue.projection.report import Change, Loss, describe_loss
from segue.protocols.registry import PROTOCOLS

# -- facts ------------------------------------------------------------------------------------------------------------


def _rules_module(name: str) -> ModuleType:
    """Import the `rules` module of a protocol's folder."""
    folder = PROTOCOLS[name].encode_request.__module__.rpartition(".")[0]
    return import_module(f"{folder}.rules")


def facts(name: str) -> str:
    """Give the facts that the docstring of a protocol's `rules.py` lists."""
    text = inspect.getdoc(_rules_module(name)) or ""
    paragraphs = text.split("\n\n")[1:]
    lines = [line for paragraph in paragraphs for line in re.split(r"\n(?=- )", paragraph)]
    return "\n".join(_item(line) for line in lines if not line.startswith("Facts")) + "\n"


def _item(line: str) -> str:
    text = " ".join(line.split())
    return text if text.startswith("- ") else f"{text}\n"


# -- rules -------------------------------------------------------------------------------------------------------------


def rules(name: str) -> str:
    """List the rules of a protocol that differ from the defaults, with their sources."""
    protocol, module = PROTOCOLS[name], _rules_module(name)
    defaults = Rules()
    rows = [
        (f"`{rule}`", as_text(value), f"{source}; {module.READ}")
        for rule, source in module.SOURCES.items()
        if (value := cast("object", getattr(protocol.rules, rule))) != getattr(defaults, rule)
    ]
    rows += [(f"`{place}`", as_text(row), f"{row.source}; {row.read}") for place, row in protocol.rules.rows.items()]
    return table(("rule", "value", "source"), rows)


def dialect_fields(name: str) -> str:
    """Give the fields of a protocol's dialect that differ from the defaults."""
    dialect, defaults = PROTOCOLS[name].dialect, Dialect()
    rows = [
        (f"`{field}`", as_text(value))
        for field in Dialect.__struct_fields__
        if (value := cast("object", getattr(dialect, field))) != getattr(defaults, field)
    ]
    return table(("dialect field", "value"), rows) if rows else "Every field has its default.\n"


# -- families ----------------------------------------------------------------------------------------------------------


def families(name: str) -> str:
    """Give the families of models whose rules or dialect differ from the protocol's."""
    rows = tuple(map(_family, PROTOCOLS[name].families))
    header = ("model ids with", "at", "differ in", "source", "read")
    return table(header, rows) if rows else "No family is known to differ.\n"


def weights(_: str) -> str:
    """Return the families of open models, which every protocol reads."""
    return table(("model ids with", "at", "differ in", "source", "read"), tuple(map(_family, WEIGHTS)))


def _family(family: Family) -> tuple[str, ...]:
    differs = (f"`{key}`: {as_text(value)}" for key, value in {**family.rules, **family.dialect}.items())
    providers = ", ".join(f"`{provider}`" for provider in family.providers)
    return f"`{family.pattern}`", providers or "all providers", "; ".join(differs), family.source, family.read


# -- content types -----------------------------------------------------------------------------------------------------

_FOREIGN: Final = Model("elsewhere", "elsewhere", "elsewhere")
_PNG: Final = "iVBORw0KGgo="
_PDF: Final = "JVBERi0xLjc="
_SIGNATURE: Final = "c2lnbmVk"
_TOOL: Final = ToolDefinition(name="look", description="Look something up.", parameters={"type": "object"})
_CALL: Final = ToolCall(id="call_0001", name="look", arguments={"at": "the sky"})


def _user(*content: TextContent | ImageContent | FileContent) -> UserMessage:
    return UserMessage(content=content or (TextContent(text="Go on."),))


def _assistant(model: Model, *content: TextContent | ThinkingContent | ToolCall | NativeContent) -> Message:
    return new_assistant_message(model, content=content)


def _result(*content: TextContent | ImageContent, is_error: bool = False) -> ToolResultMessage:
    return ToolResultMessage(tool_call_id=_CALL.id, tool_name=_CALL.name, content=content, is_error=is_error)


class Piece(NamedTuple):
    """One piece of content in a small conversation, and the text by which it is found in the request body."""

    title: str
    messages: tuple[Message, ...]
    place: int
    """The index of the message that holds it."""
    mark: str
    beside: str = ""
    """A pattern that the object to show also contains, if there is such an object."""


def _thinking(signature: str | None, text: str) -> ThinkingContent:
    return ThinkingContent(thinking=text, thinking_signature=signature)


def _own_signature(model: Model) -> str:
    # In openai-chat the signature of reasoning is the name of the field in which it was received.
    return "reasoning_content" if model.protocol == "openai-chat" else _SIGNATURE


_CALLED: Final = "call_0001|look"
_LOOK: Final = (_assistant(_FOREIGN, _CALL),)
_NATIVE: Final = NativeContent(protocol="elsewhere", block={"type": "map"}, fallback=(TextContent(text="(a map)"),))


def _pieces(model: Model) -> tuple[Piece, ...]:
    """List one piece of each content type, for the model that receives them."""
    return (
        Piece("user text", (_user(TextContent(text="Look up.")),), 0, "Look up."),
        Piece("an image, as data", (_user(TextContent(text="See."), _image(_PNG)),), 0, _PNG),
        Piece("an image, by URL", (_user(TextContent(text="See."), _linked()),), 0, r"https://a.example/b.png"),
        Piece("a PDF, as data", (_user(TextContent(text="Read."), _document()),), 0, _PDF),
        Piece("assistant text", (_user(), _assistant(model, TextContent(text="Blue.")), _user()), 1, "Blue."),
        Piece("thinking of the same model, signed", (_user(), _own(model), _user()), 1, "I see.", _SIGNATURE),
        Piece("thinking of another model", (_user(), _foreign(), _user()), 1, "They see.", "thinking"),
        Piece("a tool call", (_user(), *_LOOK, _result(TextContent(text="Blue."))), 1, "the sky", "look"),
        Piece("a tool result", (_user(), *_LOOK, _result(TextContent(text="A kite."))), 2, "A kite.", _CALLED),
        Piece(
            "a tool result with an error",
            (_user(), *_LOOK, _result(TextContent(text="Clouds."), is_error=True)),
            2,
            "Clouds.",
            _CALLED,
        ),
        Piece("an image in a tool result", (_user(), *_LOOK, _result(_image(_PNG))), 2, _PNG, _CALLED),
        Piece(
            "a native block of another protocol",
            (_user(), _assistant(_FOREIGN, _NATIVE, TextContent(text="Here.")), _user()),
            1,
            "(a map)",
        ),
        Piece(
            "a system message after the first turn",
            (_user(), _assistant(model, TextContent(text="Blue.")), _user(), _instruct("Be brief.")),
            3,
            "Be brief.",
            "system",
        ),
    )


def _image(data: str) -> ImageContent:
    return ImageContent(data=data, mime_type="image/png")


def _linked() -> ImageContent:
    return ImageContent(url="https://a.example/b.png", mime_type="image/png")


def _document() -> FileContent:
    return FileContent(data=_PDF, mime_type="application/pdf", name="b.pdf")


def _own(model: Model) -> Message:
    return _assistant(model, _thinking(_own_signature(model), "I see."), TextContent(text="Blue."))


def _foreign() -> Message:
    return _assistant(_FOREIGN, _thinking(_SIGNATURE, "They see."), TextContent(text="Blue."))


def _instruct(text: str) -> SystemMessage:
    return SystemMessage(content=(TextContent(text=text),))


def content_types(name: str) -> str:
    """Prepare a request for each content type; give the wire object and the reported changes."""
    model = PROTOCOLS[name].example
    rows = ((piece.title, *_sent(piece, model)) for piece in _pieces(model))
    head = f"Requests to `{model.full_name()}`. The other model is one that segue does not know.\n\n"
    return head + table(("content", "reported changes", "on the wire"), rows)


def _sent(piece: Piece, model: Model) -> tuple[str, str]:
    context = Context(messages=piece.messages, tools=(_TOOL,))
    request = prepare(context, model)
    mark = re.escape(piece.mark)
    found = (
        _smallest(request.body, mark, piece.beside)
        or _smallest(request.body, mark, "")
        or _smallest(request.body, _PLACEHOLDER, "")
    )
    place = ("messages", piece.place)
    reported = [f"`{each.code}`{_dropped(each)}" for each in request.report.changes if each.path[:2] == place]
    return ", ".join(dict.fromkeys(reported)) or "none", f"`{_short(found)}`" if found else "not sent"


def _dropped(change: Change) -> str:
    return "" if change.loss == Loss.NONE else f" ({describe_loss(change.code, change.loss)} dropped)"


_PLACEHOLDER: Final = r"\(\w+ omitted|\[[Ii]mage: "
"""How the texts begin that replace media."""


def _smallest(value: object, mark: str, beside: str) -> str | None:
    """Find the smallest object in a list of the body that contains both patterns, as JSON."""
    fields = cast("Mapping[str, object]", value).values() if isinstance(value, Mapping) else ()
    items = cast("list[object]", value) if isinstance(value, list) else ()
    for each in (*fields, *items):
        found = _smallest(each, mark, beside)
        if found is not None:
            return found
    for each in items:
        text = msgspec.json.encode(each).decode()
        if isinstance(each, Mapping) and re.search(mark, text) and re.search(beside, text):
            return text
    return None


_LONGEST: Final = 220
"""Longer JSON is cut: the beginning shows the wire format."""


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."
