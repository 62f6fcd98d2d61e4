"""Rights of groups go to the app chatcore.contrib.group_rights, whose first migration adopts the table."""

from django.db import migrations

from chatcore.base.databases.moved_tables import drop_if_empty


class Migration(migrations.Migration):

    dependencies = [
        ('chatcore', '0051_sharing_is_an_app'),
    ]

    operations = [
        drop_if_empty('chatcore', 'GroupRights'),
        migrations.SeparateDatabaseAndState(state_operations=[
            migrations.DeleteModel('GroupRights'),
        ]),
    ]
