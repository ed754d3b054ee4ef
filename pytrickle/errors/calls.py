"""What a caller, a loader or a defining query asks for wrongly."""

from pytrickle.errors.base import PytrickleError


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

    default_hint = "Ask the owner of the object or of the database for it; pytrickle doctor says who owns the catalog."


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


class DeltaTooLong(NotDifferentiable):
    """To plan the SQL of a delta would take PostgreSQL longer than to compute the whole query."""
