"""A running turn names its process, so that its death shows before the lease ends."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chatcore", "0072_sent_requests_are_an_app"),
    ]

    operations = [
        migrations.AddField(
            model_name="turn",
            name="process",
            field=models.UUIDField(
                blank=True,
                editable=False,
                help_text="The process that answers it, while it does; null: not known.",
                null=True,
            ),
        ),
    ]
