"""The conversation: storage, turns, web and REST. It never imports compaction."""

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class Chatcore(AppConfig):
    name = "chatcore"
    verbose_name = "Conversations"


class AdminSite(AdminConfig):
    default_site = "chatcore.admin_site.ChatcoreAdminSite"
