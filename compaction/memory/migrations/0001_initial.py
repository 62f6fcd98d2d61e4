import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

from chatcore.base.databases.moved_tables import adopt_rights, create_or_adopt


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ('contenttypes', '0002_remove_content_type_name'),
        ('compaction', '0001_squashed_0029'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(state_operations=[
            migrations.CreateModel(
                name='LedgerLine',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('kind', models.CharField(choices=[('rule', 'Rule'), ('preference', 'Preference'), ('decision', 'Decision'), ('commitment', 'Commitment'), ('value', 'Value')], max_length=16)),
                    ('text', models.TextField()),
                    ('original_text', models.TextField(blank=True, help_text='As it was recognized; empty: a person wrote the line.')),
                    ('seq', models.PositiveIntegerField(blank=True, help_text='Number of the message it was said in; null: of none.', null=True)),
                    ('role', models.CharField(blank=True, max_length=16)),
                    ('key', models.TextField(blank=True, help_text='What it is about; a newer line supersedes it.')),
                    ('status', models.CharField(choices=[('current', 'Current'), ('superseded', 'Superseded'), ('dropped', 'Dropped')], default='current', max_length=16)),
                    ('superseded_by', models.PositiveIntegerField(blank=True, help_text='Number of the message that said otherwise.', null=True)),
                    ('pinned', models.BooleanField(default=False)),
                    ('is_edited', models.BooleanField(default=False, help_text='A person changed it, so recognition leaves it alone.')),
                    ('is_withdrawn', models.BooleanField(default=False, help_text='Its message is superseded, so the line is not sent.')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                    ('session', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='chatcore.session')),
                ],
                options={
                    'ordering': ['seq', 'id'],
                    'indexes': [models.Index(fields=['session', 'seq'], name='lines_of_a_session')],
                    'db_table': 'compaction_ledgerline',
                },
            ),
            migrations.CreateModel(
                name='StandingRule',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('kind', models.CharField(help_text='As of a line of the ledger.', max_length=16)),
                    ('text', models.TextField()),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                    ('line', models.ForeignKey(blank=True, help_text='The line that it was lifted from; null: a person wrote it, or the line is gone.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='standing_rules', to='memory.ledgerline')),
                    ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='standing_rules', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'ordering': ['id'],
                    'constraints': [models.UniqueConstraint(fields=('owner', 'line'), name='one_rule_of_a_line')],
                    'db_table': 'compaction_standingrule',
                },
            ),
            migrations.CreateModel(
                name='SentRules',
                fields=[
                    ('session', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to='chatcore.session')),
                    ('fingerprint', models.CharField(max_length=64)),
                    ('version', models.PositiveIntegerField()),
                ],
                options={
                    'db_table': 'compaction_sentrules',
                },
            ),
            migrations.CreateModel(
                name='SummaryLeaf',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('kind', models.CharField(choices=[('span', 'Span'), ('text', 'Text'), ('digest', 'Digest')], max_length=8)),
                    ('first_seq', models.PositiveIntegerField(help_text='Number of the first message.')),
                    ('last_seq', models.PositiveIntegerField(help_text='Number of the last message.')),
                    ('text', models.TextField()),
                    ('tokens', models.PositiveIntegerField(help_text='Tokens of the text, as the policy counts.')),
                    ('fingerprint', models.CharField(blank=True, help_text='Of what a span was written from.', max_length=64)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                    ('run', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='compaction.compactionrun')),
                    ('session', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='chatcore.session')),
                ],
                options={
                    'verbose_name_plural': 'summary leaves',
                    'ordering': ['first_seq', 'id'],
                    'indexes': [models.Index(fields=['session', 'last_seq'], name='leaves_of_a_session')],
                    'db_table': 'compaction_summaryleaf',
                },
            ),
            migrations.CreateModel(
                name='LeafComposition',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('fingerprint', models.CharField(max_length=64)),
                    ('leaf_ids', models.JSONField(default=list, help_text='Keys of the leaves, in order.')),
                    ('last_seq', models.PositiveIntegerField(help_text='Number of the last message.')),
                    ('session', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='chatcore.session')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('session', 'fingerprint'), name='one_composition_a_summary')],
                    'db_table': 'compaction_leafcomposition',
                },
            ),
        ]),
        create_or_adopt('memory'),
        adopt_rights(
            'memory', 'LedgerLine', 'StandingRule', 'SentRules', 'SummaryLeaf', 'LeafComposition',
            former_label='compaction',
        ),
    ]
