"""Load what is known of a session before its messages are, and sums over these."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import QuerySet
from django.db.models.functions import Coalesce

from chatcore.accounts.rights import list_allowed_tools
from chatcore.context import live_messages, recalled, summary_block
from chatcore.context.live_messages import LiveContext
from chatcore.context.past_files import NO_FILES, PastFiles, load_past_files
from chatcore.files.rendering import MAX_IMAGES
from chatcore.models import ContextRevision, Message, Session, Turn
from chatcore.models.statements import load_measured_row
from chatcore.projects import system_text
from chatcore.projects.system_text import SharedText, choose_files
from chatcore.providers.base import Tool
from chatcore.tools import read_attachment
from chatcore.tools import registry as tool_registry
from chatcore.turns import client_tools
from compaction.core.estimate import LastUsage
from compaction.sessions.translation import serialize_tools
from models_registry.catalog import look_up_model
from models_registry.models import AiModel

_REWIND_SOURCES = (ContextRevision.Source.REWIND, ContextRevision.Source.RESET)

NO_SESSION = UUID(int=0)
NO_CONTEXT = LiveContext(session_id=NO_SESSION, version=0, boundary_seq=None)


@dataclass(frozen=True, kw_only=True)
class ModelFacts:
    """What is known of a language model. A size is in tokens; None: unknown."""

    name: str  # provider/name; empty where there is none
    family: str
    window: int | None
    max_input: int | None = None  # the most that the model takes as a request, if that is less
    output_reserve: int | None
    policy: str = ""
    summary_model: str = ""


@dataclass(frozen=True, kw_only=True)
class FixedSizes:
    """The sizes of everything that is sent apart from messages, in characters or tokens."""

    system_chars: int = 0
    tool_chars: int = 0
    reference_chars: int = 0  # the text around the summary, and the background beside it
    recalled_chars: int = 0  # what the open turn brings back from before the boundary
    attached_tokens: int = 0  # text files of live messages, estimated by CHARS_PER_TOKEN_ESTIMATE
    attached_images: int = 0

    @property
    def chars(self) -> int:
        """The characters of all of it but the files."""
        return self.system_chars + self.tool_chars + self.reference_chars + self.recalled_chars


class LiveSum(NamedTuple):
    """The stored token estimates of all live messages, and of the newest one."""

    tokens: int
    newest: int


@dataclass(frozen=True, kw_only=True)
class SessionFacts:
    """What is known about a session, or a model alone, before any message is loaded.

    Names are empty strings where nothing is set.
    """

    session_id: UUID = NO_SESSION
    owner_pk: int | None = None  # the key of its user; None for a model alone
    model: ModelFacts

    # Its settings.
    policy: str = ""
    compact_threshold: float | None = None  # a share, or tokens above 1
    is_automatic: bool = True
    max_tokens: int | None = None  # the longest answer that the session requests

    # Its context. The user may have gone back to an earlier one, and nothing was installed since
    # then.
    live: LiveContext = NO_CONTEXT
    is_rewound: bool = False
    summary: str | None = None
    sizes: FixedSizes = FixedSizes()

    # Its messages, compacted ones included.
    message_count: int = 0
    last_seq: int = 0
    newest_prompt_tokens: int = 0  # of the newest user message, as it is stored

    # The provider's count of this model's last call on exactly this context.
    last_usage: LastUsage | None = None

    # None: it is asked for where it is needed.
    live_sum: LiveSum | None = None


def load_session_facts(session_id: UUID) -> SessionFacts | None:
    """Return the session's facts, or None if it is deleted.

    This takes one query, up to two more if the session has files, and one more if it is in a
    project.
    """
    row = load_measured_row(session_id)
    if row is None:
        return None
    shared_text = system_text.load_shared_text(row["project_id"]) if row["project_id"] else None
    past_files = _load_past_files(session_id, row)
    reference = system_text.join_texts((row["background"], past_files.text))
    model_name = _join_model_name(row["provider_name"], row["model_name"])
    facts = SessionFacts(
        session_id=session_id,
        owner_pk=row["owner_id"],
        model=ModelFacts(
            name=model_name,
            family=row["family"] or "",
            window=row["context_window_size"],
            max_input=row["max_input_tokens"],
            output_reserve=row["output_reserve"],
            policy=row["model_policy"] or "",
            summary_model=row["summary_model_name"] or model_name,
        ),
        policy=row["policy"],
        compact_threshold=row["compact_threshold"],
        is_automatic=row["auto_compact"],
        max_tokens=row["params"].get("max_tokens"),
        live=LiveContext(
            session_id=session_id,
            version=row["context_version"],
            boundary_seq=row["compact_boundary_seq"],
            kept_seqs=tuple(row["kept_seqs"] or ()),
        ),
        is_rewound=row["revision_source"] in _REWIND_SOURCES,
        summary=row["compacted_summary"],
        sizes=FixedSizes(
            system_chars=row["system_chars"],
            tool_chars=len(serialize_tools(_list_tools(session_id, row, shared_text, past_files))),
            reference_chars=summary_block.count_wrapping_chars(
                row["compacted_summary"], reference, row["placement"] or {}
            ),
            recalled_chars=recalled.count_block_chars(row["recalled"]),
        ),
        message_count=row["message_count"],
        last_seq=row["last_seq"],
        newest_prompt_tokens=row["newest_prompt_tokens"] or 0,
        last_usage=_build_last_usage(row),
    )
    if shared_text:
        facts = _add_project(facts, row, shared_text)
    return _add_files(facts, row) if row["has_attachments"] else facts


def build_model_facts(model: AiModel) -> ModelFacts:
    """Return what is known of a model of the registry; this takes no query."""
    return ModelFacts(
        name=str(model),
        family=model.provider.family,
        window=model.context_window_size,
        max_input=model.max_input_tokens,
        output_reserve=model.output_reserve,
        policy=model.policy,
    )


def describe_model(facts: SessionFacts, *, provider: str, model: str) -> SessionFacts:
    """Return the facts with the sizes of the registry's model, else of the catalog's."""
    name = model or facts.model.name.partition("/")[2]
    if provider:
        rows = AiModel.objects.select_related("provider")
        row = rows.filter(provider__name=provider, name=name).first()
    else:
        row = AiModel.objects.find_by_name(name)
    if row is not None:
        model_facts = build_model_facts(row)
    else:
        catalog_model = look_up_model(name)
        values = catalog_model.values if catalog_model else {}
        model_facts = ModelFacts(
            name=_join_model_name(provider, name),
            family=provider,
            window=values.get("context_window_size"),
            max_input=values.get("max_input_tokens"),
            output_reserve=values.get("output_reserve"),
        )
    model_facts = replace(model_facts, summary_model=facts.model.summary_model)
    return replace(facts, model=model_facts, last_usage=None)


def sum_message_tokens(
    facts: SessionFacts, *, after_seq: int = 0, before_seq: int | None = None
) -> int:
    """Return the stored token estimates of the live messages in a range, both ends excluded.

    Right after an answer this reads none after it, because the answer is the newest message.
    """
    if after_seq >= facts.last_seq > 0:
        return 0
    if facts.live_sum and not after_seq and before_seq in (None, facts.last_seq):
        return facts.live_sum.tokens - (facts.live_sum.newest if before_seq else 0)
    return live_messages.sum_live_tokens(facts.live, after_seq=after_seq, before_seq=before_seq)


def count_live_messages(facts: SessionFacts) -> int:
    """Return the number of messages that the next request would send."""
    if not facts.live.boundary_seq:
        return facts.message_count
    return live_messages.count_live_messages(facts.live)


def estimate_file_growth(facts: SessionFacts) -> int:
    """Return the characters that naming files may add if all messages are compacted.

    The tool that reads them comes with the first one.
    """
    live = facts.live
    if not (facts.sizes.attached_tokens or facts.sizes.attached_images):
        return 0
    present_files = load_past_files(facts.session_id, live.boundary_seq, live.kept_seqs)
    files = load_past_files(facts.session_id, facts.last_seq + 1)
    growth = max(0, len(files.text) - len(present_files.text))
    if files.has_texts and not present_files.has_texts:
        growth += len(serialize_tools([read_attachment.TOOL.definition]))
    return growth


def load_last_model(facts: SessionFacts) -> str:
    """Return the model that gave the newest answer; empty before the first."""
    answers = Message.objects.filter(
        session_id=facts.session_id, role=Message.Role.ASSISTANT
    ).exclude(model="")
    return answers.order_by("-seq").values_list("model", flat=True).first() or ""


def load_sent_tokens(session_id: UUID) -> int | None:
    """Return the tokens of the newest request that was answered, trimmed or not.

    They are the provider's count, or our estimate of what was sent; None if neither is known.
    """
    answers = Message.objects.filter(
        session=session_id, branch=None, role=Message.Role.ASSISTANT, turn__isnull=False
    ).exclude(status=Message.Status.STREAMING)
    tokens = answers.annotate(sent=Coalesce("token_count_input", "sent_tokens"))
    return tokens.order_by("-seq").values_list("sent", flat=True).first()


def count_tool_rounds(facts: SessionFacts) -> tuple[int, int]:
    """Return the rounds of tool calls since the user's last message, and the calls.

    Messages that were compacted meanwhile count too.
    """
    messages = (
        Message.objects.filter(session_id=facts.session_id).exclude_superseded().order_by("-seq")
    )
    prompts = messages.filter(role=Message.Role.USER)
    prompt_seq = prompts.values_list("seq", flat=True).first() or 0
    answers = messages.filter(seq__gt=prompt_seq, role=Message.Role.ASSISTANT)
    call_lists = answers.values_list("tool_calls", flat=True)
    call_counts = [len(calls) for calls in call_lists if calls]
    return len(call_counts), sum(call_counts)


def is_answering(facts: SessionFacts) -> bool:
    """Return True while a turn of the session runs and is not canceled."""
    return Turn.objects.filter(
        session_id=facts.session_id, status=Turn.Status.RUNNING, cancel_requested=False
    ).exists()


def list_session_ids(owner: AbstractBaseUser | AnonymousUser) -> QuerySet[Session, UUID]:
    """Return the ids of a user's sessions, as a subquery."""
    return Session.objects.owned_by(owner).values_list("id", flat=True)


