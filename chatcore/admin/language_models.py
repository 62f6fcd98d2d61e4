"""The admin page of language models, which can compare limits and abilities with a newer list.

The list is fetched by the guarded client, or uploaded where the server reaches no other. It comes
from outside: its values are checked, and nothing is written before a person has ticked it.
"""

import datetime
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.utils import label_for_field
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.decorators import action

from chatcore.admin.setup_file import SetupFileAdmin
from chatcore.base.net import downloads
from chatcore.base.net.strangers import wait_for_stranger
from chatcore.models import SetupEntry
from chatcore.setup.documents import DEFAULT_MODEL
from models_registry import catalog, comparison, sources
from models_registry.comparison import Difference
from models_registry.models import AiModel, Provider

MAX_BYTES = 20_000_000  # of a list; that of models.dev has some millions
FETCH_SECONDS = 20.0
MAX_SHOWN = 500  # differences; a form has at most a thousand fields
MAX_NAMED = 20
SALT = "chatcore.admin.language_models"
MAX_AGE_SECONDS = 3_600  # between a comparison and the taking of its values


class ListMissing(Exception):
    """There is no list to compare with; the text says why, in the person's language."""

    def __init__(self, text: str, *, status: int) -> None:
        super().__init__(text)
        self.status = status


@admin.register(AiModel)
class AiModelAdmin(SetupFileAdmin):
    setup_section = "models"
    list_display = (
        "name",
        "provider",
        "show_source",
        "context_window_size",
        "max_output_tokens",
        "output_reserve",
        "input_price",
        "output_price",
        "supports_tools",
        "is_active",
        "is_default",
    )
    list_filter = ("provider", "is_active", "supports_tools", "supports_images")
    list_select_related = ("provider",)
    search_fields = ("name", "provider__name")
    ordering = ("provider__name", "name")
    readonly_fields = ("is_default", "show_source")
    actions = ("make_default",)
    actions_list = ("compare_models",)
    fieldsets = (
        (None, {"fields": ("provider", "name", "is_active", "is_default", "show_source")}),
        (
            "Limits",
            {
                "fields": (
                    "context_window_size",
                    "max_input_tokens",
                    "max_output_tokens",
                    "output_reserve",
                ),
                "description": "In tokens. Empty: unknown.",
            },
        ),
        ("Abilities", {"fields": ("supports_tools", "supports_images")}),
        (
            "Prices",
            {
                "fields": (
                    "input_price",
                    "cached_input_price",
                    "cache_write_price",
                    "output_price",
                    "price_tiers",
                ),
                "description": (
                    "Of a million tokens. Empty: unknown. Where you set one, all of them are yours."
                ),
            },
        ),
        ("Compaction", {"fields": ("policy", "summary_model")}),
    )

    @admin.display(description="Limits from")
    def show_source(self, model: AiModel) -> str:
        """Say where a model's values are from, of which day, and how long ago that is."""
        if model.values_date:
            return f"{model.values_source} of {_describe_age(model.values_date)}"
        if model.catalog_values:
            return f"the catalog of {_describe_age(catalog.load_catalog().date)}"
        return "an operator"

    def save_model(self, request: HttpRequest, obj: AiModel, form: ModelForm, change: bool) -> None:
        """Save the model; fill what is empty of a new one from the catalog."""
        had_window = obj.context_window_size is not None
        catalog_model = None if change else catalog.look_up_model(obj.name)
        if catalog_model is not None:
            for name in ("supports_tools", "supports_images"):
                if getattr(obj, name) is None:
                    setattr(obj, name, catalog_model.values.get(name))
        super().save_model(request, obj, form, change)
        if not change and not had_window and obj.context_window_size is not None:
            message = f"The catalog knows {obj.name}: {obj.context_window_size:,} tokens."
            self.message_user(request, message, messages.INFO)

    @admin.action(description="Make default for new sessions", permissions=["change"])
    def make_default(self, request: HttpRequest, queryset: QuerySet[AiModel]) -> None:
        """Make the selected model the default; refuse a selection of several."""
        selection = list(queryset[:2])
        if len(selection) != 1:
            self.message_user(request, "Select exactly one model.", messages.ERROR)
            return
        if SetupEntry.objects.list_names(DEFAULT_MODEL):
            sentence = "CHATCORE_SETUP_FILE sets the default model. Change it there."
            self.message_user(request, sentence, messages.ERROR)
            return
        selection[0].make_default()
        self.message_user(request, f"New sessions start with {selection[0]}.")

    @action(
        description=gettext_lazy("Compare with a newer list"),
        url_path="compare",
        permissions=["change"],
    )
    def compare_models(self, request: HttpRequest) -> HttpResponse:
        """Show how the models differ from a list, and write what was ticked."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        if "comparison" in request.POST:
            return self._take_values(request)
        context: dict[str, object] = {}
        status = 200
        if request.method == "POST":
            try:
                context = _compare(request)
            except ListMissing as error:
                context, status = {"problem": str(error)}, error.status
        context |= self.admin_site.each_context(request) | {
            "title": _("Compare with a newer list"),
            "opts": self.opts,
            "source": _get_source(),
        }
        return TemplateResponse(request, "admin/model_values.html", context, status=status)

    def _take_values(self, request: HttpRequest) -> HttpResponse:
        page = HttpResponseRedirect(reverse("admin:models_registry_aimodel_changelist"))
        try:
            packed_comparison = signing.loads(
                request.POST["comparison"], salt=SALT, max_age=MAX_AGE_SECONDS
            )
        except signing.BadSignature:
            self.message_user(request, _("Compare again: that was too long ago."), messages.ERROR)
            return page
        ticked_numbers = set(request.POST.getlist("take"))
        differences = [
            Difference(**values)
            for number, values in enumerate(packed_comparison["differences"])
            if str(number) in ticked_numbers
        ]
        taken_values = comparison.take_values(
            differences,
            agreeing=packed_comparison["agreeing"],
            source=packed_comparison["source"],
            date=datetime.date.fromisoformat(packed_comparison["date"]),
        )
        for model in taken_values:
            self.log_change(request, model.row, [{"changed": {"fields": model.fields}}])
        count = sum(len(model.fields) for model in taken_values)
        sentence = _("Taken from %(source)s: %(count)d values of %(models)d models.")
        facts = {"source": packed_comparison["source"], "count": count, "models": len(taken_values)}
        self.message_user(request, sentence % facts, messages.SUCCESS)
        if count < len(differences):
            sentence = _("%(count)d were changed meanwhile, and stay as they are.")
            facts = {"count": len(differences) - count}
            self.message_user(request, sentence % facts, messages.WARNING)
        return page


def _describe_age(date: datetime.date) -> str:
    """Return the date and how long ago it is, as in 2026-10-01, 53 days ago."""
    days = (timezone.now().date() - date).days
    if days < 1:
        return f"{date}, today"
    return f"{date}, 1 day ago" if days == 1 else f"{date}, {days:,} days ago"


def _compare(request: HttpRequest) -> dict[str, object]:
    """Return what the page shows of a comparison. Raises ListMissing."""
    content, source, bad_status = _read_list(request)
    names = list(Provider.objects.values_list("name", flat=True).order_by("name"))
    try:
        listed_models = sources.parse_models_dev(sources.parse_json(content, source), names)
    except sources.SourceUnreadable:
        text = _("%(source)s is no list of models in the form of models.dev.")
        raise ListMissing(text % {"source": source}, status=bad_status) from None
    result = comparison.compare(listed_models)
    shown_differences = result.differences[:MAX_SHOWN]
    packed_comparison = {
        "source": source,
        "date": timezone.now().date().isoformat(),
        "agreeing": result.agreeing,
        "differences": [_pack(difference) for difference in shown_differences],
    }
    return {
        "compared": source,
        "rows": [_describe(difference) for difference in shown_differences],
        "rest": len(result.differences) - len(shown_differences),
        "agreeing_count": len(result.agreeing),
        "new_count": len(result.new_names),
        "unusable": result.unusable[:MAX_NAMED],
        "unusable_rest": len(result.unusable[MAX_NAMED:]),
        "comparison": signing.dumps(packed_comparison, salt=SALT, compress=True),
    }


def _read_list(request: HttpRequest) -> tuple[bytes, str, int]:
    """Return the list, what it is called, and the status of the answer if it is not one."""
    file = request.FILES.get("file")
    if file is None:
        source = _get_source()
        try:
            content = wait_for_stranger(
                downloads.download(
                    settings.CHATCORE["MODEL_LIST"], max_bytes=MAX_BYTES, seconds=FETCH_SECONDS
                )
            )
        except downloads.DownloadFailed as error:
            text = _("%(source)s cannot be reached now: %(reason)s Upload its file instead.")
            raise ListMissing(text % {"source": source, "reason": str(error)}, status=503) from None
        return content, source, 503
    name = str(file.name)[:100]
    if (file.size or 0) > MAX_BYTES:
        raise ListMissing(_("%(name)s is too large to be a list.") % {"name": name}, status=413)
    return file.read(), name, 400


def _get_source() -> str:
    return urlsplit(settings.CHATCORE["MODEL_LIST"]).hostname or "?"


def _pack(difference: Difference) -> dict[str, object]:
    return {
        "pk": difference.pk,
        "model": difference.model,
        "field": difference.field,
        "old": difference.old,
        "new": difference.new,
        "is_edited": difference.is_edited,
    }


def _describe(difference: Difference) -> dict[str, object]:
    return {
        "model": difference.model,
        "field": label_for_field(difference.field, AiModel),
        "old": _format(difference.old),
        "new": _format(difference.new),
        "is_edited": difference.is_edited,
    }


def _format(value: object) -> str:
    """Return a number of tokens or an ability for people."""
    if value is None:
        return _("unknown")
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    return f"{value:,}"
