"""Accounts in a real browser: an invitation, a lost password, a second factor, single sign-on."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from django.contrib.auth.models import Group, User
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect

from chatcore.contrib.invitations.links import create_invitation
from tests.conftest import Live
from tests.support.browsing import ACTION_TIMEOUT, PHONE
from tests.support.identity_provider import build_settings, run_identity_provider
from tests.web.test_axe import find_objections

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PASSWORD = "alice's password"
NEW_PASSWORD = "a longer password than before"


@pytest.fixture
def stranger(browser: Browser, live: Live) -> Iterator[Page]:
    """Open a narrow, dark page of somebody who is not signed in."""
    context = browser.new_context(
        viewport={"width": PHONE["width"], "height": PHONE["height"]},
        base_url=live.url,
        locale="en-US",
        color_scheme="dark",
    )
    context.set_default_timeout(ACTION_TIMEOUT)
    new_page = context.new_page()
    problems: list[str] = []
    new_page.on(
        "console",
        lambda line: problems.append(line.text) if "Content Security Policy" in line.text else None,
    )
    yield new_page
    context.close()
    assert not problems, problems


def expect_signed_in(page: Page, name: str) -> None:
    page.goto("/settings/")
    expect(page.get_by_text(f"Signed in as {name}.")).to_be_visible()


def press_and_leave(page: Page, name: str) -> None:
    """Press a button that sends a form, and wait for the page that comes if it is taken."""
    form = page.url
    page.get_by_role("button", name=name).click()
    page.wait_for_url(lambda url: url != form)


def expect_calm(page: Page) -> None:
    assert not find_objections(page), page.url
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), page.url


@pytest.mark.slow
def test_somebody_is_invited_and_signs_up(stranger: Page, settings: Any) -> None:
    settings.SIGN_UP = "invitation"
    _, path = create_invitation(made_by=None)
    stranger.goto(path)
    expect(stranger.get_by_role("heading", name="Create an account")).to_be_visible()
    expect_calm(stranger)
    stranger.get_by_label("Username").fill("carol")
    stranger.get_by_label("Password").fill(NEW_PASSWORD)
    press_and_leave(stranger, "Create account")
    expect_signed_in(stranger, "carol")


@pytest.mark.slow
def test_a_lost_password_is_set_anew(
    stranger: Page, user: User, settings: Any, mailoutbox: list[Any]
) -> None:
    settings.SENDS_EMAIL = True
    EmailAddress.objects.create(user=user, email="alice@example.com", verified=True, primary=True)
    stranger.goto("/login/")
    expect_calm(stranger)
    stranger.get_by_role("link", name="Forgotten password").click()
    stranger.get_by_label("Email").fill("alice@example.com")
    expect_calm(stranger)
    stranger.get_by_role("button", name="Send the link").click()
    expect(stranger.get_by_role("heading", name="Look into your mail")).to_be_visible()
    found = re.search(r"http\S+/account/password/reset/\S+", mailoutbox[0].body)
    assert found
    stranger.goto(found[0])
    stranger.get_by_label("New Password", exact=True).fill(NEW_PASSWORD)
    stranger.get_by_label("New Password (again)").fill(NEW_PASSWORD)
    expect_calm(stranger)
    stranger.get_by_role("button", name="Set password").click()
    stranger.get_by_role("link", name="Sign in").click()
    stranger.get_by_label("Name or e-mail address").fill("alice@example.com")
    stranger.get_by_label("Password").fill(NEW_PASSWORD)
    press_and_leave(stranger, "Sign in")
    expect_signed_in(stranger, "alice")


def test_a_second_factor_is_set_up_and_asked_for(stranger: Page, user: User, settings: Any) -> None:
    settings.MFA_TOTP_TOLERANCE = 1  # thirty seconds may end between reading and entering
    sign_in_by_password(stranger)
    stranger.goto("/settings/")
    stranger.get_by_role("link", name="Second factor").click()
    expect_calm(stranger)
    stranger.get_by_role("link", name="Set up an app").click()
    stranger.get_by_label("Password").fill(PASSWORD)
    expect_calm(stranger)
    stranger.get_by_role("button", name="Continue").click()
    expect(stranger.get_by_alt_text("Picture with the key")).to_be_visible()
    secret = stranger.locator(".door-key").inner_text()
    expect_calm(stranger)
    stranger.get_by_label("Authenticator code").fill(read_code(secret))
    stranger.get_by_role("button", name="Switch on").click()
    expect(stranger.get_by_role("heading", name="Recovery codes")).to_be_visible()
    expect_calm(stranger)
    code = stranger.locator(".door-codes code").first.inner_text()
    stranger.context.clear_cookies()
    sign_in_by_password(stranger)
    expect(stranger.get_by_role("heading", name="Second factor")).to_be_visible()
    expect_calm(stranger)
    stranger.get_by_label("Code").fill(code)
    press_and_leave(stranger, "Sign in")
    expect_signed_in(stranger, "alice")


def sign_in_by_password(page: Page) -> None:
    page.goto("/login/")
    page.get_by_label("Name").fill("alice")
    page.get_by_label("Password").fill(PASSWORD)
    press_and_leave(page, "Sign in")


def read_code(secret: str) -> str:
    """Return the code that an app with this key shows now."""
    return format_hotp_value(hotp_value(secret, int(timezone.now().timestamp()) // 30))


@pytest.mark.slow
def test_an_identity_provider_signs_on_with_its_groups(stranger: Page, settings: Any) -> None:
    Group.objects.create(name="Support")
    Group.objects.create(name="Operators")
    settings.OIDC_GROUPS_CLAIM = "groups"
    claims = {
        "preferred_username": "dora",
        "email": "dora@example.com",
        "email_verified": True,
        "groups": ["Support", "Somebody else's group"],
    }
    with run_identity_provider(dora=claims) as issuer:
        settings.SOCIALACCOUNT_PROVIDERS = build_settings(issuer)
        for _ in range(2):
            stranger.context.clear_cookies()
            stranger.goto("/login/")
            stranger.get_by_role("link", name="Sign in with Example SSO").click()
            stranger.wait_for_url(f"{issuer}/**")
            stranger.get_by_role("button", name="dora").click()
            stranger.wait_for_url(re.compile(r"127\.0\.0\.1:\d+/(new/|c/|$)"))
            dora = User.objects.get(username="dora")
            assert [group.name for group in dora.groups.all()] == ["Support"]
            dora.groups.set(Group.objects.all())
        expect_signed_in(stranger, "dora")
        stranger.get_by_role("link", name="Ways to sign on").click()
        expect(stranger.get_by_role("radio", name="Example SSO dora")).to_be_visible()
        expect_calm(stranger)
    stranger.context.clear_cookies()
    stranger.goto("/login/")
    stranger.get_by_role("link", name="Sign in with Example SSO").click()
    expect(stranger.get_by_role("heading", name="Signing on did not work")).to_be_visible()
