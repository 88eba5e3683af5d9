"""The benchmarks run and say what they say they say; what they measure is for people to judge, not for a test."""

from __future__ import annotations

import ast
import csv
import gc
import importlib
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from segue.protocols.api import decode_response
from segue.protocols.registry import all_protocols
from segue.requests.prepare import prepare

ROOT = Path(__file__).parent.parent
BENCHMARKS = ROOT / "benchmarks"
VERDICTS = ("aim met", "must met", "MISSED")
ALL_WIRES = ("anthropic-messages", "bedrock-converse", "google-genai", "openai-chat", "openai-responses")
PEERS = ("any-llm", "langchain", "litellm", "llm-rosetta", "pydantic-ai", "strands")


@pytest.fixture(scope="module")
def module_of():
    """Import files of the benchmarks for the tests of this file: their bare names are gone afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        yield importlib.import_module
    for name, module in list(sys.modules.items()):
        if Path(getattr(module, "__file__", None) or "/").parent == BENCHMARKS:
            del sys.modules[name]


@pytest.fixture(autouse=True)
def frozen():
    """Measuring shows the collector again what the session had frozen."""
    yield
    gc.freeze()


def run_python(*arguments, **environment):
    """Run an interpreter that finds segue and the benchmarks; give what it printed."""
    paths = os.pathsep.join([str(ROOT / "src"), str(BENCHMARKS)])
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        check=True,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": paths, **environment},
        timeout=300,
    )
    return done.stdout


GROUPS = ("stored", "projection", "requests", "growth", "warm", "recall", "streams", "relays", "convert", "corpus")


@pytest.mark.parametrize(
    ("groups", "least", "drawings"),
    [
        pytest.param(("stored",), 10, set(), id="one group"),
        pytest.param(GROUPS, 200, {"cold", "growth", "warm"}, id="every group", marks=pytest.mark.proof),
    ],
)
def test_a_quick_run_writes_a_page_with_every_figure_next_to_it_and_prints_the_goals(
    module_of, tmp_path, groups, least, drawings
):
    page = tmp_path / "page.md"
    printed = run_python(BENCHMARKS / "run.py", "--quick", "--no-peers", "--groups", *groups, "--output", page).decode()
    text = page.read_text(encoding="utf-8")
    for heading in ("# How fast is segue?", "## Figures", "## How to repeat it", "## How it is measured"):
        assert f"{heading}\n" in text
    with (tmp_path / "figures.csv").open(encoding="utf-8", newline="") as file:
        figures = list(csv.reader(file))[1:]
    assert list(dict.fromkeys(group for group, *_ in figures)) == list(groups)
    assert len(figures) >= least
    for _, what, value, _, note in figures:
        assert (value == "not measured") == note.startswith("not measured: "), what
    summary = module_of("page").SUMMARY
    assert summary["stored.load"] in text
    assert len(text.split()) < 1_500, "the page is a summary: figures.csv has the rest"
    assert not any(verdict in text for verdict in VERDICTS), "goals are for those who work on segue"
    assert "The worst figure of each goal" in printed
    assert any(verdict in printed for verdict in VERDICTS)
    assert {path.stem for path in tmp_path.glob("*.svg")} == drawings
    assert all(f"]({name}.svg)" in text for name in drawings)


def test_every_group_has_its_place_on_the_page(module_of):
    groups = list(module_of("run").GROUPS)
    assert list(module_of("page").TITLES) == groups
    assert list(module_of("page").INTRODUCTIONS) == groups


def test_every_row_of_the_summary_is_of_a_goal(module_of):
    assert set(module_of("page").SUMMARY) <= set(module_of("goals").GOALS)


@pytest.mark.parametrize("length", [3, 4, 5, 50, 333])
def test_a_transcript_has_its_length_and_answers_every_call_at_once(module_of, length):
    messages = module_of("transcripts").make_transcript(length).messages
    assert len(messages) == length
    assert messages[-1].role == "toolResult"
    waiting: list[str] = []
    for message in messages:
        if message.role == "toolResult":
            assert message.tool_call_id == waiting.pop(0)
        else:
            assert not waiting
            waiting = [call.id for call in message.tool_calls()] if message.role == "assistant" else []
    assert not waiting


def test_a_transcript_has_the_proportions_of_an_agents_work(module_of):
    transcripts = module_of("transcripts")
    messages = transcripts.make_transcript(2000).messages
    share = {
        role: sum(message.role == role for message in messages) / 2000 for role in ("user", "assistant", "toolResult")
    }
    assert share == pytest.approx({"user": 0.06, "assistant": 0.38, "toolResult": 0.55}, abs=0.02)
    texts = [content.text for message in messages for content in message.content if content.kind == "text"]
    assert sum(not text.isascii() for text in texts) / len(texts) == pytest.approx(0.15, abs=0.03)
    with_images = transcripts.make_transcript(2000, images=True).messages
    images = [content for message in with_images for content in message.content if content.kind == "image"]
    assert len(images) == pytest.approx(20, abs=1)
    assert {len(image.data) for image in images} == {100_000}


def test_a_transcript_is_the_same_in_every_process(module_of):
    script = "import sys, segue, transcripts; sys.stdout.buffer.write(segue.dump(transcripts.make_transcript(40)))"
    assert run_python("-c", script, PYTHONHASHSEED="1") == run_python("-c", script, PYTHONHASHSEED="2")


def test_ratios_are_best_over_best_with_a_control(module_of, monkeypatch):
    measure = module_of("measure")
    clock = itertools.count()  # every look at it, and every piece of work, is one tick
    monkeypatch.setattr(measure.time, "process_time_ns", lambda: next(clock))

    def work(ticks):
        return lambda: [next(clock) for _ in range(ticks - 1)]

    compared = measure.compare("floor", {"floor": work(100), "slow": work(250)}, measure.Effort(rounds=5, sample_ns=1))
    assert {len(samples) for samples in compared.samples.values()} == {5}
    assert compared.ratio("slow").best == pytest.approx(2.5)
    assert compared.control() == measure.Ratio(1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("value", "at_least", "verdict"),
    [
        (0.7, False, "aim met"),
        (0.9, False, "must met"),
        (1.1, False, "MISSED"),
        (None, False, ""),
        (0.7, True, "MISSED"),
        (1.1, True, "must met"),
        (1.3, True, "aim met"),
    ],
)
def test_a_figure_is_compared_with_its_goal(module_of, value, at_least, verdict):
    figures = module_of("figures")
    goal = figures.Goal(must=1.0, aim=1.2 if at_least else 0.8, at_least=at_least)
    assert figures.Figure("key", "what", "times", value).verdict(goal) == verdict


@pytest.mark.parametrize(("at_least", "worst"), [(False, "high"), (True, "low")])
def test_the_worst_figure_of_each_goal_is_shown(module_of, at_least, worst):
    figures = module_of("figures")
    taken = [figures.Figure("key", what, "times", value) for what, value in (("low", 1.0), ("high", 2.0), ("no", None))]
    table = figures.render_verdicts(taken, {"key": figures.Goal(must=1.5, at_least=at_least), "unheld": None})
    assert [cell.strip() for cell in table.splitlines()[-1].strip("|").split("|")][:3] == ["key", "2", worst]


def test_a_goal_without_a_figure_is_refused(module_of):
    with pytest.raises(AssertionError, match=r"stored\.dump"):
        module_of("goals").check_goals("stored", [])


def test_a_peer_that_cannot_be_installed_is_skipped_with_a_reason(module_of, tmp_path):
    peers = module_of("peers")
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    environment = peers.make_environment(peers.PEERS[0], in_the_way)
    assert environment.python is None
    assert environment.reason


@pytest.mark.parametrize("wire", ALL_WIRES)
def test_a_history_decoded_from_replies_belongs_to_its_model(module_of, wire):
    model = writer_of(module_of, wire)
    context = module_of("replies").make_history(60, model)
    transcript = module_of("transcripts").make_transcript(60, model=model)
    assert [message.role for message in context.messages] == [message.role for message in transcript.messages]
    for message, given in zip(context.messages, transcript.messages, strict=True):
        if message.role == "assistant":
            assert [piece.kind for piece in message.content] == [piece.kind for piece in given.content]
            assert (message.protocol, message.provider, message.model) == (wire, model.provider, model.id)
            assert all(is_signed(message) for piece in message.content if piece.kind == "thinking")
    assert prepare(context, model).report.changes == ()


def writer_of(module_of, wire):
    """Find the model that writes the same-model histories of a protocol."""
    return next(case.writer for case in module_of("cases").SAME_MODEL_CASES if case.wire == wire)


def is_signed(message):
    """Gemini signs the first call of a turn, the others sign the thinking."""
    if message.protocol == "google-genai":
        return bool(message.tool_calls()[0].thought_signature)
    return all(piece.thinking_signature for piece in message.content if piece.kind == "thinking")


def test_every_protocol_is_measured_with_its_own_and_another_models_history(module_of):
    cases = module_of("cases").CASES
    reached = sorted((case.wire, case.place) for case in cases)
    assert reached == list(itertools.product(ALL_WIRES, ("cross-model", "same-model")))
    for case in cases:
        context = module_of("replies").make_history(20, case.writer)
        assert bool(prepare(context, case.target).report.changes) == (case.place == "cross-model")


@pytest.mark.parametrize("wire", ALL_WIRES)
def test_a_stream_has_the_same_content_as_the_whole_reply(module_of, wire):
    model, streamed = writer_of(module_of, wire), module_of("streamed")
    for stream in (streamed.mixed_stream(model), streamed.argument_stream(model, 2_000)):
        last = module_of("stream_costs").read_stream(stream.pieces, model)
        assert last.type == "done"
        assert last.message.content == decode_response(stream.reply, model=model).content
        assert {piece.kind for piece in last.message.content} >= {"text", "toolCall"}
        assert [json.loads(payload) for payload in stream.payloads]
        if wire != "bedrock-converse":
            assert stream.whole.count(b"\n\n") == len(stream.pieces)


def test_a_long_argument_has_its_length_and_deltas_of_a_few_characters(module_of):
    model, streamed = module_of("cases").CLAUDE, module_of("streamed")
    short, long = (streamed.argument_stream(model, size) for size in (12_000, 200_000))
    for stream, size in ((short, 12_000), (long, 200_000)):
        (call,) = stream.message.tool_calls()
        assert len(call.arguments["text"]) == size
        assert 8 < size / len(stream.payloads) < 16


def test_peers_in_other_processes_run_in_turn_and_are_compared_as_ratios(module_of, monkeypatch):
    measure = module_of("measure")
    clock = itertools.count()
    monkeypatch.setattr(measure.time, "process_time_ns", lambda: next(clock))

    def work(ticks):
        return lambda: [next(clock) for _ in range(ticks - 1)]

    # Over there everything takes ten times as long; in multiples of the yardstick, the peer needs four times as much.
    elsewhere = [lambda: {"peer": 8_000.0, "peer: yardstick": 1_000.0, "peer: control": 1_000.0}]
    subjects = {"floor": work(100), "ours": work(200)}
    compared = measure.compare("floor", subjects, measure.Effort(rounds=5, sample_ns=1), elsewhere)
    assert compared.ratio("peer", "peer: yardstick").best == pytest.approx(8)
    assert compared.against("ours", "peer").best == pytest.approx(1 / 4)
    assert compared.against("ours", "peer").spread_as_part() == "1/4.0 to 1/4.0"


PEER = """
def make_call(task):
    if task["name"] == "impossible":
        raise LookupError("no such wire")
    return lambda: [task["target"]["protocol"]]
