"""The one signal of chatcore. It announces; nobody waits for its receivers."""

from django.dispatch import Signal

# Sent after the commit that stores the last answer of a turn, after all of its tool rounds. It is
# sent robustly: an exception in a receiver is logged and does not reach the sender.
# Arguments: session_id (UUID), turn_id (UUID), message_id (int), model (str, "provider/name").
response_completed = Signal()
