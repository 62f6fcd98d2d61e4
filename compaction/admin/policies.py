"""The admin page of the operator's own policies."""

from django.contrib import admin

from compaction.models import CompactionPolicy


@admin.register(CompactionPolicy)
class CompactionPolicyAdmin(admin.ModelAdmin):
    """A preset with overrides under a name of its own; saving it validates the overrides."""

    list_display = ("name", "base", "overrides")
    search_fields = ("name",)
