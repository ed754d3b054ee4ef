"""The client as notebooks and programs hold it: opened in any way, closed for good, and readable."""

import subprocess
import sys
from typing import Any

import psycopg
import pytest
import sqlalchemy
from psycopg.conninfo import conninfo_to_dict

import pytrickle
from pytrickle.errors import ConfigError, InvalidArgument, NotInstalled, PytrickleError
from tests.conftest import Database
from tests.waiting import wait_for


def _sessions(db: Database) -> int:
    own = "starts_with(application_name, 'pytrickle/') AND datname = current_database()"
    return int(db.value(f"SELECT count(*) FROM pg_stat_activity WHERE {own}"))


def _wait_for_the_last_session_to_end(db: Database) -> None:
    """The server takes a moment to notice that a connection is gone."""
    wait_for(lambda: _sessions(db) == 0, "the client's sessions to end")


def _url(db: Database) -> sqlalchemy.URL:
    options = {name: str(value) for name, value in conninfo_to_dict(db.dsn).items()}
    known = {name: options.pop(name, None) for name in ("host", "port", "user", "password", "dbname")}
    return sqlalchemy.URL.create(
        "postgresql+psycopg",
        username=known["user"],
        password=known["password"],
        database=known["dbname"],
        query={**options, "host": known["host"] or "", "port": known["port"] or ""},
    )


@pytest.fixture
def sales(db: Database) -> Database:
    """A source with two stream tables that were refreshed."""
    db.execute("CREATE TABLE sales (id int PRIMARY KEY, region text, amount int)")
    db.execute("INSERT INTO sales VALUES (1, 'north', 2), (2, 'south', 3)")
    with pytrickle.connect(db.dsn) as pt:
        pt.create_stream_table("totals", "SELECT region, sum(amount) AS amount FROM sales GROUP BY region")
        pt.create_stream_table("large", "SELECT * FROM sales WHERE amount > 2")
        pt.tick()
    return db


def test_a_client_works_without_a_block_and_is_closed_for_good(sales: Database) -> None:
    pt = pytrickle.connect(sales.dsn)
    assert pt.refresh("totals").action == "NO_DATA"
    assert _sessions(sales) > 0
    pt.close()
    pt.close()
    _wait_for_the_last_session_to_end(sales)
    for use in (pt.status, pt.tick, lambda: pt.refresh("totals"), lambda: pt.verify("totals")):
        with pytest.raises(InvalidArgument, match="closed"):
            use()
    assert repr(pt) == "<pytrickle.Client: closed>"
    _wait_for_the_last_session_to_end(sales)


def test_a_client_that_cannot_be_opened_leaves_no_connection(empty_db: Database) -> None:
    with pytest.raises(NotInstalled):
        pytrickle.connect(empty_db.dsn)
    _wait_for_the_last_session_to_end(empty_db)


def test_a_client_says_where_it_is_and_never_the_password(sales: Database) -> None:
    options = conninfo_to_dict(sales.dsn)
    with pytrickle.connect(psycopg.conninfo.make_conninfo(sales.dsn, password="s3cr3t")) as pt:
        assert (
            repr(pt)
            == f"<pytrickle.Client: {options['dbname']} on {options['host']}:{options['port']} as {options['user']}>"
        )
        assert "s3cr3t" not in repr(pt) + repr(vars(pt))


def test_a_database_is_named_by_a_url_or_an_engine_of_sqlalchemy(sales: Database) -> None:
    url = _url(sales)
    engines = (
        sqlalchemy.create_engine(url),
        sqlalchemy.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(sales.dsn)),
    )
    for address in (url, url.render_as_string(hide_password=False), *engines):
        with pytrickle.connect(address) as pt:
            assert {row.stream_table for row in pt.stream_tables()} == {"public.totals", "public.large"}
    assert pytrickle.install(engines[0]) == ()
    for engine in engines:
        engine.dispose()


def test_a_login_that_is_refused_to_an_engine_is_a_matter_of_configuration(sales: Database) -> None:
    engine = sqlalchemy.create_engine(_url(sales).set(database="nowhere"))
    with pytest.raises(ConfigError, match="refused the login"):
        pytrickle.connect(engine)


@pytest.mark.parametrize("address", [b"postgresql://me:s3cr3t@db/shop", {"host": "db", "password": "s3cr3t"}, object()])
def test_what_names_no_database_is_refused_and_not_repeated(address: Any) -> None:
    with pytest.raises(ConfigError, match="does not name a database") as refused:
        pytrickle.connect(address)
    assert "s3cr3t" not in f"{refused.value} {refused.value.hint}"


