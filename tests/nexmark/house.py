"""A small auction house: Nexmark's tables, filled and then changed round by round."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import psycopg

HERE = Path(__file__).parent
QUERIES = {path.stem: path.read_text() for path in sorted((HERE / "queries").glob("*.sql"))}

PERSONS, AUCTIONS, BIDS = 60, 100, 300
BEGIN = datetime(2026, 1, 1, 5, 30)
CHANNELS = ("apple", "Google", "facebook", "Baidu", "channel-7", "channel-8")
STATES = (("Portland", "OR"), ("Boise", "ID"), ("Palo Alto", "CA"), ("Seattle", "WA"), ("Phoenix", "AZ"))

Row = tuple[object, ...]


@dataclass(slots=True)
class House:
    """Persons, auctions and bids of some hours; keys grow, and few prices and times make for many ties."""

    connection: psycopg.Connection[Any]
    rng: Random
    persons: int = 0
    auctions: int = 0

    def create(self) -> None:
        """Create and fill the tables."""
        self.connection.execute((HERE / "schema.sql").read_text().encode())
        self._insert("side_input", [(key, f"value {key}") for key in range(4)])
        self._grow(PERSONS, AUCTIONS, BIDS)
        self.connection.execute("ANALYZE")

    def change(self, number: int) -> None:
        """Insert into, update and delete from every table, in one transaction."""
        statements = (HERE / "changes.sql").read_text()
        with self.connection.transaction():
            self.connection.execute(statements.replace(":round", str(number)).encode())
            self._grow(3, 5, 60)

    def _grow(self, persons: int, auctions: int, bids: int) -> None:
        self._insert("person", [self._person() for _ in range(persons)])
        self._insert("auction", [self._auction() for _ in range(auctions)])
        drawn = [self._bid() for _ in range(bids)]
        # Every tenth bid comes twice.
        self._insert("bid", drawn + drawn[::10])

    def _person(self) -> Row:
        self.persons += 1
        name, (city, state) = f"person {self.rng.randrange(20)}", self.rng.choice(STATES)
        return self.persons, name, f"{name}@example.com", "1234", city, state, self._time(), self._extra()

    def _auction(self) -> Row:
        self.auctions += 1
        opened, first = self._time(), self.rng.randrange(1, 200)
        closes = opened + timedelta(minutes=self.rng.choice((20, 60, 180)))
        terms = first, first + self.rng.randrange(700), opened, closes
        return self.auctions, "item", "description", *terms, *self._seller_and_category(), self._extra()

    def _seller_and_category(self) -> tuple[int, int]:
        return self.rng.randint(1, self.persons + 2), self.rng.randint(10, 13)

    def _bid(self) -> Row:
        auction = min(self.rng.randint(1, self.auctions + 2), self.rng.randint(1, self.auctions + 2))
        channel = self.rng.choice(CHANNELS)
        query = f"?channel_id={self.rng.randrange(5)}" if self.rng.random() < 0.5 else ""
        url = f"https://www.nexmark.com/{channel}/item/page.html{query}"
        price = self.rng.randrange(10, 1000, 10)
        return auction, self.rng.randint(1, self.persons), price, channel, url, self._time(), self._extra()

    def _time(self) -> datetime:
        return BEGIN + timedelta(seconds=30 * self.rng.randrange(480))

    def _extra(self) -> str:
        return self.rng.choice(("abc", "cc", "", "ccc abc"))

    def _insert(self, table: str, drawn: list[Row]) -> None:
        places = ", ".join(["%s"] * len(drawn[0]))
        with self.connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {table} VALUES ({places})".encode(), drawn)
