"""Expressions over several tables that Spark evaluates itself, over values at the edges of every type on its list."""

import pytest

from pytrickle.config import EngineName
from pytrickle.plan.tree import SUB_JOIN
from tests.conftest import Database
from tests.engines import ClientUnder, client_under
from tests.repeats import in_parts
from tests.spark.test_edge_values import EDGES, compare

pytestmark = pytest.mark.long

KINDS = (
    "small", "whole", "big", "cents", "fine", "large", "fraction", "day", "moment", "instant", "flag", "bytes", "key",
)  # fmt: skip
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
# Numbers of different types, and a numeric of any digits on either side, which lies between those of the other.
ORDERED = (
    ("small", "big"), ("cents", "fine"), ("whole", "fraction"), ("any_number", "cents"), ("large", "any_number"),
    ("fraction", "any_number"), ("any_number", "whole"),
)  # fmt: skip
EQUAL = (("note", "note"), ("any_number", "any_number"), ("cents", "whole"), ("small", "whole"))
CHOSEN = ("small", "cents", "any_number", "double", "day", "instant", "length", "note", "padded", "document", "numbers")
ROWS = 1 + max(len(EDGES[name][1]) for name in {*KINDS, *CHOSEN})


def columns(expressions: list[str]) -> str:
    return ", ".join(f"{expression} AS c{i}" for i, expression in enumerate(expressions))


def joined(expressions: list[str]) -> str:
    return f"SELECT l.id, r.id AS other, {columns(expressions)} FROM l JOIN r ON l.g = r.g"


ARITHMETIC = [
    "l.step + r.step", "l.step - r.small", "l.step * r.step * 3", "l.step * r.big_step", "l.cents + r.cents",
    "l.cents - r.fine", "l.cents * r.cents", "l.cents * r.fraction", "l.large - r.cents * l.fraction",
    "(l.step + 1) * r.cents", "l.cents * (1 - l.fraction) - r.cents * r.step", "l.step + 0.5 * r.cents",
    "l.whole - l.whole + r.step",
]  # fmt: skip
LOGIC = [
    "l.flag AND r.flag", "l.flag OR r.flag", "NOT (l.flag AND r.flag)", "l.note LIKE 'a%' OR r.small > 0 AND l.flag",
    "l.step IN (r.step, r.small, 7)", "l.day BETWEEN r.day AND date '2024-01-01'", "(l.cents + r.cents) IS NULL",
    "(l.step + r.step) IS NOT NULL", "l.step + r.step > r.big_step", "l.cents * r.fraction <= r.fine",
    "CASE WHEN l.flag THEN r.flag ELSE l.flag OR r.flag END",
]  # fmt: skip
CHOICES = [
    *(f"CASE WHEN l.flag THEN r.{name} WHEN r.flag THEN l.{name} END" for name in CHOSEN),
    *(f"COALESCE(l.{name}, r.{name})" for name in CHOSEN),
    "CASE l.step WHEN r.step THEN 'same' ELSE r.note END",
]
SUMS = ["l.cents * r.fraction", "l.step * r.step", "CASE WHEN l.flag THEN r.any_number ELSE l.cents END",
        "CASE WHEN r.small > 0 THEN l.cents ELSE 0 END", "CASE WHEN r.flag THEN l.big_step ELSE 0 END"]  # fmt: skip
COMPARED = [
    *(f"l.{name} {operator} r.{name}" for name in KINDS for operator in COMPARISONS),
    *(f"l.{a} {operator} r.{b}" for a, b in ORDERED for operator in COMPARISONS[2:]),
    *(f"l.{a} {operator} r.{b}" for a, b in EQUAL for operator in COMPARISONS[:2]),
    *(f"l.{name} IS DISTINCT FROM r.{name}" for name in (*KINDS, "note", "any_number")),
]
COMPUTED = [*ARITHMETIC, *LOGIC, *CHOICES]
# No number of operators is a multiple of it, so that every part has each of them.
PARTS = 5
QUERIES = {
    "sums": f"SELECT l.flag, {columns([f'{call}({each})' for each in SUMS for call in ('sum', 'avg', 'count')])}"
    " FROM l JOIN r ON l.g = r.g GROUP BY l.flag",
    "keys": "SELECT l.cents + r.cents AS k, l.step + r.step AS n, l.flag AND r.flag AS f, count(*) AS c"
    " FROM l JOIN r ON l.g = r.g GROUP BY 1, 2, 3",
    "filtered": "SELECT l.id, r.id AS other FROM l JOIN r ON l.g = r.g AND l.cents <= r.any_number"
    " WHERE l.flag OR r.small >= 0",
    "nothing_equal": "SELECT l.id, count(*) AS n FROM l JOIN r ON l.moment < r.moment GROUP BY l.id",
}  # fmt: skip


def queries_of(nth: int) -> dict[str, str]:
    return {"compared": joined(COMPARED[nth::PARTS]), "computed": joined(COMPUTED[nth::PARTS]), **QUERIES}


def create(db: Database) -> None:
    for table in "lr":
        shown = ", ".join(f"{name} {type_name}" for name, (type_name, _) in EDGES.items())
        db.execute(f"CREATE TABLE {table} (id int, g int, step int, big_step bigint, {shown})")
        fill(db, table, 1)


def fill(db: Database, table: str, begin: int) -> None:
    """Insert all edges, in one of the tables the other way round, so that unlike values meet."""
    for row in range(ROWS):
        at = row if table == "l" else ROWS - 1 - row
        values = [values[at] if at < len(values) else "NULL" for _, values in EDGES.values()]
        # Of the wide numbers a sum would not fit into Spark's decimals.
        step = "NULL" if row == 0 else str(row * 1000 - 3000)
        db.execute(f"INSERT INTO {table} VALUES ({begin + row}, {row % 2}, {step}, {step}, {', '.join(values)})")


def is_evaluated_by_spark(client: ClientUnder, name: str) -> bool:
    facts = client.explain(name)
    return bool(facts.data["spark_reads"]) and SUB_JOIN not in str(facts)


@in_parts(PARTS)
def test_spark_evaluates_between_tables_what_postgresql_does(
    db: Database, request: pytest.FixtureRequest, nth: int
) -> None:
    zone, queries = "-c TimeZone=Asia/Kathmandu", queries_of(nth)
    create(db)
    with db.connect(options=zone) as connection:
        for name, query in queries.items():
            connection.execute("SELECT pgtrickle.create_stream_table(%s, %s)", (name, query))
    with client_under(EngineName.SPARK, db.dsn, request) as client:
        assert [name for name in queries if not is_evaluated_by_spark(client, name)] == []
        client.tick()
        compare(db, zone, queries)
        # Every query reads some of what changes.
        for change in (
            "UPDATE l SET g = 1 - g, id = id + 1000 WHERE id % 3 = 0",
            "UPDATE r SET g = 1 - g, flag = NOT flag, step = step + 1, moment = CASE WHEN id > 2 THEN moment END",
        ):
            db.execute(change)
            assert [name for name in queries if not is_evaluated_by_spark(client, name)] == []
            client.tick()
            compare(db, zone, queries)
        assert set(client.done_by) == {("FULL", "spark"), ("DIFFERENTIAL", "spark")}
        assert db.value("SELECT count(*) FROM compared") > ROWS
