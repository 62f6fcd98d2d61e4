import django.db.models.deletion
import django.utils.timezone
import uuid
from django.conf import settings
from django.db import migrations, models

from chatcore.base.databases.moved_tables import adopt_rights, create_or_adopt


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ('contenttypes', '0002_remove_content_type_name'),
        ('chatcore', '0001_squashed_0064'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(state_operations=[
            migrations.CreateModel(
                name='Import',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('product', models.CharField(blank=True, max_length=40)),
                    ('status', models.CharField(choices=[('receiving', 'Receiving'), ('waiting', 'Waiting'), ('running', 'Running'), ('done', 'Done'), ('failed', 'Failed')], default='receiving', max_length=16)),
                    ('detail', models.TextField(blank=True, help_text='Why nothing came in.')),
                    ('position', models.PositiveIntegerField(default=0)),
                    ('came', models.PositiveIntegerField(default=0)),
                    ('partly', models.PositiveIntegerField(default=0)),
                    ('refused', models.PositiveIntegerField(default=0)),
                    ('known', models.PositiveIntegerField(default=0)),
                    ('attempts', models.PositiveIntegerField(default=0)),
                    ('lease_until', models.DateTimeField(editable=False, null=True)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                    ('finished_at', models.DateTimeField(editable=False, null=True)),
                    ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='imports', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'ordering': ['-created_at', '-id'],
                    'indexes': [models.Index(condition=models.Q(('status__in', ('receiving', 'waiting', 'running'))), fields=['created_at'], name='open_imports')],
                    'db_table': 'chatcore_import',
                },
            ),
            migrations.CreateModel(
                name='ImportFile',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('number', models.PositiveSmallIntegerField()),
                    ('name', models.CharField(max_length=255)),
                    ('size', models.PositiveBigIntegerField(help_text='Bytes.')),
                    ('received', models.PositiveBigIntegerField(default=0, help_text='Bytes.')),
                    ('belongs_to', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='files', to='imports.import')),
                ],
                options={
                    'ordering': ['number'],
                    'db_table': 'chatcore_importfile',
                },
            ),
            migrations.CreateModel(
                name='ImportPart',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('offset', models.PositiveBigIntegerField(help_text='Bytes before it.')),
                    ('size', models.PositiveIntegerField(help_text='Bytes.')),
                    ('data', models.BinaryField()),
                    ('file', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='parts', to='imports.importfile')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('file', 'offset'), name='one_part_an_offset')],
                    'db_table': 'chatcore_importpart',
                },
            ),
            migrations.CreateModel(
                name='ImportProblem',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('title', models.CharField(blank=True, max_length=200)),
                    ('reasons', models.JSONField(default=list)),
                    ('original_name', models.CharField(blank=True, max_length=100)),
                    ('original_size', models.PositiveIntegerField(default=0, help_text='Bytes before they are packed.')),
                    ('original', models.BinaryField(help_text='As it stands in the export, packed by zlib.')),
                    ('belongs_to', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='problems', to='imports.import')),
                    ('session', models.ForeignKey(help_text='If it came.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='chatcore.session')),
                ],
                options={
                    'ordering': ['pk'],
                    'db_table': 'chatcore_importproblem',
                },
            ),
            migrations.CreateModel(
                name='ImportedChat',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('product', models.CharField(max_length=40)),
                    ('foreign_id', models.CharField(max_length=255)),
                    ('digests', models.JSONField(default=list, help_text='Of each message that was shown when it came, in order.')),
                    ('other_digest', models.CharField(blank=True, help_text='Of all messages.', max_length=64)),
                    ('last_seq', models.PositiveIntegerField(default=0, help_text="The session's when it came.")),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                    ('belongs_to', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='chats', to='imports.import')),
                    ('owner', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='imported_chats', to=settings.AUTH_USER_MODEL)),
                    ('session', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='imported_as', to='chatcore.session')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('owner', 'product', 'foreign_id'), name='one_session_a_foreign_chat')],
                    'db_table': 'chatcore_importedchat',
                },
            ),
        ]),
        create_or_adopt('imports'),
        adopt_rights(
            'imports', 'Import', 'ImportFile', 'ImportPart', 'ImportProblem', 'ImportedChat',
        ),
    ]
