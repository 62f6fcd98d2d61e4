"""Have the owner beside the session in messages, turns and events; 0063 fills it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chatcore", "0061_when_retention_began")]

    operations = [
        migrations.AddField(
            model_name=name,
            name="owner_id",
            field=models.IntegerField(
                editable=False,
                help_text=(
                    "The session's owner; null: a process of the version before has stored it."
                ),
                null=True,
            ),
        )
        for name in ("message", "sessionevent", "turn")
    ]
