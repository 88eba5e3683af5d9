"""Property tests draw the same examples in every process, unless a seed asks for others."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import settings

from property_testing import scaled_examples

DRAW = """
import hashlib, importlib, sys
from hypothesis import core, given, settings
import property_testing
from segue import dump
from strategies import storable_contexts

profile, seed, *modules = sys.argv[1:]
settings.load_profile(profile)
property_testing.fix_constants()
core.global_force_seed = int(seed)
for module in modules:
    importlib.import_module(module)
drawn = hashlib.sha256()

@settings(max_examples=20)
@given(storable_contexts(max_messages=2))
def draw(context):
    drawn.update(dump(context))

draw()
print(drawn.hexdigest())
"""
LOADED = ("segue.cli.program", "segue.protocols.openai_responses.protocol", "segue.failures.classify")


def draw(profile: str, seed: int, *modules: str, hash_seed: int) -> str:
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": paths}
    command = [sys.executable, "-c", DRAW, profile, str(seed), *modules]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout


def test_the_same_examples_are_drawn_whatever_is_loaded_and_whatever_the_hash_seed():
    assert draw("default", 1, hash_seed=1) == draw("default", 2, *LOADED, hash_seed=2)


@pytest.mark.proof
def test_exploring_draws_what_its_seed_says_whatever_is_loaded_and_whatever_the_hash_seed():
    first = draw("explore", 1, hash_seed=1)
    assert draw("explore", 1, *LOADED, hash_seed=2) == first
    assert draw("explore", 2, hash_seed=1) != first


@pytest.mark.parametrize("profile", ["default", "quick", "proof", "explore"])
def test_no_profile_remembers_examples_or_judges_speed(profile: str):
    chosen = settings.get_profile(profile)
    assert chosen.database is None
    assert chosen.deadline is None


def test_a_factor_is_of_the_examples_of_the_profile():
    assert scaled_examples(3).max_examples == 3 * settings().max_examples
    assert scaled_examples(0).max_examples == 1
