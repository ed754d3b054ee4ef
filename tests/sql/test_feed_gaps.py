"""What a feed does not promise: versions before its columns were there, and what capture may have missed."""

import pytest

import pytrickle
from tests.conftest import Database
from tests.sql.checks import refused
from tests.sql.test_feeds import CHANGES, VERSIONS, advance, feed


def test_another_feed_makes_no_version_readable_from_before_its_columns_were_there(followed: Database) -> None:
    followed.execute("ALTER TABLE t ADD COLUMN extra integer DEFAULT 7")
    followed.execute("UPDATE t SET extra = 99")
    with refused("55000", "Read public.t as a whole", "not_retained"):
        followed.execute(CHANGES, 1, 3)
    followed.execute("SELECT pgtrickle.create_feed('g', 't')")
    with refused("55000", "Read public.t as a whole", "not_retained"):
        followed.execute(CHANGES, 1, 3)
    advance(followed, 4)
    followed.execute("INSERT INTO t VALUES (4, 40)")
    advance(followed, 5)
    assert followed.execute(VERSIONS) == [(4,), (5,)]
    assert followed.execute("SELECT changed FROM pgtrickle.changes_of_versions(NULL::t, 4, 5)") == [("(4,40)",)]


MISSED = [
    "ALTER TABLE t DISABLE TRIGGER USER; INSERT INTO t VALUES (9); ALTER TABLE t ENABLE TRIGGER USER",
    "ALTER TABLE t ALTER a TYPE bigint",
]


@pytest.mark.parametrize("missed", MISSED, ids=["switched off", "rewritten"])
def test_a_tick_cuts_a_feed_off_after_a_gap_though_no_stream_table_reads_the_source(
    followed: Database, missed: str
) -> None:
    followed.execute(missed)
    with pytrickle.connect(followed.dsn, engine="postgres") as client:
        client.tick()
    assert feed(followed, "cut_off_reason") is not None
    with pytrickle.connect(followed.dsn, engine="postgres") as client:
        assert [alert.kind for alert in client.alerts()]
    followed.execute("SELECT pgtrickle.create_feed('g', 't')")
    advance(followed, 4)
    assert followed.execute(VERSIONS) == [(4,)]


@pytest.mark.parametrize("missed", MISSED, ids=["switched off", "rewritten"])
def test_a_new_feed_is_not_cut_off_for_what_was_missed_before_it(followed: Database, missed: str) -> None:
    followed.execute(missed)
    followed.execute("SELECT pgtrickle.create_feed('g', 't')")
    advance(followed, 4)
    followed.execute("INSERT INTO t VALUES (10)")
    advance(followed, 5)
    with pytrickle.connect(followed.dsn, engine="postgres") as client:
        client.tick()
    found = followed.execute("SELECT feed, cut_off_reason IS NULL FROM pgtrickle.feeds() ORDER BY feed")
    assert found == [("f", False), ("g", True)]
    assert followed.execute(CHANGES, 4, 5) == [("insert", 10)]


def test_versions_and_watermarks_in_the_wrong_order_are_told_in_the_words_of_the_caller(followed: Database) -> None:
    with refused("55000", "Read public.t as a whole", "not_retained", "public.t has no version 99"):
        followed.execute("SELECT pgtrickle.changes_of_versions(NULL::t, 99)")
    with refused("22023", "not before 3", "invalid_argument", "'2' is not a valid until"):
        followed.execute("SELECT pgtrickle.changes_of_versions(NULL::t, 3, 2)")
    followed.execute("SET TimeZone = 'UTC'")
    with refused("22023", "not before 2026-01-02 00:00:00", "invalid_argument", "'2026-01-01 00:00:00"):
        followed.execute("SELECT pgtrickle.changes(NULL::t, '2026-01-02'::timestamptz, '2026-01-01'::timestamptz)")
