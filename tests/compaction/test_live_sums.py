"""Whatever is done to a session: the sums of a query give what adding up its messages gives."""

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from chatcore.context import revisions
from chatcore.context.live_messages import LiveContext, count_live_messages, sum_live_tokens
from chatcore.files import intake
from chatcore.models import ContextEdit, ContextRevision, Message, Session
from chatcore.transfer.exporter import export_session
from chatcore.transfer.importer import import_messages, import_session
from chatcore.transfer.reader import InvalidImport
from chatcore.turns import deletion, forks, versions
from chatcore.turns.messages import append_message, pin_message
from compaction.sessions.facts import SessionFacts, load_session_facts, sum_message_tokens
from models_registry.models import AiModel
from tests.support.sample_files import build_png

pytestmark = pytest.mark.django_db

Act = Callable[[Session, int], Session | None]
RANGES = ((0, None), (3, None), (0, 5), (2, 9), (7, 8))
SIZES = (1, 3, 4, 7, 8, 41, 400)  # characters


def load_facts(session: Session) -> SessionFacts:
    facts = load_session_facts(session.pk)
    assert facts is not None
    return facts


def list_live_messages(session: Session) -> list[Message]:
    """The messages that are sent, by the rules and not by a query."""
    boundary_seq = session.compact_boundary_seq or 0
    revision = session.revisions.filter(version=session.context_version).first()
    kept_seqs = revision.kept_seqs if revision else ()
    return [
        message
        for message in session.messages.order_by("seq")
        if message.branch is None
        and message.role != "system"
        and message.status in ("complete", "interrupted")
        and (message.seq >= boundary_seq or message.pinned or message.seq in kept_seqs)
    ]


