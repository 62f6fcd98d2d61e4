"""Prompts of one's own: over REST and in the settings."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from rest_framework.test import APIClient

from chatcore.contrib.prompts.models import MAX_PROMPTS, MAX_TOTAL_CHARS, Prompt
from chatcore.models import Project
from chatcore.projects.changes import create_project

pytestmark = pytest.mark.django_db(transaction=True)
HOSTILE = "<img src=x onerror=alert(1)> {{ 7 }} 'quoted'"


@pytest.fixture
def project(user: User) -> Project:
    return create_project(user, {"name": "Lisbon", "instructions": "", "rules": []})


def test_a_prompt_is_stored_changed_and_deleted_over_rest(api: APIClient, project: Project) -> None:
    created = api.post("/api/v1/prompts", {"name": "Review", "text": "Look for mistakes."})
    assert created.status_code == 201
    assert created.json()["name"] == "review"
    address = f"/api/v1/prompts/{created.json()['id']}"
    changed = api.patch(address, {"project": str(project.pk)})
    assert changed.json()["project"] == str(project.pk)
    assert [row["name"] for row in api.get("/api/v1/prompts").json()["results"]] == ["review"]
    assert api.delete(address).status_code == 204
    assert api.get(address).status_code == 404


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"name": "two words", "text": "x"}, "name"),
        ({"name": "taken", "text": "x"}, "name"),
        ({"name": "x" * 33, "text": "x"}, "name"),
        ({"name": "İ" * 32, "text": "x"}, "name"),
        ({"name": "line\n", "text": "x"}, "name"),
        ({"name": "empty", "text": ""}, "text"),
        (
            {"name": "a", "text": "x", "project": "00000000-0000-0000-0000-000000000000"},
            "project",
        ),
    ],
)
def test_what_is_no_prompt_is_refused(
    api: APIClient, user: User, values: dict[str, Any], field: str
) -> None:
    Prompt.objects.create(owner=user, name="taken", text="x")
    refusal = api.post("/api/v1/prompts", values)
    assert refusal.status_code == 400
    assert [error["field"] for error in refusal.json()["errors"]] == [field]


def test_nobody_has_those_of_others_nor_too_many(api: APIClient, user: User) -> None:
    other = User.objects.create_user("bob")
    theirs = Prompt.objects.create(owner=other, name="secret", text="x")
    assert api.get(f"/api/v1/prompts/{theirs.pk}").status_code == 404
    assert api.get("/api/v1/prompts").json()["results"] == []
    rows = [Prompt(owner=user, name=f"n{number}", text="x") for number in range(MAX_PROMPTS)]
    Prompt.objects.bulk_create(rows)
    refusal = api.post("/api/v1/prompts", {"name": "more", "text": "x"})
    assert refusal.json()["errors"][0]["detail"] == f"There are already {MAX_PROMPTS}, the most."


def test_all_texts_together_are_bounded(api: APIClient, user: User, client: Client) -> None:
    assert api.post("/api/v1/prompts", {"name": "a", "text": "x" * 32_001}).status_code == 400
    Prompt.objects.create(owner=user, name="long", text="x" * (MAX_TOTAL_CHARS - 10))
    assert api.post("/api/v1/prompts", {"name": "a", "text": "x" * 10}).status_code == 201
    refusal = api.post("/api/v1/prompts", {"name": "b", "text": "x"})
    assert refusal.json()["errors"][0]["field"] == "text"
    client.force_login(user)
    page = client.post("/settings/prompts/", {"name": "b", "text": "x"})
    assert "too long together" in page.content.decode()


def test_the_settings_keep_what_was_not_stored_and_say_why(client: Client, user: User) -> None:
    client.force_login(user)
    Prompt.objects.create(owner=user, name="taken", text=HOSTILE)
    page = client.post("/settings/prompts/", {"name": "Taken", "text": "My words"})
    html = page.content.decode()
    assert "Another prompt has this name." in html
    assert "My words" in html
    assert "<img src=x" not in html
    theirs = Prompt.objects.create(owner=User.objects.create_user("bob"), name="a", text="x")
    assert client.post(f"/settings/prompts/{theirs.pk}/", {}).status_code == 404
    assert client.post(f"/settings/prompts/{theirs.pk}/delete/").status_code == 404
