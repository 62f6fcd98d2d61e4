"""The admin site, with our name on it."""

from django.contrib.admin import AdminSite


class ChatcoreAdminSite(AdminSite):
    site_header = "Chatcore"
    site_title = "Chatcore admin"
    index_title = "Administration"
