"""Errors about budgets, permissions and providers of embeddings."""

from __future__ import annotations

from omnigraph.errors.base import OmnigraphError, Retry


class LimitError(OmnigraphError):
    """A budget for rows, bytes, time or depth is used up."""

    code = "OG-B-000"
    kind = "bad_request"


class QueryBudgetExceeded(LimitError):
    """A query would use more rows, bytes or time than it may."""

    code = "OG-B-001"

    def __init__(self, resource: str, needed: str, allowed: str) -> None:
        self.resource = resource
        self.needed = needed
        self.allowed = allowed
        super().__init__(
            f"budget exceeded: {resource}; the query needs {needed}, and {allowed} are allowed; "
            "narrow it down or raise the limit"
        )


class QueryCancelled(LimitError):
    """A query was stopped from outside."""

    code = "OG-B-002"

    def __init__(self) -> None:
        super().__init__("the query was cancelled")


class PolicyError(OmnigraphError):
    """The actor may not do this, or no actor was given where one is needed."""

    code = "OG-P-000"
    kind = "policy"


class EmbeddingError(OmnigraphError):
    """A text could not be turned into a vector."""

    code = "OG-E-000"


class EmbeddingNotConfigured(EmbeddingError):
    """No provider of embeddings is configured."""

    code = "OG-E-001"

    def __init__(self, setting: str) -> None:
        self.setting = setting
        super().__init__(
            f"no embedding provider is configured: set {setting}, or OMNIGRAPH_EMBEDDINGS_MOCK=1 "
            "for vectors without a model"
        )


class EmbeddingModelUnavailable(EmbeddingError):
    """A schema names a model whose provider is not configured, while another one is."""

    code = "OG-E-004"

    def __init__(self, model: str, configured: str, missing: str) -> None:
        self.model = model
        self.configured = configured
        super().__init__(
            f"the schema asks for vectors of {model}, and {missing}; "
            f"those of the configured model {configured} would not compare with them"
        )


class EmbeddingFailed(EmbeddingError):
    """The provider of embeddings did not answer, or not with what was asked for."""

    code = "OG-E-002"
    retry = Retry.AS_IS

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"embedding provider: {reason}")


class EmbeddingRefused(EmbeddingFailed):
    """The provider answers, but will not embed one of the texts it was given."""

    code = "OG-E-003"
    retry = Retry.NEVER
