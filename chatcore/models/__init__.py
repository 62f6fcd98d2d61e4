"""The tables of the conversation, one concept a file; Django finds them through this package."""

from chatcore.models.attachment import Attachment
from chatcore.models.context import ContextEdit, ContextRevision
from chatcore.models.event import SessionEvent
from chatcore.models.idempotency_key import IdempotencyKey
from chatcore.models.installation import Installation
from chatcore.models.installation_settings import InstallationSettings
from chatcore.models.mcp_server import McpServer, ToolApproval
from chatcore.models.message import (
    CHAT_COLUMNS,
    MAX_CALL_ID,
    MAX_TOOL_NAME,
    Message,
    MessageQuerySet,
)
from chatcore.models.output_file import OutputFile
from chatcore.models.project import Project, ProjectFile
from chatcore.models.serving_process import ServingProcess
from chatcore.models.session import Session, SessionQuerySet
from chatcore.models.setup_entry import SetupEntry
from chatcore.models.token_name import TokenName
from chatcore.models.turn import Exchange, Turn
from chatcore.models.user_preferences import UserPreferences

__all__ = [
    "CHAT_COLUMNS",
    "MAX_CALL_ID",
    "MAX_TOOL_NAME",
    "Attachment",
    "ContextEdit",
    "ContextRevision",
    "Exchange",
    "IdempotencyKey",
    "Installation",
    "InstallationSettings",
    "McpServer",
    "Message",
    "MessageQuerySet",
    "OutputFile",
    "Project",
    "ProjectFile",
    "ServingProcess",
    "Session",
    "SessionEvent",
    "SessionQuerySet",
    "SetupEntry",
    "TokenName",
    "ToolApproval",
    "Turn",
    "UserPreferences",
]
