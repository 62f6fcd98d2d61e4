from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('models_registry', '0001_squashed_0011'),
    ]

    operations = [
        migrations.AlterField(
            model_name='provider',
            name='protocol',
            field=models.CharField(max_length=16),
        ),
    ]
