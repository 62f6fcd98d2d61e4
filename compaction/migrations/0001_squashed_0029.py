"""Make the tables of a new installation, and the groups of staff.

Frozen: nothing of the product is imported. It stands for the migrations 0001 to 0029
(docs/developers.md, "Migrations").
"""

import uuid

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.contrib.auth.management import create_permissions
from django.db import migrations, models

SEEN = [
    "chatcore.session",
    "chatcore.message",
    "chatcore.turn",
    "chatcore.contextrevision",
    "compaction.compactionrun",
    "compaction.sessionstate",
]
ACTED_ON = ["chatcore.session", "compaction.compactionrun", "compaction.sessionstate"]
REGISTRY = ["models_registry.provider", "models_registry.aimodel"]


def create_tables(apps, schema_editor):
    for model in apps.get_app_config("compaction").get_models():
        schema_editor.create_model(model)


def drop_tables(apps, schema_editor):
    for model in reversed(list(apps.get_app_config("compaction").get_models())):
        schema_editor.delete_model(model)


def make_groups(apps, schema_editor):
    """Make three groups of staff. None of them sees what people wrote.

    Apps that can be absent give their own rights to them, each in its first migration.
    """
    alias = schema_editor.connection.alias
    for label in ("chatcore", "compaction", "models_registry"):
        config = apps.get_app_config(label)
        models_module = getattr(config, "models_module", None)
        config.models_module = models_module or True  # a migration's has none: it would be passed over
        create_permissions(config, apps=apps, verbosity=0, using=alias)
        config.models_module = models_module
    views = [f"{name}.view" for name in SEEN]
    changes = [f"{name}.change" for name in ACTED_ON]
    both = [f"{name}.{act}" for name in REGISTRY for act in ("view", "change")]
    groups = {"Support": views, "Auditor": views, "Operators": [*views, *changes, *both]}
    permissions = apps.get_model("auth", "Permission").objects.using(alias)
    for name, rights in groups.items():
        group, is_new = apps.get_model("auth", "Group").objects.using(alias).get_or_create(name=name)
        if not is_new:
            continue  # somebody's own group of this name stays as it is
        for right in rights:
            app, model, act = right.split(".")
            group.permissions.add(
                permissions.get(content_type__app_label=app, codename=f"{act}_{model}")
            )


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ('auth', '0012_alter_user_first_name_max_length'),
        ('chatcore', '0001_squashed_0064'),
        ('contenttypes', '0002_remove_content_type_name'),
        ('models_registry', '0001_squashed_0011'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(state_operations=[
            migrations.CreateModel(
                name='CompactionPolicy',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('name', models.SlugField(max_length=64, unique=True)),
                    ('base', models.CharField(default='oneclaw', max_length=64)),
                    ('overrides', models.JSONField(blank=True, default=dict)),
                    ('is_active', models.BooleanField(db_default=True, default=True, help_text='Off: nobody can choose it, and whatever names it goes on with the next policy.')),
                ],
                options={
                    'verbose_name_plural': 'compaction policies',
                },
            ),
            migrations.CreateModel(
                name='ModelRatio',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('model', models.CharField(help_text='provider/name', max_length=255, unique=True)),
                    ('ratio', models.FloatField(default=1)),
                    ('samples', models.PositiveIntegerField(default=0)),
                    ('window', models.PositiveIntegerField(blank=True, help_text='Tokens; the window that a refusal named. Null: none did.', null=True)),
                    ('registered', models.PositiveIntegerField(blank=True, help_text="The registry's window at that time. If it has changed since, the learned window is void.", null=True)),
                    ('answer_speed', models.FloatField(blank=True, help_text='Tokens a second that it writes; null: not measured.', null=True)),
                    ('prompt_speed', models.FloatField(blank=True, help_text='Tokens a second that it reads; null: not measured.', null=True)),
                    ('window_learned_at', models.DateTimeField(blank=True, editable=False, help_text='When it was learned, or last doubted by sending a longer request.', null=True)),
                ],
            ),
            migrations.CreateModel(
                name='SessionState',
                fields=[
                    ('session', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to='chatcore.session')),
                    ('failures', models.PositiveIntegerField(default=0, help_text='Failed runs in a row.')),
                    ('not_before', models.DateTimeField(blank=True, help_text='No automatic run until then.', null=True)),
                    ('fruitless', models.PositiveIntegerField(default=0, help_text='Runs in a row that gained almost nothing.')),
                    ('trimming', models.BooleanField(default=False, help_text='The last run failed: requests over the threshold are trimmed.')),
                    ('learned_for', models.CharField(blank=True, help_text='The model and its registered window, which the learned numbers belong to.', max_length=255)),
                    ('learned_window', models.PositiveIntegerField(blank=True, help_text='Tokens; the window that a refusal named.', null=True)),
                    ('learned_scale', models.FloatField(default=1, help_text='Real tokens for each estimated token, learned from a refusal.')),
                    ('ledger_seq', models.PositiveIntegerField(default=0, help_text='The newest message that was read for the ledger.')),
                ],
                options={
                    'indexes': [models.Index(condition=models.Q(('fruitless__gte', 2)), fields=['session'], name='sessions_that_stopped'), models.Index(condition=models.Q(('not_before__isnull', False)), fields=['not_before'], name='sessions_that_wait'), models.Index(condition=models.Q(('trimming', True)), fields=['session'], name='sessions_that_trim')],
                },
            ),
            migrations.CreateModel(
                name='WorkingState',
                fields=[
                    ('session', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to='chatcore.session')),
                    ('state', models.JSONField(default=dict, help_text='Lists of sentences by section: decisions, constraints, tasks …')),
                    ('memory', models.JSONField(default=list, help_text="Entries not yet folded into the memory's summary, oldest first.")),
                    ('memory_summary', models.TextField(blank=True)),
                ],
            ),
            migrations.CreateModel(
                name='CompactionRun',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('trigger', models.CharField(choices=[('after_response', 'After Response'), ('before_request', 'Before Request'), ('on_model_change', 'On Model Change'), ('on_overflow', 'On Overflow'), ('manual', 'Manual')], max_length=16)),
                    ('status', models.CharField(choices=[('queued', 'Queued'), ('running', 'Running'), ('applied', 'Applied'), ('skipped', 'Skipped'), ('failed', 'Failed'), ('fell_back', 'Fell Back'), ('rewound', 'Rewound')], default='queued', max_length=16)),
                    ('policy', models.CharField(max_length=64)),
                    ('policy_snapshot', models.JSONField(blank=True, default=dict, help_text='Null: not kept any more.', null=True)),
                    ('instructions', models.TextField(blank=True)),
                    ('up_to_seq', models.PositiveIntegerField(blank=True, null=True)),
                    ('only_stages', models.JSONField(default=list, help_text='Only these stages; empty: all.')),
                    ('lease_until', models.DateTimeField(blank=True, null=True)),
                    ('attempts', models.PositiveIntegerField(default=0, help_text='Number of claims; it is the fencing token of the newest one.')),
                    ('announced', models.BooleanField(default=False, help_text='Its start was announced, so its end must be announced too.')),
                    ('enqueued_at', models.DateTimeField(blank=True, help_text='When it was last sent to the queue.', null=True)),
                    ('stages_used', models.JSONField(default=list)),
                    ('tokens_before', models.PositiveIntegerField(blank=True, null=True)),
                    ('tokens_after', models.PositiveIntegerField(blank=True, null=True)),
                    ('messages_compacted', models.PositiveIntegerField(default=0)),
                    ('boundary_before', models.PositiveIntegerField(blank=True, null=True)),
                    ('boundary_after', models.PositiveIntegerField(blank=True, null=True)),
                    ('version_before', models.PositiveIntegerField(blank=True, null=True)),
                    ('version_after', models.PositiveIntegerField(blank=True, null=True)),
                    ('model', models.CharField(blank=True, max_length=200)),
                    ('provider_calls', models.PositiveIntegerField(default=0)),
                    ('input_tokens', models.PositiveIntegerField(default=0)),
                    ('output_tokens', models.PositiveIntegerField(default=0)),
                    ('cost', models.DecimalField(blank=True, decimal_places=6, max_digits=12, null=True)),
                    ('edits', models.JSONField(default=list)),
                    ('targets', models.JSONField(default=list, help_text='[{seq, role, tool, method, chars_before, chars_after}], one for each message changed.')),
                    ('state_after', models.JSONField(default=dict, help_text='Structured state and memory after this run.')),
                    ('error', models.TextField(blank=True)),
                    ('reason', models.TextField(blank=True)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                    ('started_at', models.DateTimeField(blank=True, null=True)),
                    ('finished_at', models.DateTimeField(blank=True, null=True)),
                    ('session', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='chatcore.session')),
                    ('verification', models.JSONField(default=dict, help_text='{checks, findings: [{check, text, action}]}; empty where nothing was checked.')),
                    ('deaths', models.PositiveIntegerField(default=0, help_text='Number of claims that ended with the death of their worker.')),
                    ('basis', models.CharField(blank=True, default='', help_text='A fingerprint of the context and the options; one that failed fails again.', max_length=64)),
                    ('expected_seconds', models.PositiveIntegerField(blank=True, help_text="How long its summary should take, by the model's speed.", null=True)),
                    ('cached_tokens', models.PositiveIntegerField(default=0, help_text="Of the input tokens, those that were read from a provider's cache.")),
                    ('from_version', models.PositiveIntegerField(blank=True, null=True)),
                    ('keeps_words', models.BooleanField(db_default=True, default=True, help_text='False: a message was deleted while it ran, so its calls are stored without their texts.')),
                    ('owner', models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('provider', models.CharField(blank=True, db_default='', default='', max_length=64)),
                    ('places', models.IntegerField(db_default=2, default=2, help_text='flow.workers')),
                    ('summary_model', models.CharField(blank=True, db_default='', default='', help_text='The model that somebody chose for this run; empty: the one of all runs.', max_length=200)),
                ],
                options={
                    'ordering': ['-created_at', '-id'],
                    'indexes': [models.Index(fields=['session', '-created_at'], name='runs_of_a_session'), models.Index(condition=models.Q(('status__in', ('queued', 'running'))), fields=['status', 'created_at'], name='open_runs'), models.Index(fields=['-created_at', '-id'], name='runs_by_time'), models.Index(fields=['status', '-created_at', '-id'], name='runs_by_status'), models.Index(fields=['trigger', '-created_at', '-id'], name='runs_by_trigger'), models.Index(fields=['policy', '-created_at', '-id'], name='runs_by_policy'), models.Index(condition=models.Q(('status', 'queued')), fields=['owner', 'policy', 'provider', 'places', 'created_at', 'id'], name='runs_in_line'), models.Index(condition=models.Q(('started_at__isnull', False)), fields=['owner', '-started_at'], name='runs_served')],
                    'constraints': [models.UniqueConstraint(condition=models.Q(('status__in', ('queued', 'running'))), fields=('session',), name='one_open_run_a_session')],
                },
            ),
            migrations.CreateModel(
                name='WorkerBeat',
                fields=[
                    ('name', models.CharField(help_text='The machine and the process.', max_length=200, primary_key=True, serialize=False)),
                    ('seen_at', models.DateTimeField()),
                ],
            ),
            migrations.CreateModel(
                name='ModelCall',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('number', models.PositiveIntegerField(help_text="Of the run's calls, from 1.")),
                    ('claim', models.PositiveIntegerField(help_text="The number of the run's claim that made it.")),
                    ('kind', models.CharField(choices=[('messages', 'Messages'), ('leaf', 'Leaf'), ('merge', 'Merge'), ('rollup', 'Rollup'), ('memory', 'Memory')], max_length=8)),
                    ('level', models.PositiveIntegerField(default=0, help_text='0: it read messages. A merge read the answers of the level below.')),
                    ('part', models.PositiveIntegerField(help_text='Of the parts of this claim, from 1.')),
                    ('attempt', models.PositiveIntegerField(help_text='At this part, from 1.')),
                    ('model', models.CharField(blank=True, max_length=200)),
                    ('request', models.BinaryField(help_text='The body as it was sent, by zlib; null: not kept, or forgotten.', null=True)),
                    ('answer', models.BinaryField(help_text='The text as the model wrote it, by zlib; null: not kept or forgotten.', null=True)),
                    ('finish', models.CharField(blank=True, help_text='How the answer ended.', max_length=16)),
                    ('refusal', models.CharField(blank=True, choices=[('no_answer', 'No Answer'), ('nonsense', 'Nonsense'), ('untrue', 'Untrue'), ('state_only', 'State Only')], help_text='Empty: the answer was used.', max_length=16)),
                    ('reason', models.TextField(blank=True, help_text='Why the answer was not used.')),
                    ('input_tokens', models.PositiveIntegerField(default=0)),
                    ('cached_tokens', models.PositiveIntegerField(default=0)),
                    ('output_tokens', models.PositiveIntegerField(default=0)),
                    ('cost', models.DecimalField(blank=True, decimal_places=6, max_digits=12, null=True)),
                    ('seconds', models.FloatField(default=0, help_text='From the request to the end of the answer.')),
                    ('first_word_seconds', models.FloatField(default=0)),
                    ('ended_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                    ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='calls', to='compaction.compactionrun')),
                ],
                options={
                    'ordering': ['number'],
                    'constraints': [models.UniqueConstraint(fields=('run', 'number'), name='one_call_a_number')],
                },
            ),
        ]),
        migrations.RunPython(create_tables, drop_tables),
        migrations.RunPython(make_groups, migrations.RunPython.noop),
    ]
