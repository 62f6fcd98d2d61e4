"""Let the registry know what input costs that is read from a cache."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("models_registry", "0004_input_limit"),
    ]

    operations = [
        migrations.AddField(
            model_name="aimodel",
            name="cached_input_price",
            field=models.DecimalField(
                blank=True,
                decimal_places=6,
                help_text="Per million tokens that are read from a cache; empty when unknown.",
                max_digits=12,
                null=True,
            ),
        ),
    ]
