"""Sums are read when they are needed: see docs/decisions/0007-sums-are-read.md."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("chatcore", "0042_estimates_of_calls")]

    operations = [
        migrations.RemoveField("session", name)
        for name in (
            "summed_seq",
            "summed_messages",
            "summed_tokens",
            "summed_file_tokens",
            "summed_images",
        )
    ]
