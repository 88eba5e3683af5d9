"""`segue models --update`: models out of lists that other packages ship, as a catalogue of the user's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import segue
from cli.running import run

PRICES: dict[str, Any] = {
    "sample_spec": {"litellm_provider": "one of the list", "mode": "one of the list"},
    "gpt-4o": {"litellm_provider": "openai", "mode": "chat", "max_input_tokens": 128000},
    "gemini/gemini-99-flash": {
        "litellm_provider": "gemini",
        "mode": "chat",
        "max_input_tokens": 500_000,
        "max_output_tokens": 8192,
        "input_cost_per_token": 0.0000005,
        "output_cost_per_token": 0.000002,
        "supports_vision": True,
        "supports_reasoning": True,
    },
    "openai/tts-9": {"litellm_provider": "openai", "mode": "audio_speech"},
    "nobody/x": {"litellm_provider": "nobody", "mode": "chat"},
}
PI = {
    "kimi-k99": {
        "id": "kimi-k99",
        "name": "Kimi K99",
        "api": "openai-completions",
        "provider": "moonshotai",
        "reasoning": True,
        "input": ["text"],
        "cost": {"input": 1, "output": 4, "cacheRead": 0, "cacheWrite": 0},
        "contextWindow": 200_000,
        "maxTokens": 32_000,
    },
    "odd": {"id": "odd", "api": "no-such-api", "provider": "moonshotai"},
}


def packages(folder: Path) -> Path:
    """A folder as pip and npm leave it."""
    table = folder / "litellm" / "model_prices_and_context_window_backup.json"
    data = folder / "node_modules" / "@earendil-works" / "pi-ai" / "dist" / "providers" / "data" / "moonshotai.json"
    types = folder / "openai" / "types" / "shared" / "chat_model.py"
    for file, text in (
        (table, json.dumps(PRICES)),
        (data, json.dumps({"openai-completions": PI})),
        (types, 'ChatModel: TypeAlias = Literal["gpt-4o", "gpt-99-mini"]\n__all__ = ["ChatModel"]\n'),
    ):
        file.parent.mkdir(parents=True)
        file.write_text(text)
    return folder


def test_models_of_installed_packages_become_a_catalogue(tmp_path):
    output = tmp_path / "mine.json"
    ran = run("models", "--update", packages(tmp_path / "installed"), "-o", output, "--json")
    assert ran.status == 0, ran.err
    found = {f"{row['provider']}/{row['id']}": row for row in json.loads(ran.out)}
    assert set(found) == {"google/gemini-99-flash", "moonshotai/kimi-k99", "openai/gpt-99-mini"}
    flash = segue.load_catalogue(output).get("google/gemini-99-flash")
    assert (flash.context_window, flash.max_tokens, flash.reasoning, flash.input) == (
        500_000,
        8192,
        True,
        ("text", "image"),
    )
    assert (flash.cost.input, flash.cost.output) == (0.5, 2.0)
    again = run("models", "kimi-k99", "--catalogue", output)
    assert "moonshotai/kimi-k99" in again.out


def test_what_a_list_lacks_is_a_flag_and_removes_nothing(tmp_path):
    output = tmp_path / "mine.json"
    run("models", "--update", packages(tmp_path / "installed"), "-o", output)
    model = segue.load_catalogue(output).get("moonshotai/kimi-k99")
    picture = segue.ImageContent(data="iVBORw0KGgo=", mime_type="image/png")
    request = segue.prepare(segue.Context(messages=(segue.UserMessage.of("What is it?", picture),)), model)
    assert "image_url" in str(request.body)


def test_one_file_is_enough_and_other_files_are_refused(tmp_path):
    folder = packages(tmp_path / "installed")
    ran = run("models", "--update", folder / "litellm" / "model_prices_and_context_window_backup.json")
    assert "google/gemini-99-flash" in ran.out
    (tmp_path / "empty").mkdir()
    ran = run("models", "--update", tmp_path / "empty")
    assert ran.status == 2
    assert "no list of models; pass litellm's" in ran.err
    assert run("models", "-o", tmp_path / "x.json").status == 2
