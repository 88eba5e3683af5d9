"""Random bodies: any JSON is checked, read and written back unchanged, or refused with an error that names the place.

A folder of this package has the strategies of its protocol in `any_body.py`: bodies, replies, frames of a stream, and
the endpoints they are sent to.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from property_testing import scaled_examples
from protocols.any_bodies import (
    assert_checked,
    assert_reply_comes_back,
    assert_request_comes_back,
    assert_stream_ends_once,
)
from segue.protocols.registry import PROTOCOLS, get_protocol

HERE = Path(__file__).parent
FOLDERS = {name: package.rpartition(".")[2] for name, package in PROTOCOLS.folders.items()}
NAMES = [name for name, folder in FOLDERS.items() if (HERE / folder / "any_body.py").exists()]


def _draw(name: str, data: st.DataObject, kind: str) -> tuple[Any, Any]:
    """Draw a body of a kind, and the endpoint that it is sent to."""
    given = import_module(f"protocols.{FOLDERS[name]}.any_body")
    strategy = st.lists(given.FRAME, max_size=6) if kind == "FRAME" else getattr(given, kind)
    return data.draw(strategy), data.draw(st.sampled_from(given.ENDPOINTS))


@scaled_examples(4)
@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_any_body_is_checked(name, data):
    assert_checked(get_protocol(name), *_draw(name, data, "BODY"))


@scaled_examples(7)
@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_any_body_that_can_be_read_comes_out_as_it_was(name, data):
    assert_request_comes_back(get_protocol(name), *_draw(name, data, "BODY"))


@scaled_examples(5)
@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_any_reply_that_can_be_read_comes_out_as_it_was(name, data):
    assert_reply_comes_back(get_protocol(name), *_draw(name, data, "REPLY"))


@scaled_examples(4)
@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_any_stream_ends_once(name, data):
    assert_stream_ends_once(get_protocol(name), *_draw(name, data, "FRAME"))


def test_a_content_where_a_step_belongs_comes_out_as_it_was():
    from protocols.google_interactions.endpoints import NEWER

    assert_reply_comes_back(get_protocol("google-interactions"), {"steps": [{"type": "text"}]}, NEWER)


def test_a_broken_call_whose_arguments_are_a_number_comes_out_as_it_was():
    from protocols.openai_responses.bodies import endpoint

    body = {"output": [{"type": "function_call", "arguments": 0}]}
    assert_reply_comes_back(get_protocol("openai-responses"), body, endpoint())


def test_all_strategies_are_run():
    assert len(NAMES) == len(list(HERE.glob("*/any_body.py"))) > 0
