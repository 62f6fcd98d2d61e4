"""`chatcore rotate_keys`: after it, the old encryption key can be dropped."""

from io import StringIO
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from cryptography.fernet import Fernet
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from chatcore.contrib.webhooks.models import Webhook
from models_registry import keys
from models_registry.models import Provider


def use_keys(settings: Any, *encryption_keys: str) -> None:
    settings.CHATCORE = {**settings.CHATCORE, "KEY_ENCRYPTION_KEYS": list(encryption_keys)}


def rotate() -> str:
    output = StringIO()
    call_command("rotate_keys", stdout=output)
    return output.getvalue()


def store_provider(name: str, key: str) -> Provider:
    provider = Provider(name=name, protocol="openai")
    provider.api_key = key
    provider.save()
    return provider


@pytest.mark.django_db
def test_every_stored_secret_can_be_read_with_the_new_key_alone(user: User, settings: Any) -> None:
    old_key, new_key = (Fernet.generate_key().decode() for _ in range(2))
    use_keys(settings, old_key)
    provider = store_provider("acme", "sk-1")
    Provider.objects.create(name="keyless", protocol="openai")
    webhook = Webhook.objects.create(
        owner=user, url="https://example.com/", secret=keys.encrypt("whsec")
    )
    factor = Authenticator.objects.create(
        user=user, type=Authenticator.Type.TOTP, data={"secret": keys.encrypt("BASE32")}
    )
    use_keys(settings, new_key, old_key)
    assert rotate().startswith("3 secrets ")
    assert rotate().startswith("0 secrets ")
    use_keys(settings, new_key)
    for row in (provider, webhook, factor):
        row.refresh_from_db()
    assert provider.reveal_api_key() == "sk-1"
    assert keys.decrypt(webhook.secret) == "whsec"
    assert keys.decrypt(factor.data["secret"]) == "BASE32"


@pytest.mark.django_db
def test_what_no_key_opens_is_named_and_the_rest_is_done(settings: Any) -> None:
    first, second, third = (Fernet.generate_key().decode() for _ in range(3))
    use_keys(settings, first)
    lost = store_provider("lost", "sk-1")
    use_keys(settings, second)
    store_provider("open", "sk-2")
    use_keys(settings, third, second)
    with pytest.raises(CommandError, match=f"provider {lost.pk}$"):
        rotate()
    use_keys(settings, third)
    assert Provider.objects.get(name="open").reveal_api_key() == "sk-2"
