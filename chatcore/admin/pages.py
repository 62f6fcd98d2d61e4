"""All admin pages of the conversation: each module registers its own when it is imported."""

from chatcore.admin import (  # noqa: F401
    accounts,
    context_revisions,
    installation_settings,
    language_models,
    mcp_servers,
    messages,
    projects,
    providers,
    queue,
    sessions,
    turns,
    users,
)
