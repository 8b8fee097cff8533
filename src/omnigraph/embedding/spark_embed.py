"""Pending embeddings computed by Spark tasks.

Tasks find the pending texts and send equal ones to the same bucket, where each is embedded once. They
commit nothing: the driver takes over the vectors, and commits them like those it computes itself. Until then
they are kept in scratch, so that a job that is run again continues (`kept`).
Tests: tests/spark/test_embedding.py.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.embedding.kept import KeptVectors
from omnigraph.embedding.vectors import PendingTexts, SharedVector
from omnigraph.errors import EmbeddingError, OmnigraphError, SparkExecutorUnfit
from omnigraph.progress import Progress
from omnigraph.providers.documents import DocumentVectors
from omnigraph.rows.equality import buckets_of, hashes_of
from omnigraph.spark.tasks import Failed, Sent, returning, run_exchange, value_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BUCKET_TEXTS: Final = 1024
"""About as many texts as a task embeds: a few provider calls, so that tasks end at the same time."""

_MAX_BUCKETS: Final = 256

_KEPT_TEXTS: Final = 512
"""Texts whose vectors are kept together: the answers of four requests, which a killed task has lost."""


@dataclass(frozen=True, slots=True)
class EmbeddedTexts:
    """Texts of one bucket and their vectors of one length."""

    named: str | None
    """The model that the schema names, if it names one."""
    texts: pa.Array
    vectors: pa.Array
    failure: EmbeddingError | None


@dataclass(frozen=True, slots=True)
class EmbedTasks:
    """The work of the tasks, pickled and sent to them."""

    pending: PendingTexts
    shares: tuple[SharedVector, ...]
    buckets: int
    kept: KeptVectors

    def find(self, number: int) -> Iterator[Sent | Failed | None]:
        """Send the pending texts of a share to buckets."""
        share = self.shares[number]
        dimension = share.prop.type.dimension
        try:
            for texts in self.pending.read(share.type, share.prop, share.fragments):
                distinct = pc.unique(texts)
                buckets = buckets_of(hashes_of(distinct), self.buckets)
                for bucket in np.unique(buckets).tolist():
                    here = distinct.filter(pa.array(buckets == bucket))
                    content = (dimension, share.prop.embed_model or "", here)
                    yield Sent(bucket, pickle.dumps(content))
        except OmnigraphError as error:
            yield Failed(error)
        else:
            yield None

    def embed(self, bucket: int, contents: Iterator[bytes]) -> list[EmbeddedTexts] | Failed:
        """Embed every text of a bucket once."""
        with self.kept.sharing_pauses():
            return returning(lambda: list(self._embed(bucket, contents)))

    def _embed(self, bucket: int, contents: Iterator[bytes]) -> Iterator[EmbeddedTexts]:
        vectors = DocumentVectors()
        if vectors.model != self.pending.model:
            there, here = vectors.model or "none", self.pending.model
            raise SparkExecutorUnfit(f"the embedding model is {there} there and {here} here")
        wanted: dict[tuple[int, str], list[pa.Array]] = {}
        for content in contents:
            dimension, named, texts = pickle.loads(content)
            wanted.setdefault((dimension, named), []).append(texts)
        for (dimension, named), parts in sorted(wanted.items()):
            mine = vectors.under(named or None)
            texts = pc.unique(pa.concat_arrays(parts))
            self._compute(bucket, named, texts, dimension, mine)
            yield EmbeddedTexts(named or None, texts, mine.of(texts, dimension), mine.failure)

    def _compute(
        self, bucket: int, named: str, texts: pa.Array, dimension: int, vectors: DocumentVectors
    ) -> None:
        """Request the vectors that no earlier attempt has kept, and keep them."""
        rest = texts
        for known, found in self.kept.read(bucket, named, dimension):
            vectors.remember(known, found)
            rest = rest.filter(pc.invert(pc.is_in(rest, value_set=known)))
        for start in range(0, len(rest), _KEPT_TEXTS):
            some = rest[start : start + _KEPT_TEXTS]
            found = vectors.of(some, dimension)
            answered = found.is_valid()
            if answered.true_count:
                new, computed = some.filter(answered), found.filter(answered)
                self.kept.write(self.buckets, bucket, named, new, computed)


def embed_in_tasks(
    spark: SparkSession,
    pending: PendingTexts,
    vectors: DocumentVectors,
    kept: KeptVectors,
    progress: Progress,
) -> None:
    """Give `vectors` all pending embeddings; it calls no provider afterwards. Raises `SparkError`.

    Those that an earlier run of the job has `kept` are not computed again.
    """
    count = pending.size().texts
    shares = pending.shares()
    if count:
        progress.stage("ask the provider", count)
        buckets = kept.buckets() or min(count // _BUCKET_TEXTS + 1, _MAX_BUCKETS)
        tasks = EmbedTasks(pending, shares, buckets, kept)
        done = run_exchange(spark, "embed", len(shares), tasks.find, tasks.buckets, tasks.embed)
        for answer in done.answers:
            value_of(answer)
        for embedded in done.reduced:
            for part in value_of(embedded):
                vectors.under(part.named).take_over(part.texts, part.vectors, part.failure)
        progress.advance(count)
    vectors.stop()
