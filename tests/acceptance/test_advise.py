"""Advice from the history that real advances left behind; and infinity, as any driver writes it."""

from __future__ import annotations

import json
from datetime import timedelta

import psycopg
import pytest
import sqlalchemy
from typer.testing import CliRunner

import pytrickle
from pytrickle.cli import app
from pytrickle.errors import CatalogError, TooFewObservations
from pytrickle.watermarks import INFINITY, Subject, bounded_file, parameter
from tests.conftest import Database

# The server's clock decides when an advance was made; here they lie a known time apart.
SPACED = """
    UPDATE pgtrickle.pgt_watermark_history h
    SET advanced_at = '2026-03-02 12:00Z'::timestamptz + ordinal * interval '100 s'
    FROM (SELECT history_id, row_number() OVER (ORDER BY history_id) AS ordinal FROM pgtrickle.pgt_watermark_history) n
    WHERE h.history_id = n.history_id
"""


@pytest.fixture(autouse=True)
def any_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a few advances, whose distances can be told, be enough."""
    monkeypatch.setattr("pytrickle.watermarks.advice.advise.LEAST", 1)


@pytest.fixture
def shop(db: Database) -> Database:
    for source in ("orders", "lines", "silent"):
        db.execute(f"CREATE TABLE {source} (id int)")
    db.execute("SELECT pgtrickle.create_watermark_group('pipeline', ARRAY['orders', 'lines'])")
    db.execute("SELECT pgtrickle.create_watermark_group('waiting', ARRAY['orders', 'silent'])")
    for source, minute in (("orders", 0), ("lines", 0), ("orders", 5), ("lines", 5), ("orders", 6)):
        moment = f"'2026-03-02 12:00Z'::timestamptz + {minute} * interval '1 min'"
        db.execute(f"SELECT pgtrickle.advance_watermark('{source}', {moment})")
    db.execute(SPACED)
    return db


def test_a_group_gets_a_tolerance_and_a_source_a_wait(shop: Database) -> None:
    with pytrickle.connect(shop.dsn) as client:
        group, source = client.advise("pipeline"), client.advise("public.orders")
    # 100 s apart: the same, five minutes, the same, which the last advance ends.
    assert (group.subject, group.observations) == (Subject.TOLERANCE, 3)
    assert dict(group.percentiles)[50] == timedelta(0)
    assert [one.delay for one in group.recommendations] == [timedelta(minutes=5)] * 3
    assert [bar.share for bar in group.bars if bar.share] == [pytest.approx(2 / 3), pytest.approx(1 / 3)]
    # Advanced at 100, 300 and 500 s past noon; before that it stood at noon and five minutes past.
    assert (source.subject, source.observations) == (Subject.WAIT, 2)
    assert [value for _, value in source.percentiles[:2]] == [timedelta(seconds=200), timedelta(seconds=300)]


def test_a_wait_over_the_change_to_summer_time_is_as_long_as_it_took(shop: Database) -> None:
    later = "(timestamptz '2026-03-29 00:57Z' - '2026-03-02 12:00Z')"
    shift = f"SET advanced_at = advanced_at + {later}, watermark = watermark + {later}"
    shop.execute(f"UPDATE pgtrickle.pgt_watermark_history {shift}")
    shop.execute(f"ALTER DATABASE \"{shop.value('SELECT current_database()')}\" SET TimeZone TO 'Europe/Berlin'")
    with pytrickle.connect(shop.dsn) as client:
        found = client.advise("public.orders")
        assert {str(row.advanced_at.tzinfo) for row in client.watermark_history("orders")} == {"UTC+01:00", "UTC+02:00"}
    assert [value for _, value in found.percentiles[:2]] == [timedelta(seconds=200), timedelta(seconds=300)]


def test_a_group_goes_before_a_table_of_the_same_name(shop: Database) -> None:
    shop.execute("SELECT pgtrickle.create_watermark_group('orders', ARRAY['orders', 'lines'])")
    with pytrickle.connect(shop.dsn) as client:
        assert client.advise("orders").subject is Subject.TOLERANCE
        assert client.advise("public.orders").subject is Subject.WAIT


def test_too_little_history_is_an_error_of_its_own(shop: Database) -> None:
    shop.execute('CREATE TABLE "Odd Name" (id int)')
    shop.execute("""SELECT pgtrickle.create_watermark_group('odd', ARRAY['"Odd Name"', 'orders'])""")
    with pytrickle.connect(shop.dsn) as client:
        for name in ("silent", "waiting", '"Odd Name"', "odd"):
            with pytest.raises(TooFewObservations):
                client.advise(name)
        with pytest.raises(CatalogError) as caught:
            client.advise("nothing")
        assert caught.value.sqlstate == "42P01"


def test_the_command_prints_what_the_client_found(shop: Database) -> None:
    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["--dsn", shop.dsn, "advise", *arguments], prog_name="pytrickle")
        assert result.exit_code == 0, result.output
        return result.stdout

    assert "The watermarks of pipeline are this far apart" in run("pipeline")
    assert "<= 5 min" in run("pipeline")
    assert json.loads(run("orders", "--json"))["percentiles"][0] == [50, 200.0]


def test_an_exhausted_source_is_infinity_for_any_driver(shop: Database) -> None:
    generator = bounded_file()
    generator.exhaust()
    watermark = generator.emit()
    assert watermark == INFINITY
    with psycopg.connect(shop.dsn) as connection:
        connection.execute("SELECT pgtrickle.advance_watermark('orders', %s)", [parameter(watermark)])
    engine = sqlalchemy.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(shop.dsn))
    with engine.begin() as other:
        advance = sqlalchemy.text("SELECT pgtrickle.advance_watermark('lines', :watermark)")
        other.execute(advance, {"watermark": parameter(watermark)})
    engine.dispose()
    exhausted = shop.execute("SELECT source FROM pgtrickle.watermarks() WHERE watermark = 'infinity' ORDER BY source")
    assert exhausted == [("public.lines",), ("public.orders",)]
