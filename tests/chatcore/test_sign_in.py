"""The one-time sign-in link: for one user, once, for 15 minutes."""

from datetime import timedelta

import pytest
import time_machine
from django.contrib.auth.models import User
from django.core.cache import cache
from django.utils import timezone

from chatcore.web import sign_in

pytestmark = pytest.mark.django_db


def test_a_token_signs_its_user_in_once(user: User) -> None:
    token = sign_in.issue_token(user)
    assert sign_in.redeem_token(token) == user
    assert sign_in.redeem_token(token) is None


def test_a_newer_token_leaves_an_older_one_alone(user: User) -> None:
    tokens = [sign_in.issue_token(user), sign_in.issue_token(user)]
    assert [sign_in.redeem_token(token) for token in tokens] == [user, user]


@pytest.mark.parametrize(("minutes", "works"), [(14, True), (16, False)])
def test_a_token_lives_fifteen_minutes(user: User, minutes: int, works: bool) -> None:
    token = sign_in.issue_token(user)
    with time_machine.travel(timezone.now() + timedelta(minutes=minutes), tick=False):
        assert (sign_in.redeem_token(token) == user) is works


@pytest.mark.parametrize("token", ["", "x", "a:b:c", "\x00", "é:é:é"])
def test_a_made_up_token_signs_nobody_in(token: str) -> None:
    assert sign_in.redeem_token(token) is None


def test_a_signature_alone_is_not_enough(user: User) -> None:
    token = sign_in.issue_token(user)
    cache.clear()
    assert sign_in.redeem_token(token) is None


def test_a_user_who_was_switched_off_stays_out(user: User) -> None:
    token = sign_in.issue_token(user)
    User.objects.update(is_active=False)
    assert sign_in.redeem_token(token) is None


def test_the_first_administrator_is_made_without_a_password() -> None:
    administrator = sign_in.ensure_administrator()
    assert administrator
    assert (
        administrator.username,
        administrator.is_superuser,
        administrator.has_usable_password(),
    ) == ("admin", True, False)
    assert sign_in.ensure_administrator() == administrator


def test_an_ordinary_user_called_admin_is_not_promoted() -> None:
    User.objects.create_user("admin")
    assert sign_in.ensure_administrator() is None
