"""Hold what calls may cost, sum what they cost, and show both."""

from collections.abc import Iterable
from typing import Any

from django.http import HttpRequest
from django.utils.safestring import SafeString

from chatcore.accounts.spending import CallEnd, Reservation
from chatcore.contrib.budgets import limits, records
from chatcore.extension import Card, Extension, Place


class Budgets(Extension):
    def check_call(self, user_id: object) -> None:
        limits.require_budget(user_id)

    def reserve_call(self, call: Reservation, *, may_refuse: bool) -> None:
        limits.reserve_call(call, may_refuse=may_refuse)

    def settle_call(self, call: Reservation, end: CallEnd) -> None:
        records.settle_call(call, end)

    def list_cards(self, request: HttpRequest) -> Iterable[Card]:
        from chatcore.contrib.budgets import cards  # only the admin shows them

        return cards.list_cards(request)

    def build_page_parts(
        self, place: Place, request: HttpRequest, subject: Any
    ) -> list[SafeString]:
        from chatcore.contrib.budgets import pages

        if place == "settings":
            return [pages.render_month(request)]
        return pages.render_chat(request, subject) if place == "chat_settings" else []
