"""The admin pages of django-q's tables: what waits for a worker, what it did, what failed."""

from django.contrib import admin
from django_q.admin import FailAdmin, QueueAdmin, TaskAdmin
from django_q.models import Failure, OrmQ, Schedule, Success

from chatcore.admin.base import ChatcoreAdmin

# A row of the schedules names a function, and a worker calls it: no page may take one.
for model in (Schedule, Success, Failure, OrmQ):
    admin.site.unregister(model)


@admin.register(Success)
class SuccessPage(TaskAdmin, ChatcoreAdmin):
    """Tasks that a worker has done."""


@admin.register(Failure)
class FailurePage(FailAdmin, ChatcoreAdmin):
    """Tasks that failed."""


@admin.register(OrmQ)
class QueuePage(QueueAdmin, ChatcoreAdmin):
    """Tasks that wait."""
