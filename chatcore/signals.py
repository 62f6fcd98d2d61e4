"""What chatcore announces. No sender of a signal uses what its receivers return."""

from django.dispatch import Signal

# The first two are sent robustly: an exception in a receiver is logged and does not reach the
# sender. Their receivers run in threads of their own, those of one session in the order of its
# signals. No reply and no turn waits for them. A process that dies, or that 1,000 signals wait in,
# sends some of them never: a receiver must be able to make up for it at the next one.

# Sent after the commit that stores the last answer of a turn, after all of its tool rounds.
# Arguments: session_id (UUID), turn_id (UUID), message_id (int), model (str, "provider/name").
response_completed = Signal()

# Sent after the commit with which a turn stops without such an answer: it waits for results of its
# client's tools or for approvals, it has failed, or it was cancelled. It may have added messages.
# Not sent for a turn whose process has died, nor for one whose session is deleted.
# Arguments: session_id (UUID), turn_id (UUID), status (str, a value of Turn.Status).
turn_halted = Signal()

# The next six are sent in the transaction that makes the change, while the session's row is
# locked. So receivers must be fast, and an exception in one undoes the change.

# These messages are being deleted: what was written from them has to go.
# Arguments: session (Session), seqs (Collection[int]).
messages_deleted = Signal()

# An answer is being stored, or what had arrived of one.
# Arguments: message (Message), request (chatcore.providers.base.Request), left_out (Sequence[int]),
# the numbers of the messages that the request does not hold.
answer_stored = Signal()

# These messages are no longer part of the current conversation, or are part of it again. The
# summaries that cover them have been reverted.
# Arguments: session (Session), seqs (Collection[int]).
messages_superseded = Signal()

# The model sees again what it saw under an earlier version of the context.
# Arguments: revision (ContextRevision), which `restores` that version.
context_rewound = Signal()

# A session has got copies of the messages of `source` up to and including number `last_seq`, and
# the newest summary that covers only these.
# Arguments: session (Session), source (Session), last_seq (int).
session_forked = Signal()

# A client has summarized its conversation by itself, and goes on with its summary in place of all
# messages before number `boundary_seq`. These stay in the chat.
# Arguments: session (Session), summary (str), boundary_seq (int), mark (dict[str, str]), which the
# placement of a revision with the summary has to contain: by it, the summary is recognized later.
history_summarized = Signal()

# Sent outside any transaction before a request of a session is built, to bring up to date what is
# sent beside its summary, if an app's `pre_request_sql` holds. The request waits for the receivers.
# Arguments: session (Session).
pre_request = Signal()

# An operator has tested a language model, or has said what it takes. What refusals had shown of its
# window is to be found out anew.
# Arguments: model (AiModel).
model_confirmed = Signal()

# Sent after the commit that deleted rows of files in the store, which no other row may refer to.
# Arguments: names (list[str]).
files_released = Signal()
