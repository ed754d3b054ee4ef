"""Who computes: with the engine postgres no Java is started, and results and the history say who did it."""

import pytest

import pytrickle
from pytrickle.errors import ConfigError
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
