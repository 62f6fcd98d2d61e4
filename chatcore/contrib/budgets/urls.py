"""The route of usage in the REST API."""

from chatcore.contrib.budgets import api
from chatcore.rest.routes import build_url_patterns

urlpatterns = build_url_patterns({"api/v1/usage": api.UsageView})
