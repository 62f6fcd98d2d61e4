"""Guessing passwords: after ten wrong ones none is tried for a while, by account and by address."""

import re
from datetime import timedelta

import pytest
import time_machine
from allauth.account.models import EmailAddress
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from chatcore.web import sign_in

pytestmark = pytest.mark.django_db
LIMIT = 10
RIGHT = "alice's password"


def try_password(
    password: str, *, name: str = "alice", address: str = "192.0.2.7", path: str = "/login/"
) -> HttpResponse:
    fields = {"username": name, "password": password}
    return Client(REMOTE_ADDR=address).post(path, fields)  # type: ignore[return-value]


def guess(count: int = LIMIT, **options: str) -> list[int]:
    return [try_password(f"wrong {number}", **options).status_code for number in range(count)]


def test_after_ten_wrong_passwords_the_right_one_has_to_wait(user: User) -> None:
    assert guess() == [200] * (LIMIT - 1) + [429]
    page = try_password(RIGHT)
    assert page.status_code == 429
    assert re.search(r"Try again in\s+10 minutes", page.content.decode())
    assert 590 <= int(page.headers["Retry-After"]) <= 600
    with time_machine.travel(timezone.now() + timedelta(minutes=5)):
        # An attempt meanwhile does not make the pause longer.
        assert re.search(r"Try again in\s+[56] minutes", try_password(RIGHT).content.decode())
    with time_machine.travel(timezone.now() + timedelta(minutes=11)):
        assert try_password(RIGHT).status_code == 302


def test_nine_wrong_passwords_are_forgiven(user: User) -> None:
    guess(LIMIT - 1)
    assert try_password(RIGHT).status_code == 302


def test_guesses_are_counted_by_account_from_wherever_they_come(user: User) -> None:
    for number in range(LIMIT):
        guess(1, address=f"198.51.100.{number}")
    assert try_password(RIGHT, address="203.0.113.9").status_code == 429
    User.objects.create_user("bob", password="bob's password")
    assert try_password("bob's password", name="bob", address="203.0.113.9").status_code == 302


def test_an_account_is_counted_once_however_its_address_is_spelled(user: User) -> None:
    EmailAddress.objects.create(user=user, email="alice@example.com", verified=True)
    word = "alice@example.com"
    for number in range(LIMIT):
        name = "".join(
            letter.upper() if number >> place & 1 else letter for place, letter in enumerate(word)
        )
        guess(1, name=name, address=f"198.51.100.{number}")
    for name in ("alice", word, word.upper()):
        assert try_password(RIGHT, name=name, address="203.0.113.9").status_code == 429, name


def test_an_address_of_nobody_is_counted_once_too(user: User) -> None:
    for number, name in enumerate(["x@y.test", "X@y.test", "X@Y.test", "X@Y.TEST", "x@Y.test"] * 2):
        guess(1, name=name, address=f"198.51.100.{number}")
    assert try_password(RIGHT, name="x@y.TEST", address="203.0.113.9").status_code == 429


def test_guesses_are_counted_by_address_whoever_is_meant(user: User) -> None:
    for number in range(LIMIT):
        guess(1, name=f"somebody {number}")
    assert try_password(RIGHT).status_code == 429
    assert try_password(RIGHT, address="203.0.113.9").status_code == 302


def test_an_account_of_ones_own_forgives_no_guesses(user: User) -> None:
    User.objects.create_user("mallory", password="mallory's password")
    for number in range(LIMIT):
        assert try_password("mallory's password", name="mallory").status_code == 302, number
        guess(1)
    assert try_password("mallory's password", name="mallory").status_code == 429


def test_the_admin_counts_with_the_pages(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_staff=True)
    guess(5)
    guess(5, path="/admin/login/")
    for path in ("/login/", "/admin/login/"):
        page = try_password(RIGHT, path=path)
        assert page.status_code == 429
        assert "Too many wrong passwords" in page.content.decode()


def test_who_is_not_there_waits_as_long_as_who_is(user: User) -> None:
    assert guess(name="nobody") == guess(address="198.51.100.1")


def test_the_log_has_the_address_and_no_word_of_the_form(
    user: User, caplog: pytest.LogCaptureFixture
) -> None:
    guess(2)
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("axes")]
    assert len([line for line in lines if "192.0.2.7 at /login/" in line]) == 2
    assert "wrong" not in " ".join(lines)
    assert "alice" not in " ".join(lines)


def test_the_printed_link_still_signs_in(user: User) -> None:
    guess()
    client = Client(REMOTE_ADDR="192.0.2.7")
    client.post(f"/login/once/{sign_in.issue_token(user)}/")
    assert client.get("/settings/").status_code == 200
