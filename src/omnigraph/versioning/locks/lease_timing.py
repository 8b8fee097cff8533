"""How long a lease lasts, and when its holder stops trusting it."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.limits import LEASE_LOSS_SECONDS, LEASE_RENEW_SECONDS, LEASE_TTL_SECONDS


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """The three times of a lease. All processes of a graph use the same ones."""

    ttl_s: float = LEASE_TTL_SECONDS
    renew_s: float = LEASE_RENEW_SECONDS
    loss_s: float = LEASE_LOSS_SECONDS

    def __post_init__(self) -> None:
        # A holder must give up before anybody may take over, and renew before it gives up.
        if not 0 < self.renew_s < self.loss_s < self.ttl_s:
            raise ValueError("a lease is renewed before it counts as lost, and lost before its end")
