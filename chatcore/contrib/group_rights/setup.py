"""Groups in the document that writes an installation down: what their members may use."""

from collections.abc import Iterable, Mapping

from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError

from chatcore.contrib.group_rights.models import GroupRights
from chatcore.setup.sections import Author, Section, SetupRefused, refuse

KINDS = {"models": "model", "policies": "policy", "tools": "tool"}


class Groups(Section):
    """Groups, each with the lists of names that limit its members; without a list, nothing does."""

    name = "groups"
    model = GroupRights
    permissions = (
        "auth.add_group",
        "group_rights.add_grouprights",
        "group_rights.change_grouprights",
    )
    fields = tuple(KINDS)

    def find_row(self, name: str) -> GroupRights:
        row = GroupRights.objects.select_related("group").filter(group__name=name).first()
        group = Group.objects.filter(name=name).first() or Group(name=name)
        return row or GroupRights(group=group)

    def list_rows(self) -> Iterable[GroupRights]:
        return GroupRights.objects.select_related("group").order_by("group__name")

    def get_name(self, row: GroupRights) -> str:
        return str(row.group.name)

    def describe_row(self, row: GroupRights) -> dict[str, object]:
        return {
            name: getattr(row, f"{kind}_names")
            for name, kind in KINDS.items()
            if getattr(row, f"limits_{name}")
        }

    def set_values(self, row: GroupRights, values: Mapping[str, object], author: Author) -> bool:
        """Set lists of names; None takes a limit away."""
        before = None if row._state.adding else self.describe_row(row)
        for name, names in values.items():
            if names is not None and not _is_list_of_names(names):
                raise SetupRefused(f"groups.{row.group.name}.{name}", "Must be a list of names.")
            setattr(row, f"limits_{name}", names is not None)
            if names is not None:
                setattr(row, f"{KINDS[name]}_names", names)
        if before == self.describe_row(row):
            return False
        if row.group._state.adding:
            try:
                row.group.full_clean()
            except ValidationError as error:
                raise refuse(error, f"groups.{row.group.name}") from None
            row.group.save()
        row.save()
        return True

    def get_default(self, field_name: str) -> object:
        return None

    def deactivate(self, row: GroupRights) -> None:
        """Let the group say nothing any more; its members stay in it."""
        GroupRights.objects.filter(pk=row.pk).update(
            limits_models=False, limits_policies=False, limits_tools=False
        )


def _is_list_of_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) and name for name in value)
