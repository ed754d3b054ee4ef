"""Averages that Spark computes: the quotient has the digits that PostgreSQL's has."""

from random import Random

import pytest

from tests.conftest import Database
from tests.equivalence.local_engine import RAISE
from tests.equivalence.quotients import expected, given, pairs, quotients
from tests.repeats import first


@pytest.mark.parametrize("seed", first(1, range(8), then=1))
def test_a_quotient_has_the_digits_of_postgresql(db: Database, seed: int) -> None:
    values = pairs(Random(seed), 400)
    with db.connect() as connection:
        connection.execute(RAISE)
        text = quotients(given(values, "bigint")).replace("AS STRING", "AS text")
        found = connection.execute(text.replace("raise_error(", "pg_temp.raise_error(").encode()).fetchall()
        wanted = connection.execute(expected(values).encode()).fetchall()
    both = zip(values, sorted(found), sorted(wanted), strict=True)
    assert [(value, one, other) for value, one, other in both if one != other] == []
