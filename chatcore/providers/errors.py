"""The errors of providers, divided by what can be done about them. No text contains a key."""

from typing import ClassVar


class InvalidParam(ValueError):
    """A parameter that cannot be expressed in the words of a protocol."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(f"{name}: {detail}")
        self.name = name
        self.detail = detail


class ProviderError(Exception):
    """A call that did not end with an answer.

    `type` and `status` are those of the problem document (RFC 9457), `detail` is for people, and
    `retry_after` is the number of seconds to wait, if the provider gave one.
    """

    type: ClassVar[str] = "provider_unavailable"
    status: ClassVar[int] = 502
    may_be_overflow = False
    """True if a large request was refused for no known reason: a smaller one may pass."""
    is_about_contents = False
    """True if a filter refused what the request says: it would refuse the same words again."""
    refused_status = 0
    """The provider's own status, 0 if it gave none."""
    was_accepted = False
    """True if it came within an answer, whose status was none of an error: it may be paid for."""

    def __init__(self, detail: str, *, retry_after: float | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.retry_after = retry_after


class ProviderAuth(ProviderError):
    """The key is missing or wrong, or must not use this model."""

    type = "provider_auth"


class ProviderRateLimited(ProviderError):
    """Too many requests: wait and try again. Never a reason to compact."""

    type = "provider_rate_limited"
    status = 503


class ProviderUnavailable(ProviderError):
    """The provider is down or unreachable, or its answer cannot be read."""


class ProviderOverloaded(ProviderUnavailable):
    """The provider has no room for anybody's requests now (529)."""

    type = "provider_overloaded"
    status = 503


class ProviderTimeout(ProviderError):
    """No answer came within the provider's timeout."""

    type = "provider_timeout"
    status = 504


class ProviderRejected(ProviderError):
    """The provider refused the request for another reason than its length."""

    type = "provider_rejected"


class ToolsRefused(ProviderRejected):
    """The provider says that the model calls no tools."""


class ImagesRefused(ProviderRejected):
    """The provider says that the model sees no images."""


class ContextOverflow(ProviderError):
    """The request is larger than the window. The numbers are the provider's, in tokens, if any."""

    type = "context_overflow"

    def __init__(
        self, detail: str, *, tokens: int | None = None, window: int | None = None
    ) -> None:
        super().__init__(detail)
        self.tokens = tokens
        self.window = window


class ContextBudgetExceeded(ContextOverflow):
    """The newest message alone is larger than the window. Refused before any call."""

    type = "context_budget_exceeded"
    status = 413  # the sender's mistake, not the provider's
