"""Random commits and histories of manifest rows, made without a store."""

from __future__ import annotations

import json
from random import Random

from hypothesis import strategies as st

from omnigraph.versioning.commits import (
    CommitDraft,
    CommitId,
    CommitRecord,
    Counts,
    OperationId,
    OperationKind,
    TableId,
    Warning,
)
from omnigraph.versioning.manifest import ManifestState
from omnigraph.versioning.rows import (
    SCHEMA,
    Row,
    TableRegistration,
    TableVersion,
    commit_rows,
    registration_row,
    version_row,
)

EMPTY = ManifestState(None, 0, CommitId(""), {}, {})
"""What a manifest without rows would say."""

texts = st.text(max_size=12)
maybe_texts = st.none() | texts
branches = st.sampled_from([None, "feature", "review_s7"])
numbers = st.integers(0, 2**63 - 1)


def counts() -> st.SearchStrategy[Counts]:
    return st.builds(Counts, numbers, numbers, numbers).filter(bool)


def table_ids() -> st.SearchStrategy[TableId]:
    names = st.tuples(st.sampled_from(["node", "edge"]), st.integers(1, 9))
    return names.map(lambda pair: TableId(f"{pair[0]}#{pair[1]}"))


def drafts() -> st.SearchStrategy[CommitDraft]:
    return st.builds(
        CommitDraft,
        graph_commit_id=texts.map(CommitId),
        operation=st.sampled_from(OperationKind),
        operation_id=texts.map(OperationId),
        created_at=numbers,
        schema_ir_hash=texts,
        schema_ref=texts,
        merged_parent_commit_id=maybe_texts.map(lambda id: None if id is None else CommitId(id)),
        actor_id=maybe_texts,
        message=maybe_texts,
        counts=st.dictionaries(table_ids(), counts(), max_size=3),
        load_id=maybe_texts,
        warnings=st.lists(st.builds(Warning, texts, texts, st.none() | numbers), max_size=2).map(tuple),
    )  # fmt: skip


def records() -> st.SearchStrategy[CommitRecord]:
    parents = maybe_texts.map(lambda id: None if id is None else CommitId(id))
    return st.builds(CommitRecord, drafts(), parents, st.integers(1, 2**40), branches)


def histories() -> st.SearchStrategy[list[list[Row]]]:
    """The rows of each commit, oldest first: tables come, move, go and never come back."""
    return st.builds(history, st.integers(1, 12), st.integers(0, 2**32))


def history(length: int, seed: int) -> list[list[Row]]:
    """Drawn from a seed: a draw per decision would take a hundred times as long."""
    chance = Random(seed)
    commits: list[list[Row]] = []
    living: list[TableId] = []
    parent: CommitId | None = None
    for sequence in range(1, length + 1):
        rows: list[Row] = []
        for table_id in [t for t in living if chance.random() < 0.5]:
            if chance.random() < 0.2:
                living.remove(table_id)
                rows.append(tombstone_row(table_id, sequence))
            else:
                rows.append(version_row(version(table_id, chance), sequence))
        if not living or chance.random() < 0.5:
            born = TableId(f"node#{sequence}")
            living.append(born)
            rows.append(registration_row(registration(born), sequence))
            rows.append(version_row(version(born, chance), sequence))
        branch = chance.choice([None, "feature"])
        commit = CommitRecord(plain_draft(sequence), parent, sequence, branch)
        parent = commit.graph_commit_id
        commits.append(complete(rows + commit_rows(commit, "committed")))
    return commits


def registration(table_id: TableId) -> TableRegistration:
    kind, _, number = table_id.partition("#")
    return TableRegistration(table_id, f"{kind}s/{number:0>16}", kind, int(number), f"T{number}")


def version(table_id: TableId, chance: Random) -> TableVersion:
    info = json.dumps({"manifest_path": "x", "manifest_size": None})
    branch = chance.choice([None, "feature", "review_s7"])
    return TableVersion(table_id, chance.randint(1, 9), branch, chance.randint(0, 9), info)


def plain_draft(sequence: int) -> CommitDraft:
    return CommitDraft(
        graph_commit_id=CommitId(f"C{sequence}"),
        operation=OperationKind.LOAD,
        operation_id=OperationId(f"O{sequence}"),
        created_at=sequence,
        schema_ir_hash="sha256:0",
        schema_ref="0.json",
    )


def tombstone_row(table_id: TableId, sequence: int) -> Row:
    return {
        "object_id": f"{table_id}$tombstone${sequence:020d}",
        "object_type": "table_tombstone",
        "table_key": table_id,
        "table_version": 1,
        "commit_seq": sequence,
    }


def complete(rows: list[Row]) -> list[Row]:
    """Rows as they are read back, every column present."""
    return [dict.fromkeys(SCHEMA.names) | row for row in rows]
