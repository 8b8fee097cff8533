"""Codes of the exceptions about graphs, branches and commits."""

from __future__ import annotations

from textwrap import fill
from typing import Final

from omnigraph import errors
from omnigraph.error_codes.entry import ErrorCode, entry


def _of(error: type[errors.OmnigraphError], title: str, explanation: str) -> ErrorCode:
    text = fill(f"`{error.__name__}`: {explanation}", width=96)
    return entry(error.kind, error.code, title, text)


GRAPH_CODES: Final = (
    _of(
        errors.InvalidBranchName,
        "unusable branch name",
        "a branch name has letters, digits, `.`, `-` and `_`, with single `/` between its parts, "
        "at most 120 characters in all. `main` always exists and cannot be created or deleted.",
    ),
    _of(
        errors.ReadOnlyHandle,
        "graph is open for reading only",
        "a graph opened read-only refuses every write. Open it read-write to change it.",
    ),
    _of(
        errors.HandleClosed,
        "handle was closed",
        "a handle that was closed takes no further call. Open the graph again; other handles on it "
        "stay as they are.",
    ),
    _of(
        errors.NewerFormat,
        "graph of a newer version",
        "the graph was written by a newer version of the product. Upgrade before opening it; "
        "nothing was changed.",
    ),
    _of(
        errors.AlreadyInitialized,
        "there is a graph already",
        "the address holds the schema files of a graph. Open it, choose another address, or "
        "overwrite the schema files with `--force` when they are the remains of a failed attempt.",
    ),
    _of(
        errors.HeadMoved,
        "branch is at another commit",
        "the write required the branch to be at a certain commit, and it is not. Nothing was "
        "written. Look at what happened since, then repeat with the new head.",
    ),
    _of(
        errors.ExpectedVersionMismatch,
        "stale view of a table",
        "somebody changed a table after this writer had looked at it. Nothing of the write is "
        "visible. Refresh and repeat it.",
    ),
    _of(
        errors.PublishContention,
        "branch is busy",
        "other writers kept publishing first until the time for a publish was used up. Repeat the "
        "write as it is.",
    ),
    _of(
        errors.OperationFenced,
        "operation was rolled back",
        "recovery took this operation for dead and undid it. Nothing of it is visible; start anew.",
    ),
    _of(
        errors.BranchExists,
        "branch name is taken",
        "a branch of this name exists. Choose another name, or delete the branch first.",
    ),
    _of(
        errors.BranchInUse,
        "branch is still needed",
        "other branches were made from the branch or use its data, tags name commits of it, or the "
        "handle is bound to it. Delete those first, or bind the handle to another branch.",
    ),
    _of(
        errors.TagExists,
        "tag name is taken",
        "a tag of this name exists, and tags and branches share one set of names. Choose another "
        "name, or delete the tag first.",
    ),
    _of(
        errors.RefUnderOtherSchema,
        "state of another schema",
        "the schema has changed since the commit was made. Its state can be read, compared and "
        "exported, but no branch can begin there and no branch can be reset to it. Nothing was "
        "changed.",
    ),
    _of(
        errors.BranchLocked,
        "branch is locked",
        "another writer held the branch for the whole time this one was willing to wait, which "
        "`OMNIGRAPH_LOCK_WAIT_MS` sets; or, on an object store, this one could not renew its hold "
        "on the branch and stopped. Repeat the write later; a writer that died frees the branch "
        "by itself.",
    ),
    _of(
        errors.BranchLockLost,
        "branch was taken over",
        "on an object store a writer that stops renewing its lease loses the branch to the next "
        "one, which finishes or undoes what was begun. Look at the history before repeating.",
    ),
    _of(
        errors.LoadIdReused,
        "load id belongs to another load",
        "a load id names one load for ever, so that a job can be repeated safely. This one was "
        "used with another mode. Choose a new id for a new load.",
    ),
    _of(
        errors.IdempotencyKeyReused,
        "idempotency key belongs to another write",
        "an idempotency key names one write of a branch for as long as its commit is kept, so that "
        "a call can be repeated safely. This one was used with another query, other parameters or "
        "another operation. Choose a new key for a new write.",
    ),
    _of(
        errors.MergeConflicts,
        "branches contradict each other",
        "both branches changed the same rows to different values, or what each did alone is fine "
        "and both together break a rule. Nothing was written. Decide rows with `--strategy` or "
        "`--resolve`, or change one of the branches; broken rules can only be mended there.",
    ),
    _of(
        errors.TableDrift,
        "table is ahead of the graph",
        "something moved the table and did not publish it. Nothing of that is visible, and other "
        "types of the graph can be written. The message says whether to retry or to repair.",
    ),
    _of(
        errors.SchemaContractBroken,
        "schema files do not fit together",
        "the schema files in the graph's root no longer describe the schema that was accepted, "
        "usually because one was edited by hand. Restore the file; schemas change through a "
        "schema apply only.",
    ),
    _of(
        errors.GraphNotFound,
        "no graph at this address",
        "nothing at the address looks like a graph. Check the address, or create a graph there.",
    ),
    _of(
        errors.BranchNotFound,
        "unknown branch",
        "the graph has no branch of this name. A write never creates a branch by itself.",
    ),
    _of(
        errors.CommitNotFound,
        "unknown commit",
        "no branch or tag of the graph has this name, and no commit this id. At least six "
        "characters from the beginning or the end of an id are enough, if only one commit has them.",
    ),
    _of(
        errors.RefNotFound,
        "ref before the first commit",
        "`main~20` on a branch with fewer commits, or `main@{2020-01-01}` on a graph that did not "
        "exist then. The message says how far the branch goes back.",
    ),
    _of(
        errors.TagNotFound,
        "unknown tag",
        "the graph has no tag of this name. The message suggests a close one if there is any.",
    ),
    _of(
        errors.InvalidTagName,
        "unusable tag name",
        "a tag name has letters, digits, `.`, `-` and `_`, at most 64 characters, and begins with "
        "a letter or digit. It cannot be a whole commit id.",
    ),
    _of(
        errors.InvalidSetting,
        "unusable environment variable",
        "an environment variable has a value that cannot be used. The message names the variable "
        "and what it can be set to. Unset it to get the default. [Settings](settings.md) lists "
        "every variable.",
    ),
    _of(
        errors.AmbiguousRef,
        "abbreviated id of several commits",
        "several commits have an id that begins or ends with the given characters. The message "
        "lists some of them. Ids begin with the time they were made at, so the last characters "
        "tell more than the first.",
    ),
    _of(
        errors.SchemaMoved,
        "schema changed meanwhile",
        "a write was checked against a schema that has been replaced before it could be committed. "
        "Nothing was written; run it again.",
    ),
    _of(
        errors.SchemaApplyBlocked,
        "branches block a schema change",
        "all branches of a graph have one schema, so it can change only while `main` is the only "
        "branch. Merge or delete the others first.",
    ),
    _of(
        errors.SchemaApplyRunning,
        "another schema apply at work",
        "somebody else is changing the schema of this graph right now. Plan again when they are "
        "done: their change may have made yours unnecessary.",
    ),
    _of(
        errors.CommitBranchGone,
        "commit of a deleted branch",
        "the commit is part of the history, but the branch that held its data was deleted, so the "
        "graph cannot be read as it was then.",
    ),
    _of(
        errors.HistoryRemoved,
        "removed history",
        "the commit is known, but the rows it left are no longer stored: `omnigraph cleanup` or a "
        "schema change with `--allow-data-loss` removed them. Later commits can still be read.",
    ),
    _of(
        errors.ChangeFeedGap,
        "change feed cannot go on from there",
        "what was stored when the commits after the cursor were made has been removed, or the "
        "branch was deleted and made anew. Take a fresh copy of the branch and follow it from its "
        "head.",
    ),
    _of(
        errors.UnknownVersion,
        "unknown version",
        "versions of a branch are numbered from 1 to that of its head; this number is outside.",
    ),
    _of(
        errors.UnknownType,
        "no such type",
        "the schema has no node or edge type of this name. Names of types are written as in the "
        "schema, capitals included.",
    ),
    _of(
        errors.UnknownColumn,
        "no such column",
        "a type that is scanned, or the result of a query, has no column of this name. Columns of a "
        "type are `id`, for an edge `src` and `dst`, and its properties; those of a result are named "
        "in `return`. It is a `KeyError` as well.",
    ),
    _of(
        errors.EntityNotFound,
        "no such entity",
        "the type has no node or edge with this id, on this branch and at this commit. The id of a "
        "node with a key is the text of that key.",
    ),
    _of(
        errors.BlobMissing,
        "no blob there",
        "the node or edge exists, but its blob property is null.",
    ),
    _of(
        errors.CommitStateUnknown,
        "outcome unknown",
        "a write was begun, and the store failed before it could be completed or undone. The next "
        "writer of the branch decides: it completes what was written entirely and undoes anything "
        "else. Repeat the call with the key that the message names: if the write landed, its "
        "receipt comes back; if not, it is made now.",
    ),
    _of(
        errors.SyncFailed,
        "disk does not confirm a write",
        "data was handed to the disk, but the request to make it permanent failed, as it does on a "
        "failing or full disk. Do not count on the write; look at the disk first.",
    ),
    _of(
        errors.ManifestDamaged,
        "damaged manifest",
        "the manifest of the graph contradicts itself or lacks something it must have. Something "
        "other than this product has changed the files.",
    ),
)
