"""The admin page of what the providers' counts have taught about each language model."""

from django.contrib import admin

from compaction.admin.base import UnaddableAdmin
from compaction.models import ModelRatio


@admin.register(ModelRatio)
class ModelRatioAdmin(UnaddableAdmin):
    """What was learned of a language model. Deleting a row forgets it."""

    list_display = (
        "model",
        "ratio",
        "samples",
        "window",
        "registered",
        "prompt_speed",
        "answer_speed",
    )
    search_fields = ("model",)
    readonly_fields = ("model", "samples", "registered", "prompt_speed", "answer_speed")
