"""What Chatcore asks of memory as of any app; compaction asks `hooks`."""

from django.http import HttpRequest
from django.utils.safestring import SafeString

from chatcore.extension import Extension, Place


class Memory(Extension):
    session_sections = (
        "compaction.memory.ledger.transfer.LedgerSection",
        "compaction.memory.segments.transfer.SegmentSection",
    )

    pre_request_sql = (
        "EXISTS (SELECT 1 FROM compaction_standingrule rule"
        " WHERE rule.owner_id = session.owner_id)"
        " OR EXISTS (SELECT 1 FROM compaction_sentrules sent"
        " WHERE sent.session_id = session.id AND sent.fingerprint <> '')"
    )

    def build_page_parts(
        self, place: Place, request: HttpRequest, subject: object
    ) -> list[SafeString]:
        from compaction.memory import pages  # only pages show them

        return pages.build_parts(place, request, subject)
