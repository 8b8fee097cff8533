"""Every constant and default of the product, each with its reason."""

from __future__ import annotations

from typing import Final

FORMAT_STAMP: Final = 4
"""The format in which graphs are stored. A graph with a higher one was written by a newer version."""

MAX_NESTING: Final = 64
"""Deepest nesting of blocks, calls and lists in source text. Real queries stay below 5; the limit
keeps the recursive parser far away from the interpreter's own recursion limit."""

MAX_SOURCE_BYTES: Final = 4 * 1024 * 1024
"""Largest schema or query file read from disk. The biggest schema seen in practice has a few hundred
kilobytes; the limit stops a data file handed over by mistake before its tokens fill the memory."""

MAX_CONFIG_BYTES: Final = 256 * 1024
"""Largest configuration file. Real ones have a few kilobytes; YAML takes a second for this much, which
every command would wait for."""

SNIPPET_COLUMNS: Final = 160
"""Widest excerpt of a source line shown under an error message."""

MAX_JSON_NESTING: Final = 256
"""Deepest nesting of arrays and objects in a JSON record. Properties need four levels; the limit keeps
Python's recursive reader far away from the interpreter's own recursion limit."""

MAX_SHOWN_CHARACTERS: Final = 200
"""Characters of a value or name that a message shows. Enough to recognise it in a file; a log line
stays readable when the value is a document of megabytes."""

MAX_VECTOR_DIMENSION: Final = 2_147_483_647
"""A vector column is a fixed-size list, whose length Arrow stores as a signed 32-bit integer."""

COMPILE_CACHE_ENTRIES: Final = 512
"""Compiled queries kept per schema. A served application has tens of stored queries, a notebook
session hundreds of ad-hoc ones."""

RESTRICTED_SCHEMAS: Final = 64
"""Parts of a schema for which compiled queries are kept. Readers who may see the same types and
properties share one; a policy distinguishes a few groups of readers, not hundreds."""

CHECKPOINT_INTERVAL: Final = 64
"""Commits between two checkpoints in the manifest. A cold open replays at most the rows of this many
commits."""

PUBLISH_BUDGET_SECONDS: Final = 10.0
"""How long a publish competes for the next version before it gives up with a conflict."""

MAX_TURN_CHANGES: Final = 32
"""How many changes of waiting writers share one turn."""

MAX_TURN_SECONDS: Final = 0.4
"""A turn that has taken this long takes no further change: the first writer waits for all of them."""

MAX_REMOTE_TURN_SECONDS: Final = 1.0
"""The same on an object store, where a turn begins and ends with eight requests: about as many as three
changes of one table make."""

PREPARATION_SECONDS: Final = 0.05
"""How long a write that is being prepared keeps others from being prepared. Small writes take some
milliseconds; one that takes longer waits for something else than this process."""

REMEMBERED_COMMITS: Final = 256
"""Commits whose touched ids a process remembers. A writer that was overtaken by other writers of its
process compares its ids with theirs instead of being prepared again."""

HANDED_OVER_COMMITS: Final = 64
HANDED_OVER_IDS: Final = 512
HANDOVER_BYTES: Final = 64 * 1024
"""What a writer leaves in its lock for the next process: so many of the latest commits, and about so many ids
that they touched. A process that was overtaken by more than that reads what it missed."""

LOCK_WAIT_MS: Final = 30_000
"""How long a writer waits for a branch's lock by default. Holders keep it for milliseconds; on an
object store a dead holder is detected when its lease expires."""

LEASE_TTL_SECONDS: Final = 10.0
"""Another writer may take over a lease not renewed for this long. A shorter time would cost live
writers their lease on a slow store; a longer one makes writers wait for dead holders."""

LEASE_RENEW_SECONDS: Final = 3.0
"""How often a holder renews its lease: one renewal may fail before the lease is in danger."""

LEASE_LOSS_SECONDS: Final = 7.0
"""A holder that could not renew for this long stops. What it began just before has the remaining
three seconds of the term to arrive at the store."""

ROWS_PER_FRAGMENT: Final = 100_000
"""Rows per file of a table. With stable row ids a one-row change costs time in proportion to the
file it touches, so files stay far below the store's own default of a million rows."""

