from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("models_registry", "0002_seed_the_catalog")]

    operations = [
        migrations.AlterModelOptions(
            name="provider",
            options={
                "permissions": [
                    ("connect_provider", "Can change addresses and keys of providers, and test them")
                ]
            },
        ),
    ]
