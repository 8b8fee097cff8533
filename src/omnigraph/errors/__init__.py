"""The one tree of exceptions, with stable codes and a statement about retrying.

    OmnigraphError
    ├── LanguageError            source text is wrong; carries diagnostics with positions
    │   ├── ParseError           it does not follow the grammar or the rules of a schema file
    │   ├── CatalogError         the declarations contradict each other
    │   ├── TypeCheckError       a query does not fit the schema
    │   └── PlanError            a checked query cannot be lowered (a defect of the compiler)
    ├── InputError               an argument, file or parameter cannot be used
    │   ├── SourceUnreadable     a source file is missing, not text, or too large
    │   ├── QuerySelectionError  the file does not hold the one query that was asked for
    │   ├── ParameterError       a parameter is missing or does not fit its declaration
    │   │   └── UnknownParameter  it is not declared
    │   ├── HostValueError       a host-language value has no counterpart in the engine
    │   ├── UsageError           flags or arguments that do not go together
    │   ├── InvalidBranchName    a branch name breaks a rule
    │   ├── HandleClosed         a call on a handle that was closed
    │   ├── InvalidTagName       a tag name breaks a rule
    │   ├── InvalidSetting       an environment variable has a value that cannot be used
    │   ├── AmbiguousRef         several commits have the abbreviated id; lists some
    │   ├── ReadOnlyHandle       a write through a graph opened for reading
    │   ├── NewerFormat          the graph was written by a newer version of the product
    │   ├── LoadSourceError      a load cannot read a source, or not tell what it holds
    │   ├── ExportError          something that was to be exported cannot be
    │   ├── AssignmentError      a value of a mutation does not fit its property
    │   ├── ExternalBlobRefused  a blob kept elsewhere, under no base the graph allows
    │   ├── NotABlob             the bytes of something that has none
    │   ├── BlobRangeError       a part of a blob that is not there
    │   ├── MissingExtra         a library is not installed; says the command that adds it
    │   └── OperatorConfigError  the operator's configuration cannot be read
    ├── SchemaError              a schema change cannot be made
    │   ├── UnsupportedMigration
    │   └── QueriesBroken        queries that have to go on working would not; lists them
    ├── ConstraintError          data breaks a rule of the schema
    │   ├── LoadError            records of a load are bad; lists them
    │   ├── DanglingEdges        an overwrite removes nodes that edges point to; lists these
    │   ├── UnknownPropertiesRefused  a strict load has properties its types do not; lists them
    │   └── MutationError        rows a mutation would write break rules; lists them
    ├── ConflictError            somebody else's change is in the way
    │   ├── AlreadyInitialized   there is a graph already
    │   ├── HeadMoved            the branch is not at the commit the caller expected
    │   ├── ExpectedVersionMismatch  a table moved since the writer looked at it
    │   ├── PublishContention    other writers kept winning the next version
    │   ├── OperationFenced      recovery has undone this operation already
    │   ├── BranchExists         the name of the new branch is taken
    │   ├── TagExists            the name of the new tag or branch is that of a tag
    │   ├── RefUnderOtherSchema  the state of a ref does not fit the present schema
    │   ├── BranchInUse          other branches, tags or this handle need the branch
    │   ├── BranchLocked         another writer held the branch for the whole waiting time
    │   │   └── BranchLockLost   another writer took the branch over in the middle of a write
    │   ├── LoadIdReused         the load id belongs to another load
    │   ├── IdempotencyKeyReused the key belongs to another write
    │   ├── MergeConflicts       both sides changed the same rows, or break a rule together
    │   ├── TableDrift           a table moved without a publish
    │   ├── SchemaContractBroken the schema files no longer fit together
    │   ├── SchemaMoved          the schema changed while a write was prepared
    │   ├── SchemaApplyBlocked   branches are in the way of a new schema
    │   ├── SchemaApplyRunning   another schema apply is at work
    │   ├── TableExists          the place of a new table is taken
    │   ├── TableConflict        a table changed, so a change built on it was refused
    │   ├── KeyTaken             somebody else inserted the key, or is about to
    │   ├── ForkExists           a table has something of this branch already
    │   └── ForkInUse            other branches of the table need this one
    ├── RecoveryError            an interrupted write cannot be judged or finished
    │   ├── TableOvertaken       a change landed on top of somebody else's
    │   ├── RecoveryQuarantined  only an operator can judge the write that touched the table
    │   ├── RepairRefused        a repair left tables alone that need a decision
    │   └── RecoveryPending      maintenance has to wait for a recovery
    ├── LimitError               a budget or limit is used up
    │   ├── QueryBudgetExceeded  a query needs more rows, bytes or time than it may use
    │   └── QueryCancelled       somebody stopped the query
    ├── PolicyError              the actor may not do this
    ├── EmbeddingError           a text could not be turned into a vector
    │   ├── EmbeddingNotConfigured  no provider is configured; names the setting
    │   ├── EmbeddingModelUnavailable  a schema names a model whose provider is not set up
    │   └── EmbeddingFailed      the provider did not answer, or not as asked
    │       └── EmbeddingRefused  the provider dislikes one of the texts
    ├── SparkError               work that was to run on Spark did not
    │   ├── SparkUnavailable     no session could be had
    │   ├── StartCacheFailed     the file for quicker starts of Java could not be made
    │   ├── SparkExecutorUnfit   executors lack something, or have another version of it
    │   └── SparkJobFailed       a job ended without its result
    ├── NotFoundError            a named thing does not exist
    │   ├── GraphNotFound        there is no graph at this address
    │   ├── BranchNotFound
    │   ├── CommitNotFound
    │   ├── CommitBranchGone     the commit is known, but its branch was deleted
    │   ├── RefNotFound          a ref leads to before the first commit of a branch
    │   ├── TagNotFound
    │   ├── HistoryRemoved       cleanup has removed what a state was stored in
    │   ├── ChangeFeedGap        changes after a cursor can no longer be told
    │   ├── UnknownVersion       the branch has no such version
    │   ├── UnknownType          the schema has no such type
    │   ├── UnknownColumn        a type or a result has no such column; also a KeyError
    │   ├── EntityNotFound       no node or edge has the id
    │   └── BlobMissing          the entity has no blob there
    └── StorageError             the store failed
        ├── CommitStateUnknown   a publish whose outcome could not be read back
        ├── ManifestDamaged      the manifest contradicts itself
        ├── StoreCallFailed      one call to the store failed; says which, where and why
        │   ├── SyncFailed       the disk would not confirm what was written
        │   ├── ObjectMissing    the object that was to be read is not there
        │   ├── TableMissing     the table, or this version of it, is not there
        │   ├── TornVersion      the newest version of a table was not written completely
        │   └── FileDamaged      a stored file is complete in size and cannot be read
        ├── GraphMoved           the graph was moved or copied after the branch was made
        └── UnsafeStore          the store lacks what safe writing needs

Every error crosses process borders, so every error pickles, whatever its constructor takes.
What a code means, with an example, is in `omnigraph.error_codes`.
"""

