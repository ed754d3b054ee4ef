"""Arguments that mean nothing: one sentence, a hint, and nothing changed."""

import psycopg
import pytest

from pytrickle.database import translate_errors
from pytrickle.errors import InvalidArgument
from tests.conftest import Database


@pytest.mark.parametrize(
    ("call", "sentence", "hint"),
    [
        ("alerts(max_rows => -1)", "max_rows", "0 or more"),
        ("refresh_history(max_rows => -1)", "max_rows", "0 or more"),
        ("refresh_timeline(max_rows => -1)", "max_rows", "0 or more"),
        ("get_refresh_history('copied', max_rows => -1)", "max_rows", "0 or more"),
        ("late_rows(max_rows => -1)", "max_rows", "0 or more"),
        ("late_changes(max_rows => -1)", "max_rows", "0 or more"),
        ("trim_history('-1 day')", "retention", "zero or more"),
        ("trim_history(NULL)", "retention", "zero or more"),
        ("refresh_if_stale('copied', '-1 day')", "p_max_age", "zero or more"),
        ("set_stream_table_sla('copied', '-1 day')", "sla", "zero or more"),
        ("set_stream_table_sla('copied', NULL)", "sla", "zero or more"),
        ("drain(-1)", "timeout_s", "0 seconds or more"),
        ("wait_for('copied', 'soon')", "watermark", "2026-03-01"),
        ("create_watermark_group('both', '{orders}', 'some')", "tolerance", "30 seconds"),
    ],
)
def test_an_argument_that_means_nothing_is_refused_with_what_to_give(
    db: Database, call: str, sentence: str, hint: str
) -> None:
    db.execute("CREATE TABLE orders (id integer)")
    db.execute("SELECT pgtrickle.create_stream_table('copied', 'SELECT id FROM orders')")
    with pytest.raises(InvalidArgument, match=sentence) as failure, translate_errors():
        db.execute(f"SELECT * FROM pgtrickle.{call}")
    assert hint in str(failure.value.hint)
    assert db.execute("SELECT tier FROM pgtrickle.pgt_stream_tables") == [("hot",)]


def test_reports_may_have_no_rows_or_all(db: Database) -> None:
    reader = db.create_role("reader")
    with db.connect(user=reader) as connection:
        for limit in ("0", "NULL"):
            for report in ("alerts", "refresh_history", "refresh_timeline", "late_rows", "late_changes"):
                found = connection.execute(f"SELECT * FROM pgtrickle.{report}(max_rows => {limit})".encode())
                assert isinstance(found, psycopg.Cursor) and found.fetchall() == []
