"""Who may take part in a refresh, and from how many rows on: by the settings, the stream table's option, the moment."""

from dataclasses import dataclass, replace
from enum import Enum

from pytrickle.config import EngineName

# Why PostgreSQL computes what Spark was to compute.
WITHIN_OTHERS = "since it reads what the same transaction writes"
NO_TABLE = "since its rows need a staging table, which the transaction of several stream tables would not see"
IN_ROUNDS = "since the rounds of a cycle read what they write"
TOO_NARROW = "since Spark's decimals are too narrow"


class Means(Enum):
    """What may take part in a refresh: within a transaction neither Spark nor a new staging table can."""

    ALL = "PostgreSQL, Spark, a staging table"
    NO_STAGING_TABLE = "PostgreSQL, Spark"
    POSTGRES = "PostgreSQL"


@dataclass(frozen=True, slots=True)
class Limits:
    """Up to `small` changed rows PostgreSQL joins; up to `direct` rows the refresher itself reads. Both are settings.

    With `spark` the engine is Spark: it also joins and groups what is computed as a whole. `chosen` says who chose the
    engine, where that was not left to `auto`, `obstacle` why Spark may take no part if the means are PostgreSQL alone.
    """

    small: int
    direct: int
    means: Means = Means.ALL
    spark: bool = False
    chosen: str | None = None
    obstacle: str = WITHIN_OTHERS

    def let_spark_join(self, delta_rows: int) -> bool:
        """Whether so many changes may be joined by Spark."""
        return self.means is not Means.POSTGRES and delta_rows > self.small

    @property
    def let_spark_compute_all(self) -> bool:
        """Whether Spark may compute a whole refresh, rather than read what PostgreSQL computed."""
        return self.spark and self.means is not Means.POSTGRES

    def prefer(self, engine: EngineName, reason: str) -> "Limits":
        """Let an engine compute, for what was measured; what a setting or an option chose stays."""
        if self.chosen or self.means is not Means.ALL:
            return self
        if engine is EngineName.SPARK:
            return replace(self, small=0, direct=0, chosen=reason)
        return replace(self, means=Means.POSTGRES, chosen=reason)

    def without_table(self) -> "Limits":
        """Leave everything to PostgreSQL, for want of a staging table."""
        return replace(self, means=Means.POSTGRES, obstacle=NO_TABLE)


# Within a transaction no number of changes is too many for PostgreSQL.
WITHIN = Limits(0, 0, Means.POSTGRES)


def limits_of(setting: EngineName, option: EngineName, limits: Limits, has_spark: bool = True) -> Limits:
    """Narrow the limits of `auto` by the refresher's setting and the stream table's own option.

    With the setting `postgres` no Java is ever started, whatever a stream table asks for; nor with `auto` where there
    is no Spark.
    """
    if setting is EngineName.POSTGRES or (setting is EngineName.AUTO and not has_spark):
        why = "the refresher's engine is postgres" if setting is EngineName.POSTGRES else "PySpark is not installed"
        asked = ", although the stream table asks for spark" if option is EngineName.SPARK else ""
        return replace(limits, means=Means.POSTGRES, chosen=f"{why}{asked}")
    if option is not EngineName.AUTO:
        setting, chosen = option, f"the stream table's engine is {option}"
    else:
        chosen = f"the refresher's engine is {setting}"
    match setting:
        case EngineName.POSTGRES:
            return replace(limits, means=Means.POSTGRES, chosen=chosen)
        case EngineName.SPARK:
            return replace(limits, small=0, direct=0, spark=True, chosen=chosen)
        case EngineName.AUTO:
            return limits