INDEX_CHECKED_BYTES: Final = 16 * 1024 * 1024
"""Largest index that has checksums. All of it is read before a process uses it for the first time,
which takes some ten milliseconds from a disk; reading more would be felt by the first look-up."""

LOOKUP_CHUNK: Final = 5_000
"""Ids per index lookup. Longer lists are not faster, and the text of one stays below a megabyte."""

SCANNED_ROWS: Final = 500_000
"""Rows of a scan that are compared with a set at a time: some tens of megabytes. Every comparison hashes
the set again, so few rows at a time would be slow."""

ROWS_SCANNED_PER_LOOKUP: Final = 128
"""A lookup of an id through the index costs about as much as scanning this many ids, so a longer
list of ids is found by scanning the column."""

INDEX_CACHE_BYTES: Final = 512 * 1024 * 1024
METADATA_CACHE_BYTES: Final = 256 * 1024 * 1024
"""Most that the store keeps of index pages and file metadata per open graph. Its own defaults are
several gigabytes, more than a small machine has."""

MANIFEST_SMALL_ROWS: Final = 1024
MANIFEST_SMALL_FRAGMENTS: Final = 16
"""The manifest is compacted after a write when it has more fragments than this with fewer rows than
that. Each publish adds a fragment that every cold open has to read. Compacting later makes opens and the
compaction slower."""

MANIFEST_SCANNED_ROWS: Final = 4096
"""Manifests of up to this many rows on an object store are read as a whole, which takes fewer requests
than reading their indexes."""

HEAD_NOTE_BYTES: Final = 16 * 1024
"""Longest note of a branch's head that is stored with its lease: some fifty types. A lease is written
at the beginning and at the end of every write."""

MANIFEST_OVERDUE: Final = 4
"""With this many times as many small fragments, the publish itself compacts the manifest. Writers in close
succession leave no pause for the background compaction."""

MANIFEST_FRAGMENT_ROWS: Final = 20_000
"""Rows per fragment of a compacted manifest. Larger fragments are read slightly faster, but every
compaction would rewrite one."""

SMALL_FRAGMENT_ROWS: Final = ROWS_PER_FRAGMENT // 10
MAX_SMALL_FRAGMENTS: Final = 64
"""A writer compacts a table after its write when it has more fragments than this with fewer rows than
that. Each small write adds a fragment, which every lookup by id scans until it is compacted."""

OVERDUE_FRAGMENTS: Final = 128
"""With more small fragments than this, a compaction waits for the lock instead of a pause. Without it,
commits of writers that leave no pause would get slower and slower."""

SMALL_WRITE_ROWS: Final = 100
"""Writes of up to this many rows are staged under the lock while others write to the same table: what
they staged earlier would most likely be based on an old version."""

CACHED_OBJECT_BYTES: Final = 1024 * 1024
CACHED_BYTES_IN_MEMORY: Final = 16 * 1024 * 1024
CACHED_BYTES_ON_DISK: Final = 256 * 1024 * 1024
"""Limits of the cache of immutable objects: bytes per object, per process, and in the shared directory."""

KEPT_TABLES: Final = 256
"""Tables on an object store of which a process keeps the version it wrote last open."""

KNOWN_FILES: Final = 4096
"""Small files whose ids and endpoints a process remembers after writing them. Dozens per table are in use;
older ones have been compacted."""

KNOWN_IDS_BYTES: Final = 64 * 1024 * 1024
"""Hashes of ids that a process keeps of files it looks into again and again: those of eight million rows."""

LOOKUPS_BEFORE_LEARNING: Final = 8
ROWS_LEARNT_PER_LOOKUP: Final = 1000
"""Reading and hashing this many ids of a file takes about as long as one look-up in it. Files whose ids were
looked for that often are likely to be asked for more."""

INDEX_LAG_ROWS: Final = 1000
"""Unindexed rows before a compaction extends an index. Scanning this many adjacent rows is fast, and
extending an index is the slowest part of a compaction."""

CLEANUP_MIN_AGE_SECONDS: Final = 24 * 3600
"""How long cleanup keeps a replaced version by default. Running readers may still use it; a day is longer
than any query, load or merge takes."""

