"""`segue sessions`: lists the sessions of agents on this machine, or in a file or folder."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, final

import click
import msgspec
from msgspec.structs import replace

from segue.cli.inputs import ACP, FORMAT_NAMES
from segue.cli.printable import echo_styled
from segue.cli.progress import show_searching
from segue.cli.session_rows import pick_session, session_lines
from segue.conversation.context import Context, Prompt
from segue.conversation.messages import AssistantMessage, Message
from segue.errors import SegueError
from segue.foundation.json_text import encode_valid_json
from segue.foundation.plurals import counted
from segue.foundation.redaction import Redactor
from segue.foundation.safe_text import in_one_line, printable
from segue.histories.api import find_sessions, list_source, read_history
from segue.histories.kit.envelope import is_own_text
from segue.histories.kit.history import Session
from segue.histories.opening import describe_folders, find_listed, parse_session_name
from segue.histories.places import Watched, current_projects, may_contain
from segue.histories.redacting import redact
from segue.models.catalogue import get_model
from segue.requests.tokens import measure

_AROUND: Final = 40
"""How many characters are shown before what was found."""
_SHOWN: Final = 300
_LOOKING: Final = 1.0
"""Seconds between two looks at a file that is followed."""


@click.command("sessions")
@click.argument("source", required=False)
@click.option(
    "--agent", "agents", metavar="AGENT", type=FORMAT_NAMES, multiple=True, help="Only this agent; can be repeated."
)
@click.option("--cwd", metavar="DIR", help="Only sessions of this project; `.` is the current folder.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N sessions.")
@click.option("--grep", metavar="TEXT", help="Only sessions with this in a message; case makes no difference.")
@click.option(
    "--count", is_flag=True, help="Read whole files, to count the messages, tokens and cost of long sessions."
)
@click.option("--pick", is_flag=True, help="Pick one in the terminal; its name is printed to standard output.")
@click.option(
    "--follow",
    is_flag=True,
    help="Wait for what is added to the first of them, print it, and how long the next request is. Ctrl-C ends it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(
    ctx: click.Context,
    *,
    source: str | None,
    agents: tuple[str, ...],
    cwd: str | None,
    limit: int | None,
    grep: str | None,
    count: bool,
    pick: bool,
    follow: bool,
    as_json: bool,
) -> None:
    """List the sessions of agents on this machine; or those in SOURCE, a file, folder, database, or `acp:AGENT`.

    Those of the current project come first, then the newest. `segue show ID` prints one, `segue handover ID --to AGENT`
    continues it in another agent; the beginning of the ID is enough, and `last` is the newest. Of long files only the
    beginning and the end are read; --count and --grep read them whole. With --follow, SOURCE can also be AGENT:ID.
    """
    folder = None if cwd is None else os.path.abspath(os.path.expanduser(cwd))  # noqa: PTH100, PTH111 - as agents do
    if source is None:
        found = in_order(find_sessions(formats=agents or None, cwd=folder))
    elif follow and (name := parse_session_name(source)) is not None:
        found = [find_listed(name)]
    else:
        listed = _listed(source, agents, folder)
        found = [
            session
            for session in listed
            if (not agents or session.format in agents) and (folder is None or session.cwd == folder)
        ]
    texts: list[str] = []
    total = len(found)
    if grep is not None:
        with show_searching(total) as searched:
            matching = best_first(search_sessions(found, grep, searched), limit)
        found, texts = [match.session for match in matching], [match.text for match in matching]
    found = found[:limit]
    if follow and found:
        _follow(found[0], as_json=as_json)
        return
    if count:
        found = [_counted(session) for session in found]
    if as_json:
        click.echo(msgspec.json.format(encode_valid_json([_json(session) for session in found]), indent=2))
    elif not found:
        is_all = source is None and not agents and folder is None and grep is None
        where = f" in {describe_folders()}" if is_all else ""
        click.echo(f"no sessions found{where}", err=True)
    elif pick:
        chosen = pick_one(found)
        if chosen is None:
            ctx.exit(1)
        click.echo(f"{chosen.format}:{chosen.id}")
    else:
        _show(found, texts, total)


def _follow(session: Session, *, as_json: bool) -> None:
    """Print what is added to a session, until the user ends it."""
    click.echo(f"following {session.format}:{session.id} {printable(session.title or '')}", err=True)
    with suppress(KeyboardInterrupt):
        for added in follow_session(session, lambda: time.sleep(_LOOKING)):
            for piece in added.pieces:
                click.echo(encode_valid_json(piece).decode() if as_json else _in_a_line(piece))
            click.echo(added.length, err=True)


@final
class Added(NamedTuple):
    """What was added to a session, as texts with the role of their message, and how long its next request is."""

    pieces: Sequence[Mapping[str, str]]
    length: str


def follow_session(session: Session, wait: Callable[[], object]) -> Iterator[Added]:
    """Yield what is added to a session whenever its file has changed; `wait` is called before each look.

    A file that cannot be read is one that is being written, and is read the next time.
    """
    watched = Watched(session.path)
    shown = _pieces(read_history(session).context.messages)
    while True:
        wait()
        if not watched.has_changed():
            continue
        try:
            context = read_history(session).context
        except SegueError:
            continue
        now = _pieces(context.messages)
        same = next((at for at, (old, new) in enumerate(zip(shown, now, strict=False)) if old != new), None)
        same = min(len(shown), len(now)) if same is None else same
        undone = [{"role": "program", "text": f"{counted(len(shown) - same, 'earlier piece')} undone or compacted"}]
        if now != shown:
            yield Added([*(undone if same < len(shown) else ()), *now[same:]], _length(context))
        shown = now


def _pieces(messages: Sequence[Message]) -> list[dict[str, str]]:
    """Return the pieces of messages as texts; a reply that is being written grows by pieces."""
    found: list[dict[str, str]] = []
    for message in messages:
        role = "result" if message.role == "toolResult" else message.role
        for piece in message.content:
            match piece.kind:
                case "text":
                    found.append({"role": role, "text": piece.text})
                case "thinking":
                    found.append({"role": role, "thinking": piece.thinking})
                case "toolCall":
                    arguments = piece.arguments_text or encode_valid_json(piece.arguments).decode()
                    found.append({"role": role, "call": f"{piece.name}({arguments})"})
                case _:
                    found.append({"role": role, "other": piece.kind})
    return found


def _in_a_line(piece: Mapping[str, str]) -> str:
    (kind, text), role = next((key, value) for key, value in piece.items() if key != "role"), piece["role"]
    line = in_one_line(" ".join(text.split()))
    return f"{role:9} {'' if kind == 'text' else f'[{kind}] '}{line[:_SHOWN]}{'…' if len(line) > _SHOWN else ''}"


def _length(context: Context) -> str:
    """Describe the next request to the model that answered last."""
    last = next((each for each in reversed(context.messages) if each.role == "assistant" and each.model), None)
    count = counted(len(context.messages), "message")
    if not isinstance(last, AssistantMessage):
        return count
    try:
        model = get_model(f"{last.provider}/{last.model}")
    except SegueError:
        return count
    return f"{count}; next request to {model.full_name()}: {measure(Prompt(context=context), model).describe()}"


def _listed(source: str, agents: Sequence[str], folder: str | None) -> list[Session]:
    if source.startswith(ACP):
        from segue.cli.acp_client import list_sessions, parse_name

        name = parse_name(source)
        assert name is not None, "it has the prefix"
        return list_sessions(name.agent, folder)
    return list_source(source, format=agents[0] if len(agents) == 1 else None)


def in_order(sessions: Iterator[Session]) -> list[Session]:
    """Put the sessions of the current project first, then the newest."""
    here = current_projects()
    below = tuple(f"{each}{os.sep}" for each in here[-1:])
    return sorted(
        sessions, key=lambda session: not (session.cwd and (session.cwd in here or session.cwd.startswith(below)))
    )


def pick_one(sessions: Sequence[Session]) -> Session | None:
    """Let the user pick a session.

    Raises:
        UsageError: this is not a terminal.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError("a session can be picked in a terminal only; name one, as `segue sessions` lists them")
    return pick_session(sessions, _columns(sys.stderr.fileno()))


