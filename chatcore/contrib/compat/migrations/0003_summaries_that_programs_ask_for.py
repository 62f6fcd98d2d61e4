"""Note the summaries that programs ask for, to know a history that begins with one."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chatcore', '0071_user_preferences'),
        ('compat', '0002_histories_without_a_name'),
    ]

    operations = [
        migrations.AddField(
            model_name='historykey',
            name='client',
            field=models.CharField(blank=True, db_default='', default='', help_text='A hash of the user and the token.', max_length=64),
        ),
        migrations.AddField(
            model_name='historykey',
            name='summary',
            field=models.TextField(blank=True, db_default='', default='', help_text='A summary that its program asked for.'),
        ),
    ]
