"""Spark is missing, does not fit, or gave up on a job."""

from __future__ import annotations

from omnigraph.errors.base import OmnigraphError, Retry


class SparkError(OmnigraphError):
    """Work that was to run on Spark did not; nothing of it is visible."""

    code = "OG-J-000"


class SparkUnavailable(SparkError):
    """No session could be had."""

    code = "OG-J-001"
    retry = Retry.AS_IS

    def __init__(self, problem: str, reason: str) -> None:
        self.problem = problem
        self.reason = reason
        super().__init__(f"Spark is not available: {problem} ({reason})")


class StartCacheFailed(SparkError):
    """The file with which Java starts sooner could not be made."""

    code = "OG-J-004"

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(f"no start cache was made: {problem}")


class SparkExecutorUnfit(SparkError):
    """The processes that run tasks lack something, or have another version of it."""

    code = "OG-J-002"

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(
            f"Spark's executors cannot run our tasks: {problem}; "
            "install the same omnigraph on the same Python there"
        )


class SparkJobFailed(SparkError):
    """A job ended without its result, for a reason that lies in no task of ours."""

    code = "OG-J-003"
    retry = Retry.AS_IS

    def __init__(self, job: str, reason: str) -> None:
        self.job = job
        self.reason = reason
        super().__init__(f"the Spark job '{job}' failed: {reason}; nothing was changed")
