"""New sessions and turns have ids in the order of time. The tables stay as they are."""

from django.db import migrations, models

from chatcore.base.row_ids import make_row_id

ID = models.UUIDField(default=make_row_id, editable=False, primary_key=True, serialize=False)


class Migration(migrations.Migration):
    dependencies = [("chatcore", "0063_fill_in_owners")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField("session", "id", ID),
                migrations.AlterField("turn", "id", ID),
            ]
        )
    ]
