"""Read all messages again where the tables are new: what an absent app had read is not in them."""

from django.db import migrations


def forget_how_far(apps, schema_editor):
    alias = schema_editor.connection.alias
    if not apps.get_model('memory', 'LedgerLine').objects.using(alias).exists():
        states = apps.get_model('compaction', 'SessionState').objects.using(alias)
        states.filter(ledger_seq__gt=0).update(ledger_seq=0)


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0002_sessions_without_rules'),
    ]

    operations = [
        migrations.RunPython(forget_how_far, migrations.RunPython.noop),
    ]