def test_a_value_that_never_reached_the_server_is_not_in_its_log(sales: Database) -> None:
    values: tuple[Any, ...] = ("a\0b", {})
    with pytrickle.connect(sales.dsn) as pt:
        for name in values:
            with pytest.raises(PytrickleError) as refused:
                pt.drop_stream_table(name)
            assert "log" not in str(refused.value.hint)


def test_one_text_is_no_list_of_its_letters(sales: Database) -> None:
    with pytrickle.connect(sales.dsn) as pt:
        for call in (
            lambda: pt.create_watermark_group("g", "orders"),
            lambda: pt.alter_watermark_group("g", "orders"),
            lambda: pt.alter_watermark_group("g", reset="tolerance"),
            lambda: pt.create_refresh_group("g", "totals"),
            lambda: pt.alter_stream_table("totals", reset="tier"),
        ):
            with pytest.raises(InvalidArgument, match="is one text") as refused:
                call()
            assert str(refused.value.hint).startswith("Give ['")


def test_an_engine_of_another_driver_is_refused() -> None:
    engine = sqlalchemy.create_engine("sqlite://")
    with pytest.raises(ConfigError, match="engine on pysqlite") as refused:
        pytrickle.connect(engine)
    assert refused.value.hint and "postgresql+psycopg" in refused.value.hint


def test_all_stream_tables_are_verified_without_a_name_also_beside_a_broken_one(sales: Database) -> None:
    with pytrickle.connect(sales.dsn) as pt:
        assert [(r.stream_table, r.matches) for r in pt.verify()] == [("public.large", True), ("public.totals", True)]
        sales.execute("DROP EVENT TRIGGER pgtrickle_drops")
        sales.execute("DROP TABLE large")
        broken, whole = pt.verify()
        assert (broken.stream_table, broken.matches, whole.matches) == ("public.large", False, True)
        assert broken.error and whole.error is None


def test_results_are_short_in_a_prompt_and_tables_in_a_notebook(sales: Database) -> None:
    with pytrickle.connect(sales.dsn) as pt:
        assert repr(pt.verify("totals")) == (
            "VerifyResult(stream_table='public.totals', matches=True, missing=0, unexpected=0)"
        )
        sales.execute("INSERT INTO sales VALUES (3, '<i>', 4)")
        results = pt.tick()
        assert repr(results).count("\n") == 1 and "error" not in repr(results)
        assert ">public.totals</td>" in results._repr_html_()  # type: ignore[attr-defined]
        status = pt.status()
        assert "<h4>stream_tables</h4>" in status._repr_html_() and "planner_defect" not in repr(status)
        assert pt.explain("totals")._repr_html_().startswith("<pre>")
        assert repr(pt.explain("totals")) == pt.explain("totals").text


def test_what_there_is_can_be_listed_without_spark() -> None:
    program = "import sys, pytrickle; help(pytrickle); print(dir(pytrickle)); print('pyspark' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    *shown, listed, loaded = run.stdout.splitlines()
    assert listed == repr(sorted(pytrickle.__all__)) and loaded == "False"
    assert all(any(name in line for line in shown) for name in ("connect(", "class Client", "install(", "as_of("))


def test_a_process_that_refreshes_by_postgresql_loads_nothing_that_it_does_without(db: Database) -> None:
    """Each of these takes a tenth of the time in which such a process starts, as a scheduler starts many."""
    db.execute("CREATE TABLE orders (id int PRIMARY KEY, customer int); CREATE TABLE customers (id int PRIMARY KEY)")
    db.execute("INSERT INTO customers VALUES (1), (2); INSERT INTO orders VALUES (1, 1), (2, 1), (3, 2)")
    query = "SELECT customer, count(*) AS n FROM orders WHERE customer IN (SELECT id FROM customers) GROUP BY customer"
    program = (
        "import sys, pytrickle\n"
        "with pytrickle.connect(sys.argv[1], engine='postgres') as client:\n"
        "    print(client.refresh('orders_of').action, client.verify('orders_of').matches)\n"
        "print(*sorted({'pyspark', 'pandas', 'pyarrow', 'numpy', 'networkx'} & set(sys.modules)))"
    )
    with pytrickle.connect(db.dsn, engine="postgres") as client:
        client.create_stream_table("orders_of", query)
    for action in ("FULL", "DIFFERENTIAL"):
        run = subprocess.run([sys.executable, "-c", program, db.dsn], check=True, capture_output=True, text=True)
        assert run.stdout.splitlines() == [f"{action} True", ""]
        db.execute("INSERT INTO orders SELECT max(id) + 1, 2 FROM orders; DELETE FROM customers WHERE id = 1")
