from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chatcore", "0005_smaller_search_index")]

    operations = [
        migrations.AddField(
            model_name="session",
            name="discard_at",
            field=models.DateTimeField(
                blank=True,
                editable=False,
                help_text=(
                    "Null: a session as any other. Otherwise nobody sees it: it is being "
                    "imported, forked or deleted, and its rows may be deleted from this time on."
                ),
                null=True,
            ),
        ),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(
                condition=models.Q(discard_at__isnull=False),
                fields=["discard_at"],
                name="sessions_to_discard",
            ),
        ),
    ]
