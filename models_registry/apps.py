"""The Django app of the registry of language models."""

from django.apps import AppConfig


class ModelsRegistry(AppConfig):
    name = "models_registry"
    verbose_name = "Language models"
