"""Refreshes that fail, and data that is not there yet."""

from pytrickle.errors.base import PytrickleError


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


class WouldRecompute(RefreshError):
    """The refresh would have to compute the whole stream table anew, and its refresh mode forbids that."""

    default_hint = "Have it computed anew once: pytrickle refresh NAME --full."


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


class SparkStarved(SparkFailed):
    """The cluster has no executor, so that nothing is computed."""

    default_hint = "Nothing was changed; start workers, or free some that other applications hold."
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


class RestoreUnderWay(NotYet):
    """The database is being restored or copied: some of the catalog is not there yet, or comes from another server."""

    default_hint = "It goes on by itself once the restore is done."


class Defect(PytrickleError):
    """pytrickle itself failed; its log has the traceback."""

    default_hint = "Please report it, with the traceback that was logged."
