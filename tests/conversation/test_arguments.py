"""Tool arguments: every text gives a value, and complete JSON is parsed exactly."""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Callable, Mapping
from types import FrameType, MappingProxyType
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.conversation import arguments as module
from segue.conversation.arguments import ParsedArguments, encode_arguments, parse_arguments
from segue.conversation.content import ToolCall
from segue.conversation.context import Context
from segue.conversation.limits import MAX_ARGUMENT_LEVELS as MAX_LEVELS
from segue.conversation.limits import MAX_DIGITS
from segue.conversation.messages import AssistantMessage
from segue.conversation.stored import dump, load
from segue.errors import EncodeError

if TYPE_CHECKING:
    from _typeshed import TraceFunction


def mode_of(parsed: ParsedArguments) -> object:
    """Give the mode; a parse without a diagnostic was strict."""
    if parsed.diagnostic is None:
        return "strict"
    assert parsed.diagnostic.type == "tool_arguments_recovered"
    assert parsed.diagnostic.message
    assert parsed.diagnostic.details is not None
    return parsed.diagnostic.details["mode"]


def nested(levels: int) -> str:
    """Give the JSON of an object with `levels - 1` nested lists."""
    return '{"a":' + "[" * (levels - 1) + "]" * (levels - 1) + "}"


