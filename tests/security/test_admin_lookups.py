"""The admin's lists answer no question about columns that a person does not see."""

import itertools

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.db.models import ForeignKey, Model
from django.test import Client, RequestFactory
from django.urls import reverse

from chatcore.models import Project, Session

pytestmark = pytest.mark.django_db
PAGES = sorted(admin.site._registry, key=lambda model: model._meta.label)
SECRET_NAMES = ("secret", "digest", "encrypted", "password", "token_key")


@pytest.fixture
def viewer() -> Client:
    """Somebody who may open every page, and may not see contents."""
    person = User.objects.create_user("viewer", is_staff=True)
    rights = Permission.objects.exclude(codename="view_content")
    person.user_permissions.set(rights.filter(codename__startswith="view_"))
    client = Client()
    client.force_login(person)
    return client


def list_questions(model: type[Model]) -> list[str]:
    """Return lookups that read a column of the row, or of a row beside it, letter by letter."""
    paths = [field.name for field in model._meta.concrete_fields]
    for field in model._meta.get_fields():
        target = field.related_model
        if isinstance(target, type) and (isinstance(field, ForeignKey) or field.auto_created):
            name = field.name
            paths += [f"{name}__{column.name}" for column in target._meta.concrete_fields]
    parts = ("startswith", "contains", "regex", "iexact")
    return [f"{path}__{part}" for path, part in itertools.product(paths, parts)]


@pytest.mark.parametrize("model", PAGES, ids=lambda model: str(model._meta.label))
def test_a_list_refuses_each_lookup_that_it_does_not_offer(
    viewer: Client, admin_client: Client, rf: RequestFactory, model: type[Model]
) -> None:
    page = admin.site._registry[model]
    address = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    request = rf.get(address)
    for request.user in User.objects.all():
        for lookup in list_questions(model):
            assert not page.lookup_allowed(lookup, "g", request), (request.user, lookup)
    lookup = f"{model._meta.concrete_fields[-1].name}__startswith"
    for client in (viewer, admin_client):
        assert client.get(address, {lookup: "g"}).status_code == 400


def test_no_search_reads_a_secret() -> None:
    for model, page in admin.site._registry.items():
        for name in page.search_fields:
            is_secret = any(part in name for part in SECRET_NAMES)
            assert not is_secret or name.startswith("="), (model, name)


@pytest.mark.parametrize(
    ("page", "query"),
    [
        ("models_registry_aimodel", "price_tiers__contains=1"),
        ("models_registry_aimodel", "catalog_values__contains=1"),
        ("models_registry_provider", "catalog_values__contains=1"),
        ("chatcore_mcpserver", "header_names__contains=1"),
        ("chatcore_turn", "status__exact=%00"),
    ],
)
def test_an_odd_lookup_is_a_bad_request(admin_client: Client, page: str, query: str) -> None:
    admin_client.raise_request_exception = False
    answer = admin_client.get(f"{reverse(f'admin:{page}_changelist')}?{query}")
    assert answer.status_code == 400


@pytest.mark.parametrize(
    ("page", "query"),
    [
        ("chatcore_turn", "status__exact=failed&started_at__gte=2026-01-01T00:00Z"),
        ("budgets_usagesum", "day__gte=2026-01-01&day__lt=2026-02-01"),
        ("compaction_compactionrun", "status__exact=queued&wrong=any"),
        ("chatcore_message", "seq__lt=3"),
        ("models_registry_aimodel", "provider__id__exact=1"),
        ("auth_user", "groups__id__exact=1&is_staff__exact=1"),
        ("chatcore_mcpserver", "owner__isempty=1"),
        ("axes_accessattempt", "attempt_time__year=2026"),
    ],
)
def test_the_filters_of_a_page_and_its_links_are_answered(
    admin_client: Client, session: Session, page: str, query: str
) -> None:
    address = reverse(f"admin:{page}_changelist")
    query = f"session__id__exact={session.pk}&{query}" if page.endswith("message") else query
    assert admin_client.get(f"{address}?{query}").status_code in (200, 302)


def test_a_search_does_not_find_projects_by_their_names(
    viewer: Client, user: User, admin_client: Client
) -> None:
    project = Project.objects.create(owner=user, name="Well under the oak")
    address = reverse("admin:chatcore_project_changelist")
    assert str(project.pk) in admin_client.get(address, {"q": "under the oak"}).content.decode()
    for word in ("under the oak", "Well"):
        assert str(project.pk) not in viewer.get(address, {"q": word}).content.decode()
