"""Imports go to the app chatcore.contrib.imports, whose first migration adopts the tables."""

from django.db import migrations

from chatcore.base.databases.moved_tables import drop_if_empty

NAMES = ('ImportedChat', 'ImportProblem', 'ImportPart', 'ImportFile', 'Import')


class Migration(migrations.Migration):

    dependencies = [
        ('chatcore', '0055_seconds_of_the_machine'),
    ]

    operations = [
        drop_if_empty('chatcore', *NAMES),
        migrations.SeparateDatabaseAndState(state_operations=[
            migrations.DeleteModel(name) for name in NAMES
        ]),
    ]
