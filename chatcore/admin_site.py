"""The admin site with Chatcore's name.

It is not in the package chatcore/admin/, because Django needs this class before it has loaded the
models, and importing that package would register pages of models that do not exist yet.
"""

from django.contrib.admin import AdminSite


class ChatcoreAdminSite(AdminSite):
    site_header = "Chatcore"
    site_title = "Chatcore admin"
    index_title = "Administration"
