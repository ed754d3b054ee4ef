"""Operations over weighted rows: counts and sums take the weights as they are, others see each row as often as it is.

To write a row several times costs PostgreSQL several times as much as to multiply by its weight. Counts, and sums of
integers that PostgreSQL sums to `bigint`, do not even need rows that cancel out to be told apart: NaN, which no sum
gets rid of, is none of these.
"""

from collections.abc import Iterable

from pytrickle.plan.algebra.construct import Construct, listed, prefixed
from pytrickle.plan.algebra.constructs.distinct import Distinct
from pytrickle.plan.algebra.constructs.domain import Domain
from pytrickle.plan.algebra.constructs.exists import Exists
from pytrickle.plan.algebra.constructs.group import SIMPLE, Group
from pytrickle.plan.algebra.relation import Operation
from pytrickle.plan.postgres.consolidate import WEIGHT, consolidate, expand
from pytrickle.plan.postgres.length import refuse_length

# They show the same of a row, however often it is there.
UNWEIGHTED = frozenset({"min", "max"})
GROUPED = "SELECT {items} FROM (\n{rows}\n) AS d GROUP BY {keys}"
PRESENT = f" HAVING sum(d.{WEIGHT}) <> 0"

COUNTED = f"CAST(coalesce(sum(d.{WEIGHT}){{given}}, 0) AS bigint)"
GIVEN = " FILTER (WHERE {0} IS DISTINCT FROM NULL)"
# Where rows were not consolidated, those of a sum may all have cancelled out.
WHOLE = f"CASE WHEN {{count}} <> 0 THEN CAST(sum(CAST({{0}} AS bigint) * d.{WEIGHT}) AS bigint) END"
NUMERIC = f"sum(CASE d.{WEIGHT} WHEN 1 THEN CAST({{0}} AS numeric) ELSE CAST({{0}} AS numeric) * d.{WEIGHT} END)"


def union_all(texts: Iterable[str]) -> str:
    """Add up weighted rows; raise DeltaTooLong as soon as they are too many to be written."""
    found, length = list[str](), 0
    for each in texts:
        found.append(each)
        length += len(each)
        refuse_length(length)
    return "\nUNION ALL\n".join(found)


def over_weighted(operation: Operation, rows: str, plain: bool) -> str:
    """Write an operation over weighted rows; `plain` says that every weight is one."""
    weighted = None if plain or not operation.exact else _weighted(operation.construct, operation, rows)
    return weighted or operation.result(expand(rows, operation.arguments, operation.exact, plain))


def _weighted(construct: Construct, operation: Operation, rows: str) -> str | None:
    """Write it by weights; None if that cannot be done exactly."""
    keys = listed(operation.keys)
    match construct:
        case Distinct() | Domain() | Exists() if keys:
            return GROUPED.format(items=keys, rows=rows, keys=keys) + PRESENT
        case Group(calls=calls):
            types = dict(zip(operation.columns, operation.types, strict=False))
            found = [_call(call, types.get(f"c{i}", "")) for i, call in enumerate(calls)]
            written = [f"{each[0]} AS c{i}" for i, each in enumerate(found) if each]
            if len(written) < len(found):
                return None
            items = ", ".join([*prefixed(operation.keys), *written]) or "1 AS one"
            adds_up = all(each[1] for each in found if each)
            read = rows if adds_up else consolidate(rows, operation.arguments)
            return GROUPED.format(items=items, rows=read, keys=keys or "()") + (PRESENT if keys else "")
    return None


def _call(call: str, type_name: str) -> tuple[str, bool] | None:
    """Write an aggregate by weights, and say whether rows that cancel out may be among its own; None if it cannot be.

    >>> _call('COUNT("d"."a0")', "bigint")
    ('CAST(coalesce(sum(d.pgt_weight) FILTER (WHERE "d"."a0" IS DISTINCT FROM NULL), 0) AS bigint)', True)
    >>> _call("max(d.a0)", "text"), _call("sum(d.a0)", "double precision"), _call("sum(d.a0 ORDER BY d.a1)", "bigint")
    (('max(d.a0)', False), None, None)
    """
    matched = SIMPLE.fullmatch(call)
    if matched is None:
        return None
    function, argument = matched[1].lower(), matched[2]
    if function in UNWEIGHTED:
        return call, False
    count = COUNTED.format(given=GIVEN.format(argument) if argument else "")
    match function, type_name:
        case "count", "bigint":
            return count, True
        case "sum", "bigint":
            return WHOLE.format(argument, count=count), True
        case "sum", "numeric":
            return NUMERIC.format(argument), False
        case "avg", "numeric":
            return f"{NUMERIC.format(argument)} / CAST(nullif({count}, 0) AS numeric)", False
    return None
