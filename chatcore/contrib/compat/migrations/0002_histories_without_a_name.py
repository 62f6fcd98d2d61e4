"""Recognize whole histories of conversations that their clients do not name."""

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chatcore', '0070_tokens_keep_conversations'),
        ('compat', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='HistoryKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(db_index=True, help_text='A hash of the messages, the user and the token.', max_length=64)),
                ('used_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('session', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='chatcore.session')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('session__isnull', True)), fields=['used_at'], name='histories_without_session')],
            },
        ),
    ]
