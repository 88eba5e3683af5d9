"""The words of the program in messages of the library: options instead of Python arguments."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from cli.running import ROOT, SESSION, run
from cli.terminal import NO_KEYS
from segue.cli.wording import _CONVERT, _OPTIONS, in_program_words  # pyright: ignore[reportPrivateUsage]
from segue.projection.report import SENTENCES

PYTHON = re.compile(r"[A-Z]\w*\(|\w=\S")


@pytest.mark.parametrize("code", SENTENCES)
@pytest.mark.parametrize("converts", [True, False])
def test_no_sentence_of_a_report_has_python_in_it(code, converts):
    shown = in_program_words(SENTENCES[code], converts=converts)
    assert not PYTHON.search(shown)
    assert shown.endswith(".")
    assert not shown.endswith("..")


TEXTS = {
    "an option": (
        "there is no API key for kimi; set KIMI_API_KEY or run `segue keys set kimi`, or pass api_key=... or auth=...",
        "there is no API key for kimi; set KIMI_API_KEY or run `segue keys set kimi`, or use --key",
    ),
    "a clause at the end": (
        "the calls are missing; add them, or send text: Policy(a=1)",
        "the calls are missing; add them",
    ),
    "a clause in parentheses": (
        "A tool is removed. (unknown; name it with Policy(b={...}))",
        "A tool is removed. (unknown)",
    ),
    "a sentence in the middle": (
        "One is sent. Choose with Policy(a=(1, 2)). Two are not.",
        "One is sent. Two are not.",
    ),
    "text of a user": ("no model 'f(x)=1'; did you mean g?", "no model 'f(x)=1'; did you mean g?"),
}


@pytest.mark.parametrize(("given", "shown"), TEXTS.values(), ids=TEXTS.keys())
def test_python_is_replaced_or_left_out(given, shown):
    assert in_program_words(given) == shown


COMMANDS = {
    "convert": (("convert", SESSION, "--to", "openai/gpt-5.4"), ""),
    "convert, refused": (("convert", SESSION, "--to", "openai/gpt-5.4", "--strict"), ""),
    "check": (("check", SESSION, "--for", "openai/gpt-5.4", "--all"), ""),
    "a chat without a key": (("chat", "openai/gpt-5.4"), "hello\n"),
    "a model like no other in a chat": (("chat", "echo"), "/model zzzzqqqq\n"),
    "a switch in a chat": (("chat", "echo", "--session", "SESSION"), "/model openai/gpt-5.4\n"),
    "a question without a key": (("ask", "hello", "-m", "openai/gpt-5.4"), ""),
}


@pytest.mark.parametrize(("arguments", "typed"), COMMANDS.values(), ids=COMMANDS.keys())
def test_no_command_gives_advice_for_python(arguments, typed, tmp_path):
    session = tmp_path / "s.jsonl"
    session.write_bytes(SESSION.read_bytes())
    given = [session if each == "SESSION" else each for each in arguments]
    shown = run(*given, stdin=typed, env={**NO_KEYS, "OPENAI_API_KEY": ""})
    assert not re.search(r"Policy\(|Model\(|Options\(|api_key=", shown.out + shown.err)


def test_inside_a_chat_the_commands_of_the_chat_are_named():
    shown = run("chat", "echo", stdin="/model zzzzqqqq\n/modle x\n", env=NO_KEYS).err
    assert "/models QUERY lists the names" in shown
    assert "There is no command /modle; did you mean /model" in shown


def written_texts(folder: Path, beginnings: Sequence[str] = ("",)) -> list[str]:
    """List the texts in the code of a folder, of files that have one of the beginnings.

    The values in the texts are replaced by X.
    """
    texts: list[str] = []
    for file in sorted(folder.rglob("*.py")):
        source = file.read_text(encoding="utf-8")
        if not any(each in source for each in beginnings):
            continue
        tree = ast.parse(source)
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                parts = [str(each.value) if isinstance(each, ast.Constant) else "X" for each in node.values]
                texts.append("".join(parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    return texts


def test_every_replaced_phrase_is_one_of_the_library():
    phrases = [phrase for phrase, _ in (*_OPTIONS, *_CONVERT)]
    everything = "\n".join(written_texts(ROOT / "src" / "segue", [phrase.partition("X")[0][:12] for phrase in phrases]))
    for phrase in phrases:
        assert everything.count(phrase) > 1, phrase  # once in the table itself


SENT = ("client/http", "client/flow", "conversation", "failures")
"""What raises errors while a command reads a conversation and sends a request."""
ADVICE = re.compile(r"; (?:or )?(?:pass|use|write|set) [^;]*\b\w+=\.\.\.")


@pytest.mark.parametrize("folder", SENT)
def test_no_advice_of_the_library_reaches_a_user_of_the_program_in_python(folder):
    texts = written_texts(ROOT / "src" / "segue" / folder)
    assert texts
    left = [text for text in texts if ADVICE.search(in_program_words(text))]
    assert [text for text in left if "Client()" not in text and "Conversation()" not in text] == []
