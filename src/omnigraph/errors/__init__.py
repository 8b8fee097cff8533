"""The exception tree, with stable codes and retry advice.

    OmnigraphError
    ├── LanguageError            invalid schema or query text; has diagnostics with positions
    │   ├── ParseError           the text does not follow the grammar
    │   ├── CatalogError         declarations contradict each other
    │   ├── TypeCheckError       a query does not match the schema
    │   └── PlanError            a type-checked query cannot be planned (a compiler bug)
    ├── InputError               an argument, file or parameter is not usable
    │   ├── SourceUnreadable     a source file is missing, not text, or too large
    │   ├── StoredQueriesInvalid  the registry of stored queries cannot be read
    │   ├── StoredQueriesBroken  stored queries do not match the schema
    │   ├── QuerySelectionError  the source does not contain exactly the requested query
    │   │   └── WrongQueryKind   a mutation where a read is wanted, or the reverse
    │   ├── ParameterError       a parameter is missing or has the wrong type
    │   │   └── UnknownParameter  the parameter is not declared
    │   ├── IntegerOverflow      an integer of a result or a value leaves 64 bits
    │   ├── ParameterOutOfRange  a parameter's value cannot be used where it stands
    │   ├── HostValueError       the engine cannot represent a Python value
    │   ├── UsageError           arguments contradict each other
    │   ├── InvalidBranchName
    │   ├── HandleClosed         a call on a closed handle
    │   ├── InvalidTagName
    │   ├── UnusableWeight       an edge's weight is negative or no number
    │   ├── InvalidSetting       an environment variable has an invalid value
    │   ├── AmbiguousRef         several commits match an abbreviated id; lists some
    │   ├── ReadOnlyHandle       a write on a read-only handle
    │   ├── NewerFormat          a newer version of OmniGraph wrote the graph
    │   ├── LoadSourceError      a load source cannot be read, or its type is not known
    │   ├── ExportError          a type or value cannot be exported
    │   ├── AssignmentError      a mutation assigns a value that does not match its property
    │   ├── DifferentValues      a change by pattern gives one entity several values
    │   ├── ExternalBlobRefused  a blob URI is not under an allowed base
    │   ├── NotABlob             a blob call names a property of another type
    │   ├── BlobRangeError       a blob read starts past the end
    │   ├── MissingExtra         a library is not installed; has the install command
    │   ├── ConfigFileError      a configuration file is not valid; has file, line and column
    │   │   ├── OperatorConfigError  the operator configuration is not valid
    │   │   ├── LegacyConfigError  a project file `omnigraph.yaml` is not valid
    │   │   └── CredentialsError  the file of tokens is not valid, or not private
    │   ├── EmbeddedOnly         the call needs a graph opened from its storage
    │   └── ServerConfigError    the server cannot start with its options
    ├── SchemaError              a schema change is not possible
    │   ├── UnsupportedMigration
    │   └── QueriesBroken        queries that must keep working do not match; lists them
    ├── ConstraintError          data violates the schema
    │   ├── LoadError            a load has invalid records; lists them
    │   ├── DanglingEdges        an overwrite deletes nodes that edges need; lists the edges
    │   ├── UnknownPropertiesRefused  a strict load has undeclared properties; lists them
    │   ├── SchemaViolated       stored rows violate a desired schema; lists the problems
    │   └── MutationError        a mutation would write invalid rows; lists the problems
    ├── ConflictError            another change, branch or setting conflicts
    │   ├── AlreadyInitialized   the location holds a graph
    │   ├── HeadMoved            the branch head is not the expected commit
    │   ├── ExpectedVersionMismatch  a table changed since the writer read it
    │   ├── PublishContention    concurrent writers won every publish attempt
    │   ├── OperationFenced      recovery has rolled back the operation
    │   ├── BranchExists
    │   ├── TagExists
    │   ├── RefUnderOtherSchema  the schema has changed since the commit
    │   ├── BranchInUse          other branches, tags or the handle need the branch
    │   ├── BranchLocked         another writer held the lock for the whole waiting time
    │   │   └── BranchLockLost   another writer took over the branch during a write
    │   ├── LoadIdReused         the load id belongs to another load
    │   ├── IdempotencyKeyReused the key belongs to another write
    │   ├── ChangesNotShown      the changes of a commit cannot be listed row by row
    │   ├── MergeConflicts       both sides changed the same rows, or violate a rule together
    │   ├── TableDrift           a table has unpublished changes
    │   ├── SchemaContractBroken the schema files do not match the accepted schema
    │   ├── SchemaMoved          the schema changed while a write was prepared
    │   ├── SchemaApplyBlocked   the graph has branches other than main
    │   ├── SchemaApplyRunning   another schema apply is running
    │   ├── TableExists          the location of a new table is taken
    │   ├── TableConflict        the table changed before the change was committed
    │   ├── InsertConflict       a concurrent insert came first
    │   ├── ForkExists           a table already has a branch of this name
    │   └── ForkInUse            other branches of the table depend on this one
    ├── RecoveryError            an interrupted write cannot be recovered automatically
    │   ├── TableOvertaken       a change landed on top of a concurrent one
    │   ├── RecoveryQuarantined  an interrupted write needs an operator's decision
    │   ├── RecoveryPending      maintenance must wait for recovery
    │   └── RepairRefused        a repair left tables unchanged
    ├── LimitError               a limit is exceeded
    │   ├── QueryBudgetExceeded  a query needs more rows, bytes or time than allowed
    │   ├── QueryCancelled       the caller cancelled the query
    │   └── TooManyRequests      an actor has too many writes in progress
    ├── PolicyError              the policy does not allow the action
    │   ├── PolicyDenied         no rule allows the action for this actor
    │   ├── ActorRequired        a policy is in force and the call has no actor
    │   ├── PolicyUndecided      the policy could not be evaluated
    │   ├── PolicyInvalid        a policy file is not valid; lists the problems
    │   └── ReadsRestricted      the call needs an actor who sees the whole graph or type
    ├── EmbeddingError           a text could not be embedded
    │   ├── EmbeddingNotConfigured  no provider is configured; names the setting
    │   ├── EmbeddingModelUnavailable  the provider of the schema's model is not configured
    │   └── EmbeddingFailed      the provider did not respond, or not as expected
    │       └── EmbeddingRefused  the provider rejected a text
    ├── SparkError               an operation on Spark failed
    │   ├── SparkUnavailable     no session could be started or reached
    │   ├── SparkExecutorUnfit   executors lack a package or have another version
    │   ├── SparkJobFailed       a job failed
    │   └── StartCacheFailed     the Java start cache could not be created
    ├── NotFoundError            a named thing does not exist
    │   ├── GraphNotFound
    │   ├── BranchNotFound
    │   ├── CommitNotFound
    │   ├── CommitBranchGone     the branch of the commit was deleted
    │   ├── RefNotFound          a ref goes back before the first commit
    │   ├── TagNotFound
    │   ├── StoredQueryNotFound  unknown, or not to be invoked by the caller
    │   ├── HistoryRemoved       cleanup deleted the rows of an old version
    │   ├── ChangeFeedGap        the changes after a cursor are not available
    │   ├── UnknownVersion
    │   ├── UnknownType
    │   ├── UnknownColumn        also a KeyError
    │   ├── EntityNotFound
    │   └── BlobMissing          the blob property is null
    ├── RemoteError              a call to a server failed outside the graph engine
    │   ├── ServerUnreachable    no connection, or no answer to a read
    │   ├── AnswerLost           a change was sent, its outcome is unknown
    │   ├── Unauthenticated      the server does not know the token, or requires one
    │   └── UnexpectedAnswer     the answer does not follow the HTTP contract
    └── StorageError             the store failed
        ├── CommitStateUnknown   a write was started; recovery will complete or undo it
        ├── ManifestDamaged      the manifest contradicts itself
        ├── StoreCallFailed      one call to the store failed; has action, URI and cause
        │   ├── SyncFailed       the disk did not confirm a write
        │   ├── ObjectMissing
        │   ├── TableMissing
        │   ├── TornVersion      the newest version of a table was not written completely
        │   └── FileDamaged      a stored file cannot be read
        ├── GraphMoved           the graph was moved after the branch was created
        └── UnsafeStore          the store lacks the conditional writes a graph needs

Errors cross process boundaries, so every error can be pickled. `omnigraph.error_codes` explains the
codes.
"""

