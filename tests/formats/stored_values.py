"""Values of every kind that a graph stores, the same in every run."""

from __future__ import annotations

from typing import Final

from omnigraph.versioning.audit import RecoveryAudit, RecoveryKind, TableOutcome
from omnigraph.versioning.commits import (
    CommitDraft,
    CommitId,
    CommitRecord,
    Counts,
    LoadNote,
    OperationId,
    OperationKind,
    TableId,
    Warning,
    WriteKey,
)
from omnigraph.versioning.manifest import ManifestState
from omnigraph.versioning.recovery.sidecar import (
    DroppedTable,
    Pointer,
    SchemaChange,
    Sidecar,
    SidecarTable,
    WriterKind,
)
from omnigraph.versioning.rows import TableRegistration, TableVersion, VersionRef

CREATED_AT: Final = 1781443200000000
OWNER: Final = "01KV8YRZ0A7M3B6C9D1E2F4G5H"
PERSON, KNOWS, TAG = TableId("node#1"), TableId("edge#2"), TableId("node#3")
INFO: Final = (
    '{"manifest_path": "_versions/4.manifest", "manifest_size": 1024, "e_tag": null, '
    '"naming_scheme": "V2"}'
)


def draft(kind: OperationKind, letter: str, **rest: object) -> CommitDraft:
    return CommitDraft(
        graph_commit_id=CommitId(f"01KV8Z6M4B{letter * 16}"),
        operation=kind,
        operation_id=OperationId(f"01KV8Z6M3Q{letter * 16}"),
        created_at=CREATED_AT,
        schema_ir_hash="sha256:00",
        schema_ref="00.json",
        **rest,  # type: ignore[arg-type]
    )


KEYED = draft(
    OperationKind.MUTATE,
    "A",
    actor_id="act-lena",
    message='Grüße, "Welt"\n\x1f\u2028😀',
    counts={
        PERSON: Counts(inserted=3, updated=1),
        KNOWS: Counts(deleted=2),
        TAG: Counts(),
    },
    warnings=(
        Warning("unknown_property", "nick is no property", 2),
        Warning("recovery_quarantined", "sidecar waits"),
    ),
    write_key=WriteKey("nightly-1", "5f" * 32, {"affected": {"node:Person": 4}, "query": "add"}),
)
LOADED = draft(
    OperationKind.LOAD,
    "B",
    actor_id=None,
    counts={PERSON: Counts(inserted=3)},
    load_id="job-1",
    load_note=LoadNote("merge", {"node:Person": 3, "edge:Knows": 0}, 1),
)
MERGED = draft(
    OperationKind.MERGE, "C", merged_parent_commit_id=CommitId("01KV8Z6M4BDDDDDDDDDDDDDDDD")
)
OWN_KEY = draft(
    OperationKind.EMBED, "E", write_key=WriteKey("01KV8Z6M3QEEEEEEEEEEEEEEEE", "0a" * 32)
)

PLAIN = SidecarTable.of("node:Person", PERSON, "nodes/aa", VersionRef(4, None), None)
OWN_LINE = SidecarTable.of(
    "node:Person", PERSON, "nodes/aa", VersionRef(4, "review_s7"), "review_s7"
)
FORKED = SidecarTable.of(
    "edge:Knows", KNOWS, "edges/bb", VersionRef(7, None), "review_s7", forks=True
)
FORKED_AGAIN = SidecarTable.of(
    "edge:Knows", KNOWS, "edges/bb", VersionRef(7, "old_s3"), "new_s4", forks=True
)
COMPACTED = SidecarTable.of("node:Tag", TAG, "nodes/cc", VersionRef(2, None), None, data_commits=0)


def sidecar(
    kind: WriterKind, commit: CommitDraft, *tables: SidecarTable, **rest: object
) -> Sidecar:
    values: dict[str, object] = {"branch": None, "physical": None, "base_sequence": 41, **rest}
    return Sidecar(owner=OWNER, writer_kind=kind, draft=commit, tables=tables, **values)  # type: ignore[arg-type]


