"""What Prometheus reads: scraped from a refresher on a real database, and written for a textfile collector."""

from __future__ import annotations

import json
import os
import re
from datetime import timedelta
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from pytrickle.cli.listen import listening
from pytrickle.cli.observer import Wanted, observed
from pytrickle.cli.service import Service
from pytrickle.errors import ConfigError, ConnectionLost
from pytrickle.integrations.prometheus import RULES
from tests.commands import commands
from tests.conftest import Database
from tests.equivalence.local_engine import local_client

NAMES = re.compile("pytrickle_[a-z_]+")
SERIES = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}
Samples = dict[tuple[str, tuple[str, ...]], float]


@pytest.fixture
def shop(db: Database) -> Database:
    """A gated report over two sources that are five minutes apart, and a count that is not gated."""
    db.execute("CREATE TABLE orders (id int)")
    db.execute("CREATE TABLE lines (id int)")
    db.execute("INSERT INTO orders VALUES (1), (2)")
    with local_client(db.dsn) as (client, _):
        client.create_watermark_group("pipeline", ["orders", "lines"])
        client.create_stream_table("counts", "SELECT count(*) FROM orders")
        client.create_stream_table("report", "SELECT count(*) FROM orders JOIN lines USING (id)")
    db.execute("SELECT pgtrickle.advance_watermark('orders', '2026-01-01 12:05Z')")
    db.execute("SELECT pgtrickle.advance_watermark('lines', '2026-01-01 12:00Z')")
    return db


def samples(text: str) -> Samples:
    """Read the text format, labels by their names; every family has a description and a name by the conventions."""
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation.endswith(".") and NAMES.fullmatch(family.name), family.name
        for sample in family.samples:
            found[sample.name, tuple(value for _, value in sorted(sample.labels.items()))] = sample.value
    return found


def series(text: str) -> set[str]:
    """Return the names that can be asked for, also of what has no value yet."""
    families = text_string_to_metric_families(text)
    return {family.name + suffix for family in families for suffix in SERIES.get(family.type, ("",))}


def get(port: int | None, path: str) -> str:
    with urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
        text: str = answer.read().decode()
    return text


def test_a_scrape_tells_the_state_of_the_catalog_and_what_the_process_did(shop: Database) -> None:
    shop.execute("INSERT INTO orders VALUES (9)")
    with local_client(shop.dsn) as (client, _), observed(client, Service(None), Wanted("0")) as observer:
        with pytest.raises(HTTPError, match="503"):
            get(observer.port, "/readyz")
        observer.lead(True)
        assert (get(observer.port, "/readyz"), get(observer.port, "/healthz")) == ("ready\n", "alive\n")
        with urlopen(Request(f"http://127.0.0.1:{observer.port}/readyz", method="HEAD"), timeout=10) as answer:
            assert (answer.status, answer.headers["Content-Length"], answer.read()) == (200, "6", b"")
        assert {r.stream_table: r.action for r in client.tick(observer.result)} == {
            "public.counts": "FULL",
            "public.report": "SKIP",
        }
        scraped = get(observer.port, "/metrics")
        found = samples(scraped)
        observer.error(ConnectionLost("gone"))
        with pytest.raises(HTTPError, match="503"):
            get(observer.port, "/readyz")
        with pytest.raises(HTTPError, match="404"):
            get(observer.port, "/")
    for printed in ("--rules", "--dashboard"):
        text = commands(shop.dsn)("metrics", printed).stdout
        asked = set(NAMES.findall(text))
        assert len(asked) > 5 and asked <= series(scraped), "rules and dashboard ask for what there is"
    assert isinstance(json.loads(text)["panels"], list) and yaml.safe_load(RULES.read_text())["groups"]
    assert found["pytrickle_up", ()] == found["pytrickle_leader", ()] == 1
    assert found["pytrickle_stream_table_state", ("gated", "public.report")] == 1
    assert found["pytrickle_stream_table_state", ("ok", "public.counts")] == 1
    assert found["pytrickle_stream_table_staleness_seconds", ("public.counts",)] == 0, "it shows all that there is"
    assert ("pytrickle_stream_table_staleness_seconds", ("public.report",)) not in found
    assert found["pytrickle_watermark_group_lag_seconds", ("pipeline",)] == 300
    assert found["pytrickle_watermark_group_aligned", ("pipeline",)] == 0
    assert found["pytrickle_source_watermark_timestamp_seconds", ("public.lines",)] == 1767268800
    assert found["pytrickle_change_buffer_bytes", ("public.orders",)] > 0
    assert found["pytrickle_refresh_duration_seconds_count", ("FULL", "postgres", "public.counts")] == 1
    assert found["pytrickle_refresh_rows_total", ("inserted", "public.counts")] == 1


