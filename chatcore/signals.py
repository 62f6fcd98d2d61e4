"""The only signal."""

from django.dispatch import Signal

# Sent on commit, robustly, when the last answer of a turn (all tool rounds included) is stored; nobody waits for it.
# provides args: session_id (UUID), turn_id (UUID), message_id (int), model (str, "provider/name")
response_completed = Signal()
