"""Note the upgrade from which on requests of answers have a time to live."""

import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chatcore", "0060_one_index_of_turns")]

    operations = [
        migrations.AddField(
            model_name="installation",
            name="retention_since",
            field=models.DateTimeField(default=django.utils.timezone.now, editable=False),
        ),
    ]
