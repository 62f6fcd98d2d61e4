"""Accounts: who may make one, passwords that people change and reset, and second factors."""

import re
from typing import Any

import pytest
import time_machine
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from allauth.usersessions.models import UserSession
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from knox.models import AuthToken

from chatcore.base.environment import read_email
from chatcore.web.sign_in import build_link_path

pytestmark = pytest.mark.django_db
PASSWORD = "alice's password"
NEW_PASSWORD = "a longer password than before"


@pytest.fixture
def with_email(settings: Any) -> None:
    settings.SENDS_EMAIL = True
    settings.NAMED_HOSTS = ["testserver"]


def sign_up(client: Client, name: str = "carol") -> Any:
    return client.post("/account/sign-up/", {"username": name, "password1": NEW_PASSWORD})


def sign_in(client: Client, password: str = PASSWORD, name: str = "alice") -> Any:
    return client.post("/login/", {"username": name, "password": password})


def is_signed_in(client: Client) -> bool:
    return client.get("/settings/").status_code == 200


def test_nobody_signs_up_where_nothing_is_set(client: Client) -> None:
    assert "Ask them for one" in client.get("/account/sign-up/").content.decode()
    sign_up(client)
    assert not User.objects.exists()


def test_a_changed_password_keeps_this_browser_and_ends_the_rest(user: User) -> None:
    here, elsewhere = Client(), Client()
    AuthToken.objects.create(user)
    for client in (here, elsewhere):
        sign_in(client)
    fields = {"oldpassword": PASSWORD, "password1": NEW_PASSWORD, "password2": NEW_PASSWORD}
    assert here.post("/account/password/", fields).headers["Location"] == "/settings/"
    assert (is_signed_in(here), is_signed_in(elsewhere)) == (True, False)
    assert not AuthToken.objects.exists()


def test_a_reset_link_sets_a_password_once(
    user: User, with_email: None, mailoutbox: list[Any], client: Client
) -> None:
    EmailAddress.objects.create(user=user, email="alice@example.com", verified=True, primary=True)
    AuthToken.objects.create(user)
    client.post("/account/password/reset/", {"email": "alice@example.com"})
    found = re.search(r"http\S+(/account/password/reset/\S+)", mailoutbox[0].body)
    assert found
    form = client.get(found[1], follow=True)
    path = form.redirect_chain[-1][0]
    client.post(path, {"password1": NEW_PASSWORD, "password2": NEW_PASSWORD})
    assert sign_in(Client(), NEW_PASSWORD, "alice@example.com").status_code == 302
    assert not AuthToken.objects.exists()
    assert "too old" in Client().get(found[1], follow=True).content.decode()


@pytest.mark.parametrize(
    ("public_url", "named", "host", "origin"),
    [
        ("https://chat.example.com", [], "127.0.0.1:6666", "https://chat.example.com"),
        ("", ["chat.example.com"], "chat.example.com", "http://chat.example.com"),
        ("", ["chat.example.com"], "chat.example.com:6666", "http://chat.example.com"),
        ("", ["chat.example.com"], "localhost:6666", None),
        ("", ["*"], "evil.example", None),
        ("", [], "localhost:6666", "http://localhost:80"),
    ],
)
def test_no_link_in_a_mail_follows_the_host_that_a_request_made_up(
    user: User,
    with_email: None,
    mailoutbox: list[Any],
    settings: Any,
    public_url: str,
    named: list[str],
    host: str,
    origin: str | None,
) -> None:
    EmailAddress.objects.create(user=user, email="alice@example.com", verified=True, primary=True)
    settings.PUBLIC_URL, settings.NAMED_HOSTS = public_url, named
    settings.ALLOWED_HOSTS = ["*"]
    client = Client(raise_request_exception=False)
    statuses = set()
    for address in ("alice@example.com", "nobody@example.com"):
        answer = client.post("/account/password/reset/", {"email": address}, headers={"Host": host})
        statuses.add(answer.status_code)
    assert statuses == ({302} if origin else {400})
    links = re.findall(r"(https?://[^/\s]+)/account", " ".join(mail.body for mail in mailoutbox))
    assert set(links) == ({origin} if origin else set())


def test_a_reset_does_not_tell_whether_an_address_is_known(
    user: User, with_email: None, client: Client
) -> None:
    EmailAddress.objects.create(user=user, email="alice@example.com", verified=True, primary=True)
    answers = []
    for address in ("alice@example.com", "nobody@example.com"):
        answer = client.post("/account/password/reset/", {"email": address}, follow=True)
        answers.append((answer.redirect_chain, answer.content))
    assert answers[0] == answers[1]


