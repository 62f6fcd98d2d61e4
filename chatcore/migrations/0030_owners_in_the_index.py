"""Say in PostgreSQL's search index whose message it is, so that a search reads nobody else's."""

from django.db import migrations

from chatcore.search.index import OwnersInIndex


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("chatcore", "0029_turns_by_time")]

    operations = [OwnersInIndex()]
