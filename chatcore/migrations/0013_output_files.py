"""Keep whole outputs of tools in files; those that rows hold stay where they are."""

import chatcore.models.output_file
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chatcore", "0012_recalled_passages"),
    ]

    operations = [
        migrations.CreateModel(
            name="OutputFile",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        db_index=True, help_text="In the store of outputs.", max_length=100
                    ),
                ),
                ("size", models.PositiveIntegerField(help_text="Bytes.")),
                (
                    "attachment",
                    models.OneToOneField(
                        on_delete=chatcore.models.output_file.cascade_to_file,
                        related_name="file",
                        to="chatcore.attachment",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="output_files",
                        to="chatcore.session",
                    ),
                ),
            ],
        ),
    ]
