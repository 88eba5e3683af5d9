"""Pages for people: safe whatever is in the conversation, standing alone, and with thinking and calls folded."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from cli.running import SESSION, run
from segue import (
    AssistantMessage,
    Context,
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    prepare,
    read_session,
)
from segue.conversation.messages import StopReason
from segue.conversation.pages import PAGES, render_html, render_markdown

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&</pre></details>````\n# no heading"
PNG = "iVBORw0KGgo="
CONTEXT = Context(
    system_prompt=HOSTILE,
    messages=(
        UserMessage(content=(TextContent(text=HOSTILE), ImageContent(data=PNG, mime_type="image/png"))),
        UserMessage(
            content=(
                ImageContent(data=PNG, mime_type="image/svg+xml"),
                ImageContent(data='"><script>', mime_type="image/png"),
                ImageContent(url="https://example.org/a.png", mime_type="image/png"),
                FileContent(data=PNG, mime_type="application/pdf", name=HOSTILE),
            )
        ),
        AssistantMessage(
            content=(
                ThinkingContent(thinking=HOSTILE),
                ToolCall(id="1", name=HOSTILE, arguments={"a": HOSTILE}),
                NativeContent(protocol="openai-responses", block={"type": HOSTILE}),
            ),
            provider=HOSTILE,
            model=HOSTILE,
            stop_reason=StopReason.ERROR,
        ),
        ToolResultMessage(tool_call_id="1", tool_name=HOSTILE, content=(TextContent(text=HOSTILE * 9),), is_error=True),
    ),
)


class Page(HTMLParser):
    """What a browser would find in a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.sources: list[str] = []
        self.names: set[str] = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.names |= {name for name, _ in attrs}
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]


def test_a_page_loads_nothing_and_runs_nothing():
    text = render_html(CONTEXT, title=HOSTILE)
    page = Page(text)
    assert {"script", "iframe", "link", "a", "form"}.isdisjoint(page.tags)
    assert page.names <= {"lang", "charset", "name", "content", "http-equiv", "class", "alt", "src"}
    assert all(source.startswith("data:image/png;base64,") for source in page.sources)
    assert len(page.sources) == 2, "neither a scripted image nor one of another server"
    assert "default-src 'none'" in text


def test_thinking_calls_and_long_results_are_folded():
    page = Page(render_html(CONTEXT))
    assert page.tags.count("details") == 4, "instructions, thinking, a call, a long result"
    assert page.tags.count("article") == len(CONTEXT.messages)


def test_the_code_of_markdown_cannot_end_its_block():
    text = render_markdown(CONTEXT)
    fence = "`" * 5
    assert text.count(f"\n{fence}\n") == 2 * 4
    assert "call of &lt;script&gt;" in text


def test_notebooks_show_conversations_and_reports():
    context = read_session(SESSION)
    assert Page(context._repr_html_()).tags.count("article") == len(context.messages)
    report = prepare(context, "openai/gpt-5.4").report
    page = Page(report._repr_html_())
    kinds = {(change.code, change.loss) for change in report.changes}
    assert page.tags.count("tr") == len(kinds) + 1
    assert "Nothing was changed." in type(report)(())._repr_html_()
    assert "no messages" in Context()._repr_html_()


@pytest.mark.parametrize("name", PAGES)
def test_the_program_writes_pages(name, tmp_path):
    shown = run("show", SESSION, "--format", name)
    assert (shown.status, shown.err) == (0, "")
    assert "59.97" in shown.out
    made = run("export", SESSION, "--to", name, "-o", tmp_path / "page")
    assert made.status == 0, made.err
    assert (tmp_path / "page").read_text().splitlines()[-1] == shown.out.splitlines()[-1]
    assert run("export", SESSION, "--to", name).out == (tmp_path / "page").read_text()
    assert run("export", SESSION, "--to", name, "-o", tmp_path / "page").status == 2, "a file is never overwritten"
