"""Find the files of a session among thousands of stored outputs of tools."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("chatcore", "0009_plain_ordering")]

    operations = [
        migrations.AddIndex(
            model_name="attachment",
            index=models.Index(
                condition=Q(kind="file"), fields=["session"], name="files_of_a_session"
            ),
        ),
    ]
