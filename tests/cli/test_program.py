"""The whole program: help, errors, pipes, and imports."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cli.running import SESSION, run
from segue.cli.program import COMMANDS


def test_help_names_every_command():
    shown = run("--help")
    assert shown.status == 0
    assert all(name in shown.out for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name):
    shown = run(name, "--help")
    assert shown.status == 0
    assert shown.out.startswith(f"Usage: segue {name}")


def test_help_loads_neither_rich_nor_a_network_library():
    program = (
        "import sys, atexit\n"
        "atexit.register(lambda: print(*sorted({'rich', 'httpx2', 'starlette', 'asyncio'} & set(sys.modules))))\n"
        "sys.argv = ['segue', '--help']\n"
        "from segue.cli.entry import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == ""


def test_the_installed_script_runs():
    script = subprocess.run(["segue", "--version"], capture_output=True, text=True, check=False, timeout=60, env=PATHS)
    assert script.returncode == 0
    assert script.stdout.startswith("segue, version ")


PATHS = {"PATH": str(__import__("pathlib").Path(sys.executable).parent)}


def test_without_its_packages_the_program_names_what_to_install():
    program = "import sys\nsys.modules['click'] = None\nfrom segue.cli.entry import main\nmain()\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert 'pip install "segue-llm[cli]"' in done.stderr
    assert "Traceback" not in done.stderr


MISTAKES = {
    "a file that is not there": (("convert", "nowhere.json", "--to", "openai/gpt-5.4"), b"", "No such file"),
    "no JSON": (("convert", "-", "--to", "openai/gpt-5.4"), b"hello", "not valid JSON"),
    "no JSON behind a blank line": (
        ("show", "-"),
        b'{\n\n"messages": }',
        "segue: standard input: not valid JSON: line 3, column 13: a JSON value is expected here; correct the file",
    ),
    "no JSON on the only line": (
        ("check", "-", "--for", "openai/gpt-5.4"),
        b"\n\nhello",
        "segue: standard input: not valid JSON: line 3, column 1: a JSON value is expected here; correct the file",
    ),
    "an empty file": (("convert", "-", "--to", "openai/gpt-5.4"), b"", "segue: standard input: the file is empty; "),
    "JSON that is no conversation": (
        ("convert", "-", "--to", "openai/gpt-5.4"),
        b"17",
        "segue: standard input: this is neither",
    ),
    "a request of no wire": (("convert", "-", "--to", "openai/gpt-5.4"), b'{"a": 1}', "--from"),
    "a model that is misspelt": (("convert", SESSION, "--to", "gtp-5.4"), b"", "openai/gpt-5.4"),
    "no target": (("convert", SESSION), b"", "--to"),
    "a wire that is misspelt": (("convert", SESSION, "--to-protocol", "openai"), b"", "openai-chat"),
    "a protocol instead of a model": (
        ("convert", SESSION, "--to", "anthropic-messages"),
        b"",
        "use --to-protocol anthropic-messages, or a model of it, such as anthropic/claude-opus-4-8",
    ),
    "a protocol instead of a model, with a protocol": (
        ("convert", SESSION, "--to", "vscode-lm", "--to-protocol", "vscode-lm"),
        b"",
        "such as vscode/copilot with --to-protocol vscode-lm",
    ),
    "a protocol instead of the model of a chat": (
        ("chat", "openai-chat"),
        b"",
        "MODEL takes a model, and openai-chat is a protocol; use a model of it, such as openai/gpt-5.2",
    ),
    "a protocol instead of the writer": (
        ("convert", SESSION, "--to", "gpt-5.4", "--from-model", "openai-chat"),
        b"",
        "use --from openai-chat, or a model",
    ),
    "a model like no other": (("convert", SESSION, "--to", "zzzzqqqq"), b"", "such as --to-protocol openai-chat"),
    "a model like no other, to list": (("models", "zzzzqqqq"), b"", "Add a model of your own with --catalogue FILE"),
    "a model like no other, to check": (("check", SESSION, "--for", "zzzzqqqq"), b"", "such as --for openai-chat"),
    "the model of a gateway under the name of its maker": (
        ("convert", SESSION, "--to", "cohere/command-a-plus"),
        b"",
        "openrouter/cohere/command-a-plus",
    ),
    "an unknown command": (("covert",), b"", "segue: no such command 'covert'; did you mean convert?"),
    "a command like no other": (("zzz",), b"", "the commands are convert, check"),
    "a protocol that is misspelt": (("show", SESSION, "--from", "opanai-chat"), b"", "did you mean openai-chat"),
    "a protocol to check for that is misspelt": (
        ("check", SESSION, "--for", "antropic-messages"),
        b"",
        "did you mean --for anthropic-messages?",
    ),
    "a provider that is misspelt": (("models", "--provider", "antropic"), b"", "did you mean anthropic?"),
    "a line of a session that is no JSON, behind a blank one": (
        ("show", "-"),
        b'{"format": "segue/1"}\n\n{"role": "user", "content": "a"}\n{"role": "user", oops}\n{}\n',
        "segue: standard input: line 4: not valid JSON: column 18: ",
    ),
    "to resume without an output": (("convert", SESSION, "--to", "gpt-5.4", "--resume"), b"", "--output"),
    "a stored file of a later format": (
        ("show", "-"),
        b'{"format": "segue/9", "messages": []}',
        "segue/9",
    ),
}


@pytest.mark.parametrize(("arguments", "stdin", "given"), MISTAKES.values(), ids=MISTAKES.keys())
def test_an_error_prints_one_sentence_and_exits_with_2(arguments, stdin, given):
    ended = run(*arguments, stdin=stdin)
    assert ended.status == 2
    assert given in ended.err
    assert ended.out == ""
    assert ended.err.startswith("segue: ")
    assert "Error: " not in ended.err


def test_a_wrong_call_names_the_help_of_its_command():
    ended = run("convert", SESSION, "--nope")
    assert ended.err == "segue: no such option '--nope'. Did you mean '--to'?\nTry 'segue convert --help'.\n"


def test_the_example_is_named_without_its_folder():
    found = run("check", "--example", "--for", "mistral-chat").out.splitlines()
    assert found
    assert all(line.startswith("example.jsonl:") for line in found)


def test_the_example_can_be_handed_over(tmp_path):
    made = run("handover", "--example", "--to", "codex", "-o", tmp_path, "--report", "none")
    assert made.status == 0, made.err
    assert [path.suffix for path in tmp_path.iterdir() if path.is_file()] == [".jsonl"]
    both = run("handover", SESSION, "--example", "--to", "codex")
    assert "leave out SOURCE, or leave out --example" in both.err


def test_every_line_that_is_no_json_has_the_name_of_its_file_and_its_position(tmp_path):
    many = tmp_path / "many.jsonl"
    many.write_text('{"messages": [{"role": "user", "content": "hello"}], "model": "m"}\n\n{"messages": oops}\n')
    assert f"segue: {many}: line 3: not valid JSON: column 14: " in run("convert", many, "--to", "gpt-5.4").err
    assert (
        f"{many}:3: whole conversation: error: not valid JSON: column 14: "
        in run("check", many, "--for", "openai-chat").out
    )


def test_a_closed_pipe_ends_the_program_quietly(tmp_path):
    many = tmp_path / "many.jsonl"
    many.write_text('{"messages": [{"role": "user", "content": "hello"}], "model": "m"}\n' * 5_000)
    command = f"{sys.executable} -m segue convert {many} --to openai/gpt-5.4 --report none | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


@pytest.mark.parametrize(
    "arguments", [("show", SESSION), ("models", "claude"), ("convert", SESSION, "--to", "gpt-5.4")]
)
@pytest.mark.parametrize("env", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_pipe_gets_no_control_codes(arguments, env):
    shown = run(*arguments, env=env)
    assert shown.status == 0
    assert "\x1b" not in shown.out + shown.err


def test_a_transcript_cannot_send_control_codes_to_the_terminal(tmp_path):
    sly = tmp_path / "sly.json"
    sly.write_text('{"format": "segue/1", "messages": [{"role": "user", "content": "a\\u001b]0;title\\u0007b"}]}')
    shown = run("show", sly)
    assert "\x1b" not in shown.out
    assert "\\x1b" in shown.out


def test_a_torn_session_is_read_with_a_warning(tmp_path):
    torn = tmp_path / "torn.jsonl"
    torn.write_bytes(SESSION.read_bytes()[:-20])
    shown = run("show", torn)
    assert shown.status == 0
    assert "is incomplete and was skipped" in shown.err
