"""The page's scripts and styles as they are sent: bundles, and few bytes."""

import gzip
import hashlib
import json
import re
from pathlib import Path

import pytest
from django.contrib.staticfiles.finders import find
from django.test import Client
from playwright.sync_api import Page, expect

from chatcore.models import Session
from tests.support.page_compactions import SUMMARY, fill_long
from tests.support.stored_talk import summarize

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "chatcore/static/chatcore/built"
LIST = json.loads((BUILT / "BUILT.json").read_text())
STATIC_FILE = re.compile(r'(?:href|src)="/static/([^"#?]+)')


def test_the_bundles_are_made_of_the_sources_as_they_are() -> None:
    listed = LIST["inputs"] | LIST["outputs"]
    changed = [
        path
        for path, digest in listed.items()
        if hashlib.sha256((ROOT / path).read_bytes()).hexdigest() != digest
    ]
    assert not changed, "Run ./bin/format, and commit what it builds."


def test_no_other_file_is_among_them() -> None:
    files = {str(path.relative_to(ROOT)) for path in BUILT.iterdir()} - {
        "chatcore/static/chatcore/built/BUILT.json"
    }
    assert files == set(LIST["outputs"])


@pytest.mark.django_db
def test_a_chat_needs_few_bytes(client: Client, session: Session) -> None:
    client.force_login(session.owner)
    page = client.get(f"/c/{session.pk}/", headers={"Accept-Encoding": "gzip"})
    assert page["Content-Encoding"] == "gzip"
    names = STATIC_FILE.findall(gzip.decompress(page.content).decode())
    sizes = {name: len(gzip.compress(Path(find(name) or "").read_bytes())) for name in set(names)}
    icons = {name for name in sizes if name.endswith((".svg", ".png"))}
    assert len(sizes) <= 10
    assert len(page.content) <= 15_000
    assert len(page.content) + sum(sizes[name] for name in sizes.keys() - icons) <= 110_000


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_what_a_click_needs_comes_with_the_click(page: Page, session: Session) -> None:
    fill_long(session)
    summarize(session, SUMMARY, 9)
    urls: list[str] = []
    page.on("request", lambda request: urls.append(request.url))
    with page.expect_response("**/context/missing"):
        page.goto(f"/c/{session.pk}/")
    expect(page.locator(".card")).to_have_count(1)
    assert len(urls) <= 13
    scripts = {url for url in urls if url.endswith(".js")}
    page.get_by_role("button", name="Settings of this chat").click()
    expect(page.get_by_label("Temperature")).to_be_visible()
    assert {url for url in urls if url.endswith(".js")} > scripts
