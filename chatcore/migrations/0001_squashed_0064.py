"""Make the tables of a new installation, with the index of the search.

Frozen: nothing of the product is imported. It stands for the migrations 0001 to 0064, and its
tables have their columns in the order of those (docs/developers.md, "Migrations").
"""

import uuid

import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

# chatcore/search/tables.py says why the index is so.
TOOL_CALLS = """
    CASE WHEN {row}.tool_calls = '[]' THEN '' ELSE coalesce((
        SELECT group_concat(
            ' ' || json_extract(value, '$.name') || ' ' || json_extract(value, '$.arguments'), '')
        FROM json_each({row}.tool_calls)), '') END
"""
MESSAGE_STEMS = "'session' || {row}.session_id || ' ' || {row}.content || " + TOOL_CALLS
FILE_STEMS = "'session' || {row}.session_id || ' ' || {row}.name || ' ' || substr({row}.text, 1, 200000)"
DELETE_MESSAGE = f"""
    INSERT INTO chatcore_message_words(chatcore_message_words, rowid, content) VALUES ('delete', old.id, old.content);
    INSERT INTO chatcore_message_stems(chatcore_message_stems, rowid, content)
    VALUES ('delete', old.id, {MESSAGE_STEMS.format(row="old")});
"""
INSERT_MESSAGE = f"""
    INSERT INTO chatcore_message_words(rowid, content) VALUES (new.id, new.content);
    INSERT INTO chatcore_message_stems(rowid, content) VALUES (new.id, {MESSAGE_STEMS.format(row="new")});
"""
DELETE_FILE = f"""
    INSERT INTO chatcore_file_stems(chatcore_file_stems, rowid, content)
    VALUES ('delete', old.message_id, {FILE_STEMS.format(row="old")});
"""
INSERT_FILE = f"""
    INSERT INTO chatcore_file_stems(rowid, content)
    VALUES (new.message_id, {FILE_STEMS.format(row="new")});
"""
IS_OLD_FILE = "old.message_id IS NOT NULL AND old.kind = 'file' AND old.text <> ''"
IS_NEW_FILE = "new.message_id IS NOT NULL AND new.kind = 'file' AND new.text <> ''"
STEMS_TABLE = (
    "CREATE VIRTUAL TABLE {table} USING fts5(content, content='',"
    " tokenize='porter unicode61 remove_diacritics 2', detail=none, columnsize=0)"
)
SQLITE = [
    "CREATE VIRTUAL TABLE chatcore_message_words USING fts5(content, content='chatcore_message',"
    " content_rowid='id', tokenize='trigram', detail=none, columnsize=0)",
    STEMS_TABLE.format(table="chatcore_message_stems"),
    STEMS_TABLE.format(table="chatcore_file_stems"),
    "CREATE TRIGGER chatcore_message_words_insert AFTER INSERT ON chatcore_message"
    f" WHEN TRUE BEGIN {INSERT_MESSAGE} END",
    "CREATE TRIGGER chatcore_message_words_delete AFTER DELETE ON chatcore_message"
    f" WHEN TRUE BEGIN {DELETE_MESSAGE} END",
    "CREATE TRIGGER chatcore_message_words_update"
    " AFTER UPDATE OF content, tool_calls ON chatcore_message"
    " WHEN old.content IS NOT new.content OR old.tool_calls IS NOT new.tool_calls"
    f" BEGIN {DELETE_MESSAGE}{INSERT_MESSAGE} END",
    "CREATE TRIGGER chatcore_file_stems_insert AFTER INSERT ON chatcore_attachment"
    f" WHEN {IS_NEW_FILE} BEGIN {INSERT_FILE} END",
    "CREATE TRIGGER chatcore_file_stems_delete AFTER DELETE ON chatcore_attachment"
    f" WHEN {IS_OLD_FILE} BEGIN {DELETE_FILE} END",
    "CREATE TRIGGER chatcore_file_stems_update AFTER UPDATE OF message_id ON chatcore_attachment"
    f" WHEN old.message_id IS NULL AND {IS_NEW_FILE} BEGIN {INSERT_FILE} END",
    "INSERT INTO chatcore_message_words(chatcore_message_words, rank) VALUES ('automerge', 2)",
    "INSERT INTO chatcore_message_stems(chatcore_message_stems, rank) VALUES ('automerge', 2)",
    "INSERT INTO chatcore_file_stems(chatcore_file_stems, rank) VALUES ('automerge', 2)",
]
MESSAGE_VECTOR = """
    chatcore_vector(new.session_id, left(new.content ||
        CASE WHEN new.tool_calls = '[]'::jsonb THEN '' ELSE ' ' || new.tool_calls::text END,
        50000))
"""
FILE_VECTOR = """
    chatcore_vector(new.session_id, left(new.name || ' ' || new.text, 200000))
"""
ON_CHANGE = """
    CREATE OR REPLACE FUNCTION {table}_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP <> 'INSERT' THEN
            DELETE FROM {table} WHERE id = old.id;
        END IF;
        IF TG_OP <> 'DELETE' AND {condition} THEN
            INSERT INTO {table} (id, message_id, session_id, stems)
            VALUES (new.id, {message}, new.session_id,
                {vector} || chatcore_owner_mark(new.session_id))
            ON CONFLICT (id) DO UPDATE SET stems = excluded.stems;
        END IF;
        RETURN NULL;
    END $$
"""
EACH_ROW = "FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION {table}_change()"
CHANGED_MESSAGE = (
    "old.content IS DISTINCT FROM new.content OR old.tool_calls IS DISTINCT FROM new.tool_calls"
)
MOVED_FILE = "old.message_id IS DISTINCT FROM new.message_id"
ON_MESSAGE = "chatcore_message " + EACH_ROW.replace("{table}", "chatcore_message_stems")
ON_FILE = "chatcore_attachment " + EACH_ROW.replace("{table}", "chatcore_file_stems")
POSTGRESQL = [
    "CREATE EXTENSION IF NOT EXISTS pg_trgm",
    r"""
    CREATE OR REPLACE FUNCTION chatcore_stems(words text) RETURNS tsvector
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 10000 AS $$
    BEGIN
        RETURN to_tsvector('english', translate(words, '!"#$&''()*+,-./:;<=>?@[\]^_`{|}~ÀÁÂÃÄÅÇÈÉÊËÌÍÎÏÑÒÓÔÕÖÙÚÛÜÝàáâãäåçèéêëìíîïñòóôõöùúûüýÿ',
            '                               AAAAAACEEEEIIIINOOOOOUUUUYaaaaaaceeeeiiiinooooouuuuyy'));
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION chatcore_vector(session_id uuid, words text) RETURNS tsvector
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
    BEGIN
        RETURN array_to_tsvector(ARRAY['session' || replace(session_id::text, '-', '')])
            || strip(chatcore_stems(words));
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION chatcore_owner_mark(session uuid) RETURNS tsvector
    LANGUAGE sql STABLE AS $$
        SELECT array_to_tsvector(ARRAY['owner:' || owner_id])
        FROM chatcore_session WHERE id = session
    $$
    """,
    "CREATE INDEX chatcore_message_words ON chatcore_message USING gin (upper(content) gin_trgm_ops)",
    "ALTER INDEX chatcore_message_words SET (gin_pending_list_limit = 256)",
    "CREATE TABLE chatcore_message_stems (id bigint PRIMARY KEY, message_id bigint NOT NULL,"
    " session_id uuid NOT NULL, stems tsvector NOT NULL)",
    ON_CHANGE.format(
        table="chatcore_message_stems", message="new.id", condition="TRUE", vector=MESSAGE_VECTOR
    ),
    "CREATE TRIGGER chatcore_message_stems_0 AFTER INSERT ON " + ON_MESSAGE.format(condition="TRUE"),
    "CREATE TRIGGER chatcore_message_stems_1 AFTER DELETE ON " + ON_MESSAGE.format(condition="TRUE"),
    "CREATE TRIGGER chatcore_message_stems_2 AFTER UPDATE OF content, tool_calls ON "
    + ON_MESSAGE.format(condition=CHANGED_MESSAGE),
    "CREATE INDEX chatcore_message_stems_terms ON chatcore_message_stems USING gin (stems)"
    " WITH (fastupdate = off)",
    "CREATE TABLE chatcore_file_stems (id uuid PRIMARY KEY, message_id bigint NOT NULL,"
    " session_id uuid NOT NULL, stems tsvector NOT NULL)",
    ON_CHANGE.format(
        table="chatcore_file_stems", message="new.message_id", condition=IS_NEW_FILE, vector=FILE_VECTOR
    ),
    "CREATE TRIGGER chatcore_file_stems_0 AFTER INSERT ON " + ON_FILE.format(condition=IS_NEW_FILE),
    "CREATE TRIGGER chatcore_file_stems_1 AFTER DELETE ON " + ON_FILE.format(condition=IS_OLD_FILE),
    "CREATE TRIGGER chatcore_file_stems_2 AFTER UPDATE OF message_id ON "
    + ON_FILE.format(condition=MOVED_FILE),
    "CREATE INDEX chatcore_file_stems_terms ON chatcore_file_stems USING gin (stems)"
    " WITH (fastupdate = off)",
    "CREATE INDEX words_of_titles ON chatcore_session USING gin (upper(title) gin_trgm_ops)",
]
# The tables of messages and files, which go after it, take their triggers along.
BACKWARDS = {
    "sqlite": [
        "DROP TABLE IF EXISTS chatcore_message_words",
        "DROP TABLE IF EXISTS chatcore_message_stems",
        "DROP TABLE IF EXISTS chatcore_file_stems",
    ],
    "postgresql": [
        "DROP FUNCTION IF EXISTS chatcore_message_stems_change CASCADE",
        "DROP FUNCTION IF EXISTS chatcore_file_stems_change CASCADE",
        "DROP FUNCTION IF EXISTS chatcore_owner_mark, chatcore_vector, chatcore_stems CASCADE",
        "DROP TABLE IF EXISTS chatcore_message_stems, chatcore_file_stems",
    ],
}


