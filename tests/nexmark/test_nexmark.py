"""Nexmark's queries equal their stream tables after every round of changes to all tables."""

import pytest

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.nexmark.rounds import check_rounds
from tests.repeats import first


@pytest.mark.parametrize(("seed", "small_delta_rows"), first(0, ((1, 200_000), (2, 0)), then=1))
def test_every_query_equals_its_stream_table_after_every_round(db: Database, seed: int, small_delta_rows: int) -> None:
    with local_client(db.dsn, small_delta_rows=small_delta_rows) as (client, _):
        check_rounds(db, client, seed)
