"""Update `src/segue/models/catalogue.json` from two third-party packages.

    python scripts/update_catalogue.py                            downloads the newest version of both
    python scripts/update_catalogue.py --pi DIR --litellm WHEEL   reads local copies
    python scripts/update_catalogue.py --older WHEEL              also models that an earlier litellm listed

The two sources:
- npm `@earendil-works/pi-ai`: the models of each provider and their APIs, prices, context windows, thinking levels, and
  `compat` flags for differences between providers. It decides which models of a relay are in the catalogue.
- PyPI `litellm`, its price table: retirement dates, input limits, PDF / audio / video, parameters a model refuses; and
  models of the providers in `ROW_PROVIDERS` that pi does not list: older and dated ids, and those of other providers.

`ADDED` in `catalogue_tables.py` has models that neither source lists yet.

If one of them cannot be downloaded or read, its part comes from the existing catalogue, with the version and date of
that source; the script prints the reason. Without both, it changes nothing and exits with 1.

`catalogue_tables.py` has the meaning of the flags. A version of pi with a flag that it does not list is not used: add
the flag to one of the tables. Values that pi derives at run time from the name or URL of a provider, or from a model
id, are not taken over: they are maintained by hand in `segue.models.providers` and in the families of each protocol.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias, TypeVar

import msgspec
from catalogue_tables import (
    ADDED,
    ADDED_UP,
    CHAT_ONLY,
    DEPENDING,
    FIRST_PARTY,
    LEFT_OUT,
    LEVELS,
    MEANINGS,
    NOT_LISTED,
    PASSED_ON,
    PROTOCOLS,
    RELAYS,
    RETIRED,
    ROW_FLAGS,
    ROW_PREFIXES,
    ROW_PROVIDERS,
    Flagged,
    Overrides,
)
from msgspec.structs import replace

from segue.models.catalogue import Catalogue
from segue.models.dialect import Dialect
from segue.models.model import Modality, Model, Price, PriceTier
from segue.models.model_ids import OPENAI_WITHOUT_REASONING, first_party_providers, is_claude
from segue.models.rules import Rules

TARGET: Final = Path(__file__).parent.parent / "src" / "segue" / "models" / "catalogue.json"
PI_PACKAGE: Final = "@earendil-works/pi-ai"
LITELLM_TABLE: Final = "litellm/model_prices_and_context_window_backup.json"


class UnknownData(Exception):
    """A source has a flag or value that `catalogue_tables.py` does not list."""


# -- formats of the sources -------------------------------------------------------------------------------------------


class PiTier(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """Rates of a request longer than the threshold."""

    input_tokens_above: int
    input: float
    output: float
    cache_read: float
    cache_write: float


class PiCost(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """US dollars for a million tokens."""

    input: float
    output: float
    cache_read: float
    cache_write: float
    tiers: tuple[PiTier, ...] = ()


class PiImages(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """`resize` is the image size of pi's own client; segue has no rule for `max_per_message`."""

    max_per_request: int = 0
    max_per_message: int = 0
    resize: object = None


