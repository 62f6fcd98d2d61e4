"""The URLs of the project; each app that has an extension brings its own.

/livez and /readyz are answered before (chatcore/asgi.py, chatcore/serving/probes.py).
"""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.utils.module_loading import autodiscover_modules, module_has_submodule

from chatcore.extension import list_extension_configs

# As admin.autodiscover(), with packages that import no page themselves (chatcore/admin/).
autodiscover_modules("admin", "admin.pages", register_to=admin.site)

handler400 = "chatcore.web.refused_forms.refuse_request"

urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", admin.site.urls),
    # Those of apps come first: the last route of the REST API matches all paths.
    *(
        path("", include(f"{config.name}.urls"))
        for config in list_extension_configs()
        if module_has_submodule(config.module, "urls")
    ),
    path("api/", include("chatcore.api.urls")),
    path("", include("chatcore.web.urls")),
]
