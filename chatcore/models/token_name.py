"""What its owner calls an API token, and when it was used.

The token itself is a row of django-rest-knox.
"""

from django.db import models
from knox.models import AuthToken


class TokenName(models.Model):
    """The name of an API token, which says what uses it, and its last use. Both may be absent."""

    token = models.OneToOneField(
        AuthToken, on_delete=models.CASCADE, primary_key=True, related_name="token_name"
    )
    name = models.CharField(max_length=100)
    used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name
