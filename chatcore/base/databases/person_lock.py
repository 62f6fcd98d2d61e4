"""Let the requests of one person count and add one after the other, where a limit is counted."""

from typing import Any

from django.contrib.auth import get_user_model


def lock_person(owner_id: Any) -> None:
    """Lock the person's row until the transaction ends. It is taken before any other lock."""
    people = get_user_model()._default_manager.filter(pk=owner_id)
    people.select_for_update(no_key=True).values_list("pk").first()
