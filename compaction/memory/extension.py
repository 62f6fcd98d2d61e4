"""What Chatcore asks of memory as of any app; compaction asks `hooks`."""

from django.http import HttpRequest
from django.utils.safestring import SafeString

from chatcore.extension import Extension, Place


class Memory(Extension):
    session_sections = (
        "compaction.memory.ledger.transfer.LedgerSection",
        "compaction.memory.segments.transfer.SegmentSection",
    )

    def build_page_parts(
        self, place: Place, request: HttpRequest, subject: object
    ) -> list[SafeString]:
        from compaction.memory import pages  # only pages show them

        return pages.build_parts(place, request, subject)
