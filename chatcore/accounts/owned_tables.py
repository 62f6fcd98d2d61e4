"""The tables whose rows belong to a person, for what takes all of a person's out or away."""

from django.db.models import Model
from django.db.models.fields.reverse_related import ForeignObjectRel

from chatcore.models import Session


def list_owned_tables(user_model: type[Model]) -> list[tuple[type[Model], str]]:
    """Return the tables that refer to users, with the name of the column; sessions aside."""
    relations = [
        field
        for field in user_model._meta.get_fields(include_hidden=True)
        if isinstance(field, ForeignObjectRel) and not field.many_to_many
    ]
    tables: list[tuple[type[Model], str]] = [
        (relation.related_model, relation.field.name)
        for relation in relations
        if relation.related_model is not Session
    ]
    return sorted(tables, key=lambda table: (table[0]._meta.label, table[1]))
