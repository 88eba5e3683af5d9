"""The registry of formats.

To add a format to segue, add one folder and one line of `_FOLDERS`. A package adds a format with an entry point of the
group `segue.formats`, a program with `register_format`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Final, cast, final
from warnings import warn

from segue._entry_points import find_entry_points
from segue.errors import SettingsError, UnknownFormat
from segue.histories.kit.format import Format

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_FOLDERS: Final[Mapping[str, str]] = {
    "claude-code": "segue.histories.claude_code",
    "codex": "segue.histories.codex",
    "gemini-cli": "segue.histories.gemini_cli",
    "opencode": "segue.histories.opencode",
    "pi": "segue.histories.pi",
    "cline": "segue.histories.cline",
    "roo-code": "segue.histories.roo_code",
    "continue": "segue.histories.continue_",
    "aider": "segue.histories.aider",
    "goose": "segue.histories.goose",
    "llm": "segue.histories.llm",
    "chatgpt": "segue.histories.chatgpt",
    "claude-ai": "segue.histories.claude_ai",
    "open-webui": "segue.histories.open_webui",
    "langchain": "segue.histories.langchain",
    "pydantic-ai": "segue.histories.pydantic_ai",
    "openai-agents": "segue.histories.openai_agents",
    "litellm": "segue.histories.litellm",
    "hf-messages": "segue.histories.hf_messages",
    "sharegpt": "segue.histories.sharegpt",
    "google-adk": "segue.histories.google_adk",
    "strands": "segue.histories.strands",
    "inspect-ai": "segue.histories.inspect_ai",
    "vercel-ui": "segue.histories.vercel_ui",
    "llama-index": "segue.histories.llama_index",
    "ag-ui": "segue.histories.ag_ui",
    "haystack": "segue.histories.haystack",
    "agent-framework": "segue.histories.agent_framework",
    "autogen": "segue.histories.autogen",
    "ag2": "segue.histories.ag2",
    "mcp-sampling": "segue.histories.mcp_sampling",
    "opentelemetry": "segue.histories.opentelemetry",
    "atif": "segue.histories.atif",
}
"""Segue's own formats, in the order of tables and tests; each folder is imported when its record is first needed."""

_WITHOUT_SESSIONS: Final = frozenset(
    {"aider", "chatgpt", "claude-ai", "open-webui", "langchain", "pydantic-ai", "openai-agents", "litellm",
     "hf-messages", "sharegpt", "google-adk", "inspect-ai", "vercel-ui", "llama-index", "ag-ui", "haystack",
     "agent-framework", "autogen", "ag2", "mcp-sampling", "opentelemetry", "atif"}
)  # fmt: skip
"""Formats that have no place on a machine where sessions are: a list of sessions does not load them."""

ENTRY_POINTS: Final = "segue.formats"
"""The group of entry points under which installed packages name formats: `name = "package.module:RECORD"`."""

_records: Final[dict[str, Format]] = {}
"""The records that were registered or imported so far: the only state of this module. Records are never removed."""


def register_format(record: Format) -> None:
    """Register a format under its name. Registering an equal record again changes nothing.

    Raises:
        SettingsError: another format has this name already, or the value is no record of a format.
    """
    if not isinstance(record, Format):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SettingsError(
            f"register_format() takes a segue.Format, not a value of type {type(record).__name__}; "
            "pass the record itself, not its module",
            key="format",
        )
    known = get_format(record.name) if record.name in _FOLDERS else _records.get(record.name)
    if known is not None and known != record:
        owner = "segue itself" if record.name in _FOLDERS else f"another record, {known.title!r}"
        raise SettingsError(
            f"register_format(): the name {record.name!r} is taken by {owner}; choose another `name` for this record",
            key=record.name,
        )
    _records[record.name] = record


def _entry_points() -> Mapping[str, EntryPoint]:
    return {point.name: point for point in find_entry_points(ENTRY_POINTS) if point.name not in _FOLDERS}


def _load_entry_point(point: EntryPoint) -> Format:
    package = point.dist.name if point.dist is not None else point.value
    place = f"the package {package!r} declares the format {point.name!r} as {point.value!r}"
    try:
        record = cast("object", point.load())
    except Exception as error:  # whatever another package raises while it is imported
        raise UnknownFormat(
            f"{place}, which cannot be imported: {type(error).__name__}: {error}; upgrade or uninstall {package!r}",
            name=point.name,
        ) from error
    if not isinstance(record, Format) or record.name != point.name:
        found = f"a format called {record.name!r}" if isinstance(record, Format) else f"a {type(record).__name__}"
        raise UnknownFormat(
            f"{place}, which is {found}; it has to be a segue.Format with name={point.name!r}: correct the entry "
            f"point of {package!r}",
            name=point.name,
        )
    register_format(record)
    return record


def format_names() -> tuple[str, ...]:
    """List all formats by name: segue's own, registered ones, those of installed packages. Loads none of them."""
    return tuple(dict.fromkeys((*_FOLDERS, *_records, *sorted(_entry_points()))))


def find_format(name: str) -> Format | None:
    """Find a format by name; None if there is none.

    Raises:
        UnknownFormat: an installed package declares the name and cannot be loaded; names the package.
    """
    if (record := _records.get(name)) is not None:
        return record
    if (folder := _FOLDERS.get(name)) is not None:
        record = _records[name] = cast("Format", import_module(f"{folder}.format").FORMAT)
        return record
    point = _entry_points().get(name)
    return None if point is None else _load_entry_point(point)


def get_format(name: str) -> Format:
    """Get a format by name. Its folder, or the package that declares it, is imported on first use.

    Raises:
        UnknownFormat: no format has this name (the error suggests similar names), or it cannot be loaded.
    """
    record = find_format(name)
    if record is None:
        names = format_names()
        near = get_close_matches(name, names, n=3, cutoff=0.5)
        known = f"did you mean {' or '.join(near)}?" if near else f"known formats: {', '.join(names)}"
        raise UnknownFormat(f"no format is called {name!r}: {known}", name=name, suggestions=near)
    return record


def each_format(leave_out: Collection[str] = ()) -> Iterator[Format]:
    """Give every format in the order of `format_names`; each is loaded when it is asked for.

    A format of a package that cannot be loaded causes a warning and is left out.
    """
    for name in format_names():
        if name in leave_out:
            continue
        try:
            yield get_format(name)
        except UnknownFormat as error:
            warn(f"{error}", RuntimeWarning, stacklevel=2)


def formats_with_sessions() -> list[Format]:
    """Load the formats that have a place on a machine where sessions are, in the order of `format_names`."""
    return [record for record in each_format(leave_out=_WITHOUT_SESSIONS) if record.place is not None]


def all_formats() -> list[Format]:
    """Load every format, in the order of `format_names`."""
    return list(each_format())


@final
class _Formats(Mapping[str, Format]):
    """Every format by name. Iterating over names loads nothing; getting a value loads its folder or package."""

    def __getitem__(self, name: str) -> Format:
        record = find_format(name)
        if record is None:
            raise KeyError(name)
        return record

    def __iter__(self) -> Iterator[str]:
        return iter(format_names())

    def __len__(self) -> int:
        return len(format_names())

    def __contains__(self, name: object) -> bool:
        return name in _records or name in _FOLDERS or name in _entry_points()


FORMATS: Final[Mapping[str, Format]] = _Formats()
"""All formats by name, in the order of tables and tests."""
