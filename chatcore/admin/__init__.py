"""The admin pages of the conversation, one file a subject.

Django's autodiscovery imports this package, and each module registers its pages on import.
"""

from chatcore.admin import (  # noqa: F401
    accounts,
    context_revisions,
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
