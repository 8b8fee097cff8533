"""Vectors for a refill, asked for by Spark tasks.

Tasks find the texts that are due and send equal ones to the same place, where each is asked for once.
They write nothing: the driver takes over what they were told, and commits it like a refill of its own.
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

from omnigraph.embed.documents import DocumentVectors
from omnigraph.engine.due_texts import DueTexts, SharedVector
from omnigraph.errors import EmbeddingError, OmnigraphError, SparkExecutorUnfit
from omnigraph.progress import Progress
from omnigraph.rows.hashing import buckets_of, hashes_of
from omnigraph.spark.tasks import Failed, Sent, returning, run_exchange, value_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BUCKET_TEXTS: Final = 1024
"""Texts that a task asks for, about: some calls of the provider, so that tasks end at about one time."""

_MOST_BUCKETS: Final = 256


@dataclass(frozen=True, slots=True)
class Told:
    """What the provider said to one task about texts for vectors of one length."""

    named: str | None
    """The model that the schema names, if it does."""
    texts: pa.Array
    vectors: pa.Array
    failure: EmbeddingError | None


@dataclass(frozen=True, slots=True)
class AskingWork:
    """What tasks do. It travels to them as it is."""

    due: DueTexts
    shares: tuple[SharedVector, ...]
    buckets: int

    def find(self, number: int) -> Iterator[Sent | Failed | None]:
        """Send the due texts of a share where they are asked for."""
        share = self.shares[number]
        dimension = share.prop.type.dimension
        try:
            for texts in self.due.read(share.type, share.prop, share.fragments):
                distinct = pc.unique(texts)
                places = buckets_of(hashes_of(distinct), self.buckets)
                for bucket in np.unique(places).tolist():
                    here = distinct.filter(pa.array(places == bucket))
                    content = (dimension, share.prop.embed_model or "", here)
                    yield Sent(bucket, pickle.dumps(content))
        except OmnigraphError as error:
            yield Failed(error)
        else:
            yield None

    def ask(self, _bucket: int, contents: Iterator[bytes]) -> list[Told] | Failed:
        """Ask for every text of a bucket once."""
        return returning(lambda: list(self._ask(contents)))

    def _ask(self, contents: Iterator[bytes]) -> Iterator[Told]:
        vectors = DocumentVectors()
        if vectors.model != self.due.model:
            there, here = vectors.model or "none", self.due.model
            raise SparkExecutorUnfit(f"the embedding model is {there} there and {here} here")
        wanted: dict[tuple[int, str], list[pa.Array]] = {}
        for content in contents:
            dimension, named, texts = pickle.loads(content)
            wanted.setdefault((dimension, named), []).append(texts)
        for (dimension, named), parts in sorted(wanted.items()):
            mine = vectors.under(named or None)
            texts = pc.unique(pa.concat_arrays(parts))
            yield Told(named or None, texts, mine.of(texts, dimension), mine.failure)


def ask_in_tasks(
    spark: SparkSession, due: DueTexts, vectors: DocumentVectors, progress: Progress
) -> None:
    """Let `vectors` know all that are due; afterwards it asks nobody any more. Raises `SparkError`."""
    count = due.size().texts
    shares = due.shares()
    if count:
        progress.stage("ask the provider", count)
        work = AskingWork(due, shares, min(count // _BUCKET_TEXTS + 1, _MOST_BUCKETS))
        done = run_exchange(spark, "embed", len(shares), work.find, work.buckets, work.ask)
        for answer in done.answers:
            value_of(answer)
        for told in done.verdicts:
            for part in value_of(told):
                vectors.under(part.named).take_over(part.texts, part.vectors, part.failure)
        progress.advance(count)
    vectors.stop()
