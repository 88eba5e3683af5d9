"""Counts in messages to people: "1 message", "2 messages"."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str = "") -> str:
    """Write a number with the singular or the plural of a noun; the plural ends in "s" if none is given."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
