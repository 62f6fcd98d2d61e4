"""Store with each answer how many messages its request left out; at once on both databases."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("chatcore", "0066_signs_of_processes"),
    ]

    operations = [
        migrations.AddField(
            model_name="message",
            name="left_out_count",
            field=models.IntegerField(blank=True, editable=False, help_text="Messages that its request left out to fit; 0: it only shortened results of tools; null: the request was not trimmed.", null=True),
        ),
    ]
