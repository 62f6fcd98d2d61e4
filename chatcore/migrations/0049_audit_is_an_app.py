"""The audit log goes to the app chatcore.contrib.audit, whose first migration adopts the table."""

from django.db import migrations

from chatcore.base.databases.moved_tables import drop_if_empty


class Migration(migrations.Migration):

    dependencies = [
        ('chatcore', '0048_budgets_are_an_app'),
    ]

    operations = [
        drop_if_empty('chatcore', 'AuditEntry'),
        migrations.SeparateDatabaseAndState(state_operations=[
            migrations.DeleteModel('AuditEntry'),
        ]),
    ]