def test_an_address_signs_in_only_once_it_is_verified(user: User) -> None:
    row = EmailAddress.objects.create(user=user, email="alice@example.com", primary=True)
    assert sign_in(Client(), PASSWORD, "alice@example.com").status_code == 200
    EmailAddress.objects.filter(pk=row.pk).update(verified=True)
    assert sign_in(Client(), PASSWORD, "alice@example.com").status_code == 302


def confirm(client: Client) -> None:
    """Enter the password again, as sensitive changes ask for."""
    client.post("/account/confirm/", {"password": PASSWORD})


def switch_second_factor_on(client: Client) -> str:
    """Set an authenticator app up as a person does; return its key."""
    confirm(client)
    page = client.get("/account/second-factor/app/").content.decode()
    found = re.search(r'door-key">(\w+)<', page)
    assert found, page
    client.post("/account/second-factor/app/", {"code": read_code(found[1])})
    return found[1]


def read_code(secret: str, *, steps: int = 0) -> str:
    """Return the code that an app with this key shows."""
    step = int(timezone.now().timestamp()) // 30 + steps
    return format_hotp_value(hotp_value(secret, step))


def test_a_second_factor_is_asked_for_everywhere(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_staff=True)
    client = Client()
    sign_in(client)
    with time_machine.travel(timezone.now(), tick=False) as clock:
        secret = switch_second_factor_on(client)
        assert secret not in str(Authenticator.objects.values_list("data", flat=True))
        for path in ("/login/", "/admin/login/"):
            clock.shift(60)
            client = Client()
            answer = client.post(path, {"username": "alice", "password": PASSWORD})
            assert answer.headers["Location"].startswith("/account/second-factor/code/")
            assert not is_signed_in(client)
            assert client.get("/admin/").status_code == 302
            client.post("/account/second-factor/code/", {"code": "000000"})
            assert not is_signed_in(client)
            client.post("/account/second-factor/code/", {"code": read_code(secret)})
            assert is_signed_in(client)


def test_the_code_that_switched_the_factor_on_does_not_sign_in_too(user: User) -> None:
    with time_machine.travel(timezone.now(), tick=False):
        client = Client()
        sign_in(client)
        secret = switch_second_factor_on(client)
        other = Client()
        sign_in(other)
        other.post("/account/second-factor/code/", {"code": read_code(secret)})
        assert not is_signed_in(other)


def make_device_link(client: Client) -> str:
    page = client.post("/settings/devices/link/").content.decode()
    found = re.search(r"/login/once/[^/]+/", page)
    assert found, page
    return found[0]


def test_a_link_for_another_device_asks_for_the_second_factor(user: User) -> None:
    client = Client()
    sign_in(client)
    plain, phone = make_device_link(client), Client()
    assert phone.post(plain).headers["Location"] == "/"
    assert is_signed_in(phone)
    with time_machine.travel(timezone.now(), tick=False) as clock:
        secret = switch_second_factor_on(client)
        phone = Client()
        answer = phone.post(make_device_link(client))
        assert answer.headers["Location"].startswith("/account/second-factor/code/")
        assert not is_signed_in(phone)
        clock.shift(60)
        phone.post("/account/second-factor/code/", {"code": read_code(secret)})
        assert is_signed_in(phone)
        printed = Client()
        printed.post(build_link_path(user))  # the way back for who operates the machine
        assert is_signed_in(printed)


@pytest.mark.parametrize("act", ["password", "sign out", "sign the browser out"])
def test_a_link_for_another_device_ends_with_password_and_browser(user: User, act: str) -> None:
    intruder, owner, phone = Client(), Client(), Client()
    sign_in(intruder)
    sign_in(owner)
    link = make_device_link(intruder)
    if act == "password":
        user.set_password(NEW_PASSWORD)
        user.save()
    elif act == "sign out":
        intruder.post("/logout/")
        intruder.get("/login/")
        UserSession.objects.purge_and_list(user)
    else:
        owner.get("/settings/")
        owner.post("/settings/devices/others/end/")
    assert phone.post(link).status_code == 410
    assert not is_signed_in(phone)


@pytest.mark.parametrize("who", ["staff", "everybody"])
def test_who_must_have_a_second_factor_does_nothing_before_it(
    user: User, settings: Any, who: str
) -> None:
    client = Client()
    sign_in(client)
    settings.SECOND_FACTOR = who
    assert is_signed_in(client) == (who == "staff")
    User.objects.filter(pk=user.pk).update(is_staff=True)
    assert client.get("/settings/").headers["Location"] == "/account/second-factor/"
    assert client.get("/admin/").status_code == 302
    for path in ("/api/v1/sessions", "/v1/models"):
        assert client.get(path).status_code in (401, 403), path
    assert client.post("/settings/tokens/", {"name": "x"}).status_code == 302
    assert not AuthToken.objects.exists()
    switch_second_factor_on(client)
    assert is_signed_in(client)


