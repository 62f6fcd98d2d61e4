"""Add up the live messages, without loading any text."""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Case, Count, Exists, F, FilteredRelation, OuterRef, Q, Sum, When
from django.db.models.functions import Greatest, Length

from chatcore.base.token_estimate import CHARS_PER_TOKEN_ESTIMATE
from chatcore.context.live_messages import SENDABLE
from chatcore.models import Attachment, ContextEdit, Message, MessageQuerySet

# A message in another form has the size of its replacement, and a hidden one has none.
_SHOWN_TOKENS = Case(
    When(edit__pk=None, then=F("token_estimate")),
    When(edit__kind=ContextEdit.Kind.HIDDEN, then=0),
    default=Greatest(Length("edit__replacement") / CHARS_PER_TOKEN_ESTIMATE, 1),
)


@dataclass(frozen=True, kw_only=True)
class LiveContext:
    """What decides which messages of a session are live."""

    session_id: UUID
    version: int
    boundary_seq: int | None
    kept_seqs: Collection[int] = ()

    @property
    def start_seq(self) -> int:
        """Return the number before the first message that is live by its number."""
        return (self.boundary_seq or 1) - 1


@dataclass(frozen=True, kw_only=True)
class FileSum:
    """The estimated tokens of all files of live messages but images, and the number of these."""

    tokens: int
    images: int


def sum_live_tokens(
    context: LiveContext, *, after_seq: int = 0, before_seq: int | None = None
) -> int:
    """Return the estimated tokens of the live messages between two numbers, both excluded.

    Files are not included.
    """
    messages = _select_live_messages(context, after_seq, before_seq)
    if not context.version:
        return messages.aggregate(tokens=Sum("token_estimate"))["tokens"] or 0
    in_force = FilteredRelation("context_edits", condition=Q(context_edits__until_version=None))
    edited_messages = messages.annotate(edit=in_force)
    return edited_messages.aggregate(tokens=Sum(_SHOWN_TOKENS))["tokens"] or 0


def count_live_messages(
    context: LiveContext, *, after_seq: int = 0, before_seq: int | None = None
) -> int:
    """Return the number of live messages between two numbers, both excluded."""
    return _select_live_messages(context, after_seq, before_seq).count()


def sum_live_files(context: LiveContext) -> FileSum:
    """Return the sum of the files of all live messages. A message in another form has none."""
    live_messages = _select_live_messages(context, 0, None)
    edits = ContextEdit.objects.filter(message=OuterRef("message"), until_version=None)
    files = Attachment.objects.filter(
        ~Exists(edits),
        session=context.session_id,
        kind="file",
        message__in=live_messages.values("pk"),
    )
    is_image = Q(media_type__startswith="image/")
    sums = files.aggregate(
        tokens=Sum("token_estimate", filter=~is_image), images=Count("pk", filter=is_image)
    )
    return FileSum(tokens=sums["tokens"] or 0, images=sums["images"])


def _select_live_messages(
    context: LiveContext, after_seq: int, before_seq: int | None
) -> MessageQuerySet:
    """Return the live messages between two numbers, both excluded, in no order."""
    start_seq = max(after_seq, context.start_seq)
    before = {} if before_seq is None else {"seq__lt": before_seq}
    session_messages = Message.objects.order_by()
    late = Q(session=context.session_id, seq__gt=start_seq, **before)
    if after_seq >= context.start_seq:
        return session_messages.filter(late, SENDABLE)
    # A union, because databases answer an OR over three indexes by reading the whole session.
    early = Q(session=context.session_id, seq__gt=after_seq, seq__lte=start_seq, **before)
    early_queries = [session_messages.filter(early, pinned=True).values("pk")]
    if context.kept_seqs:
        kept = Q(seq__in=context.kept_seqs)
        early_queries.append(session_messages.filter(early, kept).values("pk"))
    live_ids = session_messages.filter(late).values("pk").union(*early_queries)
    return session_messages.filter(SENDABLE, pk__in=live_ids)
