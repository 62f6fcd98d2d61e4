"""Responses go to the app chatcore.contrib.compat, whose first migration adopts the table."""

from django.db import migrations

from chatcore.base.databases.moved_tables import drop_if_empty


class Migration(migrations.Migration):

    dependencies = [
        ('chatcore', '0052_rights_of_groups_are_an_app'),
    ]

    operations = [
        drop_if_empty('chatcore', 'StoredResponse'),
        migrations.SeparateDatabaseAndState(state_operations=[
            migrations.DeleteModel('StoredResponse'),
        ]),
    ]