def test_a_recovery_code_signs_in_once(user: User) -> None:
    client = Client()
    sign_in(client)
    switch_second_factor_on(client)
    page = client.get("/account/recovery-codes/").content.decode()
    found = re.search(r"<li><code>(.+?)</code>", page)
    assert found
    results = []
    for _ in range(2):
        client = Client()
        sign_in(client)
        client.post("/account/second-factor/code/", {"code": found[1]})
        results.append(is_signed_in(client))
    assert results == [True, False]


PAGES = (
    "/account/confirm/",
    "/account/password/",
    "/account/email/",
    "/account/second-factor/",
    "/account/second-factor/app/",
    "/account/sign-on/",
)
OPEN_PAGES = (
    "/login/",
    "/account/sign-up/",
    "/account/password/reset/",
    "/account/password/reset/sent/",
    "/account/password/reset/done/",
    "/account/inactive/",
    "/account/email/sent/",
    "/account/email/x/",
    "/account/sign-on/cancelled/",
    "/account/sign-on/error/",
)


@pytest.mark.parametrize("path", OPEN_PAGES)
def test_a_page_before_signing_in_wears_the_card(client: Client, path: str) -> None:
    assert_is_ours(client.get(path, follow=True).content.decode())


@pytest.mark.parametrize("path", PAGES)
def test_a_page_of_an_account_wears_the_card(user: User, path: str) -> None:
    client = Client()
    sign_in(client)
    confirm(client)
    assert_is_ours(client.get(path).content.decode())


def assert_is_ours(page: str) -> None:
    assert "door-card" in page
    assert not re.search(r"<script(?![^>]* src=)", page)
    assert " style=" not in page


def test_a_browser_elsewhere_is_listed_and_signed_out(user: User) -> None:
    agent = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
    here = Client()
    others = [Client(REMOTE_ADDR="192.0.2.7", HTTP_USER_AGENT=agent) for _ in range(3)]
    headless = "Mozilla/5.0 (X11; Linux x86_64) HeadlessChrome/148.0.0.0 Safari/537.36"
    sign_in(Client(HTTP_USER_AGENT=headless))
    for client in (here, *others):
        sign_in(client)
    page = here.get("/settings/").content.decode()
    assert page.count("Firefox, Linux") >= 3
    assert "Chrome, Linux" in page
    assert "192.0.2.7" in page
    address = re.findall(r"192.0.2.7.*?(/settings/devices/\d+/end/)", page, re.DOTALL)[0]
    assert here.post(address).status_code == 200
    assert sorted(is_signed_in(client) for client in others) == [False, True, True]
    here.post("/settings/devices/others/end/")
    assert not any(is_signed_in(client) for client in others)
    assert is_signed_in(here)


def test_nobody_signs_a_stranger_out(user: User) -> None:
    User.objects.create_user("mallory", password=PASSWORD)
    alice, mallory = Client(), Client()
    sign_in(alice)
    sign_in(mallory, name="mallory")
    found = UserSession.objects.get(user=user)
    assert mallory.post(f"/settings/devices/{found.pk}/end/").status_code == 404
    mallory.post("/settings/devices/others/end/")
    assert is_signed_in(alice)


def test_the_sign_in_page_needs_no_database(
    client: Client, settings: Any, django_assert_num_queries: Any
) -> None:
    app: dict[str, Any] = {
        "provider_id": "oidc",
        "name": "Our company",
        "client_id": "c",
        "secret": "s",
    }
    app["settings"] = {"server_url": "https://id.example.com"}
    settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"APPS": [app]}}
    with django_assert_num_queries(0):
        page = client.get("/login/").content.decode()
    assert "Our company" in page
    assert "/oidc/" in page


@pytest.mark.parametrize(
    ("url", "folder"), [("filemail:///var/mail", "/var/mail"), ("smtp://mail.example.com", None)]
)
def test_the_folder_of_mails_begins_at_the_root(
    monkeypatch: pytest.MonkeyPatch, url: str, folder: str | None
) -> None:
    monkeypatch.setenv("CHATCORE_EMAIL_URL", url)
    assert (read_email("CHATCORE_EMAIL_URL").get("EMAIL_FILE_PATH") or None) == folder
