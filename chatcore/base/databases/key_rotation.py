"""Encrypt every stored secret anew with the first key, so that older keys can be dropped."""

from dataclasses import dataclass, field

from allauth.mfa.models import Authenticator
from django.apps import apps
from django.db.models import Model

from models_registry import keys

# What clients hold, as sealed reasoning, is in no column.
COLUMNS_OF_OTHERS: list[tuple[type[Model], str]] = [(Authenticator, "data")]
# The members of a second factor's data that allauth encrypts.
FACTOR_MEMBERS = ("secret", "seed", "migrated_codes")


@dataclass
class Rotation:
    """How many secrets were encrypted anew, and the names of those that no key opens."""

    rotated_count: int = 0
    unreadable_names: list[str] = field(default_factory=list)


def list_secret_columns() -> list[tuple[type[Model], str]]:
    """Return where secrets are stored: what models name in `secret_columns`."""
    own_columns = [
        (model, column)
        for model in apps.get_models()
        for column in getattr(model, "secret_columns", ())
    ]
    return own_columns + COLUMNS_OF_OTHERS


def rotate_stored_secrets() -> Rotation:
    """Encrypt what is not encrypted with the first key. It may be broken off and run again."""
    rotation = Rotation()
    for model, column in list_secret_columns():
        rows = model._default_manager.exclude(**{column: ""}).values_list("pk", column)
        for pk, value in rows.iterator():
            try:
                new_value = _rotate_value(value)
            except keys.UnreadableKey:
                rotation.unreadable_names.append(f"{model._meta.verbose_name} {pk}")
                continue
            if new_value == value:
                continue
            # Not over what somebody has entered meanwhile: that has the first key already.
            unchanged_row = model._default_manager.filter(**{"pk": pk, column: value})
            rotation.rotated_count += unchanged_row.update(**{column: new_value})
    return rotation


def _rotate_value(value: object) -> object:
    """Return the value with its secrets encrypted anew. Raises UnreadableKey."""
    if isinstance(value, str):
        return value if keys.is_newest(value) else keys.rotate(value)
    if isinstance(value, list):
        return [_rotate_value(item) for item in value]
    assert isinstance(value, dict)
    return value | {name: _rotate_value(value[name]) for name in FACTOR_MEMBERS if value.get(name)}
