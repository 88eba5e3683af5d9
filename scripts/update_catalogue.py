"""Write `src/segue/models/catalogue.json` anew, from what others keep up to date.

    python scripts/update_catalogue.py                            fetches both sources, newest versions
    python scripts/update_catalogue.py --pi DIR --litellm WHEEL   reads what is already here

Two sources, each for what it knows best:
- npm `@earendil-works/pi-ai`: which models each provider serves over which API, prices, windows, thinking levels, and
  `compat` flags for how a provider speaks. It decides what is in the catalogue.
- PyPI `litellm`, its price table: retirement dates, input limits, PDF / audio / video, parameters a model refuses.

What the flags mean stands in `catalogue_tables.py`. A flag of pi that it does not list stops this script: someone has
to say whether it changes what may be sent, how it is spelt, or neither. What pi derives at run time from a provider's
name or address, or from a model's id, is not repeated: that is kept by hand, in `segue.models.providers` and in the
families of each protocol.
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
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec
from catalogue_tables import (
    ADDED_UP,
    DEPENDING,
    FIRST_PARTY,
    LEFT_OUT,
    MEANINGS,
    PASSED_ON,
    PROTOCOLS,
    RELAYS,
    ROW_FLAGS,
    ROW_PREFIXES,
    Flagged,
    Overrides,
)

from segue.models.dialect import Dialect
from segue.models.model import Modality, Model, Price, PriceTier
from segue.models.model_ids import first_party_providers, is_claude
from segue.models.rules import Rules

TARGET: Final = Path(__file__).parent.parent / "src" / "segue" / "models" / "catalogue.json"
PI_PACKAGE: Final = "@earendil-works/pi-ai"
LITELLM_TABLE: Final = "litellm/model_prices_and_context_window_backup.json"


class UnknownData(Exception):
    """A source says something that the tables have no row for."""


# -- what the sources look like ---------------------------------------------------------------------------------------


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
    """`resize` is what pi's own client shrinks pictures to; for `max_per_message` there is no rule of ours."""

    max_per_request: int = 0
    max_per_message: int = 0
    resize: object = None


