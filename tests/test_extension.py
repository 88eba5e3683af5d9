"""Protocols outside of segue: registered by a program, or declared by an installed package."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from itertools import groupby
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

import segue.protocols.registry as registry
from segue import Model, SettingsError, UnknownProtocol, check, detect_protocol, prepare, register_protocol
from segue.conversation.context import Context
from segue.conversation.messages import UserMessage
from segue.protocols import PROTOCOLS, Clues, Route, all_protocols, get_protocol
from segue.protocols.detection import _read_tables
from segue.testing import BrokenLaw, check_protocol
from segue.testing.history_laws import check_own_history, check_projected_round_trip

ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "examples" / "cohere_v1"
PLAIN = PROTOCOLS["plain-text"]
TOY = replace(
    PLAIN,
    name="toy",
    example=Model("t", "toy", "toy"),
    clues=Clues(body_keys={"toy_key": 9}),
)


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """Restore the registry after each test."""
    monkeypatch.setattr(registry.PROTOCOLS, "records", dict(registry.PROTOCOLS.records))
    _read_tables.cache_clear()
    yield
    _read_tables.cache_clear()


# -- by a program ------------------------------------------------------------------------------------------------------


def test_a_registered_protocol_is_listed_resolved_detected_and_written():
    register_protocol(TOY)
    assert list(PROTOCOLS)[-1] == "toy"
    assert get_protocol("toy") is TOY
    assert detect_protocol({"messages": [], "toy_key": 1}) == "toy"
    request = prepare(Context().add(UserMessage.of("hello")), TOY.example)
    assert request.body == {"messages": [{"role": "user", "content": "hello"}]}
    assert check(request.body, protocol="toy") == []


def test_registering_an_equal_record_again_changes_nothing():
    register_protocol(TOY)
    register_protocol(replace(TOY))
    assert list(PROTOCOLS).count("toy") == 1


REFUSED = {
    "the name of a protocol of segue": (
        replace(TOY, name="plain-text", example=Model("t", "toy", "plain-text")),
        r"'plain-text' is taken by segue itself; choose another `name`",
    ),
    "an example of another protocol": (replace(TOY, example=PLAIN.example), r"write Model\(\.\.\., protocol='toy'\)"),
    "a value that is not a record": (print, r"takes a segue\.Protocol, not a value of type builtin_function_or_method"),
}


@pytest.mark.parametrize(("record", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_a_record_that_cannot_be_used_is_refused(record, message):
    with pytest.raises(SettingsError, match=message):
        register_protocol(record)


def test_the_name_of_another_record_is_refused():
    register_protocol(TOY)
    with pytest.raises(SettingsError, match=r"'toy' is taken by another record, 'Plain text'; choose another `name`"):
        register_protocol(replace(TOY, provider="somebody"))


def test_a_record_of_segue_may_be_registered_again():
    register_protocol(PLAIN)
    assert get_protocol("plain-text") is PLAIN


@pytest.mark.parametrize("limits", [{"call_id_alphabet": "0-9"}, {"call_id_min": 12, "call_id_max": 12}], ids=str)
def test_the_kit_generates_ids_and_names_that_the_rules_allow(limits):
    """A correct protocol with narrow rules sends its own history without a change."""
    codec = get_protocol("openai-chat")
    rules = {**limits, "tool_name_alphabet": "a-z", "tool_name_max": 8}
    for seed in range(20):
        check_own_history(codec, replace(codec.example, rules=rules), seed)


# -- in a package ------------------------------------------------------------------------------------------------------


def install(site: Path, name: str, entry_points: dict[str, str]) -> None:
    """Write the metadata files that pip writes for a package with entry points."""
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [f"{point} = {value}" for point, value in entry_points.items()]
    (info / "entry_points.txt").write_text("\n".join(("[segue.protocols]", *lines, "")))


def install_example(site: Path) -> None:
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text("utf-8"))["project"]
    install(site, project["name"], project["entry-points"]["segue.protocols"])
    shutil.copytree(EXAMPLE / "src" / "segue_cohere_v1", site / "segue_cohere_v1")


def run(site: Path, *command: str, **options) -> subprocess.CompletedProcess[str]:
    paths = (str(site), str(ROOT / "src"))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False, env=environment, **options
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    install_example(folder)
    return folder


def test_the_example_package_passes_the_conformance_kit(site):
    done = run(site, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLE / "tests"), cwd=site)
    assert done.returncode == 0, done.stdout[-3000:]


CHAT = {
    "model": "gpt-5.2",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "How warm is it?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "3 degrees"},
    ],
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "weather",
                "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
            },
        }
    ],
}


def test_the_program_converts_to_the_protocol_of_a_package_and_back(site):
    given = site / "chat.json"
    given.write_text(json.dumps(CHAT))
    done = run(site, "-m", "segue", "convert", str(given), "--to", "cohere/command-r", "--to-protocol", "cohere-v1")
    assert done.returncode == 0, done.stderr
    body = json.loads(done.stdout)
    assert body["preamble"] == "Be brief."
    call = {"name": "weather", "parameters": {"city": "Oslo"}}
    assert body["tool_results"] == [{"call": call, "outputs": [{"output": "3 degrees"}]}]
    assert body["chat_history"][-1] == {"role": "CHATBOT", "message": "", "tool_calls": [call]}
    assert body["tools"][0]["parameter_definitions"] == {"city": {"type": "str", "required": True}}
    written = site / "v1.json"
    written.write_text(done.stdout)
    back = run(site, "-m", "segue", "convert", str(written), "--to", "openai/gpt-5.2", "--to-protocol", "openai-chat")
    assert back.returncode == 0, back.stderr
    assert [message["role"] for message in json.loads(back.stdout)["messages"]][-2:] == ["assistant", "tool"]


SERVED = """
import json

