"""Let a token say whether conversations of its programs are stored."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("chatcore", "0069_token_uses"),
    ]

    operations = [
        migrations.AddField(
            model_name="tokenname",
            name="keeps_conversations",
            field=models.BooleanField(
                db_default=True,
                default=True,
                help_text="Whether conversations that its programs name by themselves are stored.",
            ),
        ),
        migrations.AlterField(
            model_name="tokenname",
            name="name",
            field=models.CharField(blank=True, max_length=100),
        ),
    ]
