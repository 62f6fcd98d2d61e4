"""What groups let their members use."""

from typing import Any

from chatcore.accounts.rights import Kind
from chatcore.contrib.group_rights.models import GROUP_RIGHTS, GroupRights
from chatcore.extension import Extension

SWITCHES = {Kind.MODEL: "limits_models", Kind.POLICY: "limits_policies", Kind.TOOL: "limits_tools"}


class GroupLimits(Extension):
    tool_limits_sql = "EXISTS (SELECT 1 FROM chatcore_grouprights WHERE limits_tools)"

    def limit_names(self, user_ids: Any, kind: Kind) -> frozenset[str] | None:
        """Return what any of the user's groups allows; None where none says anything."""
        if not GROUP_RIGHTS.may_exist():
            return None
        limits = GroupRights.objects.filter(**{SWITCHES[kind]: True})
        lists = list(
            limits.filter(group__user__in=user_ids).values_list(f"{kind}_names", flat=True)
        )
        return frozenset(name for names in lists for name in names) if lists else None