def _build_last_usage(row: dict[str, Any]) -> LastUsage | None:
    """Return the token counts of the newest answer whose request was exactly this context."""
    if row["usage_seq"] is None:
        return None
    if row["overhead_since"] is not None and row["usage_at"] < row["overhead_since"]:
        return None
    input_tokens = row["usage_input"]
    output_tokens = row["usage_output"] or 0
    return LastUsage(
        tokens=input_tokens + output_tokens, input=input_tokens, after_seq=row["usage_seq"]
    )


def _list_tools(
    session_id: UUID,
    row: dict[str, Any],
    shared_text: SharedText | None,
    past_files: PastFiles,
) -> Sequence[Tool]:
    """Return the tools of the next request: chatcore's and those of the turn's client."""
    if row["model_name"] is None or row["supports_tools"] is False:
        return ()
    built_in_tools: Sequence[Tool] = ()
    if row["provider_options"].get("server_tools", True):
        built_in_tools = tool_registry.build_definitions(
            row["tools"],
            allowed_names=list_allowed_tools(row["owner_id"], has_limits=row["has_tool_limits"]),
            has_outputs=bool(row["has_outputs"]),
            has_hidden_files=bool(
                shared_text and choose_files(shared_text.files, _count_file_chars(row))[1]
            ),
            has_past_files=past_files.has_texts,
            session_id=session_id,
        )
    return client_tools.merge_tools(built_in_tools, row["turn_tools"] or ())


