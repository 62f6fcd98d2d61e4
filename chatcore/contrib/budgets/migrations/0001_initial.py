import django.core.validators
import django.db.models.deletion
import uuid
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
                name='Budget',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('amount', models.DecimalField(decimal_places=2, help_text="In the currency of the models' prices.", max_digits=12, validators=[django.core.validators.MinValueValidator(0)])),
                    ('period', models.CharField(choices=[('day', 'a day'), ('month', 'a month')], default='month', max_length=8)),
                    ('warning_percent', models.PositiveSmallIntegerField(default=80, help_text='People are warned when so much of it is spent.')),
                    ('is_active', models.BooleanField(default=True)),
                    ('group', models.ForeignKey(blank=True, help_text='Its members together. Without a user and a group: everyone together.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='auth.group')),
                    ('user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'constraints': [models.CheckConstraint(condition=models.Q(('user', None), ('group', None), _connector='OR'), name='budget_of_a_user_or_a_group')],
                    'db_table': 'chatcore_budget',
                },
            ),
            migrations.CreateModel(
                name='UsageSum',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('session', models.UUIDField(default=uuid.UUID('00000000-0000-0000-0000-000000000000'))),
                    ('day', models.DateField()),
                    ('model', models.CharField(help_text='provider/name', max_length=200)),
                    ('purpose', models.CharField(choices=[('answer', 'Answer'), ('summary', 'Summary'), ('title', 'Title'), ('passed_on', 'passed on')], max_length=16)),
                    ('calls', models.PositiveIntegerField(default=0)),
                    ('unpriced_calls', models.PositiveIntegerField(default=0, help_text='Calls of unknown cost: the model had no price, or counted no tokens.')),
                    ('input_tokens', models.BigIntegerField(default=0, help_text='With cache reads and writes.')),
                    ('cache_read_tokens', models.BigIntegerField(default=0)),
                    ('cache_write_tokens', models.BigIntegerField(default=0)),
                    ('output_tokens', models.BigIntegerField(default=0)),
                    ('recalled_tokens', models.BigIntegerField(default=0, help_text='Estimated tokens of the input that recall brought back.')),
                    ('spared_tokens', models.BigIntegerField(default=0, help_text='Estimated tokens of older messages that summaries stood for.')),
                    ('cost_units', models.BigIntegerField(default=0)),
                    ('recall_units', models.BigIntegerField(default=0, help_text='The part of the cost for recall.')),
                    ('cache_saving_units', models.BigIntegerField(default=0, help_text='What the cache saved; negative where writing to it cost more.')),
                    ('summary_saving_units', models.BigIntegerField(default=0, help_text='What sending the spared tokens would have cost.')),
                    ('owner', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('estimated_units', models.BigIntegerField(db_default=0, default=0, help_text='What calls may cost that run now, or that nobody counted. No part of the cost.')),
                ],
                options={
                    'verbose_name': 'usage',
                    'verbose_name_plural': 'usage',
                    'permissions': [('view_everyones_usage', 'Can see what everyone used and spent over REST')],
                    'indexes': [models.Index(fields=['owner', 'day'], name='usage_of_an_owner'), models.Index(fields=['day'], name='usage_of_a_day')],
                    'constraints': [models.UniqueConstraint(fields=('session', 'day', 'model', 'purpose', 'owner'), name='one_usage_sum')],
                    'db_table': 'chatcore_usagesum',
                },
            ),
        ]),
        create_or_adopt('budgets'),
        adopt_rights('budgets', 'UsageSum', 'Budget'),
    ]