READ: Final[Mapping[str, tuple[str | bytes, str, dict[str, object]]]] = {
    # -- the cases of the Go library ----------------------------------------------------------------------------------
    "empty is strict": ("", "strict", {}),
    "valid is strict": ('{"city":"Paris"}', "strict", {"city": "Paris"}),
    "a raw control character is repaired": ('{"city":"Par\nis"}', "repaired", {"city": "Par\nis"}),
    "a truncated value is salvaged": ('{"city":"Par', "partial", {"city": "Par"}),
    "a key without a value": ('{"city":', "partial", {}),
    "garbage is invalid": ("not json at all", "invalid", {}),
    "a bare list is invalid": ("[1,2,3]", "invalid", {}),
    "an open object": ("{", "partial", {}),
    "a dangling colon": ('{"a":', "partial", {}),
    "a complete pair, then a comma": ('{"a":1,', "partial", {"a": 1}),
    "a truncated string value": ('{"a":"hel', "partial", {"a": "hel"}),
    "a nested list": ('{"a":[1,2', "partial", {"a": [1, 2]}),
    "a complete number is kept": ('{"a":12', "partial", {"a": 12}),
    "a truncated number is dropped": ('{"a":1.', "partial", {}),
    # -- complete -----------------------------------------------------------------------------------------------------
    "white space alone is no arguments": (" \n", "strict", {}),
    "white space around": (' {"a" : 1}\n', "strict", {"a": 1}),
    "bytes": ('{"a":"ü"}'.encode(), "strict", {"a": "ü"}),
    "the last of equal keys wins": ('{"a":1,"a":2}', "strict", {"a": 2}),
    "an integer beyond 64 bits": (
        '{"a":123456789012345678901234567890}',
        "strict",
        {"a": 123456789012345678901234567890},
    ),
    "the longest integer": ('{"a":' + "9" * MAX_DIGITS + "}", "strict", {"a": int("9" * MAX_DIGITS)}),
    "the longest integer, read tolerantly": (
        r'{"\ud800":-' + "9" * MAX_DIGITS + "}",
        "strict",
        {"\ud800": -int("9" * MAX_DIGITS)},
    ),
    "a lone surrogate is JSON": (r'{"a":"\ud83d","b":2.5}', "strict", {"a": "\ud83d", "b": 2.5}),
    "a lone second half is JSON": (r'{"a":"\ude00x"}', "strict", {"a": "\ude00x"}),
    "two first halves before a second": (r'{"a":"\ud83d\ud83d\ude00"}', "strict", {"a": "\ud83d😀"}),
    "a first half before another escape": (r'{"a":"\ud83d\u0041\n"}', "strict", {"a": "\ud83dA\n"}),
    "a lone surrogate beside every escape": (
        r'{"a":"\ud83d\"\\\/\b\f\n\r\t"}',
        "strict",
        {"a": '\ud83d"\\/\b\f\n\r\t'},
    ),
    "a raw lone surrogate": ('{"a":"\udc00"}', "strict", {"a": "\udc00"}),
    "as deep as can be": (nested(MAX_LEVELS), "strict", json.loads(nested(MAX_LEVELS))),
    # -- repaired -----------------------------------------------------------------------------------------------------
    "a Windows path": (r'{"p":"C:\Users\me"}', "repaired", {"p": r"C:\Users\me"}),
    "a malformed unicode escape": (r'{"a":"\uZZ"}', "repaired", {"a": r"\uZZ"}),
    "a unicode escape with too few digits": (r'{"a":"\u12"}', "repaired", {"a": r"\u12"}),
    "a backslash before a raw line break": ('{"a":"x\\\ny"}', "repaired", {"a": "x\\\ny"}),
    "a bad escape in a key": (r'{"a\q":1}', "repaired", {r"a\q": 1}),
    "bytes that are no text": (b'{"a":"x\xffy"}', "repaired", {"a": "x\ufffdy"}),
    "half a character after the end": (b'{"a":1}\xc3', "repaired", {"a": 1}),
    # -- cut off ------------------------------------------------------------------------------------------------------
    "a dangling backslash": ('{"a":"x\\', "partial", {"a": "x"}),
    "an incomplete unicode escape": (r'{"a":"x\u00', "partial", {"a": "x"}),
    "the first half of a character": (r'{"a":"x\ud83d', "partial", {"a": "x"}),
    "a character and a half": (r'{"a":"x\ud83d\ude', "partial", {"a": "x"}),
    "half a character in bytes": (b'{"a":"x\xf0\x9f', "partial", {"a": "x"}),
    "an unterminated key": ('{"a":1,"b', "partial", {"a": 1}),
    "a key and no colon": ('{"a":1,"b"', "partial", {"a": 1}),
    "a lone minus": ('{"a":-', "partial", {}),
    "an exponent without digits": ('{"a":1e', "partial", {}),
    "an exponent with a sign alone": ('{"a":[1,1e+', "partial", {"a": [1]}),
    "a whole fraction": ('{"a":1.5', "partial", {"a": 1.5}),
    "part of a literal": ('{"a":tr', "partial", {}),
    "a whole literal": ('{"a":null', "partial", {"a": None}),
    "an open list": ('{"a":[', "partial", {"a": []}),
    "objects in lists": ('{"a":[{"b":[{"c":"d', "partial", {"a": [{"b": [{"c": "d"}]}]}),
    "a repair before the end": ('{"a":"\\q\n', "partial", {"a": "\\q\n"}),
    # -- broken in the middle: what stands before is kept -------------------------------------------------------------
    "NaN after something": ('{"a":1,"b":NaN,"c":2}', "partial", {"a": 1}),
    "NaN alone": ('{"a":NaN}', "invalid", {}),
    "infinity": ('{"a":-Infinity}', "invalid", {}),
    "a number beyond every float": ('{"a":1e999}', "invalid", {}),
    "an integer with too many digits": ('{"a":"b","c":' + "9" * (MAX_DIGITS + 1) + "}", "partial", {"a": "b"}),
    "a number with a leading zero": ('{"a":[1,02]}', "partial", {"a": [1]}),
    "a word after a number": ('{"a":1,"b":2px}', "partial", {"a": 1}),
    "a trailing comma": ('{"a":1,}', "partial", {"a": 1}),
    "a trailing comma in a list": ('{"a":[1,]}', "partial", {"a": [1]}),
    "the wrong bracket": ('{"a":[1}', "partial", {"a": [1]}),
    "a key without quotes": ("{a:1}", "invalid", {}),
    "a missing colon": ('{"a" 1}', "invalid", {}),
    "a missing comma": ('{"a":1 "b":2}', "partial", {"a": 1}),
    "quotes that were not escaped": ('{"a":"say "hi""}', "partial", {"a": "say "}),
    "text after the object": ('{"a":1} done', "partial", {"a": 1}),
    "a second object": ('{"a":1}{"b":2}', "partial", {"a": 1}),
    "a string": ('"{}"', "invalid", {}),
    "null": ("null", "invalid", {}),
    "a byte order mark": ("\ufeff{}", "invalid", {}),
    # -- too deep -----------------------------------------------------------------------------------------------------
    "one level too deep": (nested(MAX_LEVELS + 1), "invalid", {}),
    "more levels than Python has frames": (nested(100_000), "invalid", {}),
    "a million open brackets": ('{"a":' + "[" * 1_000_000, "invalid", {}),
    "one level too deep below a lone surrogate": (r'{"\ud83d":0,' + nested(MAX_LEVELS + 1)[1:], "invalid", {}),
}