class PiInputLimits(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """How much a request may hold."""

    images: PiImages = msgspec.field(default_factory=PiImages)
    max_request_bytes: int = 0


class PiModel(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """One chat model of pi. The fields after `input_limits` are known and not taken."""

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
        """Our name of its API."""
        return PROTOCOLS[self.api]


Row: TypeAlias = Mapping[str, object]
"""One row of litellm's table: open, some 200 keys, read by name."""

NO_ROW: Final[Row] = {}

_REGION: Final = re.compile(r"^[a-z-]+\.(?=[a-z0-9]+\.)")
_RELAY_VARIANT: Final = re.compile(r"(?::\w+|-batch|-fast)$")


def find_row(model: PiModel, rows: Mapping[str, Row]) -> Row | None:
    """Give the provider's own row; on Bedrock that of another region will do."""
    ids = [model.id]
    if model.protocol == "bedrock-converse":
        plain = _REGION.sub("", model.id)
        ids += [plain, f"us.{plain}", f"global.{plain}"]
    keys = (prefix + spelling for spelling in ids for prefix in ROW_PREFIXES.get(model.provider, ()))
    return next((rows[key] for key in keys if key in rows), None)


def find_first_party_row(model: PiModel, rows: Mapping[str, Row]) -> Row | None:
    """Give the maker's row of a model that a relay serves under a spelling of its own."""
    if model.provider not in RELAYS:
        return None
    name = _RELAY_VARIANT.sub("", model.id.lower().rsplit("/", 1)[-1])
    if is_claude(name):
        name = name.replace(".", "-")
    keys = (FIRST_PARTY[provider] + name for provider in first_party_providers(name) if provider in FIRST_PARTY)
    return next((rows[key] for key in keys if key in rows), None)


# -- overrides --------------------------------------------------------------------------------------------------------


def compat_overrides(model: PiModel) -> Iterator[Overrides]:
    """Read pi's flags.

    Raises:
        UnknownData: for a flag, or a value of one, that the tables do not have.
    """
    flagged = Flagged(id=model.id, provider=model.provider, protocol=model.protocol, compat=model.compat)
    for flag, value in sorted(model.compat.items()):
        if not any(flag in table for table in (PASSED_ON, MEANINGS, DEPENDING, LEFT_OUT)):
            raise UnknownData(f"{model.provider}/{model.id}: no table knows the flag {flag!r} (here {value!r})")
        if flag in PASSED_ON:
            yield Overrides(dialect={PASSED_ON[flag]: value})
        if flag in MEANINGS and MEANINGS[flag][0] == value:
            yield MEANINGS[flag][1]
        if flag in DEPENDING:
            try:
                yield DEPENDING[flag](flagged)
            except KeyError as error:
                raise UnknownData(f"{model.provider}/{model.id}: no word of ours for {flag} = {value!r}") from error
    if model.input_limits.images.max_per_request:
        yield Overrides(rules={"max_images": model.input_limits.images.max_per_request})


def row_overrides(protocol: str, row: Row, *, relayed: bool) -> Iterator[Overrides]:
    """Read litellm's flags; behind a relay only those about the model itself."""
    for flag in ROW_FLAGS:
        if protocol in flag.protocols and row.get(flag.key) is flag.expected and (flag.relayed or not relayed):
            yield flag.overrides


def fold(overrides: Iterable[Overrides]) -> Overrides:
    """Fold in order: a later field replaces an earlier one or adds to it. Sorted, so that files can be compared."""
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
"""Modality -> litellm's flag, and its word in `supported_modalities`."""


READ_WITH_IMAGES: Final[Mapping[str, Modality]] = {"mistral": "document"}
"""Providers whose models that see also read this, whatever the sources say.

Mistral reads PDF in the chat for its models that see. (Mistral documentation: document QnA; TanStack/ai #912, tried
with the service on 2026-07-07; read 2026-11-15)
"""


def read_modalities(model: PiModel, *rows: Row) -> tuple[Modality, ...]:
    """Text and images as pi says, the others as litellm says, and what a provider reads for all that see."""
    words = {word for row in rows for word in msgspec.convert(row.get("supported_modalities") or [], list[str])}
    more: list[Modality] = [
        name
        for name, (flag, word) in ROW_MODALITIES.items()
        if word in words or any(row.get(flag) is True for row in rows)
    ]
    known = READ_WITH_IMAGES.get(model.provider)
    if known is not None and "image" in model.input and known not in more:
        more.insert(0, known)
    return (*model.input, *more)


def read_max_input(model: PiModel, row: Row) -> int:
    """Give the limit of the input where the window is divided: litellm's two limits add up to pi's window.

    Other differences between the sources are old or rounded numbers (128,000 beside 131,072).
    """
    limit, rest = row.get("max_input_tokens"), row.get("max_output_tokens")
    if isinstance(limit, int | float) and isinstance(rest, int | float) and limit + rest == model.context_window:
        return int(limit)
    return 0


def read_long_write(model: PiModel, row: Row) -> float | None:
    """Give the rate of cache writes that are kept for an hour: litellm's, if its base rate agrees, else the rule.

    Claude charges twice the input. (Anthropic documentation: prompt caching, pricing, 2026-11-15)
    """
    rate, base = row.get("cache_creation_input_token_cost_above_1hr"), row.get("input_cost_per_token")
    if isinstance(rate, float) and isinstance(base, float) and round(base * 1e6, 6) == round(model.cost.input, 6):
        return round(rate * 1e6, 6)
    return round(2 * model.cost.input, 6) if is_claude(model.id) and model.cost.cache_write > 0 else None


def read_price(model: PiModel, row: Row) -> Price:
    """Take pi's rates, and litellm's for long cache writes."""
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
    """Say whether several models may answer to this id at the same time.

    OpenRouter's own namespace holds nothing but such ids, and others are called "... Router". An alias that moves on
    to the newest version (`~anthropic/claude-opus-latest`, `gemini-flash-latest`) has one writer at a time, and a
    router of deployments (Fireworks' `routers/`) serves one model: neither counts.
    """
    own = model.provider == "openrouter" and (model.id == "auto" or model.id.startswith("openrouter/"))
    return own or re.search(r"\bRouter\b", model.name) is not None


def build_model(model: PiModel, rows: Mapping[str, Row]) -> Model:
    """Join what both sources say about one model.

    The maker's row speaks for a relayed model too, but not of its price and its retirement.
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
    """Join all of them, in the order of the catalogue: by provider, then by id."""
    return sorted((build_model(model, rows) for model in models), key=lambda model: (model.provider, model.id))


# -- reading and writing ----------------------------------------------------------------------------------------------


def read_pi(package: Path) -> tuple[str, list[PiModel], Counter[str]]:
    """Give the version, the chat models of the APIs we speak, and how many of which other API were left out."""
    version = msgspec.json.decode((package / "package.json").read_bytes(), type=dict[str, object])["version"]
    models: list[PiModel] = []
    unspoken: Counter[str] = Counter()
    for path in sorted((package / "dist" / "providers" / "data").glob("[!.]*.json")):
        for api, entries in msgspec.json.decode(path.read_bytes(), type=dict[str, dict[str, object]]).items():
            chats = [entry for key, entry in entries.items() if key.startswith("chat:")]
            if api in PROTOCOLS:
                models += msgspec.convert(chats, list[PiModel])
            elif chats:
                unspoken[api] += len(chats)
    return str(version), models, unspoken


def read_litellm(wheel: Path) -> tuple[str, dict[str, Row]]:
    """Give the version, which stands in the file's name, and the rows of models that one can talk to."""
    with zipfile.ZipFile(wheel) as archive:
        table = msgspec.json.decode(archive.read(LITELLM_TABLE), type=dict[str, dict[str, object]])
    rows: dict[str, Row] = {key: row for key, row in table.items() if row.get("mode") in ("chat", "responses")}
    return wheel.name.split("-")[1], rows


def fetch_pi(folder: Path) -> Path:
    """Fetch and unpack the npm package."""
    # Without `@latest` npm has been seen to hand out an old version.
    command = ["npm", "pack", f"{PI_PACKAGE}@latest", "--silent"]
    name = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.split()[-1]
    with tarfile.open(folder / name) as archive:
        archive.extractall(folder, filter="data")
    return folder / "package"


def fetch_litellm(folder: Path) -> Path:
    """Fetch the wheel."""
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "litellm"], cwd=folder, check=True)
    return next(folder.glob("litellm-*.whl"))


