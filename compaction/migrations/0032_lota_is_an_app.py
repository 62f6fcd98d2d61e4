"""The structured state goes to the app compaction.systems.lota, which adopts the table."""

from django.db import migrations, models

from chatcore.base.databases.moved_tables import make_again_backwards


class Migration(migrations.Migration):

    dependencies = [
        ('compaction', '0031_summaries_of_clients'),
    ]

    operations = [
        make_again_backwards('compaction', 'WorkingState'),
        migrations.SeparateDatabaseAndState(state_operations=[
            migrations.DeleteModel('WorkingState'),
            migrations.AlterField(
                model_name='compactionrun',
                name='state_after',
                field=models.JSONField(default=dict, help_text='What apps recorded of what they keep of the session, after this run.'),
            ),
        ]),
    ]
