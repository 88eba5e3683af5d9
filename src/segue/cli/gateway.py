"""`segue gateway`: manages a gateway, also while it runs."""

from __future__ import annotations

import click

from segue.cli.gateway_keys import keys
from segue.cli.gateway_store import backup, doctor, erase, gc, reload, restore


@click.group("gateway")
def command() -> None:
    """Manage a gateway. `segue serve` runs it."""


for _each in (keys, doctor, reload, backup, restore, gc, erase):
    command.add_command(_each)
