import django.db.models.deletion
import django.utils.timezone
import uuid
from django.db import migrations, models

from chatcore.base.databases.moved_tables import adopt_rights, create_or_adopt


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('contenttypes', '0002_remove_content_type_name'),
        ('chatcore', '0001_squashed_0064'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(state_operations=[
            migrations.CreateModel(
                name='StoredResponse',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('after_seq', models.PositiveIntegerField(default=0, help_text='The number that its first input message had to exceed.')),
                    ('input_seq', models.PositiveIntegerField(default=0, help_text='The last message of its input; its output follows.')),
                    ('after_event_seq', models.PositiveBigIntegerField(default=0, help_text='The number of an event before all events of its output.')),
                    ('input_key', models.CharField(blank=True, db_index=True, help_text='A hash of the conversation up to its input, to recognize it when it comes back.', max_length=64)),
                    ('request', models.JSONField(default=dict, help_text='The fields that the response repeats.')),
                    ('system_texts', models.JSONField(default=list, help_text='Texts of the system and the developer in the conversation so far.')),
                    ('compaction', models.JSONField(blank=True, help_text='The compaction that began it, if there was one.', null=True)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                    ('previous', models.ForeignKey(blank=True, help_text='The response that it continues.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='compat.storedresponse')),
                    ('session', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='responses', to='chatcore.session')),
                    ('turn', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='responses', to='chatcore.turn')),
                ],
                options={
                    'db_table': 'chatcore_storedresponse',
                    'ordering': ['session_id', 'created_at'],
                    'indexes': [models.Index(fields=['-created_at'], name='responses_by_time')],
                },
            ),
        ]),
        create_or_adopt('compat'),
        adopt_rights('compat', 'StoredResponse'),
    ]