ON_BRANCH = {"branch": "review/7", "physical": "review_s7"}
SIDECARS = {
    "mutation": sidecar(WriterKind.MUTATION, KEYED, PLAIN),
    "load_on_branch": sidecar(
        WriterKind.LOAD, LOADED, OWN_LINE, FORKED, FORKED_AGAIN, COMPACTED, **ON_BRANCH
    ),
    "merge": sidecar(
        WriterKind.BRANCH_MERGE,
        MERGED,
        PLAIN,
        pointers=(
            Pointer(KNOWS, "edges/bb", 9, 7, None),
            Pointer(TAG, "nodes/cc", 3, 2, "review_s7"),
        ),
    ),
    "merge_without_pointers": sidecar(WriterKind.BRANCH_MERGE, MERGED),
    "schema_apply": sidecar(
        WriterKind.SCHEMA_APPLY,
        draft(OperationKind.SCHEMA_APPLY, "F"),
        PLAIN,
        schema=SchemaChange(
            "sha256:ff",
            "ff.json",
            (TableRegistration(TableId("node#12"), "nodes/dd", "node", 12, "Müller"),),
            (DroppedTable("node:Tag", TAG, 2),),
        ),
    ),
    "schema_apply_without_tables": sidecar(
        WriterKind.SCHEMA_APPLY,
        draft(OperationKind.SCHEMA_APPLY, "G"),
        schema=SchemaChange("sha256:ff", "ff.json"),
    ),
    "ensure_indices": sidecar(
        WriterKind.ENSURE_INDICES, draft(OperationKind.ENSURE_INDICES, "H"), COMPACTED
    ),
    "optimize": sidecar(WriterKind.OPTIMIZE, draft(OperationKind.OPTIMIZE, "J"), COMPACTED),
    "shared_turn": sidecar(WriterKind.MUTATION, OWN_KEY, PLAIN, is_shared=True),
}

RECORDS = {
    "keyed": CommitRecord(KEYED, CommitId("01KV8Z6M4B0000000000000000"), 42, None),
    "loaded": CommitRecord(LOADED, CommitId("01KV8Z6M4B0000000000000000"), 43, "review_s7"),
    "merged": CommitRecord(MERGED, CommitId("01KV8Z6M4B0000000000000000"), 44, None),
    "own_key": CommitRecord(OWN_KEY, CommitId("01KV8Z6M4B0000000000000000"), 45, None),
    "first": CommitRecord(draft(OperationKind.INIT, "K"), None, 1, None),
}

AUDITS = [
    RecoveryAudit(
        RecoveryKind.ROLLED_FORWARD,
        "act-lena",
        OperationId("01KV8Z6M3QAAAAAAAAAAAAAAAA"),
        "Mutation",
        (TableOutcome("node:Person", PERSON, 4, 5), TableOutcome("edge:Knows", KNOWS, 7, 7)),
        CREATED_AT,
    ),
    RecoveryAudit(
        RecoveryKind.LATE_COMMIT_DISCARDED,
        None,
        OperationId("01KV8Z6M3QBBBBBBBBBBBBBBBB"),
        "Load",
        (),
        CREATED_AT,
        late_version=9,
    ),
]

REGISTRATIONS = [
    TableRegistration(PERSON, "nodes/aa", "node", 1, "Person"),
    TableRegistration(KNOWS, "edges/bb", "edge", 2, "Kännt"),
]
VERSIONS = [
    TableVersion(PERSON, 4, None, 100, INFO),
    TableVersion(KNOWS, 7, "review_s7", 12, INFO),
]
STATE = ManifestState(
    branch=None,
    sequence=41,
    head=CommitId("01KV8Z6M4B0000000000000000"),
    tables={entry.table_id: entry for entry in VERSIONS},
    registered={entry.table_id: entry for entry in REGISTRATIONS},
    schema_ref="00.json",
)

SCHEMA = """\
interface Named {
    name: String
    nick: String?
}

node Person @description("people") implements Named {
    name: String @key
    nick: String? @index
    age: I32?
    height: F64?
    mood: enum(calm, wild, glad)?
    tags: [String]
    born: Date?
    seen: DateTime?
    bio: String? @description("Grüße")
    about: Vector(3)? @embed("bio", model="m-1")
    photo: Blob?
    small: U32?
    large: U64?
    long: I64?
    ratio: F32?
    active: Bool
    code: String?
    @check(code, "[a-zé]+")
    @range(age, 0..150)
    @range(height, 0.5..2.5)
    @range(small, 1..)
    @range(ratio, ..100000000000000000000.0)
    @unique(nick, code)
}

node Tag {
    slug: String @key
}

edge Knows: Person -> Person @card(0..3) {
    since: I32?
    @unique(src, dst)
}

edge Tagged: Person -> Tag
"""
