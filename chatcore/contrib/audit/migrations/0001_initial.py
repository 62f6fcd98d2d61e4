import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from chatcore.base.databases.moved_tables import AFTER_STAFF_GROUPS, adopt_rights, create_or_adopt


STAFF = {'Auditor': ['view_auditentry']}


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
                name='AuditEntry',
                fields=[
                    ('id', models.BigAutoField(primary_key=True, serialize=False)),
                    ('at', models.DateTimeField(auto_now_add=True, db_index=True)),
                    ('act', models.CharField(help_text='As session.rewound or sign_in.failed.', max_length=60)),
                    ('object_type', models.CharField(blank=True, max_length=60)),
                    ('object_id', models.CharField(blank=True, max_length=64)),
                    ('detail', models.CharField(blank=True, help_text='Names and numbers, no texts.', max_length=500)),
                    ('address', models.CharField(blank=True, help_text='Where the request came from.', max_length=45)),
                    ('request_id', models.CharField(blank=True, max_length=64)),
                    ('actor', models.ForeignKey(db_constraint=False, help_text='Null: nobody was signed in, or a command of the server did it.', null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'verbose_name_plural': 'audit entries',
                    'indexes': [models.Index(fields=['object_type', 'object_id'], name='audit_of_an_object'), models.Index(fields=['actor', 'at'], name='audit_of_a_person'), models.Index(fields=['act'], name='audit_of_an_act', opclasses=['varchar_pattern_ops']), models.Index(fields=['address'], name='audit_of_an_address')],
                    'db_table': 'chatcore_auditentry',
                },
            ),
        ]),
        create_or_adopt('audit'),
        adopt_rights('audit', 'AuditEntry', staff=STAFF),
    ]
