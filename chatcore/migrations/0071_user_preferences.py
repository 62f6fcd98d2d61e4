"""Keep what a user has set for all of their chats: the time zone."""

import chatcore.models.user_preferences
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ('chatcore', '0070_tokens_keep_conversations'),
    ]

    operations = [
        migrations.CreateModel(
            name='UserPreferences',
            fields=[
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to=settings.AUTH_USER_MODEL)),
                ('time_zone', models.CharField(blank=True, default='', max_length=64, validators=[chatcore.models.user_preferences.check_time_zone])),
            ],
            options={
                'verbose_name_plural': 'user preferences',
            },
        ),
    ]
