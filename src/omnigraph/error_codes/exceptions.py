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
        errors.ConflictError,
        "somebody else's change is in the way",
        """
        `ConflictError`: another change, branch or setting rules out this one as it was prepared.
        Nothing of it is visible. Read the current state, prepare the change again, and repeat.
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
        errors.StorageError,
        "storage failed",
        """
        `StorageError`: the place where the graph is kept could not be read or written. The same
        call may succeed later. If it was a write, look at the branch before repeating it: the
        outcome may be unknown.
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
        `ParameterError`: a required parameter is missing, or its JSON value cannot become the
        declared type. The message names the parameter and what was expected. Declare the
        parameter with `?` if it may be left out.
        """,
    ),
    _of(
        errors.HostValueError,
        "Python value without a counterpart",
        """
        `HostValueError`: a Python value given as a parameter cannot be represented: an integer
        beyond 64 bits, a float that is not finite, an object of an unknown class. Pass text,
        numbers, booleans, dates, lists or `None`.
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
        errors.OmnigraphError,
        "root of all errors",
        """
        `OmnigraphError`: the class all others derive from. Catch it to catch everything this
        product raises on purpose. It is never raised itself.
        """,
    ),
)
