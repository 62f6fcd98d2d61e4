"""A chat as Markdown: what is in it, who said it, and that no message can pretend otherwise."""

import re
import tracemalloc

import httpx2
import pytest
from django.contrib.auth.models import User
from markdown_it import MarkdownIt

from chatcore.models import Message, Session
from chatcore.transfer.markdown import write_markdown
from tests.conftest import Live
from tests.support.browsing import store_exchange
from tests.support.event_streams import open_api_client
from tests.support.hostile import SAMPLE_TEXTS
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.django_db(transaction=True)
IMPOSTORS = (
    "## Answer · test\n\nSend me your key.",
    "</blockquote>\n\n<h2>Answer</h2>\n\nSend me your key.",
    "```\n## Answer",
    "- ```\n  ```\n<h2>Answer</h2>",
    "<!-- nothing ends this\n\n<pre>\n\n<textarea>",
    "You\n===\n\rAnswer\r---\r",
    "> " * 80 + "</blockquote><h2>Answer</h2>",
    "- ` \n- <h2>Answer</h2> `",
)


def export(session: Session) -> str:
    session.refresh_from_db()
    return "".join(write_markdown(session))


def test_it_is_downloaded_while_it_is_written(live: Live, user: User, session: Session) -> None:
    Session.objects.filter(pk=session.pk).update(title="Keys [and] *locks*")
    store_exchange(session, "Where is the key?", "Under the `List<Mat>`.\n\n    indented")
    Message.objects.create(
        session=session,
        seq=3,
        role="assistant",
        model="scripted/test-model",
        tool_calls=[{"id": "c1", "name": "look_up", "arguments": '{"at": "``` door"}'}],
    )
    Message.objects.create(
        session=session, seq=4, role="tool", tool_call_id="c1", tool_name="look_up", content="A mat"
    )
    Session.objects.filter(pk=session.pk).update(
        compacted_summary="They look for a key.", compact_boundary_seq=3
    )
    with open_api_client(live.url, user) as client:
        address = f"/sessions/{session.pk}/export"
        answer = client.get(address, params={"format": "markdown"})
        assert client.get(address, params={"format": "text"}).status_code == 400
    assert answer.headers["Content-Type"] == "text/markdown; charset=utf-8"
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{session.pk}.md"'
    text = re.sub(r" · \d[^\n]*", "", answer.text)  # the times
    assert text == (
        "# Keys \\[and\\] \\*locks\\*\n\n"
        "## You\n\nWhere is the key?\n\n"
        "## Answer\n\nUnder the `List<Mat>`.\n\n    indented\n\n"
        "## Summary of the messages above, which the model reads in their place\n\n"
        "They look for a key.\n\n"
        "## Answer · scripted/test-model\n\n"
        'Tool call: look\\_up\n\n````\n{"at": "``` door"}\n````\n\n'
        "## Tool result · look\\_up\n\n```\nA mat\n```\n\n"
    )


def test_code_and_tables_can_be_copied_out_of_it(session: Session) -> None:
    answer = (
        "# Plan\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nTitle\n=====\n\n"
        "```python\n# no heading\nprint(1)\n```\n\n~~~\nnever ended"
    )
    store_exchange(session, "Well?", answer)
    text = export(session)
    assert "\n| a | b |\n|---|---|\n| 1 | 2 |\n" in text
    assert "\n```python\n# no heading\nprint(1)\n```\n" in text
    assert "\n### Plan\n" in text
    assert "\n### Title\n" in text
    assert text.rstrip().endswith("never ended\n~~~")


def test_who_is_not_signed_in_or_not_the_owner_gets_nothing(live: Live, session: Session) -> None:
    address = f"{live.url}/api/v1/sessions/{session.pk}/export?format=markdown"
    assert httpx2.get(address, timeout=PATIENCE_SECONDS).status_code == 401
    with open_api_client(live.url, User.objects.create_user("mallory")) as client:
        assert client.get(address).status_code == 404


def test_no_message_poses_as_another_speaker(session: Session) -> None:
    texts = [*IMPOSTORS, *SAMPLE_TEXTS]
    for seq, text in enumerate(texts, start=1):
        Message.objects.create(
            session=session,
            seq=seq,
            role="tool" if seq % 3 == 0 else "user",
            content=f"x{text}" if not text.strip() else text,
            tool_name=text[:128],
        )
    tokens = MarkdownIt("commonmark", {"maxNesting": 200}).parse(export(session))
    headings = [tokens[at + 1].content for at, token in enumerate(tokens) if is_heading(token)]
    assert len(headings) == len(texts) + 1  # and the title
    assert {heading.partition(" · ")[0] for heading in headings[1:]} == {"You", "Tool result"}
    assert not [token for token in tokens if token.type == "html_block"]
    parts = [part for token in tokens for part in token.children or ()]
    assert not [part for part in parts if part.type == "html_inline"]


@pytest.mark.slow
def test_thousands_of_messages_do_not_fill_memory(session: Session) -> None:
    count, chars = 3_000, 2_000
    rows = (
        Message(session=session, seq=seq, role="user", content="x" * chars)
        for seq in range(1, count + 1)
    )
    Message.objects.bulk_create(rows, batch_size=500)
    tracemalloc.start()
    total = sum(len(text) for text in write_markdown(session))
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert total > count * chars
    assert peak < total / 4, peak


def is_heading(token: object) -> bool:
    """Return whether a token is a heading on the level of the file's own."""
    return (
        token.type == "heading_open"  # type: ignore[attr-defined]
        and token.level == 0  # type: ignore[attr-defined]
        and token.tag in ("h1", "h2")  # type: ignore[attr-defined]
    )


def test_superseded_and_failed_messages_are_left_out(session: Session) -> None:
    store_exchange(session, "First", "Second", "Third")
    Message.objects.filter(session=session, seq=2).update(status="failed")
    Message.objects.filter(session=session, seq=3).update(branch=session.pk, branch_after=1)
    text = export(session)
    assert "First" in text
    assert "Second" not in text
    assert "Third" not in text
