"""Index the keys that clients give only where one is given. Nothing is built under a lock."""

from django.db import migrations, models

from chatcore.base.databases.indexes import AddIndexWithoutLock, AddUniqueWithoutLock


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("chatcore", "0057_help_of_turns")]

    operations = [
        AddIndexWithoutLock(
            model_name="turn",
            index=models.Index(fields=["session"], name="turns_of_a_session"),
        ),
        AddUniqueWithoutLock(
            model_name="turn",
            constraint=models.UniqueConstraint(
                condition=models.Q(("idempotency_key__isnull", False)),
                fields=("session", "idempotency_key"),
                name="one_turn_of_an_idempotency_key",
            ),
        ),
        AddUniqueWithoutLock(
            model_name="session",
            constraint=models.UniqueConstraint(
                condition=models.Q(("external_id__isnull", False)),
                fields=("owner", "external_id"),
                name="one_session_of_an_external_id",
            ),
        ),
    ]
