"""What Chatcore asks of compaction as of any app; during a conversation it asks the compactor."""

from collections.abc import Iterable

from django.http import HttpRequest

from chatcore.extension import Card, Extension


class Compaction(Extension):
    session_sections = ("compaction.sessions.own_sentences.OwnSentenceSection",)

    def list_cards(self, request: HttpRequest) -> Iterable[Card]:
        from compaction.admin import overview  # only the admin shows them

        return overview.list_cards(request)
