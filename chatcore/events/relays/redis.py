"""Send events by a stream of Redis, and follow it."""

from typing import Any

import redis
from django.conf import settings
from django.db import connection, transaction

from chatcore.base.caches import Breaker, unify_redis_errors
from chatcore.events.hub import EventHub
from chatcore.events.relays.base import EventsBySession, encode_packets, publish_packet

STREAM = "chatcore:events"
# A reader that is further behind reads the database, as it does for an event above MAX_BYTES. With
# these two the stream has 64 MB at most.
STREAM_LENGTH = 8_000  # packets
MAX_BYTES = 8_000
# The stream has text of conversations, which may be deleted meanwhile. A packet goes with the first
# one that comes so much later, or with the whole stream: after twice this time, a minute.
KEEP_SECONDS = 30
WAIT_SECONDS = 1.0
CONNECT_SECONDS = 0.5


class RedisRelay:
    """Sends events after the commit; Redis has them for a short time, and the database for good.

    While Redis is away nothing is sent, and the readers of other processes find the events by the
    checks of the database.
    """

    check_seconds = 2.0

    def __init__(self) -> None:
        self._client: redis.Redis | None = None
        self._position = "0-0"
        self._breaker = Breaker(
            "Redis does not take events: %s; readers find them in the database",
            "Redis takes events again",
        )

    def send(self, events_by_session: EventsBySession) -> None:
        """Add the events to the stream after the commit."""
        packets = list(encode_packets(events_by_session, max_bytes=MAX_BYTES))
        if packets:  # none where all sessions were deleted meanwhile
            transaction.on_commit(lambda: self._add_packets(packets), robust=True)

    def open(self) -> None:
        """Begin behind the newest packet."""
        newest_entries = self._get_client().xrevrange(STREAM, count=1)
        self._position = newest_entries[0][0] if newest_entries else "0-0"

    def receive(self, hub: EventHub) -> None:
        """Publish what comes within WAIT_SECONDS."""
        streams = self._get_client().xread(
            {STREAM: self._position}, count=100, block=int(WAIT_SECONDS * 1000)
        )
        for _, entries in streams:
            for entry_id, fields in entries:
                self._position = entry_id
                publish_packet(hub, fields["packet"])

    def close(self) -> None:
        """Close the database connection of this thread; the client's pool closes itself."""
        connection.close()

    def _add_packets(self, packets: list[str]) -> None:
        """Add packets to the stream. Without Redis, drop them: the database has the events."""
        if not self._breaker.allows_try():
            return
        try:
            with unify_redis_errors():
                self._send_packets(packets)
        except redis.RedisError as error:
            self._breaker.note_failure(error)
        else:
            self._breaker.note_success()

    def _send_packets(self, packets: list[str]) -> None:
        pipeline = self._get_client().pipeline(transaction=False)
        for packet in packets:
            pipeline.xadd(STREAM, {"packet": packet}, maxlen=STREAM_LENGTH, approximate=True)
        pipeline.expire(STREAM, KEEP_SECONDS)
        *entry_ids, _ = pipeline.execute()
        # An entry's id begins with the milliseconds of Redis's clock, which may differ from ours.
        # Exactly, because an approximate trim leaves up to a hundred packets for as long as a
        # slow trickle of events keeps the stream from expiring.
        newest = int(entry_ids[-1].partition("-")[0])
        self._get_client().xtrim(STREAM, minid=newest - KEEP_SECONDS * 1_000, approximate=False)

    def _get_client(self) -> Any:
        if self._client is None:
            self._client = redis.Redis.from_url(
                settings.REDIS_URL,
                decode_responses=True,
                socket_connect_timeout=CONNECT_SECONDS,
                socket_timeout=WAIT_SECONDS * 3,
            )
        return self._client
