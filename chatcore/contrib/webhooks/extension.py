"""When webhooks are told, and what goes on besides requests."""

from collections.abc import Sequence
from uuid import UUID

from chatcore.contrib.webhooks import deliveries
from chatcore.events.types import Event
from chatcore.extension import Chore, Extension, GaugeValue

PRUNE_SECONDS = 600.0


class Webhooks(Extension):
    account_paths = ("/api/v1/webhooks",)

    def on_events(self, session_id: UUID, events: Sequence[Event]) -> None:
        deliveries.queue_deliveries(session_id, events)

    def list_chores(self) -> list[Chore]:
        return [
            Chore(PRUNE_SECONDS, deliveries.delete_old_deliveries, is_deletion=True),
            Chore(deliveries.POLL_SECONDS, deliveries.send_deliveries),
        ]

    def list_gauges(self) -> list[GaugeValue]:
        count, oldest_seconds = deliveries.measure_backlog()
        return [
            GaugeValue(
                "chatcore_webhook_deliveries_waiting", "Deliveries that have not ended.", count
            ),
            GaugeValue(
                "chatcore_webhook_oldest_waiting_seconds",
                "How long ago the event of the oldest delivery that has not ended happened.",
                oldest_seconds,
            ),
        ]
