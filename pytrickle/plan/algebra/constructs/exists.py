"""d exists(R) = exists(NEW|K) - exists(OLD|K), where K are the keys in dR: EXISTS, IN and their like."""

from dataclasses import dataclass

from pytrickle.plan.algebra.construct import Construct, Names, listed

OF_KEYS = "SELECT DISTINCT {keys} FROM {rows} AS d"
AT_ALL = "SELECT 1 AS one FROM {rows} AS d LIMIT 1"


@dataclass(frozen=True, slots=True)
class Exists(Construct):
    """The distinct keys that have a row; without keys one row, without content, if there is any.

    >>> Exists().columns((), ())
    ('one',)
    >>> for keys in (("k0",), ()):
    ...     print(Exists().over("(rows)", keys, keys))
    SELECT DISTINCT d.k0 FROM (rows) AS d
    SELECT 1 AS one FROM (rows) AS d LIMIT 1
    """

    label = "exists"

    def columns(self, arguments: Names, keys: Names) -> Names:
        """Name the keys."""
        return keys or ("one",)

    def depends_on_order(self, exact: bool) -> bool:
        """Which of several equal keys is kept shows nowhere."""
        return False

    def over(self, rows: str, arguments: Names, keys: Names) -> str:
        """Write it over the rows."""
        return (OF_KEYS if keys else AT_ALL).format(keys=listed(keys), rows=rows)
