"""Give a webhook the pause of its address, which was written into each of its deliveries."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("webhooks", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="webhook",
            name="paused_until",
            field=models.DateTimeField(
                blank=True,
                editable=False,
                help_text="The address has just failed: no event is sent to it for the first time before.",
                null=True,
            ),
        ),
        migrations.RemoveIndex(model_name="webhookdelivery", name="deliveries_due"),
    ]
