"""Let the usage name the titles that models write. No table changes."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chatcore", "0030_owners_in_the_index")]

    operations = [
        migrations.AlterField(
            model_name="usagesum",
            name="purpose",
            field=models.CharField(
                choices=[
                    ("answer", "Answer"),
                    ("summary", "Summary"),
                    ("title", "Title"),
                    ("passed_on", "passed on"),
                ],
                max_length=16,
            ),
        ),
    ]
