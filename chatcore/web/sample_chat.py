"""A sample conversation with its summary, so that anyone meets one at once and needs no model."""

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from chatcore.accounts.rights import find_default_model
from chatcore.context import revisions
from chatcore.models import ContextRevision, Session
from chatcore.sessions.archive import archive_surplus_sessions
from chatcore.transfer.importer import import_messages
from models_registry.models import AiModel


@login_required
@require_POST
def create_sample_chat(request: HttpRequest) -> HttpResponse:
    """Store the sample and open it."""
    session = store_sample_chat(request.user, find_default_model(request.user.pk))
    return redirect(f"{reverse('chat', args=[session.pk])}?sample=1")


def store_sample_chat(user: Any, model: AiModel | None) -> Session:
    """Store the chat, and the two summaries that were written of it one after the other."""
    with transaction.atomic():
        session = Session.objects.create(
            owner_id=user.pk, model=model, title=_("A sample: the summer party"), tools=[]
        )
        import_messages(session, _build_messages())
        for version, (boundary_seq, summary) in enumerate(_list_summaries()):
            revisions.install_revision(
                session.pk,
                base_version=version,
                summary=summary,
                boundary_seq=boundary_seq,
                source_seqs=range(1, boundary_seq),
                source=ContextRevision.Source.COMPACTION,
            )
    archive_surplus_sessions(session)
    return session


def _build_messages() -> list[dict[str, str]]:
    return [
        {"role": ("user", "assistant")[number % 2], "content": words}
        for number, words in enumerate(_list_words())
    ]


def _list_summaries() -> Sequence[tuple[int, str]]:
    """Return each summary with the first message that it leaves as it is.

    The second one has forgotten the day, so that its card has something to say.
    """
    first_goal = _(
        "## Goal\n\nPlan the summer party on Saturday, 18 July: 24 people, in the garden of a"
        " sister, 480 euros for everything."
    )
    goal = _(
        "## Goal\n\nPlan the summer party: 24 people, in the garden of the sister Clara, 480 euros"
        " for everything."
    )
    food = _(
        "## Settled\n\n- Five are vegetarian; Jonas is allergic to nuts.\n- A buffet for about 260"
        " euros: two salads, vegetable lasagne, bread with dips, grilled chicken, a cake without"
        " nuts."
    )
    drinks = _(
        "- Clara bakes the cake.\n- Tom brings the drinks with his van: 120 euros, and 25 euros for"
        " ice."
    )
    rest = _(
        "## Open\n\n- Seats: there are 12 chairs; the town hall lends sets of a table and two"
        " benches, 10 euros each, until the end of June.\n- Shade: two large umbrellas."
    )
    return ((5, f"{first_goal}\n\n{food}"), (9, f"{goal}\n\n{food}\n{drinks}\n\n{rest}"))


def _list_words() -> list[str]:
    """Return what was said, the person's words first. It has names, dates and exact numbers."""
    return [
        _("I am planning our summer party on Saturday, 18 July. 24 people, in my sister's garden."),
        _(
            "That sounds lovely. For 24 people in a garden I would settle four things first: food"
            " and drinks, seats and shade, something for the rain, and who does what. Shall we"
            " begin with the food? It needs the most time. And is there a budget that I should"
            " keep in mind while we plan?"
        ),
        _(
            "Yes, 480 euros for everything. Five of us are vegetarian, and Jonas is allergic to"
            " nuts."
        ),
        _(
            "Noted: 480 euros in all, five vegetarians, and no nuts anywhere near Jonas. With 20"
            " euros a person, a buffet is easier than a barbecue. I suggest two large salads, a"
            " vegetable lasagne, bread with three dips, grilled chicken for those who want it, and"
            " a cake without nuts. That is about 260 euros if you cook yourselves."
        ),
        _("Good. My sister Clara bakes the cake. Who could bring the drinks?"),
        _(
            "For drinks, plan two litres a person on a warm day: about 30 litres of water and juice"
            " and 18 litres of beer and wine. One person with a car should do it. A shop that takes"
            " back full crates saves money: order more than you need, and return the rest on"
            " Monday. Reckon with 120 euros, and 25 euros more for ice."
        ),
        _("Then Tom brings the drinks. He has the van. We have only 12 chairs."),
        _(
            "Twelve are missing, then. Your town hall often lends tables and benches: three sets of"
            " one table and two benches seat 24, usually for 10 euros a set. Ask until the end of"
            " June, because July is the month of parties. For shade, two large garden umbrellas are"
            " enough between noon and four."
        ),
        _("I have reserved three sets, number R-2291, to be picked up on Friday at 16:00."),
        _(
            "Very good: reservation R-2291, pick-up on Friday at 16:00, so Tom's van is needed that"
            " day too. Ask him whether he can come before the drinks. For rain, decide on Thursday:"
            " if the forecast is worse than 60 %, move the buffet into Clara's garage, which needs"
            " an hour to clear."
        ),
        _("What is still missing, and what did we reserve?"),
        _(
            "Reserved are three sets of a table and two benches: number R-2291, to be picked up on"
            " Friday at 16:00. Still missing are the two umbrellas for shade, and Tom's word that"
            " his van is free on Friday. Of the 480 euros, 435 are planned: 260 for food, 120 for"
            " drinks, 25 for ice and 30 for the sets."
        ),
    ]
