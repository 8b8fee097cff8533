"""Verify a whole graph: every row against every constraint, every reference against every file.

Changes nothing and takes no lock. Reads from storage, not from caches. Unreadable data is reported and
does not stop the verification. Branch heads are verified in full; tagged commits only for the existence
of their tables.
Tests: tests/behaviour/test_verify.py, tests/behaviour/test_verify_files.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.arrow import IndexKind, index_specs
from omnigraph.catalog.model import Catalog, EdgeType, EntityType
from omnigraph.errors import (
    BranchNotFound,
    GraphMoved,
    OmnigraphError,
    StoreCallFailed,
    TableMissing,
)
from omnigraph.graph.parts import GraphParts
from omnigraph.graph.schema_cache import SchemaCache
from omnigraph.maintenance.verify_report import Findings, ProblemKind, VerifyReport
from omnigraph.maintenance.verify_rows import TableCheck, TableResult, missing_in
from omnigraph.progress import SILENT, Progress
from omnigraph.storage.file_checks import find_problems, fragment_files
from omnigraph.storage.indexes import damaged_indexes
from omnigraph.storage.table import Table
from omnigraph.versioning.branch_names import MAIN, public_name
from omnigraph.versioning.branches import Branches, BranchRef
from omnigraph.versioning.commits import CommitRecord
from omnigraph.versioning.contract import SchemaContract, history_name, read_history
from omnigraph.versioning.manifest import Manifest, ManifestState
from omnigraph.versioning.retention import removed_tables
from omnigraph.versioning.rows import KEY_COLUMN, MANIFEST_PATH
from omnigraph.versioning.snapshot import Snapshot, SnapshotEntry
from omnigraph.versioning.tags import Tags
from omnigraph.versioning.upgrade.migrate import OldManifest

_MAX_ATTEMPTS: Final = 5
"""Attempts to verify a branch that moves while some of its files seem to be missing."""

_MALFORMED: Final = (KeyError, TypeError, ValueError)
"""Errors of reading a malformed JSON document."""


def verify_graph(
    parts: GraphParts, *, branches: Sequence[str] | None = None, progress: Progress = SILENT
) -> VerifyReport:
    """Verify all branches, or the named ones. Raises `BranchNotFound`."""
    return _Verification(parts, progress).run(branches)


@dataclass(frozen=True, slots=True)
class _TableAt:
    """A table version under a schema. Branches that share it share its findings."""

    location: str
    branch: str | None
    version: int
    schema_ref: str


_EdgesAt = tuple[_TableAt, _TableAt, _TableAt]
"""The tables of an edge type, its source type and its destination type."""


@dataclass(slots=True)
class _Branch:
    """A branch under verification; its tables need a catalog."""

    ref: BranchRef
    findings: Findings
    state: ManifestState | None = None
    schema_ref: str | None = None
    catalog: Catalog | None = None
    tables: list[_TableAt] = field(default_factory=list)
    edges: list[_EdgesAt] = field(default_factory=list)
    others: list[Findings] = field(default_factory=list)

    def entries(self) -> Iterator[tuple[SnapshotEntry, _TableAt]]:
        """The tables in the manifest."""
        if self.state is not None and self.catalog is not None and self.schema_ref is not None:
            for entry in Snapshot.of(self.state, self.catalog).entries.values():
                at = _TableAt(entry.location, entry.branch, entry.version, self.schema_ref)
                yield entry, at


class _Verification:
    """One verification of one graph."""

    def __init__(self, parts: GraphParts, progress: Progress) -> None:
        self._parts = parts
        self._progress = progress
        self._tables = parts.tables.uncached()
        # A graph of an older format has neither commits nor earlier schemas.
        self._is_old = isinstance(parts.manifest, OldManifest)
        self._manifest = parts.manifest if self._is_old else Manifest(self._tables)
        self._branches = Branches(self._manifest, self._tables, parts.objects)
        self._schemas = parts.schemas if self._is_old else SchemaCache(parts.objects)
        self._graph = Findings()
        """Findings that belong to no branch."""
        self._results: dict[_TableAt, TableResult] = {}
        self._dangling: dict[_EdgesAt, Findings] = {}
        self._uses: Counter[_TableAt] = Counter()
        self._forks: dict[str, set[str]] = {}
        self._past_schemas: set[tuple[str, str]] = set()
        self._manifest_files = 0

    def run(self, names: Sequence[str] | None) -> VerifyReport:
        refs = self._refs(names)
        contract = self._contract()
        branches = [self._opened(ref, contract) for ref in refs]
        for branch in branches:
            self._uses.update(at for _, at in branch.entries())
        checked = [self._checked(branch, contract) for branch in branches]
        found = [branch for branch in checked if branch is not None]
        if not self._is_old:
            self._check_incomplete_branches()
            self._check_past_schemas()
            self._check_tags()
        return self._report(found)

    def _report(self, branches: Sequence[_Branch]) -> VerifyReport:
        problems = list(self._graph.on(MAIN))
        tables: set[_TableAt] = set()
        edges: set[_EdgesAt] = set()
        for branch in branches:
            name = branch.ref.public
            for findings in (branch.findings, *branch.others):
                problems += findings.on(name)
            for at in branch.tables:
                if at not in tables:
                    problems += self._results[at].findings.on(name)
            for at_edges in branch.edges:
                if at_edges not in edges:
                    problems += self._dangling[at_edges].on(name)
            tables.update(branch.tables)
            edges.update(branch.edges)
        return VerifyReport(
            problems=tuple(problems),
            branches=tuple(branch.ref.public for branch in branches),
            tables=len(tables),
            rows=sum(self._results[at].rows for at in tables),
            files=self._manifest_files + sum(self._results[at].files for at in tables),
        )

    def _refs(self, names: Sequence[str] | None) -> Sequence[BranchRef]:
        if names is not None:
            return [self._branches.find(name) for name in dict.fromkeys(names)]
        try:
            return self._branches.list()
        except StoreCallFailed as error:
            self._graph.add(ProblemKind.BRANCH, f"the branches cannot be listed: {error}")
            return [self._branches.find(MAIN)]

    # -- branches ---------------------------------------------------------------------------

    def _opened(self, ref: BranchRef, contract: SchemaContract | None) -> _Branch:
        """Read the state of a branch and verify its manifest."""
        branch = _Branch(ref, Findings())
        try:
            table = self._manifest.open(ref.physical)
            branch.state = self._manifest.read(table)
            if not self._is_old:
                self._check_manifest(table, branch.findings)
                self._check_torn(ref, branch.findings)
        except OmnigraphError as error:
            branch.findings.add(ProblemKind.BRANCH, str(error))
            return branch
        except _MALFORMED as error:
            branch.findings.add(ProblemKind.BRANCH, f"its manifest cannot be read: {error!r}")
            return branch
        own = self._check_commits(branch.state, branch.findings)
        self._choose_schema(branch, own, contract)
        return branch

    def _checked(self, branch: _Branch, contract: SchemaContract | None) -> _Branch | None:
        """Verify the tables of a branch; None if it was deleted meanwhile."""
        for number in range(1, _MAX_ATTEMPTS + 1):
            self._check_tables(branch)
            results = (self._results[at].findings for at in branch.tables)
            every = (branch.findings, *branch.others, *results)
            if not any(findings.has_damage for findings in every):
                break
            if not self._exists(branch.ref):
                return None
            # A concurrent cleanup may have deleted versions that were replaced since, and a branch
            # that could not be opened may have been deleted and created again.
            if number == _MAX_ATTEMPTS or not (branch.state is None or self._has_moved(branch)):
                break
            branch = self._opened(branch.ref, contract)
        for at in branch.tables:
            self._uses[at] -= 1
            if self._uses[at] <= 0:
                self._results[at].release_hashes()
        return branch

    def _exists(self, ref: BranchRef) -> bool:
        try:
            return ref.physical in [other.physical for other in self._branches.list()]
        except OmnigraphError:
            return True

    def _has_moved(self, branch: _Branch) -> bool:
        """Whether the branch was deleted since, or has another head."""
        if branch.state is None:
            return False
        try:
            return self._manifest.current(branch.ref.physical).head != branch.state.head
        except BranchNotFound:
            return True
        except (OmnigraphError, *_MALFORMED):
            return False

    def _check_manifest(self, table: Table, findings: Findings) -> None:
        """Verify the files and indexes of a manifest, and that its keys are unique."""
        files = fragment_files(table)
        self._manifest_files += len(files)
        for problem in find_problems(table, files):
            text = f"'{problem.address}' of the manifest cannot be used: {problem.cause}"
            findings.add(ProblemKind.DAMAGED_FILE, text)
        _check_indexes(table, findings)
        keys = pa.chunked_array(
            [batch.column(KEY_COLUMN) for batch in table.scan()], type=pa.utf8()
        )
        counted = pc.value_counts(keys)
        twice = counted.filter(pc.greater(counted.field("counts"), 1)).field("values")
        texts = (f"the manifest has '{key}' more than once" for key in twice.to_pylist())
        findings.extend(ProblemKind.COMMITS, len(twice), texts)

    def _check_torn(self, ref: BranchRef, findings: Findings) -> None:
        """Report an unreadable newest manifest version, which readers skip, as after a power loss."""
        torn = self._tables.find_torn(MANIFEST_PATH, ref.physical)
        if torn is not None:
            text = (
                f"version {torn.version} of the manifest cannot be read ({torn.cause}), so the branch "
                f"is read as version {torn.previous} left it"
            )
            findings.add(ProblemKind.BRANCH, text)

    def _check_commits(self, state: ManifestState, findings: Findings) -> Sequence[CommitRecord]:
        """Verify the commits of a branch; returns its own, oldest first."""
        try:
            own, merged = self._manifest.recorded_commits(state.branch, state.sequence)
        except (OmnigraphError, *_MALFORMED) as error:
            findings.add(ProblemKind.COMMITS, f"the commits cannot be read: {error!r}")
            return ()
        if not self._is_old:
            problems = list(_broken_links(state, own, merged))
            findings.extend(ProblemKind.COMMITS, len(problems), problems)
            drafts = (commit.draft for commit in (*own, *merged))
            self._past_schemas |= {(draft.schema_ref, draft.schema_ir_hash) for draft in drafts}
        return own

    def _check_incomplete_branches(self) -> None:
        """Report branches that have a ref but no stored version."""
        for name in sorted(self._tables.torn_branches(MANIFEST_PATH)):
            text = f"branch '{public_name(name)}' has a ref, and no version of it is stored"
            self._graph.add(ProblemKind.BRANCH, text)

    # -- schemas ----------------------------------------------------------------------------

    def _contract(self) -> SchemaContract | None:
        try:
            return self._schemas.contract()
        except OmnigraphError as error:
            self._graph.add(ProblemKind.SCHEMA, str(error))
            return None

    def _choose_schema(
        self, branch: _Branch, own: Sequence[CommitRecord], contract: SchemaContract | None
    ) -> None:
        """Choose the schema of the newest commit."""
        assert branch.state is not None
        reference = branch.state.schema_ref
        if reference is None and own:
            reference = own[-1].draft.schema_ref
        if contract is not None and reference in (None, contract.reference):
            branch.schema_ref, branch.catalog = contract.reference, contract.catalog
            return
        branch.schema_ref = reference
        try:
            if reference is not None:
                branch.catalog = self._schemas.past(reference)
        except (OmnigraphError, *_MALFORMED):
            if contract is not None:
                branch.catalog = contract.catalog
        if branch.catalog is None:
            text = f"the schema of branch '{branch.ref.public}' cannot be read, so its rows were not checked"
            branch.findings.add(ProblemKind.SCHEMA, text)
        elif contract is not None and not self._is_between_schemas(branch):
            text = (
                "the schema files hold another schema than the one that the newest commit was made "
                f"under ({reference})"
            )
            branch.findings.add(ProblemKind.SCHEMA, text)

    def _is_between_schemas(self, branch: _Branch) -> bool:
        """Whether a schema apply has published and will move its schema files next."""
        try:
            if self._parts.recovery.status().pending:
                return True
            same = self._schemas.contract().reference == branch.schema_ref
        except OmnigraphError:
            return False
        return same or self._has_moved(branch)

    def _check_past_schemas(self) -> None:
        """Verify that every schema of a commit is stored under its own hash."""
        for reference, ir_hash in sorted(self._past_schemas):
            try:
                ir = read_history(self._parts.objects, reference)
                if history_name(ir) != reference or ir.hash != ir_hash:
                    raise ValueError("it holds another schema")
            except (OmnigraphError, *_MALFORMED) as error:
                text = f"the schema '{reference}' that commits name cannot be read: {error}"
                self._graph.add(ProblemKind.SCHEMA, text)

    # -- tables -----------------------------------------------------------------------------

    def _check_tables(self, branch: _Branch) -> None:
        known: dict[str, _TableAt] = {}
        for entry, at in branch.entries():
            assert branch.catalog is not None
            if entry.table_key not in {declared.table_key for declared in branch.catalog}:
                text = f"the manifest names {entry.table_key}, which the schema does not have"
                branch.findings.add(ProblemKind.SCHEMA, text)
                continue
            declared = branch.catalog.entity(entry.table_key)
            result = self._results.get(at)
            if result is None or not result.has_hashes:
                self._progress.stage(f"{branch.ref.public} {entry.table_key}", entry.row_count)
                self._check_table(entry, at, declared)
            branch.tables.append(at)
            known[entry.table_key] = at
        for declared in branch.catalog or ():
            if declared.table_key not in known:
                findings = Findings(declared.table_key)
                findings.add(ProblemKind.MISSING_TABLE, "the manifest names no version of it")
                branch.others.append(findings)
        for edge in branch.catalog.edges.values() if branch.catalog is not None else ():
            assert branch.catalog is not None
            nodes = [branch.catalog.nodes[name] for name in (edge.from_type, edge.to_type)]
            keys = (edge.table_key, *(node.table_key for node in nodes))
            if known.keys() >= set(keys):
                at_edges = (known[keys[0]], known[keys[1]], known[keys[2]])
                self._check_endpoints(edge, at_edges)
                branch.edges.append(at_edges)

    def _check_table(self, entry: SnapshotEntry, at: _TableAt, declared: EntityType) -> None:
        findings = Findings(entry.table_key)
        self._results[at] = TableResult(findings)
        self._check_fork(at, findings)
        try:
            table = self._tables.open(at.location, at.branch, at.version)
            check = TableCheck(declared, table, findings, self._progress)
            self._results[at] = check.run(entry.row_count)
            _check_indexes(table, findings)
            self._check_text_indexes(table, declared, findings)
        except TableMissing as error:
            findings.add(ProblemKind.MISSING_TABLE, str(error))
        except GraphMoved as error:
            findings.add(ProblemKind.BRANCH, str(error))
        except StoreCallFailed as error:
            findings.add(ProblemKind.DAMAGED_FILE, str(error))

    def _check_fork(self, at: _TableAt, findings: Findings) -> None:
        """Verify that a table's branch has a ref; without it, cleanup may delete shared files."""
        if at.branch is None or self._is_old:
            return
        if at.branch not in self._forks.get(at.location, ()):
            # It may have been created since the branches were listed.
            try:
                self._forks[at.location] = set(self._tables.list_branches(at.location))
            except TableMissing:
                return  # Reported when its version is opened.
            except StoreCallFailed as error:
                findings.add(ProblemKind.DAMAGED_FILE, str(error))
                return
        if at.branch not in self._forks[at.location]:
            text = f"branch '{at.branch}' of '{at.location}' has versions, and its ref is missing"
            findings.add(ProblemKind.MISSING_TABLE, text)

    def _check_text_indexes(self, table: Table, declared: EntityType, findings: Findings) -> None:
        for intent in index_specs(declared):
            if intent.kind is IndexKind.TEXT:
                cause = self._parts.texts.damage(table, intent.column)
                if cause is not None:
                    findings.add(ProblemKind.DAMAGED_INDEX, f"{intent.column}: {cause}")

    def _check_endpoints(self, edge: EdgeType, tables: _EdgesAt) -> None:
        if tables in self._dangling:
            return
        findings = self._dangling[tables] = Findings(edge.table_key)
        at, *nodes = tables
        edges = self._results[at]
        for end, node in zip(("src", "dst"), nodes, strict=True):
            # Edges to unreadable nodes cannot be verified.
            if end not in edges.endpoints or not self._results[node].is_whole:
                continue
            absent = missing_in(edges.endpoints[end], self._results[node].ids)
            if len(absent):
                try:
                    table = self._tables.open(at.location, at.branch, at.version)
                    check = TableCheck(edge, table, findings, SILENT, edges.fragments)
                    check.dangling(end, absent)
                except StoreCallFailed as error:
                    findings.add(ProblemKind.DAMAGED_FILE, str(error))

    # -- tags -------------------------------------------------------------------------------

    def _check_tags(self) -> None:
        """Verify that the tables of tagged commits are stored. Reads no rows."""
        try:
            tags = Tags(self._parts.objects).list()
        except OmnigraphError as error:
            self._graph.add(ProblemKind.TAG, str(error))
            return
        for tag in tags:
            try:
                state = self._manifest.at(tag.branch, tag.version)
                missing = [
                    state.registered[t].location for t in removed_tables(self._tables, state)
                ]
            except (OmnigraphError, *_MALFORMED) as error:
                self._graph.add(ProblemKind.TAG, f"'{tag.name}' cannot be read: {error}")
                continue
            if state.head != tag.graph_commit_id:
                text = f"'{tag.name}' names commit {tag.graph_commit_id}, and number {tag.version} is {state.head}"
                self._graph.add(ProblemKind.TAG, text)
            texts = (f"'{tag.name}' needs a version of '{at}' that is gone" for at in missing)
            self._graph.extend(ProblemKind.TAG, len(missing), texts)


