"""Single sign-on believes what the provider has signed for this sign-on, and nothing else."""

import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from chatcore.accounts.settings import _read_identity_provider
from tests.support.forging_provider import ForgingProvider, make_key, run_forging_provider
from tests.support.identity_provider import build_settings
from tests.support.slow_params import mark_others_slow

pytestmark = pytest.mark.django_db
LOGIN = "/account/oidc/oidc/login/"
Forgery = Callable[[ForgingProvider], Any]


@pytest.fixture
def provider(settings: Any) -> Iterator[ForgingProvider]:
    with run_forging_provider() as provider:
        settings.SOCIALACCOUNT_PROVIDERS = build_settings(provider.url)
        yield provider


def sign_on(client: Client, provider: ForgingProvider, forge: Forgery | None = None) -> bool:
    """Sign on as a browser does; return whether somebody is signed in afterwards."""
    location = client.get(LOGIN).headers["Location"]
    assert location.startswith(f"{provider.url}/authorization?")
    query = {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}
    provider.reset(query["nonce"])
    if forge:
        forge(provider)
    answer = client.get(f"{LOGIN}callback/", {"code": "c", "state": query["state"]})
    assert answer.status_code in (200, 302, 401, 503), answer.status_code
    return client.get("/settings/").status_code == 200


def test_what_the_provider_has_signed_signs_in(provider: ForgingProvider) -> None:
    for _ in range(2):
        assert sign_on(Client(), provider)
    assert User.objects.get().username == "dora"


FORGERIES: dict[str, Forgery] = {
    "no signature": lambda it: vars(it).update(algorithm="none", signing_key=""),
    "another key": lambda it: vars(it).update(signing_key=make_key()),
    "the client's secret": lambda it: vars(it).update(
        algorithm="HS256", signing_key="a secret of tests that is long enough"
    ),
    "no id token": lambda it: vars(it).update(sends_id_token=False),
    "no nonce": lambda it: it.claims.pop("nonce"),
    "another nonce": lambda it: it.claims.update(nonce="x"),
    "another issuer": lambda it: it.claims.update(iss="https://other.example"),
    "another client": lambda it: it.claims.update(aud="other"),
    "no end": lambda it: it.claims.pop("exp"),
    "over": lambda it: it.claims.update(exp=int(time.time()) - 3_600),
    "another person's userinfo": lambda it: it.userinfo.update(sub="root"),
    "nobody's userinfo": lambda it: it.userinfo.pop("sub"),
    "keys without TLS": lambda it: it.config.update(jwks_uri="http://keys.example/"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_answer_signs_nobody_in(provider: ForgingProvider, name: str) -> None:
    assert not sign_on(Client(), provider, FORGERIES[name])
    assert not User.objects.exists()


def test_an_answer_of_one_sign_on_does_not_fit_another(provider: ForgingProvider) -> None:
    first = Client()
    assert sign_on(first, provider)
    replayed = dict(provider.claims)
    assert not sign_on(Client(), provider, lambda it: it.claims.update(nonce=replayed["nonce"]))


def test_a_provider_that_names_plain_http_is_not_gone_to(provider: ForgingProvider) -> None:
    provider.config = {"token_endpoint": "http://token.example/"}
    assert Client().get(LOGIN).status_code == 503


@pytest.mark.parametrize(
    ("word", "is_verified"),
    [
        (True, True),
        ("true", True),
        ("false", False),
        ("yes", False),
        *((word, False) for word in (None, 1, 1.5, [True])),
    ],
)
def test_only_true_verifies_an_address(
    provider: ForgingProvider, word: Any, is_verified: bool
) -> None:
    facts = {"email": "dora@example.com", "email_verified": word}
    assert sign_on(Client(), provider, lambda it: it.userinfo.update(facts))
    assert EmailAddress.objects.get().verified == is_verified


@pytest.mark.parametrize(
    "value", mark_others_slow([[1], {"a": 1}, 5, True, "x" * 5_000, "a\0b", "\ud800"])
)
@pytest.mark.parametrize(
    "name",
    [
        "sub",
        "email",
        "preferred_username",
        "name",
        "given_name",
        "family_name",
        "x",
        "groups",
    ],
)
def test_a_claim_that_cannot_be_read_is_refused_in_words_or_left_out(
    provider: ForgingProvider, settings: Any, name: str, value: Any
) -> None:
    settings.OIDC_GROUPS_CLAIM = "groups"

    def forge(it: ForgingProvider) -> None:
        it.userinfo[name] = value
        if name == "sub":
            it.claims[name] = value

    is_signed_in = sign_on(Client(), provider, forge)
    is_list_of_groups = name == "groups" and isinstance(value, list)
    if name != "x" and not isinstance(value, str) and not is_list_of_groups:
        assert not is_signed_in


@pytest.mark.parametrize("value", [[], "dora", None, 5])
def test_a_userinfo_that_is_no_object_signs_nobody_in(
    provider: ForgingProvider, value: Any
) -> None:
    assert not sign_on(Client(), provider, lambda it: vars(it).update(userinfo=value))


@pytest.mark.parametrize(
    ("issuer", "is_taken"),
    [
        ("https://sso.example.com/realms/a", True),
        ("http://localhost:8080", True),
        ("http://127.0.0.1:8080", True),
        ("http://sso.example.com", False),
        ("http://localhost.example.com", False),
        ("http://[::1", False),
        ("sso.example.com", False),
    ],
)
def test_an_issuer_outside_of_this_machine_has_tls(
    monkeypatch: pytest.MonkeyPatch, issuer: str, is_taken: bool
) -> None:
    monkeypatch.setenv("CHATCORE_OIDC_ISSUER", issuer)
    monkeypatch.setenv("CHATCORE_OIDC_CLIENT_ID", "chatcore")
    monkeypatch.setenv("CHATCORE_OIDC_CLIENT_SECRET", "a secret of tests")
    if is_taken:
        assert _read_identity_provider()["openid_connect"]["APPS"]
    else:
        with pytest.raises(ImproperlyConfigured, match="TLS"):
            _read_identity_provider()