import httpx2

from segue.gateway.app import create_app
from segue.gateway.config import load_config
from segue.gateway.service import Gateway
from segue.testing.emulator import Emulator, Step, emulate, serve_in_thread

CONFIG = '[providers.cohere]\\nbase_url = "{}"\\nprotocol = "cohere-v1"\\n[state]\\nstore = "none"'
BODY = {"model": "cohere/command-r-08-2024", "message": "Hello?"}
CHAT = {"model": BODY["model"], "messages": [{"role": "user", "content": "Hello?"}]}
post = httpx2.Client(timeout=60).post  # a busy machine is no failure

refused = Emulator().respond("POST", "/v1/chat", {}, json.dumps({"message": "x", "p": 7}).encode())
answers = [json.loads(refused.body)["message"]]
with emulate(*(Step(text=text) for text in ("One.", "Two.", "Three."))) as upstream:
    gateway = Gateway(load_config(CONFIG.format(upstream.url)), environment={"CO_API_KEY": "k", "XDG_STATE_HOME": "."})
    with serve_in_thread(create_app(gateway=gateway)) as url:
        answers.append(post(f"{url}/v1/chat", json=BODY).json()["text"])
        streamed = post(f"{url}/v1/chat", json={**BODY, "stream": True}).text
        answers.append([json.loads(line)["event_type"] for line in streamed.splitlines()])
        chat = post(f"{url}/v1/chat/completions", json=CHAT).json()
        answers.append(chat["choices"][0]["message"]["content"])
        answers.append(post(f"{url}/v1/chat", json={"model": "no/such", "message": "x"}).json()["message"])
    answers += [(request.protocol, request.path, request.body["message"]) for request in upstream.emulator.requests]
