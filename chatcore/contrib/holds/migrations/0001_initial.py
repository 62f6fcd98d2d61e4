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
        ('chatcore', '0001_squashed_0064'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(state_operations=[
            migrations.CreateModel(
                name='Hold',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('reason', models.CharField(help_text='For the operators; the user is not shown.', max_length=500)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                    ('ended_at', models.DateTimeField(blank=True, help_text='Empty: it lasts.', null=True)),
                    ('created_by', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('user', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'verbose_name': 'legal hold',
                    'db_table': 'chatcore_hold',
                },
            ),
        ]),
        create_or_adopt('holds'),
        adopt_rights('holds', 'Hold'),
    ]
