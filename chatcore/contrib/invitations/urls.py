"""The route of a link."""

from django.urls import path

from chatcore.contrib.invitations.pages import accept_invitation

urlpatterns = [path("invitation/<str:token>/", accept_invitation, name="invitation")]
