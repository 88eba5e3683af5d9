"""The conversation of the samples of frameworks, as Anthropic turns: what each format has to be read as.

Every folder of a framework has this conversation in the form of that framework, as far as it can hold it.
"""

from __future__ import annotations

from typing import Any, Final

PNG: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="
PNG_URL: Final = f"data:image/png;base64,{PNG}"
SIGNATURE: Final = "c2lnbmF0dXJl"
WIRE: Final = "anthropic-messages"
MODEL: Final = "claude-sonnet-4-5"
ASKED: Final = "Look at both files."
THOUGHT: Final = "Both at once."
REMARK: Final = "I read them."
PATHS: Final = ("a.txt", "b.txt")
FOUND: Final = "alpha\nbeta"
MISSING: Final = "no such file"
ANSWER: Final = "Only one is there."


def sent_turns(
    *, thinking: bool = True, signature: bool = True, image: bool = True, result_image: bool = True, errors: bool = True
) -> list[object]:
    """Give the turns; the arguments say what the format can hold."""
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    thought: dict[str, Any] = {"type": "thinking", "thinking": THOUGHT, "signature": SIGNATURE}
    if not signature:
        del thought["signature"]
    calls = [
        {"type": "tool_use", "id": f"toolu_{at}", "name": "read", "input": {"path": path}}
        for at, path in enumerate(PATHS, 1)
    ]
    found: list[object] = [{"type": "text", "text": FOUND}]
    results = [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": [*found, picture] if result_image else found},
        {"type": "tool_result", "tool_use_id": "toolu_2", "content": MISSING, "is_error": errors},
    ]
    asked = {"type": "text", "text": ASKED}
    return [
        {"role": "user", "content": [asked, picture] if image else [asked]},
        {"role": "assistant", "content": [*([thought] if thinking else []), {"type": "text", "text": REMARK}, *calls]},
        {"role": "user", "content": results},
        {"role": "assistant", "content": ANSWER},
    ]
