"""The format reads in every version of PySpark from 4.0 on, in classic sessions and through Spark Connect."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyspark
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.conftest import Database
from tests.programs import printed_by
from tests.repeats import first
from tests.spark.feeds import SOURCE, newest, work
from tests.spark.versions import VERSIONS, python_of

pytestmark = pytest.mark.long

SESSION = Path(__file__).with_name("read_session.py")
INSTALLED = ".".join(pyspark.__version__.split(".")[:2])
REFUSED = "pushFilters needs PySpark 4.1."
KINDS = {"classic": "pyspark.sql.session", "connect": "pyspark.sql.connect.session"}
CASES = ((INSTALLED, "connect"), *((version, kind) for version in VERSIONS for kind in KINDS))


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("version", "kind"), first(0, CASES, then=1))
def test_tables_changes_and_streams_are_read(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, kind: str
) -> None:
    for statement in SOURCE:
        db.execute(statement)
    db.execute("SELECT pgtrickle.create_watermark_group('shop', ARRAY['orders'])")
    work(db, 1)
    before = table(db)
    work(db, 2)
    work(db, 3)
    program = Path(sys.executable) if version == INSTALLED else python_of(version)
    with monkeypatch.context() as environment:
        for name, value in service(db, tmp_path / "services").items():
            environment.setenv(name, value)
        told = [json.loads(line) for line in printed_by(SESSION, str(tmp_path), kind, python=program)]
    found, session = told[0]
    assert found.startswith(version) and session == KINDS[kind]
    now, as_of_version, as_of_watermark, updates, *streams, filtered = told[1:]
    assert (now, as_of_version, as_of_watermark) == (table(db), before, before) and before != table(db)
    assert {change[0] for change in updates} >= {"insert", "update_preimage", "update_postimage"}
    assert streams[0] == streams[1] == changes(db) != []
    if version >= "4.2":
        # Spark tells of a batch when it begins the next one.
        assert db.value("SELECT read_version FROM pgtrickle.feeds()") == newest(db) - 1
    exact = [row for row in table(db) if row[0] < 12]
    assert filtered == (exact if version > "4.0" else REFUSED)


def service(db: Database, place: Path) -> dict[str, str]:
    """Write a service file of libpq for the database; return the variables by which it is found."""
    settings = conninfo_to_dict(db.dsn)
    place.write_text("[shop]\n" + "".join(f"{name}={value}\n" for name, value in settings.items()))
    return {"PGSERVICEFILE": str(place), "PGSERVICE": "shop"}


def table(db: Database) -> list[list[object]]:
    return [list(row) for row in db.execute("SELECT id, amount::text FROM orders ORDER BY 1")]


def changes(db: Database) -> list[list[object]]:
    query = "SELECT _change_type, _commit_version, (changed).id, (changed).amount::text FROM"
    return sorted(map(list, db.execute(f"{query} pgtrickle.changes_of_versions(NULL::orders, 1)")))
