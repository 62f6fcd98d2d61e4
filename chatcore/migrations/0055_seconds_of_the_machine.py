from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chatcore', '0054_where_forks_come_from'),
    ]

    operations = [
        migrations.AddField(
            model_name='installation',
            name='clock_boot',
            field=models.CharField(blank=True, default='', editable=False, max_length=64),
        ),
        migrations.AddField(
            model_name='installation',
            name='clock_seconds',
            field=models.FloatField(default=0, editable=False),
        ),
    ]