from omnigraph.errors.base import (
    OmnigraphError,
    Retry,
)
from omnigraph.errors.conflicts import (
    AlreadyInitialized,
    BranchExists,
    BranchInUse,
    BranchLocked,
    BranchLockLost,
    ConflictError,
    ExpectedVersionMismatch,
    ForkExists,
    ForkInUse,
    HeadMoved,
    IdempotencyKeyReused,
    KeyTaken,
    LoadIdReused,
    OperationFenced,
    PublishContention,
    RecoveryError,
    RecoveryPending,
    RecoveryQuarantined,
    RefUnderOtherSchema,
    RepairRefused,
    SchemaApplyBlocked,
    SchemaApplyRunning,
    SchemaContractBroken,
    SchemaMoved,
    TableConflict,
    TableDrift,
    TableExists,
    TableOvertaken,
    TagExists,
)
from omnigraph.errors.data import (
    BrokenQuery,
    ConstraintError,
    DanglingEdges,
    EdgesOfType,
    LoadError,
    LoadProblem,
    MutationError,
    QueriesBroken,
    SchemaError,
    UnknownPropertiesRefused,
    UnknownProperty,
    UnsupportedMigration,
)
from omnigraph.errors.inputs import (
    AmbiguousRef,
    AssignmentError,
    BlobRangeError,
    ExportError,
    ExternalBlobRefused,
    HandleClosed,
    HostValueError,
    InputError,
    InvalidBranchName,
    InvalidSetting,
    InvalidTagName,
    LoadSourceError,
    MissingExtra,
    NewerFormat,
    NotABlob,
    OperatorConfigError,
    ParameterError,
    QuerySelectionError,
    ReadOnlyHandle,
    SourceUnreadable,
    UnknownParameter,
    UsageError,
)
from omnigraph.errors.language import (
    CatalogError,
    LanguageError,
    ParseError,
    PlanError,
    TypeCheckError,
)
from omnigraph.errors.merging import (
    ChangeFeedGap,
    MergeConflict,
    MergeConflicts,
)
from omnigraph.errors.missing import (
    BlobMissing,
    BranchNotFound,
    CommitBranchGone,
    CommitNotFound,
    EntityNotFound,
    GraphNotFound,
    HistoryRemoved,
    NotFoundError,
    RefNotFound,
    TagNotFound,
    UnknownColumn,
    UnknownType,
    UnknownVersion,
)
from omnigraph.errors.refusals import (
    EmbeddingError,
    EmbeddingFailed,
    EmbeddingModelUnavailable,
    EmbeddingNotConfigured,
    EmbeddingRefused,
    LimitError,
    PolicyError,
    QueryBudgetExceeded,
    QueryCancelled,
)
from omnigraph.errors.spark import (
    SparkError,
    SparkExecutorUnfit,
    SparkJobFailed,
    SparkUnavailable,
    StartCacheFailed,
)
from omnigraph.errors.storage import (
    CommitStateUnknown,
    FileDamaged,
    GraphMoved,
    ManifestDamaged,
    ObjectMissing,
    StorageError,
    StoreCallFailed,
    SyncFailed,
    TableMissing,
    TornVersion,
    UnsafeStore,
)

