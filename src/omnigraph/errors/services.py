"""Errors of budgets, policies, embedding providers and Spark."""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.errors.base import OmnigraphError, Retry


class LimitError(OmnigraphError):
    """A limit on rows, bytes, time or depth is exceeded."""

    code = "OG-B-000"
    kind = "bad_request"


class QueryBudgetExceeded(LimitError):
    """A query needs more rows, bytes or time than its budget allows."""

    code = "OG-B-001"

    def __init__(self, resource: str, needed: str, allowed: str) -> None:
        self.resource = resource
        self.needed = needed
        self.allowed = allowed
        super().__init__(
            f"budget exceeded: {resource}; the query needs {needed}, the limit is {allowed}; "
            "narrow the query or raise the limit"
        )


class QueryCancelled(LimitError):
    """The caller cancelled the query."""

    code = "OG-B-002"

    def __init__(self) -> None:
        super().__init__("the query was cancelled")


class TooManyRequests(LimitError):
    """An actor has too many writes in progress on a server.

    `retry_after` has the seconds that the server asks a client to wait.
    """

    code = "OG-B-010"
    retry = Retry.AS_IS

    def __init__(self, message: str, retry_after: int | None = None) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class PolicyError(OmnigraphError):
    """The policy does not allow the action for this actor, or requires an actor."""

    code = "OG-P-000"
    kind = "policy"


class PolicyDenied(PolicyError):
    """No rule of the policy allows the action for this actor."""

    code = "OG-P-001"

    def __init__(
        self,
        message: str,
        actor: str,
        action: str,
        branch: str | None = None,
        target_branch: str | None = None,
    ) -> None:
        self.actor = actor
        self.action = action
        self.branch = branch
        self.target_branch = target_branch
        super().__init__(message)


class ActorRequired(PolicyError):
    """A policy is in force and the call has no actor."""

    code = "OG-P-002"

    def __init__(self, action: str) -> None:
        self.action = action
        super().__init__(
            f"policy denied action '{action}': no actor; a graph with a policy accepts writes only "
            "in the name of an actor"
        )


class PolicyUndecided(PolicyError):
    """The policy could not be evaluated, so the request is refused."""

    code = "OG-P-003"
    kind = "internal"

    def __init__(self, action: str, reason: str) -> None:
        self.action = action
        self.reason = reason
        super().__init__(f"policy refused action '{action}': it could not be evaluated ({reason})")


class PolicyInvalid(PolicyError):
    """A policy or its test file is not valid; `problems` lists everything that is wrong."""

    code = "OG-P-004"
    kind = "bad_request"

    def __init__(self, name: str, problems: Sequence[str]) -> None:
        self.name = name
        self.problems = tuple(problems)
        if len(self.problems) == 1:
            super().__init__(f"policy {name} is not valid: {self.problems[0]}")
        else:
            listed = "\n".join(f"  - {problem}" for problem in self.problems)
            super().__init__(
                f"policy {name} is not valid, {len(self.problems)} problems:\n{listed}"
            )


class ReadsRestricted(PolicyError):
    """The call concerns a whole graph or type, and its caller sees only a part of it."""

    code = "OG-P-005"

    def __init__(self, operation: str) -> None:
        self.operation = operation
        super().__init__(
            f"cannot {operation}: it concerns what is hidden from you; ask an actor who sees all of it"
        )


class EmbeddingError(OmnigraphError):
    """A text could not be embedded."""

    code = "OG-E-000"


class EmbeddingNotConfigured(EmbeddingError):
    """No embedding provider is configured."""

    code = "OG-E-001"

    def __init__(self, setting: str) -> None:
        self.setting = setting
        super().__init__(
            f"no embedding provider is configured: set {setting}, or OMNIGRAPH_EMBEDDINGS_MOCK=1 "
            "for mock vectors"
        )


class EmbeddingModelUnavailable(EmbeddingError):
    """The schema names a model whose provider is not configured, but another provider is."""

    code = "OG-E-004"

    def __init__(self, model: str, configured: str, missing: str) -> None:
        self.model = model
        self.configured = configured
        super().__init__(
            f"the schema requires embedding model {model}, but {missing}; "
            f"vectors of the configured model {configured} are not comparable"
        )


class EmbeddingFailed(EmbeddingError):
    """The embedding provider did not respond, or its response is not usable."""

    code = "OG-E-002"
    retry = Retry.AS_IS

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"embedding provider: {reason}")


class EmbeddingRefused(EmbeddingFailed):
    """The embedding provider rejected one of the texts."""

    code = "OG-E-003"
    retry = Retry.NEVER


class SparkError(OmnigraphError):
    """An operation on Spark failed; none of its changes are visible."""

    code = "OG-J-000"


class SparkUnavailable(SparkError):
    """No Spark session could be started or reached."""

    code = "OG-J-001"
    retry = Retry.AS_IS

    def __init__(self, problem: str, reason: str) -> None:
        self.problem = problem
        self.reason = reason
        super().__init__(f"Spark is not available: {problem} ({reason})")


class SparkExecutorUnfit(SparkError):
    """Executors lack a package, or have another version of it than the driver."""

    code = "OG-J-002"

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(
            f"Spark executors cannot run omnigraph tasks: {problem}; "
            "install the driver's omnigraph and Python versions on them"
        )


class SparkJobFailed(SparkError):
    """A Spark job failed for a reason other than an error in a task."""

    code = "OG-J-003"
    retry = Retry.AS_IS

    def __init__(self, job: str, reason: str) -> None:
        self.job = job
        self.reason = reason
        super().__init__(f"Spark job '{job}' failed: {reason}; nothing was changed")


class StartCacheFailed(SparkError):
    """The cache file that speeds up the start of Java could not be created."""

    code = "OG-J-004"

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(f"could not create the Java start cache: {problem}")