class PiInputLimits(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """The limits of a request."""

    images: PiImages = msgspec.field(default_factory=PiImages)
    max_request_bytes: int = 0


class PiModel(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """One chat model of pi. The fields after `input_limits` are not used."""

    id: str
    name: str
    api: str
    provider: str
    base_url: str
    reasoning: bool
    input: tuple[Modality, ...]
    cost: PiCost
    context_window: int
    max_tokens: int
    type: Literal["chat"]
    compat: dict[str, object] = {}
    thinking_level_map: dict[str, str | None] = {}
    input_limits: PiInputLimits = msgspec.field(default_factory=PiInputLimits)
    prompt_cache: object = None
    headers: object = None
    sampling_params: object = None
    sampling_params_by_thinking_level: object = None
    free: object = None

    @property
    def protocol(self) -> str:
        """Segue's name of its API."""
        return PROTOCOLS[self.api]


Row: TypeAlias = Mapping[str, object]
"""One row of litellm's table; of some 200 keys, few are used."""

NO_ROW: Final[Row] = {}

AnyModel: TypeAlias = PiModel | Model
_Read = TypeVar("_Read")

_REGION: Final = re.compile(r"^[a-z-]+\.(?=[a-z0-9]+\.)")
_RELAY_VARIANT: Final = re.compile(r"(?::\w+|-batch|-fast)$")


def find_row(model: AnyModel, rows: Mapping[str, Row]) -> Row | None:
    """Find the row of a model at its provider; on Bedrock, that of another region is used if needed."""
    ids = [model.id]
    if model.protocol == "bedrock-converse":
        plain = _REGION.sub("", model.id)
        ids += [plain, f"us.{plain}", f"global.{plain}"]
    keys = (prefix + model_id for model_id in ids for prefix in ROW_PREFIXES.get(model.provider, ()))
    return next((rows[key] for key in keys if key in rows), None)


def find_first_party_row(model: AnyModel, rows: Mapping[str, Row]) -> Row | None:
    """Find the first-party row of a model that a relay serves under its own id."""
    if model.provider not in RELAYS:
        return None
    name = _RELAY_VARIANT.sub("", model.id.lower().rsplit("/", 1)[-1])
    if is_claude(name):
        name = name.replace(".", "-")
    keys = (FIRST_PARTY[provider] + name for provider in first_party_providers(name) if provider in FIRST_PARTY)
    return next((rows[key] for key in keys if key in rows), None)


# -- overrides --------------------------------------------------------------------------------------------------------


def compat_overrides(model: PiModel) -> Iterator[Overrides]:
    """Convert pi's flags.

    Raises:
        UnknownData: the tables do not list a flag or its value.
    """
    flagged = Flagged(id=model.id, provider=model.provider, protocol=model.protocol, compat=model.compat)
    for flag, value in sorted(model.compat.items()):
        if not any(flag in table for table in (PASSED_ON, MEANINGS, DEPENDING, LEFT_OUT)):
            raise UnknownData(
                f"{model.provider}/{model.id}: unknown flag {flag!r} (value {value!r}); add it to catalogue_tables.py"
            )
        if flag in PASSED_ON:
            yield Overrides(dialect={PASSED_ON[flag]: value})
        if flag in MEANINGS and MEANINGS[flag][0] == value:
            yield MEANINGS[flag][1]
        if flag in DEPENDING:
            try:
                yield DEPENDING[flag](flagged)
            except KeyError as error:
                raise UnknownData(
                    f"{model.provider}/{model.id}: unknown value {value!r} of {flag}; add it to catalogue_tables.py"
                ) from error
    if model.input_limits.images.max_per_request:
        yield Overrides(rules={"max_images": model.input_limits.images.max_per_request})


def row_overrides(protocol: str, row: Row, *, relayed: bool) -> Iterator[Overrides]:
    """Convert litellm's flags; for a relay, only those about the model itself."""
    for flag in ROW_FLAGS:
        if protocol in flag.protocols and row.get(flag.key) is flag.expected and (flag.relayed or not relayed):
            yield flag.overrides


def fold(overrides: Iterable[Overrides]) -> Overrides:
    """Merge overrides in order: a later field replaces an earlier one or adds to it. Sorted, for readable diffs."""
    rules: dict[str, object] = {}
    dialect: dict[str, object] = {}
    for override in overrides:
        dialect.update(override.dialect)
        for field, value in override.rules.items():
            before = msgspec.convert(rules.get(field, []), list[str]) if field in ADDED_UP else []
            rules[field] = sorted({*before, *msgspec.convert(value, list[str])}) if isinstance(value, list) else value
    return Overrides(rules=dict(sorted(rules.items())), dialect=dict(sorted(dialect.items())))


# -- one model --------------------------------------------------------------------------------------------------------

ROW_MODALITIES: Final[Mapping[Modality, tuple[str, str]]] = {
    "document": ("supports_pdf_input", "pdf"),
    "audio": ("supports_audio_input", "audio"),
    "video": ("supports_video_input", "video"),
}
"""Modality -> litellm's flag, and its value in `supported_modalities`."""


READ_WITH_IMAGES: Final[Mapping[str, Modality]] = {"mistral": "document"}
"""Providers whose models with image input also accept this, even if the sources do not list it.

Mistral accepts PDF in the chat for models with image input. (Mistral documentation: document QnA; TanStack/ai #912,
tried with the service on 2026-07-07; read 2026-11-15)
"""


READ_BY_ID: Final[Mapping[str, Modality]] = {r"amazon\.nova-(?:lite|pro|premier)-": "video"}
"""Patterns of ids whose models also accept this, even if the sources do not list it.

Nova Lite, Pro and Premier accept video. (AWS documentation: Nova understanding models; read 2026-11-15)
"""


def read_modalities(model: PiModel, *rows: Row) -> tuple[Modality, ...]:
    """Return text and images from pi, the others from litellm, and those of `READ_WITH_IMAGES` and `READ_BY_ID`."""
    more = row_modalities(*rows)
    more.extend(kind for pattern, kind in READ_BY_ID.items() if kind not in more and re.search(pattern, model.id))
    known = READ_WITH_IMAGES.get(model.provider)
    if known is not None and "image" in model.input and known not in more:
        more.insert(0, known)
    return (*model.input, *more)


def row_modalities(*rows: Row) -> list[Modality]:
    """Return the modalities that litellm's rows list."""
    listed = {value for row in rows for value in msgspec.convert(row.get("supported_modalities") or [], list[str])}
    return [
        name
        for name, (flag, value) in ROW_MODALITIES.items()
        if value in listed or any(row.get(flag) is True for row in rows)
    ]


def read_max_input(model: AnyModel, row: Row) -> int:
    """Return the input limit of a divided context window: litellm's two limits add up to the window.

    Other differences between the sources are old or rounded numbers (128,000 and 131,072).
    """
    limit, rest = row.get("max_input_tokens"), row.get("max_output_tokens")
    if isinstance(limit, int | float) and isinstance(rest, int | float) and limit + rest == model.context_window:
        return int(limit)
    return 0


def read_long_write(model: AnyModel, row: Row) -> float | None:
    """Return the price of cache writes for an hour: litellm's if its base price agrees, otherwise by the rule.

    Claude charges twice the input. (Anthropic documentation: prompt caching, pricing, 2026-11-15)
    """
    rate, base = row.get("cache_creation_input_token_cost_above_1hr"), row.get("input_cost_per_token")
    if isinstance(rate, float) and isinstance(base, float) and round(base * 1e6, 6) == round(model.cost.input, 6):
        return round(rate * 1e6, 6)
    return round(2 * model.cost.input, 6) if is_claude(model.id) and model.cost.cache_write > 0 else None


def read_price(model: PiModel, row: Row) -> Price:
    """Return pi's prices, and litellm's for long cache writes."""
    return Price(
        input=model.cost.input,
        output=model.cost.output,
        cache_read=model.cost.cache_read,
        cache_write=model.cost.cache_write,
        cache_write_long=read_long_write(model, row),
        tiers=tuple(
            PriceTier(
                input_above=tier.input_tokens_above,
                input=tier.input,
                output=tier.output,
                cache_read=tier.cache_read,
                cache_write=tier.cache_write,
            )
            for tier in model.cost.tiers
        ),
    )


def is_router(model: PiModel) -> bool:
    """Whether different models may answer requests to this id.

    All ids in OpenRouter's own namespace are routers, and others are named "... Router". An alias for the newest
    version (`~anthropic/claude-opus-latest`, `gemini-flash-latest`) is one model at a time, and a router of deployments
    (Fireworks' `routers/`) serves one model: neither counts.
    """
    own = model.provider == "openrouter" and (model.id == "auto" or model.id.startswith("openrouter/"))
    return own or re.search(r"\bRouter\b", model.name) is not None


def build_model(model: PiModel, rows: Mapping[str, Row]) -> Model:
    """Merge both sources for one model.

    The first-party row also applies to a relayed model, except for its price and retirement date.
    """
    row = find_row(model, rows) or NO_ROW
    first_party = find_first_party_row(model, rows) or NO_ROW
    overrides = fold(
        (
            *compat_overrides(model),
            *row_overrides(model.protocol, first_party, relayed=True),
            *row_overrides(model.protocol, row, relayed=False),
        )
    )
    msgspec.convert(overrides.rules, Rules)
    msgspec.convert(overrides.dialect, Dialect)
    levels = dict(model.thinking_level_map)
    if row.get("thinking_always_on") is True:
        levels.setdefault("off", None)
    retired = row.get("deprecation_date")
    return Model(
        id=model.id,
        provider=model.provider,
        protocol=model.protocol,
        name=model.name,
        base_url=model.base_url or None,
        reasoning=model.reasoning,
        input=read_modalities(model, row, first_party),
        context_window=model.context_window,
        max_tokens=model.max_tokens,
        max_input=read_max_input(model, row) or read_max_input(model, first_party),
        cost=read_price(model, row),
        router=is_router(model),
        thinking_levels=levels,
        deprecated=retired if isinstance(retired, str) else None,
        rules=overrides.rules,
        dialect=overrides.dialect,
    )


def build_models(models: Iterable[PiModel], rows: Mapping[str, Row]) -> list[Model]:
    """Merge both sources for all models, sorted by provider and id."""
    listed = [correct_levels(build_model(model, rows)) for model in models]
    return sort_models(map(correct_date, add_models([*listed, *row_models(rows, listed)])))


def sort_models(models: Iterable[Model]) -> list[Model]:
    """Sort models by provider and id."""
    return sorted(models, key=lambda model: (model.provider, model.id))


def correct_levels(model: Model) -> Model:
    """Replace the values of thinking levels that `LEVELS` lists."""
    for pattern, levels in LEVELS.items():
        if re.search(pattern, model.full_name()):
            return replace(model, thinking_levels={**model.thinking_levels, **levels})
    return model


def correct_date(model: Model) -> Model:
    """Add the day on which a model is shut down, if `RETIRED` lists it."""
    day = next((day for day, ids in RETIRED.items() if model.provider == "openai" and model.id in ids.split()), None)
    return model if day is None else replace(model, deprecated=day)


def add_models(models: list[Model]) -> list[Model]:
    """Add the models that no source lists, each like the one that its row names."""
    named = {model.full_name(): model for model in models}
    for row in ADDED:
        base = named.get(row.like)
        if base is None or row.name in named:
            continue  # a source lists it by now: the row can go
        model = replace(base, id=row.name.partition("/")[2], name=row.title)
        if row.price is None:
            models.append(replace(model, cost=Price()))
            continue
        prices = dict(zip(("input", "output", "cache_read", "cache_write", "cache_write_long"), row.price, strict=True))
        models.append(replace(model, cost=replace(base.cost, tiers=(), **prices)))
    return models


# -- models that only litellm lists -----------------------------------------------------------------------------------


def row_models(rows: Mapping[str, Row], listed: Iterable[Model]) -> Iterator[Model]:
    """Give the models of `ROW_PROVIDERS` that are not listed."""
    known = {model.full_name().lower() for model in listed}
    for key, row in rows.items():
        host = ROW_PROVIDERS.get(str(row.get("litellm_provider")))
        model_id = key.removeprefix(host.prefix) if host is not None else key
        # Ids of Together are those of the makers, with a slash; elsewhere a slash is a region or an option.
        if host is None or re.search(
            NOT_LISTED, model_id if host.provider != "together" else model_id.partition("/")[2]
        ):
            continue
        name = f"{host.provider}/{model_id}".lower()
        has_window = _number(row, "max_input_tokens") or _number(row, "max_tokens")
        if (
            name in known
            or not has_window
            or (_number(row, "input_cost_per_token") is None and not row.get("tiered_pricing"))
        ):
            continue
        known.add(name)
        yield correct_levels(row_model(model_id, host.provider, host.protocol, row))


def row_model(model_id: str, provider: str, protocol: str, row: Row) -> Model:
    """Make a model of litellm's row alone."""
    endpoints = row.get("supported_endpoints")
    if protocol == "openai-responses" and (
        re.search(CHAT_ONLY, model_id)
        or (isinstance(endpoints, list) and "/v1/responses" not in msgspec.convert(endpoints, list[str]))
    ):
        protocol = "openai-chat"
    retired = row.get("deprecation_date")
    window = int(_number(row, "max_input_tokens") or _number(row, "max_tokens") or 0)
    output = int(_number(row, "max_output_tokens") or _number(row, "max_tokens") or window)
    overrides = fold(row_overrides(protocol, row, relayed=False))
    images: tuple[Modality, ...] = ("text", "image") if row.get("supports_vision") is True else ("text",)
    return Model(
        id=model_id,
        provider=provider,
        protocol=protocol,
        reasoning=row.get("supports_reasoning") is True and not re.search(OPENAI_WITHOUT_REASONING, model_id),
        input=(*images, *row_modalities(row)),
        context_window=window,
        max_tokens=output,
        cost=row_price(row),
        thinking_levels={"off": None} if row.get("thinking_always_on") is True else {},
        deprecated=retired if isinstance(retired, str) else None,
        rules=overrides.rules,
        dialect=overrides.dialect,
    )


_RATES: Final[Mapping[str, str]] = {
    "input": "input_cost_per_token",
    "output": "output_cost_per_token",
    "cache_read": "cache_read_input_token_cost",
    "cache_write": "cache_creation_input_token_cost",
}


def row_price(row: Row) -> Price:
    """Read the prices of litellm's row, with the tiers for long requests in either of its forms."""
    steps = msgspec.convert(row.get("tiered_pricing") or [], list[dict[str, object]])
    tiers = [(_start(step), {field: step.get(key) for field, key in _RATES.items()}) for step in steps]
    first = tiers.pop(0)[1] if tiers else {field: row.get(key) for field, key in _RATES.items()}
    for key in row:
        if found := re.fullmatch(r"input_cost_per_token_above_(\d+)k_tokens", key):
            ending = key.removeprefix("input_cost_per_token")
            tiers.append((int(found[1]) * 1000, {field: row.get(name + ending) for field, name in _RATES.items()}))
    long_write = _number(row, "cache_creation_input_token_cost_above_1hr")
    return Price(
        **_rates(first),
        cache_write_long=round(long_write * 1e6, 6) if long_write else None,
        tiers=tuple(PriceTier(input_above=above, **_rates(rates)) for above, rates in tiers if above),
    )


def _start(step: Mapping[str, object]) -> int:
    limits = msgspec.convert(step.get("range") or [0], list[float])
    return int(limits[0])


def _rates(given: Mapping[str, object]) -> dict[str, float]:
    return {field: round(value * 1e6, 6) if isinstance(value, int | float) else 0.0 for field, value in given.items()}


def _number(row: Row, key: str) -> float | None:
    value = row.get(key)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


# -- one source missing ----------------------------------------------------------------------------------------------

ROW_RULES: Final = frozenset(field for flag in ROW_FLAGS for field in flag.overrides.rules)
ROW_DIALECT: Final = frozenset(field for flag in ROW_FLAGS for field in flag.overrides.dialect)
"""Fields of rules and dialect that litellm's flags can set."""


def update_by_rows(model: Model, rows: Mapping[str, Row]) -> Model:
    """Update an existing entry from litellm alone: for use without pi."""
    row = find_row(model, rows) or NO_ROW
    first_party = find_first_party_row(model, rows) or NO_ROW
    overrides = fold(
        (
            Overrides(rules=model.rules, dialect=model.dialect),
            *row_overrides(model.protocol, first_party, relayed=True),
            *row_overrides(model.protocol, row, relayed=False),
        )
    )
    retired = row.get("deprecation_date")
    more = [modality for modality in row_modalities(row, first_party) if modality not in model.input]
    return replace(
        model,
        input=(*model.input, *more),
        max_input=read_max_input(model, row) or read_max_input(model, first_party) or model.max_input,
        cost=replace(model.cost, cache_write_long=read_long_write(model, row) or model.cost.cache_write_long),
        deprecated=retired if isinstance(retired, str) else model.deprecated,
        rules=overrides.rules,
        dialect=overrides.dialect,
    )


def keep_row_data(model: Model, existing: Model | None) -> Model:
    """Add the data of litellm that an existing entry has to a new entry from pi alone: for use without litellm."""
    if existing is None:
        return model
    rules = {field: value for field, value in existing.rules.items() if field in ROW_RULES}
    dialect = {field: value for field, value in existing.dialect.items() if field in ROW_DIALECT}
    kept = fold((Overrides(rules=rules, dialect=dialect), Overrides(rules=model.rules, dialect=model.dialect)))
    more = [modality for modality in existing.input if modality in ROW_MODALITIES and modality not in model.input]
    levels = dict(model.thinking_levels)
    if existing.thinking_levels.get("off", "") is None:
        levels.setdefault("off", None)
    return replace(
        model,
        input=(*model.input, *more),
        max_input=existing.max_input,
        cost=replace(model.cost, cache_write_long=model.cost.cache_write_long or existing.cost.cache_write_long),
        thinking_levels=levels,
        deprecated=existing.deprecated,
        rules=kept.rules,
        dialect=kept.dialect,
    )


def merge_sources(pi: Sequence[PiModel] | None, rows: Mapping[str, Row] | None, existing: Catalogue) -> list[Model]:
    """Build the models of the catalogue from the sources that could be read, and from the existing catalogue."""
    if pi is None:
        return [correct_date(update_by_rows(model, rows or {})) for model in existing.models]
    models = build_models(pi, rows or {})
    if rows is not None:
        return models
    named = {model.full_name(): model for model in existing.models}
    return [correct_date(keep_row_data(model, named.get(model.full_name()))) for model in models]


# -- reading and writing ----------------------------------------------------------------------------------------------


def read_pi(package: Path) -> tuple[str, list[PiModel], Counter[str]]:
    """Return the version, the chat models of supported APIs, and the number of models of each unsupported API."""
    version = msgspec.json.decode((package / "package.json").read_bytes(), type=dict[str, object])["version"]
    models: list[PiModel] = []
    unsupported: Counter[str] = Counter()
    for path in sorted((package / "dist" / "providers" / "data").glob("[!.]*.json")):
        for api, entries in msgspec.json.decode(path.read_bytes(), type=dict[str, dict[str, object]]).items():
            chats = [entry for key, entry in entries.items() if key.startswith("chat:")]
            if api in PROTOCOLS:
                models += msgspec.convert(chats, list[PiModel])
            elif chats:
                unsupported[api] += len(chats)
    if not models:
        raise UnknownData(f"{package} lists no chat models; its format has changed")
    build_models(models, {})  # raises for an unknown flag, before anything is written
    return str(version), models, unsupported


def read_litellm(wheel: Path) -> tuple[str, dict[str, Row]]:
    """Return the version, which is part of the file name, and the rows of chat models."""
    with zipfile.ZipFile(wheel) as archive:
        table = msgspec.json.decode(archive.read(LITELLM_TABLE), type=dict[str, dict[str, object]])
    rows: dict[str, Row] = {key: row for key, row in table.items() if row.get("mode") in ("chat", "responses")}
    if not rows:
        raise UnknownData(f"{wheel.name}: {LITELLM_TABLE} lists no chat models; its format has changed")
    return wheel.name.split("-")[1], rows


def fetch_pi(folder: Path) -> Path:
    """Download and unpack the npm package."""
    # Without `@latest` npm has been seen to return an old version.
    command = ["npm", "pack", f"{PI_PACKAGE}@latest", "--silent"]
    name = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.split()[-1]
    with tarfile.open(folder / name) as archive:
        archive.extractall(folder, filter="data")
    return folder / "package"


def fetch_litellm(folder: Path) -> Path:
    """Download the wheel."""
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "litellm"], cwd=folder, check=True)
    return next(folder.glob("litellm-*.whl"))


