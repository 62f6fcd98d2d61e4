from django.db import migrations

from chatcore.search.index import SearchIndex


class Migration(migrations.Migration):
    dependencies = [("chatcore", "0001_initial")]

    operations = [SearchIndex()]
