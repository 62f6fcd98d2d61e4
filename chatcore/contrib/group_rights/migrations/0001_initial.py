import django.db.models.deletion
from django.db import migrations, models

from chatcore.base.databases.moved_tables import adopt_rights, create_or_adopt


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        ('contenttypes', '0002_remove_content_type_name'),
        ('chatcore', '0001_squashed_0064'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(state_operations=[
            migrations.CreateModel(
                name='GroupRights',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('limits_models', models.BooleanField(default=False, help_text='Only the models below.')),
                    ('model_names', models.JSONField(blank=True, default=list, help_text='provider/name, or provider/* for all of a provider.')),
                    ('limits_policies', models.BooleanField(default=False, help_text='Only the policies below.')),
                    ('policy_names', models.JSONField(blank=True, default=list, help_text='Those that people may choose.')),
                    ('limits_tools', models.BooleanField(default=False, help_text='Only the tools below.')),
                    ('tool_names', models.JSONField(blank=True, default=list, help_text='Built-in tools, and those of shared MCP servers: mcp__SERVER__TOOL or mcp__SERVER__*. own__* are those of servers that people bring themselves.')),
                    ('group', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='auth.group')),
                ],
                options={
                    'verbose_name': 'rights of a group',
                    'verbose_name_plural': 'rights of groups',
                    'db_table': 'chatcore_grouprights',
                },
            ),
        ]),
        create_or_adopt('group_rights'),
        adopt_rights('group_rights', 'GroupRights'),
    ]
