"""Make the tables of a new installation.

Frozen: nothing of the product is imported. It stands for the migrations 0001 to 0011
(docs/developers.md, "Migrations"). The rows of the catalog are brought by `chatcore migrate`, which
makes these tables.
"""

import django.core.validators
import django.db.models.deletion
from django.db import migrations, models


def create_tables(apps, schema_editor):
    for model in apps.get_app_config("models_registry").get_models():
        schema_editor.create_model(model)


def drop_tables(apps, schema_editor):
    for model in reversed(list(apps.get_app_config("models_registry").get_models())):
        schema_editor.delete_model(model)


class Migration(migrations.Migration):

    initial = True

    dependencies = []

    operations = [
        migrations.SeparateDatabaseAndState(state_operations=[
            migrations.CreateModel(
                name='Provider',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('name', models.SlugField(max_length=64, unique=True)),
                    ('protocol', models.CharField(choices=[('openai', 'OpenAI'), ('anthropic', 'Anthropic')], max_length=16)),
                    ('family', models.CharField(blank=True, help_text='How this family counts tokens, e.g. anthropic, mistral, google-ai.', max_length=32)),
                    ('base_url', models.CharField(blank=True, help_text="Empty: the SDK's own address.", max_length=500, validators=[django.core.validators.RegexValidator('\\Ahttps?://[^\\s/?#@]+(/[^\\s?#]*)?\\Z', 'An http or https address without credentials or query.')])),
                    ('encrypted_api_key', models.TextField(blank=True, editable=False)),
                    ('api_key_env', models.CharField(blank=True, help_text='Environment variable read when no key is stored.', max_length=64)),
                    ('options', models.JSONField(blank=True, default=dict)),
                    ('timeout_seconds', models.FloatField(default=120, validators=[django.core.validators.MinValueValidator(0.1), django.core.validators.MaxValueValidator(86400)])),
                    ('is_active', models.BooleanField(default=True)),
                    ('catalog_values', models.JSONField(default=dict, editable=False, help_text="What the catalog last wrote, to tell an operator's edit.")),
                    ('learned', models.JSONField(blank=True, db_default=models.Value({}, models.JSONField()), default=dict, help_text='What its refusals have told, by model: fields that it does not know, and the like. Options go before it; another address voids it; empty it to ask the server anew.')),
                ],
                options={
                    'permissions': [('connect_provider', 'Can change addresses and keys of providers, and test them')],
                },
            ),
            migrations.CreateModel(
                name='AiModel',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('name', models.CharField(max_length=128)),
                    ('context_window_size', models.PositiveIntegerField(blank=True, help_text='Tokens; empty when unknown.', null=True)),
                    ('max_output_tokens', models.PositiveIntegerField(blank=True, null=True)),
                    ('output_reserve', models.PositiveIntegerField(blank=True, help_text='Tokens of the window that its answer takes; 0: output is separate; empty when unknown.', null=True)),
                    ('input_price', models.DecimalField(blank=True, decimal_places=6, help_text='Per million tokens.', max_digits=12, null=True)),
                    ('output_price', models.DecimalField(blank=True, decimal_places=6, help_text='Per million tokens.', max_digits=12, null=True)),
                    ('supports_tools', models.BooleanField(blank=True, help_text='Unknown: tools are offered, until the provider refuses them for this model.', null=True)),
                    ('supports_images', models.BooleanField(blank=True, help_text='Unknown: images are sent, until the provider refuses them for this model.', null=True)),
                    ('policy', models.CharField(blank=True, help_text="Compaction policy; empty: the project's.", max_length=64)),
                    ('is_active', models.BooleanField(default=True)),
                    ('is_default', models.BooleanField(default=False)),
                    ('catalog_values', models.JSONField(default=dict, editable=False, help_text="What the catalog last wrote, to tell an operator's edit.")),
                    ('summary_model', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='models_registry.aimodel')),
                    ('provider', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='models', to='models_registry.provider')),
                    ('max_input_tokens', models.PositiveIntegerField(blank=True, help_text='The most tokens of a request, where that is less than the window; else empty.', null=True)),
                    ('cached_input_price', models.DecimalField(blank=True, decimal_places=6, help_text='Per million tokens that are read from a cache; empty when unknown.', max_digits=12, null=True)),
                    ('cache_write_price', models.DecimalField(blank=True, decimal_places=6, help_text='Per million tokens that are written to a cache; empty when unknown.', max_digits=12, null=True)),
                    ('price_tiers', models.JSONField(blank=True, default=list, help_text='Other prices for long requests: [{"above": 200000, "input": "2.50", "output": "15", "cached_input": "0.25"}]; "above" is a number of input tokens.')),
                    ('values_date', models.DateField(blank=True, editable=False, help_text='When limits and prices were last compared with their source.', null=True)),
                    ('values_source', models.CharField(blank=True, editable=False, help_text='Empty: the catalog.', max_length=200)),
                ],
                options={
                    'verbose_name': 'language model',
                    'constraints': [models.UniqueConstraint(fields=('provider', 'name'), name='one_model_a_name'), models.UniqueConstraint(condition=models.Q(('is_default', True)), fields=('is_default',), name='one_default_model')],
                },
            ),
        ]),
        migrations.RunPython(create_tables, drop_tables),
    ]
