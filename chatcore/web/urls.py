"""The URLs of the web pages."""

from django.contrib.auth.views import LogoutView
from django.urls import include, path

from chatcore.web import (
    account,
    chat,
    chat_settings,
    context_panel,
    conversations,
    providers,
    search,
    sign_up,
)

urlpatterns = [
    path("", chat.redirect_to_chat, name="home"),
    path("new/", chat.show_new_chat, name="new_chat"),
    path("chats/", chat.show_chat_list, name="chats"),
    path("c/<uuid:pk>/", chat.show_chat, name="chat"),
    path("c/<uuid:pk>/messages/", chat.show_messages, name="messages"),
    path("c/<uuid:pk>/messages/<int:message_pk>/", chat.show_message, name="message"),
    path("c/<uuid:pk>/shortened/", context_panel.show_shortened_messages, name="shortened"),
    path("c/<uuid:pk>/turns/<uuid:turn_pk>/error/", chat.show_turn_error, name="turn_error"),
    path("new/settings/", chat_settings.show_chat_settings, name="new_chat_settings"),
    path("c/<uuid:pk>/settings/", chat_settings.show_chat_settings, name="chat_settings"),
    path("search/", search.show_search_results, name="search"),
    path("c/<uuid:pk>/rename/", conversations.RenameChatView.as_view(), name="rename_chat"),
    path("c/<uuid:pk>/pin/", conversations.pin_chat, name="pin_chat"),
    path("c/<uuid:pk>/archive/", conversations.archive_chat, name="archive_chat"),
    path("settings/", account.show_settings, name="settings"),
    path("settings/tokens/", account.create_token, name="create_token"),
    path("settings/tokens/<str:digest>/delete/", account.delete_token, name="delete_token"),
    path("settings/devices/others/end/", account.end_other_devices, name="end_other_devices"),
    path("settings/devices/<int:pk>/end/", account.end_device, name="end_device"),
    path("settings/language/", account.set_language, name="set_language"),
    path("settings/providers/<int:pk>/key/", providers.set_provider_key, name="set_key"),
    path("settings/providers/<int:pk>/test/", providers.check_provider, name="try_provider"),
    path("new/model/", chat.show_onboarding, name="onboarding"),
    path("settings/default-model/", account.set_default_model, name="set_default_model"),
    path("login/", account.SignInView.as_view(), name="login"),
    path("login/once/<str:token>/", account.sign_in_by_link, name="login_once"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("invitation/<str:token>/", sign_up.accept_invitation, name="invitation"),
    path("account/", include("chatcore.accounts.urls")),
]
