import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

from chatcore.base.databases.moved_tables import adopt_rights, create_or_adopt


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('contenttypes', '0002_remove_content_type_name'),
        ('chatcore', '0072_sent_requests_are_an_app'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(state_operations=[
            migrations.CreateModel(
                name='SentRequest',
                fields=[
                    ('answer', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='sent_request', serialize=False, to='chatcore.message')),
                    ('layout', models.JSONField(help_text='The parts in their order (records.py).')),
                    ('session', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='sent_requests', to='chatcore.session')),
                ],
                options={
                    'db_table': 'chatcore_sentrequest',
                },
            ),
            migrations.CreateModel(
                name='SentText',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('digest', models.CharField(max_length=32)),
                    ('text', models.TextField()),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                    ('session', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='sent_texts', to='chatcore.session')),
                ],
                options={
                    'db_table': 'chatcore_senttext',
                    'constraints': [models.UniqueConstraint(fields=('session', 'digest'), name='one_sent_text_a_digest')],
                },
            ),
        ]),
        create_or_adopt('sent_requests'),
        adopt_rights('sent_requests', 'SentRequest', 'SentText'),
    ]
