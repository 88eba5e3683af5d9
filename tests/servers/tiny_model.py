"""A language model that nobody has to download: a llama-architecture GGUF of 300 KB, written in half a second.

It knows nothing, but it behaves: the weights are noise from a fixed seed, except for a few dimensions that are set by
hand, so that one sees from a request what will come.
- Without tools it writes words until it reaches the token limit or ends its turn.
- With tools it calls one, sometimes two; once a result has come after the last question it writes words again.
- It thinks in words first, unless the request turns thinking off in the template.

Facts this file rests on:
- Noise alone never calls a tool, even where one is required: the server's grammar waits for `<tool_call>` and a
  newline. What is likely is set through a dimension that every embedding has: the rows of the output matrix then carry
  a bias per token. Further dimensions of one token each make the next token likely.      (llama.cpp, seen 2026-11-15)
- A key that only one token has, and a query that every token has, make an attention head look for that token wherever
  it stands. The last pair of dimensions of a head is turned the least by its position (RoPE), so they go there.
- The vocabulary is byte-level BPE: every byte has a printable character that stands for it.  (GPT-2's byte alphabet)
- The chat template lies in the model file; the server reads from it the format of calls and thinking.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import gguf
import numpy as np

WINDOW: Final = 4096
"""How many tokens fit: small enough to overflow in a test, large enough for a few turns."""

_WIDTH: Final = 64
_HEADS: Final = 8
_HEAD: Final = _WIDTH // _HEADS
_INNER: Final = 64
_SEED: Final = 20261115
_ROPE: Final = 75_000.0
"""Turns the last pair of dimensions of a head by 0.9 rad over the whole window: 75000 ** -0.75 * 4096."""
_AHEAD: Final = 0.6
"""The query stands so many rad before the key: from there to a right angle a score falls with the distance."""
_SHARP: Final = 40.0
"""Makes the score of a token that a head looks for some ten thousands, and one token of distance worth about two."""

_WORDS: Final = """
the a of and to in is it that was for on are as with his they at be this from have or by one had not but what all were
when we there can an your which their said if do will each about how up out them then she many some so these would other
into has more her two like him see time could no make than first been its who now people my made over café naïve 日本 🙂
"""

END, STOP = "<|endoftext|>", "<|im_end|>"
START, USER = "<|im_start|>", "<|im_start|>user"
"""The beginning of a user's turn is one token, so that the model can look for it."""
THINK, THOUGHT = "<think>", "</think>"
CALL, CALLED = "<tool_call>", "</tool_call>"
TOOLS, RESULT = "<tools>", "<tool_response>"
_CONTROL: Final = (END, STOP, START, USER)
_MARKS: Final = (THINK, THOUGHT, CALL, CALLED, TOOLS, RESULT)

# What a dimension of the residual stream means. From `_NOISE` on: nothing.
_ALWAYS, _AFTER_CALL, _AFTER_CALLED = 0, 1, 2
_THINKING, _ASKED, _OFFERED, _CALLING = 3, 4, 5, 6
_ENDS: Final = 7  # a mark of the tokens that end a state, so that they are as long as those that begin it
_SOUGHT: Final = 8  # + the number of the head: a mark of the tokens that this head looks for
_BEGINS: Final = 12  # + the number of the head: a mark of the one that begins its state
_AFTER_LINE: Final = 16  # a mark of the tokens a turn does not end behind: the turn would be empty
_NOISE: Final = 17

_STATES: Final = (
    (_THINKING, THINK, THOUGHT),
    (_ASKED, USER, RESULT),
    (_OFFERED, TOOLS, None),
    (_CALLING, CALL, CALLED),
)
"""One attention head each: the state, which token begins it, which ends it. Of the two, the last one seen counts."""

