"""Webhooks go to the app chatcore.contrib.webhooks, whose first migration adopts the tables."""

from django.db import migrations

from chatcore.base.databases.moved_tables import drop_if_empty


class Migration(migrations.Migration):

    dependencies = [
        ('chatcore', '0046_holds_are_an_app'),
    ]

    operations = [
        drop_if_empty('chatcore', 'WebhookDelivery', 'Webhook'),
        migrations.SeparateDatabaseAndState(state_operations=[
            migrations.DeleteModel('WebhookDelivery'),
            migrations.DeleteModel('Webhook'),
        ]),
    ]
