"""The URLs of the web pages."""

from django.contrib.auth.views import LogoutView
from django.urls import include, path

from chatcore.web import (
    account,
    chat,
    chat_settings,
    context_panel,
    conversations,
    mcp_servers,
    providers,
    sample_chat,
    search,
    sign_up,
)
from chatcore.web.copies import print_page, shared_page, shares
from chatcore.web.installation import views as installation
from chatcore.web.titles import views as titles

urlpatterns = [
    path("manifest.webmanifest", installation.show_manifest, name="manifest"),
    path("service-worker.js", installation.show_service_worker, name="service_worker"),
    path("offline/", installation.show_offline_page, name="offline"),
    path("", chat.redirect_to_chat, name="home"),
    path("new/", chat.show_new_chat, name="new_chat"),
    path("new/sample/", sample_chat.create_sample_chat, name="sample_chat"),
    path("chats/", chat.show_chat_list, name="chats"),
    path("c/<uuid:pk>/", chat.show_chat, name="chat"),
    path("c/<uuid:pk>/messages/", chat.show_messages, name="messages"),
    path("c/<uuid:pk>/messages/<int:message_pk>/", chat.show_message, name="message"),
    path("c/<uuid:pk>/switch/", context_panel.preview_switch, name="preview_switch"),
    path("c/<uuid:pk>/shortened/", context_panel.show_shortened_messages, name="shortened"),
    path("c/<uuid:pk>/turns/<uuid:turn_pk>/error/", chat.show_turn_error, name="turn_error"),
    path("new/settings/", chat_settings.show_chat_settings, name="new_chat_settings"),
    path("c/<uuid:pk>/settings/", chat_settings.show_chat_settings, name="chat_settings"),
    path("c/<uuid:pk>/print/", print_page.show_print_page, name="print_chat"),
    path("c/<uuid:pk>/share/", shares.show_share_dialog, name="share_chat"),
    path("c/<uuid:pk>/share/new/", shares.create_link, name="create_link"),
    path("shares/<uuid:pk>/revoke/", shares.revoke_link, name="revoke_link"),
    path("s/<str:token>/", shared_page.show_shared_chat, name="shared_chat"),
    path("s/<str:token>/files/<uuid:pk>/", shared_page.download_shared_file, name="shared_file"),
    path("search/", search.show_search_results, name="search"),
    path("c/<uuid:pk>/rename/", conversations.RenameChatView.as_view(), name="rename_chat"),
    path("c/<uuid:pk>/title/", titles.request_title, name="write_title"),
    path("c/<uuid:pk>/pin/", conversations.pin_chat, name="pin_chat"),
    path("c/<uuid:pk>/archive/", conversations.archive_chat, name="archive_chat"),
    path("settings/", account.show_settings, name="settings"),
    path("settings/tokens/", account.create_token, name="create_token"),
    path("settings/tokens/<str:digest>/delete/", account.delete_token, name="delete_token"),
    path("settings/devices/others/end/", account.end_other_devices, name="end_other_devices"),
    path("settings/devices/link/", account.create_sign_in_link, name="create_sign_in_link"),
    path("settings/devices/<int:pk>/end/", account.end_device, name="end_device"),
    path("settings/language/", account.set_language, name="set_language"),
    path("settings/providers/<int:pk>/key/", providers.set_provider_key, name="set_key"),
    path("settings/providers/<int:pk>/test/", providers.check_provider, name="try_provider"),
    path("settings/tool-servers/", mcp_servers.create_server, name="create_tool_server"),
    path("settings/tool-servers/<uuid:pk>/", mcp_servers.show_server, name="tool_server"),
    path("settings/tool-servers/<uuid:pk>/edit/", mcp_servers.edit_server, name="edit_tool_server"),
    path("settings/tool-servers/<uuid:pk>/test/", mcp_servers.check_server, name="try_tool_server"),
    path(
        "settings/tool-servers/<uuid:pk>/delete/",
        mcp_servers.delete_server,
        name="delete_tool_server",
    ),
    path("new/model/", chat.show_onboarding, name="onboarding"),
    path("settings/default-model/", account.set_default_model, name="set_default_model"),
    path("login/", account.SignInView.as_view(), name="login"),
    path("login/once/<str:token>/", account.sign_in_by_link, name="login_once"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("invitation/<str:token>/", sign_up.accept_invitation, name="invitation"),
    path("account/", include("chatcore.accounts.urls")),
]
