"""The branches of a chat: what an edit or another answer left behind, as a tree to go back in.

Its forks, which are chats of their own, stand where they leave it.
"""

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.db.models.functions import Left
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from chatcore.models import Message, Session
from chatcore.web.own_chat import get_own_chat

EXCERPT_CHARACTERS = 120


@dataclass(kw_only=True)
class Stretch:
    """Messages that nothing leaves but at the last one: there, other branches and forks begin."""

    messages: list[Any] = field(default_factory=list)
    branches: list[list["Stretch"]] = field(default_factory=list)
    forks: list[object] = field(default_factory=list)

    @property
    def first(self) -> object:
        """The message that begins it."""
        return self.messages[0]

    @property
    def count(self) -> int:
        """How many of its messages are seen in the chat, results of tools left out."""
        return sum(message["role"] != Message.Role.TOOL for message in self.messages)


@login_required
@require_GET
def show_branches(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Show the tree of a chat's branches, for the dialog."""
    session = get_own_chat(request, pk)
    beginnings, path = build_tree(session)
    origin = Session.objects.owned_by(request.user).filter(forks=session).first()
    context = {"session": session, "origin": origin, "beginnings": beginnings, "path": path}
    return render(request, "chatcore/_branches.html", context)


def build_tree(session: Session) -> tuple[list[list[Stretch]], list[Stretch]]:
    """Return the branches that begin before all messages, and the current path.

    A branch, and the path, is a list of stretches.
    """
    chains: dict[UUID | None, list[Any]] = {None: []}
    starts: dict[int | None, list[UUID | None]] = {}  # the branches by the seq that they follow
    rows = session.messages.order_by("seq").annotate(words=Left("content", EXCERPT_CHARACTERS))
    for row in rows.values("pk", "seq", "role", "branch", "branch_after", "created_at", "words"):
        branch = row["branch"]
        if branch not in chains:
            chains[branch] = []
            starts.setdefault(row["branch_after"], []).append(branch)
        chains[branch].append(row)
    forks = _load_forks(session, [row["seq"] for chain in chains.values() for row in chain])

    def divide(branch: UUID | None) -> list[Stretch]:
        stretches = [Stretch()]
        for row in chains[branch]:
            if stretches[-1].branches or stretches[-1].forks:
                stretches.append(Stretch())
            stretches[-1].messages.append(row)
            stretches[-1].branches = [divide(other) for other in starts.get(row["seq"], [])]
            stretches[-1].forks = forks[row["seq"]]
        return stretches if chains[branch] else []

    return [divide(branch) for branch in starts.get(0, [])], divide(None)


def _load_forks(session: Session, seqs: list[int]) -> dict[int, list[object]]:
    """Return the owner's forks by the message that they leave, or the one before if it is gone."""
    seqs = sorted(seqs)
    forks: dict[int, list[object]] = defaultdict(list)
    rows = Session.objects.filter(owner=session.owner_id, forked_from=session)
    for fork in rows.order_by("created_at").values("pk", "title", "created_at", "forked_from_seq"):
        index = bisect_right(seqs, fork["forked_from_seq"] or 0) - 1
        forks[seqs[max(index, 0)] if seqs else 0].append(fork)
    return forks