_LIKELY: Final[dict[str, dict[int, float]]] = {
    STOP: {_ALWAYS: 8.5, _ASKED: -4.5, _OFFERED: -4.5, _THINKING: -15, _AFTER_LINE: -15, _AFTER_CALLED: 15},
    CALL: {_ALWAYS: -16.3, _ASKED: 12, _OFFERED: 12, _THINKING: -15, _CALLING: -15},
    CALLED: {_ALWAYS: -15, _CALLING: 15},
    "<": {_ALWAYS: -12},  # otherwise the end of a call would be several tokens, and not be recognized
    THOUGHT: {_ALWAYS: -14, _THINKING: 21, _AFTER_LINE: -15},
    "\n": {_ALWAYS: -3, _AFTER_CALL: 25},
    '"': {_ALWAYS: -2, _CALLING: 10},  # texts in arguments come to an end
    "}": {_ALWAYS: -2, _CALLING: 8},
    ".": {_ALWAYS: 2},
    ",": {_ALWAYS: 2, _CALLING: -8},  # one more call is possible, and rare
    " ": {_ALWAYS: -1, _CALLING: -8},
}
"""How likely a token is in a state, as additions to its logit; a word has 3, and there are some ninety of them."""
_WORD, _ASCII, _NEVER = 3.0, -1.0, -15.0