def _load_past_files(session_id: UUID, row: dict[str, Any]) -> PastFiles:
    if not (row["has_attachments"] and row["context_version"]):
        return NO_FILES
    return load_past_files(session_id, row["compact_boundary_seq"], row["kept_seqs"] or ())


def _count_file_chars(row: dict[str, Any]) -> int:
    windows = (row["context_window_size"], row["max_input_tokens"])
    return system_text.count_file_chars(min(filter(None, windows), default=None))


def _add_project(facts: SessionFacts, row: dict[str, Any], shared_text: SharedText) -> SessionFacts:
    """Return the facts with what the session's project says.

    A count of the provider from before that changed says nothing about the next request.
    """
    lengths = (shared_text.count_chars(_count_file_chars(row)), facts.sizes.system_chars)
    is_outdated = row["usage_at"] is not None and row["usage_at"] < shared_text.edited_at
    return replace(
        facts,
        sizes=replace(facts.sizes, system_chars=sum(lengths) + (2 if all(lengths) else 0)),
        last_usage=None if is_outdated else facts.last_usage,
    )


def _add_files(facts: SessionFacts, row: Mapping[str, object]) -> SessionFacts:
    """Return the facts with the sizes of the files that are sent."""
    file_sum = live_messages.sum_live_files(facts.live)
    image_count = min(file_sum.images, MAX_IMAGES) if row["supports_images"] is not False else 0
    sizes = replace(facts.sizes, attached_tokens=file_sum.tokens, attached_images=image_count)
    return replace(facts, sizes=sizes)


def _join_model_name(provider_name: str | None, model_name: str | None) -> str:
    """Return a model's name in the form that messages store; empty if there is no model."""
    return f"{provider_name}/{model_name}" if model_name else ""
