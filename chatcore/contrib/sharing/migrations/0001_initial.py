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
                name='Share',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('title', models.CharField(blank=True, max_length=200)),
                    ('digest', models.CharField(editable=False, max_length=64, unique=True)),
                    ('last_seq', models.PositiveIntegerField(help_text='The newest message that it shows.')),
                    ('spans', models.JSONField(default=list, help_text='[first, last] numbers of messages. What was superseded then is in no span.')),
                    ('with_tools', models.BooleanField(default=False)),
                    ('with_files', models.BooleanField(default=False)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                    ('expires_at', models.DateTimeField(blank=True, null=True)),
                    ('revoked_at', models.DateTimeField(blank=True, null=True)),
                    ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='shares', to=settings.AUTH_USER_MODEL)),
                    ('session', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='shares', to='chatcore.session')),
                ],
                options={
                    'ordering': ['-created_at', '-id'],
                    'db_table': 'chatcore_share',
                },
            ),
        ]),
        create_or_adopt('sharing'),
        adopt_rights('sharing', 'Share'),
    ]
