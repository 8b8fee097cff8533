"""What a job of embeddings on Spark has computed so far, kept for the job that continues it.

Tasks write vectors to scratch files as they get them. A job that asks for the same, on the same branch and with the
same model, finds them by its id and computes only the rest; the files go with its commit. The same place tells
all tasks how long a provider has asked to be left alone.
Tests: tests/spark/test_embedding.py.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from omnigraph.errors import ObjectMissing, OmnigraphError
from omnigraph.providers.clients import pausing
from omnigraph.storage.durability import Durability
from omnigraph.storage.files import FOLDER, Scratch
from omnigraph.storage.objects import ObjectStore, open_store
from omnigraph.storage.uris import GraphRoot

_DIMENSION: Final = b"dimension"
_NAMED: Final = b"model"


@dataclass(frozen=True, slots=True)
class KeptVectors:
    """The scratch files of one job. It travels to its tasks."""

    root: GraphRoot
    job: str
    """The id of the job: letters and digits."""
    began: str
    """When this run of it began, as a ULID. Cleanup removes files of runs that began long ago."""

    def buckets(self) -> int | None:
        """Among how many buckets an earlier run has divided its texts, if there was one."""
        for path in self._paths():
            return int(path.split("-")[3])
        return None

    def read(self, bucket: int, named: str, dimension: int) -> Iterator[tuple[pa.Array, pa.Array]]:
        """Texts of a bucket and their vectors, file by file."""
        objects = self._objects()
        for path in self._paths():
            if path.split("-")[4] != str(bucket):
                continue
            with suppress(ObjectMissing):  # A job like this one has committed meanwhile.
                rows = pa.ipc.open_file(pa.py_buffer(objects.read_bytes(path))).read_all()
                about = rows.schema.metadata
                if about == {_NAMED: named.encode(), _DIMENSION: str(dimension).encode()}:
                    rows = rows.combine_chunks()
                    yield rows.column("text").chunk(0), rows.column("vector").chunk(0)

    def write(
        self, buckets: int, bucket: int, named: str, texts: pa.Array, vectors: pa.Array
    ) -> None:
        """Keep vectors of a bucket."""
        dimension = str(vectors.type.list_size).encode()
        rows = pa.table({"text": texts, "vector": vectors}).replace_schema_metadata(
            {_NAMED: named.encode(), _DIMENSION: dimension}
        )
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, rows.schema) as writer:
            writer.write_table(rows)
        scratch = Scratch(self.root, self.began)
        scratch.write(memoryview(sink.getvalue()).cast("B"), f"{self._label}{buckets}-{bucket}-")

    @contextmanager
    def sharing_pauses(self) -> Iterator[None]:
        """A while in which requests of this process wait while a provider wants a pause of the job."""
        with pausing(self):
            yield

    def pause(self, seconds: float) -> None:
        """Have all tasks wait so long before they ask the provider again."""
        self._objects().write_text(self._pause, str(time.time() + seconds))

    def wait(self) -> None:
        """Wait until the provider may be asked."""
        with suppress(ObjectMissing):
            until = float(self._objects().read_text(self._pause))
            time.sleep(max(0.0, until - time.time()))

    def remove(self) -> None:
        """Remove everything the runs of the job have kept."""
        with suppress(OmnigraphError):  # The job is done; cleanup removes what stays.
            objects = self._objects()
            for path in [*self._paths(), self._pause]:
                objects.delete(path)

    @property
    def _label(self) -> str:
        return f"embed-{self.job}-"

    @property
    def _pause(self) -> str:
        return f"{FOLDER}/{self.began}-pause-{self.job}"

    def _paths(self) -> list[str]:
        found = self._objects().list_dir(FOLDER)
        return sorted(path for path in found if f"-{self._label}" in path)

    def _objects(self) -> ObjectStore:
        return open_store(self.root, Durability.NONE)
