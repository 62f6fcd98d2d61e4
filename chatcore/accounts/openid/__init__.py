"""OpenID Connect as django-allauth has it, with the checks that its code flow leaves out.

It stands in the place of allauth's own app of this provider: nonce and signature of the id token,
and that both answers of the provider are about the same person.
"""
