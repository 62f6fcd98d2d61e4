"""What signed people in goes when it is over, also when nobody comes back to it."""

from datetime import timedelta

import pytest
from allauth.usersessions.models import UserSession
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session as BrowserSession
from django.test import Client
from django.utils import timezone
from knox.models import AuthToken

from chatcore.accounts.expiry import delete_expired_sign_ins
from chatcore.accounts.tokens import create_token
from chatcore.api.idempotency import delete_old_keys
from chatcore.base.databases import batches
from chatcore.contrib.holds.models import Hold
from chatcore.models import TokenName
from chatcore.serving import lifespan

pytestmark = pytest.mark.django_db(transaction=True)
DAY = timedelta(days=1)


def sign_in(user: User) -> str:
    """Sign a browser in and let it read a page, and return the key of its session."""
    browser = Client()
    browser.force_login(user)
    assert browser.get("/settings/").status_code == 200
    key = browser.session.session_key
    assert key
    assert UserSession.objects.filter(session_key=key).exists()
    return key


def test_expired_sign_ins_are_deleted_and_others_stay(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH_ROWS", 2)
    expired, valid = [sign_in(user) for _ in range(5)], sign_in(user)
    ago = timezone.now() - 20 * DAY
    BrowserSession.objects.filter(pk__in=expired).update(expire_date=ago)
    UserSession.objects.filter(session_key__in=expired).update(last_seen_at=ago)
    BrowserSession.objects.filter(pk=expired[0]).delete()  # by a sign-out of Django's own
    for expiry in (-DAY, DAY, None):
        create_token(user, name="cron", expiry=expiry)
    for number, age in enumerate((0 * DAY, DAY)):
        attempt = AccessAttempt.objects.create(
            username="alice", ip_address=f"10.0.0.{number}", failures_since_start=3
        )
        AccessAttempt.objects.filter(pk=attempt.pk).update(attempt_time=timezone.now() - age)
    delete_expired_sign_ins()
    assert [row.pk for row in BrowserSession.objects.all()] == [valid]
    assert [row.session_key for row in UserSession.objects.all()] == [valid]
    assert AuthToken.objects.count() == TokenName.objects.count() == 2
    assert AccessAttempt.objects.get().ip_address == "10.0.0.0"
    assert delete_expired_sign_ins() == 0


def test_a_browser_that_is_just_signing_in_stays(user: User) -> None:
    key = sign_in(user)
    BrowserSession.objects.all().delete()
    delete_expired_sign_ins()
    assert UserSession.objects.get().session_key == key


def test_what_is_on_hold_stays(user: User) -> None:
    Hold.objects.create(user=user, reason="A lawsuit.")
    create_token(user, name="cron", expiry=-DAY)
    delete_expired_sign_ins()
    assert TokenName.objects.get().name == "cron"


def test_web_processes_do_it_and_delete_old_keys_of_requests() -> None:
    assert {delete_expired_sign_ins, delete_old_keys} <= {run for _, run in lifespan.DELETIONS}
