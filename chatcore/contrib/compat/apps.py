"""The app of the APIs of others."""

from chatcore.extension import ExtensionConfig


class Compat(ExtensionConfig):
    default = True
    name = "chatcore.contrib.compat"
    label = "compat"
    verbose_name = "APIs of others"
    extension = "chatcore.contrib.compat.extension.Compat"

    def ready(self) -> None:
        """Have what is refused below the paths of these APIs in their own forms."""
        from chatcore.base.rest.refusals import register_form
        from chatcore.contrib.compat.chat_completions.errors import format_error
        from chatcore.contrib.compat.messages.errors import format_error as format_message_error
        from chatcore.contrib.compat.switches import is_on

        register_form("/v1/", format_error)
        if is_on("messages"):
            register_form("/v1/messages", format_message_error)