__all__ = [
    "AlreadyInitialized",
    "AmbiguousRef",
    "AssignmentError",
    "BlobMissing",
    "BlobRangeError",
    "BranchExists",
    "BranchInUse",
    "BranchLockLost",
    "BranchLocked",
    "BranchNotFound",
    "BrokenQuery",
    "CatalogError",
    "ChangeFeedGap",
    "CommitBranchGone",
    "CommitNotFound",
    "CommitStateUnknown",
    "ConflictError",
    "ConstraintError",
    "DanglingEdges",
    "EdgesOfType",
    "EmbeddingError",
    "EmbeddingFailed",
    "EmbeddingModelUnavailable",
    "EmbeddingNotConfigured",
    "EmbeddingRefused",
    "EntityNotFound",
    "ExpectedVersionMismatch",
    "ExportError",
    "ExternalBlobRefused",
    "FileDamaged",
    "ForkExists",
    "ForkInUse",
    "GraphMoved",
    "GraphNotFound",
    "HandleClosed",
    "HeadMoved",
    "HistoryRemoved",
    "HostValueError",
    "IdempotencyKeyReused",
    "InputError",
    "InvalidBranchName",
    "InvalidSetting",
    "InvalidTagName",
    "KeyTaken",
    "LanguageError",
    "LimitError",
    "LoadError",
    "LoadIdReused",
    "LoadProblem",
    "LoadSourceError",
    "ManifestDamaged",
    "MergeConflict",
    "MergeConflicts",
    "MissingExtra",
    "MutationError",
    "NewerFormat",
    "NotABlob",
    "NotFoundError",
    "ObjectMissing",
    "OmnigraphError",
    "OperationFenced",
    "OperatorConfigError",
    "ParameterError",
    "ParseError",
    "PlanError",
    "PolicyError",
    "PublishContention",
    "QueriesBroken",
    "QueryBudgetExceeded",
    "QueryCancelled",
    "QuerySelectionError",
    "ReadOnlyHandle",
    "RecoveryError",
    "RecoveryPending",
    "RecoveryQuarantined",
    "RefNotFound",
    "RefUnderOtherSchema",
    "RepairRefused",
    "Retry",
    "SchemaApplyBlocked",
    "SchemaApplyRunning",
    "SchemaContractBroken",
    "SchemaError",
    "SchemaMoved",
    "SourceUnreadable",
    "SparkError",
    "SparkExecutorUnfit",
    "SparkJobFailed",
    "SparkUnavailable",
    "StartCacheFailed",
    "StorageError",
    "StoreCallFailed",
    "SyncFailed",
    "TableConflict",
    "TableDrift",
    "TableExists",
    "TableMissing",
    "TableOvertaken",
    "TagExists",
    "TagNotFound",
    "TornVersion",
    "TypeCheckError",
    "UnknownColumn",
    "UnknownParameter",
    "UnknownPropertiesRefused",
    "UnknownProperty",
    "UnknownType",
    "UnknownVersion",
    "UnsafeStore",
    "UnsupportedMigration",
    "UsageError",
]
