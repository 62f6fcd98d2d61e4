"""The app of invitations."""

from chatcore.extension import ExtensionConfig


class Invitations(ExtensionConfig):
    default = True
    name = "chatcore.contrib.invitations"
    label = "invitations"
    verbose_name = "Invitations"