def render_model(model: Model) -> str:
    """Write what is known of a model: no empty field, no rate of 0, and 3 rather than 3.0."""

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
    """Write one line a model, so that a new version of the file can be read as a difference."""
    lines = ",\n".join(map(render_model, models))
    return f'{{"sources": {json.dumps(sources)},\n"models": [\n{lines}\n]}}\n'


def main() -> None:
    """Read or fetch, join, write, and say what was found."""
    parser = argparse.ArgumentParser(description="Write the model catalogue anew.")
    parser.add_argument("--pi", type=Path, help=f"an unpacked {PI_PACKAGE} (default: fetch the newest)")
    parser.add_argument("--litellm", type=Path, help="a litellm wheel (default: fetch the newest)")
    parser.add_argument("--date", default=dt.datetime.now(tz=dt.UTC).date().isoformat(), help="when they were read")
    parser.add_argument("--output", type=Path, default=TARGET)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pi_version, pi_models, unspoken = read_pi(given.pi or fetch_pi(Path(folder)))
        litellm_version, rows = read_litellm(given.litellm or fetch_litellm(Path(folder)))
    sources = [
        {"name": PI_PACKAGE, "version": pi_version, "read": given.date},
        {"name": "litellm", "version": litellm_version, "read": given.date},
    ]
    models = build_models(pi_models, rows)
    given.output.write_text(render(sources, models), encoding="utf-8")
    own = sum(1 for model in pi_models if find_row(model, rows))
    relayed = sum(1 for model in pi_models if not find_row(model, rows) and find_first_party_row(model, rows))
    left_out = Counter(flag for model in pi_models for flag in model.compat if flag in LEFT_OUT)
    print(f"{len(models)} models of {len({model.provider for model in models})} providers -> {given.output}")
    print(f"litellm: {own} by the provider's own row, {relayed} by the maker's row, {len(models) - own - relayed} none")
    print(f"left out, other APIs: {dict(unspoken)}")
    print(f"left out, flags: {dict(left_out)}")


if __name__ == "__main__":
    main()
