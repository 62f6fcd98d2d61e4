"""Projects on the pages, as a person makes, fills, uses and deletes one."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from playwright.sync_api import Page, ViewportSize, expect

from chatcore.base.truncation import clean_text
from chatcore.contrib.holds.models import Hold
from chatcore.models import Project, ProjectFile, Session
from chatcore.projects import changes
from chatcore.sessions.changes import record_session_change
from models_registry.models import AiModel
from tests.support.hostile import SAMPLE_TEXTS
from tests.support.hostile_pages import (
    audit_paths,
    check_page_is_sound,
    guarded_page,
    read_texts,
    show_text,
)
from tests.support.rendered_pages import get_html, others, signed_in
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.web.test_axe import find_objections

__all__ = ["guarded_page", "others", "signed_in"]
pytestmark = pytest.mark.django_db(transaction=True)
PHONE: ViewportSize = {"width": 390, "height": 844}


@pytest.fixture
def project(user: User) -> Project:
    values = {"name": "Lisbon", "instructions": "Be a guide.", "rules": ["In euros.", "No map."]}
    project = changes.create_project(user, values)
    changes.add_file(project, name="trains.txt", data=b"Train 43 leaves at 9:05.")
    return project


@pytest.mark.slow
@pytest.mark.browser
def test_a_person_makes_a_project_and_its_chat_is_told_all_of_it(
    page: Page, model: AiModel, scripted: ScriptedModel, tmp_path: Path
) -> None:
    page.goto("/new/")
    page.get_by_role("link", name="Projects", exact=True).click()
    expect(page.locator("h1")).to_have_text("Projects")
    page.keyboard.press("Control+k")
    page.keyboard.type("New project")
    page.get_by_role("option", name="New project").click()
    page.get_by_label("Name of a new project").fill("Lisbon")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Lisbon")

    page.get_by_role("textbox", name="Instructions").fill("Be a guide.\nOf two words.")
    page.get_by_role("button", name="Save", exact=True).first.click()
    expect(page.locator("#project-words [role=status]")).to_have_text("Saved")
    for rule in ("No map.", "In euros."):
        page.get_by_label("New rule").fill(rule)
        page.keyboard.press("Enter")
        expect(page.locator(f".rules input[value='{rule}']")).to_be_visible()
    page.get_by_role("button", name="Move rule 2 up").click()
    expect(page.get_by_label("Rule 1", exact=True)).to_have_value("In euros.")
    (tmp_path / "trains.txt").write_text("Train 43 leaves at 9:05.")
    page.locator("#project-upload").set_input_files(tmp_path / "trains.txt")
    expect(page.locator("project-files .rows li")).to_contain_text("trains.txt")

    page.get_by_role("link", name="New chat in this project").click()
    expect(page.locator("#chat-project a")).to_contain_text("Lisbon")
    scripted.script(Reply(text="At 9:05."))
    page.locator(".composer textarea").fill("When is the train?")
    page.keyboard.press("Enter")
    expect(page.locator(".answer")).to_contain_text("At 9:05.")
    system = scripted.requests[-1].json["messages"][0]["content"]
    for words in ("Be a guide.\nOf two words.", "- In euros.\n- No map.", "Train 43 leaves"):
        assert words in system
    assert Session.objects.get().project == Project.objects.get()

    page.locator("#chat-project a").click()
    expect(page.locator(".project-links")).to_contain_text("When is the train?")
    page.locator(".project-end summary").click()
    page.get_by_role("button", name="Delete the project for good").click()
    expect(page.get_by_role("status").first).to_have_text(
        "The project Lisbon was deleted. Its 1 chat stays."
    )
    assert Session.objects.get().project is None
    assert not ProjectFile.objects.exists()


@pytest.mark.slow
@pytest.mark.browser
def test_a_chat_is_moved_in_and_out_from_its_menu(
    page: Page, project: Project, session: Session
) -> None:
    Session.objects.update(title="Plans")
    page.goto(f"/c/{session.pk}/")
    expect(page.locator("#chat-project")).to_be_hidden()
    for name in ("Lisbon", "In no project"):
        page.locator(".chat-row .row-more").click()
        page.locator(".menu").get_by_role("button", name="Project").click()
        page.get_by_label("Project", exact=True).select_option(label=name)
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.locator("#dialog")).to_be_hidden()
        if name == "Lisbon":
            expect(page.locator("#chat-project a")).to_contain_text("Lisbon")
        else:
            expect(page.locator("#chat-project")).to_be_hidden()


@pytest.mark.slow
@pytest.mark.browser
def test_a_refused_file_is_said_in_words(page: Page, project: Project, tmp_path: Path) -> None:
    page.goto(f"/projects/{project.pk}/")
    (tmp_path / "a.bin").write_bytes(b"\x00\x01")
    page.locator("#project-upload").set_input_files(tmp_path / "a.bin")
    expect(page.locator("project-files [role=alert]")).to_contain_text("a.bin: Only texts, PDF")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete trains.txt").click()
    expect(page.locator("project-files .rows li")).to_have_count(0)


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_axe_finds_nothing_wide_or_narrow(
    page: Page, project: Project, session: Session, scheme: Any
) -> None:
    changes.add_file(project, name="book.txt", data=b"word " * 9_000)
    record_session_change(session.pk, {"project": project})
    page.emulate_media(color_scheme=scheme)
    for size in ({"width": 1280, "height": 860}, PHONE):
        page.set_viewport_size(size)  # type: ignore[arg-type]
        for address in (f"/projects/{project.pk}/", "/projects/", f"/c/{session.pk}/"):
            page.goto(address)
            expect(page.locator("h1")).to_be_visible()
            assert find_objections(page) == []
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width <= size["width"], f"{address} scrolls sideways"
    page.set_viewport_size({"width": 1280, "height": 860})
    page.goto("/projects/")
    body, form = (page.locator(name).bounding_box() for name in (".settings", ".project-new"))
    assert body
    assert form
    middles = [box["x"] + box["width"] / 2 for box in (body, form)]
    assert abs(middles[0] - middles[1]) < 20, "the page is not in the middle"


def test_what_does_not_fit_is_said_on_both_pages(
    signed_in: Client, project: Project, session: Session
) -> None:
    changes.add_file(project, name="book.txt", data=b"word " * 9_000)
    record_session_change(session.pk, {"project": project})
    assert "too large for" in " ".join(get_html(signed_in, f"/projects/{project.pk}/").split())
    html = get_html(signed_in, f"/c/{session.pk}/")
    assert "Too large for this model, and not shown to it:" in html
    assert "<bdi>book.txt</bdi>" in html


def test_pages_of_others_do_not_exist(client: Client, project: Project, others: Session) -> None:
    file = project.files.get()
    client.force_login(others.owner)
    place = f"/projects/{project.pk}/"
    assert client.get(place).status_code == 404
    assert client.get(f"{place}files/").status_code == 404
    assert client.get(f"/new/?project={project.pk}").status_code == 404
    for path in ("edit/", "rules/", "delete/", f"files/{file.pk}/delete/"):
        assert client.post(f"{place}{path}", {"name": "x"}).status_code == 404
    assert client.post(f"/c/{others.pk}/project/", {"project": str(project.pk)}).status_code == 404
    assert Project.objects.get().name == "Lisbon"
    assert "Lisbon" not in get_html(client, "/projects/")


def test_bad_words_are_refused_in_words_and_nothing_is_stored(
    signed_in: Client, project: Project
) -> None:
    place = f"/projects/{project.pk}/"
    long_rule = signed_in.post(f"{place}rules/", {"rule": ["x" * 501]})
    assert "at most 500 characters" in long_rule.content.decode()
    no_name = signed_in.post(f"{place}edit/", {"name": " ", "instructions": "Hi"})
    assert "aria-invalid" in no_name.content.decode()
    long_text = signed_in.post(f"{place}edit/", {"name": "A", "instructions": "x" * 300_000})
    assert "At most 256 KB" in long_text.content.decode()
    assert signed_in.post("/projects/new/", {"name": ""}).status_code == 400
    project.refresh_from_db()
    assert (project.name, project.instructions) == ("Lisbon", "Be a guide.")
    assert project.rules == ["In euros.", "No map."]
    assert signed_in.get("/new/?project=x").status_code == 404


def test_nothing_on_legal_hold_is_deleted(signed_in: Client, user: User, project: Project) -> None:
    Hold.objects.create(user=user, reason="Case 5", created_at=timezone.now())
    assert signed_in.post(f"/projects/{project.pk}/delete/").status_code == 409
    file = project.files.get()
    assert signed_in.post(f"/projects/{project.pk}/files/{file.pk}/delete/").status_code == 409


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.hostile
def test_hostile_words_are_only_words(guarded_page: Page, user: User, session: Session) -> None:
    paths = []
    for text in map(clean_text, SAMPLE_TEXTS):
        line = " ".join(text.split())[:200] or "x"
        values = {"name": line, "instructions": text, "rules": [line]}
        project = Project.objects.create(owner=user, **values)
        fields = {"media_type": "text/plain", "size": 9, "sent_chars": 9_000_000, "data": b""}
        ProjectFile.objects.create(project=project, name=line, text=text, **fields)
        chat = Session.objects.create(owner=user, model=session.model, project=project)
        paths += [f"/projects/{project.pk}/", f"/c/{chat.pk}/", f"/c/{chat.pk}/project/"]
    guarded_page.goto("/projects/")
    assert read_texts(guarded_page.locator(".project-links a")) == [
        show_text(project.name) for project in Project.objects.all()
    ]
    check_page_is_sound(guarded_page)
    audit_paths(guarded_page, paths[:300])
