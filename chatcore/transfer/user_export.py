"""Everything that is a user's, in one ZIP file: sessions with all versions, and the other rows."""

import json
import re
import zipfile
from typing import IO, Any

from django.contrib.auth.models import AbstractBaseUser
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Model
from django.db.models.fields.reverse_related import ForeignObjectRel

from chatcore.models import Session
from chatcore.transfer import exporter

PROFILE_FIELDS = ("username", "email", "first_name", "last_name", "date_joined", "last_login")
# A column of such a name may open something, and is of no use to its owner.
_SECRET_NAME = re.compile(r"encrypted|digest|secret|password|hash|(^|_)(key|token|data)$")
BATCH_SIZE = 500


def write_user_export(user: AbstractBaseUser, file: IO[bytes]) -> int:
    """Write the user's data into a file as ZIP; return the number of sessions.

    `sessions/ID.json` can be imported again. `rows/` has the rows of other tables that belong to
    the user, as JSON, without anything secret.
    """
    sessions = Session.objects.filter(owner=user.pk).select_related("model__provider")
    count = 0
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        profile = {name: getattr(user, name, None) for name in PROFILE_FIELDS}
        _write_json(archive, "profile.json", profile)
        for session in sessions.order_by("created_at", "pk").iterator(chunk_size=BATCH_SIZE):
            _write_json(archive, f"sessions/{session.pk}.json", exporter.export_session(session))
            count += 1
        for model, field_name in list_owned_tables(type(user)):
            rows = list(_read_rows(model, field_name, user))
            if rows:
                _write_json(archive, f"rows/{model._meta.label_lower}.{field_name}.json", rows)
    return count


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


def _read_rows(model: type[Model], field_name: str, user: AbstractBaseUser) -> Any:
    names = [
        field.attname
        for field in model._meta.concrete_fields
        if not _SECRET_NAME.search(field.name)
    ]
    owned_rows = model._base_manager.filter(**{field_name: user.pk}).order_by("pk")
    return owned_rows.values(*names).iterator(chunk_size=BATCH_SIZE)


def _write_json(archive: zipfile.ZipFile, name: str, value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=1, cls=DjangoJSONEncoder)
    archive.writestr(name, text)
