"""Under the engine spark every refresh says what PostgreSQL computed, and that is on the list of `tests.engines`."""

from collections.abc import Iterator

import pytest

from pytrickle.plan import placement
from pytrickle.plan.limits import IN_ROUNDS, NO_TABLE, WITHIN_OTHERS
from tests.acceptance.companies import CONTROL, INHERITED, SCHEMA
from tests.conftest import Database
from tests.engines import ClientUnder, double_under
from tests.equivalence.grammar import CORE, WHOLE
from tests.equivalence.runs import Size, disable_jit, play
from tests.nexmark.house import QUERIES as NEXMARK
from tests.nexmark.rounds import check_rounds as check_nexmark
from tests.repeats import first, in_parts
from tests.tpch.rounds import check_rounds as check_tpch
from tests.tpch.shop import QUERIES as TPCH
from tests.tpch.test_tpch_placement import LEFT

TABLES = """
CREATE TABLE parents (id int PRIMARY KEY, up int);
CREATE TABLE names (id int PRIMARY KEY, name text);
INSERT INTO parents SELECT i, i / 2 FROM generate_series(1, 20) AS i;
INSERT INTO names SELECT i, 'name ' || i FROM generate_series(1, 20) AS i;
"""
JOINED = "SELECT p.id, n.name FROM parents p JOIN names n ON n.id = p.up"


@pytest.fixture
def client(db: Database) -> Iterator[ClientUnder]:
    disable_jit(db)
    with double_under(db.dsn) as client:
        yield client


@pytest.mark.long
@in_parts(2)
def test_of_tpch_postgresql_computes_what_is_named(db: Database, client: ClientUnder, nth: int) -> None:
    names = list(TPCH)[nth::2]
    check_tpch(db, client, 6, names)
    assert client.left == {(name, why) for name, why in LEFT if name.removeprefix("public.") in names}


@pytest.mark.long
@in_parts(2)
def test_of_nexmark_postgresql_computes_what_is_on_the_list(db: Database, client: ClientUnder, nth: int) -> None:
    check_nexmark(db, client, 1, list(NEXMARK)[nth::2])


@pytest.mark.long
@pytest.mark.parametrize("seed", first(1, range(3100, 3108), then=1))
@pytest.mark.parametrize("grammar", ["core", "whole"])
def test_of_random_queries_postgresql_computes_what_is_on_the_list(
    db: Database, client: ClientUnder, grammar: str, seed: int
) -> None:
    play(db, client, seed, {"core": CORE, "whole": WHOLE}[grammar], Size(queries=10, batches=2))


def create(db: Database) -> None:
    with db.connect() as connection:
        connection.execute(TABLES)
        connection.execute("ANALYZE")


def history(db: Database, name: str) -> list[tuple[str, str]]:
    shown = "SELECT engine, reason FROM pgtrickle.refresh_history(%s) ORDER BY refresh_id"
    return [(engine, reason) for engine, reason in db.execute(shown, name)]


def test_where_spark_has_nothing_to_join_the_history_says_that_it_handed_on_the_rows(
    db: Database, client: ClientUnder
) -> None:
    create(db)
    client.create_stream_table("copied", "SELECT id, up FROM parents WHERE up > 1")
    client.create_stream_table("joined", JOINED)
    client.tick()
    db.execute("UPDATE parents SET up = up + 1")
    client.tick()
    (_, whole), (_, delta) = history(db, "copied")
    assert whole == "first load"
    handed_on = "PostgreSQL computes every part of it, Spark hands on the rows: only buffered changes are read"
    assert delta == f"40 changed rows; {handed_on}"
    assert history(db, "joined") == [("spark", "first load"), ("spark", "40 changed rows")]


def test_what_reads_rows_of_its_own_transaction_is_postgresql_s_and_says_so(db: Database, client: ClientUnder) -> None:
    create(db)
    client.create_stream_table("joined", JOINED)
    client.create_stream_table("above", "SELECT j.name, p.up FROM joined j JOIN parents p ON p.id = j.id")
    db.execute("SELECT pgtrickle.create_refresh_group('both', ARRAY['joined', 'above'])")
    client.tick()
    db.execute("UPDATE parents SET up = up + 1")
    client.tick()
    assert history(db, "joined")[-1] == ("spark", "40 changed rows")
    ((engine, reason),) = history(db, "above")[1:]
    assert engine == "postgres" and reason.endswith(f" changed rows; by PostgreSQL, {WITHIN_OTHERS}")
    assert client.left == {("public.above", WITHIN_OTHERS)}


def test_what_needs_a_staging_table_within_a_unit_is_postgresql_s_and_says_so(
    db: Database, client: ClientUnder, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(db)
    client.create_stream_table("joined", JOINED)
    client.create_stream_table("other", JOINED)
    db.execute("SELECT pgtrickle.create_refresh_group('both', ARRAY['joined', 'other'])")
    client.tick()
    db.execute("UPDATE parents SET up = up + 1")
    monkeypatch.setattr(placement, "BULK_ROWS", 0)
    with pytest.raises(AssertionError, match=f"by postgres, 40 changed rows; by PostgreSQL, {NO_TABLE}"):
        client.tick()


def test_a_cycle_is_postgresql_s_and_says_so(db: Database, client: ClientUnder) -> None:
    with db.connect() as connection:
        connection.execute(SCHEMA)
    client.create_stream_table("control", "SELECT DISTINCT company, person FROM owners", allow_circular=True)
    client.create_stream_table("inherited", INHERITED, allow_circular=True)
    client.alter_stream_table("control", query=CONTROL)
    client.tick()
    assert client.left == {("public.control", IN_ROUNDS), ("public.inherited", IN_ROUNDS)}