from omnigraph.errors.base import CatalogError as CatalogError
from omnigraph.errors.base import LanguageError as LanguageError
from omnigraph.errors.base import OmnigraphError as OmnigraphError
from omnigraph.errors.base import ParseError as ParseError
from omnigraph.errors.base import PlanError as PlanError
from omnigraph.errors.base import Retry as Retry
from omnigraph.errors.base import TypeCheckError as TypeCheckError
from omnigraph.errors.conflicts import AlreadyInitialized as AlreadyInitialized
from omnigraph.errors.conflicts import BranchExists as BranchExists
from omnigraph.errors.conflicts import BranchInUse as BranchInUse
from omnigraph.errors.conflicts import BranchLocked as BranchLocked
from omnigraph.errors.conflicts import BranchLockLost as BranchLockLost
from omnigraph.errors.conflicts import ChangesNotShown as ChangesNotShown
from omnigraph.errors.conflicts import ConflictError as ConflictError
from omnigraph.errors.conflicts import ExpectedVersionMismatch as ExpectedVersionMismatch
from omnigraph.errors.conflicts import ForkExists as ForkExists
from omnigraph.errors.conflicts import ForkInUse as ForkInUse
from omnigraph.errors.conflicts import HeadMoved as HeadMoved
from omnigraph.errors.conflicts import IdempotencyKeyReused as IdempotencyKeyReused
from omnigraph.errors.conflicts import InsertConflict as InsertConflict
from omnigraph.errors.conflicts import LoadIdReused as LoadIdReused
from omnigraph.errors.conflicts import MergeConflict as MergeConflict
from omnigraph.errors.conflicts import MergeConflicts as MergeConflicts
from omnigraph.errors.conflicts import OperationFenced as OperationFenced
from omnigraph.errors.conflicts import PublishContention as PublishContention
from omnigraph.errors.conflicts import RefUnderOtherSchema as RefUnderOtherSchema
from omnigraph.errors.conflicts import SchemaApplyBlocked as SchemaApplyBlocked
from omnigraph.errors.conflicts import SchemaApplyRunning as SchemaApplyRunning
from omnigraph.errors.conflicts import SchemaContractBroken as SchemaContractBroken
from omnigraph.errors.conflicts import SchemaMoved as SchemaMoved
from omnigraph.errors.conflicts import TableConflict as TableConflict
from omnigraph.errors.conflicts import TableDrift as TableDrift
from omnigraph.errors.conflicts import TableExists as TableExists
from omnigraph.errors.conflicts import TagExists as TagExists
from omnigraph.errors.data import BrokenQuery as BrokenQuery
from omnigraph.errors.data import ConstraintError as ConstraintError
from omnigraph.errors.data import DanglingEdges as DanglingEdges
from omnigraph.errors.data import EdgesOfType as EdgesOfType
from omnigraph.errors.data import LoadError as LoadError
from omnigraph.errors.data import LoadProblem as LoadProblem
from omnigraph.errors.data import MutationError as MutationError
from omnigraph.errors.data import QueriesBroken as QueriesBroken
from omnigraph.errors.data import SchemaError as SchemaError
from omnigraph.errors.data import SchemaViolated as SchemaViolated
from omnigraph.errors.data import UnknownPropertiesRefused as UnknownPropertiesRefused
from omnigraph.errors.data import UnknownProperty as UnknownProperty
from omnigraph.errors.data import UnsupportedMigration as UnsupportedMigration
from omnigraph.errors.inputs import AmbiguousRef as AmbiguousRef
from omnigraph.errors.inputs import AssignmentError as AssignmentError
from omnigraph.errors.inputs import BlobMissing as BlobMissing
from omnigraph.errors.inputs import BlobRangeError as BlobRangeError
from omnigraph.errors.inputs import BranchNotFound as BranchNotFound
from omnigraph.errors.inputs import ChangeFeedGap as ChangeFeedGap
from omnigraph.errors.inputs import CommitBranchGone as CommitBranchGone
from omnigraph.errors.inputs import CommitNotFound as CommitNotFound
from omnigraph.errors.inputs import ConfigFileError as ConfigFileError
from omnigraph.errors.inputs import CredentialsError as CredentialsError
from omnigraph.errors.inputs import DifferentValues as DifferentValues
from omnigraph.errors.inputs import EntityNotFound as EntityNotFound
from omnigraph.errors.inputs import ExportError as ExportError
from omnigraph.errors.inputs import ExternalBlobRefused as ExternalBlobRefused
from omnigraph.errors.inputs import GraphNotFound as GraphNotFound
from omnigraph.errors.inputs import HandleClosed as HandleClosed
from omnigraph.errors.inputs import HistoryRemoved as HistoryRemoved
from omnigraph.errors.inputs import HostValueError as HostValueError
from omnigraph.errors.inputs import InputError as InputError
from omnigraph.errors.inputs import IntegerOverflow as IntegerOverflow
from omnigraph.errors.inputs import InvalidBranchName as InvalidBranchName
from omnigraph.errors.inputs import InvalidSetting as InvalidSetting
from omnigraph.errors.inputs import InvalidTagName as InvalidTagName
from omnigraph.errors.inputs import LegacyConfigError as LegacyConfigError
from omnigraph.errors.inputs import LoadSourceError as LoadSourceError
from omnigraph.errors.inputs import MissingExtra as MissingExtra
from omnigraph.errors.inputs import NewerFormat as NewerFormat
from omnigraph.errors.inputs import NotABlob as NotABlob
from omnigraph.errors.inputs import NotFoundError as NotFoundError
from omnigraph.errors.inputs import OperatorConfigError as OperatorConfigError
from omnigraph.errors.inputs import ParameterError as ParameterError
from omnigraph.errors.inputs import ParameterOutOfRange as ParameterOutOfRange
from omnigraph.errors.inputs import QuerySelectionError as QuerySelectionError
from omnigraph.errors.inputs import ReadOnlyHandle as ReadOnlyHandle
from omnigraph.errors.inputs import RefNotFound as RefNotFound
from omnigraph.errors.inputs import ServerConfigError as ServerConfigError
from omnigraph.errors.inputs import SourceUnreadable as SourceUnreadable
from omnigraph.errors.inputs import TagNotFound as TagNotFound
from omnigraph.errors.inputs import UnknownColumn as UnknownColumn
from omnigraph.errors.inputs import UnknownParameter as UnknownParameter
from omnigraph.errors.inputs import UnknownType as UnknownType
from omnigraph.errors.inputs import UnknownVersion as UnknownVersion
from omnigraph.errors.inputs import UnusableWeight as UnusableWeight
from omnigraph.errors.inputs import UsageError as UsageError
from omnigraph.errors.inputs import WrongQueryKind as WrongQueryKind
from omnigraph.errors.remote import AnswerLost as AnswerLost
from omnigraph.errors.remote import EmbeddedOnly as EmbeddedOnly
from omnigraph.errors.remote import RemoteError as RemoteError
from omnigraph.errors.remote import ServerUnreachable as ServerUnreachable
from omnigraph.errors.remote import Unauthenticated as Unauthenticated
from omnigraph.errors.remote import UnexpectedAnswer as UnexpectedAnswer
from omnigraph.errors.services import ActorRequired as ActorRequired
from omnigraph.errors.services import EmbeddingError as EmbeddingError
from omnigraph.errors.services import EmbeddingFailed as EmbeddingFailed
from omnigraph.errors.services import EmbeddingModelUnavailable as EmbeddingModelUnavailable
from omnigraph.errors.services import EmbeddingNotConfigured as EmbeddingNotConfigured
from omnigraph.errors.services import EmbeddingRefused as EmbeddingRefused
from omnigraph.errors.services import LimitError as LimitError
from omnigraph.errors.services import PolicyDenied as PolicyDenied
from omnigraph.errors.services import PolicyError as PolicyError
from omnigraph.errors.services import PolicyInvalid as PolicyInvalid
from omnigraph.errors.services import PolicyUndecided as PolicyUndecided
from omnigraph.errors.services import QueryBudgetExceeded as QueryBudgetExceeded
from omnigraph.errors.services import QueryCancelled as QueryCancelled
from omnigraph.errors.services import ReadsRestricted as ReadsRestricted
from omnigraph.errors.services import SparkError as SparkError
from omnigraph.errors.services import SparkExecutorUnfit as SparkExecutorUnfit
from omnigraph.errors.services import SparkJobFailed as SparkJobFailed
from omnigraph.errors.services import SparkUnavailable as SparkUnavailable
from omnigraph.errors.services import StartCacheFailed as StartCacheFailed
from omnigraph.errors.services import TooManyRequests as TooManyRequests
from omnigraph.errors.storage import CommitStateUnknown as CommitStateUnknown
from omnigraph.errors.storage import FileDamaged as FileDamaged
from omnigraph.errors.storage import GraphMoved as GraphMoved
from omnigraph.errors.storage import ManifestDamaged as ManifestDamaged
from omnigraph.errors.storage import ObjectMissing as ObjectMissing
from omnigraph.errors.storage import RecoveryError as RecoveryError
from omnigraph.errors.storage import RecoveryPending as RecoveryPending
from omnigraph.errors.storage import RecoveryQuarantined as RecoveryQuarantined
from omnigraph.errors.storage import RepairRefused as RepairRefused
from omnigraph.errors.storage import StorageError as StorageError
from omnigraph.errors.storage import StoreCallFailed as StoreCallFailed
from omnigraph.errors.storage import SyncFailed as SyncFailed
from omnigraph.errors.storage import TableMissing as TableMissing
from omnigraph.errors.storage import TableOvertaken as TableOvertaken
from omnigraph.errors.storage import TornVersion as TornVersion
from omnigraph.errors.storage import UnsafeStore as UnsafeStore
from omnigraph.errors.stored_queries import StoredQueriesBroken as StoredQueriesBroken
from omnigraph.errors.stored_queries import StoredQueriesInvalid as StoredQueriesInvalid
from omnigraph.errors.stored_queries import StoredQueryNotFound as StoredQueryNotFound
