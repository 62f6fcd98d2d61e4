"""Invitations go to the app chatcore.contrib.invitations, whose first migration adopts the tables."""

from django.db import migrations

from chatcore.base.databases.moved_tables import drop_if_empty


class Migration(migrations.Migration):

    dependencies = [
        ('chatcore', '0049_audit_is_an_app'),
    ]

    operations = [
        drop_if_empty('chatcore', 'Invitation'),
        migrations.SeparateDatabaseAndState(state_operations=[
            migrations.DeleteModel('Invitation'),
        ]),
    ]
