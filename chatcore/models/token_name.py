"""What its owner says of an API token, and when it was used.

The token itself is a row of django-rest-knox.
"""

from django.db import models
from knox.models import AuthToken


class TokenName(models.Model):
    """What an API token is called, when it was used last, and what is kept of its programs.

    It may have no name, and may never have been used.
    """

    token = models.OneToOneField(
        AuthToken, on_delete=models.CASCADE, primary_key=True, related_name="token_name"
    )
    name = models.CharField(max_length=100, blank=True)
    used_at = models.DateTimeField(null=True, blank=True)
    keeps_conversations = models.BooleanField(
        default=True,
        db_default=True,
        help_text="Whether conversations that its programs name by themselves are stored.",
    )

    def __str__(self) -> str:
        return self.name