def _columns(handle: int) -> int:
    try:
        return int(os.environ.get("COLUMNS") or 0) or os.get_terminal_size(handle).columns
    except (OSError, ValueError):
        return 80


def _show(sessions: Sequence[Session], found: Sequence[str], total: int) -> None:
    heading, *lines = session_lines(sessions, _columns(1) if sys.stdout.isatty() else None, found)
    echo_styled(heading, bold=True)
    click.echo("\n".join(lines))
    of_all = f"{len(sessions):,} of {counted(total, 'session')}"
    click.echo(counted(total, "session") if len(sessions) == total else of_all, err=True)


@final
class Match(NamedTuple):
    """A session with a text, what is around it, and where it was found: 0 is best, see `_RANKS`."""

    session: Session
    text: str
    rank: int


def search_sessions(
    sessions: Sequence[Session],
    text: str,
    searched: Callable[[int], None] = lambda _: None,
    *,
    redactor: Redactor | None = None,
) -> Iterator[Match]:
    """Find the sessions with a text in a message, and what is around it; `searched` is told how many were looked at.

    Words of the person and of the model come before those of tools, and these before what the agent added by itself.
    A file without the words is not read as a conversation, which takes most of the time. With a redactor, only what it
    leaves is searched.
    """
    words = [word.encode() for word in re.findall(r"[0-9a-z]+", text.lower())]
    spaced = r"\s+".join(map(re.escape, text.split()))
    wanted = re.compile(spaced, re.IGNORECASE)
    has_words: dict[str, bool] = {}
    for count, session in enumerate(sessions):
        searched(count)
        if session.path not in has_words:
            has_words[session.path] = may_contain(session.path, words)
        if not has_words[session.path]:
            continue
        try:
            messages = read_history(session, view="full").context.messages
        except SegueError:
            continue
        messages = messages if redactor is None else redact(messages, redactor)
        for rank, names in enumerate(_RANKS):
            around = next((found for each in messages if (found := _around(wanted, each, rank, names))), None)
            if around is not None:
                yield Match(session, around, rank)
                break


