"""Which engine was faster for about as many changes, where the past tells."""

from dataclasses import replace
from statistics import median_low

from pytrickle.catalog.definition import Evidence, PastRefresh, size_class
from pytrickle.config import EngineName
from pytrickle.plan.cost import CONSIDERED, Experience

# How many times faster the other engine must have been.
MARGIN = 1.3
# So many changes that PostgreSQL took so many seconds for are worth a trial by Spark, where that runs already.
TRIED_ROWS = 200_000
TRIED_SECONDS = 1.0


def faster_engine(evidence: Evidence, delta_rows: int, whole: bool) -> tuple[EngineName, str] | None:
    """Return the engine that is to be preferred for a whole or a differential refresh, and why; None if unknown.

    Spark is left where it took clearly longer than PostgreSQL did, or is expected to by default; it is preferred only
    where both were measured.

    >>> slow, quick = PastRefresh(False, 500_000, 3.7, spark=True), PastRefresh(False, 500_000, 1.7)
    >>> faster_engine(Evidence(5_000_000, 250, (slow, quick)), 400_000, whole=False)
    (<EngineName.POSTGRES: 'postgres'>, 'for about as many changes PostgreSQL took 1.7 s, Spark 3.7 s')
    >>> faster_engine(Evidence(5_000_000, 250, (slow, slow)), 400_000, whole=False)[1]
    'for about as many changes PostgreSQL is expected to take 1.6 s, Spark took 3.7 s'
    >>> faster_engine(Evidence(5_000_000, 250, (slow, quick)), 500, whole=False)
    """
    found = [past for past in evidence.refreshes if past.whole is whole and _alike(past, delta_rows)]
    postgres, spark = (_median(found, by_spark) for by_spark in (False, True))
    if spark is None:
        return None
    if postgres is not None:
        return _compared(postgres, spark)
    default = Experience.of(replace(evidence, refreshes=())).seconds(delta_rows)
    # A single one may have waited for Spark to start.
    if whole or len(found) < 2 or spark <= MARGIN * default:
        return None
    reason = f"for about as many changes PostgreSQL is expected to take {default:.1f} s, Spark took {spark:.1f} s"
    return EngineName.POSTGRES, reason


def worth_a_trial(evidence: Evidence, delta_rows: int) -> str | None:
    """Return why Spark, which runs already, is tried for so many changes: only PostgreSQL was measured, and was slow.

    >>> slow = PastRefresh(False, 500_000, 1.7)
    >>> worth_a_trial(Evidence(5_000_000, 250, (slow,)), 400_000)
    'PostgreSQL took 1.7 s for about as many changes, which Spark was never tried for'
    >>> worth_a_trial(Evidence(5_000_000, 250, (slow, PastRefresh(False, 500_000, 3.7, spark=True))), 400_000)
    """
    found = [past for past in evidence.refreshes if not past.whole and _alike(past, delta_rows)]
    postgres, spark = (_median(found, by_spark) for by_spark in (False, True))
    if delta_rows < TRIED_ROWS or spark is not None or postgres is None or postgres < TRIED_SECONDS:
        return None
    return f"PostgreSQL took {postgres:.1f} s for about as many changes, which Spark was never tried for"


def _compared(postgres: float, spark: float) -> tuple[EngineName, str] | None:
    took = f"for about as many changes PostgreSQL took {postgres:.1f} s, Spark {spark:.1f} s"
    if spark > MARGIN * postgres:
        return EngineName.POSTGRES, took
    return (EngineName.SPARK, took) if postgres > MARGIN * spark else None


def _alike(past: PastRefresh, delta_rows: int) -> bool:
    return size_class(past.delta_rows) == size_class(delta_rows)


def _median(found: list[PastRefresh], spark: bool) -> float | None:
    seconds = [past.seconds for past in found if past.spark is spark][:CONSIDERED]
    return median_low(seconds) if seconds else None
