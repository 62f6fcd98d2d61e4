"""The app of rights of groups."""

from chatcore.extension import ExtensionConfig


class GroupRightsApp(ExtensionConfig):
    default = True
    name = "chatcore.contrib.group_rights"
    label = "group_rights"
    verbose_name = "Rights of groups"
    extension = "chatcore.contrib.group_rights.extension.GroupLimits"

    def ready(self) -> None:
        from chatcore.setup import registry

        registry.register("chatcore.contrib.group_rights.setup.Groups")
