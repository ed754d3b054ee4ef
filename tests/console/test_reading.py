"""How the console reads its database: only that, with a time limit, by the rights of its role, after an outage too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest
from psycopg.conninfo import make_conninfo
from sqlalchemy import text
from starlette.testclient import TestClient

from pytrickle.catalog import read_reports
from pytrickle.console import database as reading
from pytrickle.console.database import Database as Read
from pytrickle.console.database import Watch
from pytrickle.console.freshness import freshness
from pytrickle.database.engine import engine
from pytrickle.errors import ConfigError, DatabaseError, StatementTimeout
from tests.conftest import Database
from tests.console.conftest import console
from tests.console.test_pages import text_of

OTHERS = ("/groups", "/sources", "/source?name=public.orders", "/refreshes", "/late", "/alerts", "/feeds")
FRESHNESS = """
DROP FUNCTION pgtrickle.freshness();
CREATE FUNCTION pgtrickle.freshness() RETURNS TABLE (stream_table text, target interval, p50 interval, p95 interval,
    p99 interval, status text, lag interval, behind_since timestamptz, clock text, waiting_for_watermark interval,
    at_gate interval, before_schedule interval, in_queue interval, in_refresh interval, inherited interval,
    stopped interval, cause text, culprit text, reason text, pgt_id bigint) LANGUAGE sql AS $$
VALUES ('public.counts', interval '1 min', NULL::interval, NULL::interval, NULL::interval, 'late', interval '100 s',
    now() - interval '100 s', 'commit', interval '75 s', interval '0', interval '0', interval '20 s', interval '0',
    interval '5 s', interval '0', 'watermark', 'public.lines', 'it waits for public.lines', 1::bigint) $$
"""


@pytest.fixture
def counts(db: Database, monkeypatch: pytest.MonkeyPatch) -> Database:
    """A database with one stream table, at which each page looks anew."""
    monkeypatch.setattr(reading, "REST", 0.0)
    monkeypatch.setattr(reading, "RESTING", 0)
    db.execute("CREATE TABLE orders (id int)")
    db.execute("SELECT pgtrickle.create_stream_table('counts', 'SELECT count(*) FROM orders')")
    return db


@pytest.fixture
def site(counts: Database) -> Iterator[TestClient]:
    with console(counts.dsn) as opened:
        yield opened


def test_an_outage_is_one_sentence_and_ends_by_itself(counts: Database, site: TestClient) -> None:
    other = counts.dsn.replace(counts.dsn.rpartition("/")[2], "postgres")
    before = site.get("/state").json()
    name = counts.value("SELECT current_database()")
    counts.close()
    with Database(other, counts.version).connect() as administrator:
        administrator.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false".encode())
        administrator.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
        for path in ("/", "/table?name=public.counts", "/refreshes"):
            answer = site.get(path)
            assert answer.status_code == 503
            assert re.findall("<h1>(.*)</h1>", answer.text) == [
                "The database cannot be reached. This page comes back by itself."
            ]
            # Without a script nothing else would say so, or bring the page back.
            assert re.findall('<p class="pulse (.*?)".*<span>(.*?)</span>', answer.text) == [("lost", "waiting")]
            assert '<noscript><meta http-equiv="refresh"' in answer.text
            assert not re.search(rf"FATAL|postgres@|{name}|port", text_of(answer.text))
        assert site.get("/state").status_code == 503
        administrator.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true".encode())
    assert site.get("/state").json() == before
    assert "Plan of the next refresh FULL" in text_of(site.get("/table?name=public.counts").text)


def test_the_mark_changes_with_what_is_to_be_seen_and_not_with_age(counts: Database, site: TestClient) -> None:
    counts.execute("UPDATE pgtrickle.pgt_stream_tables SET data_timestamp = now(), last_refresh_at = now()")
    marks = [site.get("/state").json()["mark"] for _ in range(3)]
    counts.execute("SELECT pgtrickle.advance_watermark('orders', '2026-01-01 12:00Z')")
    marks.append(site.get("/state").json()["mark"])
    assert marks[0] == marks[1] == marks[2] != marks[3]
    page = site.get("/").text
    assert f'data-mark="{marks[3]}"' in page and "2026-01-01 12:00:00" in page


def test_many_browsers_look_at_the_database_once(counts: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "REST", 60.0)
    looks: list[object] = []
    status = read_reports.status

    def counted(connection: object) -> object:
        looks.append(connection)
        return status(connection)  # type: ignore[arg-type]

    monkeypatch.setattr(read_reports, "status", counted)
    read = Read(counts.dsn)
    watch = Watch(read)
    assert len({watch.look().mark for _ in range(5)}) == len(looks) == 1
    read.close()


def test_nothing_can_be_written_and_nothing_runs_for_long(counts: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LIMIT", timedelta(milliseconds=50))
    read = Read(make_conninfo(counts.dsn, options="-c work_mem=1234kB"))
    with pytest.raises(DatabaseError, match="read-only"):
        read.read(lambda c: c.execute(text("INSERT INTO public.orders VALUES (1)")))
    with pytest.raises(StatementTimeout):
        read.read(lambda c: c.execute(text("SELECT pg_sleep(5)")))
    assert read.read(lambda c: c.execute(text("SHOW work_mem")).scalar_one()) == "1234kB"
    with pytest.raises(ConfigError, match="malformed"):
        Read("host=x port")
    read.close()


def test_a_role_without_rights_sees_the_state_and_is_told_what_it_may_not_see(counts: Database) -> None:
    counts.create_role("onlooker")
    with console(make_conninfo(counts.dsn, user="onlooker")) as site:
        assert "seen as role onlooker" in text_of(site.get("/").text)
        page = text_of(site.get("/table?name=public.counts").text)
        assert "initializing" in page and "The role of this console may not see this." in page
        assert {site.get(path).status_code for path in OTHERS} == {200}


def test_freshness_is_shown_as_the_catalog_splits_it(counts: Database, site: TestClient) -> None:
    name = "/table?name=public.counts"
    with counts.connect() as connection:
        connection.execute(FRESHNESS)
    page = site.get(name).text
    assert "late 1 min 40 s behind It waits for public.lines." in text_of(page)
    split = re.findall(r'<rect class="is-(\w+)" x="([\d.]+)" width="([\d.]+)" height="10">', page)
    assert split == [("watermark", "0.00", "75.00"), ("queue", "75.00", "20.00"), ("inherited", "95.00", "5.00")]
    assert "it waits for public.lines" in text_of(site.get("/").text)


def test_a_catalog_that_tells_no_freshness_is_not_asked(counts: Database) -> None:
    pool = engine(counts.dsn)
    with pool.connect() as connection:
        connection.execute(text("DROP FUNCTION pgtrickle.freshness()"))
        assert freshness(connection) == {}
    pool.dispose()
