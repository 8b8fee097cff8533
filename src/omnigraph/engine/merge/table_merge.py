"""The merge of one table as a value: the three states and who decides. It travels to tasks as it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow.compute as pc

from omnigraph.catalog.model import EntityType
from omnigraph.engine.merge.choices import Choices
from omnigraph.engine.merge.images import Image, differing
from omnigraph.engine.merge.rows import MergedRows, ThreeSides, merge_rows
from omnigraph.engine.merge.rules import columns_of_rules
from omnigraph.errors import ExternalBlobRefused
from omnigraph.progress import SILENT, Progress
from omnigraph.rows.blob_bases import NO_BASES, BlobBases
from omnigraph.storage.changed_rows import Wanted
from omnigraph.storage.tables import TableStore


@dataclass(frozen=True)
class TableMerge:
    """What leads from base to theirs, brought into ours."""

    declared: EntityType
    tables: TableStore
    base: Image
    theirs: Image
    ours: Image
    choices: Choices
    is_taken_over: bool = False
    """Whether the target will point at the source's version, so that no row has to be written."""

    def sides(self, wanted: Wanted | None = None) -> ThreeSides:
        """The rows to look at, where they are stored."""
        return ThreeSides(
            *differing(self.declared, self.tables, self.base, self.theirs, wanted),
            *differing(self.declared, self.tables, self.base, self.ours, wanted),
            unclear=self.base.unclear(self.declared),
        )

    def run(self, sides: ThreeSides, progress: Progress = SILENT) -> MergedRows:
        """Merge the rows."""
        keep = columns_of_rules(self.declared) if self.is_taken_over else None
        return merge_rows(self.declared, sides, self.choices, keep=keep, progress=progress)

    def check_blobs(self, rows: MergedRows, blobs: BlobBases) -> None:
        """Blobs kept elsewhere are written again only where they may be.

        Raises `ExternalBlobRefused`.
        """
        if self.is_taken_over:
            return
        for name in sorted(self.declared.blobs):
            uris = pc.unique(pc.struct_field(rows.upserts.column(name), "uri")).drop_null()
            for uri in uris.to_pylist():
                if not blobs.allow(uri):
                    raise ExternalBlobRefused(name, uri)


def allowed_blobs(merges: Iterable[TableMerge]) -> BlobBases:
    """Where blobs may be kept; asked only if there are any."""
    has_blobs = any(merge.declared.blobs for merge in merges)
    return BlobBases.from_environment() if has_blobs else NO_BASES
