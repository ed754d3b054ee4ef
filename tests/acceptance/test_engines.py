"""Who computes: with the engine postgres no Java is started, and results and the history say who did it."""

import pytest

import pytrickle
from pytrickle.errors import ConfigError, InvalidArgument, JavaMissing
from tests.acceptance.conftest import JOIN, SHOP
from tests.conftest import Database


def test_the_engine_postgres_needs_no_java_however_much_has_changed(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with db.connect() as connection:
        connection.execute(SHOP)
    with pytrickle.connect(db.dsn, engine="postgres", small_delta_rows=0, direct_delta_rows=0) as client:
        client.create_stream_table("joined", JOIN)
        client.create_stream_table("totals", "SELECT customer, sum(amount) AS amount FROM orders GROUP BY customer")
        assert {(result.action, result.engine) for result in client.tick()} == {("FULL", "postgres")}
        db.execute("INSERT INTO orders VALUES (1, 1, 10), (2, 2, 20)")
        db.execute("INSERT INTO order_lines VALUES (1, 1, 5)")
        assert {(result.action, result.engine) for result in client.tick()} == {("DIFFERENTIAL", "postgres")}
        assert all(found.matches for found in client.verify())
        assert client.refresh("joined").engine is None, "there was nothing to compute"
        assert [row.engine for row in client.history()] == ["postgres"] * 4
    assert set(db.execute("TABLE totals")) == {(1, 10), (2, 20)}


def test_an_engine_that_does_not_exist_is_refused_by_name(db: Database) -> None:
    with pytest.raises(ConfigError, match="There is no engine 'duckdb'") as failure:
        pytrickle.connect(db.dsn, engine="duckdb")
    assert failure.value.hint == "The engines are auto, spark, postgres."


def test_small_tables_are_loaded_without_java(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with db.connect() as connection:
        connection.execute(SHOP)
    with pytrickle.connect(db.dsn) as client:
        client.create_stream_table("joined", JOIN)
        (result,) = client.tick()
        assert (result.action, result.engine, result.error) == ("FULL", "postgres", None)
        explained = client.explain("joined")
        assert explained.data["engine"] == "postgres"
        assert "engine: postgres" in str(explained) and "at most 1,000,000" in str(explained)


def test_few_rows_of_large_tables_are_loaded_without_java(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    db.execute("CREATE TABLE t (id int PRIMARY KEY, k int)")
    db.execute("INSERT INTO t SELECT n, n % 100 FROM generate_series(1, 20000) AS n; ANALYZE t")
    few = "SELECT id, k FROM t WHERE k = 7"
    with pytrickle.connect(db.dsn, direct_delta_rows=2_000) as client:
        client.create_stream_table("differential", few)
        client.create_stream_table("whole", few, refresh_mode="FULL")
        assert {(each.action, each.engine, each.error) for each in client.tick()} == {("FULL", "postgres", None)}
        db.execute("UPDATE t SET k = 7 WHERE id = 1")
        actions = {each.stream_table: (each.action, each.engine) for each in client.tick()}
        assert actions == {"public.differential": ("DIFFERENTIAL", "postgres"), "public.whole": ("FULL", "postgres")}
        assert all(found.matches for found in client.verify())
        assert client.explain(query=few).data["after"][-1]["engine"] == "postgres"
        client.create_stream_table("many", "SELECT id, k FROM t")
        assert client.explain(query="SELECT id, k FROM t").data["after"][-1]["engine"] == "spark"
        with pytest.raises(JavaMissing):
            client.refresh("many")


def test_the_engine_spark_says_at_once_what_is_missing(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is nobody's fault but the machine's: no stream table is booked as failed."""
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    db.execute("CREATE TABLE t (id int PRIMARY KEY)")
    with pytrickle.connect(db.dsn, engine="spark") as client:
        for name in ("one", "two"):
            client.create_stream_table(name, "SELECT id FROM t")
        with pytest.raises(JavaMissing) as failure:
            client.tick()
        assert "JAVA_HOME" in failure.value.hint
        with pytest.raises(JavaMissing):
            client.refresh("one")
        assert client.history() == ()
        assert {row.consecutive_failures for row in client.status().stream_tables} == {0}
    with pytrickle.connect(db.dsn, engine="postgres") as client:
        assert {result.action for result in client.tick()} == {"FULL"}
    with pytrickle.connect(db.dsn, engine="spark") as client:
        assert {result.action for result in client.tick()} == {"NO_DATA"}, "what is quiet needs no Java"


def test_a_stream_table_has_an_engine_of_its_own(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    db.execute("CREATE TABLE t (id int PRIMARY KEY)")
    with pytrickle.connect(db.dsn, direct_delta_rows=0, small_delta_rows=0) as client:
        client.create_stream_table("theirs", "SELECT id FROM t", engine="postgres")
        (result,) = client.tick()
        assert (result.action, result.engine) == ("FULL", "postgres")
        assert "the stream table's engine is postgres" in str(client.explain("theirs"))
        (row,) = client.status().stream_tables
        assert (row.engine, row.last_engine) == ("postgres", "postgres")
        client.alter_stream_table("theirs", engine="spark")
        assert client.explain("theirs").data["engine"] == "spark"
        with pytest.raises(InvalidArgument, match="duckdb"):
            client.alter_stream_table("theirs", engine="duckdb")
    with pytrickle.connect(db.dsn, engine="postgres") as client:
        db.execute("INSERT INTO t VALUES (1)")
        assert "although the stream table asks for spark" in str(client.explain("theirs"))
        assert [result.engine for result in client.tick()] == ["postgres"], "this setting never starts Java"
        client.alter_stream_table("theirs", reset=["engine"])
        assert client.status().stream_tables[0].engine == "auto"


def test_tables_that_postgresql_computes_need_no_java_where_the_others_do(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    db.execute("CREATE TABLE t (id int PRIMARY KEY)")
    with pytrickle.connect(db.dsn, engine="spark") as client:
        client.create_stream_table("theirs", "SELECT id FROM t", engine="postgres")
        assert [(result.action, result.engine) for result in client.tick()] == [("FULL", "postgres")]
        client.create_stream_table("ours", "SELECT id FROM t")
        with pytest.raises(JavaMissing):
            client.tick()