@pytest.mark.parametrize(("text", "mode", "arguments"), READ.values(), ids=READ.keys())
def test_a_text_gives_its_arguments_and_its_mode(text: str | bytes, mode: str, arguments: dict[str, object]) -> None:
    parsed = parse_arguments(text)
    assert parsed.arguments == arguments
    assert mode_of(parsed) == mode


@pytest.mark.parametrize(("text", "mode", "arguments"), READ.values(), ids=READ.keys())
def test_the_text_is_kept_unless_segue_would_write_it(
    text: str | bytes, mode: str, arguments: dict[str, object]
) -> None:
    encoded = text if isinstance(text, str) else codecs.getincrementaldecoder("utf-8")("replace").decode(text)
    assert parse_arguments(text).text == (None if encode_arguments(arguments) == encoded else encoded)


@pytest.mark.parametrize("text", ['{"a":1,"b":[true,null,"é"]}', "{}", r'{"a":"\ud83d"}'])
def test_what_segue_writes_needs_no_text(text: str) -> None:
    parsed = parse_arguments(text)
    assert parsed.text is None
    assert encode_arguments(parsed.arguments) == text


@pytest.mark.parametrize(("text", "mode", "arguments"), READ.values(), ids=READ.keys())
def test_what_was_read_can_be_stored(text: str | bytes, mode: str, arguments: dict[str, object]) -> None:
    parsed = parse_arguments(text)
    call = ToolCall(id="a", name="b", arguments=parsed.arguments, arguments_text=parsed.text)
    diagnostics = () if parsed.diagnostic is None else (parsed.diagnostic,)
    context = Context(messages=(AssistantMessage(content=(call,), diagnostics=diagnostics),))
    assert load(dump(context)) == context


def test_a_message_gives_the_position_where_the_text_is_no_longer_json() -> None:
    diagnostic = parse_arguments('{"a":1,"b":NaN}').diagnostic
    assert diagnostic is not None
    assert diagnostic.message is not None
    assert "character 11 " in diagnostic.message


def at_stack_depth(frames: int, call: Callable[[], ParsedArguments]) -> ParsedArguments:
    """Call something with that many frames below it."""
    return call() if frames == 0 else at_stack_depth(frames - 1, call)


@pytest.mark.parametrize("levels", [100, MAX_LEVELS])
def test_a_deep_stack_changes_only_whether_the_text_is_kept(levels: int) -> None:
    depth = len(iter_frames())
    parsed = at_stack_depth(sys.getrecursionlimit() - depth - 60, lambda: parse_arguments(nested(levels)))
    assert parsed.arguments == json.loads(nested(levels))
    assert parsed.diagnostic is None


def iter_frames() -> list[FrameType]:
    """List the frames of the running stack."""
    frames: list[FrameType] = []
    frame: FrameType | None = sys._getframe()  # the only way to see how much of the stack is left
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames


# -- writing -----------------------------------------------------------------------------------------------------------

WRITTEN: Final[Mapping[str, tuple[Mapping[str, object], str]]] = {
    "nothing": ({}, "{}"),
    "compact, in the given order": ({"b": 1, "a": [1.5, None, True]}, '{"b":1,"a":[1.5,null,true]}'),
    "characters as they are": ({"é": "😀\u2028/"}, '{"é":"😀\u2028/"}'),
    "control characters escaped": ({"a": "\x01\n"}, r'{"a":"\u0001\n"}'),
    "an integer beyond 64 bits": ({"a": 2**70}, '{"a":1180591620717411303424}'),
    "a lone surrogate, the rest as ever": ({"a": "é\ud800😀", "b": [1, None]}, r'{"a":"é\ud800😀","b":[1,null]}'),
    "a mapping that is no dict": (MappingProxyType({"a": 1}), '{"a":1}'),
}


@pytest.mark.parametrize(("arguments", "text"), WRITTEN.values(), ids=WRITTEN.keys())
def test_arguments_are_written_one_way_and_read_back(arguments: Mapping[str, object], text: str) -> None:
    assert encode_arguments(arguments) == text
    assert parse_arguments(text) == ParsedArguments(arguments=dict(arguments))


ENDLESS: list[object] = []
ENDLESS.append(ENDLESS)

NOT_JSON: Final[Mapping[str, dict[str, object]]] = {
    "NaN": {"a": [float("nan")]},
    "NaN beside a long text": {"a": "x" * 1000, "b": float("nan")},
    "NaN deep inside, beside a long text": {"a": "x" * 1000, "b": {"c": [1, float("nan")]}},
    "infinity": {"a": {"b": float("-inf")}},
    "NaN beside a lone surrogate": {"a": "\ud800", "b": float("nan")},
    "an object of no JSON type": {"a": object()},
    "a list that contains itself": {"a": ENDLESS},
}


@pytest.mark.parametrize("arguments", NOT_JSON.values(), ids=NOT_JSON.keys())
def test_what_is_not_json_is_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(EncodeError):
        encode_arguments(arguments)


# -- properties --------------------------------------------------------------------------------------------------------

any_text: Final = st.text(st.characters(exclude_categories=()), max_size=12)
numbers: Final = st.integers() | st.floats(allow_nan=False, allow_infinity=False)


def objects(scalars: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    """Make objects of JSON, a few levels deep."""
    values = st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4), max_leaves=12
    )
    return st.dictionaries(any_text, values, max_size=4)


any_object: Final = objects(st.none() | st.booleans() | numbers | any_text)
spellings: Final = st.fixed_dictionaries(
    {
        "ensure_ascii": st.booleans(),
        "indent": st.sampled_from([None, 2]),
        "separators": st.sampled_from([None, (",", ":")]),
    }
)


@given(any_object, spellings)
def test_complete_input_is_parsed_like_json(value: dict[str, object], settings: dict[str, object]) -> None:
    text = json.dumps(value, **settings)  # pyright: ignore[reportArgumentType]
    parsed = parse_arguments(text)
    assert parsed.arguments == json.loads(text)
    assert parsed.diagnostic is None


@given(any_object, spellings)
def test_the_tolerant_parser_gives_the_same_for_complete_input(
    value: dict[str, object], settings: dict[str, object]
) -> None:
    # A lone surrogate sends the whole text past msgspec.
    text = json.dumps({"\ud800": 0, **value}, **settings)  # pyright: ignore[reportArgumentType]
    parsed = parse_arguments(text)
    assert parsed.arguments == json.loads(text)
    assert parsed.diagnostic is None


@given(any_object, spellings)
def test_every_prefix_gives_a_value(value: dict[str, object], settings: dict[str, object]) -> None:
    text = json.dumps(value, **settings)  # pyright: ignore[reportArgumentType]
    for end in range(1, len(text)):
        parsed = parse_arguments(text[:end])
        assert mode_of(parsed) == "partial"
        assert parsed.text == text[:end]
        assert set(parsed.arguments) <= set(json.loads(text))


