"""The table of what calls of each language model have taught."""

from django.db import models


class ModelRatio(models.Model):
    """What calls of a model taught: real tokens for each estimated one, its window, its speed."""

    model = models.CharField(max_length=255, unique=True, help_text="provider/name")
    ratio = models.FloatField(default=1)
    samples = models.PositiveIntegerField(default=0)
    window = models.PositiveIntegerField(
        null=True, blank=True, help_text="Tokens; the window that a refusal named. Null: none did."
    )
    window_learned_at = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text="When it was learned, or last doubted by sending a longer request.",
    )
    registered = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="The registry's window at that time. If it has changed since, "
        "the learned window is void.",
    )
    prompt_speed = models.FloatField(
        null=True, blank=True, help_text="Tokens a second that it reads; null: not measured."
    )
    answer_speed = models.FloatField(
        null=True, blank=True, help_text="Tokens a second that it writes; null: not measured."
    )

    class Meta:
        app_label = "compaction"

    def __str__(self) -> str:
        return self.model
