"""Sent requests go to an app, whose first migration adopts the tables; their size stays here."""

from django.db import migrations, models

from chatcore.base.databases.moved_tables import make_again_backwards


class Migration(migrations.Migration):
    dependencies = [
        ("chatcore", "0071_user_preferences"),
    ]

    operations = [
        make_again_backwards("chatcore", "SentRequest", "SentText"),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.DeleteModel("SentRequest"),
                migrations.DeleteModel("SentText"),
            ]
        ),
        migrations.AddField(
            model_name="message",
            name="sent_tokens",
            field=models.IntegerField(
                blank=True,
                editable=False,
                help_text="The estimated tokens of its request; null: unknown.",
                null=True,
            ),
        ),
    ]
