import django.db.models.deletion
from django.db import migrations, models

from chatcore.base.databases.moved_tables import adopt_rights, create_or_adopt


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('contenttypes', '0002_remove_content_type_name'),
        ('compaction', '0032_lota_is_an_app'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(state_operations=[
            migrations.CreateModel(
                name='WorkingState',
                fields=[
                    ('session', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to='chatcore.session')),
                    ('state', models.JSONField(default=dict, help_text='Lists of sentences by section: decisions, constraints, tasks …')),
                    ('memory', models.JSONField(default=list, help_text="Entries not yet folded into the memory's summary, oldest first.")),
                    ('memory_summary', models.TextField(blank=True)),
                ],
                options={
                    'db_table': 'compaction_workingstate',
                },
            ),
        ]),
        create_or_adopt('lota'),
        adopt_rights('lota', 'WorkingState', former_label='compaction'),
    ]
