"""Errors of the server that have no nearer name."""

from pytrickle.errors.base import PytrickleError


class DatabaseError(PytrickleError):
    """PostgreSQL reported an error that pytrickle has no better word for."""

    default_hint = "The server's log has the details."


class ConnectionLost(DatabaseError):
    """The server could not be reached, or went away."""

    default_hint = "Check that the server runs and that the DSN or the PG* variables point to it."
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


class Canceled(DatabaseError):
    """Somebody cancelled a statement."""

    default_hint = "Nothing was changed, and a refresh is tried again; pytrickle pause keeps a stream table from it."
    default_retryable = True


class ServerExhausted(DatabaseError):
    """The server ran out of memory, of room for locks, or of something else."""

    default_hint = "Nothing was changed, and a refresh is tried again; the server's log says what is short."
    default_retryable = True


class DiskFull(ServerExhausted):
    """The server has no disk space left."""

    default_hint = "Free space on the database server; nothing was changed."


class ReadOnly(DatabaseError):
    """The server accepts no changes from this session."""

    default_hint = (
        "Nothing was changed. A standby takes no changes: connect to the primary, by target_session_attrs=read-write."
        " Elsewhere the role, the database or PGOPTIONS sets default_transaction_read_only."
    )
