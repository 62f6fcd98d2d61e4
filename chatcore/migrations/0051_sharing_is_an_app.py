"""Links to chats go to the app chatcore.contrib.sharing, whose first migration adopts the table."""

from django.db import migrations

from chatcore.base.databases.moved_tables import drop_if_empty


class Migration(migrations.Migration):

    dependencies = [
        ('chatcore', '0050_invitations_are_an_app'),
    ]

    operations = [
        drop_if_empty('chatcore', 'Share'),
        migrations.SeparateDatabaseAndState(state_operations=[
            migrations.DeleteModel('Share'),
        ]),
    ]
