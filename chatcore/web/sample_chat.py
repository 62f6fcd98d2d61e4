"""A sample conversation that is about to be summarized, so that anyone meets a summary early."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from chatcore.context.compactor import get_compactor
from chatcore.models import Session
from chatcore.rights.models import select_models
from chatcore.rights.policies import accepts_policy
from chatcore.sessions.archive import archive_surplus_sessions
from chatcore.transfer.importer import import_messages
from models_registry.models import AiModel

# This policy keeps a number of messages, so it works in a window of any size. Those that keep a
# share of the window would keep the whole sample.
POLICY = "lota"
# Of what the sample takes now. The answer to the next message is then over the threshold, also if
# the provider counts fewer tokens than we estimate.
THRESHOLD_SHARE = 0.9


@login_required
@require_POST
def create_sample_chat(request: HttpRequest) -> HttpResponse:
    """Store the sample and open it; without a model that can summarize it, open a new chat."""
    model = select_models(request.user.pk).find_default()
    if model is None or not can_show_sample(request.user.pk, model):
        return redirect("new_chat")
    return redirect("chat", store_sample_chat(request.user, model).pk)


def can_show_sample(user_id: Any, model: AiModel | None) -> bool:
    """Return whether a chat of the user with this model can be summarized by itself."""
    if model is None or not model.context_window_size:
        return False
    return accepts_policy(user_id, POLICY)


def store_sample_chat(user: Any, model: AiModel) -> Session:
    """Store a chat whose next answer takes it over its threshold. `can_show_sample` must hold."""
    assert model.context_window_size is not None
    with transaction.atomic():
        session = Session.objects.create(
            owner_id=user.pk,
            model=model,
            title=_("A sample: the summer party"),
            policy=POLICY,
            tools=[],
        )
        import_messages(session, _build_messages())
    session.refresh_from_db()
    tokens = get_compactor().estimate_tokens(session)
    session.compact_threshold = round(
        min(0.8, max(0.0005, THRESHOLD_SHARE * tokens / model.context_window_size)), 6
    )
    session.save(update_fields=["compact_threshold"])
    archive_surplus_sessions(session)
    return session


def _build_messages() -> list[dict[str, str]]:
    return [
        {"role": ("user", "assistant")[number % 2], "content": words}
        for number, words in enumerate(_list_words())
    ]


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
    ]