def count_tokens(message: Message, edits: dict[int, ContextEdit]) -> int:
    edit = edits.get(message.pk)
    if edit is None:
        return message.token_estimate
    return 0 if edit.kind == "hidden" else max(1, len(edit.replacement) // 4)


def check_sums(session: Session) -> None:
    """Compare every sum with what adding up gives."""
    session = Session.objects.get(pk=session.pk)
    facts = load_facts(session)
    live_messages = list_live_messages(session)
    edits = {edit.message_id: edit for edit in session.context_edits.filter(until_version=None)}
    for after_seq, before_seq in RANGES:
        in_range = [
            message
            for message in live_messages
            if after_seq < message.seq < (before_seq or session.last_seq + 1)
        ]
        context = LiveContext(
            session_id=session.pk,
            version=session.context_version,
            boundary_seq=session.compact_boundary_seq,
            kept_seqs=facts.live.kept_seqs,
        )
        tokens = sum(count_tokens(message, edits) for message in in_range)
        sum_tokens = partial(sum_live_tokens, context, after_seq=after_seq)
        assert sum_tokens(before_seq=before_seq) == tokens
        count = partial(count_live_messages, context, after_seq=after_seq)
        assert count(before_seq=before_seq) == len(in_range)
    tokens = sum(count_tokens(message, edits) for message in live_messages)
    assert sum_message_tokens(facts) == tokens
    sent_ids = {message.pk for message in live_messages} - edits.keys()
    files = [file for file in session.attachments.all() if file.message_id in sent_ids]
    texts = [file for file in files if not file.media_type.startswith("image/")]
    assert facts.sizes.attached_tokens == sum(file.token_estimate for file in texts)
    assert facts.sizes.attached_images == len(files) - len(texts)


def choose(session: Session, choice: int, **conditions: Any) -> Message | None:
    messages = list(session.messages.filter(**conditions).order_by("seq"))
    return messages[choice % len(messages)] if messages else None


def say(session: Session, choice: int) -> None:
    role = ("user", "assistant", "assistant", "system")[choice % 4]
    status = ("complete", "complete", "interrupted", "failed")[choice // 4 % 4]
    content = "x" * SIZES[choice % len(SIZES)]
    append_message(session.pk, None, role=role, status=status, content=content)


def say_much(session: Session, choice: int) -> None:
    for each in range(choice, choice + 6):
        say(session, each)


def say_with_files(session: Session, choice: int) -> None:
    names = [("a.txt", b"words " * choice), ("a.png", build_png(4, 3))]
    files = [intake.store_file(session, name=name, data=data) for name, data in names]
    message = append_message(session.pk, None, role="user", content="see")
    intake.bind_files(message, [file.pk for file in files])


def begin_answer(session: Session, choice: int) -> None:
    append_message(session.pk, None, role="assistant", status="streaming", content="")


def end_answer(session: Session, choice: int) -> None:
    answer = choose(session, choice, status="streaming")
    if answer:
        answer.content, answer.status = "y" * 50 * choice, "complete"
        answer.save()


def reword(session: Session, choice: int) -> None:
    answer = choose(session, choice, branch=None)
    if answer:
        versions.edit_answer(answer, "other words " * choice)


def answer_again(session: Session, choice: int) -> None:
    question = choose(session, choice, branch=None)
    if question:
        session = Session.objects.lock(session.pk)
        versions.supersede_messages(session, after_message=question)


def restore(session: Session, choice: int) -> None:
    message = choose(session, choice)
    if message:
        versions.restore_version(message)


def delete(session: Session, choice: int) -> None:
    message = choose(session, choice)
    if message:
        deletion.delete_message(message)


def pin(session: Session, choice: int) -> None:
    message = choose(session, choice)
    if message:
        pin_message(message, pinned=not message.pinned)


def install(session: Session, choice: int) -> None:
    seqs = list(session.messages.filter(branch=None).values_list("seq", flat=True).order_by("seq"))
    if not seqs:
        return
    boundary_seq = seqs[choice % len(seqs)] if choice % 3 else None
    kept_seqs = [seq for seq in seqs[choice % 2 :: 3] if seq < (boundary_seq or 0)]
    kinds = ("pruned", "excerpted", "hidden")
    edits = [
        revisions.MessageEdit(
            message_seq=seq,
            kind=kinds[(choice + seq) % 3],
            replacement="z" * SIZES[(choice + seq) % len(SIZES)],
        )
        for seq in seqs[choice % 5 :: 4]
    ]
    revisions.install_revision(
        session.pk,
        base_version=Session.objects.get(pk=session.pk).context_version,
        summary="They met." if boundary_seq else None,
        boundary_seq=boundary_seq,
        kept_seqs=kept_seqs,
        edits=edits,
        source=ContextRevision.Source.COMPACTION,
    )


def reword_summary(session: Session, choice: int) -> None:
    revisions.reword_summary(session.pk, summary=f"They met {choice} times.")


def rewind(session: Session, choice: int) -> None:
    version = Session.objects.get(pk=session.pk).context_version
    revisions.rewind_context(session.pk, to_version=choice % (version + 1))


def reset(session: Session, choice: int) -> None:
    revisions.reset_context(session.pk)


def fork(session: Session, choice: int) -> Session | None:
    message = choose(session, choice, branch=None)
    return forks.fork_session(message) if message else None


def carry_over(session: Session, choice: int) -> Session | None:
    export_data = export_session(Session.objects.get(pk=session.pk))
    # An import refuses a branch that follows a message which was deleted.
    with contextlib.suppress(InvalidImport):
        return import_session(session.owner, export_data)
    return None


def append_history(session: Session, choice: int) -> None:
    messages = [{"role": "user", "content": "a" * 30}, {"role": "assistant", "content": "b" * 90}]
    import_messages(session, messages * (choice % 4 + 1))


ACTS: tuple[Act, ...] = (
    say,
    say_much,
    say_with_files,
    begin_answer,
    end_answer,
    reword,
    answer_again,
    restore,
    delete,
    pin,
    install,
    reword_summary,
    rewind,
    reset,
    fork,
    carry_over,
    append_history,
)


@pytest.mark.lasting
@settings(
    max_examples=4,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    acts=st.lists(
        st.tuples(st.sampled_from(ACTS), st.integers(0, 40)),
        min_size=10,
        max_size=20,
    )
)
def test_sums_are_true_whatever_is_done(
    user: User, model: AiModel, acts: list[tuple[Act, int]]
) -> None:
    AiModel.objects.update(supports_images=True)
    with transaction.atomic():
        session = Session.objects.create(owner=user, model=model)
        say_much(session, 0)
        for act, choice in acts:
            session = act(session, choice) or session
            check_sums(session)
        transaction.set_rollback(True)
