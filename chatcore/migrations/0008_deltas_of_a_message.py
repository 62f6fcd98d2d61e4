"""Let SQLite find the deltas of a message by their index: it cannot compare conditions by LIKE."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("chatcore", "0007_running_sums")]

    operations = [
        migrations.RemoveIndex(model_name="sessionevent", name="deltas_of_a_message"),
        migrations.AddIndex(
            model_name="sessionevent",
            index=models.Index(
                condition=Q(message__isnull=False),
                fields=["message"],
                name="deltas_of_a_message",
            ),
        ),
    ]
