"""Drop the indexes over keys that were mostly null; those of 0058 are in their place.

A migration of its own: SQLite makes both tables anew for it, in one transaction.
"""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("chatcore", "0058_keys_that_are_given")]

    operations = [
        migrations.RemoveConstraint("turn", "one_turn_an_idempotency_key"),
        migrations.RemoveConstraint("session", "one_session_an_external_id"),
    ]