CACHE_SHARE: Final = 0.25
"""Share of the machine's memory that reads may keep of decoded columns and adjacency, per graph."""

QUERY_MAX_ROWS: Final = 100_000_000
QUERY_MAX_BYTES: Final = 4 * 1024 * 1024 * 1024
QUERY_TIMEOUT_SECONDS: Final = 300.0
"""Default limits of one query. Normal queries stay far below; an accidental cross product fails with an
error instead of exhausting the memory."""

SUBPATTERN_MAX_DEPTH: Final = 64
"""Links of a pattern that are counted inside each other. Counting is recursive; a longer chain
is followed hop by hop instead."""

LOOKUP_MAX_FRONTIER: Final = 1024
LOOKUP_MAX_HOPS: Final = 6
"""Most nodes and hops for which edges are looked up one by one before they are read as a whole. Beyond
that, the cost estimate of lookups is unreliable."""

LOAD_BLOCK_BYTES: Final = 4 * 1024 * 1024
"""Text of a load that is parsed at a time. Larger blocks are not faster, and a block with an
invalid record is parsed record by record."""

LOAD_RECORD_BYTES: Final = 128 * 1024 * 1024
"""Longest record of a JSON stream. Blobs in base64 make long records; without a limit one missing
brace would make the rest of any stream a single record."""

LOAD_MEMORY_BYTES: Final = 512 * 1024 * 1024
"""Rows of a load kept in memory until its commit; the rest wait in scratch files."""

INLINE_LOAD_SECONDS_PER_GB: Final = 24.0
SPARK_LOAD_SECONDS_PER_GB: Final = 7.0
SPARK_LOAD_CORE_SECONDS_PER_GB: Final = 26.0
"""What a load of JSON Lines takes: in one process; and on Spark, for what the driver does alone and for what
cores share. Measured with loads of 49 and 348 MB and of 1.2 GB on two cores, where a session that has worked
takes 20 seconds per GB."""

INLINE_EXPORT_SECONDS_PER_GB: Final = 27.0
SPARK_EXPORT_SECONDS_PER_GB: Final = 12.0
SPARK_EXPORT_CORE_SECONDS_PER_GB: Final = 80.0
"""The same of an export, per GB of stored rows: measured with 2.85 million rows on two cores, where Spark takes
twice as long."""

SPARK_WARM_SECONDS: Final = 0.6
SPARK_IDLE_SECONDS: Final = 5.0
SPARK_CACHED_SECONDS: Final = 9.0
SPARK_COLD_SECONDS: Final = 12.0
"""What Spark takes before it is at work: where it has worked before; where a session has not run any job, so that
the processes of tasks start first; and where Java starts, with and without its start cache."""

PARQUET_ROW_BYTES: Final = 85
GZIP_RATIO: Final = 6
"""JSON Lines that take as long to load as one row of a Parquet file, or as a byte of a compressed file."""

UNWEIGHED_BYTES: Final = 1_000_000
"""Input that takes less time in one process than Spark takes to distribute it, under any circumstances."""

SPARK_MEMORY_SHARE: Final = 0.25
"""Input as a share of the memory from which a load runs on Spark even if that takes longer. One process
holds about as many bytes as it reads; tasks hold what one of them reads."""

SPARK_TEXT_BYTES: Final = 8 * 1024 * 1024
"""Texts from which vectors are asked for by Spark tasks by default. Providers are slow, so parallel
requests pay off early."""

LARGE_INLINE_BYTES: Final = 150_000_000
"""Input size from which engine "auto" reports that Spark is not installed."""

DATA_SOURCE_BYTES: Final = 256 * 1024 * 1024
"""Rows that a write with Spark's `format("omnigraph")` commits. It is committed by one Python process, which
holds them several times; `omnigraph.spark.write` has no such limit."""

LOAD_RANGE_BYTES: Final = 32 * 1024 * 1024
"""Input that one task reads. Larger ranges are not faster; smaller ones create many small files."""

LOAD_RANGE_ROWS: Final = 250_000
"""Rows of a table that one task reads at most, however little room they take."""

