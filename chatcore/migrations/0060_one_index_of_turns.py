"""Have one index of turns by session and key again, in place of the two of 0058.

With an index of the session alone, SQLite reads all turns of a session to find its open one.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chatcore", "0059_no_keys_that_are_not_given")]

    operations = [
        migrations.AddConstraint(
            model_name="turn",
            constraint=models.UniqueConstraint(
                fields=("session", "idempotency_key"), name="one_turn_an_idempotency_key"
            ),
        ),
        migrations.RemoveConstraint("turn", "one_turn_of_an_idempotency_key"),
        migrations.RemoveIndex("turn", "turns_of_a_session"),
    ]
