"""A tiny TPC-H database that a test fills and then changes round by round, all eight tables in every round."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from random import Random
from typing import Any

import psycopg

from tests.tpch import rows
from tests.tpch.rows import Row

HERE = Path(__file__).parent
QUERIES = {path.stem: path.read_text() for path in sorted((HERE / "queries").glob("*.sql"))}
Key = tuple[int, ...]

SUPPLIERS, PARTS, CUSTOMERS, ORDERS = 24, 60, 90, 600
SUPPLIERS_OF_A_PART = 4


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its columns, the positions of its primary key, and how many rows a round updates."""

    name: str
    columns: tuple[str, ...]
    key: tuple[int, ...]
    updates: int

    def key_of(self, row: Row) -> Key:
        """Return the primary key of a row."""
        return tuple(row[at] for at in self.key)  # type: ignore[misc]


def _table(name: str, prefix: str, columns: str, updates: int, key: tuple[int, ...] = (0,)) -> Table:
    return Table(name, tuple(f"{prefix}_{column}" for column in columns.split()), key, updates)


TABLES = {
    table.name: table
    for table in (
        _table("region", "r", "regionkey name comment", 1),
        _table("nation", "n", "nationkey name regionkey comment", 2),
        _table("supplier", "s", "suppkey name address nationkey phone acctbal comment", 3),
        _table("part", "p", "partkey name mfgr brand type size container retailprice comment", 6),
        _table("partsupp", "ps", "partkey suppkey availqty supplycost comment", 12, (0, 1)),
        _table("customer", "c", "custkey name address nationkey phone acctbal mktsegment comment", 8),
        _table(
            "orders",
            "o",
            "orderkey custkey orderstatus totalprice orderdate orderpriority clerk shippriority comment",
            30,
        ),
        _table(
            "lineitem",
            "l",
            "orderkey partkey suppkey linenumber quantity extendedprice discount tax returnflag linestatus"
            " shipdate commitdate receiptdate shipinstruct shipmode comment",
            80,
            (0, 3),
        ),
    )
}


