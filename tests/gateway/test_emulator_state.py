"""The emulator checks what Claude thinking is bound to, and each of its tests notices a fault in that check."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gateway import claude_scenarios as cases
from gateway.claude_scenarios import SCENARIOS
from segue.testing.emulator import binding
from segue.testing.emulator.binding import Issued


def _named(scenario: Callable[[], None]) -> str:
    return scenario.__name__


@pytest.mark.parametrize("scenario", SCENARIOS, ids=_named)
def test_thinking_comes_back(scenario: Callable[[], None]) -> None:
    scenario()


def _accepts_put_back(issued: Issued, last: str | None) -> bool:
    """Notice a gap, but no block that stands where none stood."""
    return last is not None and issued.before is not None and last != issued.before


def _never(*_: object) -> bool:
    return False


FAULTS: tuple[tuple[str, str, Callable[..., bool], tuple[Callable[[], None], ...]], ...] = (
    (
        "the system prompt is ignored",
        "differs_in_system",
        _never,
        (
            cases.another_system_prompt_is_refused,
            cases.another_system_prompt_inside_a_tool_loop_is_refused,
            cases.the_header_leaves_its_sentence_out,
            cases.counting_tokens_refuses_too,
            cases.some_models_refuse_on_every_account,
            cases.a_reader_with_the_check_checks_what_others_made,
        ),
    ),
    ("the tools are ignored", "differs_in_tools", _never, (cases.a_changed_tool_is_refused,)),
    (
        "the messages are ignored",
        "differs_in_messages",
        _never,
        (
            cases.an_edited_message_is_refused_behind_it,
            cases.an_edited_reply_is_refused_behind_it,
            cases.a_changed_tool_result_is_refused,
            cases.the_server_drops_if_asked,
            cases.a_fork_keeps_what_is_before_it,
        ),
    ),
    (
        "the chain is ignored",
        "is_chain_broken",
        _never,
        (cases.thinking_gone_from_the_middle_is_refused, cases.thinking_put_back_is_refused_where_it_was_gone),
    ),
    (
        "a dropped block that is put back is accepted",
        "is_chain_broken",
        _accepts_put_back,
        (cases.thinking_put_back_is_refused_where_it_was_gone,),
    ),
    (
        "the account is ignored",
        "is_foreign",
        _never,
        (cases.another_account_is_dropped_where_the_model_says_so, cases.account_comes_before_model_and_prefix),
    ),
    ("no model has the check", "binds", _never, (cases.models_below_the_floor_do_not_check,)),
    ("old accounts are enforced", "enforces", lambda *_, **__: True, (cases.old_accounts_let_it_through,)),
    ("every model reads all thinking", "reads", lambda *_: True, (cases.readers_drop_what_they_cannot_read,)),
)


@pytest.mark.parametrize(
    ("name", "fault", "scenario"),
    [
        pytest.param(name, fault, scenario, id=f"{title}: {scenario.__name__}")
        for title, name, fault, noticed in FAULTS
        for scenario in noticed
    ],
)
def test_a_fault_in_the_check_is_noticed(
    name: str, fault: Callable[..., bool], scenario: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binding, name, fault)
    with pytest.raises(AssertionError):
        scenario()