def test_a_scrape_tells_why_a_stream_table_is_stale_and_which_incidents_are_open(shop: Database) -> None:
    with local_client(shop.dsn) as (client, _):
        client.tick()
        shop.execute("INSERT INTO orders VALUES (3)")
        client.set_alert_limits("lines", lag="1 hour", rate=None)
        shop.execute("SELECT pgtrickle.raise_alerts()")
        found = samples(commands(shop.dsn)("metrics").stdout)
        parts = {row.stream_table: row for row in client.status().freshness}
        text = str(client.explain("counts"))
    lag = {
        labels: value
        for (name, labels), value in found.items()
        if name == "pytrickle_stream_table_lag_seconds" and labels[1] == "public.counts"
    }
    assert found["pytrickle_stream_table_staleness_seconds", ("public.counts",)] == pytest.approx(sum(lag.values()))
    assert lag["queue", "public.counts"] > 0 and lag["watermark", "public.counts"] == 0
    assert found["pytrickle_alert_open", ("", "watermark_lag", "public.lines")] == 1
    assert (
        parts["public.counts"].cause == "queue"
        and sum(parts["public.counts"].parts.values(), timedelta(0)) == parts["public.counts"].lag
    )
    assert "  freshness: behind: " in text and "in the queue: no refresher runs" in text


def test_the_command_writes_a_file_as_a_whole_and_prints_the_same(shop: Database, tmp_path: Path) -> None:
    run, file = commands(shop.dsn), tmp_path / "pytrickle.prom"
    assert run("metrics", "--output", str(file)).stdout == f"Wrote {file}.\n"
    assert [path.name for path in tmp_path.iterdir()] == ["pytrickle.prom"]
    written, printed = samples(file.read_text()), samples(run("metrics").stdout)
    assert written.keys() == printed.keys()
    assert written["pytrickle_stream_table_state", ("initializing", "public.counts")] == 1
    assert run("metrics", "--output", str(tmp_path / "nowhere" / "x.prom")).exit_code == 2
    assert run("metrics", "--rules", "--dashboard").exit_code == 2


def test_a_directory_is_no_file_to_write_and_nothing_is_left_beside_it(shop: Database, tmp_path: Path) -> None:
    run, directory = commands(shop.dsn), tmp_path / "pytrickle.prom"
    directory.mkdir()
    for output in (str(directory), ""):
        refused = run("metrics", "--rules", "--output", output)
        assert refused.exit_code == 2 and "it is a directory" in refused.stderr
    assert list(tmp_path.iterdir()) == [directory]


def test_a_pipe_or_a_link_stays_what_it_is(shop: Database, tmp_path: Path) -> None:
    run, pipe, link, file = commands(shop.dsn), tmp_path / "pipe", tmp_path / "link", tmp_path / "file"
    os.mkfifo(pipe)
    link.symlink_to(file)
    reading = os.open(pipe, os.O_RDWR)
    for output in (pipe, link):
        assert run("metrics", "--rules", "--output", str(output)).exit_code == 0
    assert pipe.is_fifo() and link.is_symlink()
    assert os.read(reading, 1 << 20) == file.read_bytes() == RULES.read_bytes()
    os.close(reading)


def test_an_exhausted_source_and_a_database_out_of_reach_are_told(shop: Database) -> None:
    shop.execute("SELECT pgtrickle.advance_watermark('orders', 'infinity')")
    with local_client(shop.dsn) as (client, _), observed(client, Service(None), Wanted("0")) as observer:
        found = samples(get(observer.port, "/metrics"))
        assert found["pytrickle_source_watermark_timestamp_seconds", ("public.orders",)] == float("inf")
        client._lender.close()
        shop.execute("ALTER SCHEMA pgtrickle RENAME TO elsewhere")
        assert samples(get(observer.port, "/metrics"))["pytrickle_up", ()] == 0
        shop.execute("ALTER SCHEMA elsewhere RENAME TO pgtrickle")
        with (
            pytest.raises(ConfigError, match="Nobody can listen"),
            listening(("127.0.0.1", observer.port or 0), None, bool, bool),  # type: ignore[arg-type]
        ):
            pytest.fail("two may not listen on one port")