def render_model(model: Model) -> str:
    """Write one model, without empty fields and prices of 0, and 3 instead of 3.0."""

    def rate(value: object) -> object:
        return int(value) if isinstance(value, float) and value.is_integer() else value

    def rates(cost: Mapping[str, object]) -> dict[str, object]:
        return {key: rate(value) for key, value in cost.items() if value}

    fields: dict[str, object] = {
        key: value for key, value in msgspec.to_builtins(model).items() if value and key != "cost"
    }
    cost = rates(msgspec.to_builtins(model.cost))
    if model.cost.tiers:
        cost["tiers"] = [rates(msgspec.to_builtins(tier)) for tier in model.cost.tiers]
    return json.dumps(fields | ({"cost": cost} if cost else {}), ensure_ascii=False, separators=(",", ":"))


def render(sources: list[dict[str, str]], models: Iterable[Model]) -> str:
    """Write one line for each model, so that versions of the file have a readable diff."""
    lines = ",\n".join(map(render_model, models))
    return f'{{"sources": {json.dumps(sources)},\n"models": [\n{lines}\n]}}\n'


def main(arguments: Sequence[str] | None = None) -> int:
    """Read or download the sources, write the catalogue, and print what was done."""
    parser = argparse.ArgumentParser(description="Update the model catalogue.")
    parser.add_argument("--pi", type=Path, help=f"an unpacked {PI_PACKAGE} (default: download the newest)")
    parser.add_argument("--litellm", type=Path, help="a litellm wheel (default: download the newest)")
    parser.add_argument("--older", type=Path, action="append", default=[], help="an earlier wheel, for retired models")
    parser.add_argument("--date", default=dt.datetime.now(tz=dt.UTC).date().isoformat(), help="the date of the sources")
    parser.add_argument("--existing", type=Path, default=TARGET, help="the catalogue to update")
    parser.add_argument("--output", type=Path, default=TARGET, help="the file to write")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        pi = read_or_explain(PI_PACKAGE, lambda: read_pi(given.pi or fetch_pi(Path(folder))))
        litellm = read_or_explain("litellm", lambda: read_litellm(given.litellm or fetch_litellm(Path(folder))))
    if litellm is not None:
        older: list[Path] = given.older
        for wheel in older:  # the newest first: a row of a later version counts
            litellm = (litellm[0], {**read_litellm(wheel)[1], **litellm[1]})
    if pi is None and litellm is None:
        print(f"neither source could be read: {given.output} is unchanged")
        return 1
    needs_existing = pi is None or litellm is None
    existing = Catalogue.read(given.existing) if needs_existing and given.existing.exists() else Catalogue(models=())
    if needs_existing:
        print(f"the missing data comes from {given.existing}: {len(existing.models)} models of {existing.date}")
    if pi is None and not existing.models:
        print(f"without {PI_PACKAGE} and without an existing catalogue there are no models: nothing was written")
        return 1
    known = {source.name: source for source in existing.sources}
    versions = {PI_PACKAGE: pi and pi[0], "litellm": litellm and litellm[0]}
    sources = [
        {"name": name, "version": version, "read": given.date}
        if version
        else {"name": name, "version": known[name].version, "read": known[name].read}
        for name, version in versions.items()
        if version or name in known
    ]
    models = merge_sources(pi and pi[1], litellm and litellm[1], existing)
    given.output.write_text(render(sources, models), encoding="utf-8")
    print(f"{len(models)} models of {len({model.provider for model in models})} providers -> {given.output}")
    if litellm is not None:
        rows = litellm[1]
        own = sum(1 for model in models if find_row(model, rows))
        relayed = sum(1 for model in models if not find_row(model, rows) and find_first_party_row(model, rows))
        rest = len(models) - own - relayed
        print(f"litellm: {own} with the provider's row, {relayed} with the first-party row, {rest} without a row")
    if pi is not None:
        print(f"not included, unsupported APIs: {dict(pi[2])}")
        print(f"not used, flags: {dict(Counter(flag for model in pi[1] for flag in model.compat if flag in LEFT_OUT))}")
    return 0


def read_or_explain(name: str, read: Callable[[], _Read]) -> _Read | None:
    """Read a source; if it is missing or has another format, print the reason and return None."""
    try:
        return read()
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"{name}: cannot be downloaded or opened: {error}")
    except (
        UnknownData,
        msgspec.MsgspecError,
        LookupError,
        StopIteration,
        zipfile.BadZipFile,
        tarfile.TarError,
    ) as error:
        print(f"{name}: its format has changed: {error!r}")
    return None


if __name__ == "__main__":
    sys.exit(main())
