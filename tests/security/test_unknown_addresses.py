"""A form or a name that is refused says which address is not known, and which setting names it."""

import logging
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from rest_framework.test import APIClient

pytestmark = pytest.mark.django_db
SETTINGS = ("CHATCORE_PUBLIC_URL", "CHATCORE_ALLOWED_HOSTS")
ADDRESS = "https://chat.example.com:8443"


@pytest.fixture(autouse=True)
def english_secrets(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["secret-name.example", "testserver"]


@pytest.mark.parametrize("is_hx", [False, True])
def test_a_form_of_an_unknown_address_is_told_its_setting(
    caplog: pytest.LogCaptureFixture, is_hx: bool
) -> None:
    headers = {"Origin": ADDRESS} | ({"HX-Request": "true"} if is_hx else {})
    answer = Client(enforce_csrf_checks=True).post("/login/", {}, headers=headers)
    page = answer.content.decode()
    assert answer.status_code == 403
    assert ADDRESS in page
    assert is_hx or all(name in page for name in SETTINGS)
    assert answer["Content-Type"].startswith("text/plain" if is_hx else "text/html")
    assert all(word in caplog.text for word in (ADDRESS, *SETTINGS))
    assert "secret-name" not in page + caplog.text


@pytest.mark.parametrize("origin", ["null", "https://<script>", "https://a b", "x" * 500])
def test_an_origin_that_is_no_address_is_not_repeated(origin: str) -> None:
    answer = Client(enforce_csrf_checks=True).post("/login/", {}, headers={"Origin": origin})
    page = answer.content.decode()
    assert answer.status_code == 403
    assert "does not tell from which page" in page
    assert origin not in page.replace("null", "", 1) or origin == "null"


def test_a_form_without_a_token_is_told_to_load_its_page_again() -> None:
    answer = Client(enforce_csrf_checks=True).post("/login/", {})
    assert answer.status_code == 403
    assert "Load the page again" in answer.content.decode()


def test_a_message_of_an_unknown_address_is_told_its_setting(user: User) -> None:
    browser = APIClient(enforce_csrf_checks=True)
    browser.force_login(user)
    answer = browser.post("/api/v1/sessions", {}, headers={"Origin": ADDRESS})
    assert answer.status_code == 403
    assert all(word in answer.json()["detail"] for word in (ADDRESS, *SETTINGS))


@pytest.mark.parametrize("path", ["/", "/login/", "/api/v1/sessions", "/v1/models"])
def test_an_unknown_name_is_told_its_setting(caplog: pytest.LogCaptureFixture, path: str) -> None:
    answer = Client().get(path, headers={"Host": "chat.lan:8000"})
    text = answer.content.decode()
    assert answer.status_code == 400
    assert all(word in text for word in ("chat.lan:8000", *SETTINGS))
    assert "secret-name" not in text
    assert "chat.lan:8000" in caplog.text


def test_a_name_that_is_none_is_not_repeated(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    answer = Client().get("/login/", headers={"Host": "<b>x</b>"})
    assert answer.status_code == 400
    assert "<b>x" not in answer.content.decode()
    assert SETTINGS[1] in answer.content.decode()
