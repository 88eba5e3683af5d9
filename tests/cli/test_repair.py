"""`segue repair`: in place, as a copy, or not at all."""

from __future__ import annotations

import json
from pathlib import Path

from cli.running import run
from histories.test_repairs import plant


def test_the_command_repairs_in_place_as_a_copy_or_not_at_all(home):
    path = (
        home / ".pi/agent/sessions/--home-user-p--/2026-11-18T10-00-00-000Z_11111111-1111-4111-8111-111111111111.jsonl"
    )
    path.parent.mkdir(parents=True)
    planted = plant("pi", "call")
    path.write_bytes(planted)
    dry = run("repair", path, "--dry-run")
    assert dry.status == 0
    assert "result_missing" in dry.err
    assert path.read_bytes() == planted
    made = run("repair", path, "-o", home / "copy.jsonl")
    assert made.out == f"{home / 'copy.jsonl'}\n"
    copied = run("repair", "pi:last", "--copy")
    assert copied.status == 0, copied.err
    assert path.read_bytes() == planted
    Path(copied.out.strip()).unlink()
    done = run("repair", path)
    assert done.status == 0
    assert path.with_name(f"{path.name}.before-repair").read_bytes() == planted
    assert path.read_bytes() == (home / "copy.jsonl").read_bytes()
    clean = run("repair", path)
    assert clean.status == 1
    assert "Nothing to repair" in clean.err
    assert run("repair", path, "--copy", "-o", home / "x").status == 2
    listed = json.loads(run("sessions", "--json").out)
    assert len(listed) == 1  # a backup is not a session
