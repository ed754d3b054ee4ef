"""The error tree: every failure pytrickle can explain, grouped by what the reader should do about it.
A gated stream table is an answer, not an error.

    PytrickleError
    ├── ConfigError             correct the settings or the machine
    │   └── JavaMissing, JdbcDriverMissing, DatabaseOutOfReach, PackageMissing
    ├── MigrationError          the catalog could not be installed or removed; nothing was changed
    ├── CatalogError            correct the call
    │   ├── NotInstalled, CatalogVersionMismatch, UnknownStreamTable, UnknownWatermarkGroup, StreamTableExists
    │   └── WatermarkMovedBack, InvalidArgument, CycleDetected, NotRetained, InsufficientPrivilege
    ├── WatermarkError          correct how a loader finds its watermark
    │   └── UnknownInput, TooFewObservations
    ├── PlanError               correct the defining query or its refresh mode
    │   └── QueryRefused, NotDifferentiable
    ├── RefreshError            the stream table keeps its last contents
    │   ├── RefreshConflict*, FuseBlown, FixpointNotReached, StagingFailed, StreamTableDrifted
    │   ├── WouldRecompute (in pytrickle.refresh.guards)
    │   └── SparkFailed
    │       └── EvaluationFailed, SparkOutOfMemory, SparkTooNarrow, SparkCannotConnect*, SparkLost*
    ├── NotYet*                 the data will come, or the hint says what keeps it
    │   └── NotFresh*, WaitTimeout*
    ├── Defect                  report it
    └── DatabaseError           look at the server
        ├── ConnectionLost*, StatementTimeout, DiskFull
        └── SerializationFailure*
            └── LockTimeout*

Those with a star are retryable: the same call may succeed later by itself.
"""

from typing import ClassVar


class PytrickleError(Exception):
    """pytrickle could not do what was asked.

    ``hint`` says what to do about it; ``retryable`` whether the same call may succeed later by itself, which is
    what the scheduler obeys; ``sqlstate`` is PostgreSQL's code when the database raised the error. ``attempted`` is the
    action of the refresh that failed with it, once that was planned.
    """

    default_hint: ClassVar[str | None] = None
    default_retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        retryable: bool | None = None,
        *,
        sqlstate: str | None = None,
        attempted: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint or self.default_hint
        self.retryable = self.default_retryable if retryable is None else retryable
        self.sqlstate = sqlstate
        self.attempted = attempted

    @property
    def kind(self) -> str:
        """What may be said of the error to everybody: its SQLSTATE or class, without the values that it may quote."""
        return f"SQLSTATE {self.sqlstate}" if self.sqlstate else type(self).__name__


class ConfigError(PytrickleError):
    """A setting, or something the machine must provide, is missing or wrong."""


class JavaMissing(ConfigError):
    """Spark needs a Java runtime, version 17 or later, and none was found."""

    default_hint = "Install one (on Debian: apt-get install default-jre-headless) or set JAVA_HOME."


class JdbcDriverMissing(ConfigError):
    """Spark needs PostgreSQL's JDBC driver, and no jar was found."""

    default_hint = "Install it (on Debian: apt-get install libpostgresql-jdbc-java) or set PYTRICKLE_JDBC_JAR."


class DatabaseOutOfReach(ConfigError):
    """Spark's executors are on other machines, and the database's address means something else there."""

    default_hint = (
        "Name the server in the DSN as every worker reaches it, such as host=db.example.com: no Unix socket, and no"
        " address of this machine for itself."
    )


class PackageMissing(ConfigError):
    """An optional Python package is needed for this, and it is not installed."""

    default_hint = "Install it with its extra: pip install 'pytrickle-postgres[plot]', or [arrays]."


class MigrationError(PytrickleError):
    """The catalog could not be installed or removed; the database was left as it was."""

    default_hint = "Nothing was changed; pytrickle install --print shows the SQL."


class CatalogError(PytrickleError):
    """The catalog does not allow what was asked."""


class NotInstalled(CatalogError):
    """The database has no pytrickle catalog."""

    default_hint = "Run pytrickle install against this database."


class CatalogVersionMismatch(CatalogError):
    """The catalog and this package are of different versions."""


class UnknownStreamTable(CatalogError):
    """No stream table has that name."""

    default_hint = "pytrickle status lists the stream tables; a name outside the search path needs its schema."


class NotRetained(CatalogError):
    """The change history does not reach back to what was asked for."""

    default_hint = "Set watermark_retention on the stream table; it keeps what is loaded from then on."


class UnknownWatermarkGroup(CatalogError):
    """No watermark group has that name."""

    default_hint = "pytrickle group list shows the watermark groups."


class StreamTableExists(CatalogError):
    """A relation of that name is already there."""

    default_hint = "Choose another name, or drop the existing table first."


class WatermarkMovedBack(CatalogError):
    """A watermark never moves back; the source keeps the one it had."""

    default_hint = "pytrickle watermark list shows where it stands."


class InvalidArgument(CatalogError):
    """An argument has a value that is not allowed."""

    default_hint = "Check the names and values given; a name outside the search path needs its schema."


class CycleDetected(CatalogError):
    """The stream tables would depend on each other in a circle."""

    default_hint = "Let one of them read the base tables instead."


