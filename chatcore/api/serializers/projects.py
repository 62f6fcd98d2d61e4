"""Projects and their files in the REST API."""

from uuid import UUID

from django.core.validators import RegexValidator
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from chatcore.base.rest import limits
from chatcore.base.rest.fields import StrictSerializer, StrictTextField
from chatcore.models import Project, ProjectFile, Session
from chatcore.projects.changes import MAX_RULES, RULE_CHARS

ONE_LINE = RegexValidator(r"^[^\n\r]*[^\s][^\n\r]*\Z", "One line of text.")


class ProjectSerializer(StrictSerializer, serializers.ModelSerializer[Project]):
    """What several sessions share. All of it is sent with each of their requests.

    `edited_at` is when that changed last, its files included.
    """

    name = StrictTextField(max_length=200, trim_whitespace=True)
    instructions = StrictTextField(max_bytes=limits.MESSAGE_BYTES, allow_blank=True, required=False)
    rules = serializers.ListField(
        child=StrictTextField(max_length=RULE_CHARS, validators=[ONE_LINE]),
        required=False,
        max_length=MAX_RULES,
        help_text="Standing rules, one line each, in the order in which they are sent.",
    )

    class Meta:
        model = Project
        fields = ("id", "name", "instructions", "rules", "created_at", "edited_at")
        read_only_fields = ("id", "created_at", "edited_at")


class ProjectFileSerializer(serializers.ModelSerializer[ProjectFile]):
    """A file of a project, without its bytes."""

    class Meta:
        model = ProjectFile
        fields = ("id", "name", "media_type", "size", "created_at")
        read_only_fields = fields


class ProjectUploadSerializer(serializers.Serializer[object]):
    """One file: a text, or a PDF file that has text."""

    file = serializers.FileField()


@extend_schema_field({"type": "string", "format": "uuid"})
class ProjectField(serializers.Field):
    """The id of one of the user's projects."""

    default_error_messages = {"unknown": "There is no such project.", "invalid": "Not a UUID."}

    def get_attribute(self, instance: Session) -> UUID | None:
        """Return the id; the project itself need not be loaded."""
        return instance.project_id

    def to_internal_value(self, data: object) -> Project:
        """Return the user's project. Raises ValidationError if there is none."""
        project_id = parse_project_id(data)
        if project_id is None:
            self.fail("invalid")
        owned_projects = Project.objects.owned_by(self.context["request"].user)
        project = owned_projects.filter(pk=project_id).first()
        if project is None:
            self.fail("unknown")
        return project

    def to_representation(self, value: UUID) -> str:
        """Return the id as text."""
        return str(value)


def parse_project_id(data: object) -> UUID | None:
    """Return the id that a text is, or None."""
    try:
        return UUID(data) if isinstance(data, str) else None
    except ValueError:
        return None