print(json.dumps(answers))
"""


def test_the_gateway_and_the_emulator_serve_the_protocol_of_a_package(site, tmp_path):
    done = run(site, "-c", SERVED, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    refused, whole, events, chat, unknown, *sent = json.loads(done.stdout)
    assert refused.startswith("p: ")
    assert (whole, chat) == ("One.", "Three.")
    assert events[0] == "stream-start"
    assert set(events[1:-1]) == {"text-generation"}
    assert events[-1] == "stream-end"
    assert "no/such" in unknown
    assert sent == [["cohere-v1", "/v1/chat", "Hello?"]] * 3


def test_the_program_writes_and_reads_batch_files_of_the_protocol_of_a_package(site, tmp_path):
    target = ("--to", "cohere/command-r", "--to-protocol", "cohere-v1")
    (tmp_path / "in.jsonl").write_text(json.dumps({**CHAT, "id": "first"}) + "\n")
    done = run(site, "-m", "segue", "convert", "in.jsonl", *target, "--as", "batch", "-o", "batch.jsonl", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    line = json.loads((tmp_path / "batch.jsonl").read_text())
    assert (line["custom_id"], line["body"]["preamble"]) == ("first", "Be brief.")
    reply = {"text": "Cold.", "generation_id": "g", "finish_reason": "COMPLETE"}
    result = {"custom_id": line["custom_id"], "response": {"status_code": 200, "body": reply}}
    (tmp_path / "results.jsonl").write_text(json.dumps(result) + "\n")
    joined = run(
        site, "-m", "segue", "results", "results.jsonl", "--for", "batch.jsonl", "-o", "out.jsonl", cwd=tmp_path
    )
    assert joined.returncode == 0, joined.stderr
    last = json.loads((tmp_path / "out.jsonl").read_text())["messages"][-1]
    assert (last["protocol"], last["content"]) == ("cohere-v1", [{"type": "text", "text": "Cold."}])


NAMES = "import segue.protocols, sys; from segue.protocols.registry import protocol_names; print(protocol_names()[-1])"


def test_the_metadata_of_packages_are_read_only_if_one_adds_a_protocol(site, tmp_path):
    """Importing the library's reader takes longer than the rest of the program's start."""
    told = f"{NAMES}; print('importlib.metadata' in sys.modules)"
    assert run(site, "-c", told).stdout.split() == ["cohere-v1", "True"]
    assert run(tmp_path, "-c", told).stdout.split()[-1] == "False"


def test_a_package_in_an_archive_is_found(site, tmp_path):
    archive = shutil.make_archive(str(tmp_path / "packages"), "zip", site)
    assert run(Path(archive), "-c", NAMES).stdout.split() == ["cohere-v1"]


FINDER = """
import sys
from importlib.metadata import PathDistribution
from pathlib import Path
class Finder:
    def find_spec(self, name, path=None, target=None):
        return None
    def find_distributions(self, context):
        return map(PathDistribution, Path(sys.argv[1]).glob("*.dist-info"))
