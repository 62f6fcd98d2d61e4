"""The app of sent requests."""

from chatcore.extension import ExtensionConfig
from chatcore.signals import answer_stored, messages_deleted


class SentRequests(ExtensionConfig):
    default = True
    name = "chatcore.contrib.sent_requests"
    label = "sent_requests"
    verbose_name = "Sent requests"
    extension = "chatcore.contrib.sent_requests.extension.SentRequests"

    def ready(self) -> None:
        from chatcore.contrib.sent_requests.records import forget_texts, store_request

        answer_stored.connect(store_request, dispatch_uid="sent_requests.store_request")
        messages_deleted.connect(forget_texts, dispatch_uid="sent_requests.forget_texts")