class InsufficientPrivilege(CatalogError):
    """The role lacks a privilege."""

    default_hint = "Ask the owner of the object or of the database for the privilege."


class WatermarkError(PytrickleError):
    """A watermark cannot be found this way."""


class UnknownInput(WatermarkError):
    """A tracker was told of an input that it does not have."""

    default_hint = "Assign every input before it reports: one the tracker does not know would not be waited for."


class TooFewObservations(WatermarkError):
    """There is too little to measure."""

    default_hint = "Let the loaders run for a while, and ask again."


class PlanError(PytrickleError):
    """The defining query cannot be maintained as asked."""


class QueryRefused(PlanError):
    """The defining query cannot be accepted."""

    default_hint = "Run the query in psql: PostgreSQL reports the same there."


class NotDifferentiable(PlanError):
    """The defining query has no delta rule, and the stream table does not allow full refreshes."""

    default_hint = "Use refresh_mode AUTO or FULL."


class RefreshError(PytrickleError):
    """A refresh failed; the stream table keeps its last contents."""


class RefreshConflict(RefreshError):
    """Another refresh of the same stream table committed first."""

    default_hint = "Nothing was changed; the next tick takes the stream table up again."
    default_retryable = True


class FuseBlown(RefreshError):
    """A delta has more rows than the stream table's fuse lets pass."""

    default_hint = "Decide with pgtrickle.reset_fuse(name, 'apply' or 'reinitialize'), or raise fuse_ceiling."


class FixpointNotReached(RefreshError):
    """Stream tables that read each other still gained rows in the last round that they were allowed."""

    default_hint = "Raise max_fixpoint_iterations, or bound in the query what grows in every round, as a length does."


class StagingFailed(RefreshError):
    """The delta could not be staged in the database."""

    default_hint = "Nothing was changed; pytrickle doctor checks the connection and the rights."


class StreamTableDrifted(RefreshError):
    """The stream table or its state does not hold what its last refresh left there."""

    default_hint = "pytrickle verify shows the difference; the next refresh rebuilds the table."


class SparkFailed(RefreshError):
    """Spark could not compute the delta."""

    default_hint = "Nothing was changed; pytrickle doctor checks Java and the driver, Spark's log has the details."


class EvaluationFailed(SparkFailed):
    """PostgreSQL refused a query that Spark sent it, most often since an expression failed on some row."""

    default_hint = "Nothing was changed; correct the row that the sentence is about, or the defining query."


class SparkOutOfMemory(SparkFailed):
    """Spark's driver or an executor has less memory than a refresh needs."""

    default_hint = "Raise spark.driver.memory, lower max_concurrent_refreshes, or set spark.buffer.pageSize to 2m."


class SparkTooNarrow(SparkFailed):
    """A value or a sum has more digits than Spark's decimals; the refresh goes on without Spark."""

    default_hint = "PostgreSQL computes such a refresh; nothing has to be done."


class SparkCannotConnect(SparkFailed):
    """Spark's driver or its executors could not open a connection to the database."""

    default_hint = "Nothing was changed; look at the firewall and pg_hba.conf between Spark's machines and the server."
    default_retryable = True


class SparkLost(SparkFailed):
    """The Spark session ended or cannot be reached any more."""

    default_hint = "Nothing was changed; a session that pytrickle built is built anew, bring a living one otherwise."
    default_retryable = True


class NotYet(PytrickleError):
    """A stream table does not show what was asked for yet."""

    default_hint = "Repeat it later; pytrickle run must be running."
    default_retryable = True


class NotFresh(NotYet):
    """The data of a stream table is older than was asked for, or there is none."""


class WaitTimeout(NotYet):
    """A stream table was not complete through an event time when the time for waiting was over."""

    default_hint = "pytrickle status shows where its sources stand; pytrickle run must be running."


class Defect(PytrickleError):
    """pytrickle itself failed; its log has the traceback."""

    default_hint = "Please report it, with the traceback that was logged."


class DatabaseError(PytrickleError):
    """PostgreSQL reported an error that pytrickle has no better word for."""

    default_hint = "The server's log has the details."


class ConnectionLost(DatabaseError):
    """The server could not be reached, or went away."""

    default_hint = "Check that the server runs and that --dsn or the PG* variables point to it."
    default_retryable = True


class SerializationFailure(DatabaseError):
    """A concurrent transaction got in the way."""

    default_hint = "Nothing was changed; the same call can simply be repeated."
    default_retryable = True


class LockTimeout(SerializationFailure):
    """Another session held a lock for longer than it was waited for."""

    default_hint = (
        "Nothing was changed, and it is tried again. Sessions that keep a transaction open:"
        " SELECT pid, xact_start, query FROM pg_stat_activity ORDER BY xact_start; see also pg_prepared_xacts."
    )


class StatementTimeout(DatabaseError):
    """A statement ran for longer than statement_timeout allows."""

    default_hint = (
        "Nothing was changed. pytrickle explain shows what the refresh computes and which index it lacks;"
        " alter_stream_table(name, statement_timeout => '1 hour') gives it more time."
    )


class DiskFull(DatabaseError):
    """The server has no disk space left."""

    default_hint = "Free space on the database server; nothing was changed."
