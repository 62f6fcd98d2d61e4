"""The two views of a sign-on, with the checked adapter in the place of allauth's own."""

from collections.abc import Mapping
from typing import Any

from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.models import SocialApp, SocialToken
from allauth.socialaccount.providers.oauth2.client import OAuth2Client, OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView, OAuth2LoginView
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse

from chatcore.accounts.openid.id_tokens import build_nonce, check_claims, verify_id_token
from chatcore.base.environment import is_safe_address

ENDPOINTS = ("authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri")


class CheckedAdapter(OpenIDConnectOAuth2Adapter):
    """Asks the identity provider, and believes only what it has signed for this sign-on."""

    @property
    def openid_config(self) -> dict[str, str]:
        """What the provider says about itself. Raises OAuth2Error where it names plain HTTP."""
        config = super().openid_config
        if not all(is_safe_address(config[name]) for name in ENDPOINTS if name in config):
            raise OAuth2Error("The identity provider names an address without TLS")
        return config

    def get_access_token_data(
        self,
        request: HttpRequest,
        app: object,
        client: OAuth2Client,
        pkce_code_verifier: str | None = None,
    ) -> dict[str, object]:
        """Return the provider's answer to the code, and remember the nonce that belongs to it."""
        self._nonce = build_nonce(pkce_code_verifier or "")
        return super().get_access_token_data(
            request, app, client, pkce_code_verifier=pkce_code_verifier
        )

    def complete_login(
        self,
        request: HttpRequest,
        app: SocialApp,
        token: SocialToken,
        *,
        response: Mapping[str, object],
    ) -> object:
        """Return the sign-on of the person whom id token and userinfo name. Raises OAuth2Error."""
        claims = self._verify(app, str(response.get("id_token") or ""))
        data: dict[str, Mapping[str, object]] = {"id_token": claims}
        if app.settings.get("fetch_userinfo", True):
            data["userinfo"] = self._get(
                self.profile_url, headers={"Authorization": f"Bearer {token.token}"}
            )
        check_claims(data)
        if data.get("userinfo", claims).get("sub") != claims["sub"]:
            raise OAuth2Error("The userinfo is about somebody else than the id_token")
        return self.get_provider().sociallogin_from_response(request, data)

    def _verify(self, app: SocialApp, id_token: str) -> dict[str, object]:
        return verify_id_token(
            id_token,
            key_set=self._get(self.openid_config["jwks_uri"]),
            issuer=self.openid_config["issuer"],
            client_id=app.client_id,
            nonce=self._nonce,
        )

    def _get(self, address: str, **options: object) -> Any:
        with get_adapter().get_requests_session() as session:
            answer = session.get(address, **options)
            answer.raise_for_status()
            return answer.json()


@login_not_required
def login(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Send the browser to the identity provider. Raises Http404 for one that is not set."""
    return _serve(OAuth2LoginView, request, provider_id)


@login_not_required
def callback(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Sign the person in whom the identity provider names, or say that it did not work."""
    return _serve(OAuth2CallbackView, request, provider_id)


def _serve(view: Any, request: HttpRequest, provider_id: str) -> HttpResponse:
    try:
        response: HttpResponse = view.adapter_view(CheckedAdapter(request, provider_id))(request)
    except SocialApp.DoesNotExist:
        raise Http404 from None
    return response
