"""Errors and reasons show no row values to those who may not read them."""

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.equivalence.local_engine import local_client
from tests.security.roles import House, Session, ask

SECRET = "HIDDEN-VALUE"
QUERY = "SELECT id, CAST(note AS integer) AS number FROM notes"
# Where a stranger may look, and what it gets wherever an error stands.
PLACES = (
    "SELECT * FROM pgtrickle.pgt_status()",
    "SELECT * FROM pgtrickle.refresh_history()",
    "SELECT * FROM pgtrickle.refresh_history('public.numbers')",
    "SELECT * FROM pgtrickle.alerts()",
    "SELECT * FROM pgtrickle.dag()",
    "SELECT * FROM pgtrickle.bootstrap_status()",
    "SELECT * FROM pgtrickle.pgt_readable_errors",
    "SELECT * FROM pgtrickle.pgt_readable_history",
)
LEAKY = """
CREATE FUNCTION pg_temp.leak(text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001
AS $$ BEGIN RAISE NOTICE '%', $1; RETURN true; END $$
"""


@pytest.fixture
def failed(house: House) -> House:
    """A stream table whose refreshes fail with an error that quotes a row, differentially and whole."""
    house.etl.execute("CREATE TABLE notes (id integer PRIMARY KEY, note text)")
    house.etl.execute("INSERT INTO notes VALUES (1, '1')")
    house.etl.execute("SELECT pgtrickle.create_stream_table('numbers', %s)", (QUERY,))
    with local_client(make_conninfo(house.db.dsn, user="etl")) as (client, _):
        assert [result.action for result in client.tick()] == ["FULL"]
        house.etl.execute("INSERT INTO notes VALUES (2, %s)", (SECRET,))
        results = [result for _ in range(3) for result in client.tick()]
        assert any(SECRET in str(result.error) for result in results)
        assert not any(SECRET in result.reason for result in results)
    return house


def everything(session: Session) -> str:
    return "\n".join(str(ask(session, place)) for place in PLACES)


def test_a_stranger_sees_the_sqlstate_and_no_value(failed: House) -> None:
    stranger = failed.session("stranger")
    seen = everything(stranger)
    assert SECRET not in seen
    assert "SQLSTATE 22P02; who may read all its sources sees the message" in seen


def test_who_may_read_the_stream_table_alone_is_a_stranger_to_its_sources(failed: House) -> None:
    reader = failed.session("reader", "SELECT ON numbers")
    assert SECRET not in everything(reader)
    for call in (
        "pgtrickle.assert_fresh('public.numbers', '0')",
        "pgtrickle.wait_for('public.numbers', '2026-03-01 12:00Z', '0')",
    ):
        with pytest.raises(psycopg.Error) as error:
            reader.execute(f"SELECT {call}".encode())
        assert SECRET not in f"{error.value} {error.value.diag.message_detail} {error.value.diag.context}"


def test_who_may_read_all_sources_sees_what_went_wrong(failed: House) -> None:
    reader = failed.session("reader", "SELECT ON notes")
    assert SECRET in str(ask(reader, "SELECT last_error FROM pgtrickle.pgt_status()"))
    assert SECRET in str(ask(reader, "SELECT error FROM pgtrickle.refresh_history()"))
    assert SECRET in everything(failed.db.connect(user="etl"))


def test_policies_on_a_source_hide_its_errors_too(failed: House) -> None:
    reader = failed.session("reader", "SELECT ON notes")
    failed.etl.execute("ALTER TABLE notes ENABLE ROW LEVEL SECURITY")
    assert SECRET not in everything(reader)


def test_a_stream_table_over_another_shows_errors_by_the_sources_below_both(failed: House) -> None:
    failed.etl.execute("SELECT pgtrickle.create_stream_table('above', 'SELECT number FROM numbers')")
    failed.db.execute("UPDATE pgtrickle.pgt_stream_tables SET last_error = %s WHERE pgt_name = 'above'", SECRET)
    reader = failed.session("reader", "SELECT ON numbers, above")
    assert SECRET not in everything(reader)
    failed.db.execute("GRANT SELECT ON notes TO reader")
    assert SECRET in str(
        ask(reader, "SELECT last_error FROM pgtrickle.pgt_status() WHERE stream_table = 'public.above'")
    )


def test_a_leaky_condition_sees_no_more_than_the_view_shows(failed: House) -> None:
    stranger = failed.session("stranger")
    notices: list[str] = []
    stranger.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
    stranger.execute(LEAKY.encode())
    for view, column in (("pgt_readable_errors", "last_error"), ("pgt_readable_history", "error")):
        assert ask(stranger, f"SELECT * FROM pgtrickle.{view} WHERE pg_temp.leak({column})") == []
    assert notices == []


def test_reasons_kept_by_earlier_refreshes_are_never_values(failed: House) -> None:
    kept = failed.db.execute("SELECT reason FROM pgtrickle.pgt_refresh_history")
    told = failed.db.execute("SELECT reinitialize_reason, last_skip_reason FROM pgtrickle.pgt_stream_tables")
    assert SECRET not in f"{kept}{told}"


def test_a_stranger_has_no_right_on_the_tables_behind(failed: House) -> None:
    stranger = failed.session("stranger")
    for table in ("pgt_stream_tables", "pgt_refresh_history", "pgt_late_rows", "pgt_readable_tables"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            stranger.execute(f"SELECT * FROM pgtrickle.{table}".encode())