def create_tables(apps, schema_editor):
    for model in apps.get_app_config("chatcore").get_models():
        schema_editor.create_model(model)


def drop_tables(apps, schema_editor):
    for model in reversed(list(apps.get_app_config("chatcore").get_models())):
        schema_editor.delete_model(model)


def create_search_index(apps, schema_editor):
    """Index what is written on SQLite and PostgreSQL; other databases search without an index."""
    statements = {"sqlite": SQLITE, "postgresql": POSTGRESQL}
    for statement in statements.get(schema_editor.connection.vendor, []):
        schema_editor.execute(statement, params=None)


def drop_search_index(apps, schema_editor):
    for statement in BACKWARDS.get(schema_editor.connection.vendor, []):
        schema_editor.execute(statement, params=None)


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ('auth', '0012_alter_user_first_name_max_length'),
        ('knox', '0009_extend_authtoken_field'),
        ('models_registry', '0001_squashed_0011'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(state_operations=[
            migrations.CreateModel(
                name='Session',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('title', models.CharField(blank=True, max_length=200)),
                    ('system_prompt', models.TextField(blank=True)),
                    ('policy', models.CharField(blank=True, help_text="Compaction policy; empty: the model's or the project's.", max_length=64)),
                    ('auto_compact', models.BooleanField(default=True)),
                    ('tools', models.JSONField(blank=True, help_text='Names of the built-in tools offered; null: all of them.', null=True)),
                    ('params', models.JSONField(blank=True, default=dict, help_text='Sent to the provider: temperature, max_tokens …')),
                    ('compact_threshold', models.FloatField(blank=True, help_text="In place of the policy's own trigger.threshold.", null=True)),
                    ('external_id', models.CharField(blank=True, help_text='What an OpenAI client calls this session.', max_length=255, null=True)),
                    ('pinned', models.BooleanField(default=False)),
                    ('archived', models.BooleanField(default=False)),
                    ('compacted_summary', models.TextField(blank=True, null=True)),
                    ('compact_boundary_seq', models.PositiveIntegerField(blank=True, help_text='The oldest message still sent as it is.', null=True)),
                    ('compact_boundary_timestamp', models.DateTimeField(blank=True, null=True)),
                    ('context_version', models.PositiveIntegerField(default=0)),
                    ('message_count', models.PositiveIntegerField(default=0)),
                    ('last_seq', models.PositiveIntegerField(default=0, editable=False)),
                    ('last_event_seq', models.PositiveBigIntegerField(default=0, editable=False)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                    ('updated_at', models.DateTimeField(default=django.utils.timezone.now, help_text="Moves on the user's acts, not on compaction's.")),
                    ('model', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='models_registry.aimodel')),
                    ('owner', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='chat_sessions', to=settings.AUTH_USER_MODEL)),
                    ('discard_at', models.DateTimeField(blank=True, editable=False, help_text='Null: a session as any other. Otherwise nobody sees it: it is being imported, forked or deleted, and its rows may be deleted from this time on.', null=True)),
                    ('metadata', models.JSONField(blank=True, default=dict, help_text='What a client of the conversations API notes here.')),
                    ('temporary', models.BooleanField(db_default=False, default=False, help_text='In no list and no search, and deleted some hours after its last use.')),
                    ('title_source', models.JSONField(blank=True, editable=False, help_text='Of a title that a model wrote: its digest, and the seqs of the messages it is made of.', null=True)),
                    ('overhead_since', models.DateTimeField(blank=True, editable=False, help_text='When what is sent besides its messages last changed: project, prompt, tools.', null=True)),
                    ('project', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='sessions', to='chatcore.project')),
                    ('expired_at', models.DateTimeField(blank=True, editable=False, help_text='When retention hid the session. Staff may bring it back until `discard_at`.', null=True)),
                    ('forked_from', models.ForeignKey(blank=True, db_index=False, editable=False, help_text='The session that it is a fork of, of the same owner, who may have deleted it.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='forks', to='chatcore.session')),
                    ('forked_from_seq', models.PositiveIntegerField(blank=True, editable=False, help_text='The message there that was forked from.', null=True)),
                ],
                options={
                    'ordering': ['-updated_at', '-id'],
                    'indexes': [models.Index(fields=['owner', '-updated_at', '-id'], name='sessions_of_an_owner'), models.Index(condition=models.Q(('discard_at__isnull', False)), fields=['discard_at'], name='sessions_to_discard'), models.Index(fields=['-updated_at', '-id'], name='sessions_by_time'), models.Index(condition=models.Q(('auto_compact', False)), fields=['-updated_at', '-id'], name='sessions_not_compacting'), models.Index(condition=models.Q(('temporary', True)), fields=['updated_at'], name='temporary_sessions'), models.Index(condition=models.Q(('project__isnull', False)), fields=['project', '-updated_at', '-id'], name='sessions_of_a_project'), models.Index(condition=models.Q(('forked_from__isnull', False)), fields=['forked_from'], name='forks_of_a_session')],
                    'constraints': [models.UniqueConstraint(condition=models.Q(('external_id__isnull', False)), fields=('owner', 'external_id'), name='one_session_of_an_external_id')],
                    'permissions': [('view_content', 'Can see what people and models wrote')],
                },
            ),
            migrations.CreateModel(
                name='Message',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('seq', models.PositiveIntegerField()),
                    ('role', models.CharField(choices=[('system', 'System'), ('user', 'User'), ('assistant', 'Assistant'), ('tool', 'Tool')], max_length=16)),
                    ('content', models.TextField(blank=True)),
                    ('tool_calls', models.JSONField(blank=True, default=list, help_text='[{id, name, arguments}]; arguments as the JSON text the model wrote.')),
                    ('tool_call_id', models.CharField(blank=True, max_length=255)),
                    ('tool_name', models.CharField(blank=True, max_length=128)),
                    ('is_error', models.BooleanField(default=False)),
                    ('reasoning', models.TextField(blank=True)),
                    ('status', models.CharField(choices=[('complete', 'Complete'), ('streaming', 'Streaming'), ('interrupted', 'Interrupted'), ('failed', 'Failed')], default='complete', max_length=16)),
                    ('model', models.CharField(blank=True, help_text='provider/name that wrote it.', max_length=200)),
                    ('pinned', models.BooleanField(default=False)),
                    ('token_count_input', models.PositiveIntegerField(blank=True, help_text='Tokens of the whole request, with cache reads and writes.', null=True)),
                    ('token_count_output', models.PositiveIntegerField(blank=True, null=True)),
                    ('token_count_cache_read', models.PositiveIntegerField(blank=True, null=True)),
                    ('token_count_cache_write', models.PositiveIntegerField(blank=True, null=True)),
                    ('token_estimate', models.PositiveIntegerField(default=0, help_text='Estimated tokens of this message alone.')),
                    ('original_chars', models.PositiveIntegerField(blank=True, help_text='Characters before it was cut; null: not cut.', null=True)),
                    ('tool_result_limit', models.PositiveIntegerField(blank=True, editable=False, help_text='Characters a tool result may have; null: the default.', null=True)),
                    ('branch', models.UUIDField(blank=True, editable=False, help_text='Groups messages that were superseded together; null: current.', null=True)),
                    ('branch_after', models.PositiveIntegerField(blank=True, editable=False, help_text='The seq of the message that the branch follows, 0 for none; null: current.', null=True)),
                    ('context_version', models.PositiveIntegerField(blank=True, help_text='The context its request was built on; null when the request was trimmed.', null=True)),
                    ('provider_data', models.JSONField(blank=True, default=dict, editable=False, help_text='Kept for the protocol: thinking signatures and the like.')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                    ('replaces', models.ForeignKey(blank=True, db_index=False, help_text='The message that this one is another version of.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='replacements', to='chatcore.message')),
                    ('session', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='messages', to='chatcore.session')),
                    ('turn', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='messages', to='chatcore.turn')),
                    ('sent_file_chars', models.JSONField(blank=True, editable=False, help_text='Characters of each text file that its first request held, null for all; null: unknown.', null=True)),
                    ('cost', models.DecimalField(blank=True, decimal_places=12, help_text='What the call cost, by the prices at that time; null: unknown.', max_digits=18, null=True)),
                    ('finish_detail', models.TextField(blank=True, db_default='', default='', editable=False, help_text="The stop sequence, or the provider's word for an end before the answer's.")),
                    ('finish_reason', models.CharField(blank=True, choices=[('stop', 'Stop'), ('tool_calls', 'Tool Calls'), ('length', 'Length'), ('refusal', 'Refusal'), ('unknown', 'Unknown')], db_default='', default='', editable=False, help_text='Why the model ended its answer; empty: not known, or not ended.', max_length=16)),
                    ('owner', models.ForeignKey(db_constraint=False, db_index=False, editable=False, help_text="The session's owner; null: a process of the version before has stored it.", null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'ordering': ['session_id', 'seq'],
                    'indexes': [models.Index(condition=models.Q(('pinned', True)), fields=['session', 'seq'], name='pinned_messages'), models.Index(condition=models.Q(('replaces__isnull', False)), fields=['session'], name='messages_with_versions'), models.Index(condition=models.Q(('branch__isnull', False)), fields=['session', 'branch'], name='superseded_messages'), models.Index(condition=models.Q(('replaces__isnull', False)), fields=['replaces'], name='messages_that_replace'), models.Index(condition=models.Q(('status', 'streaming')), fields=['turn'], name='streaming_messages')],
                    'constraints': [models.UniqueConstraint(fields=('session', 'seq'), name='one_message_a_seq')],
                },
            ),
            migrations.CreateModel(
                name='ContextRevision',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('version', models.PositiveIntegerField()),
                    ('summary', models.TextField(blank=True, null=True)),
                    ('boundary_seq', models.PositiveIntegerField(blank=True, null=True)),
                    ('boundary_timestamp', models.DateTimeField(blank=True, null=True)),
                    ('kept_seqs', models.JSONField(default=list, help_text='Messages before the boundary that are still sent.')),
                    ('background', models.TextField(blank=True, help_text='Reference text that is sent with the summary: structured state, memory.')),
                    ('placement', models.JSONField(default=dict, help_text='Where the summary is placed and what stands around it (summary_block.py); empty: in the system text.')),
                    ('stale', models.BooleanField(default=False, help_text='It covers a message that was edited, superseded or deleted since.')),
                    ('source', models.CharField(choices=[('compaction', 'Compaction'), ('edit', 'Edit'), ('rewind', 'Rewind'), ('reset', 'Reset')], max_length=16)),
                    ('restores', models.PositiveIntegerField(blank=True, help_text='The version a rewind went back to.', null=True)),
                    ('run', models.CharField(blank=True, help_text='The compaction run that made it.', max_length=64)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                    ('session', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='revisions', to='chatcore.session')),
                    ('actor', models.ForeignKey(blank=True, db_constraint=False, db_index=False, help_text='Who asked for it; null: nobody did.', null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'ordering': ['session_id', 'version'],
                    'constraints': [models.UniqueConstraint(fields=('session', 'version'), name='one_revision_a_version')],
                },
            ),
            migrations.CreateModel(
                name='ContextEdit',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('kind', models.CharField(choices=[('pruned', 'Pruned'), ('deduplicated', 'Deduplicated'), ('excerpted', 'Excerpted'), ('images_stripped', 'Images Stripped'), ('hidden', 'Hidden')], max_length=16)),
                    ('replacement', models.TextField(blank=True)),
                    ('from_version', models.PositiveIntegerField()),
                    ('until_version', models.PositiveIntegerField(blank=True, help_text='Null: in force.', null=True)),
                    ('message', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='context_edits', to='chatcore.message')),
                    ('session', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='context_edits', to='chatcore.session')),
                ],
                options={
                    'indexes': [models.Index(condition=models.Q(('until_version', None)), fields=['session'], name='edits_in_force')],
                },
            ),
            migrations.CreateModel(
                name='Attachment',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('kind', models.CharField(choices=[('file', 'File'), ('output', 'Output')], default='file', max_length=8)),
                    ('name', models.CharField(max_length=255)),
                    ('media_type', models.CharField(max_length=100)),
                    ('size', models.PositiveIntegerField(help_text='Bytes.')),
                    ('token_estimate', models.PositiveIntegerField(default=0, help_text='Estimated tokens of the text, or of the image.')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                    ('message', models.ForeignKey(blank=True, help_text='Null: uploaded, not yet sent.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='attachments', to='chatcore.message')),
                    ('session', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='attachments', to='chatcore.session')),
                    ('data', models.BinaryField()),
                    ('text', models.TextField(blank=True, help_text='The text for a model that cannot open the file.')),
                ],
                options={
                    'ordering': ['created_at', 'id'],
                    'indexes': [models.Index(condition=models.Q(('message', None)), fields=['created_at'], name='attachments_not_sent'), models.Index(condition=models.Q(('kind', 'output')), fields=['session'], name='outputs_of_a_session'), models.Index(condition=models.Q(('kind', 'file')), fields=['session'], name='files_of_a_session')],
                },
            ),
            migrations.CreateModel(
                name='SessionEvent',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('seq', models.PositiveBigIntegerField()),
                    ('name', models.CharField(max_length=32)),
                    ('message', models.BigIntegerField(blank=True, help_text='The message a delta belongs to.', null=True)),
                    ('data', models.JSONField(default=dict)),
                    ('at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('session', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='events', to='chatcore.session')),
                    ('owner', models.ForeignKey(db_constraint=False, db_index=False, editable=False, help_text="The session's owner; null: a process of the version before has stored it.", null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'ordering': ['session_id', 'seq'],
                    'indexes': [models.Index(condition=models.Q(('name', 'context.usage')), fields=['session', 'seq'], name='usage_of_a_session'), models.Index(condition=models.Q(('message__isnull', False)), fields=['message'], name='deltas_of_a_message')],
                    'constraints': [models.UniqueConstraint(fields=('session', 'seq'), name='one_event_a_seq')],
                },
            ),
            migrations.CreateModel(
                name='Turn',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('status', models.CharField(choices=[('running', 'Running'), ('waiting', 'Waiting'), ('completed', 'Completed'), ('failed', 'Failed'), ('cancelled', 'Cancelled'), ('interrupted', 'Interrupted')], default='running', max_length=16)),
                    ('lease_until', models.DateTimeField()),
                    ('cancel_requested', models.BooleanField(default=False)),
                    ('idempotency_key', models.CharField(blank=True, max_length=255, null=True)),
                    ('payload_hash', models.CharField(blank=True, max_length=64)),
                    ('first_event_seq', models.PositiveBigIntegerField(default=0)),
                    ('notices', models.JSONField(default=list)),
                    ('tools', models.JSONField(default=list, help_text='Tools that the client runs itself: [{name, description, parameters}].')),
                    ('error', models.JSONField(blank=True, null=True)),
                    ('started_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('finished_at', models.DateTimeField(blank=True, null=True)),
                    ('model', models.ForeignKey(blank=True, db_index=False, help_text="Null: the session's.", null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='models_registry.aimodel')),
                    ('question', models.ForeignKey(blank=True, help_text="The user's message that it answers.", null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='chatcore.message')),
                    ('replaces', models.ForeignKey(blank=True, db_index=False, help_text='The answer that this turn writes again.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='chatcore.message')),
                    ('session', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='turns', to='chatcore.session')),
                    ('recalled', models.JSONField(blank=True, help_text='What it brings back from before the boundary. Null: it has not been looked for.', null=True)),
                    ('max_tool_calls', models.PositiveIntegerField(blank=True, help_text='How many tools its answers may call in all. Null: any number.', null=True)),
                    ('has_servers', models.BooleanField(db_default=False, default=False, help_text='Whether its request brought MCP servers along, which `mcp_servers` has.')),
                    ('clearing', models.JSONField(blank=True, help_text='What its client wants left out of its requests, and what was left out of the newest. Null: nothing.', null=True)),
                    ('owner', models.ForeignKey(db_constraint=False, db_index=False, editable=False, help_text="The session's owner; null: a process of the version before has stored it.", null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'indexes': [models.Index(condition=models.Q(('replaces__isnull', False)), fields=['replaces'], name='turns_that_replace'), models.Index(condition=models.Q(('model__isnull', False)), fields=['model'], name='turns_with_a_model'), models.Index(condition=models.Q(('status__in', ['running', 'waiting'])), fields=['session'], name='open_turns_of_a_session'), models.Index(fields=['-started_at'], name='turns_by_time'), models.Index(condition=models.Q(('status__in', ['waiting', 'failed', 'cancelled', 'interrupted'])), fields=['status', '-started_at'], name='turns_not_completed')],
                    'constraints': [models.UniqueConstraint(condition=models.Q(('status', 'running')), fields=('session',), name='one_running_turn_a_session'), models.UniqueConstraint(fields=('session', 'idempotency_key'), name='one_turn_an_idempotency_key')],
                },
            ),
            migrations.CreateModel(
                name='OutputFile',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('name', models.CharField(db_index=True, help_text='In the store of outputs.', max_length=100)),
                    ('size', models.PositiveIntegerField(help_text='Bytes.')),
                    ('attachment', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='file', to='chatcore.attachment')),
                    ('session', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='output_files', to='chatcore.session')),
                ],
            ),
            migrations.CreateModel(
                name='TokenName',
                fields=[
                    ('token', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='token_name', serialize=False, to='knox.authtoken')),
                    ('name', models.CharField(max_length=100)),
                ],
            ),
            migrations.CreateModel(
                name='McpServer',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('name', models.CharField(help_text='Its tools are called mcp__NAME__TOOL.', max_length=64, validators=[django.core.validators.RegexValidator('\\A[a-z0-9](-?[a-z0-9])*\\Z', 'Lower-case letters and digits, and - inside.'), django.core.validators.MaxLengthValidator(24)])),
                    ('url', models.CharField(help_text='The address of its streamable HTTP; or stdio:NAME for a command that the setting CHATCORE_MCP_COMMANDS names.', max_length=2000)),
                    ('encrypted_headers', models.TextField(blank=True, editable=False)),
                    ('header_names', models.JSONField(default=list, editable=False)),
                    ('require_approval', models.CharField(choices=[('always', 'Always'), ('never', 'Never')], default='always', help_text='Whether a person is asked before a call.', max_length=8)),
                    ('is_active', models.BooleanField(default=True)),
                    ('tools', models.JSONField(default=list, editable=False, help_text='What it offered when it was asked last: [{name, description, parameters}].')),
                    ('refreshed_at', models.DateTimeField(blank=True, editable=False, null=True)),
                    ('error', models.TextField(blank=True, editable=False, help_text='Why it could not be asked the last time.')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                    ('groups', models.ManyToManyField(blank=True, help_text='Who may use a shared server; none: everyone.', related_name='+', to='auth.group')),
                    ('owner', models.ForeignKey(blank=True, help_text='Empty: shared with everyone, or with the groups.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='mcp_servers', to=settings.AUTH_USER_MODEL)),
                    ('rules', models.JSONField(default=dict, editable=False, help_text='Which of its tools a request allows and which it asks about (tools/mcp/rules).')),
                    ('turn', models.ForeignKey(blank=True, editable=False, help_text='The turn whose request brought it along; empty for a server that stays.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='mcp_servers', to='chatcore.turn')),
                ],
                options={
                    'verbose_name': 'MCP server',
                    'ordering': ['name', 'created_at'],
                    'constraints': [models.UniqueConstraint(condition=models.Q(('owner', None)), fields=('name',), name='one_shared_mcp_server_a_name'), models.UniqueConstraint(condition=models.Q(('turn', None)), fields=('owner', 'name'), name='one_mcp_server_a_name'), models.UniqueConstraint(fields=('turn', 'name'), name='one_mcp_server_a_label')],
                },
            ),
            migrations.CreateModel(
                name='ToolApproval',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('tool', models.CharField(help_text='As its server calls it.', max_length=128)),
                    ('tool_call_id', models.CharField(max_length=255)),
                    ('decision', models.CharField(choices=[('once', 'Once'), ('always', 'Always'), ('deny', 'Deny'), ('never', 'Never')], max_length=8)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                    ('message', models.ForeignKey(help_text='The message that holds the call.', on_delete=django.db.models.deletion.CASCADE, related_name='+', to='chatcore.message')),
                    ('server', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='chatcore.mcpserver')),
                    ('session', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tool_approvals', to='chatcore.session')),
                    ('digest', models.CharField(blank=True, db_default='', default='', help_text='Of the address, description and schema that the person was asked about.', max_length=64)),
                ],
                options={
                    'ordering': ['created_at', 'id'],
                    'constraints': [models.UniqueConstraint(fields=('message', 'tool_call_id'), name='one_decision_a_call')],
                },
            ),
            migrations.CreateModel(
                name='IdempotencyKey',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('key', models.CharField(max_length=255)),
                    ('payload_hash', models.CharField(max_length=64)),
                    ('status', models.PositiveSmallIntegerField(null=True)),
                    ('session_id', models.UUIDField(help_text='The created session, which is shown.', null=True)),
                    ('body', models.TextField(blank=True, help_text='Any other answer, encrypted: it may hold a secret.')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                    ('owner', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('lease_until', models.DateTimeField(editable=False, help_text='Until when the first request is believed to run.', null=True)),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('owner', 'key'), name='one_request_of_a_key')],
                },
            ),
            migrations.CreateModel(
                name='Project',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('name', models.CharField(max_length=200)),
                    ('instructions', models.TextField(blank=True)),
                    ('rules', models.JSONField(default=list, help_text='Lines, word for word, in their order.')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                    ('edited_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, help_text='When what its chats are told last changed.')),
                    ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='projects', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'ordering': ['name', 'id'],
                },
            ),
            migrations.CreateModel(
                name='ProjectFile',
                fields=[
                    ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                    ('name', models.CharField(max_length=255)),
                    ('media_type', models.CharField(max_length=100)),
                    ('size', models.PositiveIntegerField(help_text='Bytes.')),
                    ('sent_chars', models.PositiveIntegerField(help_text='Characters that it takes in a request, with its fence.')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                    ('store_name', models.CharField(blank=True, db_index=True, help_text='Of its bytes in the store of files and outputs; empty: they are in the row.', max_length=100)),
                    ('data', models.BinaryField(help_text='Empty where the text is the file.')),
                    ('text', models.TextField()),
                    ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='files', to='chatcore.project')),
                ],
                options={
                    'ordering': ['created_at', 'id'],
                },
            ),
            migrations.CreateModel(
                name='SentRequest',
                fields=[
                    ('answer', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='sent_request', serialize=False, to='chatcore.message')),
                    ('layout', models.JSONField(help_text='The parts in their order (context/sent_requests.py).')),
                    ('session', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='sent_requests', to='chatcore.session')),
                ],
            ),
            migrations.CreateModel(
                name='SentText',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('digest', models.CharField(max_length=32)),
                    ('text', models.TextField()),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                    ('session', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='sent_texts', to='chatcore.session')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('session', 'digest'), name='one_sent_text_a_digest')],
                },
            ),
            migrations.CreateModel(
                name='Installation',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('key', models.UUIDField(default=uuid.uuid4, editable=False)),
                    ('clock_read_at', models.DateTimeField(editable=False, null=True)),
                    ('clock_doubted_at', models.DateTimeField(editable=False, null=True)),
                    ('deletion_confirmed_at', models.DateTimeField(editable=False, null=True)),
                    ('clock_boot', models.CharField(blank=True, default='', editable=False, max_length=64)),
                    ('clock_seconds', models.FloatField(default=0, editable=False)),
                    ('retention_since', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ],
            ),
            migrations.CreateModel(
                name='SetupEntry',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('section', models.CharField(help_text='As in the file: providers, models, …', max_length=32)),
                    ('name', models.CharField(max_length=200)),
                    ('fields', models.JSONField(default=list)),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('section', 'name'), name='one_entry_a_thing')],
                },
            ),
        ]),
        migrations.RunPython(create_tables, drop_tables),
        migrations.RunPython(create_search_index, drop_search_index),
    ]
