from django.db import migrations, models


def forget_default(apps, schema_editor):
    """Let images be tried with models of which neither the catalog nor an operator said anything.

    False was the default, so it says nothing where the catalog has not written it. The embedded
    model of this program sees none.
    """
    ai_model = apps.get_model("models_registry", "AiModel")
    models = ai_model.objects.using(schema_editor.connection.alias)
    for model in models.filter(supports_images=False).exclude(provider__name="local"):
        if "supports_images" not in model.catalog_values:
            models.filter(pk=model.pk).update(supports_images=None)


class Migration(migrations.Migration):

    dependencies = [
        ('models_registry', '0008_unknown_abilities'),
    ]

    operations = [
        migrations.AlterField(
            model_name='aimodel',
            name='supports_images',
            field=models.BooleanField(blank=True, help_text='Unknown: images are sent, until the provider refuses them for this model.', null=True),
        ),
        migrations.RunPython(forget_default, migrations.RunPython.noop),
    ]
