"""The kinds of writer that can die. A new kind is one more entry of `KINDS`.

Each is run by a process of its own as well, which finds it here by its name.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from unittest.mock import patch

import pyarrow as pa

from omnigraph.api.graph import init
from omnigraph.api.graph import open as open_graph
from omnigraph.commit import background, turn
from omnigraph.versioning import locks as locks_module
from omnigraph.versioning import manifest_compaction
from omnigraph.versioning.locks import LeaseTiming, WriterLocks
from omnigraph.versioning.locks.process_lock import PROCESS_QUEUES
from tests.crash import graphs
from tests.crash.graphs import (
    NEXT_SCHEMA,
    SCHEMA,
    SIZED_SCHEMA,
    Builder,
    company,
    edge,
    person,
    rows,
    unfinished,
)
from tests.spark.in_process import (
    SparkLike,
    comparisons_in_this_process,
    frames_in_this_process,
    tasks_in_this_process,
)
from tests.support.background import wait_for_compaction

PUBLISHED = "graph_publish.after_manifest_commit"
MORE = rows(
    person("cy", 52),
    person("dee", 18),
    company("acme"),
    edge("Knows", "cy", "ada"),
    edge("WorksAt", "dee", "acme"),
)


def waiting_for_compaction(run: Callable[[str], None]) -> Callable[[str], None]:
    """A writer that is not done before what it does in the background is."""

    def whole(uri: str) -> None:
        try:
            run(uri)
        finally:
            wait_for_compaction()

    return whole


@dataclass(frozen=True, slots=True)
class Kind:
    """One writer: what it finds, and what it does, from opening the graph on."""

    name: str
    found: Builder
    run: Callable[[str], None]
    halfway: Callable[[str], None] | None = None
    """Makes the only state between the two that a reader may see."""
    is_recovery: bool = False
    """Whether its work is what every open does, so that the next open finishes it."""
    finds_strayed_tables: bool = False
    """Whether it is there to bring tables back that no sidecar accounts for."""
    is_only_killed: bool = False
    """Whether it has threads that would go on after an error in one of them."""
    publishes_before_it_is_done: int | None = None
    """Publishes that make everything a reader can see, if more follow that only tidy up."""


def _init(uri: str) -> None:
    init(uri, SCHEMA)


def _append(uri: str) -> None:
    open_graph(uri).as_actor("ada").load(MORE, "append")


def _append_in_tasks(uri: str) -> None:
    with tasks_in_this_process(step=2**20):
        open_graph(uri).load(MORE, "append", engine="spark")


def _append_frames(uri: str) -> None:
    people = SparkLike(
        pa.table({"name": ["cy"], "age": [52]}), pa.table({"name": ["di"], "age": [7]})
    )
    with frames_in_this_process(step=2**20):
        open_graph(uri).load({"Person": people}, "append", engine="spark")


def _merge(uri: str) -> None:
    changed = rows(person("bo", 30), person("cy", 52), edge("Knows", "cy", "ada"))
    open_graph(uri).load(changed, "merge")


def _overwrite(uri: str) -> None:
    new = rows(person("gil", 7), person("hal", 8), edge("Knows", "gil", "hal"))
    open_graph(uri).load(new, "overwrite")


def _insert(uri: str) -> None:
    open_graph(uri).mutate(
        'query q() { insert Person { name: "cy" }  insert Knows { from: "cy", to: "ada" } }'
    )


def _update(uri: str) -> None:
    open_graph(uri).mutate('query q() { update Person set { age: 30 } where name = "bo" }')


def _delete(uri: str) -> None:
    """Takes the edges of the node with it."""
    open_graph(uri).as_actor("ada").mutate('query q() { delete Person where name = "bo" }')


CHANGES = (
    'query q() { insert Person { name: "s0" } }',
    'query q() { update Person set { age: 30 } where name = "bo" }',
    'query q() { insert Person { name: "s1" }  insert Knows { from: "s1", to: "bo" } }',
    'query q() { update Person set { age: 5 } where name = "ada" }',
    'query q() { delete Person where name = "ada" }',
    'query q() { insert Company { name: "acme" } }',
    'query q() { insert Person { name: "s0", age: 8 } }',
)
"""Changes by writers that share a turn; some need what those before them did."""


def _shared_turn(changes: int, branch: str, uri: str) -> None:
    """Writers that come one after the other while the branch is locked, so that the first of them
    works for all."""
    graph = open_graph(uri)
    ref = graph._core.find_branch(branch)
    key = graph._core.locks._queue(ref.physical)
    errors: list[BaseException] = []

    def change(number: int) -> None:
        try:
            graph.as_actor(f"writer-{number}").mutate(CHANGES[number], branch=branch)
        except BaseException as error:
            errors.append(error)

    writers = [threading.Thread(target=change, args=(number,)) for number in range(changes)]
    # A slow machine must not make two turns of one.
    with patch.object(turn, "MAX_TURN_SECONDS", 600):
        with graph._core.locks.hold(ref.physical, "something long"):
            for number, writer in enumerate(writers):
                writer.start()
                while len(PROCESS_QUEUES._queues[key]) < number + 2 and writer.is_alive():
                    time.sleep(0.001)
        for writer in writers:
            writer.join()
    if errors:
        raise errors[0]


def _first_write(uri: str) -> None:
    open_graph(uri).load(MORE, "append", branch="fresh")


def _first_deletion(uri: str) -> None:
    open_graph(uri).mutate('query q() { delete Person where name = "bo" }', branch="fresh")


def _next_write(uri: str) -> None:
    open_graph(uri, branch="feature").load(rows(person("fay", 34), company("acme")), "merge")


def _load_into_new_branch(uri: str) -> None:
    open_graph(uri).load(MORE, "append", branch="new", create_from="main")


def _compact(uri: str) -> None:
    with patch.object(background, "MAX_SMALL_FRAGMENTS", 1):
        _append(uri)
        wait_for_compaction()


def _index(uri: str) -> None:
    open_graph(uri).as_actor("ada").maintenance.ensure_indexes()


def _index_of_branch(uri: str) -> None:
    """The branch has its tables from another one, and makes them its own."""
    open_graph(uri).maintenance.ensure_indexes("new/er")


def _compact_manifest(uri: str) -> None:
    fragments = patch.object(manifest_compaction, "MANIFEST_SMALL_FRAGMENTS", 1)
    with fragments, patch.object(manifest_compaction, "INDEX_LAG_ROWS", 0):
        _update(uri)
        wait_for_compaction()


def _merge_branch(uri: str) -> None:
    open_graph(uri).as_actor("ada").merge("feature")


def _merge_in_tasks(uri: str) -> None:
    with comparisons_in_this_process(rows=1):
        open_graph(uri).merge("feature", engine="spark")


def _merge_into_branch(uri: str) -> None:
    open_graph(uri).merge("feature", "fresh")


def _merge_main(uri: str) -> None:
    """The branch takes a table of main as it is, and rows of another one."""
    open_graph(uri).merge("main", "feature")


def _revert(uri: str) -> None:
    graph = open_graph(uri)
    graph.as_actor("ada").revert(graph.log(operation="load")[0])


def _cherry_pick(uri: str) -> None:
    graph = open_graph(uri)
    picked = graph.log("feature", operation="mutate", reverse=True)[0]
    graph.cherry_pick(picked.id, branch="fresh")


def _create_branch(uri: str) -> None:
    open_graph(uri).branches.create("new")


def _create_branch_of_branch(uri: str) -> None:
    open_graph(uri).branches.create("new/er", "feature")


def _create_branch_at_commit(uri: str) -> None:
    open_graph(uri).branches.create("new", source="main~1")


def _create_branch_at_commit_of_branch(uri: str) -> None:
    """The commit has tables of the branch it was made on."""
    open_graph(uri).branches.create("new/er", source="feature~1")


def _reset_branch(uri: str) -> None:
    open_graph(uri).as_actor("ada").branches.reset("feature", "main")


def _reset_main(uri: str) -> None:
    graph = open_graph(uri)
    graph.branches.reset("main", graph.log(operation="load")[-1])


def _create_tag(uri: str) -> None:
    open_graph(uri).as_actor("ada").tags.create("v2", "feature~1")


def _delete_tag(uri: str) -> None:
    open_graph(uri).tags.delete("v1")


def _delete_branch(uri: str) -> None:
    open_graph(uri).branches.delete("feature")


def _open(uri: str) -> None:
    open_graph(uri)


def _publish_drift(uri: str) -> None:
    open_graph(uri).maintenance.repair(confirm=True, force=True)


def _discard_drift(uri: str) -> None:
    open_graph(uri).maintenance.repair(confirm=True, force=True, rollback=True)


def _embed(uri: str) -> None:
    with patch.dict(os.environ, {"OMNIGRAPH_EMBEDDINGS_MOCK": "1"}):
        open_graph(uri).as_actor("ada").embed()


def _apply_schema(uri: str) -> None:
    open_graph(uri).as_actor("ada").schema.apply(NEXT_SCHEMA)


def _apply_wider(uri: str) -> None:
    """Writes a column in place of another, and validates rows of two tables."""
    text = SCHEMA.replace("age: I32?", "age: I64? @index\n    @range(age, 0..90)")
    text = text.replace("@unique(src, dst)", "@unique(src, dst) @unique(dst)")
    open_graph(uri).as_actor("ada").schema.apply(text)


def _apply_required(uri: str) -> None:
    """Changes a table in three commits: columns, whether two may hold nulls, and an index."""
    text = SIZED_SCHEMA.replace("size: I32?", "size: I32 @index\n    nick: String?")
    open_graph(uri).schema.apply(text.replace("founded: I32", "founded: I32?"))


def _apply_names(uri: str) -> None:
    """Touches no table."""
    old, new = "Company { name: String @key", 'Company { title: String @key @rename_from("name")'
    open_graph(uri).schema.apply(SCHEMA.replace(old, new))


def _apply_with_loss(uri: str) -> None:
    open_graph(uri).schema.apply(NEXT_SCHEMA, allow_data_loss=True)


def _optimize(uri: str) -> None:
    open_graph(uri).maintenance.optimize()


def _cleanup(uri: str) -> None:
    open_graph(uri).maintenance.cleanup(keep_versions=1, min_age=timedelta())


def _append_leased(uri: str) -> None:
    with short_leases():
        _append(uri)


def _open_leased(uri: str) -> None:
    with short_leases():
        _open(uri)


@contextmanager
def short_leases() -> Iterator[None]:
    """Leases of two seconds, so that nobody has to wait for those of the dead."""
    locks = partial(WriterLocks, timing=LeaseTiming(2.0, 0.2, 1.5))
    with patch.object(locks_module, "WriterLocks", locks):
        yield


_BEGUN = "recovery.sidecar_written"
_TABLE_DONE = "mutation.post_table_commit"
_TABLES_DONE = "mutation.post_finalize_pre_publisher"
_SCHEMA_BEGUN = "schema_apply.after_source_staged"
_SCHEMA_WAITS = "schema_apply.after_staging_write"
_SCHEMA_PUBLISHED = "schema_apply.after_manifest_commit"


_MERGED = "branch_merge.post_phase_b_pre_manifest_commit"


def _unfinished_merge(point: str) -> Builder:
    return unfinished(_merge_main, point, found=graphs.diverged)


def _unfinished_schema(point: str) -> Builder:
    return unfinished(_apply_schema, point, found=graphs.only_main)


KINDS = {
    kind.name: replace(kind, run=waiting_for_compaction(kind.run))
    for kind in (
        Kind("init", graphs.nothing, _init),
        Kind("load append", graphs.people, _append),
        Kind("load append in tasks", graphs.people, _append_in_tasks),
        Kind("load of data frames", graphs.people, _append_frames),
        Kind("load merge", graphs.people, _merge),
        Kind("load overwrite", graphs.people, _overwrite),
        Kind("insert", graphs.people, _insert),
        Kind("update", graphs.people, _update),
        Kind("delete", graphs.people, _delete),
        *(
            Kind(
                f"shared turn of {changes} on {branch}",
                graphs.people,
                partial(_shared_turn, changes, branch),
                is_only_killed=True,
            )
            for changes, branch in ((1, "main"), (2, "main"), (7, "main"), (7, "fresh"))
        ),
        Kind("first write on a branch", graphs.people, _first_write),
        Kind("first deletion on a branch", graphs.people, _first_deletion),
        Kind("next write on a branch", graphs.people, _next_write),
        Kind("load into a new branch", graphs.people, _load_into_new_branch, _create_branch),
        Kind("compaction", graphs.people, _compact, publishes_before_it_is_done=1),
        Kind("indexes", graphs.people, _index),
        Kind("indexes of a branch", graphs.branch_of_branch, _index_of_branch),
        Kind("compaction of the manifest", graphs.people, _compact_manifest),
        Kind("merge", graphs.diverged, _merge_branch),
        Kind("merge in tasks", graphs.diverged, _merge_in_tasks),
        Kind("merge into a branch", graphs.diverged, _merge_into_branch),
        Kind("merge of main", graphs.diverged, _merge_main),
        Kind("revert", graphs.diverged, _revert),
        Kind("cherry-pick", graphs.diverged, _cherry_pick),
        Kind("branch create", graphs.people, _create_branch),
        Kind("branch create from a branch", graphs.people, _create_branch_of_branch),
        Kind("branch create from an earlier commit", graphs.diverged, _create_branch_at_commit),
        Kind(
            "branch create from an earlier commit of a branch",
            graphs.diverged,
            _create_branch_at_commit_of_branch,
        ),
        Kind("branch reset", graphs.diverged, _reset_branch),
        Kind("reset of main", graphs.diverged, _reset_main),
        Kind("tag create", graphs.tagged, _create_tag),
        Kind("tag delete", graphs.tagged, _delete_tag),
        Kind("branch delete", graphs.people, _delete_branch),
        Kind("roll forward", unfinished(_append, _TABLES_DONE), _open, is_recovery=True),
        Kind("roll back", unfinished(_append, _TABLE_DONE, 2), _open, is_recovery=True),
        Kind(
            "roll back of a first write",
            unfinished(_first_write, _TABLE_DONE),
            _open,
            is_recovery=True,
        ),
        Kind("merge roll forward", _unfinished_merge(_MERGED), _open, is_recovery=True),
        Kind("merge roll back", _unfinished_merge(_TABLE_DONE), _open, is_recovery=True),
        Kind("discard", unfinished(_append, _BEGUN), _open, is_recovery=True),
        Kind("orphan", graphs.orphaned(_first_write), _open, is_recovery=True),
        Kind("late commit", graphs.overtaken, _append, finds_strayed_tables=True),
        Kind("repair", graphs.drifted, _publish_drift, finds_strayed_tables=True),
        Kind("repair with rollback", graphs.drifted, _discard_drift, finds_strayed_tables=True),
        Kind("embed", graphs.with_texts, _embed),
        Kind("optimize", graphs.fragmented, _optimize),
        Kind("cleanup", graphs.fragmented, _cleanup),
        Kind("schema apply", graphs.only_main, _apply_schema),
        Kind("schema apply of wider numbers", graphs.only_main, _apply_wider),
        Kind("schema apply of required values", graphs.with_sizes, _apply_required),
        Kind("schema apply without tables", graphs.only_main, _apply_names),
        Kind(
            "schema apply with data loss",
            graphs.only_main,
            _apply_with_loss,
            publishes_before_it_is_done=1,
        ),
        Kind("schema roll forward", _unfinished_schema(_SCHEMA_WAITS), _open, is_recovery=True),
        Kind("schema roll back", _unfinished_schema(_SCHEMA_BEGUN), _open, is_recovery=True),
        Kind("schema files wait", _unfinished_schema(_SCHEMA_PUBLISHED), _open, is_recovery=True),
        Kind("schema files", graphs.without_compiled_schema, _open, is_recovery=True),
        Kind("upgrade", graphs.of_an_older_format, _open, is_recovery=True),
    )
}

LEASED_KINDS = {
    kind.name: replace(kind, run=waiting_for_compaction(kind.run))
    for kind in (
        Kind("load under a lease", graphs.people, _append_leased),
        Kind("recovery under a lease", graphs.people, _open_leased, is_recovery=True),
    )
}
"""Writers on an object store, where there are steps that a disk knows nothing of."""
