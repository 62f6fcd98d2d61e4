"""Provider keys: encrypted in the database, in clear nowhere but where a request is sent."""

import pytest
from cryptography.fernet import Fernet
from django.db import connection

from models_registry import keys
from models_registry.keys import UnreadableKey
from models_registry.models import Provider

KEY = "sk-very-secret-0123456789"


@pytest.fixture
def provider(db: None) -> Provider:
    provider = Provider(name="acme", protocol="openai", api_key_env="ACME_API_KEY")
    provider.api_key = KEY
    provider.save()
    return provider


def use_keys(settings: object, *encryption_keys: str) -> None:
    values: dict[str, object] = settings.CHATCORE  # type: ignore[attr-defined]
    chatcore = {**values, "KEY_ENCRYPTION_KEYS": list(encryption_keys)}
    settings.CHATCORE = chatcore  # type: ignore[attr-defined]


def new_key() -> str:
    return Fernet.generate_key().decode()


def test_a_key_comes_back_for_the_provider_layer_only(provider: Provider) -> None:
    stored = Provider.objects.get(pk=provider.pk)
    assert stored.reveal_api_key() == KEY
    assert stored.api_key == "••••••••"


def test_a_key_may_be_given_to_the_constructor() -> None:
    provider = Provider(name="acme", protocol="openai", api_key=KEY)  # type: ignore[misc]
    assert provider.reveal_api_key() == KEY


def test_the_database_never_holds_a_key_in_clear(provider: Provider) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM models_registry_provider")
        assert KEY not in repr(cursor.fetchall())


def test_no_representation_shows_a_key(provider: Provider) -> None:
    assert KEY not in f"{provider!r} {provider} {provider.api_key} {provider.__dict__}"


def test_the_same_key_is_never_encrypted_to_the_same_text() -> None:
    assert keys.encrypt(KEY) != keys.encrypt(KEY)


def test_assigning_nothing_clears_the_key(provider: Provider) -> None:
    provider.api_key = ""
    assert provider.encrypted_api_key == ""
    assert provider.api_key == ""


def test_without_a_stored_key_the_named_variable_is_read(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.api_key = ""
    assert provider.reveal_api_key() == ""
    assert not provider.has_key()
    monkeypatch.setenv("ACME_API_KEY", "from the environment")
    assert provider.reveal_api_key() == "from the environment"
    assert provider.has_key()


def test_a_stored_key_wins_over_the_variable(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_API_KEY", "from the environment")
    assert provider.reveal_api_key() == KEY


def test_after_a_rotation_old_keys_open_and_new_ones_are_used(settings: object) -> None:
    old, new = new_key(), new_key()
    use_keys(settings, old)
    before = keys.encrypt(KEY)
    use_keys(settings, new, old)
    after = keys.encrypt(KEY)
    assert keys.decrypt(before) == KEY
    use_keys(settings, new)
    assert keys.decrypt(after) == KEY
    with pytest.raises(UnreadableKey):
        keys.decrypt(before)


def test_the_wrong_encryption_key_is_an_error_and_never_ciphertext(
    provider: Provider, settings: object
) -> None:
    use_keys(settings, new_key())
    with pytest.raises(UnreadableKey, match="enter it again") as caught:
        provider.reveal_api_key()
    assert provider.encrypted_api_key not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("token", ["", "not a token", "gAAAAA", KEY])
def test_what_is_no_token_is_unreadable(token: str) -> None:
    with pytest.raises(UnreadableKey):
        keys.decrypt(token)


def test_the_encryption_key_is_not_the_django_secret(settings: object) -> None:
    token = keys.encrypt(KEY)
    settings.SECRET_KEY = "another"  # type: ignore[attr-defined]
    assert keys.decrypt(token) == KEY
