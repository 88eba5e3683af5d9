"""Rules of the Messages API about fields and blocks that need a beta header, and about where system messages may be.

Facts, read 2026-11-16:
- `thinking.block_binding` needs `thinking-binding-controls-2026-08-01`; without it the refusal ends in `block_binding:
  Extra inputs are not permitted`. It is accepted with `adaptive` and `enabled`, not with `between_tools`. At
  Bedrock it needs no header.                            (anthropic 2.8.0; recorded requests of other projects, 2026-09)
- `clear_at`, `output_config` of a message, `tool_addition`, `tool_removal`, a tool definition in them, and compaction
  blocks need each its header.                             (anthropic 2.8.0; Anthropic documentation, 2026-09)
- Claude Code sends `output_config` of a message with `per-turn-control-2026-07-01`.          (2.1.327, seen 2026-11-18)
- A system message with text or tool blocks directly after a turn of the assistant or directly before a user message is
  refused; older models refuse every one.                  (the same; probed)
- That a `tool_reference` has to name a tool of the request is inferred.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, TypeAlias, cast

from segue.protocols.kit.facts import ClaudeWire
from segue.protocols.kit.json_values import list_of
from segue.testing.emulator.binding import BINDING_BETA, Behavior
from segue.testing.emulator.claude import Claude, takes_system_messages

Body: TypeAlias = Mapping[str, Any]

_TOOL_CHANGES: Final = "mid-conversation-tool-changes-2026-07-01"
_INLINE_TOOLS: Final = "inline-tools-2026-09-15"
_MESSAGE_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "clear_at": frozenset(("mid-conversation-system-clear-at-2026-08-21",)),
    "output_config": frozenset(("mid-conversation-output-config-2026-07-01", "per-turn-control-2026-07-01")),
}
"""The headers that allow a field of a message: any one of them."""
_COMPACTIONS: Final[Mapping[bool, str]] = {True: "compact-2026-09-04", False: "compact-2026-01-12"}
"""The header of a compaction block, by whether it has a signature."""
_TOOL_BLOCKS: Final = ("tool_addition", "tool_removal")
_BINDING_TYPES: Final = ("adaptive", "enabled")
_BEHAVIORS: Final = ("error", "drop_block")


def thinking_of(wire: ClaudeWire, body: Body) -> Body:
    """Return the thinking parameters of a request."""
    holder: object = body.get("additionalModelRequestFields") if wire == "converse" else body
    thinking = cast("Body", holder).get("thinking") if isinstance(holder, Mapping) else None
    return cast("Body", thinking) if isinstance(thinking, Mapping) else {}


def behavior_of(wire: ClaudeWire, body: Body) -> Behavior | None:
    """Return what a request wants done about thinking of another conversation; None if it does not say."""
    binding = thinking_of(wire, body).get("block_binding")
    value = cast("Body", binding).get("prefix_mismatch_behavior") if isinstance(binding, Mapping) else None
    return value if value in _BEHAVIORS else None


def find_beta_refusal(wire: ClaudeWire, body: Body, model: Claude, betas: Collection[str]) -> str | None:
    """Return the message about the first field or block that this request may not have; None if there is none."""
    return next(_refusals(wire, body, model, betas), None)


def _refusals(wire: ClaudeWire, body: Body, model: Claude, betas: Collection[str]) -> Iterator[str]:
    yield from _binding_refusals(wire, body, betas)
    if wire == "messages":
        yield from _message_refusals(body, model, betas)


def _binding_refusals(wire: ClaudeWire, body: Body, betas: Collection[str]) -> Iterator[str]:
    thinking = thinking_of(wire, body)
    if "block_binding" not in thinking:
        return
    kind = thinking.get("type")
    place = f"thinking.{kind}.block_binding"
    is_allowed = wire == "converse" or BINDING_BETA in betas
    if not is_allowed or kind not in _BINDING_TYPES:
        yield f"{place}: Extra inputs are not permitted"
    binding = thinking["block_binding"]
    value = cast("Body", binding).get("prefix_mismatch_behavior") if isinstance(binding, Mapping) else binding
    if value is not None and value not in _BEHAVIORS:
        yield f"{place}.prefix_mismatch_behavior: Input should be 'error' or 'drop_block'"


def _message_refusals(body: Body, model: Claude, betas: Collection[str]) -> Iterator[str]:
    messages = [cast("Body", each) for each in list_of(body.get("messages")) if isinstance(each, Mapping)]
    tools: set[object] = {
        cast("Body", tool).get("name") for tool in list_of(body.get("tools")) if isinstance(tool, Mapping)
    }
    for at, message in enumerate(messages):
        for field, headers in _MESSAGE_FIELDS.items():
            if field in message and headers.isdisjoint(betas):
                yield f"messages.{at}.{field}: Extra inputs are not permitted"
        blocks = [cast("Body", each) for each in list_of(message.get("content")) if isinstance(each, Mapping)]
        for piece, block in enumerate(blocks):
            needed = _needed(block)
            if needed is not None and needed not in betas:
                yield (
                    f"messages.{at}.content.{piece}: Input tag '{block['type']}' found using 'type' does not match any"
                    f" of the expected tags"
                )
            if block.get("type") in _TOOL_BLOCKS:
                yield from _tool_refusals(block, f"messages.{at}.content.{piece}", tools)
        if message.get("role") == "system" and message.get("content"):
            yield from _placement_refusals(messages, at, model)


def _needed(block: Body) -> str | None:
    """Return the header that a block needs."""
    kind = block.get("type")
    if kind == "compaction":
        return _COMPACTIONS[block.get("signature") is not None]
    if kind not in _TOOL_BLOCKS:
        return None
    tool = block.get("tool")
    is_inline = isinstance(tool, Mapping) and cast("Body", tool).get("type") == "tool_definition"
    return _INLINE_TOOLS if is_inline else _TOOL_CHANGES


def _tool_refusals(block: Body, place: str, tools: set[object]) -> Iterator[str]:
    tool = cast("Body", block.get("tool") if isinstance(block.get("tool"), Mapping) else {})
    if tool.get("type") == "tool_definition":
        definition = tool.get("definition")
        tools.add(cast("Body", definition).get("name") if isinstance(definition, Mapping) else None)
    elif tool.get("type") != "tool_reference":
        yield f"{place}.tool.type: Input should be 'tool_reference' or 'tool_definition'"
    elif tool.get("name") not in tools:
        yield f"{place}.tool.name: Tool reference '{tool.get('name')}' not found in available tools"


def _placement_refusals(messages: list[Body], at: int, model: Claude) -> Iterator[str]:
    if not takes_system_messages(model):
        yield f"messages.{at}.role: Input should be 'user' or 'assistant'"
        return
    before = next((each.get("role") for each in reversed(messages[:at]) if each.get("role") != "system"), None)
    after = next((each.get("role") for each in messages[at + 1 :] if each.get("role") != "system"), None)
    if before != "user":
        yield f"messages.{at}: role 'system' must follow a user message"
    elif after == "user":
        yield f"messages.{at}: role 'system' must not be followed by a user message"
