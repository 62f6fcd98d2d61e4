"""Memory goes to the app compaction.memory, whose first migration adopts the tables."""

from django.db import migrations

from chatcore.base.databases.moved_tables import drop_if_empty

NAMES = ('SentRules', 'StandingRule', 'LedgerLine', 'LeafComposition', 'SummaryLeaf')


class Migration(migrations.Migration):

    dependencies = [
        ('compaction', '0023_switched_off_policies'),
    ]

    operations = [
        drop_if_empty('compaction', *NAMES),
        migrations.SeparateDatabaseAndState(state_operations=[
            migrations.DeleteModel(name) for name in NAMES
        ]),
    ]
