"""A form of the admin writes what a person has edited, and nothing that was only shown."""

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from chatcore.admin.base import ChatcoreAdmin
from chatcore.events.log import append_events
from chatcore.events.types import EventType, SessionUpdatedPayload
from chatcore.models import Session
from models_registry.models import AiModel
from tests.support.admin_forms import read_form

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(user: User) -> Client:
    root = User.objects.create_superuser("root")
    client = Client()
    client.force_login(root)
    return client


def open_form(operator: Client, row: Any) -> tuple[str, dict[str, Any]]:
    """Return the address of a row's form, and what it shows."""
    name = row._meta.model_name
    address = reverse(f"admin:{row._meta.app_label}_{name}_change", args=[row.pk])
    response = operator.get(address)
    assert response.status_code == 200
    return address, read_form(response.content.decode(), f"{name}_form")


def post_errors(operator: Client, address: str, fields: dict[str, Any]) -> dict[str, list[str]]:
    response = operator.post(address, fields)
    assert response.status_code == 200
    return {name: [*errors] for name, errors in response.context["adminform"].errors.items()}


def test_a_session_that_is_saved_while_it_streams_keeps_its_numbers(
    operator: Client, session: Session
) -> None:
    address, fields = open_form(operator, session)
    for _ in range(3):
        append_events(
            session.pk, (EventType.SESSION_UPDATED, SessionUpdatedPayload(fields=["title"]))
        )
    Session.objects.update(last_seq=7, message_count=7, context_version=2, title="By its owner")
    assert operator.post(address, fields | {"system_prompt": "Be brief."}).status_code == 302
    after = Session.objects.get()
    assert (after.last_event_seq, after.last_seq, after.message_count) == (3, 7, 7)
    assert (after.title, after.context_version) == ("By its owner", 2)
    assert after.system_prompt == "Be brief."


@pytest.mark.parametrize(
    ("fields", "name", "words"),
    [
        ({"params": '["x"]'}, "params", "dictionary"),
        ({"params": '{"temperature": 9}'}, "params", "temperature: A number from 0 to 2."),
        ({"params": '{"model": "another"}'}, "params", "field of its own"),
        ({"tools": '["no_such_tool"]'}, "tools", "There is no tool called no_such_tool."),
        ({"tools": '"calculate"'}, "tools", "list"),
        ({"policy": "nosuch"}, "policy", "no compaction policy of this name"),
    ],
)
def test_a_session_is_not_given_what_would_stop_its_turns(
    operator: Client, session: Session, fields: dict[str, str], name: str, words: str
) -> None:
    address, shown_fields = open_form(operator, session)
    errors = post_errors(operator, address, shown_fields | fields)
    assert list(errors) == [name]
    assert words in " ".join(errors[name])
    assert Session.objects.values("params", "tools", "policy").get() == {
        "params": {},
        "tools": None,
        "policy": "",
    }


def test_good_values_of_a_session_are_taken(operator: Client, session: Session) -> None:
    address, fields = open_form(operator, session)
    new_values = {"tools": '["calculate"]', "params": '{"temperature": 0.5}', "policy": "lota"}
    assert operator.post(address, fields | new_values).status_code == 302
    after = Session.objects.get()
    assert (after.tools, after.params, after.policy) == (
        ["calculate"],
        {"temperature": 0.5},
        "lota",
    )


def test_a_models_form_undoes_nothing_that_was_written_meanwhile(
    operator: Client, model: AiModel
) -> None:
    address, fields = open_form(operator, model)
    AiModel.objects.update(input_price="2.5", is_default=True)
    assert operator.post(address, fields | {"max_output_tokens": "512"}).status_code == 302
    after = AiModel.objects.get()
    assert (after.max_output_tokens, after.input_price, after.is_default) == (512, 2.5, True)


def test_a_row_below_a_form_is_written_by_its_edited_columns(
    operator: Client, model: AiModel
) -> None:
    address, fields = open_form(operator, model.provider)
    AiModel.objects.update(policy="lota")
    edited = {"models-0-context_window_size": "4096"}
    assert operator.post(address, fields | edited).status_code == 302
    after = AiModel.objects.get(pk=model.pk)
    assert (after.context_window_size, after.policy) == (4096, "lota")


def test_a_user_is_still_made_and_changed(operator: Client) -> None:
    password = {"password1": "a long password 8", "password2": "a long password 8"}
    address = reverse("admin:auth_user_add")
    operator.post(address, {"username": "bob", "usable_password": "true", **password})
    bob = User.objects.get(username="bob")
    assert bob.check_password("a long password 8")
    address, fields = open_form(operator, bob)
    User.objects.filter(pk=bob.pk).update(email="bob@example.org")
    assert operator.post(address, fields | {"first_name": "Bob"}).status_code == 302
    bob.refresh_from_db()
    assert (bob.first_name, bob.email) == ("Bob", "bob@example.org")


def test_every_page_of_the_admin_writes_so() -> None:
    pages = admin.site._registry.values()
    assert [page for page in pages if not isinstance(page, ChatcoreAdmin)] == []