@dataclass(slots=True)
class Shop:
    """The rows as they are in the database; every change goes to both.

    `gone` are the keys that rows had once. Most new rows take one of them, so that rows that refer to a deleted row
    find a partner again; regions and nations, which the queries name, all come back in the next round.
    """

    connection: psycopg.Connection[Any]
    rng: Random
    stored: dict[str, dict[Key, Row]] = field(default_factory=lambda: {name: {} for name in TABLES})
    gone: dict[str, list[Key]] = field(default_factory=lambda: {name: [] for name in TABLES})
    highest: int = ORDERS

    def create(self) -> None:
        """Create and fill the tables."""
        self.connection.execute((HERE / "schema.sql").read_text().encode())
        self.connection.execute((HERE / "keys.sql").read_text().encode())
        for name, drawn in self._initial():
            self._insert(name, drawn)
        self.connection.execute("ANALYZE")

    def change(self, number: int) -> None:
        """Delete from, update and insert into every table, in one transaction; all rounds are alike."""
        with self.connection.transaction():
            back = {name: list(self.gone[name]) for name in ("region", "nation")}
            for name, table in TABLES.items():
                self._delete(name, max(1, table.updates // 2))
            for name, table in TABLES.items():
                self._update(name, table.updates)
            for name, table in TABLES.items():
                returning = back.get(name, [])
                for key in returning:
                    self._insert(name, [self._draw(name, key)])
                for _ in range(0 if returning else max(1, table.updates // 2)):
                    self._insert(name, [self._draw(name, self._new_key(name))])

    def _initial(self) -> Iterator[tuple[str, list[Row]]]:
        """Draw the first rows of one table after the other; what is drawn later refers to what is stored."""
        suppliers = range(1, SUPPLIERS + 1)
        counts = {"supplier": SUPPLIERS, "part": PARTS, "customer": CUSTOMERS, "orders": ORDERS}
        keys: dict[str, Callable[[], list[Key]]] = {
            "region": lambda: [(key,) for key in range(len(rows.REGIONS))],
            "nation": lambda: [(key,) for key in range(len(rows.NATIONS))],
            "partsupp": lambda: [
                (part, supplier)
                for part in range(1, PARTS + 1)
                for supplier in self.rng.sample(suppliers, SUPPLIERS_OF_A_PART)
            ],
            "lineitem": lambda: [
                (key, line) for key in range(1, ORDERS + 1) for line in range(1, self.rng.randint(2, 9))
            ],
        }
        for name in TABLES:
            wanted = keys[name]() if name in keys else [(key,) for key in range(1, counts[name] + 1)]
            yield name, [self._draw(name, key) for key in wanted]

    def _draw(self, name: str, key: Key) -> Row:
        match name:
            case "region":
                return rows.region(*key)
            case "partsupp":
                return rows.partsupp(self.rng, key[0], key[1])
            case "orders":
                buyers = [each for (each,) in self.stored["customer"] if each % 3]
                return rows.order(self.rng, key[0], self.rng.choice(buyers))
            case "lineitem":
                order = self.stored["orders"].get(key[:1])
                placed = order[4] if order else date(1995, 1, 1)
                stock = self._pick("partsupp")
                return rows.lineitem(self.rng, (key[0], key[1]), (stock[0], stock[1]), placed)  # type: ignore[arg-type]
            case _:
                draw: Callable[[Random, int], Row] = getattr(rows, name)
                return draw(self.rng, key[0])

    def _pick(self, name: str) -> Key:
        return self.rng.choice(list(self.stored[name]))

    def _new_key(self, name: str) -> Key:
        """Return a key that no row has."""
        if name in ("partsupp", "lineitem"):
            return self._new_pair(name)
        if self.gone[name] and self.rng.random() < 0.8:
            return self.rng.choice(self.gone[name])
        self.highest += 1
        return (self.highest,)

    def _new_pair(self, name: str) -> Key:
        while True:
            if name == "partsupp":
                key = (*self._pick("part"), *self._pick("supplier"))
            else:
                key = (*self._pick("orders"), self.rng.randint(1, 9))
            if key not in self.stored[name]:
                return key

    def _insert(self, name: str, drawn: list[Row]) -> None:
        table = TABLES[name]
        places = ", ".join(["%s"] * len(table.columns))
        with self.connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {name} VALUES ({places})".encode(), drawn)
        for row in drawn:
            self._store(name, row)

    def _delete(self, name: str, count: int) -> None:
        for key in self.rng.sample(list(self.stored[name]), count):
            self._run(f"DELETE FROM {name} WHERE {self._is(name)}", key)
            self._forget(name, key)

    def _update(self, name: str, count: int) -> None:
        for key in self.rng.sample(list(self.stored[name]), count):
            new = self._changed(name, key, self.stored[name][key])
            assignments = ", ".join(f"{column} = %s" for column in TABLES[name].columns)
            self._run(f"UPDATE {name} SET {assignments} WHERE {self._is(name)}", (*new, *key))
            self._forget(name, key)
            self._store(name, new)

    def _store(self, name: str, row: Row) -> None:
        key = TABLES[name].key_of(row)
        self.stored[name][key] = row
        self.gone[name] = [each for each in self.gone[name] if each != key]

    def _forget(self, name: str, key: Key) -> None:
        del self.stored[name][key]
        self.gone[name].append(key)

    def _changed(self, name: str, key: Key, old: Row) -> Row:
        """Return the row with some columns drawn anew, and in one of five cases with another key."""
        table = TABLES[name]
        if name == "region":
            return *old[:2], f"changed {self.rng.random()}"
        if name == "nation":
            own = rows.NATIONS[key[0]][1] if key[0] < len(rows.NATIONS) else 0
            region = own if own != old[2] else self.rng.randrange(len(rows.REGIONS))
            return *old[:2], region, f"changed {self.rng.random()}"
        rekeyed = self._new_key(name) if self.rng.random() < 0.2 else key
        drawn = self._draw(name, rekeyed)
        mixed = [new if self.rng.random() < 0.4 else before for new, before in zip(drawn, old, strict=True)]
        for at in table.key:
            mixed[at] = drawn[at]
        return tuple(mixed)

    def _is(self, name: str) -> str:
        return " AND ".join(f"{TABLES[name].columns[at]} = %s" for at in TABLES[name].key)

    def _run(self, statement: str, values: tuple[object, ...]) -> None:
        assert self.connection.execute(statement.encode(), values).rowcount == 1, (statement, values)
