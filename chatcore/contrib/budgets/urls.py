"""The route of usage in the REST API."""

from chatcore.base.rest.routes import build_url_patterns
from chatcore.contrib.budgets import api

urlpatterns = build_url_patterns({"api/v1/usage": api.UsageView})
