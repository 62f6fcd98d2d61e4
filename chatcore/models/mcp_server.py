"""Servers of the Model Context Protocol whose tools a conversation may use, and who allowed it."""

import json
import uuid
from collections.abc import Mapping

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, Group
from django.core.exceptions import ValidationError
from django.core.validators import MaxLengthValidator, RegexValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from chatcore.models.message import Message
from chatcore.models.session import Session
from chatcore.models.turn import Turn
from models_registry import keys

NAME_PATTERN = r"\A[a-z0-9](-?[a-z0-9])*\Z"
MAX_NAME_CHARS = 24
MAX_SERVERS = 20  # of one user
MAX_LABEL_CHARS = 64  # of a server that a request brings along
COMMAND_SCHEME = "stdio:"  # before the name of a command of CHATCORE["MCP_COMMANDS"]
SEALED_URL = ""  # the name of the address among the encrypted headers; no header has it


class McpServerQuerySet(models.QuerySet["McpServer"]):
    """Queries for the servers of a user."""

    def owned_by(self, user: AbstractBaseUser | AnonymousUser) -> "McpServerQuerySet":
        """Select a user's own servers, without those of single requests."""
        return self.filter(owner_id=user.pk, turn=None)

    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> "McpServerQuerySet":
        """Select a user's own servers, and the shared ones that this user may use."""
        is_own = Q(owner_id=user.pk, turn=None)
        is_open = Q(owner=None) & (Q(groups=None) | Q(groups__user=user.pk))
        return self.filter(is_own | is_open).distinct().order_by("name", "created_at")


class McpServer(models.Model):
    """A server that offers tools: of one user, or shared with everyone or with some groups.

    One with a `turn` came with a request and is there for that turn alone; nobody else sees it.
    """

    class Approval(models.TextChoices):
        ALWAYS = "always"
        NEVER = "never"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="mcp_servers",
        help_text="Empty: shared with everyone, or with the groups.",
    )
    groups = models.ManyToManyField(
        Group,
        blank=True,
        related_name="+",
        help_text="Who may use a shared server; none: everyone.",
    )
    turn = models.ForeignKey(
        Turn,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        editable=False,
        related_name="mcp_servers",
        help_text="The turn whose request brought it along; empty for a server that stays.",
    )
    rules = models.JSONField(
        default=dict,
        editable=False,
        help_text="Which of its tools a request allows and which it asks about (tools/mcp/rules).",
    )
    name = models.CharField(
        max_length=MAX_LABEL_CHARS,
        validators=[
            RegexValidator(NAME_PATTERN, "Lower-case letters and digits, and - inside."),
            MaxLengthValidator(MAX_NAME_CHARS),
        ],
        help_text="Its tools are called mcp__NAME__TOOL.",
    )
    url = models.CharField(
        max_length=2000,
        help_text=(
            "The address of its streamable HTTP; or stdio:NAME for a command that the setting"
            " CHATCORE_MCP_COMMANDS names."
        ),
    )
    encrypted_headers = models.TextField(blank=True, editable=False)
    header_names = models.JSONField(default=list, editable=False)
    require_approval = models.CharField(
        max_length=8,
        choices=Approval.choices,
        default=Approval.ALWAYS,
        help_text="Whether a person is asked before a call.",
    )
    is_active = models.BooleanField(default=True)
    tools = models.JSONField(
        default=list,
        editable=False,
        help_text="What it offered when it was asked last: [{name, description, parameters}].",
    )
    refreshed_at = models.DateTimeField(null=True, blank=True, editable=False)
    error = models.TextField(
        blank=True, editable=False, help_text="Why it could not be asked the last time."
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = McpServerQuerySet.as_manager()

    secret_columns = ("encrypted_headers",)

    class Meta:
        verbose_name = "MCP server"
        ordering = ["name", "created_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "name"], condition=Q(turn=None), name="one_mcp_server_a_name"
            ),
            models.UniqueConstraint(fields=["turn", "name"], name="one_mcp_server_a_label"),
            models.UniqueConstraint(
                fields=["name"], condition=Q(owner=None), name="one_shared_mcp_server_a_name"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def headers(self) -> dict[str, str]:
        """Empty. Assigning headers encrypts them; only the connection reads them again."""
        return {}

    @headers.setter
    def headers(self, values: dict[str, str]) -> None:
        self.header_names = sorted(values)
        self.encrypted_headers = keys.encrypt(json.dumps(values)) if values else ""

    def reveal_headers(self) -> dict[str, str]:
        """Return the headers in clear text, for the connection alone.

        Raises keys.UnreadableKey if they cannot be decrypted.
        """
        if not self.encrypted_headers:
            return {}
        headers: dict[str, str] = json.loads(keys.decrypt(self.encrypted_headers))
        return {name: value for name, value in headers.items() if name != SEALED_URL}

    def seal(self, url: str, headers: Mapping[str, str]) -> None:
        """Keep the address encrypted too, which may hold a key: the database's log keeps rows."""
        self.headers = {**headers, SEALED_URL: url}
        self.header_names = sorted(headers)
        self.url = ""

    def reveal_url(self) -> str:
        """Return the address, for the connection and for what is said of it in a digest alone.

        Raises keys.UnreadableKey if it cannot be decrypted.
        """
        if self.url or not self.encrypted_headers:
            return self.url
        return str(json.loads(keys.decrypt(self.encrypted_headers)).get(SEALED_URL, ""))

    def clean(self) -> None:
        """Refuse a command for a user's own server, and one that the operator has not named."""
        if not self.url.startswith(COMMAND_SCHEME):
            return
        command = self.url.removeprefix(COMMAND_SCHEME)
        if self.owner_id is not None or command not in settings.CHATCORE["MCP_COMMANDS"]:
            raise ValidationError({"url": "CHATCORE_MCP_COMMANDS names no such command."})


class ToolApproval(models.Model):
    """What a person decided about a tool call that waited: for this call, or from then on."""

    class Decision(models.TextChoices):
        ONCE = "once"
        ALWAYS = "always"
        DENY = "deny"
        NEVER = "never"

    # These hold for the rest of the session.
    LASTING_DECISIONS = (Decision.ALWAYS, Decision.NEVER)

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="tool_approvals")
    server = models.ForeignKey(McpServer, on_delete=models.CASCADE, related_name="+")
    tool = models.CharField(max_length=128, help_text="As its server calls it.")
    message = models.ForeignKey(
        Message,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="The message that holds the call.",
    )
    tool_call_id = models.CharField(max_length=255)
    decision = models.CharField(max_length=8, choices=Decision.choices)
    digest = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text="Of the address, description and schema that the person was asked about.",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["created_at", "id"]
        constraints = [
            models.UniqueConstraint(fields=["message", "tool_call_id"], name="one_decision_a_call")
        ]

    def __str__(self) -> str:
        return f"{self.tool}: {self.decision}"
