"""The one family of provider errors, told apart by what can be done about them. Their text never carries a key."""

from typing import ClassVar


class InvalidParam(ValueError):
    """A parameter that cannot be expressed in the words of a protocol."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(f"{name}: {detail}")
        self.name = name
        self.detail = detail


class ProviderError(Exception):
    """A call that did not end with an answer. `type` and `status` are the problem's, `detail` is for people."""

    type: ClassVar[str] = "provider_unavailable"
    status: ClassVar[int] = 502

    def __init__(self, detail: str, *, retry_after: float | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.retry_after = retry_after  # seconds


class ProviderAuth(ProviderError):
    """The key is missing, wrong or not allowed this model."""

    type = "provider_auth"


class ProviderRateLimited(ProviderError):
    """Throttled: wait and come again. Never a reason to compact."""

    type = "provider_rate_limited"
    status = 503


class ProviderUnavailable(ProviderError):
    """Down, overloaded, unreachable, or answering what is no answer."""


class ProviderTimeout(ProviderError):
    """No answer within the provider's time-out."""

    type = "provider_timeout"
    status = 504


class ProviderRejected(ProviderError):
    """The provider refused the request as it stands, for another reason than its length."""

    type = "provider_rejected"


class ContextOverflow(ProviderError):
    """The request is longer than the window. The numbers, where given, are the provider's own, in tokens."""

    type = "context_overflow"

    def __init__(
        self, detail: str, *, tokens: int | None = None, window: int | None = None
    ) -> None:
        super().__init__(detail)
        self.tokens = tokens
        self.window = window


class ContextBudgetExceeded(ContextOverflow):
    """The newest message alone is larger than the whole window: refused before any call, since nothing could make it fit."""

    type = "context_budget_exceeded"
