"""Legal holds go to the app chatcore.contrib.holds, whose first migration adopts the table."""

from django.db import migrations

from chatcore.base.databases.moved_tables import drop_if_empty


class Migration(migrations.Migration):

    dependencies = [
        ('chatcore', '0045_setup_entries'),
    ]

    operations = [
        drop_if_empty('chatcore', 'Hold'),
        migrations.SeparateDatabaseAndState(state_operations=[migrations.DeleteModel('Hold')]),
    ]