SPARK_START_SECONDS: Final = 120.0
"""How long a Java process may take to start or to end. It takes two on an idle machine."""

START_CACHE_SECONDS: Final = 1800.0
"""How long making a start cache for Java may take. It takes a minute on an idle machine. Unfinished
files that are older belong to no running command."""

SPARK_REACH_SECONDS: Final = 5.0
"""How long a master may take to accept a connection."""

SPARK_HEAP_SHARE: Final = 0.25
SPARK_HEAP_BYTES: Final = 8 * 1024 * 1024 * 1024
"""Memory of the Java process of an embedded session: a share of the machine's, up to a limit. Rows
are in the processes of the tasks; Java only moves keys and answers."""

COMPARED_ROWS: Final = 8192
"""Rows whose values are compared at a time. What a merge or diff holds in memory is this many rows of
each side, however many differ."""

SPARK_COMPARED_ROWS: Final = 1_000_000
"""Rows that may differ from which a diff or a merge runs on Spark by default. One process
compares tens of thousands a second, and Java takes seconds to start."""

SPARK_REWRITTEN_ROWS: Final = 20_000_000
"""Rows from which a schema change rewrites tables on Spark by default. One process writes a million in a
second or two."""

COMPARED_ROWS_PER_TASK: Final = 200_000
COMPARED_PARTS: Final = 64
"""Rows that one task compares, and most tasks for a table. Every task reads the ids of all rows that
may differ to find its own, so beyond that tasks get larger instead of more."""

MAX_REPORTED_CONFLICTS: Final = 10_000
"""Conflicts of a merge reported with their values; the rest are only counted."""

MERGE_MEMORY_BYTES: Final = 128 * 1024 * 1024
"""Rows of one table that a merge keeps in memory until they are written; others wait in scratch files."""

SORTED_BYTES: Final = 16 * 1024 * 1024
"""Rows that are sorted at a time for an export. Of more rows, parts wait in scratch files. An export holds
this a few times over, and a server runs many exports at once."""

MAX_SORTED_PARTS: Final = 256
"""Most scratch files of one table; parts of a larger table are larger instead. All are open at once."""

SORTED_BYTES_PER_TASK: Final = 64 * 1024 * 1024
"""Rows that one Spark task sorts; smaller tasks would cost more to start than to run."""

BLOB_ROWS: Final = 64
"""Rows whose blobs an export reads at a time; a blob may have megabytes."""

MAX_LOAD_ERRORS: Final = 100
"""Errors of a load that are listed in full unless the caller asks for another number."""

LOOKUP_VALUES: Final = 1000
"""Most values looked up one by one through an index; beyond that one scan of the column is faster."""

INDEX_MIN_ROWS: Final = 1000
"""Rows from which a table gets its look-up indexes. Below that a scan takes no longer than a look-up,
and building the index would take longer than the write it belongs to."""

INDEXED_UNDER_LOCK_ROWS: Final = 100_000
"""Rows of a table up to which small writes, and loads on Spark, build missing look-up indexes in the same
commit, which takes some tenths of a second. A load on Spark has those of larger tables built by tasks after
its commit, while others may write."""

INDEX_PART_ROWS: Final = 500_000
"""Rows of which one Spark task builds a part of an index: a second's work. Joining twenty parts takes no longer
than joining four."""

APPROXIMATE_FROM: Final = 100_000
"""Rows from which the nearest vectors are looked for in some partitions of an index only. Fewer are
compared one by one in a few milliseconds, and the answer is exact."""

RECALL: Final = 0.97
"""Share of the true nearest vectors that lie in the partitions a search looks into, measured with
vectors of the column itself when its index is built. Questions from outside find a little less;
0.95 is what they may count on."""

LEAST_PROBES: Final = 8
"""Partitions every search looks into. Fewer are hardly faster, and query vectors from outside
the column need more partitions than its own vectors."""

BLOB_READ_BYTES: Final = 4 * 1024 * 1024
"""Bytes of a blob that are read at a time. Larger reads are not faster, and a blob may be larger than
the memory."""

GQ_LANGUAGE: Final = "2.1+1"
"""The language of queries: the version of the common language, and our steps beyond it."""
