"""What the members of a group may use."""

from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import models

from chatcore.base.rare_rows import RareRow, RareRowQuerySet, RareRows


class GroupRights(RareRow):
    """What a group's members may use: language models, compaction policies and tools.

    Where a switch is off, the group says nothing about that kind. A name may end with `*`, which
    stands for any rest: `openai/*` are all models of a provider.
    """

    group = models.OneToOneField(Group, on_delete=models.CASCADE, related_name="+")
    limits_models = models.BooleanField(default=False, help_text="Only the models below.")
    model_names = models.JSONField(
        default=list, blank=True, help_text="provider/name, or provider/* for all of a provider."
    )
    limits_policies = models.BooleanField(default=False, help_text="Only the policies below.")
    policy_names = models.JSONField(
        default=list, blank=True, help_text="Those that people may choose."
    )
    limits_tools = models.BooleanField(default=False, help_text="Only the tools below.")
    tool_names = models.JSONField(
        default=list,
        blank=True,
        help_text=(
            "Built-in tools, and those of shared MCP servers: mcp__SERVER__TOOL or mcp__SERVER__*."
            " own__* are those of servers that people bring themselves."
        ),
    )

    objects = RareRowQuerySet["GroupRights"].as_manager()

    class Meta:
        db_table = "chatcore_grouprights"
        verbose_name = "rights of a group"
        verbose_name_plural = "rights of groups"

    def __str__(self) -> str:
        return f"Rights of {self.group}"

    def clean(self) -> None:
        """Refuse what is no list of names. Raises ValidationError, which names the field."""
        for field in ("model_names", "policy_names", "tool_names"):
            if not _is_name_list(getattr(self, field)):
                raise ValidationError({field: "A list of names."})


GROUP_RIGHTS = RareRows("chatcore_grouprights", "limits_models OR limits_policies OR limits_tools")


def _is_name_list(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) and name for name in value)
