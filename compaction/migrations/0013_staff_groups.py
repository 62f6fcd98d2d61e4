from django.apps import apps as installed_apps
from django.contrib.auth.management import create_permissions
from django.db import migrations

# A project with models of its own has neither these apps nor this staff (docs/embedding.md).
IS_HOST_CHATCORE = installed_apps.is_installed("chatcore")

SEEN = [
    "chatcore.session",
    "chatcore.message",
    "chatcore.turn",
    "chatcore.contextrevision",
    "compaction.compactionrun",
    "compaction.sessionstate",
]
ACTED_ON = ["chatcore.session", "compaction.compactionrun", "compaction.sessionstate"]
REGISTRY = ["models_registry.provider", "models_registry.aimodel"]


def make_groups(apps, schema_editor):
    """Make three groups of staff. None of them sees what people wrote."""
    for label in ("chatcore", "compaction", "models_registry"):
        config = apps.get_app_config(label)
        has_module = getattr(config, "models_module", None)
        config.models_module = has_module or True
        create_permissions(config, apps=apps, verbosity=0)
        config.models_module = has_module
    views = [f"{name}.view" for name in SEEN]
    changes = [f"{name}.change" for name in ACTED_ON]
    groups = {
        "Support": views,
        "Auditor": [*views, "chatcore.auditentry.view"],
        "Operators": [
            *views,
            *changes,
            *(f"{name}.{act}" for name in REGISTRY for act in ("view", "change")),
            "chatcore.webhookdelivery.view",
            "chatcore.webhookdelivery.change",
        ],
    }
    Group = apps.get_model("auth", "Group")
    Permission = apps.get_model("auth", "Permission")
    for name, rights in groups.items():
        group, is_new = Group.objects.get_or_create(name=name)
        if not is_new:
            continue  # somebody's own group of this name stays as it is
        for right in rights:
            app, model, act = right.split(".")
            # What is an app of its own since then gives its rights itself.
            group.permissions.add(
                *Permission.objects.filter(
                    content_type__app_label=app, codename=f"{act}_{model}"
                )
            )


class Migration(migrations.Migration):
    dependencies = [
        ("compaction", "0012_workers"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]
    operations = []
    if IS_HOST_CHATCORE:
        dependencies += [
            ("chatcore", "0024_audit_log"),
            ("models_registry", "0007_where_values_are_from"),
        ]
        operations = [migrations.RunPython(make_groups, migrations.RunPython.noop)]
