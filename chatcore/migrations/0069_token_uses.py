"""When a token was last used."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chatcore", "0068_subagents_of_sessions"),
    ]

    operations = [
        migrations.AddField(
            model_name="tokenname",
            name="used_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
