"""Write the owners of the rows that are there, in short transactions; it can be repeated."""

from typing import Any

from django.db import migrations, transaction
from django.db.models import OuterRef, Subquery

BATCH_ROWS = 2_000


def fill_in(apps: Any, schema_editor: Any) -> None:
    alias = schema_editor.connection.alias
    sessions = apps.get_model("chatcore", "Session").objects.using(alias)
    owner = Subquery(sessions.filter(pk=OuterRef("session_id")).values("owner_id")[:1])
    for name in ("Turn", "Message", "SessionEvent"):
        rows = apps.get_model("chatcore", name).objects.using(alias).order_by("pk")
        pks = list(rows.values_list("pk", flat=True)[:BATCH_ROWS])
        while pks:
            with transaction.atomic(using=alias):
                rows.filter(pk__in=pks, owner_id=None).order_by().update(owner_id=owner)
            pks = list(rows.filter(pk__gt=pks[-1]).values_list("pk", flat=True)[:BATCH_ROWS])


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("chatcore", "0062_owners_beside_sessions")]

    operations = [migrations.RunPython(fill_in, migrations.RunPython.noop)]
