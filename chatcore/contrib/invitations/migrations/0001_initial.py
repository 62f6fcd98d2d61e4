import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from chatcore.base.databases.moved_tables import adopt_rights, create_or_adopt


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ('auth', '0012_alter_user_first_name_max_length'),
        ('contenttypes', '0002_remove_content_type_name'),
        ('chatcore', '0001_squashed_0064'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(state_operations=[
            migrations.CreateModel(
                name='Invitation',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('digest', models.CharField(editable=False, max_length=64, unique=True)),
                    ('note', models.CharField(blank=True, help_text='Whom it is for.', max_length=200)),
                    ('made_at', models.DateTimeField(auto_now_add=True)),
                    ('expires_at', models.DateTimeField()),
                    ('used_at', models.DateTimeField(editable=False, null=True)),
                    ('groups', models.ManyToManyField(blank=True, help_text='The groups that the new account joins.', related_name='+', to='auth.group')),
                    ('made_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('used_by', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'ordering': ('-pk',),
                    'db_table': 'chatcore_invitation',
                },
            ),
        ]),
        create_or_adopt('invitations'),
        adopt_rights('invitations', 'Invitation'),
    ]
