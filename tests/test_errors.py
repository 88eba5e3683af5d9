"""Errors: their messages, their attributes, and that they can be pickled."""

from __future__ import annotations

import pickle

import pytest

from segue.errors import (
    DecodeError,
    DumpError,
    EmptyConversation,
    EncodeError,
    LoadError,
    NewerFormat,
    ProjectionRefused,
    SettingsError,
    UnknownModel,
    UnknownProtocol,
    render_path,
)
from segue.projection.report import Change, ChangeCode, Loss, Report

REPORT = Report((Change(code=ChangeCode.TURN_EMPTY, path=("messages", 0), loss=Loss.NONE),))
ERRORS = {
    "a place in a document": LoadError("not that", path=("messages", 3, "content", 0)),
    "a line of a file": LoadError("not that", path=("content",), line=7),
    "a newer format": NewerFormat("too new"),
    "a value that cannot be stored": DumpError("NaN", path=("extra",)),
    "an invalid body": DecodeError("no list", path=("messages",)),
    "unsupported content": EncodeError("no audio", path=("messages", 1)),
    "an unknown model": UnknownModel("no such model", name="x", suggestions=("y", "z")),
    "an unknown protocol": UnknownProtocol("no such protocol", name="x"),
    "an unknown rule": SettingsError("no such rule", key="toolz", suggestions=("tools",)),
    "an empty conversation": EmptyConversation("nothing"),
    "a refused projection": ProjectionRefused("no", report=REPORT),
}


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS.keys())
def test_an_error_can_be_pickled(error):
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert back.__dict__ == error.__dict__


def test_the_message_of_an_error_begins_with_its_path():
    assert str(ERRORS["a place in a document"]) == "messages[3].content[0]: not that"
    assert str(ERRORS["a line of a file"]) == "line 7: content: not that"
    assert render_path(()) == ""
