"""Usage and budgets go to the app chatcore.contrib.budgets, whose first migration adopts the tables."""

from django.db import migrations

from chatcore.base.databases.moved_tables import drop_if_empty


class Migration(migrations.Migration):

    dependencies = [
        ('chatcore', '0047_webhooks_are_an_app'),
    ]

    operations = [
        drop_if_empty('chatcore', 'Budget', 'UsageSum'),
        migrations.SeparateDatabaseAndState(state_operations=[
            migrations.DeleteModel('Budget'),
            migrations.DeleteModel('UsageSum'),
        ]),
    ]
