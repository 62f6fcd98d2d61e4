"""The addresses of the web pages."""

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

from chatcore import account_views, chat_settings_views, context_views, conversation_views, provider_views, search_views, views

urlpatterns = [
    path("", views.home, name="home"),
    path("new/", views.new_chat, name="new_chat"),
    path("chats/", views.chats, name="chats"),
    path("c/<uuid:pk>/", views.chat, name="chat"),
    path("c/<uuid:pk>/messages/", views.messages, name="messages"),
    path("c/<uuid:pk>/messages/<int:message_pk>/", views.message, name="message"),
    path("c/<uuid:pk>/shortened/", context_views.shortened, name="shortened"),
    path("c/<uuid:pk>/turns/<uuid:turn_pk>/error/", views.turn_error, name="turn_error"),
    path("new/settings/", chat_settings_views.chat_settings, name="new_chat_settings"),
    path("c/<uuid:pk>/settings/", chat_settings_views.chat_settings, name="chat_settings"),
    path("search/", search_views.search, name="search"),
    path("c/<uuid:pk>/rename/", conversation_views.Rename.as_view(), name="rename_chat"),
    path("c/<uuid:pk>/pin/", conversation_views.pin, name="pin_chat"),
    path("c/<uuid:pk>/archive/", conversation_views.archive, name="archive_chat"),
    path("settings/", account_views.settings, name="settings"),
    path("settings/tokens/", account_views.create_token, name="create_token"),
    path("settings/tokens/<str:digest>/delete/", account_views.delete_token, name="delete_token"),
    path("settings/language/", account_views.set_language, name="set_language"),
    path("settings/providers/<int:pk>/key/", provider_views.set_key, name="set_key"),
    path("settings/providers/<int:pk>/test/", provider_views.try_provider, name="try_provider"),
    path("new/model/", views.onboarding, name="onboarding"),
    path("settings/default-model/", account_views.set_default_model, name="set_default_model"),
    path("login/", LoginView.as_view(template_name="chatcore/login.html", redirect_authenticated_user=True), name="login"),
    path("login/once/<str:token>/", account_views.once, name="login_once"),
    path("logout/", LogoutView.as_view(), name="logout"),
]
