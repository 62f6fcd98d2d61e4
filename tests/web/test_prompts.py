"""Prompts of one's own: written in the settings, and put into the composer by their names."""

import pytest
from playwright.sync_api import Page, expect

from chatcore.contrib.prompts.models import Prompt
from chatcore.models import Session
from chatcore.projects.changes import create_project

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
HOSTILE = "<img src=x onerror=alert(1)> {{ 7 }} 'quoted'"


def test_a_prompt_is_written_in_the_settings_and_put_into_the_composer(
    page: Page, session: Session
) -> None:
    project = create_project(session.owner, {"name": "Lisbon", "instructions": "", "rules": []})
    Prompt.objects.create(owner=session.owner, name="trip", text="Only there.", project=project)
    page.goto("/settings/")
    page.get_by_text("New prompt").click()
    form = page.locator("#prompts details", has_text="New prompt")
    form.get_by_label("Name").fill("Übersetze")
    form.get_by_label("Text").fill(HOSTILE)
    form.get_by_role("button", name="Save").click()
    expect(page.locator("#prompts summary code")).to_have_text(["/trip", "/übersetze"])
    page.goto(f"/c/{session.pk}/")
    field = page.get_by_label("Your message")
    field.press_sequentially("/üb")
    option = page.get_by_role("option", name="/übersetze")
    expect(option).to_contain_text(HOSTILE)
    field.press("Enter")
    expect(field).to_have_value(HOSTILE)
    field.fill("/")
    expect(page.get_by_role("option", name="/trip")).to_have_count(0)
    field.fill("")
    Session.objects.filter(pk=session.pk).update(project=project)
    page.reload()
    page.get_by_label("Your message").press_sequentially("/trip")
    expect(page.get_by_role("option", name="/trip")).to_be_visible()
    page.get_by_label("Your message").press_sequentially(" Lisbon")
    page.get_by_label("Your message").press("Enter")
    expect(page.get_by_label("Your message")).to_have_value("Only there.\n\nLisbon")