def extends(longer: object, shorter: object) -> bool:
    """Whether `shorter` is an earlier state of `longer`."""
    if isinstance(longer, str) and isinstance(shorter, str):
        return longer.startswith(shorter)
    if isinstance(longer, list) and isinstance(shorter, list):
        pairs = list(zip(longer, shorter, strict=False))
        return len(shorter) <= len(longer) and all(extends(one, other) for one, other in pairs)
    if isinstance(longer, dict) and isinstance(shorter, dict):
        same_keys = list(longer)[: len(shorter)] == list(shorter)
        return same_keys and all(extends(longer[key], shorter[key]) for key in shorter)
    if isinstance(longer, int) and isinstance(shorter, int):
        return str(longer).startswith(str(shorter))
    return longer is shorter


@given(objects(st.none() | st.booleans() | st.integers() | any_text), spellings)
def test_a_longer_prefix_extends_a_shorter(value: dict[str, object], settings: dict[str, object]) -> None:
    # Without fractions: `1` and `1.5` are numbers and `1.` between them is not.
    text = json.dumps(value, **settings)  # pyright: ignore[reportArgumentType]
    before: object = {}
    for end in range(len(text) + 1):
        now = parse_arguments(text[:end]).arguments
        assert extends(now, before)
        before = now


broken_text: Final = st.text(st.sampled_from('{}[]",:\\/u0d8123.eE+-truefalsn \n\x00é\ud83d\udc00'), max_size=40)


@given(st.one_of(st.text(), st.binary(), broken_text, broken_text.map(lambda rest: '{"a":' + rest)))
def test_no_text_raises(text: str | bytes) -> None:
    parsed = parse_arguments(text)
    encode_arguments(parsed.arguments)
    assert mode_of(parsed) in ("strict", "repaired", "partial", "invalid")
    assert parse_arguments(text) == parsed


# -- work --------------------------------------------------------------------------------------------------------------


def lines_executed(call: Callable[[], object]) -> int:
    """Count the lines of the module that a call runs: work without a clock."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> TraceFunction | None:
        nonlocal count
        if frame.f_code.co_filename != module.__file__:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


HARD: Final[Mapping[str, Callable[[int], str]]] = {
    "one long string": lambda n: '{"a":"' + "x" * n,
    "escaped backslashes": lambda n: '{"a":"' + "\\\\" * n,
    "bad escapes": lambda n: '{"a":"' + "\\q" * n,
    "short unicode escapes": lambda n: '{"a":"' + "\\u12" * n,
    "first halves": lambda n: '{"a":"' + "\\ud83d" * n,
    "raw control characters": lambda n: '{"a":"' + "\x01" * n,
    "many keys": lambda n: "{" + ",".join(f'"{i}":{i}' for i in range(n)),
    "many open lists": lambda n: '{"a":' + "[" * n,
    "many closed lists": lambda n: '{"a":[' + "[]," * n,
    "levels within the limit": lambda n: '{"a":[' + ("[" * 100 + "]" * 100 + ",") * (n // 100),
    "white space": lambda n: '{"a":' + " " * n,
    "digits": lambda n: '{"a":' + "1" * n,
    "a long fraction": lambda n: '{"a":0.' + "1" * n,
    "a long word": lambda n: '{"a":' + "t" * n,
    "quotes": lambda n: "{" + '"' * n,
    "text after the object": lambda n: "{}" + "}" * n,
}


@pytest.mark.parametrize("make", HARD.values(), ids=HARD.keys())
def test_work_grows_no_faster_than_the_text(make: Callable[[int], str]) -> None:
    small, large = (lines_executed(lambda n=n: parse_arguments(make(n))) for n in (500, 4000))
    assert large <= 8 * small + 50
