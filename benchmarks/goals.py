"""The goals of the figures, by the key of the figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from figures import Figure, Goal

GOALS: Final[Mapping[str, Goal]] = {
    "import.langchain": Goal(must=1 / 5),
    "import.litellm": Goal(must=1 / 70),
    "import.memory": Goal(must=8.0),
    "stored.load": Goal(must=1.0, aim=0.8),
    "stored.dump": Goal(must=2.0, aim=1.5),
    "stored.load.linear": Goal(must=2.0, aim=1.3),
    "stored.dump.linear": Goal(must=2.0, aim=1.3),
    "projection.same-model": Goal(must=1.5, aim=1.0),
    "projection.cross-model": Goal(must=1.5, aim=1.0),
    "projection.same-model.linear": Goal(must=2.0, aim=1.3),
    "projection.cross-model.linear": Goal(must=2.0, aim=1.3),
    "projection.same-model.warm": Goal(must=100.0, aim=30.0),
    "projection.cross-model.warm": Goal(must=100.0, aim=30.0),
    "requests.same-model": Goal(must=3.6, aim=2.5),
    "requests.cross-model": Goal(must=4.6, aim=3.5),
    "requests.content.same-model": Goal(must=4.5, aim=3.0),
    "requests.content.cross-model": Goal(must=5.5, aim=4.0),
    "requests.pydantic-ai": Goal(must=1 / 2, aim=1 / 4),
    "requests.pydantic-ai.mean": Goal(must=1 / 2.5, aim=1 / 4),
    "requests.pydantic-ai.google-genai": Goal(must=1 / 2, aim=1 / 3),
    "requests.pydantic-ai.bedrock-converse": Goal(must=1 / 2, aim=1 / 3),
    "requests.litellm": Goal(must=1 / 3, aim=1 / 5),
    "requests.litellm.google-genai": Goal(must=1 / 2, aim=1 / 3),
    "requests.litellm.bedrock-converse": Goal(must=1 / 2, aim=1 / 3),
    "requests.litellm.mean": Goal(must=1 / 3.5, aim=1 / 5),
    "requests.llm-rosetta.mean": Goal(must=1 / 4.2, aim=1 / 8),
    "requests.decode": Goal(must=4.0, aim=2.5),
    "growth.prepare": Goal(must=2.0, aim=1.3),
    "warm.copy": Goal(must=3.0, aim=1.5),
    "warm.pydantic-ai": Goal(must=1 / 50),
    "bound.warm": Goal(must=1.08, aim=1.03),
    "bound.whole": Goal(must=1.3, aim=1.1),
    "windows.added": Goal(must=200.0, aim=80.0),
    "windows.count": Goal(must=150.0, aim=70.0),
    **{
        f"recall.{what}.{window}": Goal(must=100.0, at_least=True)
        for what in ("asked", "task")
        for window in ("16k", "32k")
    },
    "streams.mixed": Goal(must=5.0, aim=3.0),
    "streams.argument": Goal(must=5.0, aim=3.0),
    "streams.growth": Goal(must=1.2),
    "relays.same": Goal(must=6.0, aim=4.0),
    "relays.other": Goal(must=6.0, aim=4.0),
    "relays.event": Goal(must=12.0, aim=6.0),
    "relays.growth": Goal(must=1.2, aim=1.05),
    "client.overhead": Goal(must=1.6, aim=1.25),
    "client.sdks": Goal(must=1 / 2.5),
    "gateway.request.1": Goal(must=1.5, aim=1.0),
    "gateway.request.32": Goal(must=1.2, aim=0.8),
    "gateway.event": Goal(must=0.6, aim=0.4),
    "gateway.first": Goal(must=1.4, aim=1.1),
    **{f"gateway.kept.{at_once}": Goal(must=1.15, aim=1.05) for at_once in (1, 32)},
    "pairs.translated.32": Goal(must=1.5, aim=1.0),
    "pairs.translated.1": Goal(must=2.0, aim=1.2),
    "pairs.straight.32": Goal(must=0.7, aim=0.4),
    "pairs.straight.1": Goal(must=1.2, aim=0.7),
    "pairs.translated.events.32": Goal(must=0.9, aim=0.6),
    "pairs.straight.events.32": Goal(must=0.5, aim=0.25),
    "convert.rate": Goal(must=30_000, aim=50_000, at_least=True),
    "convert.jobs": Goal(must=1.5, aim=1.8, at_least=True),
    "corpus.texts": Goal(must=1.2, aim=1.08),
    "corpus.structs": Goal(must=1.35, aim=1.1),
    "corpus.agent": Goal(must=50, aim=75, at_least=True),
    "corpus.chat": Goal(must=11, aim=25, at_least=True),
    "corpus.batch": Goal(must=45, aim=65, at_least=True),
    "corpus.turn": Goal(must=150.0, aim=80.0),
    "corpus.merge": Goal(must=10_000.0, aim=3_000.0),
    "corpus.memory": Goal(must=80.0, aim=55.0),
    "corpus.ray.cpu": Goal(must=1.25, aim=1.05),
    "corpus.ray.worker": Goal(must=120.0, aim=60.0),
}
"""What every figure that has a goal must not exceed (or must reach), and what it aims at. Quadratic work would show as
10 in the growth from 1,000 to 10,000 messages; caches and the garbage collector alone bring some of it to 1.3."""


def check_goals(group: str, figures: Sequence[Figure]) -> None:
    """Check that every goal of a group has a figure: a goal with a wrong key would never fail."""
    unused = {key for key in GOALS if key.startswith(f"{group}.")} - {figure.key for figure in figures}
    if unused:
        raise AssertionError(f"these goals have no figure; correct their keys in goals.py: {sorted(unused)}")
