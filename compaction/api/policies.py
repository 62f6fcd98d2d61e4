"""The compaction policies that a session may name."""

from collections.abc import Mapping

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatcore.accounts.rights import select_policies
from chatcore.base.rest.pagination import build_single_page
from compaction import policies
from compaction.policies.sentences import describe_policy


class PolicySerializer(serializers.Serializer[Mapping[str, object]]):
    """A policy with all its knobs, in groups."""

    name = serializers.CharField()
    description = serializers.CharField(help_text="When it acts and its steps, in one sentence.")
    knobs = serializers.DictField()


class PoliciesSerializer(serializers.Serializer[Mapping[str, object]]):
    """All policies on one page."""

    results = PolicySerializer(many=True)
    next = serializers.CharField(allow_null=True)
    previous = serializers.CharField(allow_null=True)


class PolicyListView(APIView):
    """The compaction policies."""

    @extend_schema(operation_id="list_policies", responses=PoliciesSerializer)
    def get(self, request: Request) -> Response:
        """Return every policy that the user's sessions may name, with all its knobs."""
        stored_policies = policies.list_policies()
        names = select_policies(request.user.pk, list(stored_policies))
        rows = [
            {
                "name": name,
                "description": describe_policy(stored_policies[name]),
                "knobs": stored_policies[name].to_dict(),
            }
            for name in names
        ]
        return build_single_page(rows)
