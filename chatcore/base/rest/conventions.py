"""What REST framework and the description of the API are set to; chatcore/settings.py takes it."""

from chatcore.base.installed_apps import get_app_setting

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "chatcore.base.rest.auth.BearerTokenAuthentication",
        "chatcore.base.rest.auth.CookieAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": [
        "rest_framework.permissions.IsAuthenticated",
        "chatcore.base.rest.query_params.KnownParameters",
    ],
    "DEFAULT_PARSER_CLASSES": ["chatcore.base.rest.parsers.JsonBodyParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "chatcore.base.rest.parsers.JsonOnlyNegotiation",
    "DEFAULT_PAGINATION_CLASS": "chatcore.base.rest.pagination.KeysetPagination",
    "DEFAULT_SCHEMA_CLASS": "chatcore.base.rest.schema.ProblemAutoSchema",
    "EXCEPTION_HANDLER": "chatcore.api.errors.handle_exception",
    # Without it, OPTIONS would describe an endpoint to users who may not call it.
    "DEFAULT_METADATA_CLASS": None,
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Chatcore",
    "DESCRIPTION": "Conversations that never end, never fail for length and never lose a word.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    # A body without the fields that only the server writes: generated clients require all fields.
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "KindEnum": "chatcore.models.Attachment.Kind",
        "CallKindEnum": "compaction.models.ModelCall.Kind",
        **get_app_setting("ENUM_NAMES", {}),
    },
    "PREPROCESSING_HOOKS": ["chatcore.base.rest.schema.drop_slash_twins"],
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "chatcore.base.rest.schema.apply_body_rules",
    ],
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}
