import django.db.models.deletion
import django.utils.timezone
import uuid
from django.conf import settings
from django.db import migrations, models

from chatcore.base.databases.moved_tables import AFTER_STAFF_GROUPS, adopt_rights, create_or_adopt


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ('auth', '0012_alter_user_first_name_max_length'),
        ('contenttypes', '0002_remove_content_type_name'),
        ('chatcore', '0001_squashed_0064'),
        *AFTER_STAFF_GROUPS,
    ]

    operations = [
        migrations.SeparateDatabaseAndState(state_operations=[
            migrations.CreateModel(
                name='Webhook',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('url', models.URLField(max_length=2000)),
                    ('secret', models.TextField(help_text='Encrypted; signs what is sent.')),
                    ('events', models.JSONField(default=list, help_text='Names of the events it wants; empty: all.')),
                    ('is_active', models.BooleanField(default=True)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                    ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='webhooks', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'ordering': ['created_at', 'id'],
                    'db_table': 'chatcore_webhook',
                },
            ),
            migrations.CreateModel(
                name='WebhookDelivery',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('event', models.CharField(max_length=32)),
                    ('payload', models.JSONField()),
                    ('status', models.CharField(choices=[('pending', 'Pending'), ('delivered', 'Delivered'), ('failed', 'Failed')], default='pending', max_length=16)),
                    ('attempts', models.PositiveIntegerField(default=0)),
                    ('next_attempt_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('response_status', models.PositiveIntegerField(blank=True, null=True)),
                    ('error', models.TextField(blank=True)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                    ('delivered_at', models.DateTimeField(blank=True, null=True)),
                    ('webhook', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='webhooks.webhook')),
                ],
                options={
                    'verbose_name_plural': 'webhook deliveries',
                    'ordering': ['-created_at', '-id'],
                    'indexes': [models.Index(condition=models.Q(('status', 'pending')), fields=['next_attempt_at'], name='deliveries_due'), models.Index(fields=['-created_at', '-id'], name='deliveries_by_time'), models.Index(condition=models.Q(('status', 'failed')), fields=['-created_at', '-id'], name='failed_deliveries')],
                    'db_table': 'chatcore_webhookdelivery',
                },
            ),
        ]),
        create_or_adopt('webhooks'),
        adopt_rights('webhooks', 'Webhook', 'WebhookDelivery', staff={'Operators': ['view_webhookdelivery', 'change_webhookdelivery']}),
    ]
