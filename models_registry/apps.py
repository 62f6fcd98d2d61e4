"""The registry of language models: a leaf that imports neither the conversation nor compaction."""

from django.apps import AppConfig


class ModelsRegistry(AppConfig):
    name = "models_registry"
    verbose_name = "Language models"
