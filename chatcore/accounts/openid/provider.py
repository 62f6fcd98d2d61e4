"""The provider that allauth's registry finds in this app."""

from allauth.account.models import EmailAddress
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider

from chatcore.accounts.openid.id_tokens import build_nonce
from chatcore.accounts.openid.views import CheckedAdapter


class CheckedProvider(OpenIDConnectProvider):
    """Sends a nonce, and takes an address for verified only if the provider says so."""

    oauth2_adapter_class = CheckedAdapter

    def get_pkce_params(self) -> dict[str, str]:
        """Return the parameters of PKCE, and a nonce that is made of its secret part."""
        params: dict[str, str] = super().get_pkce_params()
        return params | {"nonce": build_nonce(params["code_verifier"])}

    def extract_email_addresses(self, data: object) -> list[EmailAddress]:
        """Return the address; any word but true counts as not verified, and so does a number."""
        addresses: list[EmailAddress] = super().extract_email_addresses(data)
        for address in addresses:
            word = address.verified
            address.verified = word is True or word == "true"
        return addresses


provider_classes = [CheckedProvider]