def best_first(matches: Iterator[Match], limit: int | None) -> list[Match]:
    """Sort matches by where they were found, else in their order; the search ends with enough of the best ones."""
    found: list[Match] = []
    best = 0
    for match in matches:
        found.append(match)
        best += match.rank == 0
        if limit is not None and best >= limit:
            break
    return sorted(found, key=lambda match: match.rank)[:limit]


_RANKS: Final = (("text", "thinking"), ("text", "arguments"), ("text", "thinking", "arguments"))
"""Fields that are searched: of words of the person and the model, of tools, and of what the agent added by itself."""


def _rank_of(message: Message, kind: str) -> int:
    if is_own_text(message) or message.role == "system":
        return 2
    return 1 if message.role == "toolResult" or kind == "toolCall" else 0


def _around(wanted: re.Pattern[str], message: Message, rank: int, names: Sequence[str]) -> str | None:
    for piece in message.content:
        for name in names if _rank_of(message, piece.kind) == rank else ():
            value = getattr(piece, name, None)
            text = value if isinstance(value, str) else "" if value is None else encode_valid_json(value).decode()
            if found := wanted.search(text):
                start = max(0, found.start() - _AROUND)
                return ("…" if start else "") + text[start : start + _SHOWN]
    return None


def _counted(session: Session) -> Session:
    """Read a session whose counts are not known from its beginning and its end."""
    if session.messages is not None:
        return session
    try:
        messages = read_history(session).context.messages
    except SegueError:
        return session
    turns = [message for message in messages if message.role == "assistant"]
    usages = [turn.usage for turn in turns if turn.usage is not None]
    costs = [usage.cost.total for usage in usages if usage.cost is not None]
    return replace(
        session,
        messages=len(messages),
        tokens=sum(usage.total_tokens for usage in usages) if session.tokens is None else session.tokens,
        cost=sum(costs) if costs and session.cost is None else session.cost,
        models=session.models or tuple(dict.fromkeys(turn.model for turn in turns if turn.model)),
    )


def _json(session: Session) -> dict[str, object]:
    return {"source": f"{session.format}:{session.id}", **msgspec.structs.asdict(session)}
