"""Whatever is edited, regenerated and restored: the current messages are one path of the tree."""

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from chatcore.models import Message, Session
from chatcore.sessions import verification
from chatcore.turns import versions
from chatcore.turns.messages import append_message

pytestmark = pytest.mark.django_db
ACTS = st.lists(
    st.tuples(st.sampled_from(["say", "reword", "restore"]), st.integers(0, 9)),
    min_size=10,
    max_size=20,
)


def path_of(session: Session) -> list[int]:
    return list(session.messages.exclude_superseded().order_by("seq").values_list("seq", flat=True))


def say(session: Session, _: int) -> Message:
    role = "user" if session.messages.exclude_superseded().count() % 2 == 0 else "assistant"
    return append_message(session.pk, None, role=role, content=f"words {session.last_seq}")


def reword(session: Session, choice: int) -> Message | None:
    path = path_of(session)
    return (
        versions.edit_answer(session.messages.get(seq=path[choice % len(path)]), f"other {path}")
        if path
        else None
    )


@pytest.mark.slow
@pytest.mark.heavy
@settings(
    max_examples=12,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(acts=ACTS)
def test_what_is_current_is_one_line_of_the_tree(user: User, acts: list[tuple[str, int]]) -> None:
    with transaction.atomic():
        session = Session.objects.create(owner=user)
        follows: dict[int, int] = {}  # of each message the one before it, when it was said
        words: dict[int, str] = {}
        for act, choice in acts:
            if act == "restore":
                check_restored(session, follows, choice)
            else:
                new = say(session, choice) if act == "say" else reword(session, choice)
                if new:
                    follows[new.seq] = ([0, *path_of(session)])[-2]
                    words[new.seq] = new.content
            path = path_of(session)
            assert [follows[seq] for seq in path] == [0, *path][:-1]
            assert dict(session.messages.values_list("seq", "content")) == words
        session.refresh_from_db()
        assert list(verification.find_violations(session)) == []
        transaction.set_rollback(True)


def check_restored(session: Session, follows: dict[int, int], choice: int) -> None:
    """The message is there again, on exactly what it stood on."""
    said = list(session.messages.order_by("seq"))
    if not said:
        return
    message = versions.restore_version(said[choice % len(said)])
    below, seq = [], message.seq
    while seq:
        below.append(seq)
        seq = follows[seq]
    assert path_of(session)[: len(below)] == below[::-1]