sys.meta_path.append(Finder())
"""


def test_a_package_that_another_finder_knows_is_found(site, tmp_path):
    assert run(tmp_path, "-c", FINDER + NAMES, str(site)).stdout.split() == ["cohere-v1"]


def test_a_package_is_not_imported_before_its_protocol_is_needed(site):
    program = (
        "import sys; from segue.protocols import PROTOCOLS, get_protocol; names = list(PROTOCOLS); "
        "get_protocol('plain-text'); assert 'segue_cohere_v1' not in sys.modules; "
        "assert names[-1] == 'cohere-v1'; get_protocol('cohere-v1'); assert 'segue_cohere_v1' in sys.modules"
    )
    done = run(site, "-c", program)
    assert done.returncode == 0, done.stderr


BROKEN = {
    "a missing module": ("no_such_module:RECORD", r"cannot be imported: ModuleNotFoundError"),
    "a value that is not a record": ("json:dumps", r"which is a function; it has to be a segue\.Protocol"),
    "a record of another name": ("segue.protocols.plain_text.protocol:PROTOCOL", r"a protocol called 'plain-text'"),
}


@pytest.mark.parametrize(("value", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_the_error_names_a_broken_package_and_other_protocols_work(tmp_path, monkeypatch, value, message):
    install(tmp_path, "acme-wire", {"acme": value})
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UnknownProtocol, match=rf"the package 'acme-wire' declares the protocol 'acme'.*{message}"):
        get_protocol("acme")
    assert get_protocol("mistral-chat").name == "mistral-chat"
    assert detect_protocol({"contents": []}) == "google-genai"
    with pytest.warns(RuntimeWarning, match="acme-wire"):
        assert "acme" not in [record.name for record in all_protocols()]


def test_a_package_cannot_replace_a_protocol_of_segue(tmp_path, monkeypatch):
    install(tmp_path, "acme-wire", {"openai-chat": "no_such_module:RECORD"})
    monkeypatch.syspath_prepend(tmp_path)
    assert get_protocol("openai-chat").provider == "openai"
    assert list(PROTOCOLS).count("openai-chat") == 1


# -- the conformance kit finds errors ----------------------------------------------------------------------------------


def _dropping(body, endpoint, tool_names):
    return replace(PLAIN.decode_response(body, endpoint, tool_names), content=())


def _crashing(body, endpoint):
    raise KeyError("messages")


def _reversing(prompt, endpoint):
    body = PLAIN.encode_request(prompt, endpoint)
    return {**body, "messages": list(reversed(cast("list[object]", body["messages"])))}


def _forgetting(prompt, endpoint):
    body = PLAIN.encode_request(prompt, endpoint)
    return {**body, "messages": cast("list[object]", body["messages"])[1:]}


class _Twice:
    """A decoder that ends every reply twice."""

    def __init__(self, decoder):
        self._decoder = decoder
        self.feed = decoder.feed

    def finish(self):
        return self._decoder.finish() * 2

    @property
    def message(self):
        return self._decoder.message


FAULTS = {
    "content dropped from a reply": ({"decode_response": _dropping}, "a reply is written back unchanged"),
    "a request that cannot be read": ({"decode_request": _crashing}, r"KeyError"),
    "turns in another order": ({"encode_request": _reversing}, "a request is written back unchanged"),
    "a turn that is not written": (
        {"encode_request": _forgetting},
        r"\.messages has length \d, expected \d; \.messages\[0\]",
    ),
    "a path without a route": (
        {"routes": (Route(path="/elsewhere", kind="generate"),)},
        "`path` gives .*, which ends with no path of `routes`",
    ),
    "two terminal events": (
        {"stream_decoder": lambda endpoint, names: _Twice(PLAIN.stream_decoder(endpoint, names))},
        "ends with one terminal event",
    ),
    "a check that refuses everything": (
        {"check": lambda body, endpoint: ["no"]},
        "any history becomes a request that check accepts",
    ),
    "an error body that is not read": ({"decode_error": lambda body, status: body["error"]}, "decode_error"),
    "a field that does not exist": ({"not_carried": frozenset({"tool_nmae"})}, "no neutral type has a field tool_nmae"),
    "no samples": ({"samples": tuple}, "there are no samples"),
    "clues that match no body": ({"clues": Clues(body_keys={"never": 9})}, "a body is recognised"),
}


@pytest.mark.parametrize(("fields", "message"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_is_found(fields, message):
    record = replace(PLAIN, name="toy", example=Model("t", "toy", "toy"), **fields)
    with pytest.raises(BrokenLaw, match=message):
        check_protocol(record, histories=5)


@pytest.mark.parametrize("unnamed", [frozenset[str](), frozenset({"id"})], ids=["with ids", "without ids"])
def test_results_that_answer_another_call_are_found_if_texts_are_joined(monkeypatch, unnamed):
    """The encoder sorts the ids of adjacent results, so a body that it wrote is written back unchanged."""
    chat = PROTOCOLS["openai-chat"]

    def sorting(prompt, endpoint):
        body = chat.encode_request(prompt, endpoint)
        turns = []
        for role, group in groupby(cast("list[dict[str, object]]", body["messages"]), key=lambda turn: turn["role"]):
            run = list(group)
            if role == "tool":
                ids = sorted((cast("str", turn["tool_call_id"]) for turn in run), reverse=True)
                run = [{**turn, "tool_call_id": name} for turn, name in zip(run, ids, strict=True)]
            turns += run
        return {**body, "messages": turns}

    record = replace(chat, encode_request=sorting, not_carried=chat.not_carried | unnamed)
    monkeypatch.setitem(registry.PROTOCOLS.records, chat.name, record)
    with pytest.raises(BrokenLaw, match=r"a projected request is read back .*toolResult"):
        check_projected_round_trip(record, record.example, seed=5)


def test_a_protocol_without_faults_passes():
    check_protocol(PLAIN, histories=5)
