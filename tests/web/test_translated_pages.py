"""Every page as the server renders it, in each language: no English is left on it."""

from html.parser import HTMLParser

import pytest
from django.contrib.auth.models import User
from django.test import Client

from chatcore.context.compactor import get_compactor
from chatcore.contrib.sharing.links import create_share
from chatcore.models import McpServer, Session
from chatcore.projects.changes import add_file, create_project
from chatcore.tools.registry import BUILT_IN_TOOLS
from tests.support.languages import (
    LANGUAGES,
    WORD,
    build_english_pattern,
    read_language,
    translations_by_text,
)
from tests.support.rendered_pages import signed_in
from tests.web.test_axe import staff_session

__all__ = ["signed_in", "staff_session"]

pytestmark = pytest.mark.django_db
NAMES = {"aria-label", "title", "placeholder", "alt", "aria-description"}
# What is in such elements is code, or the words of a person or a model (`dir="auto"`).
SILENT = {"script", "style", "code", "pre", "svg", "bdi", "mark"}
PAGES = [
    "/new/",
    "/settings/",
    "/offline/",
    "/search/?q=pain",
    "/chats/?archived",
    "/nowhere/",
    "/projects/",
]
PAGES_OF_A_CHAT = ["", "settings/", "print/", "share/", "project/"]
PAGES_OF_AN_ACCOUNT = [
    "password/",
    "password/reset/sent/",
    "email/",
    "email/sent/",
    "email/no-key/",
    "inactive/",
    "second-factor/",
    "sign-on/",
    "sign-on/cancelled/",
    "sign-on/error/",
]
PAGES_BEFORE_SIGNING_IN = [
    "/login/",
    "/login/once/used/",
    "/invitation/used/",
    "/account/sign-up/",
    "/account/password/reset/",
    "/s/none/",
]
# What is the same in every language.
UNTRANSLATED = {
    *("Chatcore", "alice", "scripted", "test-model", "scripted/test-model", "tickets", "Bread"),
    *(
        "Bread · Chatcore",
        "Ctrl",
        "Ctrl K",
        "https://…/mcp",
        "http://…:11434",
        "http://tickets.test/mcp",
        "sk-…",
    ),
    *("OpenAI", "Anthropic"),  # protocols have the names of their vendors
    *("/summarize", "/context", "/fork", "/export", "/model"),
}


class TextCollector(HTMLParser):
    """Collect the texts of a page, and the names that are read out or shown."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: set[str] = set()
        self.silent: list[str] = []  # the silent element around this place, once for each inside it

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        is_silent = tag in SILENT or "dir" in named or (tag != "html" and "lang" in named)
        if self.silent:
            self.silent += [tag] if tag == self.silent[0] else []
        elif is_silent and tag != "input":  # which has no end
            self.silent = [tag]
        holds_texts = named.get("id") == "page-texts"
        for name, value in attrs:
            if value and (name in NAMES or (holds_texts and name.startswith("data-"))):
                self.add(value)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.silent:
            self.silent.pop()

    def handle_data(self, data: str) -> None:
        if not self.silent:
            self.add(data)

    def add(self, text: str) -> None:
        if WORD.search(text):
            self.texts.add(" ".join(text.split()))


def collect_texts(client: Client, path: str, language: str) -> set[str]:
    response = client.get(path, headers={"Accept-Language": language})
    assert response.status_code < 500, path
    collector = TextCollector()
    collector.feed(b"".join(response).decode())
    return collector.texts


@pytest.mark.heavy
@pytest.mark.all_rows
@pytest.mark.parametrize("language", LANGUAGES)
def test_no_text_of_a_page_stays_english(
    signed_in: Client, staff_session: Session, user: User, language: str
) -> None:
    McpServer.objects.create(owner=user, name="tickets", url="http://tickets.test/mcp")
    create_share(staff_session, with_tools=True, with_files=True, days=7)
    project = create_project(user, {"name": "Bread", "rules": ["Bread"]})
    add_file(project, name="Bread", data=b"Bread " * 9_000)
    english = build_english_pattern(language)
    assert english.fullmatch("Settings"), "or nothing could be found"
    for_models = {
        word for tool in BUILT_IN_TOOLS.values() for word in (tool.name, tool.description)
    }
    same = {*UNTRANSLATED, *for_models, *get_compactor().list_policies()} | {
        text.replace("%%", "%")
        for forms, translated in translations_by_text(read_language(language)).items()
        for text in forms
        if text in translated
    }
    left = {}
    for client, path in [
        *((signed_in, path) for path in PAGES),
        *((signed_in, f"/c/{staff_session.pk}/{path}") for path in PAGES_OF_A_CHAT),
        (signed_in, f"/projects/{project.pk}/"),
        *((signed_in, f"/account/{path}") for path in PAGES_OF_AN_ACCOUNT),
        *((Client(), path) for path in PAGES_BEFORE_SIGNING_IN),
    ]:
        texts = collect_texts(client, path, language)
        assert texts, path
        unchanged = (texts & collect_texts(client, path, "en")) - same
        left[path] = {text for text in texts if english.fullmatch(text)} | unchanged
    assert not any(left.values()), {path: texts for path, texts in left.items() if texts}
