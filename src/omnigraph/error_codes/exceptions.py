"""Codes of the exception classes in `omnigraph.errors`."""

from __future__ import annotations

from typing import Final

from omnigraph import errors
from omnigraph.error_codes.entry import ErrorCode, entry


def _of(error: type[errors.OmnigraphError], title: str, explanation: str) -> ErrorCode:
    return entry(error.kind, error.code, title, explanation)


EXCEPTION_CODES: Final = (
    _of(
        errors.LimitError,
        "limit used up",
        """
        `LimitError`: the work needs more rows, bytes, time or depth than it may have. Ask for less
        (a `limit`, a tighter match, fewer hops) or raise the budget.
        """,
    ),
    _of(
        errors.QueryBudgetExceeded,
        "query needs too much",
        """
        `QueryBudgetExceeded`: the query would make more rows or bytes, or take more time, than it
        may. Often two parts of a `match` are not connected, so that every node of one meets every
        node of the other. Connect them, narrow the match, or raise the limit.
        """,
    ),
    _of(
        errors.QueryCancelled,
        "query was cancelled",
        """
        `QueryCancelled`: the query was stopped from outside. Nothing is left of it.
        """,
    ),
    _of(
        errors.EmbeddingError,
        "text could not be embedded",
        """
        `EmbeddingError`: a text could not be turned into a vector.
        """,
    ),
    _of(
        errors.EmbeddingNotConfigured,
        "no embedding provider",
        """
        `EmbeddingNotConfigured`: a vector is needed for a text, and the environment names no
        provider, or not its key. Set what the message names. `OMNIGRAPH_EMBEDDINGS_MOCK=1` gives
        repeatable vectors without any model, for trials.
        """,
    ),
    _of(
        errors.EmbeddingModelUnavailable,
        "model of the schema is not configured",
        """
        `EmbeddingModelUnavailable`: `@embed(…, model="provider/model")` names a model, and the
        settings of its provider are missing while another provider is configured. Vectors of two
        models cannot be compared, so nothing is computed. Set what the message names, hand in
        vectors of your own, or change the model in the schema.
        """,
    ),
    _of(
        errors.EmbeddingFailed,
        "embedding provider failed",
        """
        `EmbeddingFailed`: the provider could not be reached, refused the request, or answered with
        something else than a vector of the right length. The message says which, in the
        provider's words where it has any. Outages are worth a retry; a refused key is not.
        """,
    ),
    _of(
        errors.EmbeddingRefused,
        "text was refused by the embedding provider",
        """
        `EmbeddingRefused`: the provider answered that it does not want the request as it is, most
        often because a text is too long for its model. The message has the provider's words.
        Shorten the text, or give the vector yourself.
        """,
    ),
    _of(
        errors.SparkError,
        "work on Spark was not done",
        """
        `SparkError`: something that was to run on Spark did not. Nothing of it is visible.
        """,
    ),
    _of(
        errors.SparkUnavailable,
        "no Spark session",
        """
        `SparkUnavailable`: no session could be started or reached. The message says whether Java
        did not start, the master does not answer, or another session is in the way. A load that
        fits this machine runs without Spark with `--engine inline`.
        """,
    ),
    _of(
        errors.StartCacheFailed,
        "no start cache",
        """
        `StartCacheFailed`: the file with which Java starts sooner could not be made: Java is older
        than 25, the cache folder cannot be written, or `OMNIGRAPH_SPARK_CACHE` is `off`. Spark
        works without the file.
        """,
    ),
    _of(
        errors.SparkExecutorUnfit,
        "executors cannot run the tasks",
        """
        `SparkExecutorUnfit`: the machines that run tasks lack a package, or have another version of
        it or of Python than the process that starts the job. Install the same there, and point
        `PYSPARK_PYTHON` to that interpreter.
        """,
    ),
    _of(
        errors.SparkJobFailed,
        "Spark job failed",
        """
        `SparkJobFailed`: a job lost its executors more often than it may, was cancelled, or ended in
        another way that no task explains. Nothing was changed; the load may be repeated, with the
        same load id if it has one.
        """,
    ),
    _of(
        errors.ConflictError,
        "somebody else's change is in the way",
        """
        `ConflictError`: another change, branch or setting rules out this one as it was prepared.
        Nothing of it is visible. Read the current state, prepare the change again, and repeat.
        """,
    ),
    _of(
        errors.TableExists,
        "place of a new table is taken",
        """
        `TableExists`: there is a table where a new one was to be created, usually the remains of an
        attempt to create a graph that did not finish. Choose another address, or remove them.
        """,
    ),
    _of(
        errors.TableConflict,
        "table changed first",
        """
        `TableConflict`: a change to a table was refused because the table changed after the change
        was prepared. Nothing of it is visible. Prepare it again on the current state.
        """,
    ),
    _of(
        errors.KeyTaken,
        "another insert was quicker",
        """
        `KeyTaken`: of several inserts into one version exactly one succeeds, and this was not it.
        Nothing was inserted. Publishing handles it by trying again on the current state.
        """,
    ),
    _of(
        errors.ForkExists,
        "table already has this branch",
        """
        `ForkExists`: a table has a branch of this name or left-overs of one, so it cannot be
        branched again. Either another writer was first, or an earlier branch of that name was not
        removed completely.
        """,
    ),
    _of(
        errors.ForkInUse,
        "branch of a table is still needed",
        """
        `ForkInUse`: a branch of a table cannot be removed while other branches were made from it.
        Delete those first.
        """,
    ),
    _of(
        errors.ConstraintError,
        "data breaks the schema",
        """
        `ConstraintError`: rows break a rule of the schema, such as a key, a range or a
        cardinality. Nothing of the write is kept. Repair the rows that the message names.
        """,
    ),
    _of(
        errors.LoadError,
        "bad records in a load",
        """
        `LoadError`: records of a load cannot become rows of the graph, or not together with each
        other and with what is there. Nothing was loaded. `load_errors` lists what is wrong, record
        by record, up to a limit the call may set; `load_errors_total` counts everything. Repair the
        records, or load the good ones and have the others set aside with a quarantine folder.
        """,
    ),
    _of(
        errors.DanglingEdges,
        "overwrite would leave edges without their nodes",
        """
        `DanglingEdges`: a load in mode `overwrite` removes nodes that edges point to, and does not
        replace these edges. Nothing was loaded. `edges` has their types, with counts and the first
        ids. Load the edge types in the same call, bring the nodes along, or load with `cascade`,
        which deletes the edges in the same commit.
        """,
    ),
    _of(
        errors.UnknownPropertiesRefused,
        "unknown properties in a strict load",
        """
        `UnknownPropertiesRefused`: a load with `strict` has keys or columns that its types have no
        property for. Nothing was loaded. `properties` names each with its type, the number of records
        that have it and the first of them. Correct the names, add the properties to the schema, or load
        without `strict`, which ignores them with a warning.
        """,
    ),
    _of(
        errors.MutationError,
        "mutation breaks the schema",
        """
        `MutationError`: a statement of a mutation would write rows that break rules of the schema,
        or change a key. Nothing of the query is kept. `problems` says what is wrong; change the
        values, or the rows they clash with, and run the query again.
        """,
    ),
    _of(
        errors.StorageError,
        "storage failed",
        """
        `StorageError`: the place where the graph is kept could not be read or written. The same
        call may succeed later. If it was a write, look at the branch before repeating it: the
        outcome may be unknown.
        """,
    ),
    _of(
        errors.StoreCallFailed,
        "call to the store failed",
        """
        `StoreCallFailed`: one call to the disk or object store failed. The message names the
        action, the address and the cause, such as a missing permission, a full disk or a server
        that cannot be reached. If it was a write, its outcome may be unknown.
        """,
    ),
    _of(
        errors.ObjectMissing,
        "stored object is missing",
        """
        `ObjectMissing`: something that was to be read from the store is not there. Either it was
        never written, or somebody removed it in the meantime.
        """,
    ),
    _of(
        errors.TableMissing,
        "stored table is missing",
        """
        `TableMissing`: a table, a branch of it or one of its versions is not in the store. Either
        the address is wrong, or files were removed by something other than this product.
        """,
    ),
    _of(
        errors.TornVersion,
        "newest stored version is incomplete",
        """
        `TornVersion`: the newest version of a table cannot be read, as happens when the power fails
        in the middle of a write. That write was never reported as done. Opening the graph for
        writing removes the remains; the version before it stays readable.
        """,
    ),
    _of(
        errors.FileDamaged,
        "stored file is damaged",
        """
        `FileDamaged`: a file that makes a version or a branch exist is there to its end, and what is
        in it cannot be used. No interrupted write leaves such a file: what it says was reported as
        done, so nothing falls back to the version before. Restore the file from a backup. Without
        one, removing it returns to the version before it; the commits made since are then lost, and
        `omnigraph repair` shows what of them is still stored.
        """,
    ),
    _of(
        errors.GraphMoved,
        "branch was made at another address",
        """
        `GraphMoved`: the graph was moved or copied after the branch was made. A branch shares files
        with the table it was made from and stores their full address; here it would find nothing,
        or read the files of the original. Main is not affected. Delete the branch, or put the graph
        back where it was.
        """,
    ),
    _of(
        errors.UnsafeStore,
        "store cannot keep a graph safely",
        """
        `UnsafeStore`: a graph must be able to create and to replace an object only if nobody else
        was faster. This store accepts such a request and ignores the condition, or the file system
        has no hard links. Two writers would overwrite each other unnoticed. Keep the graph
        elsewhere; nothing was left behind.
        """,
    ),
    _of(
        errors.InputError,
        "unusable input",
        """
        `InputError`: an argument, file or value handed to a call cannot be used as it is. Codes
        OG-I-001 to OG-I-005 are its more precise kinds.
        """,
    ),
    _of(
        errors.SourceUnreadable,
        "source file cannot be read",
        """
        `SourceUnreadable`: a schema or query file is missing, is a folder, is not UTF-8 text, may
        not be read, or is far too large to be one. The message names the file and what to do.
        """,
    ),
    _of(
        errors.QuerySelectionError,
        "no such query in the file",
        """
        `QuerySelectionError`: the query that was asked for cannot be picked. The file has several
        queries and none was named, has none of that name, or has it as a read where a mutation is
        expected (or the other way round).
        """,
    ),
    _of(
        errors.ParameterError,
        "parameter does not fit",
        """
        `ParameterError`: a required parameter is missing, or a value cannot become the declared
        type. The message names the parameter and what was expected. Declare the parameter with `?`
        if it may be left out.
        """,
    ),
    _of(
        errors.UnknownParameter,
        "parameter is not declared",
        """
        `UnknownParameter`: a value was given for a parameter that the query does not declare, or that
        the condition of a scan does not use. The message lists those there are. Names are given
        without `$`.
        """,
    ),
    _of(
        errors.HostValueError,
        "Python value without a counterpart",
        """
        `HostValueError`: a Python value given as a parameter cannot be represented: an integer
        beyond 64 bits, a float that is not finite, an object of an unknown class. Pass text,
        numbers, booleans, dates, datetimes, UUIDs, bytes for blobs, lists or arrays of them, or `None`.
        """,
    ),
    _of(
        errors.UsageError,
        "arguments that do not go together",
        """
        `UsageError`: options or arguments contradict each other, or one is missing that the others
        call for. The message says which.
        """,
    ),
    _of(
        errors.LoadSourceError,
        "source of a load cannot be used",
        """
        `LoadSourceError`: a file or table handed to a load is damaged, lacks a column its rows need,
        or does not say which type its rows have. A table is named after its type, `Person.parquet`
        or `{"Person": frame}`; write `node:X` or `edge:X` when both exist.
        """,
    ),
    _of(
        errors.ExportError,
        "cannot be exported",
        """
        `ExportError`: the type or table that was asked for is not in the schema, or a row holds a
        number that is not finite, which JSON cannot express.
        """,
    ),
    _of(
        errors.AssignmentError,
        "value does not fit its property",
        """
        `AssignmentError`: a mutation assigns a number that the property cannot hold exactly, a
        vector of the wrong length, or a blob that is no base64. Give a value of the property's type.
        """,
    ),
    _of(
        errors.ExternalBlobRefused,
        "blob outside the graph",
        """
        `ExternalBlobRefused`: a blob was given as the address of a file. Such addresses are stored
        and read only when they lie under a base that the graph's configuration allows; see the page
        on blobs. Or give the bytes themselves as `base64:…`.
        """,
    ),
    _of(
        errors.NotABlob,
        "property holds no blobs",
        """
        `NotABlob`: the bytes of a property were asked for that has none. Only properties of type
        `Blob` have; the values of others come from a query.
        """,
    ),
    _of(
        errors.BlobRangeError,
        "part of a blob that is not there",
        """
        `BlobRangeError`: the part that was asked for begins behind the end of the blob. The message
        has the blob's size. A part may reach beyond the end; what is there is returned.
        """,
    ),
    _of(
        errors.MissingExtra,
        "library is not installed",
        """
        `MissingExtra`: something was asked for that needs libraries a plain installation leaves out:
        the engine `spark`, or a data frame of pandas or Polars. The message ends with the command
        that installs them. `engine="inline"` does the same work without Spark.
        """,
    ),
    _of(
        errors.OperatorConfigError,
        "operator config that cannot be read",
        """
        `OperatorConfigError`: `config.yaml` in `~/.omnigraph`, or in the folder that
        `OMNIGRAPH_HOME` names, is no YAML, or a value in it is of the wrong kind. The message says
        which. Keys that nobody knows are only warned about.
        """,
    ),
    _of(
        errors.LanguageError,
        "unusable source text",
        """
        `LanguageError`: a schema or query text cannot be used. `diagnostics` holds what is wrong,
        each with a code, a position and often a hint. Codes OG-L-001 to OG-L-004 say at which
        stage it was found.
        """,
    ),
    _of(
        errors.ParseError,
        "text does not parse",
        """
        `ParseError`: the text does not follow the grammar, or breaks a rule that is checked while
        it is read. Its diagnostics carry S codes for schemas and Q codes for queries.
        """,
    ),
    _of(
        errors.CatalogError,
        "declarations contradict each other",
        """
        `CatalogError`: every declaration of a schema is fine by itself, but they do not fit
        together. Its diagnostics carry the codes S40 to S43 and S46.
        """,
    ),
    _of(
        errors.TypeCheckError,
        "query does not fit the schema",
        """
        `TypeCheckError`: a query reads well but does not fit the schema it is checked against. Its
        diagnostics carry T codes.
        """,
    ),
    _of(
        errors.PlanError,
        "checked query cannot be planned",
        """
        `PlanError`: a query passed the type checker and still cannot be planned. That is a defect
        of the compiler, not of the query; please report it together with schema and query.
        """,
    ),
    _of(
        errors.NotFoundError,
        "named thing does not exist",
        """
        `NotFoundError`: a branch, commit, type, query, entity or error code of that name does not
        exist. Check the spelling; the message suggests a close name when there is one.
        """,
    ),
    _of(
        errors.PolicyError,
        "not allowed",
        """
        `PolicyError`: the policy does not let this actor do this, or needs an actor and none was
        given. Ask whoever keeps the policy.
        """,
    ),
    _of(
        errors.RecoveryError,
        "interrupted write needs a decision",
        """
        `RecoveryError`: an earlier write was interrupted in a way that cannot be judged or
        finished automatically. Repeating the call does not help; a person has to look.
        """,
    ),
    _of(
        errors.TableOvertaken,
        "change landed on top of another",
        """
        `TableOvertaken`: a change was prepared for one version of a table, and another change got
        in between although the writer held the branch. Nothing of it is visible. The next write or
        open for writing decides what happens to it.
        """,
    ),
    _of(
        errors.RecoveryQuarantined,
        "interrupted write waits for an operator",
        """
        `RecoveryQuarantined`: an interrupted write left a file in `__recovery` that is damaged, or
        that does not explain what happened to the table. Reads and other types are not affected.
        `omnigraph repair` shows what it found and, when told to, publishes or restores the table.
        """,
    ),
    _of(
        errors.RepairRefused,
        "repair needs a decision",
        """
        `RepairRefused`: a table holds changes that were never published and that nobody can vouch
        for. `--confirm --force` publishes them as they are; with `--rollback` they are taken back.
        """,
    ),
    _of(
        errors.RecoveryPending,
        "recovery comes first",
        """
        `RecoveryPending`: maintenance does not touch a graph while an interrupted write waits to be
        finished or undone. Any write to that branch, or opening the graph for writing, settles it.
        """,
    ),
    _of(
        errors.SchemaError,
        "schema change cannot be made",
        """
        `SchemaError`: a graph cannot take over the desired schema. OG-S-001 is the usual reason.
        """,
    ),
    _of(
        errors.UnsupportedMigration,
        "unsupported schema change",
        """
        `UnsupportedMigration`: the way from the accepted to the desired schema contains a change
        that cannot be made. The message names the first one, with a code (`OG-MF-…`) if it has
        one. Nothing is changed. Other examples are a constraint added to or removed from an
        existing type, other endpoints or another cardinality of an edge, and a `@rename_from` that
        names nothing.
        """,
    ),
    _of(
        errors.QueriesBroken,
        "a schema that breaks queries",
        """
        `QueriesBroken`: queries that were handed over with the desired schema do not fit it. Every
        one is listed with its name and place. Nothing is changed. Give them what they miss, or change
        them first; `omnigraph lint --schema` checks them against the new schema beforehand.
        """,
    ),
    _of(
        errors.OmnigraphError,
        "root of all errors",
        """
        `OmnigraphError`: the class all others derive from. Catch it to catch everything this
        product raises on purpose. It is never raised itself.
        """,
    ),
)
