"""The URLs of the project; each app that has an extension brings its own.

/livez and /readyz are answered before (chatcore/asgi.py, chatcore/serving/probes.py).
"""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path, re_path
from django.utils.module_loading import autodiscover_modules, module_has_submodule

from chatcore.base.rest.routes import handle_unknown_path
from chatcore.extension import list_extension_configs

# As admin.autodiscover(), with packages that import no page themselves (chatcore/admin/).
autodiscover_modules("admin", "admin.pages", register_to=admin.site)

handler400 = "chatcore.web.refused_forms.refuse_request"

urlpatterns: list[URLPattern | URLResolver] = [
    # First, because most requests are for it: Django tries one pattern after another.
    path("api/", include("chatcore.api.urls")),
    path("admin/", admin.site.urls),
    *(
        path("", include(f"{config.name}.urls"))
        for config in list_extension_configs()
        if module_has_submodule(config.module, "urls")
    ),
    # Only what no app has either.
    path("api/", include([re_path("", handle_unknown_path)])),
    path("", include("chatcore.web.urls")),
]
