"""One row of any model, for tests that walk over all models."""

from typing import Any

from django.db.models import ForeignKey, Model
from django.utils import timezone
from django_q.models import Failure, OrmQ, Success
from django_q.signing import SignedPackage

# What no field tells: whether a task of the queue succeeded, and that its message is signed.
VALUES: dict[type[Model], dict[str, Any]] = {
    Success: {"success": True},
    Failure: {"success": False},
    OrmQ: {"payload": SignedPackage.dumps({"id": "1", "name": "task", "func": "f"})},
}


def make_row(model: type[Model]) -> Model:
    """Create a row, and the rows that it must refer to; take an existing one where there is one."""
    values = {
        field.name: _make_value(field)
        for field in model._meta.concrete_fields
        if not (field.has_default() or field.null or field.blank)
    }
    row = model(**values | VALUES.get(model, {}))
    row.save()
    return row


def _make_value(field: Any) -> Any:
    if isinstance(field, ForeignKey):
        return field.related_model._default_manager.first() or make_row(field.related_model)
    if field.choices:
        return field.flatchoices[0][0]
    match field.get_internal_type():
        case "DateTimeField":
            return timezone.now()
        case "DateField":
            return timezone.now().date()
        case "CharField" | "TextField" | "SlugField":
            return "text"
        case "GenericIPAddressField":
            return "127.0.0.1"
        case "JSONField":
            return {}
        case _:
            return 1
