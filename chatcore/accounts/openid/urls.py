"""Where a sign-on begins, and where the identity provider sends people back to."""

from django.urls import path

from chatcore.accounts.openid import views

urlpatterns = [
    path("oidc/<str:provider_id>/login/", views.login, name="openid_connect_login"),
    path("oidc/<str:provider_id>/login/callback/", views.callback, name="openid_connect_callback"),
]