def _check_indexes(table: Table, findings: Findings) -> None:
    for name, cause in sorted(damaged_indexes(table).items()):
        findings.add(ProblemKind.DAMAGED_INDEX, f"{name} of '{table.lineage.uri}': {cause}")


def _broken_links(
    state: ManifestState, own: Sequence[CommitRecord], merged: Sequence[CommitRecord]
) -> Iterator[str]:
    """Problems of a history: gaps in the numbers, wrong or missing parents."""
    known = {commit.graph_commit_id for commit in (*own, *merged)}
    before: CommitRecord | None = None
    for commit in own:
        name, last = commit.graph_commit_id, 0 if before is None else before.sequence
        if commit.sequence != last + 1:
            yield f"commit {name} has number {commit.sequence}, and the one before it {last}"
        elif commit.parent_commit_id != (None if before is None else before.graph_commit_id):
            yield f"the parent of commit {name} is {commit.parent_commit_id}, not the commit before it"
        before = commit
    for commit in (*own, *merged):
        for parent in commit.parents:
            if parent not in known:
                yield f"commit {commit.graph_commit_id} has parent {parent}, which is missing"
    if before is None or before.graph_commit_id != state.head:
        yield f"the newest commit is {before and before.graph_commit_id}, and the state names {state.head}"