"""


def test_a_peer_measures_rounds_and_reports_what_it_cannot_do(module_of, monkeypatch, tmp_path):
    processes, peers = module_of("peer_processes"), module_of("peers")
    (tmp_path / "worker.py").write_text((BENCHMARKS / "peer_side" / "worker.py").read_text(encoding="utf-8"))
    (tmp_path / "made_up.py").write_text(PEER)
    monkeypatch.setattr(processes, "_FOLDER", tmp_path)
    monkeypatch.setattr(processes, "_MODULES", {"made-up": "made_up"})
    environment = peers.Environment(peers.Peer("made-up", "none", "0", "pass"), Path(sys.executable))
    tasks = [processes.Task(name, {"protocol": "any"}, {}, {"key": "value"}) for name in ("possible", "impossible")]
    with processes.start_peer(environment, tasks, sample_ns=1_000) as peer:
        assert peer.reasons == {"possible": "", "impossible": "LookupError: no such wire"}
        samples = [peer.sampler("possible")() for _ in range(3)]
    assert all(set(sample) == {"made-up", "made-up: yardstick", "made-up: control"} for sample in samples)
    assert all(spent > 0 for sample in samples for spent in sample.values())


def test_a_peer_without_an_environment_has_a_reason_for_every_task(module_of):
    processes, peers = module_of("peer_processes"), module_of("peers")
    environment = peers.Environment(peers.get_peer("litellm"), None, "it could not be installed")
    tasks = [processes.Task("any", {}, {}, {})]
    with processes.start_peer(environment, tasks, sample_ns=1) as peer:
        assert peer.reasons == {"any": "it could not be installed"}


SIDES = sorted(path.stem for path in (BENCHMARKS / "peer_side").glob("*.py"))


@pytest.mark.parametrize("side", SIDES)
def test_the_peer_side_imports_nothing_of_segue(side):
    tree = ast.parse((BENCHMARKS / "peer_side" / f"{side}.py").read_text(encoding="utf-8"))
    named = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    named += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert {name.partition(".")[0] for name in named} - sys.stdlib_module_names <= {"orjson", *SIDES}


def test_every_peer_names_the_protocols_it_supports(module_of):
    peers = {peer.name for peer in module_of("peers").PEERS}
    assert peers == set(PEERS) == set(module_of("peer_support").WIRES)
    assert {f"{name.replace('-', '_')}_side" for name in peers} | {"worker", "chat_form"} == set(SIDES)


# -- plots -------------------------------------------------------------------------------------------------------------


def drawn(module_of, *marks):
    """Draw figures that stand in plots; give the texts and the widths of bars in each drawing."""
    figures, plots = module_of("figures"), module_of("plots")
    taken = [figures.Figure("", "what", "times", 1.0, mark=figures.Mark(*mark)) for mark in marks]
    drawings = {}
    for name, drawing in plots.draw_plots([*taken, figures.Figure("", "unplotted", "times", 1.0)]).items():
        root = ET.fromstring(drawing)
        texts = [node.text for node in root.iter() if node.tag.endswith("}text")]
        bars = [float(node.attrib["width"]) for node in root.iter() if node.get("class") in ("ours", "theirs")]
        drawings[name] = texts, bars
    return drawings


def test_bars_are_named_and_as_long_as_their_numbers(module_of):
    marks = [("warm", "a <wire>", "segue", 0.5), ("warm", "a <wire>", "a peer", 1.0), ("warm", "b", "segue", 0.25)]
    ((texts, bars),) = drawn(module_of, *marks).values()
    assert texts[2:] == ["a <wire>", "segue", "0.50", "a peer", "1.00", "b", "segue", "0.25"]
    assert bars == pytest.approx([bars[1] / 2, bars[1], bars[1] / 4], abs=0.1)


def test_a_bar_that_is_too_long_is_cut_and_labelled(module_of):
    most = module_of("plots").PLOTS["cold"].most
    marks = [("cold", "a", "segue", most / 2), ("cold", "a", "a peer", most * 10)]
    ((texts, bars),) = drawn(module_of, *marks).values()
    assert texts[-1] == f"{most * 10:,.0f}"
    assert bars[1] == pytest.approx(bars[0] * 2, abs=0.1)


def test_lines_are_labelled_at_their_end_without_overlap(module_of):
    marks = [("growth", str(x), name, y) for name, y in (("segue", 2.0), ("peer", 2.01)) for x in (10, 100)]
    ((texts, _),) = drawn(module_of, *marks).values()
    assert {"segue 2.00", "peer 2.01", "10", "100", "messages"} <= set(texts)
    places = module_of("plots")._spaced({"a": 10.0, "b": 11.0, "c": 60.0})
    assert places == {"a": 10.0, "b": 24.0, "c": 60.0}


# -- the guard ---------------------------------------------------------------------------------------------------------


def sampler(*costs, yardstick=100.0):
    """Make a process that measures a path: one cost after the other, the last one from then on."""
    left = list(costs)
    return lambda _: (left.pop(0) if len(left) > 1 else left[0], yardstick)


@pytest.mark.parametrize(
    ("head", "base", "control", "is_slow"),
    [
        pytest.param([200], [200], [200], False, id="as fast"),
        pytest.param([219], [200], [200], False, id="below the limit"),
        pytest.param([221], [200], [200], True, id="above the limit"),
        pytest.param([221], [200], [210], False, id="the control differs by chance"),
        pytest.param([240], [200], [210], True, id="more than the control explains"),
        pytest.param([900, 900, 900, 201], [200], [200], False, id="a load spike"),
    ],
)
def test_a_path_that_became_slower_than_at_the_base_commit_is_found(module_of, head, base, control, is_slow):
    guard = module_of("speed_guard")
    verdict = guard.compare("path", [sampler(*head), sampler(*base), sampler(*control)], rounds=5)
    assert verdict.is_slow() == is_slow


def test_a_process_in_which_everything_is_slower_raises_no_alarm(module_of):
    guard = module_of("speed_guard")
    verdict = guard.compare("path", [sampler(300, yardstick=150.0), sampler(200), sampler(200)])
    assert not verdict.is_slow()


def test_an_accepted_slowdown_is_tolerated_and_no_more_than_that(module_of):
    guard = module_of("speed_guard")
    assert not guard.Verdict(change=1.3, control=1.0).is_slow(accepted=1.25)
    assert guard.Verdict(change=1.5, control=1.0).is_slow(accepted=1.25)


def test_the_base_of_the_speed_check_accepts_only_paths_that_exist_with_a_reason(module_of):
    guard, paths = module_of("speed_guard"), module_of("hot_paths")
    recorded = json.loads(guard.BASE.read_bytes())
    with paths.open_paths(20) as listed:
        names = {path.name for path in listed}
    assert recorded["accepted"].keys() <= names
    assert all(accepted["reason"].strip() and accepted["factor"] > 1 for accepted in recorded["accepted"].values())


def called_by(call):
    """Call a function; give its result, and the code objects of all Python functions that ran."""
    called = set()
    sys.setprofile(lambda frame, event, _: called.add(frame.f_code) if event == "call" else None)
    try:
        return call(), called
    finally:
        sys.setprofile(None)


def test_every_hot_path_calls_the_function_that_it_names_and_gives_a_result(module_of):
    with module_of("hot_paths").open_paths(20) as listed:
        for path in listed:
            result, called = called_by(path.begin())
            assert result, path.name
            assert not callable(result), path.name
            module, _, function = path.through.partition(":")
            if function:
                source = module.replace(".", "/") + ".py"
                names = {code.co_name for code in called if code.co_filename.endswith(source)}
                assert function.rpartition(".")[2] in names, path.name


def test_a_path_that_computes_nothing_is_refused(module_of):
    paths, worker = module_of("hot_paths"), module_of("speed_worker")
    for result in (None, b"", len):
        idle = paths.HotPath(
            "idle", lambda result=result: lambda: result, lambda: None, "segue.requests.prepare:prepare"
        )
        with pytest.raises(TypeError, match=r"idle gives .* it measures nothing"):
            worker.check_result(idle)


def test_the_speed_check_names_the_slow_path(module_of, monkeypatch, capsys):
    guard = module_of("speed_guard")
    monkeypatch.setattr(guard, "extract", lambda commit, folder: folder)
    monkeypatch.setattr(guard, "find_slow", lambda *_, **__: {"read_session": guard.Verdict(1.4, 1.01)})
    with pytest.raises(SystemExit, match="1 of 1 hot paths became slower"):
        guard.main(["--only", "read_session"])
    assert capsys.readouterr().err.startswith("read_session: 1.40 times ")


def test_a_checkout_without_the_base_commit_says_that_nothing_was_compared(module_of, capsys):
    module_of("speed_guard").main(["--only", "read_session", "--base", "no-such-commit"])
    assert capsys.readouterr().out == "speed is not compared: this checkout does not have the commit no-such-commit\n"


@pytest.mark.proof
def test_a_slowdown_planted_into_any_hot_path_is_found():
    assert b"hot paths notice a planted slowdown" in run_python(ROOT / "scripts" / "check_speed.py", "--plant")


def counting(cost):
    """Make a function of the guard whose large input takes `cost(size)` ticks, and a clock that reads them."""
    guard_clock = itertools.count()

    def make(size):
        return lambda: [next(guard_clock) for _ in range(cost(size))]

    def timer(call):
        before = next(guard_clock)
        call()
        return (next(guard_clock) - before) * 10_000.0

    return make, timer


@pytest.mark.parametrize(
    ("cost", "fails"),
    [
        pytest.param(lambda size: 3 * size, False, id="linear"),
        pytest.param(lambda size: size * size.bit_length() // 4, False, id="sorting"),
        pytest.param(lambda size: size * size // 100, True, id="quadratic"),
        pytest.param(lambda size: 3 * size + size * size // 300, True, id="quadratic in part"),
    ],
)
def test_a_function_that_grows_faster_than_its_input_is_found(module_of, cost, fails):
    guard = module_of("growth_guard")
    make, timer = counting(cost)
    growth = guard.measure_growth_of(guard.Growing("function", make), timer=timer)
    assert (growth > guard.TOLERATED) == fails


def test_a_load_spike_is_no_growth(module_of):
    guard = module_of("growth_guard")
    make, timer = counting(lambda size: 3 * size)
    spikes = iter([1, 1, 9, 1, 1, 1, 1, 1, 1])
    growth = guard.measure_growth_of(guard.Growing("function", make), timer=lambda call: timer(call) * next(spikes))
    assert growth < 1.1


def test_the_guard_of_growth_covers_every_protocol_history_and_sample(module_of, tmp_path):
    guard, histories = module_of("growth_guard"), module_of("growth_histories")
    functions = list(guard.make_functions(tmp_path))
    names = [function.name for function in functions]
    assert len(names) == len(set(names))
    for record in all_protocols():
        for kind in ("decode_request", "encode_request", "check"):
            assert f"{kind} {record.name}: steps" in names
        if any(sample.stream for sample in record.samples()):
            assert any(name.startswith(f"stream {record.name} ") for name in names)
    for name in histories.HISTORIES:
        assert f"prepare anthropic-messages: {name}" in names
    for function in functions:
        call = function.make(6)
        if call is not None:
            call()


def test_the_guard_of_growth_names_what_grows(module_of, monkeypatch, capsys):
    guard = module_of("growth_guard")
    monkeypatch.setattr(guard, "measure_growth_of", lambda function: 8.0 if function.name == "read_session" else 1.0)
    monkeypatch.setattr(guard, "_PAUSES", (0, 0))
    with pytest.raises(SystemExit, match=r"^1 of \d+ functions grow faster than their input$"):
        guard.main([])
    assert capsys.readouterr().err.startswith("read_session: ")


def test_a_function_that_grows_only_once_is_no_alarm(module_of, monkeypatch, capsys):
    guard = module_of("growth_guard")
    grown = iter([8.0])
    monkeypatch.setattr(
        guard, "measure_growth_of", lambda function: next(grown, 1.0) if function.name == "read_session" else 1.0
    )
    guard.main([])
    assert capsys.readouterr().err == ""


def test_planted_facts_look_like_any_other_word_and_are_planted_before_they_are_used(module_of):
    sessions = list(module_of("recall_sessions").make_sessions(2, 120))
    again = list(module_of("recall_sessions").make_sessions(2, 120))
    assert [session.context for session in sessions] == [session.context for session in again]
    for session in sessions:
        assert session.planted
        for at, facts in session.planted.items():
            before = str(session.context.messages[:at])
            assert all(fact in before and fact.isalpha() and fact.islower() for fact in facts)


def test_recall_of_a_window_that_holds_everything_is_whole_and_of_a_small_one_is_not(module_of):
    recall, sessions = module_of("recall"), module_of("recall_sessions")
    made = list(sessions.make_sessions(1, 40))
    found = {figure.what: figure.value for figure in recall.measure_recall(made, (4_000,))}
    assert found["4k: asked"] == found["4k: task"] == 100
    assert 0 < found["4k: verbatim"] < 100
    assert 0 < found["4k: names"] <= 100
    looked_up = {figure.what: figure.value for figure in recall.measure_recall(made, (4_000,), looks_up=True)}
    assert 0 < looked_up["4k with look-ups: look-ups"] <= found["4k: requests"], "one for each that was cut"
    for measure in ("names", "rare", "verbatim"):
        assert looked_up[f"4k with look-ups: {measure}"] >= found[f"4k: {measure}"]
    whole = {figure.what: figure.value for figure in recall.measure_recall(made, (10_000_000,))}
    assert whole == {"10000k: requests": 0}


def test_the_rows_of_the_pairs_have_the_sizes_that_they_name(module_of):
    rows = module_of("gateway_pairs").make_rows()
    sizes = {key: len(row.body) for key, row in rows.items()}
    assert all(35_000 < size < 41_000 for key, size in sizes.items() if key.startswith("translated")), sizes
    assert all(800 < size < 1_300 for key, size in sizes.items() if key.startswith("straight")), sizes
    assert {f"pairs.{key}" for key in rows} >= {key for key in module_of("goals").GOALS if key.startswith("pairs.")}


@pytest.mark.parametrize("key", ["straight.32", "translated.1"])
def test_the_requests_whose_instructions_are_counted_are_answered_between_two_marks(module_of, key, monkeypatch):
    counted = module_of("gateway_instructions")
    monkeypatch.setattr(counted, "_WARM", 32)
    monkeypatch.setattr(counted, "_REQUESTS", 64)
    sent: list[int] = []
    marks: list[int] = []
    answer = counted._answer

    async def counting(*given):
        sent.append(1)
        return await answer(*given)

    monkeypatch.setattr(counted, "_answer", counting)
    mark = lambda: marks.append(len(sent))  # noqa: E731
    counted.run_here(key, ("store", "key"), "http://127.0.0.1:1", mark, mark)
    assert marks == [32, 96]


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the scheduler's counts (no /proc)")
def test_the_scheduler_counts_a_process_and_those_that_it_started(module_of):
    pairs = module_of("gateway_pairs")
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE) as parent:
        try:
            while len(family := pairs.find_family(parent.pid)) < 2:
                pass
            assert family[0] == parent.pid
            assert pairs.spent_by(parent.pid) > 0
        finally:
            parent.communicate(b"\n")
    assert pairs.spent_by(parent.pid) == 0
