"""From one accepted schema to the next: a plan made of data, and the identities it leads to.

Nothing here touches rows; the engine that applies a plan walks the same steps that are printed.
"""

from omnigraph.catalog.migrate.identities import carry_identities
from omnigraph.catalog.migrate.plan import plan_migration
from omnigraph.catalog.migrate.report import refuse_unsupported
from omnigraph.catalog.migrate.steps import MigrationPlan

__all__ = ["MigrationPlan", "carry_identities", "plan_migration", "refuse_unsupported"]
