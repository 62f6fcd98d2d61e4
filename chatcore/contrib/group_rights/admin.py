"""The admin page of what the members of groups may use."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.widgets import FilteredSelectMultiple
from django.db.models import JSONField

from chatcore.accounts.rights import WILDCARD
from chatcore.admin.setup_file import SetupFileAdmin
from chatcore.context.compactor import get_compactor
from chatcore.contrib.group_rights.models import GroupRights
from chatcore.models import McpServer
from chatcore.tools import registry as tool_registry
from chatcore.tools.mcp import catalog
from models_registry.models import AiModel

NAME_FIELDS = ("model_names", "policy_names", "tool_names")


class NamesField(forms.MultipleChoiceField):
    """Names of things that exist, and names that were stored before and are gone now."""

    def __init__(self, label: str, **options: Any) -> None:
        super().__init__(
            required=False, widget=FilteredSelectMultiple(label, is_stacked=True), **options
        )

    def offer_choices(self, names: Iterable[str], stored_names: Iterable[str]) -> None:
        """Offer these names in the form."""
        self.choices = [(name, name) for name in sorted({*names, *stored_names})]


class GroupRightsForm(forms.ModelForm):
    """The rights of a group, chosen from what there is."""

    model_names = NamesField("models")
    policy_names = NamesField("policies")
    tool_names = NamesField("tools")

    class Meta:
        model = GroupRights
        fields = ("group", "limits_models", "limits_policies", "limits_tools", *NAME_FIELDS)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "group" not in self.fields:  # for who may only look
            return
        names = (_list_model_names(), get_compactor().list_policies(), _list_tool_names())
        for field_name, choices in zip(NAME_FIELDS, names, strict=True):
            field = self.fields[field_name]
            assert isinstance(field, NamesField)
            column = GroupRights._meta.get_field(field_name)
            assert isinstance(column, JSONField)
            field.help_text = column.help_text
            field.offer_choices(choices, getattr(self.instance, field_name))


@admin.register(GroupRights)
class GroupRightsAdmin(SetupFileAdmin):
    """What members of groups may use; where a switch is off, the group says nothing about it."""

    sidebar = ("people", "key")
    form = GroupRightsForm
    setup_section = "groups"
    list_display = ("group", "limits_models", "limits_policies", "limits_tools")
    list_select_related = ("group",)
    fieldsets = (
        (None, {"fields": ("group",)}),
        ("Language models", {"fields": ("limits_models", "model_names")}),
        ("Compaction policies", {"fields": ("limits_policies", "policy_names")}),
        ("Tools", {"fields": ("limits_tools", "tool_names")}),
    )

    def get_setup_name(self, row: GroupRights) -> str:
        """Return the name of the group."""
        return str(row.group.name)


def _list_model_names() -> list[str]:
    rows = AiModel.objects.values_list("provider__name", "name")
    names = {f"{provider}/{name}" for provider, name in rows}
    return [*names, *(f"{name.partition('/')[0]}/{WILDCARD}" for name in names)]


def _list_tool_names() -> list[str]:
    names = [tool.name for tool in tool_registry.build_definitions()]
    names.append(catalog.OWN_PREFIX + WILDCARD)
    for server in McpServer.objects.filter(owner=None):
        names.append(catalog.build_tool_name(server.name, "") + WILDCARD)
        names += (tool.definition.name for tool in catalog.list_tools_of(server))
    return names