def write_tiny_model(path: Path) -> None:
    """Write the model file; the same bytes every time."""
    tokens = _vocabulary()
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_block_count(1)
    writer.add_context_length(WINDOW)
    writer.add_embedding_length(_WIDTH)
    writer.add_feed_forward_length(_INNER)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(_HEAD)
    writer.add_rope_freq_base(_ROPE)
    writer.add_vocab_size(len(tokens))
    _add_tokenizer(writer, tokens)
    for name, tensor in _weights(tokens).items():
        writer.add_tensor(name, tensor.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _alphabet() -> list[str]:
    """Give the character that stands for each byte: itself where it can be printed, else one from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]


def _spelt(text: str) -> str:
    letters = _alphabet()
    return "".join(letters[byte] for byte in text.encode())


def _vocabulary() -> list[str]:
    return [*_alphabet(), *(_spelt(" " + word) for word in _WORDS.split()), *_CONTROL, *_MARKS]


def _add_tokenizer(writer: gguf.GGUFWriter, tokens: list[str]) -> None:
    kinds = [gguf.TokenType.NORMAL] * len(tokens)
    for name in _CONTROL:
        kinds[tokens.index(name)] = gguf.TokenType.CONTROL
    for name in _MARKS:
        kinds[tokens.index(name)] = gguf.TokenType.USER_DEFINED
    merges: dict[str, None] = {}
    for word in (_spelt(" " + word) for word in _WORDS.split()):
        merges.update((f"{word[:end]} {word[end]}", None) for end in range(1, len(word)))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(list(merges))
    writer.add_eos_token_id(tokens.index(STOP))
    writer.add_pad_token_id(tokens.index(END))
    writer.add_add_bos_token(value=False)
    writer.add_chat_template(TEMPLATE)


def _weights(tokens: list[str]) -> dict[str, np.ndarray]:
    noise = np.random.default_rng(_SEED)
    block = {name: np.zeros((_WIDTH, _WIDTH)) for name in ("attn_q", "attn_k", "attn_v", "attn_output")}
    for head, (state, _, _) in enumerate(_STATES):
        first = head * _HEAD
        last = slice(first + _HEAD - 2, first + _HEAD)
        block["attn_q"][last, _ALWAYS] = _SHARP * np.array([np.cos(_AHEAD), np.sin(_AHEAD)])
        block["attn_k"][first + _HEAD - 2, _SOUGHT + head] = 2 * _SHARP
        block["attn_v"][first, _BEGINS + head] = 1.0
        block["attn_output"][state, first] = 0.3
    rest = len(_STATES) * _HEAD
    for name in ("attn_q", "attn_k", "attn_v"):
        block[name][rest:, _NOISE:] = noise.normal(0, 0.2, (_WIDTH - rest, _WIDTH - _NOISE))
    block["attn_output"][_NOISE:, rest:] = noise.normal(0, 0.05, (_WIDTH - _NOISE, _WIDTH - rest))
    down = np.zeros((_WIDTH, _INNER))
    down[_NOISE:] = noise.normal(0, 0.05, (_WIDTH - _NOISE, _INNER))
    return {
        "token_embd.weight": _embeddings(tokens, noise),
        "output.weight": _output(tokens, noise),
        "output_norm.weight": np.ones(_WIDTH),
        "blk.0.attn_norm.weight": np.ones(_WIDTH),
        "blk.0.ffn_norm.weight": np.ones(_WIDTH),
        "blk.0.ffn_gate.weight": noise.normal(0, 0.1, (_INNER, _WIDTH)),
        "blk.0.ffn_up.weight": noise.normal(0, 0.1, (_INNER, _WIDTH)),
        "blk.0.ffn_down.weight": down,
        **{f"blk.0.{name}.weight": matrix for name, matrix in block.items()},
    }


def _embeddings(tokens: list[str], noise: np.random.Generator) -> np.ndarray:
    """Rows of equal length but for their marks: what a head looks for must not be louder because of its noise."""
    table = np.zeros((len(tokens), _WIDTH))
    random = noise.normal(0, 1, (len(tokens), _WIDTH - _NOISE))
    table[:, _NOISE:] = 1.4 * random / np.linalg.norm(random, axis=1, keepdims=True)
    table[:, _ALWAYS] = 2.0
    for head, (_, begin, end) in enumerate(_STATES):
        table[tokens.index(begin), [_SOUGHT + head, _BEGINS + head]] = 1.0
        if end is not None:
            table[tokens.index(end), [_SOUGHT + head, _ENDS]] = 1.0
    table[[tokens.index(token) for token in (_spelt("\n"), THINK, THOUGHT)], _AFTER_LINE] = 1.0
    table[tokens.index(CALL), _AFTER_CALL] = 1.0
    table[tokens.index(CALLED), _AFTER_CALLED] = 1.0
    return table


def _output(tokens: list[str], noise: np.random.Generator) -> np.ndarray:
    # After the last norm the constant is about 5.8 and a state or a mark about 2.5.
    scale = {dimension: 5.8 if dimension == _ALWAYS else 2.5 for dimension in range(_NOISE)}
    table = np.zeros((len(tokens), _WIDTH))
    table[:, _NOISE:] = noise.normal(0, 0.15, (len(tokens), _WIDTH - _NOISE))
    likely = {_spelt(token) if token not in _CONTROL + _MARKS else token: states for token, states in _LIKELY.items()}
    for row, token in enumerate(tokens):
        states = likely.get(token, {_ALWAYS: _usual(token, row)})
        for dimension, addition in states.items():
            table[row, dimension] = addition / scale[dimension]
    return table


def _usual(token: str, row: int) -> float:
    if token in _CONTROL or token in _MARKS:
        return _NEVER
    if row >= 256:
        return _WORD
    return _ASCII if 0x20 <= row < 0x7F else _NEVER


TEMPLATE: Final = """\
{%- if tools %}
{{- '<|im_start|>system\\n' }}
{%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{% endif %}
{{- 'Tools you may call:\\n<tools>' }}
{%- for tool in tools %}{{- '\\n' + (tool | tojson) }}{% endfor %}
{{- '\\n</tools>\\nTo call one, write its name and arguments as JSON.<|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}
{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
{%- if message.role == 'user' or (message.role == 'system' and not loop.first) %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- elif message.role == 'assistant' %}
{{- '<|im_start|>assistant\\n' }}
{%- if message.reasoning_content %}{{- '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}{% endif %}
{%- if message.content %}{{- message.content }}{% endif %}
{%- for call in message.tool_calls or [] %}
{%- if not loop.first or message.content %}{{- '\\n' }}{% endif %}
{{- '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
{{- call.function.arguments if call.function.arguments is string else (call.function.arguments | tojson) }}
{{- '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- elif message.role == 'tool' %}
{{- '<|im_start|>tool\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- if enable_thinking is defined and enable_thinking %}{{- '<think>\\n' }}{% endif %}
{%- endif %}
"""
